#!/bin/bash
# run.sh [FLAG...]   runs the end-to-end tests, in two halves side by side; flags of go test, such as -run=TestX, are for one run of all
#
# Each half has a cluster of its own, in namespaces of its own. A node waits most of the time, so two take little longer than one. What is
# named TestLong… takes most of a minute, and is for make test-e2e-long.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

go_test=(go test -tags e2e -p 1 -count 1 -v -timeout 40m)
# test/bench and test/scale are those of make bench-check.
mapfile -t others < <(go list -tags e2e ./test/... | grep -vE '/test/(bench|scale|e2e)$')
if [ $# -gt 0 ]; then
  exec test/again/again.sh "${go_test[@]}" "$@" "${others[@]}" ./test/e2e
fi

go test -c -tags e2e -o bin/e2e.test ./test/e2e
mapfile -t names < <(cd test/e2e && "$OLDPWD/bin/e2e.test" -test.list . | grep -v ^TestLong)
half() { # 0|1: every other test, so that the halves take about as long
  local i picked=
  for ((i = $1; i < ${#names[@]}; i += 2)); do picked+="|${names[i]}"; done
  echo "cd test/e2e && ../again/again.sh $PWD/bin/e2e.test -test.v -test.timeout 40m -test.run '^(${picked#|})\$'"
}
test/side-by-side.sh bin/test e2e-1 "$(half 0)" e2e-2 "$(half 1)" others "test/again/again.sh ${go_test[*]} ${others[*]}"
