// Package release makes a release as `make release` does, of a tag in a clone of this tree, and uses it as a stranger would: it verifies what was
// signed, by the commands of docs/howto/verify.md, and installs from the repositories with apt and dnf.
package release
