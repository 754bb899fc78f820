"""The library: read, align, merge, write. The command line is a thin layer over these functions."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from traceconv.align import Alignment, Policy, ReceiptLine, align
from traceconv.align.causality import believed, causality
from traceconv.align.checks import Causality
from traceconv.align.constraint_parser import NO_FACTS, Facts
from traceconv.align.constraints import importer_options
from traceconv.align.identity import Together
from traceconv.errors import AlignmentError, LostData, NothingRead, TraceconvError, UsageError
from traceconv.families.registry import (
    Importer,
    OptionValue,
    configure,
    importer_class,
    importers,
    option_names,
    option_texts,
)
from traceconv.families.registry import identify as _identify
from traceconv.io.limits import DEFAULT_LIMITS, Limits
from traceconv.io.log_collectors import REFUSED, Stream, join_streams, streams_of
from traceconv.io.output import check_target, write_output
from traceconv.io.source import Source
from traceconv.io.spill import Memory
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.layout import lay_out
from traceconv.model.marks import NO_MARKS
from traceconv.model.shortening import shorten
from traceconv.model.trace import SourceInfo, Trace
from traceconv.model.validate import validate
from traceconv.writers import Writer, is_compressed, writer_for_path, writer_named

if TYPE_CHECKING:
    from traceconv.answers import Questions
    from traceconv.answers.section import Section
    from traceconv.align.clock_overview import Survey

NO_DATA = declare(
    "source.no_data", ProblemKind.NOTED, "the input holds no events and nothing else that could be drawn or kept"
)
DAMAGED = declare(
    "source.damaged",
    ProblemKind.LOST,
    "the compressed file is cut off or damaged: what could be unpacked before that was read",
)

LONG_LINE = declare(
    "source.long_line", ProblemKind.LOST, "a line is longer than --max-length allows: it was passed over"
)

#: From so many tracks on it matters what an importer knows of each, which Python frees late as it refers to itself.
_MANY_TRACKS = 1 << 14

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a merge.

    Attributes:
        path: a file, or "-" for standard input.
        format: the importer, if it shall not be found out.
        options: options of the importer: texts as on the command line, or the numbers and booleans that they stand for.
        offset_ns: what to add to each of its times, on top of what the file says itself.
        offset_within_ns: how wrong that can be.
    """

    path: AnyPath
    format: str | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    offset_ns: int | None = None
    offset_within_ns: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What a conversion or merge did.

    Attributes:
        trace: the trace that was written; its sources hold the balance and the diagnostics of each input.
        receipt: how each input was put on the time of the trace.
        causality: whether effects come after their causes on it; without checks for a single input.
        together: which processes and threads of several inputs are one.
    """

    trace: Trace
    receipt: list[ReceiptLine]
    causality: Causality = field(default_factory=lambda: Causality(()))
    together: Together = field(default_factory=Together)

    def __repr__(self) -> str:
        """The trace and how sure its times are, without its columns."""
        verdicts = Counter(line.verdict for line in self.receipt)
        clocks = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        return f"<Result: {self.trace!r}, clocks: {clocks or 'none'}>"


def formats() -> dict[str, type[Importer]]:
    """All formats that can be read, by name."""
    return importers()


def identify(path: AnyPath, *, limits: Limits = DEFAULT_LIMITS) -> tuple[str, str]:
    """The name of the format of a file, and the reason. `limits`: what it may take.

    Raises:
        UnrecognizedFormat, AmbiguousFormat, InputError.
    """
    first, *others = streams_of(Source(path, limits=limits), None)
    cls, match = _identify(first)
    writers = f", from {1 + len(others)} writers whose marks are taken off" if others else ""
    return cls.name, match.reason + writers


def read(
    path: AnyPath,
    *,
    format: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Trace:
    """One input as a laid-out trace on its own clocks.

    Args:
        path: a file, or "-" for standard input.
        format: the importer, if it shall not be found out.
        options: options of the importer: texts as on the command line, or the numbers and booleans that they stand for.

    Raises:
        TraceconvError: the input cannot be read; all other problems are counted in the diagnostics of the source.
    """
    return read_source(Source(path, limits=limits), format=format, options=options)


def read_source(
    source: Source,
    *,
    format: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    name: str = "",
    memory: Memory | None = None,
) -> Trace:
    """Like `read`, for an input that is open already; `name` is how messages and outputs call it."""
    memory = memory or Memory()
    cls, streams = _class_and_streams(source, format)
    importer = configure(cls, option_texts(options))
    if streams == [source]:
        return _read_one(source, cls, importer, name or source.name, memory)
    return _read_streams(streams, cls, importer, name or source.name, memory)


def _read_streams(
    streams: Sequence[Source], cls: type[Importer], importer: Importer, name: str, memory: Memory
) -> Trace:
    """The streams of one input as one trace. Raises the first error if none of them can be read."""
    traces: dict[str, Trace] = {}
    refused: dict[Source, TraceconvError] = {}
    for stream in streams:
        try:
            writer = stream.writer if isinstance(stream, Stream) else ""
            trace = _read_one(stream, cls, importer, name, memory)
            if isinstance(stream, Stream) and stream.rank is not None:
                trace.sources[0].rank = stream.rank
            traces[writer] = trace
        except TraceconvError as error:
            refused[stream] = error
    if not traces:
        raise next(iter(refused.values()))
    trace = join_streams(list(traces.values()), list(traces))
    about = trace.sources[0]
    for stream, problem in refused.items():
        lines = sum(1 for _ in stream.lines())
        about.balance.read += lines
        about.balance.skipped["lines of a writer that could not be read"] += lines
        about.diagnostics.add(REFUSED, problem.message)
    for stream in streams:
        about.notes += stream.notes if isinstance(stream, Stream) else []
    whole = streams[0].whole if isinstance(streams[0], Stream) else streams[0]
    _report_long_lines(whole, about)
    if any(traces):
        words = ", ".join([*list(traces)[:4], *(["..."] if len(traces) > 4 else [])])
        about.notes.append(f"the lines bear marks of who wrote them ({words}): each writer was read by itself")
    validate(trace)
    return trace


def _class_and_streams(source: Source, format: str | None) -> tuple[type[Importer], list[Source]]:
    """The importer of an input, and the streams that it reads."""
    streams = streams_of(source, format)
    return (importer_class(format) if format else _identify(streams[0])[0]), streams


def _read_one(source: Source, cls: type[Importer], importer: Importer, name: str, memory: Memory) -> Trace:
    info = SourceInfo(name, cls.name, layer=getattr(cls, "layer", None), marks=getattr(cls, "marks", NO_MARKS))
    builder = Builder(info, cls.clock, memory)
    importer.read(source, builder)
    if source.damage:
        builder.problem(DAMAGED, f"{source.name}: {source.damage}")
    if not isinstance(source, Stream):
        _report_long_lines(source, builder.info)
    trace = builder.finish()
    del builder
    if len(trace.tracks) > _MANY_TRACKS:
        gc.collect()
    trace = lay_out(shorten(trace, source.limits.length))
    _refuse_nothing(trace, source.display)
    validate(trace)
    trace.forget()
    return trace


def _report_long_lines(source: Source, about: SourceInfo) -> None:
    for number in source.long_lines:
        about.diagnostics.add(LONG_LINE, f"{about.name}:line {number}", number=number, skipped=1)


def _refuse_nothing(trace: Trace, display: str) -> None:
    """Raise NothingRead if an input has data and none of it was read; note that there is none, if so.

    What is kept as metadata beside data that was lost, such as the head of a log, is no data.
    """
    source = trace.sources[0]
    if any(trace.counts().values()) or source.balance.written or trace.snapshots:
        return
    reason = source.diagnostics.data_left_out
    if reason is None:
        if not source.balance.kept:
            source.diagnostics.add(NO_DATA)
        return
    where = f" [{reason.places[0]}]" if reason.places else ""
    count = reason.skipped or reason.count
    raise NothingRead(
        display,
        "",
        f"nothing of it could be read: {count} x {reason.code.help} ({reason.code.name}){where}",
        hint=f"`traceconv formats {source.format}` says what is understood; --from NAME reads it as another format",
    )


def convert(
    path: AnyPath,
    output: AnyPath,
    *,
    format: str | None = None,
    to: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    force: bool = False,
    strict: bool = False,
    memory: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Result:
    """One input to one output. See `merge`."""
    one = Input(path, format=format, options=options or {})
    return merge([one], output, to=to, force=force, strict=strict, memory=memory, limits=limits)


def merge(
    inputs: Sequence[AnyPath | Input],
    output: AnyPath,
    *,
    to: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    same_machine: bool = False,
    facts: Facts = NO_FACTS,
    policy: Policy | None = None,
    report: AnyPath | Sequence[AnyPath] = (),
    force: bool = False,
    strict: bool = False,
    memory: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Result:
    """Several inputs to one output, on one clock.

    Args:
        inputs: paths, or paths with what is to be known about them.
        output: a path, or "-" for standard output.
        to: the name of the writer; by default the ending of the output decides.
        options: importer options that are for whichever input has them; each must fit exactly one of them.
        same_machine: whether all inputs are known to be of one machine and boot, by whatever names they call it: equal
            pids are the same process then, and clocks since boot the same clock.
        facts: what is known about the clocks of the inputs, besides what the files say.
        policy: how to align what neither the files nor the facts relate.
        report: where to write how the inputs were aligned, or why not: a path that ends in .json or .html, or several.
            Written after the trace, or instead of it.
        force: whether an existing output may be replaced.
        strict: whether lost data is an error.
        memory: how many bytes of memory to aim at: beyond it args, and then columns, go to temporary files (in the
            folder TMPDIR); by default half of what is free.
        limits: what each input may take.

    Raises:
        UnrelatedClocks: two inputs have clocks that nothing relates; nothing but the report is written.
        AmbiguousAlignment: their events fit in several places; likewise.
        InconsistentClocks: the facts contradict themselves, the files or the events; likewise.
        LostData: strict, and something was lost; nothing is written.
        TraceconvError: any other failure; nothing is written, unless it is a report that cannot be written: the trace,
            which is written first, is there then.
    """
    writer = _writer_of(output, to)
    given = _given(inputs)
    sources = [Source(one.path, limits=limits) for one in given]
    _refuse_overwriting(sources, os.fspath(output))
    check_target(os.fspath(output), binary=writer.binary, force=force)
    reports_to = _check_reports(report, output, sources, force)
    traces = _read_all(given, sources, option_texts(options), facts, Memory(memory))
    alignment, checks = _aligned(traces, given, facts, policy, same_machine, reports_to, force)
    rendered = _rendered(reports_to, traces, alignment, checks)
    merged = merge_traces(traces, alignment)
    if len(traces) > 1:  # a single one was validated as read, and only its times were moved
        validate(merged)
    del traces  # their columns take memory that writing needs
    merged.forget()
    merged.sources[-1].notes.extend(writer.notes(merged))
    if strict:
        _refuse_losses(merged)
    write_output(os.fspath(output), lambda sink: _write_all(writer, merged, sink), binary=writer.binary, force=force)
    _write_reports(rendered, force)
    return Result(merged, alignment.receipt, checks, alignment.together)


def estimate(
    inputs: Sequence[AnyPath | Input],
    *,
    options: Mapping[str, OptionValue] | None = None,
    same_machine: bool = False,
    facts: Facts = NO_FACTS,
    policy: Policy | None = None,
    report: AnyPath | Sequence[AnyPath] = (),
    force: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[Alignment, Causality]:
    """How several inputs would be put on one time axis, without writing a trace. The arguments are those of `merge`.

    Raises:
        UnrelatedClocks, AmbiguousAlignment, InconsistentClocks: as for `merge`.
        TraceconvError: an input cannot be read, or the report cannot be written.
    """
    given = _given(inputs)
    sources = [Source(one.path, limits=limits) for one in given]
    reports_to = _check_reports(report, "", sources, force)
    traces = _read_all(given, sources, option_texts(options), facts)
    alignment, checks = _aligned(traces, given, facts, policy, same_machine, reports_to, force)
    _write_reports(_rendered(reports_to, traces, alignment, checks), force)
    return alignment, checks


def report(
    inputs: Sequence[AnyPath | Input],
    asked: Questions | None = None,
    *,
    options: Mapping[str, OptionValue] | None = None,
    same_machine: bool = False,
    facts: Facts = NO_FACTS,
    policy: Policy | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> list[Section]:
    """Return tables about what the inputs recorded, on one clock: what was slow, how long steps took, what waited.

    Args:
        asked: which sections, grouped how; all of them by default. The other arguments are those of `merge`.

    Raises:
        UsageError: a section or key is not known.
        TraceconvError: as for `merge`.
    """
    from traceconv.answers import Questions, answers

    given = _given(inputs)
    sources = [Source(one.path, limits=limits) for one in given]
    traces = _read_all(given, sources, option_texts(options), facts)
    alignment, _ = _aligned(traces, given, facts, policy, same_machine, (), False)
    return answers(merge_traces(traces, alignment), alignment.receipt, asked or Questions())


def _aligned(
    traces: Sequence[Trace],
    given: Sequence[Input],
    facts: Facts,
    policy: Policy | None,
    same_machine: bool,
    reports_to: Sequence[str],
    force: bool,
) -> tuple[Alignment, Causality]:
    """The alignment of traces that were read. A refusal is written to its reports before it is raised."""
    checks = Causality(())
    try:
        within = {index: one.offset_within_ns for index, one in enumerate(given)}
        alignment = align(
            traces, _offsets(given), policy, facts=facts, same_machine=same_machine, offsets_within=within
        )
        if len(traces) > 1:
            checks = causality(traces, alignment, (policy or Policy()).names)
        return believed(alignment, checks, (policy or Policy()).on_ambiguous), checks
    except AlignmentError as error:
        _write_reports(_rendered(reports_to, traces, error, checks), force)
        raise


def clocks(
    inputs: Sequence[AnyPath | Input],
    *,
    options: Mapping[str, OptionValue] | None = None,
    same_machine: bool = False,
    facts: Facts = NO_FACTS,
    limits: Limits = DEFAULT_LIMITS,
) -> Survey:
    """Which clocks some inputs have, what relates them, and what would.

    Args:
        inputs: paths, or paths with what is to be known about them.
        options: importer options that are for whichever input has them; each must fit exactly one of them.
        same_machine: whether all inputs are known to be of one machine and boot: clocks since boot are the same clock.
        facts: what is known about the clocks of the inputs, besides what the files say.
        limits: what each input may take.

    Raises:
        InconsistentClocks: the facts contradict themselves or the files.
        TraceconvError: an input cannot be read.
    """
    from traceconv.align.clock_overview import survey

    given = _given(inputs)
    traces = _read_all(given, [Source(one.path, limits=limits) for one in given], option_texts(options), facts)
    return survey(traces, facts, _offsets(given), same_machine=same_machine)


def _given(inputs: Sequence[AnyPath | Input]) -> list[Input]:
    given = [one if isinstance(one, Input) else Input(one) for one in inputs]
    if [one.path for one in given].count("-") > 1:
        raise UsageError("- is given more than once: standard input can be read only once")
    return given


def _offsets(given: Sequence[Input]) -> dict[int, int]:
    return {index: one.offset_ns for index, one in enumerate(given) if one.offset_ns is not None}


def _check_reports(
    report: AnyPath | Sequence[AnyPath], output: AnyPath, sources: Sequence[Source], force: bool
) -> list[str]:
    """The paths of the reports. Refuses what could not be written, before the work for it is done."""
    paths = [os.fspath(path) for path in ([report] if isinstance(report, str | os.PathLike) else report)]
    if paths:
        from traceconv.align import report as reports
    for path in paths:
        reports.check_ending(path)
        if _same_place(path, output):
            raise UsageError(f"--report {path}: the trace goes there", hint="give the report another name")
        if sum(_same_place(path, other) for other in paths) > 1:
            raise UsageError(f"--report {path} is given twice", hint="one page and one for programs: .html and .json")
        _refuse_overwriting(sources, path)
        check_target(path, binary=False, force=force)
    return paths


def _same_place(path: str, other: AnyPath) -> bool:
    """Whether what is written to one path replaces what is written to the other one, links and ./ followed."""
    return os.path.realpath(path) == os.path.realpath(other)


def _rendered(
    paths: Sequence[str], traces: Sequence[Trace], outcome: Alignment | AlignmentError, checks: Causality
) -> dict[str, bytes]:
    """The reports on an alignment or a refusal, by path."""
    if not paths:
        return {}
    from traceconv.align import report as reports

    if isinstance(outcome, AlignmentError):
        report = reports.refusal_document(traces, outcome, checks)
    else:
        report = reports.document(traces, outcome, checks)
    return {path: reports.rendered(report, path) for path in paths}


def _write_reports(rendered: Mapping[str, bytes], force: bool) -> None:
    for path, data in rendered.items():
        write_output(path, partial(_put, data), binary=False, force=force)


def _put(data: bytes, sink: BinaryIO) -> None:
    sink.write(data)


def write(trace: Trace, output: AnyPath, *, to: str | None = None, force: bool = False) -> None:
    """Write a trace, as `read` or `Result.trace` gives it.

    Raises:
        UnrelatedClocks: the trace is on several clocks that nothing relates.
        TraceconvError: the output cannot be written.
    """
    if len(trace.clocks) > 1 or trace.snapshots:
        trace = merge_traces([trace], align([trace]))
    writer = _writer_of(output, to)
    write_output(os.fspath(output), lambda sink: _write_all(writer, trace, sink), binary=writer.binary, force=force)


def _write_all(writer: Writer, trace: Trace, sink: BinaryIO) -> None:
    written = msgspec.structs.astuple(writer.write(trace, sink))
    if written != tuple(trace.counts().values()):
        raise RuntimeError(f"the writer {writer.name} wrote {written} of {trace.counts()}")


def _writer_of(output: AnyPath, to: str | None) -> Writer:
    """The writer that the user names, or the one for the ending of the output; Perfetto for a stream."""
    if to or output == "-":
        return writer_named(to or "perfetto", compress=is_compressed(output))
    return writer_for_path(output)


def _refuse_overwriting(sources: Sequence[Source], output: str) -> None:
    for source in sources:
        if output != "-" and source.is_same_file(output):
            raise UsageError(f"{output}: the output would replace an input", hint="give the output another name")


def _read_all(
    given: Sequence[Input],
    sources: Sequence[Source],
    options: dict[str, str],
    facts: Facts,
    memory: Memory | None = None,
) -> list[Trace]:
    """All inputs; every one is tried, so that one run names all that is wrong."""
    memory = memory or Memory()
    names = _names(sources)
    classes: list[type[Importer]] = []
    errors: list[TraceconvError] = []
    for one, source in zip(given, sources, strict=True):
        try:
            classes.append(_class_and_streams(source, one.format)[0])
        except TraceconvError as error:
            errors.append(error)
    traces: list[Trace] = []
    if not errors:
        shared = _assign_options(options, names, classes)
        for index, (one, source, name, cls) in enumerate(zip(given, sources, names, classes, strict=True)):
            try:
                wanted = _with_facts(
                    shared[index] | option_texts(one.options), importer_options(facts, index, cls), name
                )
                traces.append(read_source(source, format=cls.name, options=wanted, name=name, memory=memory))
            except TraceconvError as error:
                errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else SeveralErrors(errors)
    return traces


def _with_facts(options: dict[str, str], stated: dict[str, str], name: str) -> dict[str, str]:
    """The options of an importer with those that follow from --tz and --date."""
    for key in options.keys() & stated.keys():
        if options[key] != stated[key]:
            raise UsageError(f"{name}: -O {key}={options[key]} and {stated[key]} (--tz, --date) contradict each other")
    return stated | options


def _names(sources: Sequence[Source]) -> list[str]:
    """How the inputs are called: by file name, those with the same one by path, the same path numbered."""
    names: list[str] = []
    base = Counter(source.name for source in sources)
    for source in sources:
        name = wanted = source.name if base[source.name] == 1 else source.display
        number = 2
        while name in names:
            name, number = f"{wanted} ({number})", number + 1
        names.append(name)
    return names


def _assign_options(
    options: Mapping[str, str], names: Sequence[str], classes: Sequence[type[Importer]]
) -> list[dict[str, str]]:
    """For each input the options that were given without a file; each must fit exactly one input."""
    shared: list[dict[str, str]] = [{} for _ in classes]
    for key, value in options.items():
        takers = [index for index, cls in enumerate(classes) if key in option_names(cls)]
        if not takers:
            known = ", ".join(sorted({cls.name for cls in classes}))
            raise UsageError(f"no input has an option {key!r}", hint=f"see `traceconv formats NAME` for {known}")
        if len(takers) > 1:
            fitting = " and ".join(names[index] for index in takers)
            raise UsageError(
                f"option {key!r} fits {fitting}", hint=f"say for which one: -O {names[takers[0]]}:{key}={value}"
            )
        shared[takers[0]][key] = value
    return shared


class SeveralErrors(TraceconvError):
    """More than one input failed."""

    def __init__(self, errors: Sequence[TraceconvError]) -> None:
        super().__init__(f"{len(errors)} inputs failed")
        self.errors = list(errors)
        self.exit_code = max(error.exit_code for error in errors)


def _refuse_losses(trace: Trace) -> None:
    for source in trace.sources:
        if source.diagnostics.lost:
            worst = next(entry for entry in source.diagnostics if entry.code.kind is ProblemKind.LOST)
            raise LostData(f"{source.name}: {worst.describe()}", hint="without --strict the rest is written")
