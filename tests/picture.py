"""What a person sees of a trace in Perfetto, twice: worked out from the trace in memory, and asked of Perfetto itself.

    with oracle.open_trace(path) as tp:
        assert_equal(seen(tp), perfetto_picture(trace))

The first way knows the trace and nothing of the writers: what it says about numbers, names and rows is the promise
that a writer has to keep, written down a second time. The second way asks Perfetto's trace processor what its UI asks:
the UI draws the tracks of one `track_group_id` as one row, so that unlike tracks of one group are seen as mixed.

Rows are known by what stands on their titles, and two rows may have the same title. So pictures are compared twice:
flat, which gives readable differences, and as trees in which a row is what it holds and what is below it.

What the JSON importer of Perfetto (v52) cannot show, and is therefore not looked for in the picture of a Chrome JSON:

- Tracks inside of tracks: the format knows processes and threads only, the rest is in the name of the thread.
- Lanes of one row: each is a thread of its own, with the same name.
- Units: the name of a counter ends with the name of its value, which is the unit, or "value".
- The last digit of a value: Perfetto reads 4.94 as 4.9399999999999995.
- Escapes: Perfetto shows them as they stand in the file, unless a quote is among them; here they are read.
- Names that are empty: such a slice is called "[No name]", and what lies below an unnamed thread names it by its tid.
- A flow at a slice inside of which another one begins at once, or ended before: Perfetto takes the slice of the thread
  that began last, also where that has ended.
- Call stack samples: events of phase P are skipped. Log entries are there as instants, but not in the table of logs.
- Groups above processes: `process_labels` are skipped.

Rows that hold nothing at any depth are left out, as the UI does it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

import numpy as np

from tests.decode import shown_name, shown_stack
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, Track, TrackKind

#: The title of a row: what kind it is, its name, and the number of a process or thread if it is a real one.
Title = tuple[str, str, int | None]
Path = tuple[Title, ...]

_LARGEST_NUMBER = 2**31 - 1
_KEPT = 20


@dataclass
class Row:
    """A row with all below it."""

    title: Title
    unit: str = ""
    slices: list[tuple[int, int, str]] = field(default_factory=list)
    values: list[tuple[int, float]] = field(default_factory=list)
    samples: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    logs: list[tuple[int, int, str]] = field(default_factory=list)
    below: list[Row] = field(default_factory=list)
    sliced: bool = False
    working: bool = False

    def holds_anything(self) -> bool:
        """Whether there is an event in it or below."""
        return self.holds_own() or any(row.holds_anything() for row in self.below)

    def holds_own(self) -> bool:
        """Whether there is an event in it itself."""
        return bool(self.slices or self.values or self.samples or self.logs)

    def has_slices(self) -> bool:
        """Whether there is a slice in it or below that is no instant."""
        return self.sliced or any(row.has_slices() for row in self.below)

    @property
    def works(self) -> bool:
        """Whether it or a row below shows what the recorded program did, or has no real times."""
        return self.working or any(row.works for row in self.below)

    def digest(self) -> str:
        """The same for rows that hold the same, in whatever order."""
        own = (self.title, self.unit, *map(sorted, (self.slices, self.values, self.samples, self.logs)))
        below = sorted(row.digest() for row in self.below if row.holds_anything())
        return blake2b(repr((own, below)).encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()


@dataclass
class Picture:
    """All rows from the top, and the flows between slices, each given by its row and its own entry there."""

    top: list[Row] = field(default_factory=list)
    flows: list[tuple[tuple[Row, tuple[int, int, str]], ...]] = field(default_factory=list)

    def flat(self) -> dict[str, Counter[Any]]:
        """Multisets of tracks, slices, values, samples, log entries and flows, each with the path of its row."""
        found: dict[str, Counter[Any]] = defaultdict(Counter)
        paths: dict[int, Path] = {}

        def visit(row: Row, above: Path) -> None:
            if not row.holds_anything():
                return
            path = paths[id(row)] = (*above, row.title)
            found["tracks"][path, row.unit] += 1
            for what in ("slices", "values", "samples", "logs"):
                found[what].update((path, *entry) for entry in getattr(row, what))
            for other in row.below:
                visit(other, path)

        for row in self.top:
            visit(row, ())
        found["flows"].update(
            _in_order([(entry[0], paths[id(row)], *entry) for row, entry in flow]) for flow in self.flows
        )
        return found

    def tree(self) -> Counter[tuple[Title, str]]:
        """The rows at the top, each with a text that stands for all in it."""
        return Counter((row.title, row.digest()) for row in self.top if row.holds_anything())


def _in_order(ends: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The ends of a flow as given; those of equal time, which have no direction in Perfetto, in one order."""
    one, other = ends
    return tuple(sorted(ends)) if one[0] == other[0] else (one, other)


def assert_equal(found: Picture, expected: Picture) -> None:
    """Raise AssertionError with the first differences between two pictures."""
    one, other = found.flat(), expected.flat()
    for what in sorted(one.keys() | other.keys()):
        missing, more = (list((a - b).items())[:_KEPT] for a, b in ((other[what], one[what]), (one[what], other[what])))
        assert (missing, more) == ([], []), f"{what} that are missing, and others that are there instead"
    assert found.tree() == expected.tree(), "rows of one title hold other things, or other rows"


# -- from the trace in memory -----------------------------------------------------------------------------------------


def perfetto_picture(trace: Trace) -> Picture:
    """What a .pftrace shall look like.

    A process or thread that has a number that can be one, samples or log entries is one of the operating system's. All
    else are rows below it, or at the top. Lanes are one row with their main track, or below it where that is such a
    thread. How rows are arranged says `_arrange`.
    """
    expected = _Expected(trace, _people(trace), before_zero=True)
    picture = expected.picture(_PerfettoRows)
    _arrange(picture.top, expected)
    return picture


def json_picture(trace: Trace) -> Picture:
    """What a Chrome JSON shall look like: processes with threads and counters, times behind the first microsecond."""
    return _Expected(trace, _people(trace), before_zero=False).picture(_JsonRows)


@dataclass
class _Person:
    """A track as a process or thread.

    Attributes:
        process: the track that stands for its process; the top one where there is none.
        name: with the original number where that cannot be shown as a number.
        number: its own, None where an invented one stands for it.
        native: whether it is of the operating system.
    """

    process: int
    name: str
    number: int | None = None
    native: bool = False


def _people(trace: Trace) -> list[_Person]:
    people: list[_Person] = []
    shown: set[tuple[int, int]] = set()
    for index, track in enumerate(trace.tracks):
        person = _Person(_process(trace.tracks, people, index), _doubted(track, track.name))
        people.append(person)
        if track.lane_of != NO_TRACK:
            person.name = people[track.lane_of].name
        elif track.kind in (TrackKind.PROCESS, TrackKind.THREAD):
            number = track.pid if track.kind is TrackKind.PROCESS else track.tid
            # Pids are one set, and so are the tids of each process.
            where = -1 if track.kind is TrackKind.PROCESS else person.process
            if number is not None and 0 < number <= _LARGEST_NUMBER and (where, number) not in shown:
                shown.add((where, number))
                person.number = number
            elif number is not None:
                kind = "pid" if track.kind is TrackKind.PROCESS else "tid"
                person.name = f"{person.name} ({kind} {number})" if person.name else f"{kind} {number}"
            elif not person.name:
                person.name = "process" if track.kind is TrackKind.PROCESS else "thread"
    _mark_natives(trace, people)
    return people


def _doubted(track: Track, name: str) -> str:
    """A name with the doubts about the place of a track behind it; what has no name is called by its number."""
    if not track.doubts:
        return name
    called = {TrackKind.PROCESS: ("process", track.pid), TrackKind.THREAD: ("thread", track.tid)}.get(track.kind, ())
    name = name or " ".join(str(word) for word in called if word is not None)
    return " ".join([*filter(None, [name]), *(f"({doubt})" for doubt in track.doubts)])


def _process(tracks: list[Track], people: list[_Person], index: int) -> int:
    track = tracks[index]
    if track.lane_of != NO_TRACK:
        return people[track.lane_of].process
    return index if track.kind is TrackKind.PROCESS or track.parent == NO_TRACK else people[track.parent].process


def _mark_natives(trace: Trace, people: list[_Person]) -> None:
    with_stacks_or_logs = {*trace.samples.track.tolist(), *trace.logs.track.tolist()}
    for index in with_stacks_or_logs:
        people[index].native = people[people[index].process].native = True
    for index, track in enumerate(trace.tracks):
        if track.kind is TrackKind.PROCESS and 0 < (track.pid or 0) <= _LARGEST_NUMBER:
            people[index].native = True
    for index, track in enumerate(trace.tracks):
        if track.kind is TrackKind.THREAD and people[index].number and people[people[index].process].native:
            people[index].native = True


class _Expected:
    """The picture of a trace in memory."""

    def __init__(self, trace: Trace, people: list[_Person], before_zero: bool) -> None:
        self.trace = trace
        self.people = people
        self.shown = Picture()
        self.track_of: dict[int, int] = {}  # by row
        self._rows: dict[object, Row] = {}
        first = (trace.span() or (0, 0))[0]
        # Perfetto's own format holds times from 0 on, Chrome JSON counts from the microsecond of the first event.
        self.shift = max(-first, 0) if before_zero else -(first // 1000 * 1000)

    def picture(self, rows_of: Callable[[_Expected], _Rows]) -> Picture:
        rows, trace, shift = rows_of(self), self.trace, self.shift
        slices = [
            (track, (ts + shift, dur, rows.slice_name(row)))
            for row, (track, ts, dur) in enumerate(_columns(trace.slices, "track", "ts", "dur"))
        ]
        for track, entry in slices:
            rows.slices(track).slices.append(entry)
            rows.slices(track).sliced = True
        asides = [self._asides(track) for track in range(len(trace.tracks))]
        for track, category in _columns(trace.slices, "track", "category"):
            rows.slices(track).working |= trace.strings[category] not in asides[track]
        for track, ts, name in _columns(trace.instants, "track", "ts", "name"):
            rows.instants(track).slices.append((ts + shift, 0, rows.name(name)))
            rows.instants(track).working |= trace.tracks[track].synthetic
            rows.instants(track).working |= trace.clocks[trace.tracks[track].clock].synthetic
        for track, ts, level, body in _columns(trace.logs, "track", "ts", "level", "text"):
            rows.instants(track).slices.append((ts + shift, 0, rows.name(body)))
            rows.log(track, (ts + shift, level, trace.strings[body]))
        for track, ts, *value in _columns(trace.counters, "track", "ts", "is_integer", "integer", "value"):
            is_integer, integer, double = value
            rows.values(track).values.append((ts + shift, rows.value(integer if is_integer else double)))
            rows.values(track).working = True
        for track, ts, stack in _columns(trace.samples, "track", "ts", "stack"):
            rows.sample(track, (ts + shift, shown_stack(trace, stack)))
        for ends in _columns(trace.flows, "from_slice", "to_slice"):
            one, other = sorted(ends, key=lambda slice: (slices[slice][1][0], slice))
            bound = [slices[slice] for slice in rows.bound(one, other)]
            self.shown.flows.append(tuple((rows.slices(track), entry) for track, entry in bound))
        return self.shown

    def _asides(self, track: int) -> tuple[str, ...]:
        """The categories of slices on a track that are no work; none on one without real times."""
        of, source = self.trace.tracks[track], self.trace.sources[self.trace.tracks[track].source]
        source = source.stated[of.stated.input] if source.stated else source
        is_synthetic = of.synthetic or self.trace.clocks[of.clock].synthetic
        return () if is_synthetic else source.marks.asides

    def row(self, key: object, above: Row | None, title: Title, unit: str = "") -> Row:
        """The row of a key, made where it is not there yet; at the top if there is none above."""
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = Row(title, unit)
            (self.shown.top if above is None else above.below).append(found)
        return found

    def process(self, index: int) -> Row:
        """The process of a track, also where that is only the track at the top."""
        person = self.people[self.people[index].process]
        return self.row(("process", self.people[index].process), None, ("process", person.name, person.number))

    def thread(self, index: int) -> Row:
        """The thread that a track stands for."""
        person = self.people[index]
        number: object = person.number or ("track", index)
        return self.row(("thread", person.process, number), self.process(index), ("thread", person.name, person.number))


class _Rows:
    """Where the events of a track are drawn."""

    def __init__(self, expected: _Expected) -> None:
        self.expected = expected
        self.tracks = expected.trace.tracks
        self.people = expected.people

    def name(self, string: int) -> str:
        return self.expected.trace.strings[string]

    def slice_name(self, row: int) -> str:
        return self.name(self.expected.trace.slices.name[row])

    def value(self, value: float) -> float:
        return float(value)

    def bound(self, one: int, other: int) -> tuple[int, int]:
        """The slices at which a flow is drawn that shall be drawn at these."""
        return one, other

    def slices(self, index: int) -> Row:
        raise NotImplementedError

    def instants(self, index: int) -> Row:
        return self.slices(index)

    def values(self, index: int) -> Row:
        raise NotImplementedError

    def log(self, index: int, entry: tuple[int, int, str]) -> None:
        """Nothing where the format has no log entries."""

    def sample(self, index: int, entry: tuple[int, tuple[str, ...]]) -> None:
        """Nothing where the format has no samples that are shown."""


class _PerfettoRows(_Rows):
    def slice_name(self, row: int) -> str:
        return shown_name(self.expected.trace, row)

    def slices(self, index: int) -> Row:
        track, person = self.tracks[index], self.people[index]
        if person.native:
            return self._native(index)
        main = int(track.lane_of)
        if main != NO_TRACK and not self.people[main].native:
            return self.slices(main)  # lanes are drawn as one with it
        above = self._native(main) if main != NO_TRACK else self._above(index)
        kind = "counter" if track.kind is TrackKind.COUNTER else "row"
        name = ", ".join([_doubted(track, track.shown) if track.shown else person.name, *track.labels])
        if main != NO_TRACK:  # the thread or process that it is in has its name
            name = _doubted(track, "overlapping")
        elif track.kind is TrackKind.THREAD and person.number:
            name = _doubted(track, f"{track.name or 'thread'} {person.number}")
        key = ("row", index if main == NO_TRACK else main)
        row = self.expected.row(key, above, (kind, name, None), track.unit)
        self.expected.track_of.setdefault(id(row), index if main == NO_TRACK else main)
        return row

    values = slices

    def _native(self, index: int) -> Row:
        if self.tracks[index].kind is TrackKind.PROCESS:
            return self.expected.process(index)
        return self.expected.thread(index)

    def _above(self, index: int) -> Row | None:
        parent = self.tracks[index].parent
        return self.slices(parent) if parent != NO_TRACK else None

    def log(self, index: int, entry: tuple[int, int, str]) -> None:
        self._sampled(index).logs.append(entry)

    def sample(self, index: int, entry: tuple[int, tuple[str, ...]]) -> None:
        self._sampled(index).samples.append(entry)

    def _sampled(self, index: int) -> Row:
        """Samples of a process as a whole are those of its main thread, which has its number."""
        if self.tracks[index].kind is not TrackKind.PROCESS:
            return self._native(index)
        own = self.people[index].number
        for other, person in enumerate(self.people):
            if own is not None and (person.process, person.number) == (index, own) and other != index:
                return self._native(other)
        return self.expected.row(("thread", index, own or "main"), self.expected.process(index), ("thread", "", own))


def _arrange(top: list[Row], expected: _Expected) -> None:
    """Change what is in what, as the UI is to show it.

    Rows beside processes come into the process of their input, if it is not a Perfetto trace: its only one, or the only
    one that they have flows with. A process whose pid can be none comes into the only real one. Another row that holds
    nothing and has one row in it gives way to that; counters beside other rows come into a row of their own; of a
    process that has slices, rows without any are marked, and come into one row if they and those about the recording
    itself are several. Rows at the top with nothing in them, which the UI would put
    into "Global Track Events", come into a row with the name of their input, except for those of a Perfetto trace.
    """
    tracks, people = expected.trace.tracks, expected.people
    odd = {index for index, track in enumerate(tracks) if _is_odd(track, people[index])}
    at_home = {index for index, one in enumerate(people) if tracks[one.process].kind is TrackKind.PROCESS}
    at_home = {index for index in at_home if people[index].process not in odd}
    processes: dict[int, set[int]] = defaultdict(set)
    for index in at_home:
        processes[tracks[index].source].add(people[index].process)
    partners = _partners(expected, at_home)
    real: dict[tuple[int, int], set[int]] = defaultdict(set)
    for index, one in enumerate(people):
        if people[one.process].native and tracks[one.process].kind is TrackKind.PROCESS:
            real[tracks[index].source, tracks[index].stated.input].add(one.process)
    for row in list(top):
        index = expected.track_of.get(id(row))
        if index is None or not (tracks[index].kind in (TrackKind.TRACK, TrackKind.COUNTER) or index in odd):
            continue
        track = tracks[index]
        source = expected.trace.sources[track.source]
        home = processes[track.source]
        home = home if len(home) == 1 else partners[index]
        if index in odd:
            home = real[track.source, track.stated.input]
            source = source.stated[track.stated.input] if source.stated else source
        if len(home) == 1 and source.format != "perfetto":
            top.remove(row)
            _PerfettoRows(expected).slices(min(home)).below.append(row)
    for row in top:
        _arrange_below(row, {id_ for id_, index in expected.track_of.items() if index in odd})
    groups: dict[tuple[int, int], Row] = {}
    for row in list(top):
        if (index := expected.track_of.get(id(row))) is None or not row.holds_own() or row.below:
            continue
        track = expected.trace.tracks[index]
        source = expected.trace.sources[track.source]
        source = source.stated[track.stated.input] if source.stated else source
        if source.format != "perfetto":
            key = track.source, track.stated.input
            if key not in groups:
                groups[key] = Row(("row", PurePath(source.name).name, None))
                top.append(groups[key])
            top.remove(row)
            groups[key].below.append(row)


def _is_odd(track: Track, person: _Person) -> bool:
    """Whether it is a process with a number that no process has, which is not shown."""
    return track.kind is TrackKind.PROCESS and track.pid is not None and not person.native


def _partners(expected: _Expected, at_home: set[int]) -> dict[int, set[int]]:
    """The processes that each track at the top has flows with."""
    partners: dict[int, set[int]] = defaultdict(set)
    track, people = expected.trace.slices.track.tolist(), expected.people
    for ends in _columns(expected.trace.flows, "from_slice", "to_slice"):
        one, other = (track[end] for end in ends)
        for here, there in ((one, other), (other, one)):
            if here in at_home and there not in at_home:
                partners[people[there].process].add(people[here].process)
    return partners


def _arrange_below(row: Row, odd: set[int]) -> None:
    row.below = [one for one in row.below if one.holds_anything()]
    for place, one in enumerate(row.below):
        name = one.title[1]
        while _is_group_of_one(one) and id(one) not in odd:
            (one,) = one.below
            name = one.title[1] if one.title[1].startswith(name) else f"{name} · {one.title[1]}"
            one.title = ("row", name, None)
            row.below[place] = one
        _arrange_below(one, odd)
    counters = [one for one in row.below if one.title[0] == "counter"]
    others = [one for one in row.below if one.title[0] != "counter"]
    is_process = row.title[0] == "process"
    if row.title[0] != "thread" and counters and (others or row.holds_own()):
        row.below = [*others, Row(("row", "· Counters" if is_process else "Counters", None), below=counters)]
    if not is_process or not row.has_slices():
        return
    marks = [one for one in others if one.title[0] == "row" and not one.works and one.holds_anything()]
    if len(marks) > 1 and row.works:
        row.below = [one for one in row.below if one not in marks]
        row.below.append(Row(("row", "· Marks", None), below=marks, sliced=any(one.has_slices() for one in marks)))
    for one in others:
        if one.title[0] == "row" and not one.has_slices() and not (len(marks) > 1 and one in marks):
            one.title = ("row", "· " + one.title[1].removeprefix("· "), None)


def _is_group_of_one(row: Row) -> bool:
    return row.title[0] == "row" and not row.holds_own() and [one.title[0] for one in row.below] == ["row"]


class _JsonRows(_Rows):
    def name(self, string: int) -> str:
        return super().name(string) or "[No name]"

    def value(self, value: float) -> float:
        return _short(float(value))

    def bound(self, one: int, other: int) -> tuple[int, int]:
        """Perfetto takes the slice that began last, also where that has ended."""
        starts = self.expected.trace.slices.ts
        start, end = self._own_time(one), self._own_time(other)
        if start > end:
            start, end = int(starts[one]), int(starts[other])
        return self._last_begun(one, start), self._last_begun(other, end)

    def _own_time(self, slice: int) -> int:
        """The first time at which a slice is the innermost one of its track; its start if there is none."""
        table = self.expected.trace.slices
        ends = table.ts + table.dur
        inside = (table.track == table.track[slice]) & (table.ts >= table.ts[slice]) & (ends <= ends[slice])
        time = int(table.ts[slice])
        for row in np.flatnonzero(inside[slice + 1 :]) + slice + 1:
            if table.ts[row] > time:
                break
            time = max(time, int(table.ts[row]) + max(int(table.dur[row]), 1))
        return time if time < ends[slice] else int(table.ts[slice])

    def _last_begun(self, slice: int, time: int) -> int:
        """The last slice of the same track that has begun at a time."""
        table = self.expected.trace.slices
        return int(np.flatnonzero((table.track == table.track[slice]) & (table.ts <= time))[-1])

    def slices(self, index: int) -> Row:
        person, expected = self.people[index], self.expected
        number = person.number if self.tracks[index].kind is TrackKind.THREAD else None
        title = ("thread", self._name(index), number)
        return expected.row(("thread", index), expected.process(index), title)

    def instants(self, index: int) -> Row:
        is_process = self.tracks[index].kind is TrackKind.PROCESS
        return self.expected.process(index) if is_process else self.slices(index)

    def values(self, index: int) -> Row:
        return self.expected.row(
            ("counter", index), self.expected.process(index), ("counter", self._counter_name(index), None)
        )

    def _counter_name(self, index: int) -> str:
        """Counters of one name in a process are numbered."""
        own = self._name(index)
        process = self.people[index].process
        before = sum(
            1
            for other in range(index)
            if self.tracks[other].kind is TrackKind.COUNTER
            and self.people[other].process == process
            and self._name(other) == own
        )
        return (f"{own} ({before + 1})" if before else own) + " " + (self.tracks[index].unit or "value")

    def _name(self, index: int) -> str:
        """The names from below the process on."""
        names = []
        main = int(self.tracks[index].lane_of)
        own = index, self.people[index].process
        at = index if main == NO_TRACK else main
        while at != self.people[index].process:
            track = self.tracks[at]
            unnamed = f"tid {track.tid}" if track.kind is TrackKind.THREAD and (at, track.parent) != own else ""
            names.append(self.people[at].name or unnamed)
            at = track.parent
        return " / ".join(reversed(names)) or self.people[index].name


def _short(value: float) -> float:
    """The value in 15 digits."""
    return float(f"{value:.14e}")


def _columns(table: Any, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(getattr(table, name).tolist() for name in names), strict=True)


# -- from the trace processor -----------------------------------------------------------------------------------------

#: Rows as the UI asks for them: all tracks of track events, those of a group as one.
_ROWS = """
    include perfetto module viz.summary.track_event;
    select parent_id, upid, utid, is_counter, name, unit, track_ids from _track_event_tracks_ordered_groups
"""
#: The tracks that have no rows of their own: what is on them stands on the thread or process itself.
_OF_THREADS = "thread_execution"
_OF_PROCESSES = ("process_track_event", "chrome_process_instant")
_OTHERS = """
    select id, type, name, extract_arg(dimension_arg_set_id, 'upid') as upid,
    extract_arg(dimension_arg_set_id, 'utid') as utid from track
    where type in ('thread_execution', 'process_track_event', 'chrome_process_instant', 'json_counter')
"""
#: Counts of samples: the trace processor makes them up from the samples.
_MADE = "select id from track where type glob 'perf*'"


def seen(tp: Any, real: Trace, json: bool = False) -> Picture:
    """What the trace processor shows.

    Args:
        tp: the trace processor.
        real: tells which numbers of processes and threads are real ones.
        json: whether it has loaded a Chrome JSON.
    """
    return _Seen(tp, real, json).picture()


class _Seen:
    def __init__(self, tp: Any, real: Trace, json: bool) -> None:
        self._tp = tp
        self._json = json
        self._real = {number for track in real.tracks for number in (track.pid, track.tid)}
        self._picture = Picture()
        self._processes: dict[int, Row] = {}
        self._threads: dict[int, Row] = {}
        self._tracks: dict[int, Row] = {}

    def _ask(self, sql: str) -> Iterable[Any]:
        return self._tp.query(sql)

    def picture(self) -> Picture:
        self._people()
        self._event_rows()
        for track in self._ask(_OTHERS):
            if track.type == "json_counter":
                row = self._tracks[track.id] = Row(("counter", self._text(track.name), None))
                self._processes[track.upid].below.append(row)
            elif track.id not in self._tracks:
                at = self._threads[track.utid] if track.type == _OF_THREADS else self._processes[track.upid]
                self._tracks[track.id] = at
        self._events()
        self._stacks_and_logs()
        return self._picture

    def _number(self, number: int) -> int | None:
        return number if number in self._real else None

    def _text(self, shown: str | None) -> str:
        """A text of a Chrome JSON stands there as in the file, but with all escapes read if a quote is among them."""
        if shown is None or not self._json or "\\" not in shown or '"' in shown:
            return shown or ""
        return str(json.loads(f'"{shown}"', strict=False))

    def _people(self) -> None:
        for process in self._ask("select upid, pid, name from process"):
            row = self._processes[process.upid] = Row(("process", self._text(process.name), self._number(process.pid)))
            self._picture.top.append(row)
        for thread in self._ask("select utid, tid, name, upid from thread"):
            row = self._threads[thread.utid] = Row(("thread", self._text(thread.name), self._number(thread.tid)))
            above = self._picture.top if thread.upid is None else self._processes[thread.upid].below
            above.append(row)

    def _event_rows(self) -> None:
        rows = []
        for found in self._ask(_ROWS):
            tracks = [int(number) for number in found.track_ids.split(",")]
            # What happens on a process itself is drawn as a row without a name; here it belongs to the process.
            if found.name is None and found.upid is not None and found.parent_id is None and not found.is_counter:
                row = self._processes[found.upid]
            else:
                row = Row(("counter" if found.is_counter else "row", self._text(found.name), None), found.unit or "")
                rows.append((row, found))
            for track in tracks:
                assert track not in self._tracks, "a track in two rows"
                self._tracks[track] = row
        for row, found in rows:
            self._above(found).append(row)

    def _above(self, found: Any) -> list[Row]:
        if found.parent_id is not None:
            return self._tracks[found.parent_id].below
        if found.utid is not None:
            return self._threads[found.utid].below
        return self._picture.top if found.upid is None else self._processes[found.upid].below

    def _events(self) -> None:
        ends: dict[int, tuple[Row, tuple[int, int, str]]] = {}
        for slice in self._ask("select id, track_id, ts, dur, name from slice"):
            row, entry = self._tracks[slice.track_id], (slice.ts, slice.dur, self._text(slice.name))
            row.slices.append(entry)
            ends[slice.id] = row, entry
        self._picture.flows += [
            (ends[flow.slice_out], ends[flow.slice_in]) for flow in self._ask("select slice_out, slice_in from flow")
        ]
        for value in self._ask(f"select track_id, ts, value from counter where track_id not in ({_MADE})"):
            self._tracks[value.track_id].values.append((value.ts, self._value(value.value)))

    def _value(self, value: float) -> float:
        return _short(value) if self._json else value

    def _stacks_and_logs(self) -> None:
        names = {frame.id: frame.name or "" for frame in self._ask("select id, name from stack_profile_frame")}
        calls = {
            call.id: (call.parent_id, names[call.frame_id])
            for call in self._ask("select id, parent_id, frame_id from stack_profile_callsite")
        }
        for sample in self._ask("select ts, utid, callsite_id from perf_sample"):
            stack, at = [], sample.callsite_id
            while at is not None:
                at, name = calls[at]
                stack.append(name)
            self._threads[sample.utid].samples.append((sample.ts, tuple(stack)))
        for log in self._ask("select ts, utid, prio, msg from android_logs"):
            self._threads[log.utid].logs.append((log.ts, log.prio, log.msg))
