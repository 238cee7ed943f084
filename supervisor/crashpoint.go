//go:build linux && !crashpoints

package supervisor

// crashPoint is where tests that are built with the tag crashpoints kill the process. Otherwise it is nothing.
func crashPoint(string, any) {}
