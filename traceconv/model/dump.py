"""Dump a trace as text, for goldens and people: one line for each track and event, exact, in a stable order."""

from __future__ import annotations

import json
from collections.abc import Iterator

from traceconv.model.diagnostics import Diagnostic
from traceconv.model.stated_collectives import stated_collectives
from traceconv.model.times import format_bound
from traceconv.model.trace import NO_CPU, NO_TRACK, Instants, Level, Slices, Trace, Track, TrackKind

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
    yield from _slices(trace)
    yield from _collectives(trace)
    yield from _instants(trace)
    yield from _counters(trace)
    yield from _flows(trace)
    yield from _samples(trace)
    yield from _logs(trace)


def _track(track: Track) -> str:
    words = [f" {track.name!r}"]
    if track.parent != NO_TRACK:
        words.append(f"in {track.parent}")
    for name in ("pid", "tid", "rank"):
        if getattr(track, name) is not None:
            words.append(f"{name}={getattr(track, name)}")
    if track.unit:
        words.append(f"unit={track.unit}")
    if track.doubts:
        words.append(f"doubts={list(track.doubts)}")
    if track.labels:
        words.append(f"labels={list(track.labels)}")
    if track.clock:
        words.append(f"clock={track.clock}")
    if track.lane_of != NO_TRACK:
        words.append(f"lane of {track.lane_of}")
    if track.description:
        words.append(f"({track.description})")
    return " ".join(words)


def _name(trace: Trace, name: int, category: int) -> str:
    text = repr(trace.strings[name])
    return f"{text} [{trace.strings[category]}]" if trace.strings[category] else text


def _args(trace: Trace, at: int, length: int) -> str:
    return f" {' '.join(trace.args.get(at, length).decode().split())}" if length else ""


def _what(trace: Trace, table: Slices | Instants, row: int) -> str:
    """Return the end of the line of an event, from its track on."""
    name = _name(trace, table.name[row], table.category[row])
    args = _args(trace, table.args_at[row], table.args_len[row])
    return f"on {table.track[row]} {name}{args} @{table.origin[row]}"


def _slices(trace: Trace) -> Iterator[str]:
    table = trace.slices
    for row in range(len(table.ts)):
        yield f"slice {row}: {table.ts[row]} +{table.dur[row]} {_what(trace, table, row)}"


def _collectives(trace: Trace) -> Iterator[str]:
    stated = stated_collectives(trace)
    for one in stated.each:
        of = stated.groups[one.group]
        ranks = "ranks not known" if of.ranks is None else f"ranks {list(of.ranks)}"
        group = " ".join(repr(text) for text in (of.name, of.about) if text)
        number = f" seq={one.seq}" if one.seq >= 0 else ""
        sizes = f" ({', '.join(one.sizes[1:])})" if one.sizes[1:] else ""
        ends = f" {'->'.join(map(str, one.ends))}" if one.ends else ""
        yield f"collective {one.row}: {one.kind}{ends} of {ranks}{group and f' in {group}'}{number}{sizes}"


def _instants(trace: Trace) -> Iterator[str]:
    table = trace.instants
    for row in range(len(table.ts)):
        yield f"instant {table.ts[row]} {_what(trace, table, row)}"


def _counters(trace: Trace) -> Iterator[str]:
    table = trace.counters
    for row in range(len(table.ts)):
        value = table.integer[row] if table.is_integer[row] else repr(float(table.value[row]))
        yield f"counter {table.ts[row]} on {table.track[row]} = {value} @{table.origin[row]}"


def _flows(trace: Trace) -> Iterator[str]:
    table = trace.flows
    for row in range(len(table.from_slice)):
        what = _name(trace, table.name[row], table.category[row])
        yield f"flow {table.from_slice[row]} -> {table.to_slice[row]} {what} @{table.origin[row]}"


def _samples(trace: Trace) -> Iterator[str]:
    table = trace.samples
    for row in range(len(table.ts)):
        frames: list[str] = []
        frame = int(table.stack[row])
        while frame >= 0:
            frames.append(trace.frames[frame].name)
            frame = trace.frames[frame].parent
        what = f"{trace.strings[table.name[row]]!r} {' < '.join(frames)} x{table.weight[row]}"
        cpu = f" cpu {table.cpu[row]}" if table.cpu[row] != NO_CPU else ""
        yield f"sample {table.ts[row]} on {table.track[row]} {what}{cpu} @{table.origin[row]}"


def _logs(trace: Trace) -> Iterator[str]:
    table = trace.logs
    for row in range(len(table.ts)):
        level = Level(table.level[row]).name.lower()
        source = f" [{trace.strings[table.source[row]]}]" if trace.strings[table.source[row]] else ""
        args = _args(trace, table.args_at[row], table.args_len[row])
        text = trace.strings[table.text[row]]
        yield f"log {table.ts[row]} on {table.track[row]} {level}{source} {text!r}{args} @{table.origin[row]}"
