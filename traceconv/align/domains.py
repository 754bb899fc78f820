"""The clocks of a trace as the alignment sees them: which are its own, which are used, when."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceconv.clocks import ClockDomain, Run
from traceconv.errors import UsageError
from traceconv.ir.trace import Trace


def own(domain: ClockDomain, trace: Trace, index: int) -> ClockDomain:
    """A domain of the input of that index: as it is if files can share it, else as the private one of the input."""
    return domain if domain.shared else domain.owned_by(f"{index}:{trace.sources[0].name}")


def with_own_domains(trace: Trace, index: int) -> Trace:
    """The trace with its private domains marked as its own, also in its snapshots."""
    snapshots = [
        replace(snap, clock=own(snap.clock, trace, index), other=own(snap.other, trace, index))
        for snap in trace.snapshots
    ]
    return trace.with_tables(clocks=[own(domain, trace, index) for domain in trace.clocks], snapshots=snapshots)


def spans(trace: Trace) -> dict[int, tuple[int, int]]:
    """For each clock that events use, the first start and the last end on it, ns."""
    clock_of_track = np.array([int(track.clock) for track in trace.tracks] or [0])
    found: dict[int, tuple[int, int]] = {}
    for name, table in trace.timed_tables():
        clocks = clock_of_track[table.track]
        ends = table.ts + table.dur if name == "slices" else table.ts
        for clock in np.unique(clocks).tolist():
            on_it = clocks == clock
            first, last = int(np.min(table.ts[on_it])), int(np.max(ends[on_it]))
            before = found.get(clock, (first, last))
            found[clock] = min(first, before[0]), max(last, before[1])
    return dict(sorted(found.items()))


def main_clock(trace: Trace, option: str) -> int:
    """The one clock that the times of an input count, by index.

    Raises:
        UsageError: there is none, or more than one; `option` is what asks for it.
    """
    name = trace.sources[0].name
    used = [index for index in spans(trace) if trace.clocks[index].run is not Run.TOTALS]
    used = used or [index for index, domain in enumerate(trace.clocks) if domain.run is not Run.TOTALS]
    timed = [index for index in used if not trace.clocks[index].synthetic]
    chosen = timed or used
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise UsageError(f"{option}: {name} holds totals only, without any time", hint=f"leave {name} out of {option}")
    clocks = ", ".join(trace.clocks[index].name for index in chosen)
    raise UsageError(
        f"{option}: {name} holds times of several clocks ({clocks})",
        hint=f"name an event on the one that is meant: --anchor '{name}:NAME#1.start=OTHER@TIME'",
    )
