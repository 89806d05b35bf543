"""Prints what the Python module `otf2` reads in an archive: one JSON object.

intervals  [location, begin, end, region, attributes] of each Enter and Leave; those of no time too
forks      [location, begin, end] of each ThreadFork and ThreadJoin
locks      [location, begin, lock, order] of each ThreadAcquireLock
transfers  [location, begin, end, kind, bytes, remote location, attributes] of each RmaGet and RmaPut
locations  [name, is a thread of the host, group, type of the group, group that created that] of each location
counts     how often each kind of event comes
roots      the names of the regions around all that a location does
"""

import collections
import json
import sys

import otf2



def details(event):
    """The attributes of an event by name; of a location, its name."""
    attributes = event.attributes or {}
    return {name.name: getattr(value, "name", value) for name, value in attributes.items()}


answer = {"intervals": [], "forks": [], "locks": [], "transfers": [], "locations": [], "roots": []}
counts = collections.Counter()
open_regions = collections.defaultdict(list)
open_forks = collections.defaultdict(list)
open_transfers = {}
with otf2.reader.open(sys.argv[1]) as trace:
    for region in trace.definitions.regions:
        # Unknown enumerators have no name, and raise.
        role, paradigm = str(region.region_role), str(region.paradigm)
        if "ARTIFICIAL" in role and "MEASUREMENT_SYSTEM" in paradigm:
            answer["roots"].append(region.name)
    for location in trace.definitions.locations:
        group, creator = location.group, location.group.creating_location_group
        group_kind = str(group.location_group_type).split(".")[-1]
        is_thread = str(location.type).endswith("CPU_THREAD")
        answer["locations"].append(
            [location.name, is_thread, group.name, group_kind, creator and creator.name]
        )
    for location, event in trace.events:
        kind = type(event).__name__
        counts[kind] += 1
        if kind == "Enter":
            open_regions[location].append((event.region, event.time, details(event)))
        elif kind == "Leave":
            region, begin, attributes = open_regions[location].pop()
            assert region is event.region, (region.name, event.region.name)
            attributes |= details(event)
            answer["intervals"].append(
                [location.name, begin, event.time, region.name, attributes]
            )
        elif kind == "ThreadFork":
            open_forks[location].append(event.time)
        elif kind == "ThreadJoin":
            answer["forks"].append([location.name, open_forks[location].pop(), event.time])
        elif kind == "ThreadAcquireLock":
            answer["locks"].append(
                [location.name, event.time, event.lock_id, event.acquisition_order]
            )
        elif kind in ("RmaGet", "RmaPut"):
            remote = event.win.comm.group.members[event.remote]
            transfer = (event.time, kind, event.bytes, remote.name, details(event))
            open_transfers[location, event.matching_id] = transfer
        elif kind == "RmaOpCompleteBlocking":
            begin, *what = open_transfers.pop((location, event.matching_id))
            answer["transfers"].append([location.name, begin, event.time, *what])
    assert not open_transfers
    assert not any(open_regions.values()) and not any(open_forks.values())
answer["counts"] = counts
json.dump(answer, sys.stdout)
