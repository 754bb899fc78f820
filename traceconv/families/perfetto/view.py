"""The first view of a trace: the window of time, and the expanded nodes of the tree of tracks.

A file can state the window of time for the Perfetto UI, but not the nodes to expand. So the attribute `traceconv.view`
holds both, and `traceconv open` makes an address from it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import numpy as np

from traceconv.families.common.wire_reader import BadWire, Value, scan
from traceconv.families.perfetto._about import json_attribute
from traceconv.families.perfetto._arranged import Arrangement
from traceconv.model.ordering import occurring
from traceconv.model.trace import I32, I64, NO_TRACK, Layer, Trace, TrackKind, topmost
from traceconv.writers.ids import Identities, Identity

VIEW = "traceconv.view"
#: The approximate number of rows of a screen.
_ROWS = 30
_EXPAND = "dev.perfetto.ExpandTracksByRegex"


def view_of(trace: Trace, ids: Identities, shown: Arrangement, times: tuple[int, int] | None) -> str:
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


def _expanded(trace: Trace, ids: Identities, shown: Arrangement) -> list[str]:
    """Return the titles of the nodes to expand: the framework with its children, then others while there is room.

    Groups of counters and other nodes without slices stay collapsed. A trace without slices is expanded to its samples,
    or else to its counters, instants or log entries.
    """
    count, frameworks = len(ids), [source.layer is Layer.FRAMEWORK for source in trace.sources]
    tables = (trace.slices, trace.samples, trace.counters, trace.instants, trace.logs)
    events = np.bincount(next((table for table in tables if len(table.ts)), trace.slices).track, minlength=count)
    counted = np.flatnonzero(events)
    # A node is a track, or the group of an input: the number of the input behind those of all tracks.
    inputs, nodes = shown.inputs_of, np.arange(count + max(shown.inputs, default=-1) + 1, dtype=np.int32)
    above = nodes.copy()
    above[:count] = np.where(shown.inputs_of >= 0, count + inputs, shown.parents)
    above = np.where(above == NO_TRACK, nodes, above)
    first = _first_below(above, shown.mains[counted], counted)
    children = nodes[(first != NO_TRACK) & (above != nodes)]
    children = children[np.argsort(first[children], kind="stable")]
    above_children = above[children]
    child_counts = np.bincount(above_children, minlength=len(nodes))
    is_thread = ids.native & (trace.tracks.column("kind") != TrackKind.PROCESS)
    names: dict[str, None] = {}
    room = _ROWS
    for top in _tops(trace, topmost(above)[shown.mains[counted]], events[counted], counted, frameworks):
        waiting = [top]
        for node in waiting:
            if child_counts[node] and (not names or child_counts[node] <= room):
                inside = children[above_children == node]
                names[shown.inputs[node - count] if node >= count else _title(ids[node], shown.name(node))] = None
                room -= len(inside)
                waiting += inside[~is_thread[inside] & (child_counts[inside] > 0)].tolist()
        if names and room < 1:
            break
    return list(names)


def _first_below(above: I32, nodes: I32, tracks: I64) -> I32:
    """Return for each node the first of the tracks that are drawn in or below it; NO_TRACK for none.

    Args:
        above: the node around each node; one at the top is around itself.
        nodes: the node of each of the tracks.
        tracks: the tracks.
    """
    first = np.full(len(above), NO_TRACK, np.int32)
    around, found = above.data, first.data
    for node, track in zip(nodes.data, tracks.data, strict=True):
        while found[node] == NO_TRACK:
            found[node] = track
            node = around[node]
    return first


def _tops(trace: Trace, top: I32, events: I64, tracks: I64, frameworks: list[bool]) -> list[int]:
    """Return the topmost nodes: those with the most events of a framework on threads first, then the most others.

    Args:
        trace: the trace.
        top: the topmost node of each of the tracks.
        events: their numbers of events.
        tracks: the tracks.
        frameworks: whether each input is of a framework.
    """
    of_framework = np.array(frameworks, bool)[trace.tracks.column("source")[tracks]]
    of_framework &= trace.tracks.column("kind")[tracks] == TrackKind.THREAD
    nodes = np.array(occurring(top), np.int64)
    weights = [
        np.bincount(top, np.where(own, events, 0), len(nodes) and int(nodes[-1]) + 1)[nodes]
        for own in (of_framework, ~of_framework)
    ]
    is_group = nodes >= len(trace.tracks)
    order = np.lexsort((np.where(is_group, -nodes, nodes), is_group, -weights[1], -weights[0]))
    ordered: list[int] = nodes[order].tolist()
    return ordered


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
