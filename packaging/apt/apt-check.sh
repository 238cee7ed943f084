#!/bin/sh
# apt-check   asks each kubelet that apt is about to install whether it accepts what this node may start it with
#
# Apt runs it before it unpacks anything, and says on standard input what it will do (apt.conf(5), DPkg::Pre-Install-Pkgs, version 3). It
# ends with 1, and apt with it, where a kubelet would refuse; what cannot be told is said, and stops nothing. KUBELET_SUPERVISOR_SKIP=1 asks
# nothing. No -e: the code of a command that fails is not to be taken for a no.
set -u

actions=$(sed '1,/^$/d') # all is read, also where nothing is asked: apt goes on writing
[ "${KUBELET_SUPERVISOR_SKIP:-}" != 1 ] || exit 0

say() { printf 'kubelet-supervisor: %s\n' "$*" >&2; }

runs_the_kubelet() { # by what enable wrote, or else by what runs
  for file in /etc/systemd/system/*.service.d/zz-kubelet-supervisor.conf /etc/systemd/system/kubelet-supervisor.service; do
    [ ! -e "$file" ] || return 0
  done
  timeout 10 kubelet-supervisor status >/dev/null 2>&1
}

may_have_a_kubelet() { # PACKAGE: looking into each one would take long
  case $1 in
  kubelet-supervisor*) return 1 ;;
  kubelet*) return 0 ;;
  esac
  [ "$1" = "$owner" ]
}

ask() { # FILE: the code of check, with its words in $words
  words="There is no room for it: $folder cannot be made."
  { rm -rf "$folder" && mkdir -m 700 "$folder"; } 2>/dev/null || return 3
  timeout 120 dpkg-deb --fsys-tarfile "$1" 2>/dev/null | tar --extract --directory "$folder" ./usr/bin/kubelet 2>/dev/null
  words="Its /usr/bin/kubelet is a link."
  [ ! -L "$folder/usr/bin/kubelet" ] || return 3
  [ -f "$folder/usr/bin/kubelet" ] || return 0
  words=$(TMPDIR=$folder timeout --kill-after=5 90 kubelet-supervisor check --active --kubelet="$folder/usr/bin/kubelet" 2>&1 </dev/null)
}

command -v kubelet-supervisor >/dev/null || exit 0
runs_the_kubelet || exit 0
owner=$(dpkg-query --search /usr/bin/kubelet 2>/dev/null)
owner=${owner%%[:,]*}

# Programs can be run from here, for dpkg runs its own from /var/lib; often they cannot from /tmp and /run.
folder=/var/lib/kubelet-supervisor-apt
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT TERM

refused=0
while read -r name _ _ _ _ version _ _ file; do
  [ -f "$file" ] || continue
  may_have_a_kubelet "$name" || continue
  ask "$file"
  case $? in
  0) continue ;;
  1)
    refused=1
    say "the kubelet of $name $version would not start with all that this node may start it with:"
    ;;
  124 | 137) say "the kubelet of $name $version was asked, and did not answer in time." ;;
  *) say "whether the kubelet of $name $version would start on this node is not known:" ;;
  esac
  printf '%s\n' "$words" | sed 's/^/  /' >&2
done <<ACTIONS
$actions
ACTIONS
[ "$refused" = 0 ] || say "nothing is installed. Correct the configuration or the node before, or set KUBELET_SUPERVISOR_SKIP=1 and install it all the same."
exit "$refused"
