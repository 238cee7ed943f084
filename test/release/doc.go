// Package release looks at releases that `make release` makes of tags in a clone of this tree, and uses one as a stranger would: it verifies what was
// signed, by the commands of docs/howto/verify.md. test/systemd installs from the repositories with apt and dnf, goes to the next release and back.
package release
