"""The first view of a trace: the window of time, and the expanded nodes of the tree of tracks.

A file can state the window of time for the Perfetto UI, but not the nodes to expand. So the attribute `traceconv.view`
holds both, and `traceconv open` makes an address from it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import numpy as np

from traceconv.families.common.wire_reader import BadWire, Value, scan
from traceconv.families.perfetto._about import json_attribute
from traceconv.families.perfetto._arranged import Arrangement
from traceconv.model.trace import NO_TRACK, Layer, Trace, TrackKind
from traceconv.writers.ids import Identity

VIEW = "traceconv.view"
#: The approximate number of rows of a screen.
_ROWS = 30
#: Nodes of the groups of inputs are numbered from here downwards.
_INPUTS = NO_TRACK - 1
_EXPAND = "dev.perfetto.ExpandTracksByRegex"


def view_of(trace: Trace, ids: list[Identity], shown: Arrangement, times: tuple[int, int] | None) -> str:
    """Return the value of the attribute, as JSON.

    Args:
        trace: the written trace.
        ids: the identities of its tracks.
        shown: the arrangement of its tracks.
        times: the window, ns on the time of the file; None for the whole trace.
    """
    view: dict[str, Any] = {"expand": _expanded(trace, ids, shown)}
    if times:
        view["window_ns"] = times
    return json.dumps(view, ensure_ascii=False)


def _expanded(trace: Trace, ids: list[Identity], shown: Arrangement) -> list[str]:
    """Return the titles of the nodes to expand: the framework with its children, then others while there is room.

    Groups of counters and other nodes without slices stay collapsed. A trace without slices is expanded to its samples,
    or else to its counters, instants or log entries.
    """
    children: defaultdict[int, list[int]] = defaultdict(list)
    tops: dict[int, int] = {}  # by track with events that count, or with such tracks in it
    weights: Counter[tuple[int, bool]] = Counter()
    frameworks = [source.layer is Layer.FRAMEWORK for source in trace.sources]
    tables = (trace.slices, trace.samples, trace.counters, trace.instants, trace.logs)
    counted = next((table for table in tables if len(table.ts)), trace.slices)
    counts = np.bincount(counted.track)
    for index in np.flatnonzero(counts).tolist():
        path = [shown.main(index)]
        while path[-1] not in tops and (above := _above(shown, path[-1])) != NO_TRACK:
            children[above].append(path[-1])
            path.append(above)
        top = tops.get(path[-1], path[-1])
        tops |= dict.fromkeys(path, top)
        track = trace.tracks[index]
        weights[top, frameworks[track.source] and track.kind is TrackKind.THREAD] += int(counts[index])
    names: dict[str, None] = {}
    room = _ROWS
    for top in sorted(
        set(tops.values()), key=lambda top: (-weights[top, True], -weights[top, False], top <= _INPUTS, top)
    ):
        waiting = [top]
        for node in waiting:
            inside = children[node]
            if inside and (not names or len(inside) <= room):
                names[shown.inputs[_INPUTS - node] if node <= _INPUTS else _title(ids[node], shown.name(node))] = None
                room -= len(inside)
                waiting += [index for index in inside if not _is_thread(trace, ids, index)]
    return list(names)


def _above(shown: Arrangement, index: int) -> int:
    """Return the node around one: a track, _INPUTS - n for the group of input n, or NO_TRACK at the top."""
    number = None if index <= _INPUTS else shown.input_of(index)
    if number is not None:
        return _INPUTS - number
    return NO_TRACK if index <= _INPUTS else shown.parent(index)


def _is_thread(trace: Trace, ids: list[Identity], index: int) -> bool:
    """Return whether the UI draws a track as a thread, which is never collapsed."""
    return ids[index].native and trace.tracks[index].kind is not TrackKind.PROCESS


def _title(identity: Identity, name: str) -> str:
    """Return the title of a node in the UI."""
    if not identity.native:
        return name
    return f"{name.rpartition('/')[2] if name.startswith('/') else name or 'Process'} {identity.pid}"


def address_part(head: bytes) -> str:
    """Return the part of the address of the UI behind the trace, so that it opens at the work.

    Args:
        head: the start of the file; for one of another tool, the result only closes the sidebar.
    """
    view = _stated(head)
    part = "&hideSidebar=true"
    match view.get("window_ns"):
        case [int(start), int(end)]:
            part += f"&visStart={start}&visEnd={end}"
    expanded = view.get("expand")
    names = [name for name in expanded if isinstance(name, str)] if isinstance(expanded, list) else []
    if names:
        pattern = f"^({'|'.join(map(_escaped, names))})$"
        commands = [{"id": _EXPAND, "args": [pattern]}]
        part += f"&startupCommands={quote(json.dumps(commands, ensure_ascii=False), safe='')}"
    return part


def _escaped(name: str) -> str:
    """Return a JavaScript pattern that matches a text literally."""
    return re.sub(r"[\\^$.*+?()\[\]{}|/]", r"\\\g<0>", name)


def _stated(head: bytes) -> dict[str, Any]:
    """Return the content of the attribute, {} without it."""
    packets: list[tuple[int, Value]] = []
    with suppress(BadWire):  # the head is cut inside a packet
        scan(head, packets)
    view = json_attribute((packet for _, packet in packets), VIEW)
    return view if isinstance(view, dict) else {}
