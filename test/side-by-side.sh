#!/bin/bash
# side-by-side.sh FOLDER NAME COMMAND [NAME COMMAND]...   runs shell commands at the same time
#
# Each line that is printed begins with the name of its command; FOLDER/NAME.log has the lines of one. All commands run to their end.
# Where one failed, the last lines of its log come last, then what its tests said, and the exit code is 1. What again.sh calls unstable is
# said once more at the end.
set -euo pipefail

folder=$1
shift
mkdir -p "$folder"
names=() pids=()
# Ctrl-C goes to the whole group of processes, and each command tidies up: this waits for them.
trap 'echo "Interrupted; waiting for ${names[*]}" >&2; wait; exit 130' INT TERM HUP
while [ $# -gt 0 ]; do
  name=$1
  bash -c "set -o pipefail; { $2; } 2>&1 | tee '$folder/$name.log' | sed -u 's/^/$name | /'" &
  names+=("$name") pids+=($!)
  shift 2
done

failed=()
for i in "${!pids[@]}"; do
  wait "${pids[i]}" || failed+=("${names[i]}")
done
for name in ${failed[@]+"${failed[@]}"}; do
  printf '\n======== the end of %s, which failed\n' "$name"
  tail -60 "$folder/$name.log"
done
# A failed test's own words come before the output of what it ran, which can be longer than what is printed above.
for name in ${failed[@]+"${failed[@]}"}; do
  printf '\n======== what failed in %s\n' "$name"
  grep -E -- '--- FAIL|_test\.go:[0-9]+: |^FAIL|^panic:|WARNING: DATA RACE|\*\*\* ' "$folder/$name.log" | tail -40 | cut -c1-400 || true
done
logs=("${names[@]/#/$folder/}")
grep -hoE 'UNSTABLE: .*' "${logs[@]/%/.log}" | sort -u || true
[ ${#failed[@]} = 0 ] || { printf '\nFAILED: %s\n' "${failed[*]}"; exit 1; }
