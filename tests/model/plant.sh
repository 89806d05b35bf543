#!/bin/bash
# Plants eleven faults in the analysis, one at a time, in a copy of the sources. The model must find each within 2,000 programs.
#
#     tests/model/plant.sh            all of them
#     tests/model/plant.sh --check    only that each fault can still be planted
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# The copy, and all that is built of it: below TMPDIR.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git -C "$root" archive HEAD | tar -x -C "$copy"
sources=$copy/analysis/src

# Name; file below analysis/src; what sed does to it.
faults=(
    "half of what a late member costs|states/transitions.rs|s/(clocks.late - membership.clocks.late).min(ns)/((clocks.late - membership.clocks.late) \/ 2).min(ns)/"
    "half of what the wait for tasks costs|states/transitions.rs|s/(clocks.starved - membership.clocks.starved).min/((clocks.starved - membership.clocks.starved) \/ 2).min/"
    "a task forgets the thread that begins it|states/members/tasks.rs|s/of_thread.now.chain.max(task.start.chain)/task.start.chain/"
    "a mutex hands no chain over|states/members/locks.rs|s/now.chain.max(release.chain)/now.chain/"
    "meetings cost what the thread waited|what_if/mod.rs|s/(time - self.recorded.max(other.recorded)).max(0)/(time - self.recorded).max(0)/"
    "no more than two threads are busy|states/concurrency.rs|s/self.most = self.most.max(busy);/self.most = self.most.max(busy.min(2));/"
    "waits are no part of the span|scaling/phase.rs|s/self.start(waiter, now);/self.start(waiter, 0);/"
    "a schedule ends with any of its strands|scaling/list_scheduler.rs|s/Some(end) => last = last.max(end)/Some(end) => last = end/"
    "each task is blamed for all waits|states/shared_state.rs|s/f64::from(self.waiting) \/ f64::from(running)/f64::from(self.waiting)/"
    "idle threads do not see MPI calls|states/concurrency.rs|s/(None, Some(call)) => self.calls.entry(\*call).or_default()/(None, Some(_)) => \&mut self.current/"
    "regions are visited twice|answers/of_process.rs|s/visits: region.visits,/visits: region.visits * 2,/"
)

if [ "${1:-}" != --check ]; then
    # What the random programs find is what counts, not the list of known differences.
    model=$(cd "$copy" && CARGO_TARGET_DIR=$copy/target cargo test --quiet --no-run --message-format=json \
        --package omptrace-model --test model | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
    cp "$model" "$copy/model"
fi

missed=0
for fault in "${faults[@]}"; do
    IFS='|' read -r name file edit <<<"$fault"
    cp "$sources/$file" "$copy/original"
    sed -i "$edit" "$sources/$file"
    if cmp -s "$sources/$file" "$copy/original"; then
        echo "cannot be planted: $name ($file)"
        exit 2
    fi
    if [ "${1:-}" != --check ]; then
        (cd "$copy" && CARGO_TARGET_DIR=$copy/target cargo build --quiet --package omptrace-model --example stats)
        mkdir -p "$copy/bin"
        cp "$copy/target/debug/examples/stats" "$copy/bin/omptrace"
        if OMPTRACE_TEST_BIN_DIR=$copy/bin "$copy/model" answers_are >"$copy/output" 2>&1; then
            echo "missed: $name"
            missed=$((missed + 1))
        elif grep -q ' differs in ' "$copy/output"; then
            echo "found: $name: $(grep ' differs in ' "$copy/output" | head -3 | paste -sd ';')"
        else
            cat "$copy/output"
            exit 2
        fi
    fi
    cp "$copy/original" "$sources/$file"
done
exit $((missed > 0))
