"""Replace folders and archives by the recordings in them, before inputs are opened.

What a format knows is taken, in sorted order; a plain log with times only if it is named itself. One recording in
several forms is taken once: of equal contents the unpacked one, perf.data rather than what was printed of it, and the
recordings rather than a trace that traceconv made of them before.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from traceconv.errors import AmbiguousFormat, InputError, TraceconvError, UnrecognizedFormat, UsageError
from traceconv.io.folders import AnyPath, Member, files_of, shown
from traceconv.io.limits import DEFAULT_LIMITS, Limits
from traceconv.io.same import digests
from traceconv.io.source import Source
from traceconv.reading import Recognised, read_start, recognise
from traceconv.writers.metadata import stated_sources

#: The errors for files of a folder that are not recordings.
_NO_RECORDING = (UnrecognizedFormat, AmbiguousFormat, InputError)
#: To compare the forms of a recording, this many events are read of each file, and this many of their samples compared.
_FIRST_EVENTS, _FIRST_SAMPLES = 4096, 256
#: The fewest shared samples that show that two files are the same recording.
_LEAST_SAMPLES = 8


#: A sample, reduced to what all forms hold: its time in µs and its thread.
_Sample = tuple[int, int]
#: An archive, and a time that compares with those of the same archive.
_Age = tuple[str, tuple[int | float, ...]]


@dataclass(frozen=True, slots=True)
class Recording:
    """A file that is read as an input.

    Attributes:
        path: an input that is a file, or a file in a folder or archive.
        input: the number of the input that it is or is part of.
        is_inside: whether it is part of a folder or archive.
        found: its format, if it was recognised already.
    """

    path: AnyPath
    input: int
    is_inside: bool = False
    found: Recognised | None = None

    def recognised(self, limits: Limits) -> Recognised:
        """Return the recording with its format. Raises UnrecognizedFormat, AmbiguousFormat or InputError."""
        return self.found or recognise(Source(self.path, limits=limits))


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
        each: whether the files are looked at one by one: then copies and other forms of a recording are taken, too.
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
            elif found := _recognised(path, limits, expanded, (UnrecognizedFormat, AmbiguousFormat)):
                take(Recording(path, number, found=found))
            continue
        expanded.left_out |= files.left_out
        inside: list[tuple[AnyPath, Recognised]] = []
        for file in files.found:
            if os.path.realpath(file) in known:
                continue  # it is an input itself, or in another one
            if output and os.path.realpath(file) == os.path.realpath(output):
                expanded.left_out[shown(file)] = "it is the output"
            elif _is_named(file, named):
                take(Recording(file, number, is_inside=True))
            elif found := _recognised(file, limits, expanded):
                if getattr(found.cls, "only_named", False):
                    expanded.left_out[shown(file)] = "a plain log: name it to include it"
                else:
                    inside.append((file, found))
        if not each:
            taken = [path for path in paths if os.path.isfile(path)]
            taken += [recording.path for recording in expanded.recordings if recording.is_inside]
            inside = _once(_without_results(inside, taken, expanded), expanded)
        for file, found in inside:
            take(Recording(file, number, True, found))
        known |= {os.path.realpath(file) for file in files.found}
    if not expanded.recordings:
        names = ", ".join(map(shown, paths))
        reasons = "; ".join(f"{path}: {reason}" for path, reason in list(expanded.left_out.items())[:3])
        raise InputError(f"{names}: no recording among the files", hint=reasons or "the folder is empty")
    return expanded


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


def _without_results(
    found: Sequence[tuple[AnyPath, Recognised]], named: Collection[AnyPath], expanded: Expanded
) -> list[tuple[AnyPath, Recognised]]:
    """Return the recordings without the traces that traceconv made of them, which are noted in `expanded`.

    A trace states only the names of its inputs, not their content. So all of them must be recordings in its folder,
    or be at the stated path, and none may have changed since the trace was written: otherwise the trace may hold
    what is nowhere else.

    Args:
        found: the recordings of a folder or an archive.
        named: the other recordings that are taken.
        expanded: gets the notes.
    """
    ages = {os.path.realpath(shown(file)): _age(file) for file in (*named, *(file for file, _ in found))}
    kept = []
    for file, recording in found:
        made_of = _made_of(recording)
        if made_of and all(_is_original(name, file, ages) for name in made_of):
            expanded.left_out[shown(file)] = f"traceconv made it of {', '.join(map(os.path.basename, made_of))}"
        else:
            kept.append((file, recording))
    return kept


def _is_original(name: str, made: AnyPath, ages: Mapping[str, _Age]) -> bool:
    """Return whether an input that the trace `made` states is there, and as old as the trace or older.

    Args:
        name: the base name of the input; its path, as stated, where several had the same base name.
        made: the trace.
        ages: the recordings that are there, by their paths.
    """
    archive, written = ages[os.path.realpath(shown(made))]
    folders = (os.path.dirname(shown(made)), *([os.curdir] if os.path.dirname(name) else []))
    for path in {os.path.realpath(os.path.join(folder, name)) for folder in folders}:
        if path in ages and path != os.path.realpath(shown(made)):
            its_archive, changed = ages[path]
            if its_archive == archive and changed <= written:
                return True
    return False


def _age(file: AnyPath) -> _Age:
    """Return the archive that a file is in ("" for none), and when the file was last changed."""
    if isinstance(file, Member):
        return file.archive, file.changed
    return "", (os.stat(file).st_mtime_ns,)


def _made_of(recording: Recognised) -> list[str]:
    """Return the names of the inputs of a trace that traceconv wrote, [] for any other file."""
    if b"traceconv" not in recording.source.head().data:
        return []
    try:
        return stated_sources(read_start(recording, _FIRST_EVENTS).metadata)
    except TraceconvError:
        return []  # the error is raised when it is read


def _once(found: Sequence[tuple[AnyPath, Recognised]], expanded: Expanded) -> list[tuple[AnyPath, Recognised]]:
    """Return each recording once, in its best form; note the other forms in `expanded`."""
    sources = [recording.source for _, recording in found]
    first: dict[bytes, int] = {}
    hashes = digests(sources)
    for index in sorted(range(len(found)), key=lambda one: (isinstance(found[one][0], Member), sources[one].is_packed)):
        if hashes[index]:
            same = first.setdefault(hashes[index], index)
            if same != index:
                expanded.left_out[shown(found[index][0])] = f"the same content as {shown(found[same][0])}"
    found = [one for one in found if shown(one[0]) not in expanded.left_out]
    forms = [(_form(recording), path, recording) for path, recording in found if _form(recording) is not None]
    if len({form for form, _, _ in forms}) > 1:
        _note_other_forms(sorted(forms, key=lambda one: one[0] or 0), expanded)
    return [one for one in found if shown(one[0]) not in expanded.left_out]


def _form(recording: Recognised) -> int | None:
    form: int | None = getattr(recording.cls, "form", None)
    return form


def _note_other_forms(found: Sequence[tuple[int | None, AnyPath, Recognised]], expanded: Expanded) -> None:
    """Leave out files that were printed from another one: those that share half of the first samples with it.

    Args:
        found: the files with their forms, the best form first.
        expanded: gets the notes.
    """
    owners: dict[_Sample, int] = {}
    samples: list[set[_Sample]] = []
    for number, (form, path, recording) in enumerate(found):
        samples.append(_first_samples(recording))
        shared = Counter(owners[sample] for sample in samples[-1] if sample in owners)
        for owner, count in shared.most_common(1):
            end = min(max(samples[-1]), max(samples[owner]))
            least = min(sum(sample <= end for sample in samples[one]) for one in (number, owner))
            if form != found[owner][0] and count >= _LEAST_SAMPLES and 2 * count >= least:
                better = shown(found[owner][1])
                expanded.left_out[shown(path)] = f"{recording.cls.name} of the same recording as {better}"
        if shown(path) not in expanded.left_out:
            for sample in samples[-1]:
                owners.setdefault(sample, number)


def _first_samples(recording: Recognised) -> set[_Sample]:
    """Return the first samples of a file; empty if it cannot be read: then reading it as an input raises the error."""
    try:
        trace = read_start(recording, _FIRST_EVENTS)
    except TraceconvError:
        return set()
    times, tracks = trace.samples.ts[:_FIRST_SAMPLES].tolist(), trace.samples.track[:_FIRST_SAMPLES].tolist()
    return {(ts // 1000, trace.tracks[track].tid or 0) for ts, track in zip(times, tracks, strict=True)}
