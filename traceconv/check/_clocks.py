"""Track the clocks of a Perfetto trace that are related to its timeline, packet by packet.

A snapshot holds from its position in the file on. The timeline is the primary clock of the first snapshot, or BOOTTIME;
events on a clock that no earlier snapshot relates to it, directly or through others, are lost.
"""

from __future__ import annotations

from traceconv.check._messages import Fields
from traceconv.check._report import declare
from traceconv.model.diagnostics import Diagnostics, Severity
from traceconv.model.drawable import FAR_NS, AtZero

UNKNOWN_CLOCK = declare(
    "check-pftrace.unknown_clock", Severity.DATA_LOSS, "no earlier snapshot relates the clock to the timeline"
)

CLOCK_TWICE = declare(
    "check-pftrace.clock_twice", Severity.ERROR, "a snapshot reads one clock twice: Perfetto does not use the snapshot"
)
TIMELINE_BACK = declare(
    "check-pftrace.timeline_back",
    Severity.ERROR,
    "the clock of the timeline reads less than in an earlier snapshot: Perfetto does not use the snapshot",
)
CLOCK_BACK = declare(
    "check-pftrace.clock_back",
    Severity.DATA_LOSS,
    "an event on a clock that read less than in an earlier snapshot is dropped",
)

BOOTTIME = 6
_SINCE_BOOT = ((BOOTTIME, 0), (3, 0))
_SEQUENCE_CLOCKS = range(64, 128)

#: A clock id, and the sequence that it is private to (0: none).
Clock = tuple[int, int]


class Clocks:
    """The clocks so far."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._timeline: Clock = (BOOTTIME, 0)
        self._has_snapshot = False
        self._groups: list[set[Clock]] = []
        self._known: set[Clock] = {self._timeline}
        self._multipliers: dict[Clock, int] = {}
        self._running: dict[Clock, int] = {}
        self._offsets: dict[Clock, int] = {}
        self._readings: dict[Clock, int] = {}  # the last ones, ns
        self._back: set[Clock] = set()
        self._since_boot = False

    def snapshot(self, message: Fields, sequence: int, packet: int) -> None:
        """Note a ClockSnapshot message, in the packet of this number."""
        if not self._has_snapshot:
            self._has_snapshot = True
            if "primary_trace_clock" in message:
                self._timeline = (message["primary_trace_clock"], 0)
        read = [self._read(entry, sequence) for entry in message.get("clocks", ())]
        readings = dict(read)
        if len(readings) < len(read):
            self._diagnostics.add(CLOCK_TWICE, f"packet {packet}")
            return
        back = {clock for clock, ns in readings.items() if self._readings.get(clock, ns) > ns}
        if self._timeline in back:
            self._diagnostics.add(TIMELINE_BACK, f"packet {packet}")
            return
        self._back |= back
        self._readings.update(readings)
        self._join(set(readings))
        for clock, ns in readings.items():
            self._offsets[clock] = readings.get(self._timeline, ns) - ns
        if len(readings) > 1 and self._timeline in _SINCE_BOOT:
            self._since_boot |= readings.get(self._timeline, 0) >= FAR_NS

    def tell(self, at_zero: AtZero) -> None:
        """Set whether readings show that the timeline counts from boot."""
        at_zero.since_boot = self._since_boot

    def _read(self, entry: Fields, sequence: int) -> tuple[Clock, int]:
        """Return a clock and its reading in ns; also note the unit of the clock."""
        clock, reading = _clock(entry.get("clock_id", 0), sequence), entry.get("timestamp", 0)
        self._multipliers[clock] = entry.get("unit_multiplier_ns") or 1
        if entry.get("is_incremental"):
            self._running[clock] = reading
        return clock, reading * self._multipliers[clock]

    def _join(self, clocks: set[Clock]) -> None:
        touching = [group for group in self._groups if group & clocks]
        self._groups = [group for group in self._groups if not group & clocks]
        self._groups.append(clocks.union(*touching))
        self._known = {self._timeline}.union(*(group for group in self._groups if self._timeline in group))

    def to_timeline(self, timestamp: int, clock_id: int | None, sequence: int, packet: int) -> int:
        """Return a time on the timeline, ns, as far as known; a clock of None is the timeline itself."""
        if clock_id is None:
            return timestamp
        clock = _clock(clock_id, sequence)
        if clock not in self._known:
            self._diagnostics.add(UNKNOWN_CLOCK, f"packet {packet}: clock {clock_id}")
        elif clock in self._back:
            self._diagnostics.add(CLOCK_BACK, f"packet {packet}: clock {clock_id}")
        if clock in self._running:
            timestamp = self._running[clock] = self._running[clock] + timestamp
        return timestamp * self._multipliers.get(clock, 1) + self._offsets.get(clock, 0)


def _clock(clock_id: int, sequence: int) -> Clock:
    return clock_id, sequence if clock_id in _SEQUENCE_CLOCKS else 0
