"""Writes an OTF2 archive by the Python module `otf2`, as a script on stdin says.

    python3 otf2_write.py FOLDER < script

The script is that of otf2_write.c. The module gives out the numbers of definitions, counts events, and tells the
clock's properties itself, so it does not write what is wrong with those; maps, offsets and markers it cannot write.
"""

import sys

import otf2
from otf2.enums import GroupType, LocationGroupType, LocationType, Paradigm, ParadigmClass
from otf2.enums import ParameterType, Type

MODEL = Paradigm.OPENMP
of = {}
attributes = {}


def define(d, name, n):
    """Defines what a line says, in the registry `d`."""
    if name == "paradigm":
        kind = ParadigmClass(n[1])
        d.paradigm(Paradigm(n[0]), name="paradigm", paradigm_class=kind)
    elif name == "node":
        return d.system_tree_node(f"node {n[0]}", parent=of.get(("node", n[1])))
    elif name == "group":
        return d.location_group(
            f"group {n[0]}",
            location_group_type=LocationGroupType(n[1]),
            system_tree_parent=of["node", n[2]],
            creating_location_group=of.get(("group", n[3])),
        )
    elif name == "location":
        kind = LocationType(n[1])
        return d.location(f"location {n[0]}", type=kind, group=of["group", n[2]])
    elif name == "region":
        return d.region(f"region {n[0]}", paradigm=Paradigm(n[1]))
    elif name == "attribute":
        return d.attribute(f"attribute {n[0]}", type=Type(n[1]))
    elif name == "parameter":
        return d.parameter(f"parameter {n[0]}", parameter_type=ParameterType(n[1]))
    elif name == "member":
        return d.metric_member(f"member {n[0]}", value_type=Type(n[1]))
    elif name == "class":
        return d.metric_class([of["member", member] for member in n[1:]])
    elif name == "members":
        kind, paradigm = GroupType(n[1]), Paradigm(n[2])
        members = [of["location", member] for member in n[3:]]
        return d.group(f"group {n[0]}", group_type=kind, paradigm=paradigm, members=members)
    elif name == "comm":
        return d.comm(f"comm {n[0]}", group=of["members", n[1]])
    elif name == "window":
        return d.rma_win(f"window {n[0]}", comm=of["comm", n[1]])


def write(out, time, name, n):
    """Writes an event."""
    arguments = {"attributes": dict(attributes)}
    attributes.clear()
    if name == "program_begin":
        out.program_begin(time, "program", [], **arguments)
    elif name == "program_end":
        out.program_end(time, 0, **arguments)
    elif name in ("enter", "leave"):
        getattr(out, name)(time, of["region", n[0]], **arguments)
    elif name == "flush":
        out.buffer_flush(time, n[0], **arguments)
    elif name == "fork":
        out.thread_fork(time, MODEL, 2, **arguments)
    elif name == "join":
        out.thread_join(time, MODEL, **arguments)
    elif name in ("team_begin", "team_end"):
        getattr(out, f"thread_{name}")(time, of["comm", n[0]], **arguments)
    elif name in ("create", "switch", "complete"):
        getattr(out, f"thread_task_{name}")(time, of["comm", n[0]], n[1], n[2], **arguments)
    elif name in ("acquire", "release"):
        getattr(out, f"thread_{name}_lock")(time, MODEL, n[0], n[1], **arguments)
    elif name == "get":
        out.rma_get(time, of["window", n[0]], n[1], 64, n[2], **arguments)
    elif name == "done":
        out.rma_op_complete_blocking(time, of["window", n[0]], n[1], **arguments)
    elif name == "send":
        out.mpi_send(time, n[1], of["comm", n[0]], 0, 64, **arguments)
    elif name == "receive":
        out.mpi_recv(time, n[1], of["comm", n[0]], 0, 64, **arguments)
    elif name == "metric":
        out.metric(time, of["class", n[0]], [7], **arguments)
    elif name == "string_parameter":
        out.parameter_string(time, of["parameter", n[0]], "text", **arguments)
    elif name == "number_parameter":
        out.parameter_unsigned_int(time, of["parameter", n[0]], n[1], **arguments)
    else:
        raise ValueError(name)


with otf2.writer.open(sys.argv[1], timer_resolution=1_000_000_000) as trace:
    for line in sys.stdin:
        name, *words = line.split()
        if name == "at":
            location, time, event, *rest = words
            out = trace.event_writer_from_location(of["location", int(location)])
            write(out, int(time), event, [int(word) for word in rest])
            continue
        n = [int(word) for word in words]
        if name == "with":
            value = of["region", n[2]] if n[1] == 14 else n[2]
            attributes[of["attribute", n[0]]] = value
        else:
            of[name, n[0]] = define(trace.definitions, name, n)
