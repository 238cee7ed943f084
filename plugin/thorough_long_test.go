//go:build long

package plugin

// thorough: everything is tried with everything.
const thorough = true
