"""Read one input into a trace, in five steps.

1. `io.source` opens and unpacks it.
2. `io.log_collectors` removes the prefixes that log collectors put before each line.
3. `families.index` finds the candidate formats, `families.registry` asks their importers which one it is.
4. The importer reads it into a `model.builder.Builder`.
5. The builder's trace is laid out, shortened and validated. The traces of the processes in one log are joined.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from traceconv.errors import AmbiguousFormat, ImporterFailed, NothingRead, TraceconvError, UnrecognizedFormat
from traceconv.families.importer import Importer, Match, extras
from traceconv.families.index import Certainty
from traceconv.families.registry import answer_of, configure, formats_called, identify, importer_class
from traceconv.io import progress
from traceconv.io.limits import too_large
from traceconv.io.log_collectors import Collected, Stream, collected
from traceconv.io.shown import Counted
from traceconv.io.source import Source
from traceconv.io.spill import Memory, give_back
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import lost, noted
from traceconv.model.drawable import shorten
from traceconv.model.dump import as_recorded
from traceconv.model.event_tables import Enough
from traceconv.model.layout import lay_out, validate
from traceconv.model.source_info import Form, SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.trace_inputs import join_streams
from traceconv.model.track_table import NO_TRACK

UNREAD_LINES = Counted("line of a writer that could not be read", "lines of a writer that could not be read")

NO_DATA = noted("source.no_data", "the input holds no events and nothing else that could be drawn or kept")
DAMAGED = lost(
    "source.damaged",
    "the compressed file is cut off or damaged: what could be unpacked before that was read",
)
LONG_LINE = lost("source.long_line", "a line is longer than --max-length allows: it was passed over")
REFUSED = lost(
    "streams.refused",
    "the lines of one writer of the log could not be read, those of others could",
)

#: From this many tracks on, the state of an importer is worth collecting: its reference cycles would be freed late.
_MANY_TRACKS = 1 << 14


class Recognised(Struct, frozen=True):
    """An input whose format is known.

    Attributes:
        source: the input.
        cls: its importer.
        reason: why, in words; "" if the user named it.
        streams: the lines of each process that wrote to it, if a log collector put prefixes before them.
    """

    source: Source
    cls: type[Importer]
    reason: str
    streams: Sequence[Stream] = ()


def recognise(source: Source, format: str | None = None) -> Recognised:
    """Return an input with its importer, and the streams to read if log collectors put prefixes before its lines.

    Args:
        source: the input.
        format: the format or family that the user named, if any; of a family, such as "perf", the fitting format.

    Raises:
        UnrecognizedFormat, AmbiguousFormat, InputError.
        UsageError: there is no importer of that name.
    """
    among = formats_called(format) if format else ()
    named = (importer_class(among[0]), Match.yes("")) if len(among) == 1 else None
    for one in collected(source):
        identified = named or _first_recognised(one, among)
        if identified is None or (one.arrivals and _reads_arrivals(source, named, among)):
            continue
        cls, match = identified
        streams = [stream for stream in one.streams if one.by_name or answer_of(cls, stream).certainty > Certainty.NO]
        if streams:
            many = f", from {len(streams)} writers whose prefixes are removed" if len(streams) > 1 else ""
            return Recognised(source, cls, match.reason + many, streams)
    cls, match = named or identify(source, among)
    return Recognised(source, cls, match.reason)


def _first_recognised(marked: Collected, among: Sequence[str]) -> tuple[type[Importer], Match] | None:
    """Return the importer of the first stream whose format is recognised.

    The fallback format, a log with times, counts only if the prefixes name the processes.
    """
    least = Certainty.FALLBACK if marked.by_name else Certainty.MAYBE
    answers = (_identified(stream, among) for stream in marked.streams)
    return next((answer for answer in answers if answer and answer[1].certainty >= least), None)


def _identified(source: Source, among: Sequence[str]) -> tuple[type[Importer], Match] | None:
    try:
        return identify(source, among)
    except (UnrecognizedFormat, AmbiguousFormat):
        return None


def _reads_arrivals(source: Source, named: tuple[type[Importer], Match] | None, among: Sequence[str]) -> bool:
    """Return whether the importer of an input uses the arrival times in the prefixes itself."""
    identified = named or _identified(source, among)
    return identified is not None and extras(identified[0]).reads_arrivals


def read_recognised(
    recognised: Recognised, options: Mapping[str, str], name: str = "", memory: Memory | None = None
) -> Trace:
    """Return the laid-out trace of an input, on its own clocks.

    Args:
        recognised: the input.
        options: of its importer, as texts.
        name: the name of the input in messages and outputs.
        memory: the memory that all inputs share.

    Raises:
        TraceconvError: the input cannot be read. With several streams: none of them can, and this is the first error.
    """
    importer = configure(recognised.cls, options)
    name = name or recognised.source.name
    if memory is None:
        memory = Memory()
        memory.add_input(lambda: recognised.source.size)
    if not recognised.streams:
        return _read_one(recognised.source, importer, name, memory)
    traces: dict[str, Trace] = {}
    refused: dict[Stream, TraceconvError] = {}
    for stream in recognised.streams:
        try:
            trace = _read_one(stream, importer, name, memory)
            if stream.rank is not None:
                trace.sources[0].rank = stream.rank
            traces[stream.writer] = trace
        except TraceconvError as error:
            refused[stream] = error
    if not traces:
        raise next(iter(refused.values()))
    trace = join_streams(list(traces.values()), list(traces))
    about = trace.sources[0]
    for stream, problem in refused.items():
        lines = sum(1 for _ in stream.lines())
        about.balance.read += lines
        about.balance.skipped[UNREAD_LINES] += lines
        about.diagnostics.add(REFUSED, problem.message)
    for stream in recognised.streams:
        about.notes += stream.notes
    _report_long_lines(recognised.source, about)
    if any(traces):
        words = ", ".join([*list(traces)[:4], *(["..."] if len(traces) > 4 else [])])
        about.notes.append(
            f"the prefixes of the lines name their writers ({words}): the lines of each writer were read on their own"
        )
    validate(trace)
    return trace


def read_start(recognised: Recognised, rows: int) -> Trace:
    """Return about the first `rows` events of an input, all if it is 0, of its first stream. Raises TraceconvError."""
    source = recognised.streams[0] if recognised.streams else recognised.source
    return _read_one(source, configure(recognised.cls, {}), recognised.source.name, Memory(), rows)


def _read_one(source: Source, importer: Importer, name: str, memory: Memory, rows: int = 0) -> Trace:
    """Return the laid-out trace of an input or of one of its streams; of about `rows` events unless `rows` is 0.

    Raises:
        ImporterFailed: the importer raised an error of its own, or its trace breaks a rule.
        TraceconvError: the input cannot be read.
    """
    declared = extras(importer)
    info = SourceInfo(
        name,
        importer.name,
        layer=declared.layer,
        marks=declared.marks,
        form=form_of(importer, source),
        path="-" if source.display == "<stdin>" else source.display,
    )
    try:
        return _read_by(importer, source, info, memory, rows)
    except (TraceconvError, MemoryError):
        raise
    except Exception as error:
        if os.environ.get("TRACECONV_DEBUG"):
            raise
        module = type(importer).__module__
        raise ImporterFailed(
            f"{source.display}: the importer {importer.name} failed: {type(error).__name__}: {error} "
            f"(a bug of the importer: {_line_of(error, importer)})",
            hint=f"tell the authors of {module.partition('.')[0]}; TRACECONV_DEBUG=1 shows the traceback, --from NAME "
            "reads the input as another format",
        ) from error


def form_of(importer: Importer, source: Source) -> Form | None:
    """Return the form of a recording that an input is; None if its format has only one."""
    of = extras(importer).form
    return None if of is None else of(source.head())


def _line_of(error: Exception, importer: Importer) -> str:
    """Return the line of an importer where an error was raised, else that of its `read`: "/path/toy.py, line 12"."""
    code = getattr(type(importer).read, "__code__", None)
    if code is None:
        return type(importer).__module__
    import traceback

    folder = os.path.dirname(code.co_filename)
    own = [at for at in traceback.extract_tb(error.__traceback__) if os.path.dirname(at.filename) == folder]
    file, line = (own[-1].filename, own[-1].lineno) if own else (code.co_filename, code.co_firstlineno)
    return f"{file}, line {line}"


def _read_by(importer: Importer, source: Source, info: SourceInfo, memory: Memory, rows: int) -> Trace:
    builder = Builder(info, importer.clock, memory)
    builder.tables.allow_args = source.allow_args
    if rows:
        builder.tables.stop_at(rows)
    try:
        importer.read(source, builder)
    except Enough:
        return builder.finish()
    if source.damage:
        builder.problem(DAMAGED, f"{source.name}: {source.damage}")
    if not isinstance(source, Stream):
        _report_long_lines(source, builder.info)
    trace = builder.finish()
    builder.info.room = source.limits.room(source.size)
    if builder.info.marks.is_output:
        trace = as_recorded(trace)
    del builder
    if len(trace.tracks) > _MANY_TRACKS:
        gc.collect()
        give_back()
    progress.set_stage("sorting")
    trace = lay_out(shorten(trace, source.limits.length))
    _refuse_nothing(trace, source.display)
    _refuse_long_paths(trace, source)
    validate(trace)
    trace.forget()
    return trace


def _report_long_lines(source: Source, about: SourceInfo) -> None:
    for number in source.long_lines:
        about.diagnostics.add(LONG_LINE, f"{about.name}:line {number}", number=number, skipped=1)


def _refuse_long_paths(trace: Trace, source: Source) -> None:
    """Raise InputError if the paths of all tracks, which outputs and tables spell out, are far more than the input."""
    room, total = source.limits.room(source.size), 0
    parents = trace.tracks.column("parent").data
    sizes: list[int] = []
    for parent, name in zip(parents, trace.tracks.texts("name"), strict=True):
        size = len(name) if parent == NO_TRACK else sizes[parent] + len(name)
        sizes.append(size)
        total += size
    if room and total > room:
        raise too_large(source.display, source.size, total, "have tracks whose paths take", source.limits.ratio)


def _refuse_nothing(trace: Trace, display: str) -> None:
    """Raise NothingRead if an input has data of which nothing was read; note if it has no data.

    Metadata that was kept, such as the head of a log or its reading of two clocks, does not count as data read if other
    data was lost.
    """
    source = trace.sources[0]
    if any(trace.counts().values()) or source.balance.written:
        return
    reason = source.diagnostics.data_left_out
    if reason is None:
        if not source.balance.kept and not trace.snapshots:
            source.diagnostics.add(NO_DATA)
        return
    where = f" [{reason.places[0]}]" if reason.places else ""
    count = reason.skipped or reason.count
    raise NothingRead(
        display,
        "",
        f"nothing of it could be read: {count} x {reason.code.help} ({reason.code.name}){where}",
        hint=f"`traceconv formats {source.format}` lists what is read; --from NAME reads it as another format",
    )
