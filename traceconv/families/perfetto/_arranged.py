"""Arrange tracks for the Perfetto UI, so that the first view shows the work.

The UI (v52) sorts the tracks of a process: threads first, then all others by name; a stated order counts only below
plain groups. Groups are collapsed at first, a single node at the top is expanded. So:

- Tracks of an input outside of processes are moved into its process, if it has only one; except for Perfetto traces,
  which state their nesting.
- A group of one track is left out, and the track gets the names of both. So are two such groups inside each other.
- Counters are put into a group of their own, behind the other tracks.
- Tracks and groups of a process without slices get a name that sorts behind the others.
- The UI puts tracks at the top that have events and no tracks inside them into "Global Track Events", which does not
  say what they are. So they get a group with the name of their input; except for those of Perfetto traces.
"""

from __future__ import annotations

import os
from collections import defaultdict

import numpy as np
import numpy.typing as npt

from traceconv.model.marks import JOINT
from traceconv.model.ordering import occurring
from traceconv.model.stated import by_stated_inputs
from traceconv.model.trace import I32, I64, NO_TRACK, TIMED, Trace, TrackKind
from traceconv.writers.ids import Identities, numbered, with_doubts

_FORMAT = "perfetto"
COUNTERS = "Counters"
#: The prefix of names that sort behind names that start with a letter.
_LATE = "· "
#: The most nested groups that are left out, such as a device and a context: longer chains would give endless names.
_MOST_JOINED = 2


class Arrangement:
    """The displayed tree of tracks.

    Args:
        trace: the trace.
        ids: the identity of each track.

    Attributes:
        left_out: the groups that are left out.
        counted: the tracks that have a group for their counters.
        joined_doubts: the doubts of the tracks that have the name of a left-out group, too.
        inputs: the inputs, also those that an output of traceconv states, that have a group for their tracks at the
            top, with the name of the group.
    """

    def __init__(self, trace: Trace, ids: Identities) -> None:
        self._tracks, self._ids = trace.tracks, ids
        self._kind, self._own_descriptions = trace.tracks.column("kind"), trace.tracks.texts("description")
        own, lane_of = np.arange(len(ids), dtype=np.int32), trace.tracks.column("lane_of")
        #: By track: the one whose row it is drawn in: itself, or the main track of a lane.
        self.mains: I32 = np.where((lane_of == NO_TRACK) | ids.native[lane_of], own, lane_of)
        self._has_row = self.mains == own
        self._is_plain = ~ids.native & (self._kind != TrackKind.COUNTER)
        self._parents = ids.parent.copy()
        self._positions = ids.position.copy()
        self._names: dict[int, str] = {}
        self.joined_doubts: dict[int, tuple[str, ...]] = {}
        self._descriptions: dict[int, str] = {}
        self._moved, self._late = np.zeros(len(ids), bool), np.zeros(len(ids), bool)
        self.left_out: set[int] = set()
        self.counted: set[int] = set()
        self.inputs: dict[int, str] = {}
        self._input_of = np.full(len(ids), _NO_INPUT, np.int32)
        self._has_events = self._with_rows_of(*(getattr(trace, name).track for name in TIMED))
        self._into_processes(trace)
        self._without_groups_of_one()
        self._group_counters()
        self._late_names(self._with_rows_of(trace.slices.track))
        self._group_by_input(by_stated_inputs(trace))
        self._order()

    def _with_rows_of(self, *columns: I32) -> Mask:
        """Return which tracks are drawn with the events of these columns of tracks."""
        mask = np.zeros(len(self.mains), bool)
        for column in columns:
            mask[self.mains[occurring(column)]] = True
        return mask

    @property
    def parents(self) -> I32:
        """The displayed parents of all tracks; see `parent`."""
        return self._parents[self.mains]

    @property
    def inputs_of(self) -> I32:
        """The inputs of all tracks; see `input_of`. Another number than those of inputs is for none."""
        return self._input_of[self.mains]

    def parent(self, index: int) -> int:
        """Return the displayed parent of a track, NO_TRACK at the top."""
        return int(self._parents[self.mains[index]])

    def name(self, index: int) -> str:
        """Return the displayed name of a track, with its doubts."""
        doubts = self.doubts(index)
        return with_doubts(self._name(index), self._tracks[index], doubts) if doubts else self._name(index)

    def doubts(self, index: int) -> tuple[str, ...]:
        """Return the doubts behind the name of a track, with those of left-out groups around it."""
        main = int(self.mains[index])
        track = self._tracks.special_of(main)
        return self.joined_doubts.get(main) or (track.doubts if track else ())

    def _name(self, index: int) -> str:
        """Return the displayed name of a track without its doubts."""
        main = int(self.mains[index])
        name = self._names[main] if main in self._names else self._title(main)
        return _LATE + name.removeprefix(_LATE) if self._late[main] else name

    def description(self, index: int) -> str:
        """Return the help text of a track, with those of left-out groups around it."""
        return self._descriptions.get(index) or self._own_descriptions[index]

    @property
    def positions(self) -> I32:
        """The position of each track among its siblings, which Perfetto uses below plain groups."""
        return self._positions

    def group_position(self, index: int) -> int:
        """Return the position of the group of counters of a track: the last one."""
        return self._group_positions[index]

    def group_name(self, index: int) -> str:
        """Return the name of the group of the counters of a track."""
        return f"{_LATE}{COUNTERS}" if self._ids.native[index] else COUNTERS

    def is_grouped(self, index: int) -> bool:
        """Return whether a track is in the group of counters of its parent."""
        return bool(self._kind[index] == TrackKind.COUNTER) and self.parent(index) in self.counted

    def input_of(self, index: int) -> int | None:
        """Return the input in whose group a track is; None for tracks that are not in such a group."""
        number = int(self._input_of[self.mains[index]])
        return None if number == _NO_INPUT else number

    def _title(self, index: int) -> str:
        track = self._tracks.special_of(index)
        if track is None:
            return self._ids.names[index]
        labels = () if self._ids.native[index] else track.labels
        return ", ".join([track.shown or self._ids.names[index], *labels])

    def _into_processes(self, trace: Trace) -> None:
        source, process = trace.tracks.column("source"), self._ids.process
        in_process = self._kind[process] == TrackKind.PROCESS
        first, last = np.full(len(trace.sources), len(process)), np.full(len(trace.sources), NO_TRACK)
        np.minimum.at(first, source[in_process], process[in_process])
        np.maximum.at(last, source[in_process], process[in_process])
        has_only = (first == last) & np.array([one.format != _FORMAT for one in trace.sources], bool)
        is_of_system = (self._kind == TrackKind.PROCESS) | (self._kind == _THREAD)
        self._moved = (self._parents == NO_TRACK) & ~self._ids.native & ~is_of_system & has_only[source]
        self._parents[self._moved] = first[source[self._moved]]

    def _child_counts(self, among: Mask) -> I64:
        """Return the number of `among` those tracks below each track."""
        above = self._parents[among]
        return np.bincount(above[above != NO_TRACK], minlength=len(self._parents))

    def _without_groups_of_one(self) -> None:
        only_child = np.full(len(self._parents), NO_TRACK, np.int32)
        rows = np.flatnonzero(self._has_row & (self._parents != NO_TRACK))
        only_child[self._parents[rows]] = rows
        has_one = self._has_row & (self._child_counts(self._has_row) == 1) & (self._parents != NO_TRACK)
        groups = has_one & ~self._has_events & self._is_plain & self._is_plain[only_child]
        joined: defaultdict[int, int] = defaultdict(int)
        self._renamed: list[int] = []
        for group in np.flatnonzero(groups).tolist():
            only = int(only_child[group])
            if joined[group] < _MOST_JOINED:
                joined[only] = joined[group] + 1
                self.left_out.add(group)
                self._renamed.append(only)
                self._parents[only] = self._parents[group]
                self._positions[only] = self._positions[group]
                self._moved[only] |= self._moved[group]
                self._names[only] = _both(self._name(group), self._name(only))
                self.joined_doubts[only] = tuple(dict.fromkeys((*self.doubts(group), *self.doubts(only))))
                texts = self.description(group), self.description(only)
                self._descriptions[only] = "\n".join(filter(None, texts))

    def _group_counters(self) -> None:
        counters = self._child_counts(self._has_row & (self._kind == TrackKind.COUNTER))
        others = self._child_counts(self._has_row) - counters
        can_group = ~(self._ids.native & (self._kind == _THREAD))
        is_counted = can_group & (counters > 0) & ((others > 0) | self._has_events)
        rows = np.flatnonzero(self._has_row & (self._parents != NO_TRACK))
        self.counted.update(dict.fromkeys(self._parents[rows[is_counted[self._parents[rows]]]].tolist()))

    def _late_names(self, shows: Mask) -> None:
        """Mark the tracks without slices that have siblings with slices.

        Args:
            shows: which tracks are drawn with slices.
        """
        parents, is_shown, has_row = self._parents.data, shows.data, self._has_row.data
        for number in range(len(shows) - 1, -1, -1):
            if is_shown[number] and has_row[number] and parents[number] != NO_TRACK:
                is_shown[parents[number]] = True
        above = self._parents
        beside = (above != NO_TRACK) & shows[above] & self._ids.native[above] & (self._kind[above] != _THREAD)
        self._late = self._has_row & beside & ~shows & self._is_plain
        self._late[list(self.left_out)] = False

    def _group_by_input(self, trace: Trace) -> None:
        source = trace.tracks.column("source")
        can_group = np.array([one.format != _FORMAT for one in trace.sources], bool)[source]
        is_alone = self._has_row & self._has_events & (self._child_counts(self._has_row) == 0)
        grouped = is_alone & (self._parents == NO_TRACK) & ~self._ids.native & can_group
        self._input_of[grouped] = source[grouped]
        for number in dict.fromkeys(source[grouped].tolist()):
            self.inputs[number] = os.path.basename(trace.sources[number].name)

    def _order(self) -> None:
        """Renumber the positions of siblings after changes."""
        parents, inputs, mains = self.parents, self.inputs_of, self.mains
        has_changed = np.zeros(len(parents) + 1, bool)  # the last one is for NO_TRACK
        changed = [NO_TRACK, *self.counted, *map(self.parent, self._renamed)]
        has_changed[changed] = has_changed[parents[self._moved]] = True
        is_counted = np.zeros(len(parents) + 1, bool)
        is_counted[list(self.counted)] = True
        takes_part = has_changed[parents]
        takes_part[list(self.left_out)] = False
        is_grouped = (self._kind == TrackKind.COUNTER) & is_counted[parents]
        first = takes_part & ~is_grouped & (inputs == _NO_INPUT) & (parents != NO_TRACK)
        counts = np.bincount(parents[first], minlength=len(parents))
        self._group_positions = {parent: int(counts[parent]) for parent in self.counted}
        rows = np.flatnonzero(takes_part)
        parents, is_grouped, inputs, mains = parents[rows], is_grouped[rows], inputs[rows], mains[rows]
        siblings = inputs, is_grouped, parents
        order = np.lexsort((rows, mains, self._positions[mains], self._moved[mains], self._late[mains], *siblings))
        self._positions[rows] = numbered(order, *siblings)


_THREAD = TrackKind.THREAD
#: For tracks outside of the groups of inputs.
_NO_INPUT = -1
Mask = npt.NDArray[np.bool_]


def _both(group: str, track: str) -> str:
    """Return the joint name of a group and the only track in it."""
    return track if track.startswith(group) else f"{group}{JOINT}{track}"
