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
from array import array
from collections import defaultdict
from collections.abc import Sequence

from traceconv.model.marks import JOINT
from traceconv.model.ordering import occurring
from traceconv.model.stated import by_stated_inputs
from traceconv.model.trace import NO_TRACK, TIMED, Trace, TrackKind
from traceconv.writers.ids import Identity, with_doubts

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
        inputs: the inputs, also those that an output of traceconv states, that have a group for their tracks at the
            top, with the name of the group.
    """

    def __init__(self, trace: Trace, ids: Sequence[Identity]) -> None:
        self._tracks, self._ids = trace.tracks, ids
        self._mains = array("i", [self._main(index, int(track.lane_of)) for index, track in enumerate(trace.tracks)])
        self._parents = [identity.parent for identity in ids]
        self._names: dict[int, str] = {}
        self._doubts: dict[int, tuple[str, ...]] = {}
        self._descriptions: dict[int, str] = {}
        self._positions: dict[int, int] = {}
        self._moved: set[int] = set()
        self._late: set[int] = set()
        self.left_out: set[int] = set()
        self.counted: set[int] = set()
        self.inputs: dict[int, str] = {}
        self._input_of: dict[int, int] = {}
        self._own = {self.main(number) for name in TIMED for number in occurring(getattr(trace, name).track)}
        self._into_processes({number for number, one in enumerate(trace.sources) if one.format == _FORMAT})
        self._without_groups_of_one()
        self._group_counters()
        self._late_names({self.main(number) for number in occurring(trace.slices.track)})
        self._group_by_input(by_stated_inputs(trace))
        self._order()

    def main(self, index: int) -> int:
        """Return the track whose row a track is drawn in: itself, or the main track of a lane."""
        return self._mains[index]

    def _main(self, index: int, lane_of: int) -> int:
        return index if lane_of == NO_TRACK or self._ids[lane_of].native else lane_of

    def parent(self, index: int) -> int:
        """Return the displayed parent of a track, NO_TRACK at the top."""
        return self._parents[self.main(index)]

    def name(self, index: int) -> str:
        """Return the displayed name of a track, with its doubts."""
        return with_doubts(self._name(index), self._tracks[index], self.doubts(index))

    def doubts(self, index: int) -> tuple[str, ...]:
        """Return the doubts behind the name of a track, with those of left-out groups around it."""
        main = self.main(index)
        return self._doubts.get(main) or self._tracks[main].doubts

    def _name(self, index: int) -> str:
        """Return the displayed name of a track without its doubts."""
        main = self.main(index)
        return self._names[main] if main in self._names else self._title(main)

    def description(self, index: int) -> str:
        """Return the help text of a track, with those of left-out groups around it."""
        return self._descriptions.get(index) or self._tracks[index].description

    def position(self, index: int) -> int:
        """Return the position of a track among its siblings, which Perfetto uses below plain groups."""
        return self._positions.get(index, self._ids[index].position)

    def group_position(self, index: int) -> int:
        """Return the position of the group of counters of a track: the last one."""
        return self._group_positions[index]

    def group_name(self, index: int) -> str:
        """Return the name of the group of the counters of a track."""
        return f"{_LATE}{COUNTERS}" if self._ids[index].native else COUNTERS

    def is_grouped(self, index: int) -> bool:
        """Return whether a track is in the group of counters of its parent."""
        return self._tracks[index].kind is TrackKind.COUNTER and self.parent(index) in self.counted

    def input_of(self, index: int) -> int | None:
        """Return the input in whose group a track is; None for tracks that are not in such a group."""
        return self._input_of.get(self.main(index))

    def _title(self, index: int) -> str:
        labels = () if self._ids[index].native else self._tracks[index].labels
        return ", ".join([self._tracks[index].shown or self._ids[index].name, *labels])

    def _is_plain(self, index: int) -> bool:
        """Return whether a track is drawn as something other than a process, a thread or a counter."""
        return not self._ids[index].native and self._tracks[index].kind is not TrackKind.COUNTER

    def _rows(self) -> list[int]:
        """Return the tracks that have rows of their own."""
        return [number for number in range(len(self._parents)) if self.main(number) == number]

    def _into_processes(self, arranged: set[int]) -> None:
        processes: defaultdict[int, set[int]] = defaultdict(set)
        for track, identity in zip(self._tracks, self._ids, strict=True):
            if self._tracks[identity.process].kind is TrackKind.PROCESS:
                processes[track.source].add(identity.process)
        for index, track in enumerate(self._tracks):
            if track.source in arranged or self._parents[index] != NO_TRACK:
                continue
            if not self._ids[index].native and track.kind not in _OF_SYSTEM:
                only = processes[track.source]
                if len(only) == 1:
                    self._parents[index] = next(iter(only))
                    self._moved.add(index)

    def _children(self) -> defaultdict[int, list[int]]:
        children: defaultdict[int, list[int]] = defaultdict(list)
        for number in self._rows():
            children[self._parents[number]].append(number)
        return children

    def _without_groups_of_one(self) -> None:
        children = self._children()
        joined: defaultdict[int, int] = defaultdict(int)
        for group in self._rows():
            parent, inside = self._parents[group], children[group]
            if parent == NO_TRACK or group in self._own or not self._is_plain(group) or len(inside) != 1:
                continue
            (only,) = inside
            if self._is_plain(only) and joined[group] < _MOST_JOINED:
                joined[only] = joined[group] + 1
                self.left_out.add(group)
                self._parents[only] = parent
                self._positions[only] = self.position(group)
                self._moved |= {only} if group in self._moved else set()
                self._names[only] = _both(self._name(group), self._name(only))
                self._doubts[only] = tuple(dict.fromkeys((*self.doubts(group), *self.doubts(only))))
                texts = self.description(group), self.description(only)
                self._descriptions[only] = "\n".join(filter(None, texts))

    def _group_counters(self) -> None:
        for parent, inside in self._children().items():
            if parent == NO_TRACK or (self._ids[parent].native and self._tracks[parent].kind is TrackKind.THREAD):
                continue
            counters = sum(self._tracks[number].kind is TrackKind.COUNTER for number in inside)
            if counters and (counters < len(inside) or parent in self._own):
                self.counted.add(parent)

    def _late_names(self, sliced: set[int]) -> None:
        """Set the names of tracks without slices that have siblings with slices."""
        shows = set(sliced)
        for number in reversed(self._rows()):
            if number in shows and self._parents[number] != NO_TRACK:
                shows.add(self._parents[number])
        for number in self._rows():
            parent = self._parents[number]
            in_process = parent in shows and self._ids[parent].native and self._tracks[parent].kind is not _THREAD
            if in_process and number not in shows and self._is_plain(number) and number not in self.left_out:
                self._names[number] = _LATE + self._name(number).removeprefix(_LATE)
                self._late.add(number)

    def _group_by_input(self, trace: Trace) -> None:
        children = self._children()
        for index in children[NO_TRACK]:
            number = trace.tracks[index].source
            source = trace.sources[number]
            if index in self._own and not children[index] and not self._ids[index].native and source.format != _FORMAT:
                self._input_of[index] = number
                self.inputs[number] = os.path.basename(source.name)

    def _order(self) -> None:
        """Renumber the positions of siblings after changes."""
        changed = {NO_TRACK, *self.counted, *map(self.parent, self._moved), *map(self.parent, self._positions)}
        siblings: defaultdict[tuple[int, bool, int | None], list[int]] = defaultdict(list)
        for index in range(len(self._parents)):
            if index not in self.left_out and self.parent(index) in changed:
                siblings[self.parent(index), self.is_grouped(index), self.input_of(index)].append(index)
        self._group_positions = {parent: len(siblings[parent, False, None]) for parent in self.counted}
        keys = {index: self._key(index) for inside in siblings.values() for index in inside}
        for inside in siblings.values():
            for position, index in enumerate(sorted(inside, key=keys.__getitem__)):
                self._positions[index] = position

    def _key(self, index: int) -> tuple[bool, bool, int, int, int]:
        main = self.main(index)
        return main in self._late, main in self._moved, self.position(main), main, index


_THREAD = TrackKind.THREAD
_OF_SYSTEM = (TrackKind.PROCESS, _THREAD)


def _both(group: str, track: str) -> str:
    """Return the joint name of a group and the only track in it."""
    return track if track.startswith(group) else f"{group}{JOINT}{track}"
