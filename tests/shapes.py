"""What the writers can meet in a trace, and a few golden cases that hold all of it: `python -m tests.shapes` chooses.

`shapes.txt` has a line for each of these cases: its name, and the shapes that no case above it has. The outputs of
these cases are read back and shown to the trace processor; of all other cases it is tested that they hold no others.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden import ROOT, Case, cases, written
from traceconv.errors import TraceconvError
from traceconv.model.trace import NO_CPU, Level, Trace
from traceconv.model.track_table import NO_TRACK, TrackKind

CHOSEN = Path(__file__).with_name("shapes.txt")
#: Chosen first: tests.mutants has functions that these notice.
_FIRST = ("pytorch-kineto/cuda-streams", "pytorch-kineto/memory-and-stacks", "merge/kineto-onednn-perf")


def shapes(trace: Trace) -> set[str]:
    """Return the shapes of a trace, and of the JSON that is written of it."""
    return {*_of_trace(trace), *shapes_of_json(written(trace, "chrome-json"))}


def chosen() -> dict[str, set[str]]:
    """Return the shapes that each of the chosen cases is chosen for, by the name of the case."""
    lines = (line.partition(": ") for line in CHOSEN.read_text(encoding="utf-8").splitlines())
    return {name: set(own.split("; ")) for name, _, own in lines}


every_shape = pytest.mark.parametrize("case", [Case(ROOT / name) for name in chosen()], ids=list(chosen()))


def _of_trace(trace: Trace) -> Iterator[str]:
    yield from (f"an input of {source.format}" for source in trace.sources)
    yield from ("an output of traceconv as input" for source in trace.sources if source.stated)
    yield from ("several inputs" for _ in trace.sources[1:])
    yield from ("ranks" for source in trace.sources if source.rank is not None)
    yield from (f"metadata {_kind(value)}" for value in trace.metadata.values())
    span = trace.span()
    yield "no events" if span is None else "times below zero" if span[0] < 0 else "times"
    yield from _of_tracks(trace)
    yield from _of_slices(trace)
    for table in (trace.slices, trace.instants, trace.logs):
        for at, size in set(zip(table.args_at.tolist(), table.args_len.tolist(), strict=True)):
            if size:
                yield from _of_value(json.loads(trace.args.get(at, size)), 0)
    for table in (trace.slices, trace.instants):
        yield from (f"category {_text(trace.strings[text])}" for text in np.unique(table.category))
        yield from (f"event {_text(trace.strings[text])}" for text in np.unique(table.name))
    for integer, is_integer, value in _rows(trace.counters, "integer", "is_integer", "value"):
        yield f"value {_kind(integer if is_integer else value)}"
    yield from _of_flows(trace)
    for stack, weight, cpu in _rows(trace.samples, "stack", "weight", "cpu"):
        frames = "without frames" if stack < 0 else "of one frame" if trace.frames[stack].parent < 0 else "of frames"
        yield f"sample {frames}{' on a CPU' * (cpu != NO_CPU)}, weight {min(weight, 2)}"
    for level, text, source in _rows(trace.logs, "level", "text", "source"):
        yield f"log {Level(level).name}"
        yield f"log {_text(trace.strings[text])}"
        yield "log with a line" if trace.strings[source].rpartition(":")[2].isdigit() else "log without a line"


def _place(trace: Trace, index: int) -> str:
    """Return the kinds of a track and of all that it is in."""
    track = trace.tracks[index]
    above = f" in {_place(trace, track.parent)}" if track.parent != NO_TRACK else ""
    return f"{'a lane of ' * (track.lane_of != NO_TRACK)}{track.kind.name}{above}"


def _of_tracks(trace: Trace) -> Iterator[str]:
    held = [set[str]() for _ in trace.tracks]
    below = [Counter[str]() for _ in trace.tracks]
    for name, table in trace.timed_tables():
        for index in np.unique(table.track).tolist():
            held[index].add(name)
    for track in trace.tracks:
        if track.parent != NO_TRACK:
            below[track.parent][track.kind.name] += 1
    for index, track in enumerate(trace.tracks):
        kind = track.kind.name
        yield f"{kind} {_text(track.shown or track.name)}"
        for what in ("description", "labels", "doubts", "carries", "unknown", "shown", "name_in_rank", "shares_lanes"):
            if getattr(track, what):
                yield f"{kind} with {what}"
        if track.synthetic:
            yield f"{kind} with synthetic"
        for what in ("carries", "without_pid"):
            if getattr(track.stated, what):
                yield f"{kind} with stated {what}"
        yield from (f"{kind} with {what}" for what in ("rank",) if getattr(track, what) is not None)
        for number in (track.pid, track.tid):
            if number is not None:
                yield f"{kind} {_kind(number)}"
        if track.kind is TrackKind.COUNTER:
            yield f"unit {track.unit if track.unit in ('', 'bytes', 'count', 'ns') else 'of its own'}"
        events = " and ".join(sorted(held[index])) or "no events"
        yield f"{_place(trace, index)} with {events} above {_several(below[index])}"
    siblings = Counter((track.parent, track.kind, track.name) for track in trace.tracks if track.lane_of == NO_TRACK)
    yield from (f"{kind.name}s of one name" for (_, kind, _), count in siblings.items() if count > 1)


def _several(kinds: Mapping[str, int]) -> str:
    """Return which kinds there are, and whether there are several of each."""
    return " and ".join(f"{kind}{'s' * (count > 1)}" for kind, count in sorted(kinds.items())) or "nothing"


def _of_slices(trace: Trace) -> Iterator[str]:
    rows = sorted(_rows(trace.slices, "track", "ts", "dur"), key=lambda row: (row[0], row[1], -row[2]))
    yield from ("slice without duration" for *_, dur in rows if not dur)
    for (track, ts, dur), (other, then, length) in itertools.pairwise(rows):
        if track == other and then < ts + dur:
            same = f"{' at its start' * (ts == then)}{' to its end' * (ts + dur == then + length)}"
            yield f"slice in a slice{same}"
        elif track == other and then == ts + dur:
            yield "slice right after a slice"


def _of_value(value: Any, depth: int) -> Iterator[str]:
    yield f"args {'deeper than 64' if depth > 64 else 'inside' if depth > 1 else ''} {_kind(value)}".replace("  ", " ")
    if isinstance(value, dict):
        yield from (f"key {_text(key)}" for key in value)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _of_value(inner, depth + 1)


def _of_flows(trace: Trace) -> Iterator[str]:
    slices = trace.slices
    leave, enter = Counter[int](), Counter[int]()
    for start, end, name in _rows(trace.flows, "from_slice", "to_slice", "name"):
        leave[start] += 1
        enter[end] += 1
        yield f"flow {'on one track' if slices.track[start] == slices.track[end] else 'between tracks'}"
        yield f"flow {('back', 'at one time', 'on')[1 + int(np.sign(slices.ts[end] - slices.ts[start]))]}"
        yield f"flow {_text(trace.strings[name])}"
    yield from ("flows from one slice" for count in leave.values() if count > 1)
    yield from ("flows to one slice" for count in enter.values() if count > 1)
    yield from ("flow from where a flow ends" for row in enter if row in leave)


def shapes_of_json(output: bytes) -> Iterator[str]:
    """Return what kinds of lines and arguments a JSON output holds."""
    document = json.loads(output)
    yield from (f"json {key}" for key in document)
    for event in document["traceEvents"]:
        words = (event["ph"], event.get("s", ""), event["name"] if event["ph"] == "M" else "", *sorted(event))
        yield f"json {' '.join(filter(None, words))}"
        yield from (f"json args {type(value).__name__}" for value in event.get("args", {}).values())


def _rows(table: Any, *columns: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(getattr(table, column).tolist() for column in columns), strict=True)


def _text(text: str) -> str:
    """Return the kind of a text, as far as it matters to how it is written."""
    if not text:
        return "without text"
    if not text.isprintable():
        return "with control characters"
    return "with quotes" if '"' in text or "\\" in text else "in ASCII" if text.isascii() else "in Unicode"


def _kind(value: Any) -> str:
    """Return the kind of a value, as far as it matters to how it is written."""
    if isinstance(value, str):
        return f"text {_text(value)}"
    if isinstance(value, dict | list):
        return f"{'' if value else 'empty '}{type(value).__name__}"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        large = "beyond int64" if not -(2**63) <= value < 2**63 else "beyond doubles" if abs(value) > 2**53 else ""
        return f"{'negative ' * (value < 0)}int{large and ' '}{large}"
    return "float" if math.isfinite(value) else "float that is not finite"


def choose(found: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return few cases that have all shapes, each with those that it adds: the one that adds most comes next."""
    left, missing, result = dict(found), set().union(*found.values()), dict[str, set[str]]()
    for first in _FIRST:
        result[first] = left.pop(first) & missing
        missing -= result[first]
    while missing:
        name = max(left, key=lambda one: (len(left[one] & missing), one))
        result[name] = left.pop(name) & missing
        missing -= result[name]
    return result


def main() -> int:
    found = {}
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            try:
                found[case.name] = shapes(case.merged(case.traces(Path(folder))))
            except TraceconvError:
                continue
    lines = [f"{name}: {'; '.join(sorted(own))}\n" for name, own in choose(found).items()]
    CHOSEN.write_text("".join(lines), encoding="utf-8")
    print(f"{len(lines)} of {len(found)} cases have all {len(set().union(*found.values()))} shapes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
