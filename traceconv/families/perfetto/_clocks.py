"""The clocks of a Perfetto trace, and the conversion of its times to one of them.

Source: protos/perfetto/trace/clock_snapshot.proto, protos/perfetto/common/builtin_clock.proto and
docs/concepts/clock-sync.md of github.com/google/perfetto.

A timestamp is on the clock that its packet states, else on the default clock of the sequence, else on the clock of the
trace. Snapshots are readings of several clocks at one instant. As in Perfetto, a time is converted over at most four
snapshots, each with the offset of the latest snapshot at or before it, without drift. Unlike Perfetto, all snapshots of
the file are used, also those after the event, so that no event is lost for its position.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from traceconv.families.common.wire_reader import Value, as_bytes, fields, unsigned
from traceconv.model.clocks import BOOTTIME, MONOTONIC, MONOTONIC_RAW, REALTIME, ClockDomain, ClockSnapshot, Run, Zero
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import I64

_REALTIME, _BOOTTIME = 1, 6
_SEQUENCE_CLOCKS = range(64, 128)
_MAX_HOPS = 4
#: The clock of the trace, whichever that is.
TRACE_TIME = 0

_DOMAINS = {
    _REALTIME: REALTIME,
    2: ClockDomain("CLOCK_REALTIME_COARSE", Zero.UNKNOWN, Run.WALL),
    3: MONOTONIC,
    4: ClockDomain("CLOCK_MONOTONIC_COARSE", Zero.UNKNOWN, Run.MONOTONIC),
    5: MONOTONIC_RAW,
    _BOOTTIME: BOOTTIME,
    9: ClockDomain("TSC", Zero.UNKNOWN, Run.MONOTONIC),
    10: ClockDomain("perf clock", Zero.UNKNOWN, Run.MONOTONIC),
    11: ClockDomain("trace file clock", Zero.UNKNOWN, Run.UNKNOWN),
}
_METHOD = "clock snapshot of the file"

_LEAST, _MOST = -(2**63), 2**63 - 1

#: A clock id, and the sequence that it is private to (0: none).
_Clock = tuple[int, int]


class Clocks:
    """The clocks of packets, by small numbers; 0 is the clock of the trace."""

    def __init__(self) -> None:
        self._numbers: dict[_Clock, int] = {}
        self._clocks: list[_Clock] = [(0, 0)]
        self._multipliers: dict[int, int] = {}
        self._running: dict[int, int] = {}
        # Snapshots of two or more clocks, in columns, since there may be a million: where each ends, and its readings.
        self._ends, self._read_clocks, self._read_times = array("q", [0]), array("i"), array("q")
        self._with: dict[int, array[int]] = defaultdict(partial(array, "q"))  # the snapshots of a clock
        self._next: dict[int, int] | None = None  # the paths of clocks to the clock of the trace
        self._pairs: dict[tuple[int, int], I64] = {}
        self._primary = 0  # a clock id

    def number(self, clock_id: int, sequence: int) -> int:
        """Return the number of a clock id in a sequence."""
        if clock_id == 0:
            return TRACE_TIME
        clock = clock_id, sequence if clock_id in _SEQUENCE_CLOCKS else 0
        number = self._numbers.get(clock)
        if number is None:
            number = self._numbers[clock] = len(self._clocks)
            self._clocks.append(clock)
        return number

    def is_incremental(self, number: int) -> bool:
        """Return whether timestamps of the clock count from the one before."""
        return number in self._running

    def advance(self, number: int, step: int) -> int:
        """Return the reading of an incremental clock after a step."""
        self._running[number] += step
        return self._running[number]

    def snapshot(self, data: Value, sequence: int) -> bool:
        """Note a ClockSnapshot: clocks 1* {id 1, timestamp 2, is_incremental 3, multiplier 4}, primary clock 2.

        Return whether a clock became incremental.
        """
        running, primary = len(self._running), 0
        readings: dict[int, int] = {}
        for field, value in fields(as_bytes(data)):
            if field == 2:
                primary = unsigned(value)
            if field != 1:
                continue
            entry = dict(fields(as_bytes(value)))
            number = self.number(unsigned(entry.get(1, 0)), sequence)
            multiplier = self._multipliers[number] = unsigned(entry.get(4, 0)) or 1
            time = unsigned(entry.get(2, 0))
            if unsigned(entry.get(3, 0)):
                self._running[number] = time
            readings[number] = min(time * multiplier, LIMIT_NS)
        self._primary = self._primary or primary
        if len(readings) > 1:
            for number in readings:
                self._with[number].append(len(self._ends) - 1)
            self._read_clocks.extend(readings)
            self._read_times.extend(readings.values())
            self._ends.append(len(self._read_clocks))
        return len(self._running) > running

    def _clocks_of(self, snapshot: int) -> Sequence[int]:
        """Return the clocks of a snapshot."""
        return self._read_clocks[self._ends[snapshot] : self._ends[snapshot + 1]]

    def _times(self, clock: int) -> tuple[I64, I64]:
        """Return the snapshots of a clock, in order, and its readings in them."""
        places = np.flatnonzero(np.asarray(self._read_clocks) == clock)
        return np.searchsorted(np.asarray(self._ends), places, side="right") - 1, np.asarray(self._read_times)[places]

    # -- the end ----------------------------------------------------------------------------------------------

    def settle(self, used: set[int]) -> None:
        """Choose the clock of the trace, given the clocks of all events."""
        if not self._primary:
            only = {self._clocks[number][0] for number in used}
            alone = len(only) == 1 and len(self._ends) == 1
            self._primary = (only.pop() if alone else 0) or _BOOTTIME

    @property
    def domain(self) -> ClockDomain:
        """The domain of the clock of the trace; `settle` comes first."""
        return _DOMAINS.get(self._primary, ClockDomain(f"Perfetto clock {self._primary}", Zero.UNKNOWN, Run.UNKNOWN))

    def to_trace_time(self, number: int, ts: I64) -> I64 | None:
        """Return times in ns on the clock of the trace; None if nothing relates the clock to it."""
        path = self._path(number)
        if path is None:
            return None
        multiplier = self._multipliers.get(number, 1)
        if multiplier != 1:
            ts = np.array([max(_LEAST, min(one * multiplier, _MOST)) for one in ts.tolist()], np.int64)
        for one, other in pairwise(path):
            readings = self._readings(one, other)
            latest = np.searchsorted(readings[:, 0], ts, side="right") - 1
            ts = moved(ts, (readings[:, 1] - readings[:, 0])[np.maximum(latest, 0)])
        return ts

    def _path(self, number: int) -> list[int] | None:
        """Return the path of clocks to the clock of the trace, including it."""
        goal = self.number(self._primary, 0)
        if number in (TRACE_TIME, goal):
            return [goal]
        if self._next is None:
            self._next = self._ways_to(goal)
        path = [number]
        while path[-1] != goal and path[-1] in self._next:
            path.append(self._next[path[-1]])
        return path if path[-1] == goal else None

    def _ways_to(self, goal: int) -> dict[int, int]:
        """Return the next clock on the shortest path to a goal, for each clock; of several the first one in the file.

        Each snapshot is visited at most twice: there may be many, with many clocks.
        """
        hops = {goal: 0}
        seen: set[int] = set()
        reached = [goal]
        for far in range(1, _MAX_HOPS + 1):
            met = dict.fromkeys(one for number in reached for one in self._with[number])
            neighbours = dict.fromkeys(number for one in met.keys() - seen for number in self._clocks_of(one))
            seen.update(met)
            reached = [number for number in neighbours if number not in hops]
            hops.update(dict.fromkeys(reached, far))
        ways: dict[int, int] = {}
        for snapshot in map(self._clocks_of, range(len(self._ends) - 1)):
            first = min(snapshot, key=lambda number: hops.get(number, _MAX_HOPS + 1))
            for number in snapshot:
                if hops.get(number) == hops.get(first, _MAX_HOPS) + 1:
                    ways.setdefault(number, first)
        return ways

    def _readings(self, one: int, other: int) -> I64:
        """Return all readings of two clocks, in order of the first one's."""
        if (one, other) not in self._pairs:
            here, there = self._in_file_order(one, other)
            self._pairs[one, other] = np.column_stack((here, there))[np.lexsort((there, here))]
        return self._pairs[one, other]

    def _in_file_order(self, one: int, other: int) -> tuple[I64, I64]:
        """Return the readings of two clocks in the snapshots that have both."""
        (places, here), (other_places, there) = self._times(one), self._times(other)
        return here[np.isin(places, other_places)], there[np.isin(other_places, places)]

    def describe(self, number: int) -> str:
        """Return a clock for messages."""
        clock_id, sequence = self._clocks[number]
        return f"clock {clock_id}" + (f" of sequence {sequence}" if sequence else "")

    def snapshots(self, domain: ClockDomain) -> list[ClockSnapshot]:
        """Return readings of the clock of the trace and other clocks; all readings of a pair agree within the bound.

        Args:
            domain: the domain of the clock of the trace.
        """
        goal = self.number(self._primary, 0)
        others = dict.fromkeys(other for place in self._with[goal] for other in self._clocks_of(place))
        snapshots = []
        for other in others:
            if other == goal or self._clocks[other][0] not in _DOMAINS:
                continue
            here, there = self._in_file_order(goal, other)
            offsets = there - here
            bound = int(np.max(offsets) - np.min(offsets)) if len(offsets) > 1 else None
            other_domain = _DOMAINS[self._clocks[other][0]]
            snapshots.append(ClockSnapshot(domain, int(here[0]), other_domain, int(there[0]), bound, _METHOD))
        return snapshots


def moved(ts: I64, by: I64 | int) -> I64:
    """Return times in ns, moved by at most LIMIT_NS.

    Results are limited to LIMIT_NS, where the builder recognises them as impossible, and never overflow.
    """
    possible = (ts >= -LIMIT_NS) & (ts <= LIMIT_NS)
    return ts + by if possible.all() else np.where(possible, ts + by, ts)
