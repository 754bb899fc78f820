"""The times of the lines of a DeepSparse log, and the blocks of lines without prefix."""

from __future__ import annotations

from traceconv.families.deepsparse import _lines as lines
from traceconv.families.deepsparse._thread import LINE_NS, Node, Thread
from traceconv.families.logs import log_times
from traceconv.families.logs.log_times import Kind, TimeReader
from traceconv.io.source import Source
from traceconv.model.numbers import whole_or_text


class Stamps:
    """The times that a log collector put before each line."""

    def __init__(self, form: log_times.Form, first: bytes) -> None:
        self.name = form.name
        self.step_ns = log_times.step_ns(form, first)
        self.kind = form.kind
        self._pattern = form.pattern
        self._reader = TimeReader(form)

    def take(self, text: bytes) -> tuple[int | None, bytes]:
        """Return the time at the start of a text, and the rest."""
        match = self._pattern.match(text.lstrip(b' [(<"'))
        if match is None:
            return None, text
        try:
            ts = self._reader.read(log_times.groups_of(match))
        except ValueError:
            return None, text
        return ts, match.string[match.end() :].lstrip(b'])>"').removeprefix(b" ")


def stamps_of(source: Source) -> Stamps | None:
    """Return the form of the times before the prefixes, if nearly all lines of the engine at the start have a time."""
    before, count = [], 0
    for line in source.head().data.splitlines():
        text, records = lines.records(lines.plain(line))
        if records:
            count += 1
            before.append(text.lstrip(b' [(<"'))
    fit = log_times.recognise([text for text in before if text]) if before else None
    if fit is None or fit.form.kind is Kind.SINCE_START or 10 * fit.fits < 9 * count:
        return None
    return Stamps(fit.form, next(text for text in before if fit.form.pattern.search(text)))


class Position:
    """The current position.

    Attributes:
        stamps: the times before the lines; None if there are none.
        now: the time of the current line, ns.
        floor: the time of the last line before which no thread can start, ns.
    """

    def __init__(self, stamps: Stamps | None) -> None:
        self.stamps = stamps
        self.now = self.floor = 0


class Blocks:
    """The blocks that threads are printing in lines without prefix: the graph, a subgraph, a dump, patterns.

    Attributes:
        waiting: the threads with an open block, the first one first.
    """

    def __init__(self, at: Position) -> None:
        self.waiting: list[Thread] = []
        self._at = at

    def enter(self, thread: Thread, block: str) -> None:
        """Open a block of a thread."""
        thread.block = block
        self.waiting.append(thread)

    def leave(self, thread: Thread) -> None:
        """Close the block of a thread, if any."""
        if not thread.block:
            return
        self.waiting.remove(thread)
        if thread.block == "graph":
            thread.open[-1].args["nodes"] = len(thread.nodes)
            thread.close()
        thread.block = ""

    def take(self, thread: Thread, number: int, text: str) -> bool:
        """Add a line to the block of a thread; return whether it belongs to it."""
        node = lines.NODE.match(text)
        if thread.block in ("graph", "subgraph"):
            if node is None and text.strip():
                return False
            if node and thread.block == "graph":
                place = self._at.now + LINE_NS if self._at.stamps is None else self._at.now
                args = {"node": whole_or_text(node["index"]), "op": node["op"], "name": node["name"]}
                thread.nodes.append(Node(place, number, args))
            elif node:
                thread.open[-1].args.setdefault("nodes", []).append(text.removeprefix("Node "))
        ends = {"dump": text == ")", "patterns": text.startswith("=====")}.get(thread.block, not text.strip())
        if thread.block == "dump" and not ends and not text.startswith(" "):
            return False
        if thread.entry is not None and text.strip():
            thread.entry.more.append(text)
        if ends:
            self.leave(thread)
        return True
