"""The library: read, align, merge, write. The command line is a thin layer over these functions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Unpack

import msgspec
from msgspec import Struct

from traceconv.align import Alignment, Policy, ReceiptLine, align, checked_alignment
from traceconv.align.checks import Causality
from traceconv.align.constraints import NO_CONSTRAINTS, Constraints
from traceconv.align.identity import Together
from traceconv.align.receipt import Aligned
from traceconv.errors import AlignmentError, LostData, UsageError
from traceconv.families.importer import Importer
from traceconv.families.outputs import is_compressed, writer_for_path, writer_named
from traceconv.families.registry import OptionValue, importers
from traceconv.io import progress
from traceconv.io.folders import AnyPath, shown
from traceconv.io.limits import DEFAULT_LIMITS, Limits
from traceconv.io.output import check_target, would_replace, write_output
from traceconv.io.spill import Memory
from traceconv.merging.traces import merge_traces
from traceconv.model.diagnostics import ProblemKind
from traceconv.model.layout import validate
from traceconv.model.trace import Trace
from traceconv.reading import expand
from traceconv.recordings import Input, Inputs, MergeArguments, Opened, Settings, opened, read_all
from traceconv.writers import Writer

if TYPE_CHECKING:
    import pyarrow

    from traceconv.align.clock_overview import Survey
    from traceconv.answers import Questions
    from traceconv.answers.frames import Frame, Frames
    from traceconv.answers.picture import Picture
    from traceconv.answers.section import Report
    from traceconv.answers.weighted_stacks import Stacks


class Output(Struct, frozen=True):
    """A file to write a trace to, and how to write it.

    Attributes:
        path: a file, or "-" for standard output.
        to: the name of the writer; by default the ending of the path decides.
        force: whether a file that exists may be replaced.
        strict: whether to raise LostData if data of the input is lost.
        collective_flows: merges only: whether to draw flows between the members of a collective, from rank to rank in
            ascending order, where the members are certain.
        attribute: conversions and merges only: whether to add to each slice, as args, the samples, counts and
            primitives of other inputs during it. The running slices then become the outermost frames of call stacks.
        layer_counters: whether to draw these costs as counters, too; implies `attribute`.
        trim: the window of time to write: the name of an input, or a window in the form of `report --between`; "" for
            everything. Slices that cross an edge of the window stay whole.
    """

    path: AnyPath
    to: str | None = None
    force: bool = False
    strict: bool = False
    collective_flows: bool = False
    attribute: bool = False
    layer_counters: bool = False
    trim: str = ""


class Result(Struct, frozen=True):
    """The trace of a conversion or merge, and how its inputs were aligned.

    Attributes:
        trace: the merged trace; its sources hold the balance and the diagnostics of each input.
        receipt: a line for each clock of an input: how it was put on the time of the trace.
        causality: the checks that effects come after their causes; empty for a single input.
        together: the processes and threads that several inputs share.
    """

    trace: Trace
    receipt: list[ReceiptLine]
    causality: Causality = Causality(())
    together: Together = Together()

    def __repr__(self) -> str:
        """Return the summary of the trace, and the verdicts on its inputs."""
        verdicts = Counter(line.verdict for line in self.receipt)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        return f"<Result: {counts or 'no input'}\n{self.trace!r}>"


class Identified(NamedTuple):
    """The format of a file.

    Attributes:
        format: its name.
        reason: why the file is taken for it, in words.
    """

    format: str
    reason: str


def formats() -> dict[str, type[Importer]]:
    """Return all formats that can be read, by name."""
    return importers()


def identify(path: AnyPath, *, limits: Limits = DEFAULT_LIMITS) -> Identified:
    """Return the format of a file, and the reason. `limits` bounds how much is read.

    Raises:
        UnrecognizedFormat, AmbiguousFormat, InputError.
    """
    recognised = expand([path], limits=limits).single(path).recognised(limits)
    return Identified(recognised.cls.name, recognised.reason)


def read(
    path: AnyPath | Opened,
    *,
    format: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Trace:
    """Read one input, and return its laid-out trace on its own clocks.

    Args:
        path: a file, or "-" for standard input.
        format: the name of the importer; by default it is recognised.
        options: options of the importer: texts as on the command line, or the numbers and booleans that they stand for.
        limits: how long lines, and how large unpacked files may be.

    Raises:
        TraceconvError: the input cannot be read. All other problems are counted in the diagnostics of its source.
    """
    (trace,) = read_all(_single(path, format, Settings(options, limits=limits)), Memory())
    return _with_views(trace)


def convert(
    path: AnyPath,
    output: AnyPath | Output,
    *,
    format: str | None = None,
    options: Mapping[str, OptionValue] | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    memory: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Result:
    """Convert one input to one output. See `merge`."""
    to = output.path if isinstance(output, Output) else output
    return merge(_single(path, format, Settings(options, constraints, memory=memory, limits=limits), to), output)


def _single(path: AnyPath | Opened, format: str | None, settings: Settings, output: AnyPath = "") -> Opened:
    """Return the only recording in an input. Raises UsageError if there are several."""
    if isinstance(path, Opened):
        if format:
            raise UsageError(f"format {format!r} is given for recordings that are open: state it when they are opened")
        inputs = opened(path, settings)
        if (count := len(inputs.expanded.recordings)) != 1:
            raise UsageError(f"{count} recordings are open, expected one", hint="traceconv.merge takes several")
        return inputs
    inputs = opened([Input(path, format)], settings, output)
    inputs.expanded.single(path)
    return inputs


def merge(
    inputs: Inputs,
    output: AnyPath | Output | None = None,
    *,
    options: Mapping[str, OptionValue] | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    policy: Policy | None = None,
    report: AnyPath | Sequence[AnyPath] = (),
    memory: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Result:
    """Merge several inputs into one trace on one clock, and write it if an output is given.

    Args:
        inputs: paths, or `Input` objects. A folder or an archive stands for its recordings, in sorted order; `expand`
            lists them.
        output: a path, or an `Output`; None to write nothing, and use `Result.trace`.
        options: importer options without a file. Each goes to the one input whose importer has it.
        constraints: statements about the inputs and their clocks, in addition to those of the files.
        policy: what to do if neither files nor constraints relate the clocks.
        report: a path, or several, that end in .json or .html: how the inputs were aligned, or why not. Reports are
            written after the trace, or instead of it; `Output.force` also lets them replace files.
        memory: the memory to aim at, in bytes. Beyond it args, and then columns, go to temporary files in the folder
            TMPDIR. By default the size of the inputs plus 500 MB, or half of the free memory if that is less.
        limits: how long lines, and how large unpacked files may be, for each input.

    Raises:
        UnrelatedClocks: nothing relates the clocks of two inputs. Only the report is written.
        AmbiguousAlignment: the events of two inputs fit at several offsets. Only the report is written.
        UnverifiedAlignment: the events do not confirm the clocks. Only the report is written.
        InconsistentClocks: the constraints contradict themselves, the files or the events. Only the report is written.
        LostData: the output is strict, and data was lost. Nothing is written.
        TraceconvError: any other failure. Nothing is written, except that the trace exists if only a report failed.
    """
    to = Output(output) if isinstance(output, str | os.PathLike) else output
    path, force = (to.path, to.force) if to else ("", False)
    writer = _writer_of(to) if to else None
    files = opened(inputs, Settings(options, constraints, policy, memory, limits), path)
    if to:
        _refuse_overwriting(files, os.fspath(path))
        check_output(to)
    reports_to = _reports_of(report, path, files, force)
    if to and to.trim:
        from traceconv.answers.selection import check_trim

        check_trim(to.trim, list(map(shown, files.paths)))
    space = Memory(files.settings.memory)
    traces = read_all(files, space)
    alignment, checks = _aligned(traces, files, reports_to, force)
    rendered = _rendered(reports_to, traces, (alignment, checks))
    progress.set_stage("moving times")
    merged = merge_traces(traces, alignment, flows_of=checks if to and to.collective_flows else None)
    if len(traces) > 1:  # otherwise it was validated as read, and only its times were moved
        validate(merged)
    if to and writer:
        merged = _picture(merged, to, space)
        del traces  # their columns take memory that writing needs
        merged.forget()
        merged.sources[-1].notes.extend(writer.notes(merged))
        _write_to(to, writer, merged)
    _write_reports(rendered, force)
    return Result(_with_views(merged), alignment.receipt, checks, alignment.together)


def estimate(
    inputs: Inputs,
    *,
    options: Mapping[str, OptionValue] | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    policy: Policy | None = None,
    report: AnyPath | Sequence[AnyPath] = (),
    force: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[Alignment, Causality]:
    """Return how `merge` would put several inputs on one time axis, without writing a trace.

    The arguments are those of `merge`. `force` lets a report replace a file.

    Raises:
        UnrelatedClocks, AmbiguousAlignment, UnverifiedAlignment, InconsistentClocks: as for `merge`.
        TraceconvError: an input cannot be read, or the report cannot be written.
    """
    files = opened(inputs, Settings(options, constraints, policy, limits=limits))
    reports_to = _reports_of(report, "", files, force)
    traces = read_all(files, Memory(files.settings.memory))
    alignment, checks = _aligned(traces, files, reports_to, force)
    _write_reports(_rendered(reports_to, traces, (alignment, checks)), force)
    return alignment, checks


def report(
    inputs: Trace | Inputs,
    questions: Questions | None = None,
    **settings: Unpack[MergeArguments],
) -> Report:
    """Return tables about what the inputs recorded, on one clock: what was slow, how long steps took, what waited.

    Args:
        inputs: as for `merge`, or a trace.
        questions: the sections, and how to group their rows; all sections by default. The other arguments are those of
            `merge`.

    Raises:
        UsageError: a section or key is not known, a pattern cannot be read, or a trace is given with arguments that are
            for inputs.
        TraceconvError: as for `merge`.
    """
    from traceconv.answers import Questions, answers
    from traceconv.answers.section import Report

    questions = questions or Questions()
    questions.check()
    return Report(answers(*on_one_clock(inputs, **settings), questions))


def frames(
    inputs: Trace | Inputs,
    *,
    args: Sequence[str] = (),
    **settings: Unpack[MergeArguments],
) -> Frames:
    """Return the tables of a trace, or of inputs on one clock, as data frames.

    Args:
        args: the args that become columns of their own. The other arguments are those of `merge`.

    Raises:
        UsageError: an arg is given twice, or a trace is given with arguments that are for inputs.
        TraceconvError: as for `merge`.
    """
    from traceconv.answers.frames import Frames

    return Frames(*on_one_clock(inputs, **settings), args)


def query(
    inputs: Frames | Trace | Inputs,
    question: str,
    *,
    allow: Sequence[str] = (),
    **settings: Unpack[MergeArguments],
) -> Frame:
    """Return the answer to a question in SQL about a trace, or about inputs on one clock, as a data frame.

    Args:
        inputs: as for `merge`, or a trace, or its tables from `frames`, which several questions share.
        question: one SELECT over the views that docs/sql.md lists; it sees no variables of Python.
        allow: folders whose files the query may read. The other arguments are those of `merge`.

    Raises:
        UsageError: duckdb or pyarrow is not installed, the question is wrong or asks for what is locked, or a trace is
            given with arguments that are for inputs.
        TraceconvError: as for `merge`.
    """
    from traceconv.answers.frames import Frame, Frames
    from traceconv.database.question import ask, check

    check(question)
    found = on_one_clock(inputs.trace if isinstance(inputs, Frames) else inputs, **settings)
    table = ask(inputs if isinstance(inputs, Frames) else Frames(*found), question, allow)
    return Frame("query", lambda: table)


def _table_of(trace: Trace, name: str) -> pyarrow.Table:
    return frames(trace)[name].to_arrow()


def _answer_to(trace: Trace, question: str, allow: Sequence[str]) -> Frame:
    return query(trace, question, allow=allow)


def _picture_of(trace: Trace) -> Picture:
    from traceconv.answers import Questions
    from traceconv.answers.picture import PICTURED, Picture

    return Picture(report(trace, Questions(PICTURED)))


def _with_views(trace: Trace) -> Trace:
    """Return a trace that shows itself, answers SQL, and has tables that convert: `trace.slices.to_pandas()`."""
    return trace.with_tables(table_of=_table_of, picture_of=_picture_of, answer_to=_answer_to)


def export(
    inputs: Trace | Inputs,
    output: AnyPath | Output,
    *,
    by: str | None = None,
    args: Sequence[str] = (),
    **settings: Unpack[MergeArguments],
) -> Frames:
    """Write the tables of a trace, or of inputs on one clock, and return them.

    Args:
        output: a folder of parquet, csv or arrow files, one for each table, or a duckdb file; `to`, or its ending, says
            which.
        by: rank or input: a folder of folders, one for each rank or input, whose times are of the clocks of the inputs.
        args: the args that become columns of their own. The other arguments are those of `merge`.

    Raises:
        UsageError: the kind of file is unknown, an arg is given twice, the output exists, pyarrow or DuckDB is missing,
            the output has options that only traces have, or a trace is given with arguments that are for inputs.
        OutputError: the output cannot be written; no part of it stays behind.
        TraceconvError: as for `merge`.
    """
    from traceconv.answers.frames import Frames
    from traceconv.database.table_files import Partition, check_tables, write_tables

    if by not in (None, *Partition):
        raise UsageError(f"by {by}: tables are divided by {' or '.join(Partition)}")
    partition = Partition(by) if by else None
    output = output if isinstance(output, Output) else Output(output)
    path = os.fspath(output.path)
    if output != Output(output.path, output.to, output.force, output.strict):
        raise UsageError("an export writes tables: attribute, trim and other options of traces do not apply")
    check_tables(path, output.to, partition, args, force=output.force)
    trace, aligned = on_one_clock(inputs, **settings)
    if output.strict:
        refuse_losses(trace)
    tables = Frames(trace, aligned, args)
    write_tables(tables, path, output.to, partition, force=output.force)
    return tables


def stacks(
    inputs: Trace | Inputs,
    output: AnyPath | Output | None = None,
    *,
    slices: bool = False,
    **settings: Unpack[MergeArguments],
) -> Stacks:
    """Return the stacks of a trace, or of inputs on one clock, with weights, and write them if an output is given.

    Args:
        output: a file for a viewer; its ending says which: .folded, .speedscope.json or .pb.gz (pprof).
        slices: whether to take the slices with their self times, also if there are samples. The other arguments are
            those of `merge`.

    Raises:
        InputError: there are neither samples nor slices.
        UsageError: the ending is unknown, the file exists, the output has options that only traces have, or a trace is
            given with arguments that are for inputs.
        TraceconvError: as for `merge`.
    """
    from traceconv.answers.stack_files import check_stacks, write_stacks
    from traceconv.answers.weighted_stacks import stacks_of

    to = Output(output) if isinstance(output, str | os.PathLike) else output
    if to:
        if to != Output(to.path, force=to.force, strict=to.strict):
            raise UsageError("stacks are no trace: attribute, trim and other options of traces do not apply")
        check_stacks(os.fspath(to.path), force=to.force)
    trace, _ = on_one_clock(inputs, **settings)
    if to and to.strict:
        refuse_losses(trace)
    found = stacks_of(trace, slices=slices)
    if to:
        write_stacks(found, os.fspath(to.path), force=to.force)
    return found


def on_one_clock(inputs: Trace | Inputs, **settings: Unpack[MergeArguments]) -> tuple[Trace, Aligned]:
    """Return the trace of the inputs, as `merge` would write it, and how they were placed.

    Raises:
        UsageError: there are arguments for the reading or aligning of inputs, and a trace is given.
        TraceconvError: as for `merge`.
    """
    if isinstance(inputs, Trace):
        hint = "give them to read or merge, or give the paths in place of the trace"
        Settings(**settings).refuse("a trace was read and aligned already", hint)
        if len(inputs.clocks) <= 1 and not inputs.snapshots:
            return inputs, Aligned(earlier=inputs.receipt)
        alignment = align([inputs])
        return _with_views(merge_traces([inputs], alignment)), Aligned(alignment)
    files = opened(inputs, Settings(**settings))
    traces = read_all(files, Memory(files.settings.memory))
    alignment, checks = _aligned(traces, files, (), False)
    return _with_views(merge_traces(traces, alignment)), Aligned(alignment, checks)


def _aligned(
    traces: Sequence[Trace], files: Opened, reports_to: Sequence[str], force: bool
) -> tuple[Alignment, Causality]:
    """Return the alignment of traces that were read. A refusal is written to its reports before it is raised."""
    progress.set_stage("aligning")
    try:
        return checked_alignment(traces, policy=files.settings.policy, constraints=files.constraints)
    except AlignmentError as error:
        _write_reports(_rendered(reports_to, traces, error), force)
        raise


def clocks(
    inputs: Inputs,
    *,
    options: Mapping[str, OptionValue] | None = None,
    constraints: Constraints = NO_CONSTRAINTS,
    limits: Limits = DEFAULT_LIMITS,
) -> Survey:
    """Return the clocks of some inputs, how they are related, and what would relate the others.

    The arguments are those of `merge`.

    Raises:
        InconsistentClocks: the constraints contradict themselves or the files.
        TraceconvError: an input cannot be read.
    """
    from traceconv.align.clock_overview import survey

    files = opened(inputs, Settings(options, constraints, limits=limits))
    return survey(read_all(files, Memory(files.settings.memory)), files.constraints)


def _reports_of(report: AnyPath | Sequence[AnyPath], output: AnyPath, inputs: Opened, force: bool) -> list[str]:
    """Return the paths of the reports. Refuses what could not be written, before the work for it is done."""
    paths = [os.fspath(path) for path in ([report] if isinstance(report, str | os.PathLike) else report)]
    for path in paths:
        _refuse_overwriting(inputs, path)
    check_reports(paths, output, force=force)
    return paths


def check_output(output: Output, inputs: Sequence[AnyPath] = ()) -> None:
    """Raise the errors about a trace to write that are known before archives are unpacked and inputs are read.

    Args:
        output: what will be written.
        inputs: files that it must not replace.

    Raises:
        UsageError, OutputError: as for `merge`.
    """
    check_target(os.fspath(output.path), binary=_writer_of(output).binary, force=output.force, inputs=inputs)


def check_reports(paths: Sequence[str], output: AnyPath, inputs: Sequence[AnyPath] = (), *, force: bool) -> None:
    """Raise the errors about reports on an alignment that are known before the work for them is done.

    Args:
        paths: of the reports.
        output: the trace that is written, too; "" if none is.
        inputs: files that they must not replace.
        force: whether they may replace other files.

    Raises:
        UsageError, OutputError: as for `merge`.
    """
    if paths:
        from traceconv.align import report as reports
    for path in paths:
        reports.check_ending(path)
        if _same_place(path, output):
            raise UsageError(f"--report {path}: the output has the same name", hint="give the report another name")
        if sum(_same_place(path, other) for other in paths) > 1:
            raise UsageError(f"--report {path} is given twice", hint="one page and one for programs: .html and .json")
        check_target(path, binary=False, force=force, inputs=inputs)


def _same_place(path: str, other: AnyPath) -> bool:
    """Return whether what is written to one path replaces what is written to the other one, links and ./ followed."""
    return os.path.realpath(path) == os.path.realpath(other)


def _rendered(
    paths: Sequence[str], traces: Sequence[Trace], outcome: tuple[Alignment, Causality] | AlignmentError
) -> dict[str, bytes]:
    """Return the reports on an alignment with its checks, or on a refusal, by path."""
    if not paths:
        return {}
    from traceconv.align import report as reports

    if isinstance(outcome, AlignmentError):
        report = reports.refusal_document(traces, outcome)
    else:
        report = reports.document(traces, *outcome)
    return {path: reports.rendered(report, path) for path in paths}


def _write_reports(rendered: Mapping[str, bytes], force: bool) -> None:
    for path, data in rendered.items():
        write_output(path, partial(_put, data), binary=False, force=force)


def _put(data: bytes, sink: BinaryIO) -> None:
    sink.write(data)


def write(trace: Trace, output: AnyPath | Output) -> None:
    """Write a trace, as `read` or `Result.trace` gives it.

    Raises:
        UsageError: the output has `collective_flows`, which only a merge can draw.
        LostData: the output is strict, and data was lost in reading; nothing is written.
        UnrelatedClocks: the trace is on several clocks that nothing relates.
        TraceconvError: the output cannot be written.
    """
    output = output if isinstance(output, Output) else Output(output)
    if output.collective_flows:
        raise UsageError("collective_flows: flows of collectives are drawn by a merge", hint="traceconv.merge")
    if len(trace.clocks) > 1 or trace.snapshots:
        trace = merge_traces([trace], align([trace]))
    trace = trace.with_tables(sources=[source.copy() for source in trace.sources])
    _write_to(output, _writer_of(output), _picture(trace, output, Memory()))


def _picture(trace: Trace, output: Output, space: Memory) -> Trace:
    """Return what is to be drawn of a trace on one clock; its sources take the notes about that."""
    if output.attribute or output.layer_counters:
        from traceconv.answers.attributed import attributed

        progress.set_stage("attributing samples")
        trace = attributed(trace, space.parts(), counters=output.layer_counters)
        validate(trace)
    if output.trim:
        from traceconv.answers.selection import trimmed

        progress.set_stage("cutting to the window")
        trace = trimmed(trace, output.trim)
        validate(trace)
    return trace


def _write_to(output: Output, writer: Writer, trace: Trace) -> None:
    if output.strict:
        refuse_losses(trace)
    path, write_all = os.fspath(output.path), partial(_write_all, writer, trace)
    write_output(path, write_all, binary=writer.binary, force=output.force)


def _write_all(writer: Writer, trace: Trace, sink: BinaryIO) -> None:
    written = msgspec.structs.astuple(writer.write(trace, sink))
    if written != tuple(trace.counts().values()):
        raise RuntimeError(f"the writer {writer.name} wrote {written} of {trace.counts()}")


def _writer_of(output: Output) -> Writer:
    """Return the writer that the user names, or the one for the ending of the output; Perfetto for a stream."""
    if output.to or output.path == "-":
        return writer_named(output.to or "perfetto", compress=is_compressed(output.path))
    return writer_for_path(output.path)


def _refuse_overwriting(inputs: Opened, output: str) -> None:
    """Raise UsageError if the output is one of the inputs, by whatever name, also one in a folder."""
    if output != "-" and any(source.is_same_file(output) for source in inputs.sources):
        raise would_replace(output)


def refuse_losses(trace: Trace) -> None:
    """Raise LostData if data of an input was lost in reading."""
    for source in trace.sources:
        if source.diagnostics.lost:
            worst = next(entry for entry in source.diagnostics if entry.code.kind is ProblemKind.LOST)
            raise LostData(f"{source.name}: {worst.message()}", hint="without --strict the rest is written")
