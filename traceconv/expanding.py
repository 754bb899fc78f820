"""Replace folders and archives by the recordings in them, before inputs are opened.

What a format knows is taken, in sorted order; a plain log with times only if it is named itself. One recording in
several forms is taken once: of equal contents the unpacked one, perf.data rather than what was printed of it (see
`model.source_info`), and the recordings rather than a trace that traceconv made of them before.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from traceconv.errors import AmbiguousFormat, ImporterFailed, InputError, TraceconvError, UnrecognizedFormat, UsageError
from traceconv.families.importer import extras
from traceconv.families.outputs import writers
from traceconv.io.folders import AnyPath, Member, files_of, shown
from traceconv.io.limits import DEFAULT_LIMITS, Limits
from traceconv.io.source import Source, digests, present
from traceconv.model.source_info import Form, Mark, other_forms
from traceconv.model.trace import Trace
from traceconv.model.trace_inputs import names_of_sources
from traceconv.reading import Recognised, form_of, read_start, recognise

#: The errors for files of a folder that are not recordings.
_NO_RECORDING = (UnrecognizedFormat, AmbiguousFormat, InputError)
#: To compare the forms of a recording, this many events are read of each file at first.
_FIRST_EVENTS = 4096


class _Formed(NamedTuple):
    """A file that is one of several forms of a recording."""

    form: Form
    path: str
    recognition: Recognised


@dataclass(frozen=True, slots=True)
class Recording:
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


@dataclass
class Expanded:
    """The recordings behind the inputs of a call.

    Attributes:
        recordings: the inputs that are files, and the recordings of folders and archives, these in sorted order.
        left_out: the files that are not taken, with the reason.
    """

    recordings: list[Recording] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

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
                if extras(recognised.cls).only_named:
                    expanded.left_out[shown(file)] = "a plain log: name it to include it"
                else:
                    take(Recording(file, number, True, recognised))
        known |= {os.path.realpath(file) for file in files.paths}
    if any(one.is_optional for one in expanded.recordings):
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
        expanded.recordings = [replace(one, repeats=reasons.get(shown(one.path), "")) for one in expanded.recordings]
    else:
        expanded.left_out |= reasons
        expanded.recordings = [one for one in expanded.recordings if shown(one.path) not in reasons]


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
    opened = [(one, source) for one in recordings if (source := _source(one, limits)) is not None]
    files, sources = [one for one, _ in opened], [source for _, source in opened]
    _note_results(files, sources, reasons)
    _note_copies(files, sources, reasons)
    forms = sorted(
        (
            _Formed(form, shown(one.path), one.recognition)
            for one in files
            if one.is_optional
            and one.recognition
            and (form := form_of(one.recognition.cls(), one.recognition.source)) is not None
            and shown(one.path) not in reasons
        ),
        key=lambda one: one.form.rank,
    )
    if len({one.form.rank for one in forms}) > 1:
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
        shown(one.path): stated
        for one in files
        if one.is_optional and one.recognition and (stated := _made_of(one.recognition))
    }
    there = present({one for stated in made_of.values() for one in stated}, sources)
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
    kept = [index for index, one in enumerate(files) if shown(one.path) not in reasons]
    hashes = dict(zip(kept, digests([sources[index] for index in kept]), strict=True))
    first: dict[bytes, int] = {}
    for index in sorted(kept, key=lambda one: _preference(files[one], sources[one])):
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

    Args:
        forms: the files, the best form first.
        reasons: is extended.
    """
    longer = _compare(forms, reasons, _FIRST_EVENTS)
    for marks in {one.form.marks for one in forms if one.path in longer}:
        left = [one for one in forms if one.form.marks is marks and one.path not in reasons]
        if len({one.form.rank for one in left}) > 1 and any(one.path in longer for one in left):
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
    """Return the first rows of a file, 0 for all; None if it cannot be read: reading it as an input raises the error.

    Raises:
        ImporterFailed: the importer has a bug.
    """
    try:
        return read_start(recording, rows)
    except ImporterFailed:
        raise
    except TraceconvError:
        return None
