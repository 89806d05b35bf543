"""Prints what the Python module `otf2` reads in an archive: one JSON object.

intervals  [location, begin, end, region] of each Enter and Leave; those of no time too
forks      [location, begin, end] of each ThreadFork and ThreadJoin
locks      [location, begin, lock, order] of each ThreadAcquireLock
counts     how often each kind of event comes
roots      the names of the regions around all that a location does
"""

import collections
import json
import sys

import otf2

answer = {"intervals": [], "forks": [], "locks": [], "roots": []}
counts = collections.Counter()
open_regions = collections.defaultdict(list)
open_forks = collections.defaultdict(list)
with otf2.reader.open(sys.argv[1]) as trace:
    for region in trace.definitions.regions:
        # Unknown enumerators have no name, and raise.
        role, paradigm = str(region.region_role), str(region.paradigm)
        if "ARTIFICIAL" in role and "MEASUREMENT_SYSTEM" in paradigm:
            answer["roots"].append(region.name)
    for location, event in trace.events:
        kind = type(event).__name__
        counts[kind] += 1
        if kind == "Enter":
            open_regions[location].append((event.region, event.time))
        elif kind == "Leave":
            region, begin = open_regions[location].pop()
            assert region is event.region, (region.name, event.region.name)
            answer["intervals"].append([location.name, begin, event.time, region.name])
        elif kind == "ThreadFork":
            open_forks[location].append(event.time)
        elif kind == "ThreadJoin":
            answer["forks"].append([location.name, open_forks[location].pop(), event.time])
        elif kind == "ThreadAcquireLock":
            answer["locks"].append(
                [location.name, event.time, event.lock_id, event.acquisition_order]
            )
    assert not any(open_regions.values()) and not any(open_forks.values())
answer["counts"] = counts
json.dump(answer, sys.stdout)
