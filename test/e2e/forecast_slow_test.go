//go:build e2e && long

package e2e

import "testing"

// These are the other rows of TestForecast.
func TestSlowForecast(t *testing.T) {
	t.Parallel()
	runForecastRows(t, ownNode(t, "forecast"), true)
}
