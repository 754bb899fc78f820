"""Dump a trace as text, a line for each track and event, exact, in a stable order. Name slices and frames as shown."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import structs

from traceconv.model.columns import Strings
from traceconv.model.diagnostics import Diagnostic
from traceconv.model.marks import PrimitiveMarks
from traceconv.model.numbers import format_bound
from traceconv.model.stated_collectives import stated_collectives
from traceconv.model.trace import NO_CPU, Frame, Instants, Level, Slices, Trace
from traceconv.model.trace_inputs import inputs_of
from traceconv.model.track_table import NO_TRACK, Track, TrackKind

_KINDS = {
    TrackKind.PROCESS: "process",
    TrackKind.THREAD: "thread",
    TrackKind.TRACK: "track",
    TrackKind.COUNTER: "counter track",
}


def dump(trace: Trace) -> str:
    """Return the whole trace, one object in a line."""
    return "".join(f"{line}\n" for line in _lines(trace))


def dump_problem(problem: Diagnostic) -> str:
    """Return one line with count, help and first places of a problem."""
    text = f"{problem.count} x {problem.code.name} ({problem.code.label}): {problem.code.help}"
    return text + (f" [{'; '.join(problem.places)}]" if problem.places else "")


def _lines(trace: Trace) -> Iterator[str]:
    for source in trace.sources:
        about = ", ".join(filter(None, (source.format, source.place_in_job)))
        yield f"source {source.name} ({about}): {source.balance.describe()}"
        yield from (f"  note: {note}" for note in source.notes)
    yield from (f"clock {clock.describe()}, resolution {clock.resolution_ns} ns" for clock in trace.clocks)
    for snap in trace.snapshots:
        there = f"{snap.other.name} {snap.other_ts}"
        yield f"snapshot {snap.clock.name} {snap.ts} = {there} ({format_bound(snap.bound_ns)}: {snap.method})"
    for key, value in trace.metadata.items():
        yield f"metadata {key} = {json.dumps(value, ensure_ascii=False, sort_keys=True)}"
    for number, track in enumerate(trace.tracks):
        yield f"{_KINDS[track.kind]} {number}{_track(track)}"
    for row in range(len(trace.slices.ts)):
        yield f"slice {row}: {trace.slices.ts[row]} +{trace.slices.dur[row]} {_event(trace, trace.slices, row)}"
    yield from _collectives(trace)
    for row in range(len(trace.instants.ts)):
        yield f"instant {trace.instants.ts[row]} {_event(trace, trace.instants, row)}"
    for line, table in ((_counter, trace.counters), (_flow, trace.flows), (_sample, trace.samples), (_log, trace.logs)):
        yield from (f"{line(trace, row)} @{origin}" for row, origin in enumerate(table.origin.tolist()))


def _track(track: Track) -> str:
    words = [f" {track.name!r}"]
    if track.parent != NO_TRACK:
        words.append(f"in {track.parent}")
    words += [f"{name}={value}" for name in ("pid", "tid", "rank") if (value := getattr(track, name)) is not None]
    words += [f"unit={track.unit}"] if track.unit else []
    words += [f"{name}={list(texts)}" for name in ("doubts", "labels") if (texts := getattr(track, name))]
    words += [f"clock={track.clock}"] if track.clock else []
    if track.lane_of != NO_TRACK:
        words.append(f"lane of {track.lane_of}")
    return " ".join([*words, f"({track.description})"] if track.description else words)


def _name(trace: Trace, name: int, category: int) -> str:
    text = repr(trace.strings[name])
    return f"{text} [{trace.strings[category]}]" if trace.strings[category] else text


def _args(trace: Trace, at: int, length: int) -> str:
    return f" {' '.join(trace.args.get(at, length).decode().split())}" if length else ""


def _event(trace: Trace, table: Slices | Instants, row: int) -> str:
    """Return the end of the line of an event, from its track on."""
    name = _name(trace, table.name[row], table.category[row])
    args = _args(trace, table.args_at[row], table.args_len[row])
    return f"on {table.track[row]} {name}{args} @{table.origin[row]}"


def _collectives(trace: Trace) -> Iterator[str]:
    stated = stated_collectives(trace)
    for call in stated.each:
        members = stated.groups[call.group]
        ranks = "ranks not known" if members.ranks is None else f"ranks {list(members.ranks)}"
        group = " ".join(repr(text) for text in (members.name, members.about) if text)
        number = f" seq={call.seq}" if call.seq >= 0 else ""
        sizes = f" ({', '.join(call.sizes[1:])})" if call.sizes[1:] else ""
        ends = f" {'->'.join(map(str, call.ends))}" if call.ends else ""
        yield f"collective {call.row}: {call.kind}{ends} of {ranks}{group and f' in {group}'}{number}{sizes}"


def _counter(trace: Trace, row: int) -> str:
    table = trace.counters
    value = table.integer[row] if table.is_integer[row] else repr(float(table.value[row]))
    return f"counter {table.ts[row]} on {table.track[row]} = {value}"


def _flow(trace: Trace, row: int) -> str:
    table = trace.flows
    what = _name(trace, table.name[row], table.category[row])
    return f"flow {table.from_slice[row]} -> {table.to_slice[row]} {what}"


def _sample(trace: Trace, row: int) -> str:
    table = trace.samples
    frames: list[str] = []
    frame = int(table.stack[row])
    while frame >= 0:
        frames.append(trace.frames[frame].name)
        frame = trace.frames[frame].parent
    what = f"{trace.strings[table.name[row]]!r} {' < '.join(frames)} x{table.weight[row]}"
    cpu = f" cpu {table.cpu[row]}" if table.cpu[row] != NO_CPU else ""
    return f"sample {table.ts[row]} on {table.track[row]} {what}{cpu}"


def _log(trace: Trace, row: int) -> str:
    table = trace.logs
    level = Level(table.level[row]).name.lower()
    source = f" [{trace.strings[table.source[row]]}]" if trace.strings[table.source[row]] else ""
    args = _args(trace, table.args_at[row], table.args_len[row])
    return f"log {table.ts[row]} on {table.track[row]} {level}{source} {trace.strings[table.text[row]]!r}{args}"


# -- names in pictures ------------------------------------------------------------------------------------------------


def as_shown(trace: Trace) -> Trace:
    """Return the trace with the names for pictures.

    Calls of primitives include their problem and implementation. Frames of unknown functions are named by the file of
    their code, and a run of them in one file is one frame: a flame graph would have a sliver for each address.

    Tables, comparisons and JSON have the name itself.
    """
    return _by_file(_renamed(trace, lambda name, suffix: f"{name} {suffix}"))


def as_recorded(trace: Trace) -> Trace:
    """Undo the names of calls for a trace that was read from an output of traceconv; addresses are not in the file."""
    return _renamed(trace, lambda name, suffix: name.removesuffix(f" {suffix}"))


def _renamed(trace: Trace, rename: Callable[[str, str], str]) -> Trace:
    """Return the trace with `rename(name, suffix)` as names of calls of primitives; the suffix comes from the args."""
    marks = [source.marks.primitives for source in trace.sources]
    if not any(marks):
        return trace
    slices, strings = trace.slices, Strings(trace.strings)
    input_of = inputs_of(trace, "slices")
    names = slices.name.copy()
    for source, primitives in enumerate(marks):
        if primitives is None:
            continue
        calls = [strings.index(category) for category in primitives.calls if category in strings]
        rows = np.flatnonzero((input_of == source) & np.isin(slices.category, calls))
        rows = rows[slices.args_len[rows] > 0]
        first, same = _distinct(slices.args_at[rows], slices.name[rows])
        columns = (column[rows[first]].tolist() for column in (slices.name, slices.args_at, slices.args_len))
        tell, view, numbers = _Telling(primitives), trace.args.view, dict[tuple[int, bytes, bytes], int]()
        renamed = np.empty(len(first), np.int32)
        for row, (name, at, length) in enumerate(zip(*columns, strict=True)):
            key = name, *tell.parts(view(at, length))
            number = numbers.get(key)
            if number is None:
                text = tell.renamed(rename, trace.strings[name], *key[1:])
                number = numbers[key] = strings.number(text)
            renamed[row] = number
        names[rows] = renamed[same]
    return trace.with_tables(slices=replace(slices, name=names), strings=strings.for_reading())


def name_of_unknown(file: str) -> str:
    """Return the name in pictures of an unknown function in a file: "[libc.so.6]"; "[unknown]" if no file is known.

    >>> name_of_unknown("/usr/lib/libc.so.6"), name_of_unknown("[kernel.kallsyms]")
    ('[libc.so.6]', '[kernel.kallsyms]')
    """
    name = posixpath.basename(file) or file or "unknown"
    return name if name.startswith("[") else f"[{name}]"


def _by_file(trace: Trace) -> Trace:
    """Return the trace with the frames of unknown functions named by their file, one for a run of them."""
    if all(frame.named for frame in trace.frames):
        return trace
    frames: list[Frame] = []
    known: dict[Frame, int] = {}
    number_of = [-1]  # the new number of each frame, behind that of no frame
    for frame in trace.frames:
        parent = number_of[frame.parent + 1]
        name = frame.name if frame.named else name_of_unknown(frame.category)
        shown = Frame(name, frame.category, parent, frame.named)
        if not frame.named and parent >= 0 and shown == structs.replace(frames[parent], parent=parent):
            number_of.append(parent)
            continue
        if shown not in known:
            known[shown] = len(frames)
            frames.append(shown)
        number_of.append(known[shown])
    stack = np.array(number_of, np.int32)[trace.samples.stack + 1]
    return trace.with_tables(frames=frames, samples=replace(trace.samples, stack=stack))


def _distinct(*columns: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the first row of each distinct combination of values, and for each row the number of its combination.

    `np.unique` would do, but it loads numpy's masked arrays, which costs more than a small conversion.
    """
    order = np.lexsort(columns)
    starts = np.ones(len(order), bool)
    starts[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    first = order[starts]  # the sort is stable
    number = np.empty(len(order), np.intp)
    number[order] = np.argsort(np.argsort(first))[np.cumsum(starts) - 1]
    return np.sort(first), number


class _Telling:
    """Builds the names of calls of primitives."""

    def __init__(self, marks: PrimitiveMarks) -> None:
        renamed = {"problem": marks.problem, "implementation": marks.implementation}
        fields = [(name, msgspec.Raw, msgspec.Raw()) for name in renamed]
        self._decode = msgspec.json.Decoder(msgspec.defstruct("Told", fields, rename=renamed)).decode
        self._sizes = re.compile(marks.sizes).findall

    def parts(self, args: memoryview) -> tuple[bytes, bytes]:
        """Return the problem and the implementation from the args of a call, as JSON values; b"" for a missing one."""
        decoded: Any = self._decode(args)
        return bytes(decoded.problem), bytes(decoded.implementation)

    def renamed(self, rename: Callable[[str, str], str], name: str, *parts: bytes) -> str:
        """Return the new name of a call with this problem and implementation; the old one if both are unknown."""
        problem, implementation = map(_text, parts)
        suffix = " ".join(filter(None, ("x".join(self._sizes(problem)) or problem, implementation)))
        return rename(name, suffix) if suffix else name


def _text(value: bytes) -> str:
    """Return the text that a JSON value holds, "" if it is not a string."""
    decoded = msgspec.json.decode(value) if value else ""
    return decoded if isinstance(decoded, str) else ""
