#!/bin/bash
# build.sh [PART...]   builds the real parts that tests and demo need from their Go modules; without arguments all, but not the linter
# build.sh --folder    says where they are
#
# The folder is in the cache, its name made of what the parts are built from, so that it is built once:
# ${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-~/.cache}/kubelet-supervisor}/parts-HASH
# KUBELET_SUPERVISOR_PARTS=/FOLDER names a folder with prebuilt parts instead; nothing is built then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# name                      module          package, and about how many seconds it takes two processors from nothing
parts="\
etcd                        etcd            go.etcd.io/etcd/server/v3                                      40
containerd                  containerd      github.com/containerd/containerd/v2/cmd/containerd             75
containerd-shim-runc-v2     containerd      github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 5
ctr                         containerd      github.com/containerd/containerd/v2/cmd/ctr                    10
pause.tar                   -               ./pause                                                         2
kube-apiserver-1.36.3       kubernetes      k8s.io/kubernetes/cmd/kube-apiserver                          210
kubelet-1.36.3              kubernetes      k8s.io/kubernetes/cmd/kubelet                                  45
kubectl-1.36.3              kubernetes      k8s.io/kubernetes/cmd/kubectl                                  20
kube-apiserver-1.24.17      kubernetes-1.24 k8s.io/kubernetes/cmd/kube-apiserver                          150
golangci-lint-2.15.0        ../tools        github.com/golangci/golangci-lint/v2/cmd/golangci-lint        150"

folder=${KUBELET_SUPERVISOR_PARTS:-}
if [ -z "$folder" ]; then
  hash=$(cat build.sh ./*/go.mod ./*/go.sum pause/main.go | sha256sum | cut -c1-12)
  folder=${KUBELET_SUPERVISOR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubelet-supervisor}/parts-$hash
fi
[ "${1:-}" != --folder ] || { echo "$folder"; exit; }

missing=()
while read -r name module _; do
  [[ $# = 0 && $module != ../tools || " $* " = *" $name "* ]] || continue
  [ -e "$folder/$name" ] || missing+=("$name")
done <<<"$parts"
[ ${#missing[@]} -gt 0 ] || exit 0
if [ -n "${KUBELET_SUPERVISOR_PARTS:-}" ]; then
  echo "KUBELET_SUPERVISOR_PARTS=$folder: these parts are not in it: ${missing[*]}" >&2
  exit 1
fi

mkdir -p "$folder"
exec {lock}>"$folder/.lock"
flock --nonblock "$lock" || { echo "Waiting for another build of the parts in $folder"; flock "$lock"; }
work=$(mktemp -d "$folder/.build-XXXXXX")
compiler=
trap '[ -z "$compiler" ] || kill "$compiler" 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
# Nothing of the caller's may change what is built: not a flag, not a workspace.
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off GOOS=linux GOTMPDIR=$work
unset GOARCH

version_flags() { # name: Kubernetes takes its version from these, in the server's package and in the client's
  local version=${1##*-} package
  case $1 in
  kube*) for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s.gitVersion=v%s -X %s.gitMajor=1 -X %s.gitMinor=%s -X %s.gitTreeState=clean ' \
      "$package" "$version" "$package" "$package" "$(cut -d. -f2 <<<"$version")" "$package"
  done ;;
  container*|ctr) printf -- '-X github.com/containerd/containerd/v2/version.Version=2.2.2' ;;
  esac
}

compile() { # module package name output: go build, with a line about its progress every ten seconds
  local log=$work/log begin=$SECONDS said=$SECONDS
  go build -C "$1" -v -trimpath -ldflags "-s -w $(version_flags "$3")" -o "$4" "$2" >"$log" 2>&1 {lock}>&- &
  compiler=$!
  while kill -0 "$compiler" 2>/dev/null; do
    sleep 0.2
    [ $((SECONDS - said)) -ge 10 ] || continue
    said=$SECONDS
    printf '      %4d s, %d packages compiled\n' $((SECONDS - begin)) "$(grep -cv '^go: ' "$log" || :)"
  done
  wait "$compiler" || { compiler=; tail -20 "$log" >&2; echo "building $3 failed" >&2; exit 1; }
  compiler=
}

pause_image() { # output: an image of one layer, with one program
  local image=$work/image hash
  mkdir "$image"
  compile . ./pause/main.go pause "$image/pause"
  tar -C "$image" --owner=0 --group=0 --mtime=@0 -cf "$image/layer.tar" pause
  hash=$(sha256sum "$image/layer.tar" | cut -d' ' -f1)
  printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["/pause"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{}]}' \
    "$(go env GOARCH)" "$hash" >"$image/config.json"
  echo '[{"Config":"config.json","RepoTags":["registry.k8s.io/pause:3.10"],"Layers":["layer.tar"]}]' >"$image/manifest.json"
  tar -C "$image" -cf "$1" manifest.json config.json layer.tar
}

expected=0
while read -r name _ _ seconds; do
  [[ " ${missing[*]} " != *" $name "* ]] || expected=$((expected + seconds))
done <<<"$parts"
echo "Building ${#missing[@]} real parts into $folder, once: about $(((expected + 59) / 60)) min on two processors, plus the download; less where Go's build cache has them."
n=0 begin=$SECONDS
while read -r name module package seconds; do
  [[ " ${missing[*]} " = *" $name "* ]] || continue
  n=$((n + 1))
  [ ! -e "$folder/$name" ] || continue # the build that was waited for made it
  echo "[$n/${#missing[@]}] $name (about $seconds s from nothing; $((SECONDS - begin)) s so far)"
  if [ "$name" = pause.tar ]; then pause_image "$work/$name"; else compile "$module" "$package" "$name" "$work/$name"; fi
  mv "$work/$name" "$folder/$name"
done <<<"$parts"
echo "All parts are there after $((SECONDS - begin)) s."
