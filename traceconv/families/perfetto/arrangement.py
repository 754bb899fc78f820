"""The displayed tree of the tracks of a Perfetto trace.

The UI (v52) sorts the tracks of a process: threads first, then all others by name; a stated order counts only below
plain groups. Groups are collapsed at first, a single node at the top is expanded. So:

- Tracks of an input outside of processes are moved into its process, if it has only one, else into the one that they
  have flows with, if that is only one; except for Perfetto traces, which state their nesting. A process with a pid that
  none can have, such as 0, is moved into the only one that has a pid.
- A group of one track is left out, and the track gets the names of both. So are two such groups inside each other.
- Counters are put into a group of their own, behind the other tracks. So are, in a process, several rows that show none
  of its work: instants alone, or slices about the recording itself (`FormatMarks.asides`).
- Tracks and groups of a process without slices get a name that sorts behind the others.
- The UI puts tracks at the top that have events and no tracks inside them into "Global Track Events", which does not
  say what they are. So they get a group with the name of their input; except for those of Perfetto traces.
"""

from __future__ import annotations

import os
from collections import defaultdict

import numpy as np
import numpy.typing as npt

from traceconv.model.columns import I32, I64, occurring
from traceconv.model.marks import JOINT
from traceconv.model.trace import TIMED, Trace
from traceconv.model.trace_inputs import by_stated_inputs
from traceconv.model.track_table import NO_NUMBER, NO_TRACK, TrackKind
from traceconv.writers.ids import Identities, numbered, with_doubts
from traceconv.writers.order import is_aside

Mask = npt.NDArray[np.bool_]

_FORMAT = "perfetto"
_PROCESS, _THREAD, _TRACK, _COUNTER = TrackKind
#: The groups of counters and of marks, and their names.
COUNTERS, MARKS = 1, 2
_GROUP_NAMES = {COUNTERS: "Counters", MARKS: "Marks"}
#: The name of an overflow lane inside of its thread or process.
LANE = "overlapping"
#: The prefix of names that sort behind names that start with a letter.
_LATE = "· "
#: The most nested groups that are left out, such as a device and a context: longer chains would give endless names.
_MOST_JOINED = 2
#: For tracks outside of the groups of inputs.
NO_INPUT = -1


class Arrangement:
    """The displayed tree of tracks.

    Attributes:
        left_out: the groups that are left out.
        groups: the groups of counters and of marks, as the track that each is in and which it is, with its position:
            behind all others.
        joined_doubts: the doubts of the tracks that have the name of a left-out group, too.
        inputs: the inputs, also those that an output of traceconv states, that have a group for their tracks at the
            top, with the name of the group.
        mains: by track, the one whose row it is drawn in: itself, or the main track of a lane.
        descriptions: by track, its help text, with those of left-out groups around it.
        positions: by track, its position among its siblings, which Perfetto uses below plain groups.
    """

    def __init__(self, trace: Trace, ids: Identities) -> None:
        self._tracks, self._ids = trace.tracks, ids
        self._kind, self.descriptions = trace.tracks.column("kind"), trace.tracks.texts("description")
        numbers, lane_of = np.arange(len(ids), dtype=np.int32), trace.tracks.column("lane_of")
        self.mains: I32 = np.where((lane_of == NO_TRACK) | ids.native[lane_of], numbers, lane_of)
        self._main_of, self._is_lane = self.mains.data, (lane_of != NO_TRACK).data
        self._is_row_of_thread = ((self._kind == _THREAD) & ~ids.native & (ids.tid == trace.tracks.numbers())).data
        self._has_row = self.mains == numbers
        self._is_plain = ~ids.native & (self._kind != _COUNTER)
        self._parents = ids.parent.copy()
        self.positions = ids.position.copy()
        self._names: dict[int, str] = {}
        self.joined_doubts: dict[int, tuple[str, ...]] = {}
        self._moved, self._late = np.zeros(len(ids), bool), np.zeros(len(ids), bool)
        self._is_late = self._late.data
        self.left_out: set[int] = set()
        self.groups: dict[tuple[int, int], int] = {}
        self._group_of = np.zeros(len(ids), np.int8)
        self.inputs: dict[int, str] = {}
        self._input_of = np.full(len(ids), NO_INPUT, np.int32)
        self._has_events = self._with_rows_of(*(getattr(trace, name).track for name in TIMED))
        stated = by_stated_inputs(trace)
        self._into_processes(trace, stated)
        self._without_groups_of_one()
        self._group_counters()
        self._late_names(self._with_rows_of(trace.slices.track))
        self._group_marks(stated)
        self._group_by_input(stated)
        self._order()
        is_usual = self._has_row & ~self._late & (ids.native | (self._kind != _THREAD))
        is_usual[[*self._names, *(index for index, _ in trace.tracks.special())]] = False
        self._is_usual = is_usual.data

    def _with_rows_of(self, *columns: I32) -> Mask:
        """Return which tracks are drawn with the events of these columns of tracks."""
        mask = np.zeros(len(self.mains), bool)
        for column in columns:
            mask[self.mains[occurring(column)]] = True
        return mask

    @property
    def parents(self) -> I32:
        """The displayed parents of all tracks; NO_TRACK at the top."""
        return self._parents[self.mains]

    @property
    def inputs_of(self) -> I32:
        """The inputs in whose groups the tracks are; below 0 for tracks that are in none."""
        return self._input_of[self.mains]

    @property
    def groups_of(self) -> npt.NDArray[np.int8]:
        """In which group of its parent each track is; 0 for none."""
        return self._group_of[self.mains]

    def name(self, index: int) -> str:
        """Return the displayed name of a track, with its doubts."""
        if self._is_usual[index]:
            return self._ids.names[index]
        doubts = self.doubts(index)
        return with_doubts(self._name(index), self._tracks[index], doubts) if doubts else self._name(index)

    def doubts(self, index: int) -> tuple[str, ...]:
        """Return the doubts behind the name of a track, with those of left-out groups around it."""
        main = self._main_of[index]
        track = self._tracks.special_of(main)
        return self.joined_doubts.get(main) or (track.doubts if track else ())

    def _name(self, index: int) -> str:
        """Return the displayed name of a track without its doubts."""
        main = self._main_of[index]
        if main in self._names:
            name = self._names[main]
        elif self._is_lane[main]:  # the row of the thread itself has its name
            name = LANE
        elif self._is_row_of_thread[main]:
            name = f"{self._ids.names[main] or 'thread'} {self._ids.tid[main]}"
        elif track := self._tracks.special_of(main):
            labels = () if self._ids.native[main] else track.labels
            name = ", ".join([track.shown or self._ids.names[main], *labels])
        else:
            name = self._ids.names[main]
        return _LATE + name.removeprefix(_LATE) if self._is_late[main] else name

    def group_name(self, parent: int, group: int) -> str:
        """Return the name of a group of a track."""
        name = _GROUP_NAMES[group]
        return f"{_LATE}{name}" if self._ids.native[parent] else name

    def _into_processes(self, trace: Trace, stated: Trace) -> None:
        """Move tracks into the process that they belong to; `stated` is the trace by the inputs that outputs state."""
        source, process, numbers = trace.tracks.column("source"), self._ids.process, trace.tracks.numbers()
        self._is_odd = (self._kind == _PROCESS) & ~self._ids.native & (numbers != NO_NUMBER)
        in_process = (self._kind[process] == _PROCESS) & ~self._is_odd[process]
        can_move = (self._parents == NO_TRACK) & ~self._ids.native & np.isin(self._kind, (_TRACK, _COUNTER))
        can_move &= _can_arrange(trace)[source]
        home = _only(source[in_process], process[in_process], len(trace.sources))[source]
        if np.any(can_move & (home == NO_TRACK)) and len(trace.flows.from_slice):
            home = np.where(home == NO_TRACK, self._on_flows(trace, in_process), home)
        if self._is_odd.any():
            source, in_process = stated.tracks.column("source"), in_process & self._ids.native[process]
            home_of_odd = _only(source[in_process], process[in_process], len(stated.sources))[source]
            home = np.where(self._is_odd, home_of_odd, home)
            can_move |= self._is_odd & _can_arrange(stated)[source]
        self._moved = can_move & (home != NO_TRACK)
        self._parents[self._moved] = home[self._moved]

    def _on_flows(self, trace: Trace, in_process: Mask) -> I32:
        """Return for each track at the top the only process that it has flows with; NO_TRACK if there is not one."""
        flows, track, process = trace.flows, trace.slices.track, self._ids.process
        ends = track[flows.from_slice], track[flows.to_slice]
        here, there = np.concatenate(ends), np.concatenate(ends[::-1])
        rows = in_process[here] & ~in_process[there]
        return _only(process[there[rows]], process[here[rows]], len(process))

    def _child_counts(self, among: Mask) -> I64:
        """Return the number of `among` those tracks below each track."""
        above = self._parents[among]
        return np.bincount(above[above != NO_TRACK], minlength=len(self._parents))

    def _without_groups_of_one(self) -> None:
        only_child = np.full(len(self._parents), NO_TRACK, np.int32)
        rows = np.flatnonzero(self._has_row & (self._parents != NO_TRACK))
        only_child[self._parents[rows]] = rows
        has_one = self._has_row & (self._child_counts(self._has_row) == 1) & (self._parents != NO_TRACK)
        groups = has_one & ~self._has_events & self._is_plain & self._is_plain[only_child] & ~self._is_odd
        joined: defaultdict[int, int] = defaultdict(int)
        self._renamed: list[int] = []
        for group in np.flatnonzero(groups).tolist():
            only = int(only_child[group])
            if joined[group] < _MOST_JOINED:
                joined[only] = joined[group] + 1
                self.left_out.add(group)
                self._renamed.append(only)
                self._parents[only] = self._parents[group]
                self.positions[only] = self.positions[group]
                self._moved[only] |= self._moved[group]
                above, name = self._name(group), self._name(only)
                self._names[only] = name if name.startswith(above) else f"{above}{JOINT}{name}"
                self.joined_doubts[only] = tuple(dict.fromkeys((*self.doubts(group), *self.doubts(only))))
                self.descriptions[only] = "\n".join(filter(None, (self.descriptions[group], self.descriptions[only])))

    def _group_counters(self) -> None:
        counters = self._child_counts(self._has_row & (self._kind == _COUNTER))
        others = self._child_counts(self._has_row) - counters
        can_group = ~(self._ids.native & (self._kind == _THREAD))
        is_counted = can_group & (counters > 0) & ((others > 0) | self._has_events)
        rows = np.flatnonzero(self._has_row & (self._parents != NO_TRACK) & (self._kind == _COUNTER))
        self._group(rows[is_counted[self._parents[rows]]], COUNTERS)

    def _group(self, rows: npt.NDArray[np.intp], group: int) -> None:
        """Put tracks into a group of their parents."""
        self._group_of[rows] = group
        self.groups |= dict.fromkeys(((parent, group) for parent in self._parents[rows].tolist()), 0)

    def _late_names(self, shows: Mask) -> None:
        """Mark the tracks without slices that have siblings with slices, by which tracks are drawn with slices."""
        self._spread(shows)
        above = self._parents
        beside = (above != NO_TRACK) & shows[above] & self._ids.native[above] & (self._kind[above] != _THREAD)
        self._late[:] = self._has_row & beside & ~shows & self._is_plain
        self._late[list(self.left_out)] = False

    def _spread(self, shows: Mask) -> None:
        """Mark the tracks around those that are marked, too."""
        parents, is_shown, has_row = self._parents.data, shows.data, self._has_row.data
        for number in range(len(shows) - 1, -1, -1):
            if is_shown[number] and has_row[number] and parents[number] != NO_TRACK:
                is_shown[parents[number]] = True

    def _group_marks(self, stated: Trace) -> None:
        """Put the rows of a process that show none of its work into a group, where there are several."""
        aside, track = is_aside(stated), stated.slices.track
        works = self._with_rows_of(track[~aside] if aside.any() else track, stated.counters.track)
        shows = works | self._with_rows_of(stated.instants.track, stated.slices.track)
        of_clocks = np.array([clock.synthetic for clock in stated.clocks] or [False], bool)
        synthetic = of_clocks[stated.tracks.column("clock")]
        synthetic[[index for index, track in stated.tracks.special() if track.synthetic]] = True
        works |= synthetic
        self._spread(works)
        self._spread(shows)
        above = self._parents
        in_process = (above != NO_TRACK) & (self._kind[above] == _PROCESS) & self._ids.native[above] & works[above]
        rows = np.flatnonzero(self._has_row & in_process & self._is_plain & shows & ~works)
        left_out = np.zeros(len(above), bool)
        left_out[list(self.left_out)] = True
        rows = rows[~left_out[rows]]
        several = np.bincount(above[rows], minlength=len(above)) > 1
        self._group(rows[several[above[rows]]], MARKS)
        self._late[self._group_of == MARKS] = False

    def _group_by_input(self, trace: Trace) -> None:
        source = trace.tracks.column("source")
        can_group = _can_arrange(trace)[source]
        is_alone = self._has_row & self._has_events & (self._child_counts(self._has_row) == 0)
        grouped = is_alone & (self._parents == NO_TRACK) & ~self._ids.native & can_group
        self._input_of[grouped] = source[grouped]
        for number in dict.fromkeys(source[grouped].tolist()):
            self.inputs[number] = os.path.basename(trace.sources[number].name)

    def _order(self) -> None:
        """Renumber the positions of siblings after changes."""
        parents, inputs, mains = self.parents, self.inputs_of, self.mains
        has_changed = np.zeros(len(parents) + 1, bool)  # the last one is for NO_TRACK
        has_changed[[NO_TRACK, *(parent for parent, _ in self.groups), *parents[self._renamed].tolist()]] = True
        has_changed[parents[self._moved]] = True
        takes_part = has_changed[parents]
        takes_part[list(self.left_out)] = False
        group = self._group_of[mains]
        first = takes_part & (group == 0) & (inputs == NO_INPUT) & (parents != NO_TRACK)
        counts = np.bincount(parents[first], minlength=len(parents))
        self.groups = {key: int(counts[key[0]]) + key[1] - 1 for key in self.groups}
        rows = np.flatnonzero(takes_part)
        parents, group, inputs, mains = parents[rows], group[rows], inputs[rows], mains[rows]
        siblings = inputs, group, parents
        order = np.lexsort((rows, mains, self.positions[mains], self._moved[mains], self._late[mains], *siblings))
        self.positions[rows] = numbered(order, *siblings)


def _can_arrange(trace: Trace) -> Mask:
    """Return for each input whether its tracks may be put elsewhere: those of Perfetto traces have their place."""
    return np.array([info.format != _FORMAT for info in trace.sources], bool)


def _only(keys: I32, values: I32, count: int) -> I32:
    """Return for each key below `count` its value if all its values are equal; NO_TRACK for others."""
    least, most = np.full(count, np.iinfo(np.int32).max, np.int32), np.full(count, NO_TRACK, np.int32)
    np.minimum.at(least, keys, values)
    np.maximum.at(most, keys, values)
    return np.where(least == most, most, NO_TRACK).astype(np.int32)
