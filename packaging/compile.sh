#!/bin/bash
# compile.sh VERSION FOLDER PROGRAM…   builds the programs, static and stripped, into FOLDER, for $GOOS and $GOARCH
#
# TEST_LDFLAGS are more flags of the linker, for tests. Nothing else says how a program is built that anybody runs: not make build, not the packages,
# not the tests.
set -euo pipefail
version=$1 folder=$2
shift 2
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off # what is released is built with its own go.mod

# kubelet-supervisor is on every node for as long as the node lives, and nothing in it is in a hurry but its start. So it is made small: 17.7 MB
# are 15.4, and its RSS shrinks by the same 2 MiB. Its start takes as long as before.
# - Without inlining, but for the runtime: a start that has none there takes 2 ms of a processor more.
# - Without net/http's own copy of HTTP/2, which nothing calls: client-go brings golang.org/x/net's. TestHTTP2 sees to that.
# - With functions at every 16th byte instead of every 32nd.
small=(-tags=nethttpomithttp2 -gcflags=all=-l -gcflags=runtime/...= -gcflags=internal/...=)
align=-funcalign=16

for program in "$@"; do
  flags=() layout=
  [ "$program" != kubelet-supervisor ] || flags=("${small[@]}") layout=$align
  CGO_ENABLED=0 go build -trimpath "${flags[@]}" -ldflags "-s -w $layout -X main.version=$version ${TEST_LDFLAGS:-}" -o "$folder/$program" "./cmd/$program"
done
