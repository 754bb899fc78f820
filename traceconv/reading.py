"""Read inputs: find the recordings in folders and archives, recognise the format of each, and read it into a trace.

What a format knows is taken, in sorted order; a plain log with times only if it is named itself. One recording in
several forms is taken once: of equal contents the unpacked one, perf.data rather than what was printed of it (see
`Form`), and the recordings rather than a trace that traceconv made of them before.

One input is read in five steps.

1. `io.source` opens and unpacks it.
2. `io.log_collectors` removes the prefixes that log collectors put before each line.
3. `families.index` has the signatures of formats, `families.registry` asks their importers which one it is.
4. The importer reads it into a `model.builder.Builder`.
5. The trace of the builder is laid out, shortened and validated. The traces of the processes in one log are joined.
"""

from __future__ import annotations

import gc
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from traceconv.errors import (
    AmbiguousFormat,
    ImporterFailed,
    InputError,
    NothingRead,
    TraceconvError,
    UnrecognizedFormat,
    UsageError,
)
from traceconv.families.importer import Certainty, Importer, Match
from traceconv.families.outputs import writers
from traceconv.families.registry import answer_of, configure, formats_called, identify, importer_class
from traceconv.io import progress
from traceconv.io.folders import AnyPath, Member, files_of, shown
from traceconv.io.limits import DEFAULT_LIMITS, Limits, too_large
from traceconv.io.log_collectors import Collected, Stream, collected
from traceconv.io.shown import Counted
from traceconv.io.source import Source, digests, present
from traceconv.io.spill import Memory, give_back
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import lost, noted
from traceconv.model.drawable import shorten
from traceconv.model.dump import as_recorded
from traceconv.model.event_tables import Enough
from traceconv.model.layout import lay_out, validate
from traceconv.model.source_info import Form, Mark, SourceInfo, other_forms
from traceconv.model.trace import Trace
from traceconv.model.trace_inputs import join_streams, names_of_sources
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
    for collector in collected(source):
        identified = named or _first_recognised(collector, among)
        if identified is None or (collector.arrivals and _reads_arrivals(source, named, among)):
            continue
        cls, match = identified
        streams = [
            stream
            for stream in collector.streams
            if collector.by_name or answer_of(cls, stream).certainty > Certainty.NO
        ]
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
    return identified is not None and identified[0].reads_arrivals


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
    """Return the laid-out trace of an input or of one of its streams; of about `rows` events unless `rows` is 0."""
    info = SourceInfo(
        name,
        importer.name,
        layer=importer.layer,
        marks=importer.marks,
        form=importer.form(source.head()),
        path=source.argument,
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


def _line_of(error: Exception, importer: Importer) -> str:
    """Return the line of an importer where an error was raised, else that of its `read`: "/path/toy.py, line 12"."""
    code = getattr(type(importer).read, "__code__", None)
    if code is None:
        return type(importer).__module__
    import traceback

    folder = os.path.dirname(code.co_filename)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if os.path.dirname(frame.filename) == folder]
    file, line = (frames[-1].filename, frames[-1].lineno) if frames else (code.co_filename, code.co_firstlineno)
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
    listed = f"`traceconv formats {source.format}` lists what is read; --from NAME reads it as another format"
    raise NothingRead(
        display,
        "",
        f"nothing of it could be read: {count} x {reason.code.help} ({reason.code.name}){where}",
        hint="" if reason.code.unmeasured else listed,
    )


#: The errors for files of a folder that are not recordings.
_NO_RECORDING = (UnrecognizedFormat, AmbiguousFormat, InputError)
#: To compare the forms of a recording, this many events are read of each file at first.
_FIRST_EVENTS = 4096


class _Formed(NamedTuple):
    """A file that is one of several forms of a recording."""

    form: Form
    path: str
    recognition: Recognised


class Recording(Struct, frozen=True):
    """A file that is read as an input.

    Attributes:
        path: an input that is a file, or a file in a folder or archive.
        input: the number of the input that it is or is part of.
        is_inside: whether it is part of a folder or archive.
        recognition: its format, if it was recognised already.
        repeats: why it is left out where several inputs are merged: it is in another one; "" for all others.
    """

    path: AnyPath
    input: int
    is_inside: bool = False
    recognition: Recognised | None = None
    repeats: str = ""

    @property
    def is_optional(self) -> bool:
        """Whether the user named only the folder or archive that it is in."""
        return self.is_inside and self.recognition is not None

    def recognised(self, limits: Limits) -> Recognised:
        """Return the recording with its format. Raises UnrecognizedFormat, AmbiguousFormat or InputError."""
        return self.recognition or recognise(Source(self.path, limits=limits))


class Expanded(Struct):
    """The recordings behind the inputs of a call.

    Attributes:
        recordings: the inputs that are files, and the recordings of folders and archives, these in sorted order.
        left_out: the files that are not taken, with the reason.
    """

    recordings: list[Recording] = []
    left_out: dict[str, str] = {}

    @property
    def paths(self) -> list[AnyPath]:
        """The files."""
        return [recording.path for recording in self.recordings]

    def single(self, path: AnyPath) -> Recording:
        """Return the only recording in `path`. Raises UsageError if there are several."""
        if len(self.recordings) > 1:
            raise UsageError(
                f"{shown(path)}: holds {len(self.recordings)} recordings",
                hint=f"traceconv merge {shlex.quote(shown(path))} reads them all",
            )
        return self.recordings[0]


def expand(
    paths: Sequence[AnyPath],
    *,
    skip_unknown: bool = False,
    named: Collection[str] = (),
    output: AnyPath = "",
    each: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Expanded:
    """Return the recordings of folders and archives, and the other inputs unchanged.

    Args:
        paths: files, folders and archives (zip, tar, tar.gz); "-" for standard input.
        skip_unknown: whether to leave out files of an unknown format.
        named: files that are taken whatever they are, called as messages call them, or by their base names.
        output: a file that is not taken from a folder, since it will be written.
        each: whether the files are looked at one by one: then copies and other forms of a recording are taken, too, and
            marked as such.
        limits: what each input may take.

    Raises:
        InputError: a folder or an archive cannot be read, or none of the inputs is a recording.
        UsageError: standard input is given twice.
    """
    if list(paths).count("-") > 1:
        raise UsageError("- is given more than once: standard input can be read only once")
    expanded = Expanded()
    take = expanded.recordings.append
    known = {os.path.realpath(path) for path in paths if os.path.isfile(path)}
    for number, path in enumerate(paths):
        files = files_of(path, limits)
        if files is None:
            if not skip_unknown or _is_named(path, named) or not os.path.isfile(path):
                take(Recording(path, number))
            elif recognised := _recognised(path, limits, expanded, (UnrecognizedFormat, AmbiguousFormat)):
                take(Recording(path, number, recognition=recognised))
            continue
        expanded.left_out |= files.left_out
        for file in files.paths:
            if os.path.realpath(file) in known:
                continue  # it is an input itself, or in another one
            if output and os.path.realpath(file) == os.path.realpath(output):
                expanded.left_out[shown(file)] = "it is the output"
            elif _is_named(file, named):
                take(Recording(file, number, is_inside=True))
            elif recognised := _recognised(file, limits, expanded):
                if recognised.cls.only_named:
                    expanded.left_out[shown(file)] = "a plain log: name it to include it"
                else:
                    take(Recording(file, number, True, recognised))
        known |= {os.path.realpath(file) for file in files.paths}
    if any(recording.is_optional for recording in expanded.recordings):
        _take_once(expanded, each, limits)
    if not expanded.recordings:
        names = ", ".join(map(shown, paths))
        reasons = "; ".join(f"{path}: {reason}" for path, reason in list(expanded.left_out.items())[:3])
        raise InputError(f"{names}: no recording among the files", hint=reasons or "the folder is empty")
    return expanded


def _take_once(expanded: Expanded, each: bool, limits: Limits) -> None:
    """Leave out the recordings that are in others already; if `each` is looked at, mark them instead."""
    reasons = _repeats(expanded.recordings, limits)
    if each:
        expanded.recordings = [
            replace(recording, repeats=reasons.get(shown(recording.path), "")) for recording in expanded.recordings
        ]
    else:
        expanded.left_out |= reasons
        expanded.recordings = [recording for recording in expanded.recordings if shown(recording.path) not in reasons]


def _is_named(path: AnyPath, named: Collection[str]) -> bool:
    return shown(path) in named or os.path.basename(shown(path)) in named


def _recognised(
    path: AnyPath, limits: Limits, expanded: Expanded, left_out: tuple[type[TraceconvError], ...] = _NO_RECORDING
) -> Recognised | None:
    """Return a file with its format; None after one of the errors in `left_out`, which is noted in `expanded`."""
    try:
        return recognise(Source(path, limits=limits))
    except left_out as error:
        expanded.left_out[shown(path)] = error.reason
        return None


def _repeats(recordings: Sequence[Recording], limits: Limits) -> dict[str, str]:
    """Return which recordings of folders and archives are in the others already, with the reason.

    Inputs that the user named are never among them.
    """
    reasons: dict[str, str] = {}
    opened = [(recording, source) for recording in recordings if (source := _source(recording, limits)) is not None]
    files, sources = [recording for recording, _ in opened], [source for _, source in opened]
    _note_results(files, sources, reasons)
    _note_copies(files, sources, reasons)
    forms = sorted(
        (
            _Formed(form, shown(recording.path), recording.recognition)
            for recording in files
            if recording.is_optional
            and recording.recognition
            and (form := recording.recognition.cls().form(recording.recognition.source.head())) is not None
            and shown(recording.path) not in reasons
        ),
        key=lambda formed: formed.form.rank,
    )
    if len({formed.form.rank for formed in forms}) > 1:
        _note_other_forms(forms, reasons)
    return reasons


def _source(recording: Recording, limits: Limits) -> Source | None:
    """Return the source of a recording; None for a stream, or if the file cannot be read: reading reports that."""
    if recording.recognition:
        return recording.recognition.source
    try:
        source = Source(recording.path, limits=limits) if os.path.isfile(recording.path) else None
        if source is not None:
            source.head()
    except InputError:
        return None
    return source


def _note_results(files: Sequence[Recording], sources: Sequence[Source], reasons: dict[str, str]) -> None:
    """Add to `reasons` the traces that traceconv made of files that are there, unchanged or as copies."""
    made_of = {
        shown(recording.path): stated
        for recording in files
        if recording.is_optional and recording.recognition and (stated := _made_of(recording.recognition))
    }
    there = present({mark for stated in made_of.values() for mark in stated}, sources)
    for path, stated in made_of.items():
        if stated.keys() <= there:
            reasons[path] = f"traceconv made it of {', '.join(map(os.path.basename, stated.values()))}"


def _made_of(recording: Recognised) -> dict[str, str]:
    """Return the names of the inputs of a trace that traceconv wrote, by fingerprint; empty for any other file."""
    if b"traceconv" not in recording.source.head().data:
        return {}
    try:
        stated = (names_of_sources(writer.stated_sources(recording.source)) for writer in writers())
        return next(filter(None, stated), {})
    except InputError:
        return {}  # the error is raised when it is read


def _note_copies(files: Sequence[Recording], sources: Sequence[Source], reasons: dict[str, str]) -> None:
    """Add to `reasons` the files with the content of another one; kept is one that is named, or else not packed."""
    kept = [index for index, recording in enumerate(files) if shown(recording.path) not in reasons]
    hashes = dict(zip(kept, digests([sources[index] for index in kept]), strict=True))
    first: dict[bytes, int] = {}
    for index in sorted(kept, key=lambda at: _preference(files[at], sources[at])):
        if hashes[index]:
            same = first.setdefault(hashes[index], index)
            if same != index and files[index].is_optional:
                reasons[shown(files[index].path)] = f"the same content as {shown(files[same].path)}"


def _preference(recording: Recording, source: Source) -> tuple[bool, bool, bool]:
    """Return a sort key: of files with one content, the lowest is kept."""
    return recording.is_optional, isinstance(recording.path, Member), source.is_packed


def _note_other_forms(forms: Sequence[_Formed], reasons: dict[str, str]) -> None:
    """Add to `reasons` the files that are another form of the recording of another file.

    First their starts are compared. In file order, two forms may start with different events, and sums are those of the
    whole file. So where several forms are left, and one of them is longer, the files are read to their end.
    """
    longer = _compare(forms, reasons, _FIRST_EVENTS)
    for marks in {formed.form.marks for formed in forms if formed.path in longer}:
        left = [formed for formed in forms if formed.form.marks is marks and formed.path not in reasons]
        if len({formed.form.rank for formed in left}) > 1 and any(formed.path in longer for formed in left):
            _compare(left, reasons, 0)


def _compare(forms: Sequence[_Formed], reasons: dict[str, str], rows: int) -> set[str]:
    """Add other forms to `reasons` by the first rows of each file, 0 for all; return the files with more rows."""
    files: list[tuple[Form, set[Mark]]] = []
    longer: set[str] = set()
    for form, path, recording in forms:
        trace = _start_of(recording, rows)
        files.append((form, form.marks(trace) if trace else set()))
        if trace and rows and sum(trace.counts().values()) >= rows:
            longer.add(path)
    for number, owner in other_forms(files).items():
        reasons[forms[number].path] = (
            f"{forms[number].recognition.cls.name} of the same recording as {forms[owner].path}"
        )
    return longer


def _start_of(recording: Recognised, rows: int) -> Trace | None:
    """Return the first rows of a file, 0 for all; None if it cannot be read: reading it raises the error."""
    try:
        return read_start(recording, rows)
    except ImporterFailed:
        raise
    except TraceconvError:
        return None
