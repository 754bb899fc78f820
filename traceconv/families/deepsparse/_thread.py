"""A thread of a DeepSparse engine: its open slices, and the writing of slices and log entries."""

from __future__ import annotations

from typing import Any

import msgspec

from traceconv.families.deepsparse._lines import Record
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import absent
from traceconv.model.trace import TrackId

#: The duration of a line on the synthetic clock, ns.
LINE_NS = 1000

UNENDED_PHASE = absent(
    "deepsparse.unended_phase",
    "a phase has no end in the log: its slice was closed at the last line of its thread and is marked `unfinished`",
)


class Open(msgspec.Struct):
    """An open slice."""

    name: str
    category: str
    start: int
    at: int
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class Entry(msgspec.Struct):
    """A log entry that may get further lines."""

    ts: int
    record: Record
    at: int
    more: list[str] = msgspec.field(default_factory=list)


class Node(msgspec.Struct):
    """A node of the whole graph, and the time of its line."""

    ts: int
    at: int
    args: dict[str, Any]


class Call(msgspec.Struct):
    """A run of a subgraph, in ns; `end` is the time of its line."""

    end: int
    dur: int
    args: dict[str, Any]
    at: int


class Thread(msgspec.Struct):
    """A thread of an engine.

    Attributes:
        end: the time of its last line, ns.
        synthetic: whether lines have no times: then slices of several lines have no recorded duration.
        open: the open phases, outermost first.
        block: the kind of the following lines without prefix: "graph", "subgraph", "dump", "patterns" or "".
        nodes: the nodes of the last whole graph printed.
        calls: the last calls, each of which overlaps the next one by its timestamp.
    """

    out: Builder
    track: TrackId
    end: int
    synthetic: bool
    open: list[Open] = msgspec.field(default_factory=list)
    entry: Entry | None = None
    block: str = ""
    nodes: list[Node] = msgspec.field(default_factory=list)
    calls: list[Call] = msgspec.field(default_factory=list)

    def close(self, unfinished: bool = False) -> None:
        """End the innermost open slice of a thread."""
        done = self.open.pop()
        if unfinished:
            self.out.problem(UNENDED_PHASE, done.at, done.name)
            done.args["unfinished"] = True
        if self.synthetic:
            done.args["no_duration"] = True
        dur = max(self.end - done.start, 0)
        self.out.slice(self.track, done.start, dur, done.name, done.category, done.args, done.at)

    def close_down_to(self, category: str) -> None:
        """End open slices that cannot contain the next slice of a category."""
        order = ["phase", "subgraph", "translate", "compile", "graph"]
        while self.open and order.index(self.open[-1].category) >= order.index(category):
            self.close(unfinished=self.open[-1].category == "phase")

    def flush(self) -> None:
        """Write the log entry that is complete now."""
        entry, self.entry = self.entry, None
        if entry is not None:
            self.write_entry(entry)

    def write_entry(self, entry: Entry) -> None:
        """Write a log entry."""
        record = entry.record
        text = "\n".join([record.text, *entry.more])
        self.out.log(self.track, entry.ts, text, record.level, record.source, record.args, entry.at)

    def write_calls(self) -> None:
        """Draw the waiting calls: a line that arrived late was printed before the next call started."""
        latest = self.calls[-1].end if self.calls else 0
        for call in reversed(self.calls):
            end = min(call.end, latest)
            latest = end - call.dur
            self.out.slice(self.track, latest, call.dur, "compute_func", "compute_func", call.args, call.at)
        self.calls = []

    def write_nodes(self) -> None:
        """Draw the nodes of the last graph; with synthetic times, each as long as a line."""
        for node in self.nodes:
            name = f"{node.args['op']} {node.args['name']}".rstrip()
            if self.synthetic:
                args = node.args | {"no_duration": True}
                self.out.slice(self.track, node.ts, LINE_NS, name, "node", args, node.at)
            else:
                self.out.instant(self.track, node.ts, name, "node", node.args, node.at)
        self.nodes = []
