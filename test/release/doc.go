// Package release looks at releases that `make release` makes of tags in a clone of this tree, and uses one as a stranger would: it verifies what was
// signed, and takes the mixin, by the commands of docs/howto/verify.md. The page's other commands are typed elsewhere: test/fleet has the cluster,
// packaging/image the registry, and test/systemd installs from the repositories with apt and dnf, goes to the next release and back.
package release
