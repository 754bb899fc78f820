"""The clocks of a Perfetto trace, and how its times come to stand on one of them.

Source: protos/perfetto/trace/clock_snapshot.proto, protos/perfetto/common/builtin_clock.proto and
docs/concepts/clock-sync.md of github.com/google/perfetto.

Each packet says on which clock its timestamp is, or leaves it to the default of its sequence, or to the clock of the
trace. Snapshots are readings of several clocks at one instant. As in Perfetto, a time goes from clock to clock over at
most four snapshots, each time with the offset of the latest snapshot at or before it, without a rate between two.
Other than in Perfetto, all snapshots of the file count, also those behind the event: nothing is lost for its place.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise, permutations

import numpy as np

from traceconv.clocks import BOOTTIME, MONOTONIC, MONOTONIC_RAW, REALTIME, ClockDomain, ClockSnapshot, Run, Zero
from traceconv.importers._wire_reader import Message, Value
from traceconv.ir.trace import I64
from traceconv.times import LIMIT_NS

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
    """All clocks that packets name, by a small number; 0 is the clock of the trace."""

    def __init__(self) -> None:
        self._numbers: dict[_Clock, int] = {}
        self._clocks: list[_Clock] = [(0, 0)]
        self._multipliers: dict[int, int] = {}
        self._running: dict[int, int] = {}
        self._readings: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self._primary = 0  # a clock id

    def number(self, clock_id: int, sequence: int) -> int:
        """The number of a clock as a packet of a sequence names it."""
        if clock_id == 0:
            return TRACE_TIME
        clock = clock_id, sequence if clock_id in _SEQUENCE_CLOCKS else 0
        number = self._numbers.get(clock)
        if number is None:
            number = self._numbers[clock] = len(self._clocks)
            self._clocks.append(clock)
        return number

    def is_incremental(self, number: int) -> bool:
        """Whether timestamps of the clock count from the one before."""
        return number in self._running

    def advance(self, number: int, step: int) -> int:
        """The reading of an incremental clock after a step."""
        self._running[number] += step
        return self._running[number]

    def snapshot(self, data: Value, sequence: int) -> None:
        """Note a ClockSnapshot: clocks 1* {id 1, timestamp 2, is_incremental 3, multiplier 4}, primary clock 2."""
        message = Message(data)
        if not self._primary:
            self._primary = message.unsigned(2)
        readings: dict[int, int] = {}
        for entry in map(Message, message.all(1)):
            number = self.number(entry.unsigned(1), sequence)
            multiplier = self._multipliers[number] = entry.unsigned(4) or 1
            if entry.unsigned(3):
                self._running[number] = entry.unsigned(2)
            readings[number] = min(entry.unsigned(2) * multiplier, LIMIT_NS)
        for (one, ts), (other, other_ts) in permutations(readings.items(), 2):
            self._readings[one, other].append((ts, other_ts))

    # -- the end ----------------------------------------------------------------------------------------------

    def settle(self, used: set[int]) -> None:
        """Decide which clock is that of the trace, given the clocks of all events."""
        if not self._primary:
            only = {self._clocks[number][0] for number in used}
            alone = len(only) == 1 and not self._readings
            self._primary = (only.pop() if alone else 0) or _BOOTTIME

    @property
    def domain(self) -> ClockDomain:
        """The domain of the clock of the trace; `settle` comes first."""
        return _DOMAINS.get(self._primary, ClockDomain(f"Perfetto clock {self._primary}", Zero.UNKNOWN, Run.UNKNOWN))

    def to_trace_time(self, number: int, ts: I64) -> I64 | None:
        """Times in ns on the clock of the trace; None if nothing relates the clock to it."""
        path = self._path(number)
        if path is None:
            return None
        multiplier = self._multipliers.get(number, 1)
        if multiplier != 1:
            ts = np.array([max(_LEAST, min(one * multiplier, _MOST)) for one in ts.tolist()], np.int64)
        for one, other in pairwise(path):
            readings = np.array(sorted(self._readings[one, other]), np.int64)
            latest = np.searchsorted(readings[:, 0], ts, side="right") - 1
            ts = moved(ts, (readings[:, 1] - readings[:, 0])[np.maximum(latest, 0)])
        return ts

    def _path(self, number: int) -> list[int] | None:
        """The clocks on the way to the clock of the trace, that clock included."""
        goal = self.number(self._primary, 0)
        if number in (TRACE_TIME, goal):
            return [goal]
        paths = [[number]]
        seen = {number}
        for _ in range(_MAX_HOPS):
            longer = [[*path, to] for path in paths for (at, to) in self._readings if at == path[-1] and to not in seen]
            for path in longer:
                if path[-1] == goal:
                    return path
            seen.update(path[-1] for path in longer)
            paths = longer
        return None

    def describe(self, number: int) -> str:
        """A clock for messages."""
        clock_id, sequence = self._clocks[number]
        return f"clock {clock_id}" + (f" of sequence {sequence}" if sequence else "")

    def snapshots(self, domain: ClockDomain) -> list[ClockSnapshot]:
        """Readings of the clock of the trace and other clocks; all readings of a pair agree within the bound.

        Args:
            domain: the domain of the clock of the trace.
        """
        goal = self.number(self._primary, 0)
        found = []
        for (one, other), readings in self._readings.items():
            other_domain = _DOMAINS.get(self._clocks[other][0])
            if one != goal or other_domain is None:
                continue
            offsets = [there - here for here, there in readings]
            bound = max(offsets) - min(offsets) if len(offsets) > 1 else None
            found.append(ClockSnapshot(domain, readings[0][0], other_domain, readings[0][1], bound, _METHOD))
        return found


def moved(ts: I64, by: I64 | int) -> I64:
    """Times in ns, moved by at most LIMIT_NS.

    Times beyond LIMIT_NS are no times on any clock: they stay there, so that whoever draws them sees it, and none comes
    out with the wrong sign.
    """
    if len(ts) and np.min(ts) >= -LIMIT_NS and np.max(ts) <= min(LIMIT_NS, _MOST - int(np.max(by))):
        return ts + by
    most = _MOST - np.maximum(by, 0)  # only 2^62 + 2^62 does not fit
    return np.where((ts < -LIMIT_NS) | (ts > LIMIT_NS), ts, np.minimum(ts, most) + by)
