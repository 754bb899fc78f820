"""One step before inputs are opened: folders and archives become the recordings in them.

What a format knows is taken, in sorted order; a plain log with times only if it is named itself. One recording in
several forms is taken once: of equal contents the unpacked one, and perf.data rather than what was printed of it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from traceconv.errors import AmbiguousFormat, InputError, TraceconvError, UnrecognizedFormat, UsageError
from traceconv.io.folders import AnyPath, files_of, shown
from traceconv.io.limits import DEFAULT_LIMITS, Limits
from traceconv.io.same import digests
from traceconv.io.source import Source
from traceconv.model.trace import Trace
from traceconv.reading import Recognised, read_recognised, recognise

#: In these formats one recording may be given several times, from the best one on.
_FORMS = ("perf-data", "perf-json", "perf-script")
#: Formats that nearly any text is of.
_PLAIN = ("timed-log",)
#: Of so many samples it is not chance that two files have the same ones.
_LEAST_SAMPLES = 8


@dataclass
class Expanded:
    """The recordings that some inputs stand for.

    Attributes:
        paths: the inputs that are files, as they were given, and the recordings in the others, in sorted order.
        formats: for each the format that it was found to have; "" for a file as it was given.
        given: for each the number of the input that it is, or lies in.
        left_out: what is not taken, with the reason.
    """

    paths: list[AnyPath] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def is_as_given(self) -> bool:
        """Whether all inputs are files, and are taken."""
        return not self.left_out and not any(self.formats)


def expand(
    paths: Sequence[AnyPath],
    *,
    skip_unknown: bool = False,
    named: Collection[str] = (),
    output: AnyPath = "",
    limits: Limits = DEFAULT_LIMITS,
) -> Expanded:
    """Return the recordings in folders and archives, and the other inputs as they are.

    Args:
        paths: files, folders and archives (zip, tar, tar.gz); "-" for standard input.
        skip_unknown: whether to leave out files whose format nobody knows.
        named: files of folders and archives that are taken whatever they are, called as messages call them.
        output: a file that is not taken from a folder, since it will be written.
        limits: what each input may take.

    Raises:
        InputError: a folder or an archive cannot be read, or none of the inputs is a recording.
    """
    expanded = Expanded()
    known = {os.path.realpath(path) for path in paths if os.path.isfile(path)}
    for number, path in enumerate(paths):
        files = files_of(path, limits)
        if files is None:
            if skip_unknown and _recording(path, limits, expanded) is None:
                continue
            _take(expanded, path, "", number)
            continue
        expanded.left_out |= files.left_out
        found: list[tuple[AnyPath, Recognised]] = []
        for file in files.found:
            if os.path.realpath(file) in known:
                continue  # it is an input itself
            if output and os.path.realpath(file) == os.path.realpath(output):
                expanded.left_out[shown(file)] = "it is the output"
            elif shown(file) in named:
                _take(expanded, file, "named", number)
            elif recording := _recording(file, limits, expanded):
                if recording.cls.name in _PLAIN:
                    expanded.left_out[shown(file)] = "a plain log: it is taken if it is named itself"
                else:
                    found.append((file, recording))
        for file, recording in _once(found, expanded):
            _take(expanded, file, recording.cls.name, number)
    if not expanded.paths:
        names = ", ".join(map(shown, paths))
        reasons = "; ".join(f"{path}: {reason}" for path, reason in list(expanded.left_out.items())[:3])
        raise InputError(f"{names}: no recording among the files", hint=reasons or "the folder is empty")
    return expanded


def one_recording(path: AnyPath, limits: Limits, output: AnyPath = "") -> AnyPath:
    """Return a file, or the only recording in a folder or an archive. Raises UsageError if there are several."""
    paths = expand([path], output=output, limits=limits).paths
    if len(paths) > 1:
        raise UsageError(
            f"{shown(path)}: holds {len(paths)} recordings",
            hint=f"traceconv merge {shlex.quote(shown(path))} takes them all",
        )
    return paths[0]


def _take(expanded: Expanded, path: AnyPath, format: str, number: int) -> None:
    expanded.paths.append(path)
    expanded.formats.append(format)
    expanded.given.append(number)


def _recording(path: AnyPath, limits: Limits, expanded: Expanded) -> Recognised | None:
    """Return a file with its format; None if it has none, which is noted."""
    try:
        return recognise(Source(path, limits=limits))
    except (UnrecognizedFormat, AmbiguousFormat, InputError) as error:
        expanded.left_out[shown(path)] = error.message.removeprefix(f"{shown(path)}: ")
        return None


def _once(found: Sequence[tuple[AnyPath, Recognised]], expanded: Expanded) -> Sequence[tuple[AnyPath, Recognised]]:
    """Return the recordings without those that another one of them holds, too, which is noted."""
    sources = [recording.source for _, recording in found]
    first: dict[bytes, int] = {}
    hashes = digests(sources)
    for index in sorted(range(len(found)), key=lambda one: sources[one].is_packed):
        if hashes[index]:
            same = first.setdefault(hashes[index], index)
            if same != index:
                expanded.left_out[shown(found[index][0])] = f"the same content as {shown(found[same][0])}"
    found = [one for one in found if shown(one[0]) not in expanded.left_out]
    forms = [one for one in found if one[1].cls.name in _FORMS]
    if len({recording.cls.name for _, recording in forms}) > 1:
        _note_other_forms(forms, expanded)
    return [one for one in found if shown(one[0]) not in expanded.left_out]


def _note_other_forms(found: Sequence[tuple[AnyPath, Recognised]], expanded: Expanded) -> None:
    """Leave out what was printed of another recording there: at least half of the samples of one are in the other."""
    from traceconv.align.input_warnings import shared_samples

    better: list[tuple[AnyPath, str, Trace]] = []
    for path, recording in sorted(found, key=lambda one: _FORMS.index(one[1].cls.name)):
        try:
            trace = read_recognised(recording, {})
        except TraceconvError:
            continue  # it is tried again, and told, where it is used
        for other, form, its in better:
            shared = shared_samples(its, trace) if form != recording.cls.name else 0
            if shared >= _LEAST_SAMPLES and 2 * shared >= min(len(its.samples.ts), len(trace.samples.ts)):
                expanded.left_out[shown(path)] = f"{recording.cls.name} of the same recording as {shown(other)}"
                break
        else:
            better.append((path, recording.cls.name, trace))
