"""Reads the log of DeepSparse engines into a builder.

The log has no timestamps, unless whatever collected it put one before each line. Without them positions are invented
so that three things hold: lines keep their order, a call ends where its line stands, and calls of one thread do not
overlap. A line takes LINE_NS. With them a line stands at its timestamp.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec

from traceconv.families.common.idle_lines import BLANK, EMPTY, IdleLines
from traceconv.families.common.numbers import number_of
from traceconv.families.deepsparse import _lines as lines
from traceconv.families.deepsparse._lines import Record
from traceconv.families.logs import log_times
from traceconv.families.logs.log_times import LOCAL_FORMS, Kind, TimeReader
from traceconv.io.patterns import regex
from traceconv.io.source import Line, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.diagnostics import absent, lost
from traceconv.model.times import LIMIT_NS, MS, parse_ns
from traceconv.model.trace import Level, TrackId

NO_CLOCK = ClockDomain("order of the DeepSparse lines", Zero.UNKNOWN, Run.NONE)
#: What a line takes on the synthetic clock.
LINE_NS = 1000

BAD_DURATION = lost(
    "deepsparse.bad_duration",
    "the duration of a compute_func line is no number of milliseconds of 0 or more: its slice was left out",
)
CUT_LINE = lost(
    "deepsparse.cut_line",
    "the text ends inside a line of the engine: the process was killed, or the log was copied too early",
)
UNENDED_PHASE = absent(
    "deepsparse.unended_phase",
    "a phase has no end in the log: its slice was closed at the last line of its thread and is marked `unfinished`",
)

_HELP = (
    "The log has no timestamps: order and the durations of compute_func are real, positions are not. "
    "Each line takes 1 µs, so that a phase is as long as it has lines; calls of one thread do not overlap."
)
_STAMPED_HELP = (
    "Lines stand where a log collector stamped their arrival; a call ends at its line, or where the next call of its "
    "thread begins, if its line arrived only after that."
)
_SYNTHETIC = " (synthetic)"
_CALL = regex(r"ORT NM EP compute_func: *(?P<ms>\S*)(?P<unit> ms)?")
_PHASE = regex(r"== (?P<end>End )?(?P<name>NMExecutionProvider::\w+) ==$")
_TRANSLATE = regex(r"== Translating subgraph (?P<name>\S+) to NM intake graph")
_COMPILE = regex(r"== Compiling (?P<name>\S+) with batch size (?P<batch>\d+) using (?P<count>\d+) (?P<what>\w+)")
_UNSUPPORTED = regex(r"Unsupported (?P<op>\w+) (?P<node>.*?) ?, *(?P<reason>.*)$")
_SUPPORTS = regex(r"== NM Execution Provider supports (?P<percent>[\d.]+)% of the network")
_CREATED = regex(r"Created (?P<count>\d+) compiled subgraphs")
_INPUT = regex(r" +(?P<name>.+) \(required\)$")
_LAUNCHER = regex(r"(\w+) += +(\d+)")
_BUFFER = regex(r"compiler: total buffer size = (\d+)/(\d+)")
_FAILED = "FAILED TO COMPILE"
_NEW_SUBGRAPH = "== Beginning new subgraph =="


class _Open(msgspec.Struct):
    """A slice that has begun."""

    name: str
    category: str
    start: int
    at: int
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class _Entry(msgspec.Struct):
    """A log entry that further lines may belong to."""

    ts: int
    record: Record
    at: int
    more: list[str] = msgspec.field(default_factory=list)


class _Node(msgspec.Struct):
    """A node of the whole graph, and where its line stands."""

    ts: int
    at: int
    args: dict[str, Any]


class _Call(msgspec.Struct):
    """A run of a subgraph, in ns; `end` is where its line stands."""

    end: int
    dur: int
    args: dict[str, Any]
    at: int


class _Thread(msgspec.Struct):
    """A thread of an engine.

    Attributes:
        end: where its last line stands.
        open: the phases that have begun, outermost first.
        block: what the unprefixed lines that follow are: "graph", "subgraph", "dump", "patterns" or nothing.
        nodes: those of the last whole graph that was printed.
        calls: the last ones, each of which overlaps the next by its stamp.
    """

    track: TrackId
    end: int
    open: list[_Open] = msgspec.field(default_factory=list)
    entry: _Entry | None = None
    block: str = ""
    nodes: list[_Node] = msgspec.field(default_factory=list)
    calls: list[_Call] = msgspec.field(default_factory=list)


class _Engine(msgspec.Struct):
    """What one banner stands for: a process."""

    process: TrackId
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    percents: list[str] = msgspec.field(default_factory=list)
    unsupported: list[str] = msgspec.field(default_factory=list)
    calls: int = 0
    total_ns: int = 0
    threads: dict[str, _Thread] = msgspec.field(default_factory=dict)
    output: _Thread | None = None

    def describe(self) -> dict[str, Any]:
        """For metadata."""
        found = dict(self.facts, compute_func_calls=self.calls, compute_func_total_ns=self.total_ns)
        if self.percents:
            found["supported_percent"] = [_number(percent) for percent in self.percents]
        if self.unsupported:
            found["unsupported"] = self.unsupported
        return found


class LogReader:
    """Reads one log.

    Args:
        out: where the events go.
        source: the log.
    """

    def __init__(self, out: Builder, source: Source) -> None:
        self._out = out
        self._source = source
        self._stamps = _stamps(source)
        self._now = 0
        self._floor = 0
        self._engines: list[_Engine] = []
        self._crash: _Entry | None = None
        self._owner: _Thread | None = None
        self._waiting: list[_Thread] = []
        self._messages = 0
        self._lines = IdleLines(out)

    @property
    def found(self) -> bool:
        """Whether the log holds anything of an engine."""
        return self._messages > 0 or any(engine.facts for engine in self._engines)

    def read(self) -> None:
        """The whole log."""
        self._out.set_clock(self._clock())
        for line in self._lines.read(self._source, keep_ends=True):
            self._line(line, self._lines.after)
        self._finish()

    def _clock(self) -> ClockDomain:
        if self._stamps is None:
            return NO_CLOCK.owned_by(self._out.info.name)
        if self._stamps.kind is Kind.UNIX:
            return replace(REALTIME, resolution_ns=self._stamps.step_ns, exact_durations=True)
        name = f"arrival of the lines ({self._stamps.kind.value})"
        local = LOCAL_FORMS.get(self._stamps.kind)
        return ClockDomain(name, Zero.UNKNOWN, Run.WALL, self._stamps.step_ns, exact_durations=True, local=local)

    # -- lines ------------------------------------------------------------------------------------------------

    def _line(self, line: Line, after: bytes) -> None:
        text = lines.plain(line.text)
        before, records = lines.records(text)
        if self._stamps is not None:
            before = self._take_stamp(before)
        if not records:
            self._unprefixed(line, before if self._stamps else text, after)
            return
        self._crash = None
        if lines.starts_engine(text) and lines.BANNER.match(lines.plain(after)) and self._engine().facts:
            self._new_engine()
        for record in records:
            if before.strip():
                record.args["before"] = lines.text_of(before.strip())
            self._record(line.number, record, ended=line.text.endswith(b"\n"))
        self._out.balance.written += 1

    def _take_stamp(self, before: bytes) -> bytes:
        """Move to the time that stands before a line; the rest of what stands there."""
        assert self._stamps is not None
        ts, rest = self._stamps.take(before)
        self._now = self._now if ts is None else ts
        return rest

    def _record(self, number: int, record: Record, ended: bool) -> None:
        self._messages += 1
        thread = self._thread(record.thread)
        self._leave_block(thread)
        self._flush(thread)
        call = _CALL.match(record.text)
        dur = self._call_ns(number, call, ended) if call else None
        self._place(thread, dur or 0)
        if call is None:
            self._floor = self._now
        thread.entry = _Entry(self._now, record, number)
        self._owner = thread
        if dur is not None:
            self._call(thread, number, dur, call["ms"] if call else "")
        elif call is None:
            self._event(thread, number, record.text)

    def _place(self, thread: _Thread, dur: int = 0) -> None:
        """Move to where the next line of a thread stands."""
        if self._stamps is None:
            self._now = max(self._now + LINE_NS, thread.end + dur)
        thread.end = self._now

    def _unprefixed(self, line: Line, text: bytes, after: bytes) -> None:
        """A line of the engine that goes on with a message, or something that the program printed."""
        banner = lines.BANNER.match(text)
        if banner:
            self._banner(line.number, text, banner, crash=bool(lines.CRASH_BEGIN.match(lines.plain(after))))
            return
        shown = lines.text_of(text).replace("\u200b", "")
        if self._crash is not None and lines.CRASH_LINE.match(text):
            self._go_on(self._crash, shown)
            return
        self._crash = None
        thread = self._waiting[0] if self._waiting else None
        graph = lines.GRAPH.match(shown)
        if graph and self._owner is not None:
            self._graph(self._owner, line.number, shown, graph["name"])
            self._out.balance.written += 1
        elif thread is not None and self._in_block(thread, line.number, shown):
            self._place(thread)
            self._floor = self._now
            self._out.balance.merged["lines of the message before them"] += 1
        elif shown.strip():
            self._program_line(line, shown)
        else:
            self._lines.idle(self._empty, BLANK if thread is None else EMPTY)

    def _empty(self, count: int) -> None:
        self._now += count * LINE_NS if self._stamps is None else 0
        self._out.balance.merged["empty lines"] += count

    def _program_line(self, line: Line, shown: str) -> None:
        if shown.startswith("[") and " >" not in shown and not line.text.endswith(b"\n"):
            self._out.problem(CUT_LINE, line.number, repr(shown[:60]))
        thread = self._output()
        self._place(thread)
        self._out.log(thread.track, self._now, shown, lines.level_of(shown), "", b"", line.number)
        self._out.balance.written += 1
        if _FAILED in shown:
            self._out.instant(thread.track, self._now, _FAILED, "error", b"", line.number)

    def _go_on(self, entry: _Entry, text: str) -> None:
        entry.more.append(text)
        self._out.balance.merged["lines of the message before them"] += 1

    # -- blocks of lines without prefix -----------------------------------------------------------------------

    def _graph(self, thread: _Thread, number: int, text: str, name: str) -> None:
        """The begin of the whole graph, which has an entry of its own."""
        self._leave_block(thread)
        self._flush(thread)
        self._place(thread)
        record = Record("", Level.DEBUG, "", text, {})
        thread.entry = _Entry(self._now, record, number)
        thread.nodes = []
        thread.open.append(_Open(f"graph {name}", "graph", self._now, number))
        self._enter_block(thread, "graph")

    def _enter_block(self, thread: _Thread, block: str) -> None:
        thread.block = block
        self._waiting.append(thread)

    def _leave_block(self, thread: _Thread) -> None:
        if not thread.block:
            return
        self._waiting.remove(thread)
        if thread.block == "graph":
            thread.open[-1].args["nodes"] = len(thread.nodes)
            self._close(thread)
        thread.block = ""

    def _in_block(self, thread: _Thread, number: int, text: str) -> bool:
        """Whether a line belongs to what a thread is printing; if so it is taken there."""
        node = lines.NODE.match(text)
        if thread.block in ("graph", "subgraph"):
            if node is None and text.strip():
                return False
            if node and thread.block == "graph":
                place = self._now + LINE_NS if self._stamps is None else self._now
                args = {"node": int(node["index"][:18]), "op": node["op"], "name": node["name"]}
                thread.nodes.append(_Node(place, number, args))
            elif node:
                thread.open[-1].args.setdefault("nodes", []).append(text.removeprefix("Node "))
        ends = {"dump": text == ")", "patterns": text.startswith("=====")}.get(thread.block, not text.strip())
        if thread.block == "dump" and not ends and not text.startswith(" "):
            return False
        if thread.entry is not None and text.strip():
            thread.entry.more.append(text)
        if ends:
            self._leave_block(thread)
        return True

    # -- what messages mean -----------------------------------------------------------------------------------

    def _call_ns(self, number: int, call: re.Match[str], ended: bool) -> int | None:
        """The duration of a call; None if it is unusable."""
        code = BAD_DURATION if call["unit"] or ended else CUT_LINE
        try:
            dur = parse_ns(call["ms"].encode(), MS) if call["unit"] else -1
        except ValueError:
            dur = -1
        if dur < 0 or self._now + dur > LIMIT_NS // 2:
            self._out.problem(code, number, repr(call[0]))
            return None
        return dur

    def _call(self, thread: _Thread, number: int, dur: int, ms: str) -> None:
        engine = self._engine()
        engine.calls += 1
        engine.total_ns += dur
        if thread.calls and thread.calls[-1].end <= self._now - dur:
            self._write_calls(thread)
        thread.calls.append(_Call(self._now, dur, {"dur_ms": _number(ms)}, number))

    def _write_calls(self, thread: _Thread) -> None:
        """Draw the calls that are waiting: a line that arrived late was printed before the next call began."""
        latest = thread.calls[-1].end if thread.calls else 0
        for call in reversed(thread.calls):
            end = min(call.end, latest)
            latest = end - call.dur
            self._out.slice(thread.track, latest, call.dur, "compute_func", "compute_func", call.args, call.at)
        thread.calls = []

    def _event(self, thread: _Thread, number: int, text: str) -> None:
        """What a message begins, ends or states."""
        phase = _PHASE.match(text)
        if phase:
            self._phase(thread, number, phase["name"], ended=bool(phase["end"]))
        elif text.startswith(_NEW_SUBGRAPH):
            self._close_down_to(thread, "subgraph")
            thread.open.append(_Open("subgraph", "subgraph", self._now, number))
        elif text.startswith("( L1 graph"):
            self._enter_block(thread, "dump")
        elif text.startswith("Printing subgraph:"):
            if thread.open:
                self._enter_block(thread, "subgraph")
        elif text.startswith("== PATTERNS MATCHED =="):
            self._enter_block(thread, "patterns")
        elif _FAILED in text:
            self._out.instant(thread.track, self._now, _FAILED, "error", b"", number)
        elif not self._step(thread, number, text):
            self._statement(thread, number, text)

    def _phase(self, thread: _Thread, number: int, name: str, ended: bool) -> None:
        if not ended:
            self._close_down_to(thread, "phase")
            thread.open.append(_Open(name, "phase", self._now, number))
        elif any(one.name == name for one in thread.open):
            while thread.open[-1].name != name:
                self._close(thread)
            self._close(thread)
        else:
            self._out.instant(thread.track, self._now, f"End {name}", "phase", b"", number)

    def _step(self, thread: _Thread, number: int, text: str) -> bool:
        """The steps of the compilation of a subgraph."""
        translate, compile_ = _TRANSLATE.match(text), _COMPILE.match(text)
        if translate:
            self._close_down_to(thread, "translate")
            if thread.open and thread.open[-1].category == "subgraph":
                thread.open[-1].name = f"subgraph {translate['name']}"
                self._of_subgraph(thread, translate["name"])
            thread.open.append(_Open(f"translate {translate['name']}", "translate", self._now, number))
        elif compile_:
            self._close_down_to(thread, "translate")
            args = {"batch_size": int(compile_["batch"][:18]), compile_["what"]: int(compile_["count"][:18])}
            thread.open.append(_Open(f"compile {compile_['name']}", "compile", self._now, number, args))
        return bool(translate or compile_)

    def _statement(self, thread: _Thread, number: int, text: str) -> None:
        """Facts about what is open, about the graph, or about the engine."""
        unsupported, supports, created = _UNSUPPORTED.match(text), _SUPPORTS.match(text), _CREATED.match(text)
        inputs = _INPUT.match(text)
        inner = thread.open[-1] if thread.open else None
        if unsupported:
            self._unsupported(thread, number, unsupported)
        elif supports:
            self._supports(thread, number, supports["percent"])
        elif created:
            self._close_down_to(thread, "subgraph")
            args = {"subgraphs": int(created["count"][:18])}
            self._out.instant(thread.track, self._now, text.rstrip("."), "compile", args, number)
        elif inner is not None and inner.category == "subgraph" and inputs:
            inner.args.setdefault("inputs", []).append(inputs["name"])
        elif inner is not None and inner.category == "subgraph" and "subgraph was empty" in text:
            inner.name = "subgraph (empty, ignored)"
        elif inner is not None and inner.category == "compile":
            self._compile_facts(inner, text)

    def _compile_facts(self, inner: _Open, text: str) -> None:
        buffer = _BUFFER.match(text)
        if text.startswith("Kernel launcher params:"):
            inner.args |= {key: int(value[:18]) for key, value in _LAUNCHER.findall(text)}
        elif buffer:
            inner.args |= {"total_buffer_size": int(buffer[1][:18]), "total_buffer_size_of": int(buffer[2][:18])}

    def _unsupported(self, thread: _Thread, number: int, found: re.Match[str]) -> None:
        op, node, reason = found["op"], found["node"], found["reason"]
        args = {"op": op, "node": node, "reason": reason}
        same = [one for one in thread.nodes if (one.args["op"], one.args["name"]) == (op, node)]
        if len(same) == 1:
            same[0].args["unsupported"] = reason
            args["node_index"] = same[0].args["node"]
        self._engine().unsupported.append(f"{op} {node}".strip() + f": {reason}")
        self._out.instant(thread.track, self._now, f"unsupported {op}", "unsupported", args, number)

    def _of_subgraph(self, thread: _Thread, name: str) -> None:
        """Note on the nodes of the whole graph that they are in this subgraph."""
        inside = {node.partition(":")[0] for node in thread.open[-1].args.get("nodes", ())}
        for node in thread.nodes:
            if str(node.args["node"]) in inside:
                node.args["subgraph"] = name

    def _supports(self, thread: _Thread, number: int, percent: str) -> None:
        """The share of supported nodes; the rest of the graph runs in ONNX Runtime."""
        args: dict[str, Any] = {"supported_percent": _number(percent)}
        if thread.nodes:
            rest = [node.args for node in thread.nodes if "subgraph" not in node.args]
            args["nodes"] = len(thread.nodes)
            args["onnxruntime_nodes"] = [f"{node['node']}: {node['op']} {node['name']}".rstrip() for node in rest]
            for node in rest:
                node["runs_in"] = "ONNX Runtime"
        self._engine().percents.append(percent)
        self._out.instant(thread.track, self._now, f"supports {percent}% of the network", "supported", args, number)
        self._write_nodes(thread)

    def _write_nodes(self, thread: _Thread) -> None:
        for node in thread.nodes:
            name = f"{node.args['op']} {node.args['name']}".rstrip()
            if self._stamps is None:
                self._out.slice(thread.track, node.ts, LINE_NS, name, "node", node.args, node.at)
            else:
                self._out.instant(thread.track, node.ts, name, "node", node.args, node.at)
        thread.nodes = []

    # -- slices that are open ---------------------------------------------------------------------------------

    def _close(self, thread: _Thread, unfinished: bool = False) -> None:
        """End the innermost open slice of a thread."""
        done = thread.open.pop()
        if unfinished:
            self._out.problem(UNENDED_PHASE, done.at, done.name)
            done.args["unfinished"] = True
        dur = max(thread.end - done.start, 0)
        self._out.slice(thread.track, done.start, dur, done.name, done.category, done.args, done.at)

    def _close_down_to(self, thread: _Thread, category: str) -> None:
        """End what cannot enclose the next slice of a category."""
        order = ["phase", "subgraph", "translate", "compile", "graph"]
        while thread.open and order.index(thread.open[-1].category) >= order.index(category):
            self._close(thread, unfinished=thread.open[-1].category == "phase")

    def _flush(self, thread: _Thread) -> None:
        """Write the log entry that is complete now."""
        entry, thread.entry = thread.entry, None
        if entry is not None:
            self._write_entry(thread.track, entry)

    def _write_entry(self, track: TrackId, entry: _Entry) -> None:
        record = entry.record
        text = "\n".join([record.text, *entry.more])
        self._out.log(track, entry.ts, text, record.level, record.source, record.args, entry.at)

    # -- engines and threads ----------------------------------------------------------------------------------

    def _banner(self, number: int, text: bytes, banner: re.Match[bytes], crash: bool) -> None:
        if self._engine().facts and not crash:
            self._new_engine()
        engine = self._engine()
        engine.facts = engine.facts or lines.banner_facts(banner)
        thread = self._output()
        self._place(thread)
        self._floor = self._now
        level = Level.FATAL if crash else Level.INFO
        record = Record("", level, "", lines.text_of(text), {})
        self._out.balance.written += 1
        if crash:
            self._flush(thread)
            self._crash = thread.entry = _Entry(self._now, record, number)
            self._out.instant(thread.track, self._now, "crash report", "error", b"", number)
        else:
            self._write_entry(thread.track, _Entry(self._now, record, number))

    def _engine(self) -> _Engine:
        return self._engines[-1] if self._engines else self._new_engine()

    def _new_engine(self) -> _Engine:
        if self._engines:
            self._end_engine(self._engines[-1])
        process = self._out.process("DeepSparse", description=_HELP if self._stamps is None else _STAMPED_HELP)
        self._engines.append(_Engine(process))
        self._owner = None
        return self._engines[-1]

    def _end_engine(self, engine: _Engine) -> None:
        every = [*engine.threads.values(), *([engine.output] if engine.output else [])]
        for thread in every:
            self._leave_block(thread)
            self._flush(thread)
            self._write_calls(thread)
            while thread.open:
                self._close(thread, unfinished=True)
            self._write_nodes(thread)
        self._crash = None

    def _thread(self, handle: str) -> _Thread:
        engine = self._engine()
        if handle not in engine.threads:
            name = f"thread {len(engine.threads) + 1} ({handle})"
            engine.threads[handle] = self._new_thread(name)
        return engine.threads[handle]

    def _output(self) -> _Thread:
        engine = self._engine()
        if engine.output is None:
            engine.output = self._new_thread("other output")
            self._out.track_info(engine.output.track).rank = 10**6
        return engine.output

    def _new_thread(self, name: str) -> _Thread:
        synthetic = self._stamps is None
        track = self._out.thread(self._engine().process, None, name + _SYNTHETIC if synthetic else name)
        self._out.track_info(track).description = _HELP if synthetic else _STAMPED_HELP
        return _Thread(track, self._floor)

    # -- the end ----------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        if self._engines:
            self._end_engine(self._engines[-1])
        for engine in self._engines:
            track = self._out.track_info(engine.process)
            track.name = f"DeepSparse {engine.facts.get('version', '')}".strip()
            track.labels = tuple(dict.fromkeys(f"{percent}% supported" for percent in engine.percents))
        self._out.metadata("deepsparse_engines", [engine.describe() for engine in self._engines])
        self._notes()

    def _notes(self) -> None:
        note = self._out.note
        if self._stamps is None:
            note(_HELP)
        else:
            note(f"{_STAMPED_HELP} The stamps are read as {self._stamps.name}: {self._stamps.kind.value}.")
        if len(self._engines) > 1:
            note(
                f"{len(self._engines)} banners in one log: each is a process; lines of processes that wrote at the "
                "same time cannot be told apart"
            )
        if not self._messages:
            note("the log holds no message of the engine: record with NM_LOGGING_LEVEL=diagnose")
        elif not any(engine.calls for engine in self._engines):
            note(
                "the log holds no compute_func line: releases from 0.10 on print none; their times per layer come from "
                "deepsparse.debug_analysis, whose JSON this importer reads too"
            )


class _Stamps:
    """Times that a collector of logs put before each line."""

    def __init__(self, form: log_times.Form, first: bytes) -> None:
        self.name = form.name
        self.step_ns = log_times.step_ns(form, first)
        self.kind = form.kind
        self._pattern = form.pattern
        self._reader = TimeReader(form)

    def take(self, text: bytes) -> tuple[int | None, bytes]:
        """The time at the begin of a text, and the rest."""
        match = self._pattern.match(text.lstrip(b' [(<"'))
        if match is None:
            return None, text
        try:
            ts = self._reader.read(log_times.groups_of(match))
        except ValueError:
            return None, text
        return ts, match.string[match.end() :].lstrip(b'])>"').removeprefix(b" ")


def _stamps(source: Source) -> _Stamps | None:
    """The form of the times before the prefixes, if nearly all lines of the engine at the begin have one."""
    before, count = [], 0
    for line in source.head().data.splitlines():
        text, records = lines.records(lines.plain(line))
        if records:
            count += 1
            before.append(text.lstrip(b' [(<"'))
    fit = log_times.recognise([text for text in before if text]) if before else None
    if fit is None or fit.form.kind is Kind.SINCE_START or 10 * fit.fits < 9 * count:
        return None
    return _Stamps(fit.form, next(text for text in before if fit.form.pattern.search(text)))


def _number(text: str) -> int | float | str:
    """A number as the log prints it; the text if it is none that JSON can hold."""
    number = number_of(text)
    return text if number is None else number
