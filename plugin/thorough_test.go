//go:build !long

package plugin

// thorough: make test-hostile tries everything with everything. The unit tests try each command, and each kind, but not each of these with each of those.
const thorough = false
