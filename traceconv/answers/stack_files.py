"""Write weighted stacks to files for viewers: folded stacks, speedscope, pprof.

Sources: the collapsed stacks of FlameGraph (`frame;frame weight`), `file-format-spec.ts` of speedscope,
`proto/profile.proto` of pprof. Folded stacks have one weight, so their file holds the first measure only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO

import numpy as np

from traceconv import __version__
from traceconv.answers.weighted_stacks import Stacks, title_of
from traceconv.errors import UsageError
from traceconv.families.common import wire_writer as wire
from traceconv.io.output import check_target, write_output
from traceconv.io.shown import Counted, one_line, quantity
from traceconv.writers import sink_of

_NAMES = Counted("name", "names")
_NO_NAME = "(no name)"


def _folded(stacks: Stacks) -> Iterator[bytes]:
    """Yield a line for each stack of the first measure; its first frame is the track."""
    tracks, names = list(map(_plain, stacks.tracks)), [_plain(name) for name, _ in stacks.frames]
    for track, _, _, weight, path in stacks.rows(np.flatnonzero(stacks.measure == 0)):
        stack = ";".join([tracks[track], *(names[frame] for frame in path)])
        yield f"{stack} {weight}\n".encode()


def _plain(name: str) -> str:
    """Return a name without separators of frames and lines, "(no name)" for an empty one."""
    return one_line(name).replace(";", ":") or _NO_NAME


def _speedscope(stacks: Stacks) -> Iterator[bytes]:
    """Yield a document with a profile for each measure and track; the one with the largest weight is shown first."""
    frames = [{"name": name or _NO_NAME} | ({"file": file} if file else {}) for name, file in stacks.frames]
    profiles, largest = [], []
    profile_of = itemgetter(2, 0)
    for (measure, track), rows in groupby(stacks.rows(np.lexsort((stacks.track, stacks.measure))), profile_of):
        weights, samples = zip(*(row[3:] for row in rows), strict=True)
        event, unit = stacks.measures[measure]
        largest.append((-measure, sum(weights)))
        profiles.append(
            {
                "type": "sampled",
                "name": f"{stacks.tracks[track]} ({title_of(event, unit)})",
                "unit": "nanoseconds" if unit == "ns" else "none",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        )
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"traceconv {__version__}",
        "activeProfileIndex": largest.index(max(largest)),
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    yield json.dumps(document, separators=(",", ":")).encode()


# profile.proto: Profile, then ValueType, Sample, Label, Mapping, Location, Line, Function
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING, _DEFAULT_TYPE = 1, 2, 3, 4, 5, 6, 14
_TYPE, _UNIT = 1, 2
_LOCATION_IDS, _VALUES, _LABEL = 1, 2, 3
_KEY, _TEXT = 1, 2
_ID, _FILE_NAME, _HAS_FUNCTIONS = 1, 5, 7
_MAPPING_ID, _LINE, _FUNCTION_ID = 2, 4, 1
_NAME = 2


def _pprof(stacks: Stacks) -> Iterator[bytes]:
    """Yield the fields of a profile; the thread of a sample is its label `thread`, the file of a frame its mapping."""
    texts, files = {"": 0}, {"": 0}
    ids = [wire.varint(number) for number in range(1, len(stacks.frames) + 1)]

    def text(field: int, value: str) -> bytes:
        return wire.integer(field, texts.setdefault(value, len(texts)))

    for event, unit in stacks.measures:
        unit_field = text(_UNIT, "nanoseconds" if unit == "ns" else "count")
        yield wire.blob(_SAMPLE_TYPE, text(_TYPE, title_of(event, unit)) + unit_field)
    for (track, _), rows in groupby(stacks.rows(), itemgetter(0, 1)):
        rows_of_stack = list(rows)
        locations = b"".join(ids[frame] for frame in reversed(rows_of_stack[0][-1]))
        weights = {measure: weight for _, _, measure, weight, _ in rows_of_stack}
        values = b"".join(wire.varint(weights.get(measure, 0)) for measure in range(len(stacks.measures)))
        label = wire.blob(_LABEL, text(_KEY, "thread") + text(_TEXT, stacks.tracks[track]))
        yield wire.blob(_SAMPLE, wire.blob(_LOCATION_IDS, locations) + wire.blob(_VALUES, values) + label)
    for number, (name, file) in enumerate(stacks.frames, 1):
        mapping = wire.integer(_MAPPING_ID, files.setdefault(file, len(files)))
        line = wire.blob(_LINE, wire.integer(_FUNCTION_ID, number))
        yield wire.blob(_LOCATION, wire.integer(_ID, number) + mapping + line)
        yield wire.blob(_FUNCTION, wire.integer(_ID, number) + text(_NAME, name or _NO_NAME))
    for file, number in [*files.items()][1:]:
        mapping = text(_FILE_NAME, file) + wire.integer(_HAS_FUNCTIONS, 1)
        yield wire.blob(_MAPPING, wire.integer(_ID, number) + mapping)
    yield text(_DEFAULT_TYPE, title_of(*stacks.measures[0]))
    for value in texts:
        yield wire.text(_STRING, value)


FORMS: dict[str, Callable[[Stacks], Iterator[bytes]]] = {
    ".folded": _folded,
    ".speedscope.json": _speedscope,
    ".pb.gz": _pprof,
}


def ending_of(path: str) -> str:
    """Return the ending of the name of a file of stacks, "" if it has none of them."""
    return next((ending for ending in FORMS if path.lower().endswith(ending)), "")


def check_stacks(path: str, *, force: bool) -> None:
    """Raise the errors of `write_stacks` that are known before the work is done."""
    if not ending_of(path):
        raise UsageError(f"{path}: the ending is not of a kind of stacks", hint=f"end it in {', '.join(FORMS)}")
    check_target(path, binary=False, force=force)


def write_stacks(stacks: Stacks, path: str, *, force: bool) -> str:
    """Write stacks to a file in the form of its ending, and return in words what it holds.

    Args:
        stacks: the stacks.
        path: ends in one of FORMS. The file appears whole or not at all.
        force: whether it may be replaced.

    Raises:
        UsageError: no form has the ending, or the file exists and force is not given.
        OutputError: it cannot be written.
    """
    check_stacks(path, force=force)
    form = FORMS[ending_of(path)]

    def write(file: BinaryIO) -> None:
        with sink_of(stacks.trace, file, form is _pprof) as sink:
            for part in form(stacks):
                sink.write(part)

    write_output(path, write, binary=False, force=force)
    if form is not _folded:
        return f"{path}: {stacks.summary(len(stacks.measures))}"
    renamed = sum(_plain(name) != name for name in (*stacks.tracks, *(name for name, _ in stacks.frames)))
    note = f"; {quantity(renamed, _NAMES)} with ; or line breaks, or empty, changed" if renamed else ""
    return f"{path}: {stacks.summary(1)}{note}"
