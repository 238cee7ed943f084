#!/bin/bash
# again.sh COMMAND...   runs `go test`, or a test binary with -test.v, through report.sh, and what failed once more by itself
#
# Tests on real parts have deadlines, and a machine that others use can miss one. What fails twice has failed. What passes the second time is
# a fault all the same, to be mended: it is called UNSTABLE, and side-by-side.sh says so at the very end.
# Nothing is run again where it is not known what failed (a panic, a data race, a leak, a build), where more than three tests failed, or with
# AGAIN=0.
#
# It is not gotestsum (v1.13.0, 15 requirements in a module of its own): that would replace 20 of these lines, and needs as many to run test binaries
# through test2json and to say UNSTABLE at the end.
set -uo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
most=3

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log" | "$here/../report.sh"
code=${PIPESTATUS[0]}
[ "$code" != 0 ] && [ "${AGAIN:-1}" != 0 ] || exit "$code"

# One name a line; "?" stands for a failure that no test's name explains.
failed=$(awk '
/^--- FAIL: / { named = 1; if (!($3 in seen)) { seen[$3]; print $3 } }
/^panic: |^fatal error: |^WARNING: DATA RACE|^goleak: |\[(build|setup) failed\]/ { print "?" }
/^FAIL\t/ { if (!named) print "?" }
/^(FAIL|ok|\?) *\t/ { named = 0 }
' "$log")
if [ -z "$failed" ] || grep -qxF '?' <<<"$failed" || [ "$(wc -l <<<"$failed")" -gt $most ]; then exit "$code"; fi

flag=-run
[ "$1" = go ] || flag=-test.run
names=$(paste -sd'|' <<<"$failed")
printf '\n======== once more, by itself: %s\n' "${names//|/, }"
"$@" "$flag=^($names)\$" 2>&1 | tee "$log" | "$here/../report.sh"
code=${PIPESTATUS[0]}
[ "$code" = 0 ] || exit "$code"
while read -r name; do
  echo "UNSTABLE: $name failed, and passed when it ran once more by itself. It wants mending: what it said the first time is above."
done <<<"$failed"
