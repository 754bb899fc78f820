"""Reads the log of DeepSparse engines into a builder.

The log has no timestamps, unless a log collector put one before each line. Without them, times are synthetic: lines
keep their order and take LINE_NS each, a call ends at its line, and calls of one thread do not overlap.
"""

from __future__ import annotations

import re
from dataclasses import replace

from traceconv.families.common.idle_lines import BLANK, EMPTY, IdleLines
from traceconv.families.deepsparse import _lines as lines
from traceconv.families.deepsparse._lines import Record
from traceconv.families.deepsparse._messages import FAILED, Engine, Messages, number_in
from traceconv.families.deepsparse._position import Blocks, Position, stamps_of
from traceconv.families.deepsparse._thread import LINE_NS, Call, Entry, Open, Thread
from traceconv.families.logs.log_times import LOCAL_FORMS, Kind
from traceconv.io.source import Line, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.counted import EMPTY_LINES, MESSAGE_LINES
from traceconv.model.diagnostics import lost
from traceconv.model.times import LIMIT_NS, MS, parse_ns
from traceconv.model.trace import Level

NO_CLOCK = ClockDomain("order of the DeepSparse lines", Zero.UNKNOWN, Run.NONE)
BAD_DURATION = lost(
    "deepsparse.bad_duration",
    "the duration of a compute_func line is not a number of ms, 0 or more: its slice was left out",
)
CUT_LINE = lost(
    "deepsparse.cut_line",
    "the text ends inside a line of the engine: the process was killed, or the log was copied too early",
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
_CALL = re.compile(r"ORT NM EP compute_func: *(?P<ms>\S*)(?P<unit> ms)?")


class LogReader:
    """Reads one log.

    Args:
        out: the builder.
        source: the log.
    """

    def __init__(self, out: Builder, source: Source) -> None:
        self._out = out
        self._source = source
        self._at = Position(stamps_of(source))
        self._blocks = Blocks(self._at)
        self._messages = Messages(out, self._at, self._blocks, self._engine)
        self._engines: list[Engine] = []
        self._crash: Entry | None = None
        self._owner: Thread | None = None
        self._message_count = 0
        self._lines = IdleLines(out)

    @property
    def has_lines(self) -> bool:
        """Whether the log holds any line of an engine."""
        return self._message_count > 0 or any(engine.info for engine in self._engines)

    def read(self) -> None:
        """Read the whole log."""
        self._out.clocks.set_default(self._clock())
        for line in self._lines.read(self._source, keep_ends=True):
            self._line(line)
        self._finish()

    def _clock(self) -> ClockDomain:
        if self._at.stamps is None:
            return NO_CLOCK.owned_by(self._out.info.name)
        if self._at.stamps.kind is Kind.UNIX:
            return replace(REALTIME, resolution_ns=self._at.stamps.step_ns, exact_durations=True)
        name = f"arrival of the lines ({self._at.stamps.kind.value})"
        local = LOCAL_FORMS.get(self._at.stamps.kind)
        return ClockDomain(name, Zero.UNKNOWN, Run.WALL, self._at.stamps.step_ns, exact_durations=True, local=local)

    # -- lines ------------------------------------------------------------------------------------------------

    def _line(self, line: Line) -> None:
        text = lines.plain(line.text)
        before, records = lines.records(text)
        if self._at.stamps is not None:
            before = self._take_stamp(before)
        if not records:
            self._unprefixed(line, before if self._at.stamps else text)
            return
        self._crash = None
        if lines.starts_engine(text) and lines.BANNER.match(lines.plain(self._lines.after)) and self._engine().info:
            self._new_engine()
        for record in records:
            if before.strip():
                record.args["before"] = lines.text_of(before.strip())
            self._record(line.number, record, ended=line.text.endswith(b"\n"))
        self._out.balance.written += 1

    def _take_stamp(self, before: bytes) -> bytes:
        """Move to the time before a line; return the rest of the text."""
        assert self._at.stamps is not None
        ts, rest = self._at.stamps.take(before)
        self._at.now = self._at.now if ts is None else ts
        return rest

    def _record(self, number: int, record: Record, ended: bool) -> None:
        self._message_count += 1
        thread = self._thread(record.thread)
        self._blocks.leave(thread)
        thread.flush()
        call = _CALL.match(record.text)
        dur = self._call_ns(number, call, ended) if call else None
        self._place(thread, dur or 0)
        if call is None:
            self._at.floor = self._at.now
        thread.entry = Entry(self._at.now, record, number)
        self._owner = thread
        if dur is not None:
            self._call(thread, number, dur, call["ms"] if call else "")
        elif call is None:
            self._messages.read(thread, number, record.text)

    def _place(self, thread: Thread, dur: int = 0) -> None:
        """Move to the time of the next line of a thread."""
        if self._at.stamps is None:
            self._at.now = max(self._at.now + LINE_NS, thread.end + dur)
        thread.end = self._at.now

    def _unprefixed(self, line: Line, text: bytes) -> None:
        """Read a line without prefix: a further line of a message, or output of the program."""
        banner = lines.BANNER.match(text)
        if banner:
            crash = lines.CRASH_BEGIN.match(lines.plain(self._lines.after))
            self._banner(line.number, text, banner, crash=crash is not None)
            return
        shown = lines.text_of(text).replace("\u200b", "")
        if self._crash is not None and lines.CRASH_LINE.match(text):
            self._go_on(self._crash, shown)
            return
        self._crash = None
        thread = self._blocks.waiting[0] if self._blocks.waiting else None
        graph = lines.GRAPH.match(shown)
        if graph and self._owner is not None:
            self._graph(self._owner, line.number, shown, graph["name"])
            self._out.balance.written += 1
        elif thread is not None and self._blocks.take(thread, line.number, shown):
            self._place(thread)
            self._at.floor = self._at.now
            self._out.balance.merged[MESSAGE_LINES] += 1
        elif shown.strip():
            self._program_line(line, shown)
        else:
            self._lines.idle(self._empty, BLANK if thread is None else EMPTY)

    def _empty(self, count: int) -> None:
        self._at.now += count * LINE_NS if self._at.stamps is None else 0
        self._out.balance.merged[EMPTY_LINES] += count

    def _program_line(self, line: Line, shown: str) -> None:
        if shown.startswith("[") and " >" not in shown and not line.text.endswith(b"\n"):
            self._out.problem(CUT_LINE, line.number, repr(shown[:60]))
        thread = self._output()
        self._place(thread)
        self._out.log(thread.track, self._at.now, shown, lines.level_of(shown), "", b"", line.number)
        self._out.balance.written += 1
        if FAILED in shown:
            self._out.instant(thread.track, self._at.now, FAILED, "error", b"", line.number)

    def _go_on(self, entry: Entry, text: str) -> None:
        entry.more.append(text)
        self._out.balance.merged[MESSAGE_LINES] += 1

    # -- blocks of lines without prefix -----------------------------------------------------------------------

    def _graph(self, thread: Thread, number: int, text: str, name: str) -> None:
        """Start the block of the whole graph, which has a log entry of its own."""
        self._blocks.leave(thread)
        thread.flush()
        self._place(thread)
        record = Record("", Level.DEBUG, "", text, {})
        thread.entry = Entry(self._at.now, record, number)
        thread.nodes = []
        thread.open.append(Open(f"graph {name}", "graph", self._at.now, number))
        self._blocks.enter(thread, "graph")

    # -- what messages mean -----------------------------------------------------------------------------------

    def _call_ns(self, number: int, call: re.Match[str], ended: bool) -> int | None:
        """Return the duration of a call; None if it is unusable."""
        code = BAD_DURATION if call["unit"] or ended else CUT_LINE
        try:
            dur = parse_ns(call["ms"].encode(), MS) if call["unit"] else -1
        except ValueError:
            dur = -1
        if dur < 0 or self._at.now + dur > LIMIT_NS // 2:
            self._out.problem(code, number, repr(call[0]))
            return None
        return dur

    def _call(self, thread: Thread, number: int, dur: int, ms: str) -> None:
        engine = self._engine()
        engine.calls += 1
        engine.total_ns += dur
        if thread.calls and thread.calls[-1].end <= self._at.now - dur:
            thread.write_calls()
        thread.calls.append(Call(self._at.now, dur, {"dur_ms": number_in(ms)}, number))

    # -- engines and threads ----------------------------------------------------------------------------------

    def _banner(self, number: int, text: bytes, banner: re.Match[bytes], crash: bool) -> None:
        if self._engine().info and not crash:
            self._new_engine()
        engine = self._engine()
        engine.info = engine.info or lines.banner_info(banner)
        thread = self._output()
        self._place(thread)
        self._at.floor = self._at.now
        level = Level.FATAL if crash else Level.INFO
        record = Record("", level, "", lines.text_of(text), {})
        self._out.balance.written += 1
        if crash:
            thread.flush()
            self._crash = thread.entry = Entry(self._at.now, record, number)
            self._out.instant(thread.track, self._at.now, "crash report", "error", b"", number)
        else:
            thread.write_entry(Entry(self._at.now, record, number))

    def _engine(self) -> Engine:
        return self._engines[-1] if self._engines else self._new_engine()

    def _new_engine(self) -> Engine:
        if self._engines:
            self._end_engine(self._engines[-1])
        process = self._out.tracks.process(
            "DeepSparse", description=_HELP if self._at.stamps is None else _STAMPED_HELP
        )
        self._engines.append(Engine(process))
        self._owner = None
        return self._engines[-1]

    def _end_engine(self, engine: Engine) -> None:
        every = [*engine.threads.values(), *([engine.output] if engine.output else [])]
        for thread in every:
            self._blocks.leave(thread)
            thread.flush()
            thread.write_calls()
            while thread.open:
                thread.close(unfinished=True)
            thread.write_nodes()
        self._crash = None

    def _thread(self, handle: str) -> Thread:
        engine = self._engine()
        if handle not in engine.threads:
            name = f"thread {len(engine.threads) + 1} ({handle})"
            engine.threads[handle] = self._new_thread(name)
        return engine.threads[handle]

    def _output(self) -> Thread:
        engine = self._engine()
        if engine.output is None:
            engine.output = self._new_thread("other output")
            self._out.tracks[engine.output.track].rank = 10**6
        return engine.output

    def _new_thread(self, name: str) -> Thread:
        synthetic = self._at.stamps is None
        track = self._out.tracks.thread(self._engine().process, None, name + _SYNTHETIC if synthetic else name)
        self._out.tracks[track].description = _HELP if synthetic else _STAMPED_HELP
        return Thread(self._out, track, self._at.floor, synthetic)

    # -- the end ----------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        if self._engines:
            self._end_engine(self._engines[-1])
        for engine in self._engines:
            track = self._out.tracks[engine.process]
            track.name = f"DeepSparse {engine.info.get('version', '')}".strip()
            track.labels = tuple(dict.fromkeys(f"{percent}% supported" for percent in engine.percents))
        self._out.metadata["deepsparse_engines"] = [engine.describe() for engine in self._engines]
        self._notes()

    def _notes(self) -> None:
        note = self._out.note
        if self._at.stamps is None:
            note(_HELP)
        else:
            note(f"{_STAMPED_HELP} The stamps are read as {self._at.stamps.name}: {self._at.stamps.kind.value}.")
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
