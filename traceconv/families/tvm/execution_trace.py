"""`_tvmdbg_execution_trace.json` of the TVM debugger (0.6 and later): the mean time of each node as a Chrome trace.

    {"displayTimeUnit": "ns", "traceEvents": [
      {"ts": 0.0, "tid": 1, "pid": 1, "name": "data", "ph": "B"},
      {"ts": 0.0, "tid": 1, "pid": 1, "name": "data", "ph": "E"},
      {"ts": 0.0, "tid": 1, "pid": 1, "name": "fused_conv", "ph": "B"},
      {"ts": 3.6617067, "tid": 1, "pid": 1, "name": "fused_conv", "ph": "E"}]}

The times are sums of the means, in microseconds from 0, in the order of the graph: nothing was measured at these
positions. Parameters of the graph are events without length. The table beside it has the same means, rounded, with the
single measurements. pid and tid are always 1 and mean nothing. The order of the keys is that of the Python that wrote.

Source: dump_chrome_trace in python/tvm/contrib/debugger/debug_result.py of tags v0.6 to v0.19, and recordings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from json import JSONDecoder
from typing import Any

from msgspec import Struct

from traceconv.families.chrome import document
from traceconv.families.chrome.event import Event
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.families.tvm.debugger_files import Wanted, find_dump
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.diagnostics import JOINED_ENDS, skipped
from traceconv.model.marks import FormatMarks, SeveralMarks
from traceconv.model.numbers import format_us
from traceconv.model.source_info import Layer
from traceconv.model.trace import SliceId
from traceconv.model.track_table import TrackId

NO_CLOCK = ClockDomain("order of TVM nodes", Zero.UNKNOWN, Run.NONE)

PARAMETER = skipped(
    "tvm.parameter",
    "events of length 0 are parameters and inputs of the graph, which are not executed: left out",
    quiet=True,
)

_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[\s*(?=\{)')
_BETWEEN = re.compile(r"\s*,\s*")
_KEYS = {"ts", "tid", "pid", "name", "ph"}
_LOOKED_AT = 64
_ENOUGH = 8
_TRACK_HELP = (
    "Each slice is as long as the mean time of its node, which the debugger measured by running the node alone. "
    "Positions are sums of the means, in the order of the graph."
)


class _Node(Struct):
    """One node: its first event, and its times in ns."""

    name: str
    start: int
    end: int
    at: int


class _Open(Struct):
    """A start whose end has not come yet."""

    event: Event
    ts: int
    at: int


class _NodeEvents(ChromeEvents):
    """Pairs each start with the end right behind it; anything else is read as in any Chrome trace."""

    def __init__(self, out: Builder, nodes: list[_Node]) -> None:
        super().__init__(out)
        self._nodes = nodes
        self._open: _Open | None = None

    def begin(self, event: Event, ts: int, number: int) -> None:
        """Read B: keep it until its end comes."""
        self.give_up()
        self._open = _Open(event, ts, number)

    def end(self, event: Event, ts: int, number: int) -> None:
        """Read E: the node is whole, if the start before was its own."""
        begun = self._open
        if begun is None or begun.event.name != event.name or ts < begun.ts:
            self.give_up()
            super().end(event, ts, number)
            return
        self._open = None
        self._nodes.append(_Node(event.name, begun.ts, ts, begun.at))

    def give_up(self) -> None:
        """Read a start without its own end as any other."""
        if self._open is not None:
            super().begin(self._open.event, self._open.ts, self._open.at)
            self._open = None

    def new_process(self, pid: int | str) -> TrackId:
        """Return a track for events that are not nodes: nodes all have pid 1."""
        return self.out.tracks.process("events that are no nodes")


@dataclass(frozen=True)
class TvmExecutionTrace(Importer):
    name = "tvm-execution-trace"
    title = "TVM debugger execution trace (_tvmdbg_execution_trace.json)"
    url = "https://tvm.apache.org/docs/v0.16.0/arch/debugger.html"
    versions = "0.6 to 0.19"
    signature = Signature('"traceevents" & "b" & "e"')
    clock = NO_CLOCK
    layer = Layer.FRAMEWORK
    record = "debug_executor.create(lib.get_graph_json(), lib, dev, dump_root='dump').run()"
    skips = (EMPTY_EVENT, PARAMETER)
    dump: str = option(
        "",
        "the dump folder (`dump_root`) or its graph file; without it, the one beside the input is used if it fits.",
    )

    line_up = "It has no clock: use --offset or --anchor."
    becomes = (
        ("node (B and E)", "slice of its mean time, in order of execution"),
        ("graph dump beside the trace", "args (op, inputs, shape, dtype, storage_id), flows from producer to consumer"),
        ("output_tensors.params beside the trace", "args and metadata: names, shapes, dtypes, sizes"),
    )
    lost = (
        "Positions in the file are sums of means: it is not known when a node ran.",
        "Parameters of the graph, which have no length, are left out.",
    )
    marks = FormatMarks(libraries="libtvm", several=SeveralMarks(r"(?:(?! / ).)* / .* \(synthetic\)", means=True))

    def sniff(self, head: Head) -> Match:
        """Return YES when the first events are nodes: B and E of one name in turn, end to end from 0, pid and tid 1."""
        match = _EVENTS.search(head.text)
        if head.text[:1] != b"{" or match is None:
            return Match.no("no JSON object with traceEvents")
        if head.complete and b'"displayTimeUnit"' not in head.text:
            return Match.no("no displayTimeUnit")
        events = _first_events(head.text[match.end() :].decode("utf-8", "replace"))
        nodes = _leading_nodes(events)
        if 2 * nodes < min(_ENOUGH, len(events)) or not nodes:
            return Match.no("events are not nodes as TVM writes them: begin and end in turn, without gaps from 0")
        return Match.yes("nodes end to end from 0, as the TVM debugger writes them")

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        out.clocks.set_default(NO_CLOCK.owned_by(out.info.name))
        reader = ChromeReader(source, out)
        nodes: list[_Node] = []
        events = _NodeEvents(out, nodes)
        for batch in reader.batches():
            events.add(batch)
        document.top_level(reader, out)
        events.give_up()
        events.finish()
        _draw(source, out, self.dump, nodes)
        out.note(
            "durations are means of nodes that were run alone, and positions are sums of them: nothing was timed there"
        )


def _first_events(text: str) -> list[dict[str, Any]]:
    """Return the first events of an array; an even number of them, unless there are only one or none."""
    decode = JSONDecoder().raw_decode
    events: list[dict[str, Any]] = []
    at = 0
    while len(events) < _LOOKED_AT:
        try:
            event, at = decode(text, at)
        except (ValueError, RecursionError):
            break
        events.append(event)
        comma = _BETWEEN.match(text, at)
        if comma is None:
            break
        at = comma.end()
    return events[: len(events) & ~1] if len(events) > 1 else events


def _leading_nodes(events: list[dict[str, Any]]) -> int:
    """Return how many nodes the events begin with: each a start and its end, starting where the one before ends."""
    count, last = 0, 0.0
    for begin, end in zip(events[::2], events[1::2], strict=False):
        if not (_is_node_event(begin) and _is_node_event(end)):
            break
        if (begin["ph"], end["ph"], begin["ts"]) != ("B", "E", last) or begin["name"] != end["name"]:
            break
        count, last = count + 1, end["ts"]
    return count


def _is_node_event(event: object) -> bool:
    return (
        isinstance(event, dict)
        and event.keys() == _KEYS
        and (event["pid"], event["tid"]) == (1, 1)
        and isinstance(event["ts"], float)
    )


def _draw(source: Source, out: Builder, option: str, nodes: list[_Node]) -> None:
    """Draw slices for the nodes that were executed, with what the graph says about them."""
    dump = find_dump(source, out, option, [Wanted(node.name) for node in nodes], parameters=True) if nodes else None
    balance = out.balance
    device = dump.device if dump else ""
    total = nodes[-1].end - nodes[0].start if nodes else 0
    root = out.tracks.add("TVM debugger", description=f"mean times of the nodes add up to {format_us(total)} us")
    track = out.tracks.add(f"{device or 'nodes'} (synthetic)", root, description=_TRACK_HELP)
    slices: dict[int, SliceId] = {}
    for place, node in enumerate(nodes):
        known = dump.nodes[place] if dump else None
        if known.is_parameter if known else node.end == node.start:
            out.skip(PARAMETER, node.at, node.name, 2)
            continue
        args = dump.args_of(known) if dump and known else {}
        row = out.slice(track, node.start, node.end - node.start, node.name, "node", args, node.at)
        balance.written += 1
        balance.merged[JOINED_ENDS] += 1
        if known:
            slices[known.index] = row
    if dump is not None:
        dump.draw_flows(out, slices)
