#!/bin/sh
# What the GitHub Action and the GitLab template run: records a program several times, makes a report, compares with an earlier run.
#
#     measure.sh RUNS OUT FAIL_ON BEFORE -- PROGRAM ARGS...
#
# Traces' numbers come to lie in OUT as run-N.json, which are small and kept as the next comparison's BEFORE. OUT/report.md and
# OUT/report.html are for people, OUT/diff.md is there where BEFORE has numbers. FAIL_ON is as of `omptrace diff --fail-on`; empty
# compares without failing. Exit status: 0, that of the program where it fails, 1 where a condition of FAIL_ON is met.
set -eu

runs=$1 out=$2 fail_on=$3 before=$4
shift 4
[ "$1" = -- ] && shift

mkdir -p "$out"
rm -f "$out"/run-*.omptrace "$out"/run-*.json
run=1
while [ "$run" -le "$runs" ]; do
  omptrace record --quiet -o "$out/run-$run.omptrace" -- "$@"
  omptrace stats "$out/run-$run.omptrace" --json --all >"$out/run-$run.json"
  run=$((run + 1))
done

omptrace report "$out/run-1.omptrace" -o "$out/report.html"
omptrace report "$out/run-1.omptrace" --md -o "$out/report.md"

if [ -n "$before" ] && ls "$before"/run-*.json >/dev/null 2>&1; then
  status=0
  if [ -n "$fail_on" ]; then
    omptrace diff --md --fail-on "$fail_on" "$before"/run-*.json -- "$out"/run-*.json >"$out/diff.md" || status=$?
  else
    omptrace diff --md "$before"/run-*.json -- "$out"/run-*.json >"$out/diff.md"
  fi
  cat "$out/diff.md"
  exit "$status"
fi
