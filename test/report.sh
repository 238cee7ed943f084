#!/bin/bash
# go test -v … | report.sh   passes the output on and, where a test failed, ends with the name of each and its last lines:
# what failed is then at the end of a log of half an hour, and in what a CI shows of it. The last of it is what the test itself said, which
# the log of a kubelet would hide.
progress=()
case "$(awk -W version 2>&1 </dev/null)" in mawk*) progress=(-W interactive) ;; esac # Debian's awk waits for 4 KiB otherwise
exec awk "${progress[@]}" -v lines="${LINES_OF_A_FAILURE:-30}" '
function top(name) { sub(/\/.*/, "", name); return name }
function fail(name) { if (!(name in failed)) { failed[name]; order[++failures] = name } }

{ print; fflush() }
/^=== (RUN|CONT|NAME|PAUSE) / { current = top($3) }
/^ *--- (PASS|FAIL|SKIP): / { current = top($3) }
/^ *--- FAIL: / { fail(current) }
/^panic: |^fatal error: |^WARNING: DATA RACE/ { fail(current == "" ? "outside of a test" : current) }
/^--- (PASS|SKIP): / { if (!(current in failed)) { delete count[current]; delete said[current] } }
/^FAIL\t/ { packages = packages "\n" $0 }
{ kept[current, count[current]++ % lines] = $0 }
/^ +[a-z0-9_]+_test\.go:[0-9]+: / && !/: after [0-9.]+ s$/ { said[current] = said[current] "\n" substr($0, 1, 600) }

END {
  if (packages == "" && failures == 0) exit
  for (i = 1; i <= failures; i++) {
    name = order[i]; n = count[name]
    printf "\n---------------- %s, its last %d of %d lines\n", name, n < lines ? n : lines, n
    for (j = n > lines ? n - lines : 0; j < n; j++) print kept[name, j % lines]
    if (name in said) print "\n" name " says:" said[name]
    names = names " " name
  }
  print "\n================ what failed:" names packages
}'
