#!/bin/bash
# scan.sh [FOLDER…]   asks govulncheck, which test/tools/govulncheck pins, whether the Go modules in these folders call code with known
# vulnerabilities, by default the one of this tree
#
# 0: none is known. 1: some are, and they are listed. 3: NOT SCANNED, because the database cannot be had; that is no pass. 2: anything else.
# GOVULNDB names another database than https://vuln.go.dev, as file:///FOLDER for example.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export GOWORK=off # each module as it is released
program=$(go tool -C test/tools/govulncheck -n govulncheck) || { echo "NOT SCANNED: govulncheck cannot be built." >&2; exit 2; }
database=${GOVULNDB:-https://vuln.go.dev}
result=0
for folder in "${@:-.}"; do
  code=0
  said=$(cd "$folder" && "$program" -db "$database" ./... 2>&1) || code=$?
  echo "$folder: $said"
  case $code in
  0) ;;
  3) result=1 ;;
  *)
    if [[ $said = *"fetching vulnerabilities"* || $said = *"creating client"* ]]; then
      echo "NOT SCANNED: the database $database cannot be had from here, so nothing is known about vulnerabilities. Run make scan where it can, or name another with GOVULNDB." >&2
      exit 3
    fi
    exit 2
    ;;
  esac
done
exit "$result"
