"""The library: read, align, merge, write. The command line is a thin layer over these functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from traceconv.align import ReceiptLine, align
from traceconv.diagnostics import Severity, declare
from traceconv.errors import LostData, TraceconvError, UsageError
from traceconv.ir.builder import Builder
from traceconv.ir.trace import SourceInfo, Trace
from traceconv.lanes import lay_out
from traceconv.merge import merge_traces
from traceconv.output import write_output
from traceconv.registry import Importer, Match, configure, importer_class, importers
from traceconv.registry import identify as _identify
from traceconv.source import Source
from traceconv.validate import validate
from traceconv.writers import Writer, is_compressed, writer_for_path, writer_named

CUT_SHORT = declare(
    "source.cut_short",
    Severity.DATA_LOSS,
    "the compressed file ends before its end mark: it was cut off; everything before the cut was read",
)

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Result:
    """What a conversion or merge did.

    Attributes:
        trace: the trace that was written; its sources hold the balance and the diagnostics of each input.
        receipt: how each input was put on the time of the trace.
    """

    trace: Trace
    receipt: list[ReceiptLine]


def formats() -> dict[str, type[Importer]]:
    """All formats that can be read, by name."""
    return importers()


def identify(path: AnyPath) -> tuple[str, str]:
    """The name of the format of a file, and the reason.

    Raises:
        UnrecognizedFormat, AmbiguousFormat, InputError.
    """
    cls, match = _identify(Source(path))
    return cls.name, match.reason


def read(path: AnyPath, *, format: str | None = None, options: Mapping[str, str] | None = None) -> Trace:
    """One input as a laid-out trace on its own clocks.

    Args:
        path: a file, or "-" for standard input.
        format: the importer, if it shall not be found out.
        options: options of the importer as texts.

    Raises:
        TraceconvError: the input cannot be read; all other problems are counted in the diagnostics of the source.
    """
    return read_source(Source(path), format=format, options=options)


def read_source(source: Source, *, format: str | None = None, options: Mapping[str, str] | None = None) -> Trace:
    """Like `read`, for an input that is open already."""
    cls, _ = (importer_class(format), Match.yes("named")) if format else _identify(source)
    importer = configure(cls, dict(options or {}))
    builder = Builder(SourceInfo(source.name, cls.name), cls.clock)
    importer.read(source, builder)
    if source.cut_short:
        builder.problem(CUT_SHORT, source.name)
    trace = lay_out(builder.finish())
    validate(trace)
    return trace


def convert(
    path: AnyPath,
    output: AnyPath,
    *,
    format: str | None = None,
    to: str | None = None,
    options: Mapping[str, str] | None = None,
    force: bool = False,
    strict: bool = False,
) -> Result:
    """One input to one output. See `merge`."""
    return merge([path], output, formats=[format], to=to, options=options, force=force, strict=strict)


def merge(
    paths: Sequence[AnyPath],
    output: AnyPath,
    *,
    formats: Sequence[str | None] | None = None,
    to: str | None = None,
    options: Mapping[str, str] | None = None,
    offsets: Mapping[int, int] | None = None,
    same_machine: bool = False,
    force: bool = False,
    strict: bool = False,
) -> Result:
    """Several inputs to one output, on one clock.

    Args:
        paths: the inputs.
        output: a path, or "-" for standard output.
        formats: for each input its importer, or None to find it out.
        to: the name of the writer; by default the ending of the output decides.
        options: importer options; each must be known to at least one of the importers.
        offsets: for some inputs, by index, ns to add to each time.
        same_machine: whether equal pids of different inputs are known to be the same process.
        force: whether an existing output may be replaced.
        strict: whether lost data is an error.

    Raises:
        UnrelatedClocks: two inputs have clocks that nothing relates; nothing is written.
        LostData: strict, and something was lost; nothing is written.
        TraceconvError: any other failure; nothing is written.
    """
    writer = _writer_of(output, to)
    sources = [Source(path) for path in paths]
    _refuse_overwriting(sources, os.fspath(output))
    traces = _read_all(sources, list(formats or [None] * len(sources)), dict(options or {}))
    alignment = align(traces, offsets)
    merged = merge_traces(traces, alignment, same_machine=same_machine)
    if len(traces) > 1:  # a single one was validated as read, and only its times were moved
        validate(merged)
    if strict:
        _refuse_losses(merged)

    def write(sink: BinaryIO) -> None:
        written = writer.write(merged, sink)
        assert written.slices == len(merged.slices.ts), "the writer lost slices"
        assert written.instants == len(merged.instants.ts), "the writer lost instants"
        assert written.counters == len(merged.counters.ts), "the writer lost counters"

    write_output(os.fspath(output), write, binary=writer.binary, force=force)
    return Result(merged, alignment.receipt)


def write(trace: Trace, output: AnyPath, *, to: str | None = None, force: bool = False) -> None:
    """Write a trace that is on one clock, as `Result.trace` is."""
    writer = _writer_of(output, to)
    write_output(os.fspath(output), lambda sink: writer.write(trace, sink), binary=writer.binary, force=force)


def _writer_of(output: AnyPath, to: str | None) -> Writer:
    """The writer that the user names, or the one for the ending of the output; Perfetto for a stream."""
    if to or output == "-":
        return writer_named(to or "perfetto", compress=is_compressed(output))
    return writer_for_path(output)


def _refuse_overwriting(sources: Sequence[Source], output: str) -> None:
    for source in sources:
        if output != "-" and source.is_same_file(output):
            raise UsageError(f"{output}: the output would replace an input", hint="give the output another name")


def _read_all(sources: Sequence[Source], formats: list[str | None], options: dict[str, str]) -> list[Trace]:
    """All inputs; every one is tried, so that one run names all that is wrong."""
    classes = [importer_class(name) if name else None for name in formats]
    traces: list[Trace] = []
    errors: list[TraceconvError] = []
    used: set[str] = set()
    for source, cls in zip(sources, classes, strict=True):
        try:
            cls = cls or _identify(source)[0]
            mine = {key: value for key, value in options.items() if key in option_names(cls)}
            used |= mine.keys()
            traces.append(read_source(source, format=cls.name, options=mine))
        except TraceconvError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else SeveralErrors(errors)
    unknown = options.keys() - used
    if unknown:
        names = ", ".join(sorted({trace.sources[0].format for trace in traces}))
        raise UsageError(f"no input has an option {min(unknown)!r}", hint=f"see `traceconv formats NAME` for {names}")
    return traces


class SeveralErrors(TraceconvError):
    """More than one input failed."""

    def __init__(self, errors: Sequence[TraceconvError]) -> None:
        super().__init__(f"{len(errors)} inputs failed")
        self.errors = list(errors)
        self.exit_code = max(error.exit_code for error in errors)


def option_names(cls: type[Importer]) -> list[str]:
    """The options of an importer."""
    return list(cls.__dataclass_fields__)  # type: ignore[attr-defined]


def _refuse_losses(trace: Trace) -> None:
    for source in trace.sources:
        if source.diagnostics.lost:
            worst = next(d for d in source.diagnostics if d.code.severity >= Severity.DATA_LOSS)
            raise LostData(f"{source.name}: {worst.describe()}", hint="without --strict the rest is written")
