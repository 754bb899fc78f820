"""The log of the engine of DeepSparse (Neural Magic).

    DeepSparse Engine, Copyright 2021-present / Neuralmagic, Inc. version: 0.3.0 (b1569ff6) (release) (optimized)
    [nm_ort 7f5a271fab80 >DIAGNOSE< operator() /b/nm_execution_provider.cc:110] == NMExecutionProvider::GetCapability ==
    Printing GraphViewer mix:
    Node 0: Conv stem/conv
    [nm_ort 7f5a271fab80 >DIAGNOSE< operator() /b/nm_execution_provider.cc:294] ORT NM EP compute_func: 0.488 ms

A compute_func line is printed at the end of one run of one compiled subgraph, which it does not name; up to 0.9 only.
What is not supported runs in ONNX Runtime and prints nothing, so that the sum is less than the time of an inference.
On a terminal, the brackets contain escape sequences (0.3.0). Threads are pthread handles, not ids of the system.

The log has no timestamps, unless a log collector put one before each line. Without them, times are synthetic: lines
keep their order and take LINE_NS each, a call ends at its line, and calls of one thread do not overlap.

Source: the output of 0.3.0, 0.8.0, 1.0.2 and 1.8.0, and from the open Python package
(https://github.com/neuralmagic/deepsparse).
"""

from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from traceconv.families.common.ansi import plain as without_colours
from traceconv.families.common.text_lines import TextLines
from traceconv.families.logs import log_times
from traceconv.families.logs.log_times import LOCAL_FORMS, Kind, TimeReader
from traceconv.io.shown import Counted
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.diagnostics import EMPTY_LINES, absent, lost
from traceconv.model.numbers import LIMIT_NS, MS, number_of, parse_ns, whole_or_text
from traceconv.model.trace import Level
from traceconv.model.track_table import TrackId

MESSAGE_LINES = Counted("line of the message before it", "lines of the message before them")

NO_CLOCK = ClockDomain("order of the DeepSparse lines", Zero.UNKNOWN, Run.NONE)
#: The duration of a line on the synthetic clock, ns.
LINE_NS = 1000
BAD_DURATION = lost(
    "deepsparse.bad_duration",
    "the duration of a compute_func line is not a number of ms, 0 or more: its slice was left out",
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

_PREFIX = re.compile(
    rb"\[(?:(?P<module>[a-z_]+) )?(?P<thread>[0-9a-f]{6,16}) >"
    rb"(?P<level>FATAL|ERROR|WARN|INFO|DIAGNOSE|DEBUG_VERBOSE|DEBUG)<"
    rb" +(?P<function>\S+) (?P<file>\S+):(?P<line>\d+)\] ?"
)
# DeepSparse, Copyright 2021-present / Neuralmagic, Inc. version: 1.8.0 COMMUNITY | (e3778e93) (release) (optimized) ...
BANNER = re.compile(
    rb"(?:DeepSparse(?: Engine)?, Copyright|NeuralMagic WAND version).*?"
    rb"(?:version:? *(?P<version>\d[\w.+-]*)(?P<rest>.*))?$"
)
#: What, if a banner follows, starts a process (1.x).
_STARTS_ENGINE = b"/deepsparse_engine.cpp:"
#: The lines of a crash report below its banner.
_CRASH_BEGIN = re.compile(rb"Date: \d\d-\d\d-\d{4} @ ")
_CRASH_LINE = re.compile(rb"\s*$|[A-Z][\w /,]*: |Assertion at |Backtrace:| *\d+# |Please email ")
_GRAPH = re.compile(r"Printing GraphViewer (?P<name>.*):$")
_NODE = re.compile(r"Node (?P<index>\d+): (?P<op>\S+) ?(?P<name>.*)$")
_LEVELS = {
    b"FATAL": Level.FATAL,
    b"ERROR": Level.ERROR,
    b"WARN": Level.WARNING,
    b"INFO": Level.INFO,
    b"DIAGNOSE": Level.DEBUG,
    b"DEBUG": Level.DEBUG,
    b"DEBUG_VERBOSE": Level.VERBOSE,
}
_ENTITIES = {b"&gt;": b">", b"&lt;": b"<", b"&quot;": b'"', b"&amp;": b"&"}
_GRAVE = re.compile(
    r"\W*(?:(?P<warning>warn(?:ing)?\b|\[W)|error\b|fatal\b|traceback\b|terminate called)", re.IGNORECASE
)

_CALL = re.compile(r"ORT NM EP compute_func: *(?P<ms>\S*)(?P<unit> ms)?")
_PHASE = re.compile(r"== (?P<end>End )?(?P<name>NMExecutionProvider::\w+) ==$")
_TRANSLATE = re.compile(r"== Translating subgraph (?P<name>\S+) to NM intake graph")
_COMPILE = re.compile(r"== Compiling (?P<name>\S+) with batch size (?P<batch>\d+) using (?P<count>\d+) (?P<what>\w+)")
_UNSUPPORTED = re.compile(r"Unsupported (?P<op>\w+) (?P<node>.*?) ?, *(?P<reason>.*)$")
_SUPPORTS = re.compile(r"== NM Execution Provider supports (?P<percent>[\d.]+)% of the network")
_CREATED = re.compile(r"Created (?P<count>\d+) compiled subgraphs")
_INPUT = re.compile(r" ++(?P<name>.+) \(required\)$")
_LAUNCHER = re.compile(r"(?<!\w)(\w++) ++= ++([0-9]+)")
_BUFFER = re.compile(r"compiler: total buffer size = (\d+)/(\d+)")
_FAILED = "FAILED TO COMPILE"
_PHASES = ["phase", "subgraph", "translate", "compile", "graph"]  # outer ones first


class _Record(NamedTuple):
    """One message of the engine: the thread is a pthread handle in hex; args are module, function and file."""

    thread: str
    level: Level
    source: str
    text: str
    args: dict[str, Any]


def plain(line: bytes) -> bytes:
    """Return a line without line end, colours, and HTML entities of a pasted log."""
    line = without_colours(line.rstrip(b"\r\n"))
    if b"&gt;" in line and b"&lt; " in line:
        for entity, character in _ENTITIES.items():
            line = line.replace(entity, character)
    return line


def records(line: bytes) -> tuple[bytes, list[_Record]]:
    """Return the text before the first prefix, and the messages of a line, which may hold those of two threads."""
    if b" >" not in line or b"< " not in line:
        return line, []
    prefixes = list(_PREFIX.finditer(line))
    if not prefixes:
        return line, []
    ends = [prefix.start() for prefix in prefixes[1:]] + [len(line)]
    messages = [_record(prefix, line[prefix.end() : end]) for prefix, end in zip(prefixes, ends, strict=True)]
    return line[: prefixes[0].start()], messages


def _record(prefix: re.Match[bytes], text: bytes) -> _Record:
    file, number = _text_of(prefix["file"]), prefix["line"].decode()
    args = {"function": _text_of(prefix["function"]), "file": file}
    if prefix["module"]:
        args["module"] = prefix["module"].decode()
    source = f"{file.rpartition('/')[2]}:{number}"
    return _Record(prefix["thread"].decode(), _LEVELS[prefix["level"]], source, _text_of(text), args)


def _text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _level_of(text: str) -> Level:
    """Return the probable level of a line of the program."""
    grave = _GRAVE.match(text)
    if grave is None:
        return Level.INFO
    return Level.WARNING if grave["warning"] else Level.ERROR


def _banner_info(match: re.Match[bytes]) -> dict[str, Any]:
    info: dict[str, Any] = {}
    if match["version"]:
        info["version"] = match["version"].decode()
    rest = _text_of(match["rest"] or b"")
    commit = re.search(r"\(([0-9a-f]{6,40})\)", rest)
    if commit:
        info["commit"] = commit[1]
    if "COMMUNITY" in rest:
        info["edition"] = "COMMUNITY"
    return info | dict(re.findall(r"(system|binary)=([\w.]+)", rest))


def number_in(text: str) -> int | float | str:
    """Return a number of the log; its text if JSON cannot hold it."""
    number = number_of(text)
    return text if number is None else number


class _Stamps:
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


def _stamps_of(source: Source) -> _Stamps | None:
    """Return the form of the times before the prefixes, if nearly all lines of the engine at the start have a time."""
    before, count = [], 0
    for line in source.head().data.splitlines():
        text, messages = records(plain(line))
        if messages:
            count += 1
            before.append(text.lstrip(b' [(<"'))
    fit = log_times.recognise([text for text in before if text]) if before else None
    if fit is None or fit.form.kind is Kind.SINCE_START or 10 * fit.fits < 9 * count:
        return None
    return _Stamps(fit.form, next(text for text in before if fit.form.pattern.search(text)))


# -- threads and engines -----------------------------------------------------------------------------------------------


class _Open(msgspec.Struct):
    name: str
    category: str
    start: int
    at: int
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class _Entry(msgspec.Struct):
    """A log entry that may get further lines."""

    ts: int
    record: _Record
    at: int
    more: list[str] = msgspec.field(default_factory=list)


class _Node(msgspec.Struct):
    """A node of the whole graph, and the time of its line."""

    ts: int
    at: int
    args: dict[str, Any]


class _Call(NamedTuple):
    """A run of a subgraph, in ns; `end` is the time of its line."""

    end: int
    dur: int
    args: dict[str, Any]
    at: int


class _Thread(msgspec.Struct):
    out: Builder
    track: TrackId
    end: int  # the time of its last line, ns
    synthetic: bool  # whether lines have no times: then slices of several lines have no recorded duration
    open: list[_Open] = msgspec.field(default_factory=list)  # the open phases, outermost first
    entry: _Entry | None = None
    block: str = ""  # what the following lines without prefix are: "graph", "subgraph", "dump", "patterns" or ""
    nodes: list[_Node] = msgspec.field(default_factory=list)  # of the last whole graph printed
    calls: list[_Call] = msgspec.field(default_factory=list)  # the last ones: each overlaps the next one by its time

    def close(self, unfinished: bool = False) -> None:
        """End the innermost open slice."""
        done = self.open.pop()
        if unfinished:
            self.out.problem(UNENDED_PHASE, done.at, done.name)
            done.args["unfinished"] = True
        if self.synthetic:
            done.args["no_duration"] = True
        self.out.slice(
            self.track, done.start, max(self.end - done.start, 0), done.name, done.category, done.args, done.at
        )

    def close_down_to(self, category: str) -> None:
        """End open slices that cannot contain the next slice of a category."""
        while self.open and _PHASES.index(self.open[-1].category) >= _PHASES.index(category):
            self.close(unfinished=self.open[-1].category == "phase")

    def begin(self, name: str, category: str, start: int, at: int, args: dict[str, Any] | None = None) -> None:
        """Open a slice, inside of those that can contain it."""
        self.close_down_to(category if category != "compile" else "translate")
        self.open.append(_Open(name, category, start, at, args or {}))

    def write_entry(self) -> None:
        """Write the log entry that is complete now."""
        entry, self.entry = self.entry, None
        if entry is not None:
            record = entry.record
            text = "\n".join([record.text, *entry.more])
            self.out.log(self.track, entry.ts, text, record.level, record.source, record.args, entry.at)

    def write_calls(self) -> None:
        """Draw the waiting calls: a line that arrived late was printed before the next call started."""
        latest = self.calls[-1].end if self.calls else 0
        for call in reversed(self.calls):
            latest = min(call.end, latest) - call.dur
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


class _Engine(msgspec.Struct):
    """An engine: the process of one banner."""

    process: TrackId
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    percents: list[str] = msgspec.field(default_factory=list)
    unsupported: list[str] = msgspec.field(default_factory=list)
    calls: int = 0
    total_ns: int = 0
    threads: dict[str, _Thread] = msgspec.field(default_factory=dict)
    output: _Thread | None = None

    def describe(self) -> dict[str, Any]:
        args = dict(self.info, compute_func_calls=self.calls, compute_func_total_ns=self.total_ns)
        if self.percents:
            args["supported_percent"] = [number_in(percent) for percent in self.percents]
        if self.unsupported:
            args["unsupported"] = self.unsupported
        return args


# -- reading -----------------------------------------------------------------------------------------------------------


class LogReader:
    def __init__(self, out: Builder, source: Source) -> None:
        self._out = out
        self._source = source
        self._stamps = _stamps_of(source)
        self._help = _HELP if self._stamps is None else _STAMPED_HELP
        self._now = self._floor = 0  # the times of the line, and of the last one before which no thread can start, ns
        self._waiting: list[_Thread] = []  # with an open block of lines without prefix, the first one first
        self._engines: list[_Engine] = []
        self._crash: _Entry | None = None
        self._owner: _Thread | None = None  # of the last message
        self._message_count = 0

    @property
    def has_lines(self) -> bool:
        return self._message_count > 0 or any(engine.info for engine in self._engines)

    def read(self) -> None:
        self._out.clocks.set_default(self._clock())
        lines = TextLines(self._out).read(self._source, keep_ends=True)
        for (number, line), (_, after) in pairwise(chain(lines, [(0, b"")])):
            self._line(number, line, after)
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

    def _line(self, number: int, line: bytes, after: bytes) -> None:
        text = plain(line)
        before, messages = records(text)
        if self._stamps is not None:
            ts, before = self._stamps.take(before)
            self._now = self._now if ts is None else ts
        if not messages:
            self._unprefixed(number, line, before if self._stamps else text, after)
            return
        self._crash = None
        if _STARTS_ENGINE in text and BANNER.match(plain(after)) and self._engine().info:
            self._new_engine()
        for record in messages:
            if before.strip():
                record.args["before"] = _text_of(before.strip())
            self._record(number, record, ended=line.endswith(b"\n"))
        self._out.balance.written += 1

    def _record(self, number: int, record: _Record, ended: bool) -> None:
        self._message_count += 1
        thread = self._thread(record.thread)
        self._leave(thread)
        thread.write_entry()
        call = _CALL.match(record.text)
        dur = self._call_ns(number, call, ended) if call else None
        self._place(thread, dur or 0)
        if call is None:
            self._floor = self._now
        thread.entry = _Entry(self._now, record, number)
        self._owner = thread
        if call is None:
            self._message(thread, number, record.text)
        elif dur is not None:
            engine = self._engine()
            engine.calls += 1
            engine.total_ns += dur
            if thread.calls and thread.calls[-1].end <= self._now - dur:
                thread.write_calls()
            thread.calls.append(_Call(self._now, dur, {"dur_ms": number_in(call["ms"])}, number))

    def _call_ns(self, number: int, call: re.Match[str], ended: bool) -> int | None:
        """Return the duration of a call; None if it is unusable."""
        try:
            dur = parse_ns(call["ms"].encode(), MS) if call["unit"] else -1
        except ValueError:
            dur = -1
        if dur < 0 or self._now + dur > LIMIT_NS // 2:
            self._out.problem(BAD_DURATION if call["unit"] or ended else CUT_LINE, number, repr(call[0]))
            return None
        return dur

    def _place(self, thread: _Thread, dur: int = 0) -> None:
        """Move to the time of the next line of a thread."""
        if self._stamps is None:
            self._now = max(self._now + LINE_NS, thread.end + dur)
        thread.end = self._now

    def _unprefixed(self, number: int, line: bytes, text: bytes, after: bytes) -> None:
        """Read a line without prefix: a further line of a message, or output of the program."""
        banner = BANNER.match(text)
        if banner:
            self._banner(number, text, banner, crash=_CRASH_BEGIN.match(plain(after)) is not None)
            return
        shown = _text_of(text).replace("\u200b", "")
        if self._crash is not None and _CRASH_LINE.match(text):
            self._crash.more.append(shown)
            self._out.balance.merged[MESSAGE_LINES] += 1
            return
        self._crash = None
        thread = self._waiting[0] if self._waiting else None
        graph = _GRAPH.match(shown)
        if graph and self._owner is not None:
            self._graph(self._owner, number, shown, graph["name"])
        elif thread is not None and self._take(thread, number, shown):
            self._place(thread)
            self._floor = self._now
            self._out.balance.merged[MESSAGE_LINES] += 1
        elif shown.strip():
            self._program_line(number, line, shown)
        else:
            self._now += LINE_NS if self._stamps is None else 0
            self._out.balance.merged[EMPTY_LINES] += 1

    def _program_line(self, number: int, line: bytes, shown: str) -> None:
        if shown.startswith("[") and " >" not in shown and not line.endswith(b"\n"):
            self._out.problem(CUT_LINE, number, repr(shown[:60]))
        thread = self._output()
        self._place(thread)
        self._out.log(thread.track, self._now, shown, _level_of(shown), "", b"", number)
        self._out.balance.written += 1
        if _FAILED in shown:
            self._instant(thread, number, _FAILED, "error")

    # -- blocks of lines without prefix: the graph, a subgraph, a dump, patterns ------------------------------

    def _graph(self, thread: _Thread, number: int, text: str, name: str) -> None:
        """Start the block of the whole graph, which has a log entry of its own."""
        self._leave(thread)
        thread.write_entry()
        self._place(thread)
        thread.entry = _Entry(self._now, _Record("", Level.DEBUG, "", text, {}), number)
        thread.nodes = []
        thread.open.append(_Open(f"graph {name}", "graph", self._now, number))
        self._enter(thread, "graph")
        self._out.balance.written += 1

    def _enter(self, thread: _Thread, block: str) -> None:
        thread.block = block
        self._waiting.append(thread)

    def _leave(self, thread: _Thread) -> None:
        """Close the block of a thread, if any."""
        if not thread.block:
            return
        self._waiting.remove(thread)
        if thread.block == "graph":
            thread.open[-1].args["nodes"] = len(thread.nodes)
            thread.close()
        thread.block = ""

    def _take(self, thread: _Thread, number: int, text: str) -> bool:
        """Add a line to the block of a thread; return whether it belongs to it."""
        node = _NODE.match(text)
        if thread.block in ("graph", "subgraph"):
            if node is None and text.strip():
                return False
            if node and thread.block == "graph":
                ts = self._now + LINE_NS if self._stamps is None else self._now
                args = {"node": whole_or_text(node["index"]), "op": node["op"], "name": node["name"]}
                thread.nodes.append(_Node(ts, number, args))
            elif node:
                thread.open[-1].args.setdefault("nodes", []).append(text.removeprefix("Node "))
        ends = {"dump": text == ")", "patterns": text.startswith("=====")}.get(thread.block, not text.strip())
        if thread.block == "dump" and not ends and not text.startswith(" "):
            return False
        if thread.entry is not None and text.strip():
            thread.entry.more.append(text)
        if ends:
            self._leave(thread)
        return True

    # -- messages ---------------------------------------------------------------------------------------------

    def _instant(self, thread: _Thread, number: int, name: str, category: str, args: Any = b"") -> None:
        self._out.instant(thread.track, self._now, name, category, args, number)

    def _message(self, thread: _Thread, number: int, text: str) -> None:
        """Read a message of a thread: the start or end of a slice, or a statement."""
        if phase := _PHASE.match(text):
            self._phase(thread, number, phase["name"], ended=bool(phase["end"]))
        elif text.startswith("== Beginning new subgraph =="):
            thread.begin("subgraph", "subgraph", self._now, number)
        elif text.startswith("( L1 graph"):
            self._enter(thread, "dump")
        elif text.startswith("Printing subgraph:"):
            if thread.open:
                self._enter(thread, "subgraph")
        elif text.startswith("== PATTERNS MATCHED =="):
            self._enter(thread, "patterns")
        elif _FAILED in text:
            self._instant(thread, number, _FAILED, "error")
        elif translate := _TRANSLATE.match(text):
            thread.close_down_to("translate")
            if thread.open and thread.open[-1].category == "subgraph":
                thread.open[-1].name = f"subgraph {translate['name']}"
                self._assign(thread, translate["name"])
            thread.begin(f"translate {translate['name']}", "translate", self._now, number)
        elif match := _COMPILE.match(text):
            args = {"batch_size": whole_or_text(match["batch"]), match["what"]: whole_or_text(match["count"])}
            thread.begin(f"compile {match['name']}", "compile", self._now, number, args)
        else:
            self._statement(thread, number, text)

    def _phase(self, thread: _Thread, number: int, name: str, ended: bool) -> None:
        if not ended:
            thread.begin(name, "phase", self._now, number)
        elif any(slice_.name == name for slice_ in thread.open):
            while thread.open[-1].name != name:
                thread.close()
            thread.close()
        else:
            self._instant(thread, number, f"End {name}", "phase")

    def _statement(self, thread: _Thread, number: int, text: str) -> None:
        """Read a statement about an open slice, the graph, or the engine."""
        inner = thread.open[-1] if thread.open else None
        if unsupported := _UNSUPPORTED.match(text):
            self._unsupported(thread, number, unsupported)
        elif supports := _SUPPORTS.match(text):
            self._supports(thread, number, supports["percent"])
        elif created := _CREATED.match(text):
            thread.close_down_to("subgraph")
            self._instant(thread, number, text.rstrip("."), "compile", {"subgraphs": whole_or_text(created["count"])})
        elif inner is not None and inner.category == "subgraph" and (inputs := _INPUT.match(text)):
            inner.args.setdefault("inputs", []).append(inputs["name"])
        elif inner is not None and inner.category == "subgraph" and "subgraph was empty" in text:
            inner.name = "subgraph (empty, ignored)"
        elif inner is not None and inner.category == "compile" and text.startswith("Kernel launcher params:"):
            inner.args |= {key: whole_or_text(value) for key, value in _LAUNCHER.findall(text)}
        elif inner is not None and inner.category == "compile" and (buffer := _BUFFER.match(text)):
            inner.args["total_buffer_size"] = whole_or_text(buffer[1])
            inner.args["total_buffer_size_of"] = whole_or_text(buffer[2])

    def _unsupported(self, thread: _Thread, number: int, match: re.Match[str]) -> None:
        op, name, reason = match["op"], match["node"], match["reason"]
        args = {"op": op, "node": name, "reason": reason}
        same = [node for node in thread.nodes if (node.args["op"], node.args["name"]) == (op, name)]
        if len(same) == 1:
            same[0].args["unsupported"] = reason
            args["node_index"] = same[0].args["node"]
        self._engine().unsupported.append(f"{op} {name}".strip() + f": {reason}")
        self._instant(thread, number, f"unsupported {op}", "unsupported", args)

    def _assign(self, thread: _Thread, subgraph: str) -> None:
        """Note the subgraph on the nodes of the whole graph."""
        inside = {node.partition(":")[0] for node in thread.open[-1].args.get("nodes", ())}
        for node in thread.nodes:
            if str(node.args["node"]) in inside:
                node.args["subgraph"] = subgraph

    def _supports(self, thread: _Thread, number: int, percent: str) -> None:
        """Add the share of supported nodes; the rest of the graph runs in ONNX Runtime."""
        args: dict[str, Any] = {"supported_percent": number_in(percent)}
        if thread.nodes:
            rest = [node.args for node in thread.nodes if "subgraph" not in node.args]
            args["nodes"] = len(thread.nodes)
            args["onnxruntime_nodes"] = [f"{node['node']}: {node['op']} {node['name']}".rstrip() for node in rest]
            for node in rest:
                node["runs_in"] = "ONNX Runtime"
        self._engine().percents.append(percent)
        self._instant(thread, number, f"supports {percent}% of the network", "supported", args)
        thread.write_nodes()

    # -- engines and threads ----------------------------------------------------------------------------------

    def _banner(self, number: int, text: bytes, banner: re.Match[bytes], crash: bool) -> None:
        if self._engine().info and not crash:
            self._new_engine()
        engine = self._engine()
        engine.info = engine.info or _banner_info(banner)
        thread = self._output()
        self._place(thread)
        self._floor = self._now
        self._out.balance.written += 1
        record = _Record("", Level.FATAL if crash else Level.INFO, "", _text_of(text), {})
        entry = _Entry(self._now, record, number)
        if crash:
            thread.write_entry()
            self._crash = thread.entry = entry
            self._instant(thread, number, "crash report", "error")
        else:
            self._out.log(thread.track, entry.ts, record.text, record.level, "", {}, number)

    def _engine(self) -> _Engine:
        return self._engines[-1] if self._engines else self._new_engine()

    def _new_engine(self) -> _Engine:
        if self._engines:
            self._end_engine(self._engines[-1])
        self._engines.append(_Engine(self._out.tracks.process("DeepSparse", description=self._help)))
        self._owner = None
        return self._engines[-1]

    def _end_engine(self, engine: _Engine) -> None:
        for thread in [*engine.threads.values(), *([engine.output] if engine.output else [])]:
            self._leave(thread)
            thread.write_entry()
            thread.write_calls()
            while thread.open:
                thread.close(unfinished=True)
            thread.write_nodes()
        self._crash = None

    def _thread(self, handle: str) -> _Thread:
        engine = self._engine()
        if handle not in engine.threads:
            engine.threads[handle] = self._new_thread(f"thread {len(engine.threads) + 1} ({handle})")
        return engine.threads[handle]

    def _output(self) -> _Thread:
        engine = self._engine()
        if engine.output is None:
            engine.output = self._new_thread("other output")
            self._out.tracks[engine.output.track].rank = 10**6
        return engine.output

    def _new_thread(self, name: str) -> _Thread:
        synthetic = self._stamps is None
        track = self._out.tracks.thread(self._engine().process, None, f"{name} (synthetic)" if synthetic else name)
        self._out.tracks[track].description = self._help
        return _Thread(self._out, track, self._floor, synthetic)

    def _finish(self) -> None:
        if self._engines:
            self._end_engine(self._engines[-1])
        for engine in self._engines:
            track = self._out.tracks[engine.process]
            track.name = f"DeepSparse {engine.info.get('version', '')}".strip()
            track.labels = tuple(dict.fromkeys(f"{percent}% supported" for percent in engine.percents))
        self._out.metadata["deepsparse_engines"] = [engine.describe() for engine in self._engines]
        note = self._out.note
        read_as = f" The stamps are read as {self._stamps.name}: {self._stamps.kind.value}." if self._stamps else ""
        note(self._help + read_as)
        if len(self._engines) > 1:
            note(
                f"{len(self._engines)} banners in one log: each is a process; lines of processes that wrote at the "
                "same time cannot be told apart"
            )
        if not self._message_count:
            note("the log holds no message of the engine: record with NM_LOGGING_LEVEL=diagnose")
        elif not any(engine.calls for engine in self._engines):
            note(
                "the log holds no compute_func line: releases from 0.10 on print none; their times per layer come from "
                "deepsparse.debug_analysis, whose JSON this importer reads too"
            )
