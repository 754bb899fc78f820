"""Clocks whose drift is known: it is taken out before their events are compared, and put back into the answer.

An estimator that searches a window of offsets would else have to search all that the drift makes of it on the way, and
would find other iterations there.

With a known drift d, clock y is taken as (1 + d) * y'. What is found of x and y' is y' = x + o' + d' * (x - x0), so
that y = x + (1 + d) * o' + d * x0 + (d + (1 + d) * d') * (x - x0).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from traceconv.align.estimate import Bins, Estimate, Events, Prior, Rival, Samples
from traceconv.align.geometry import Chain, Line, Region
from traceconv.align.launches import Pairs
from traceconv.align.nesting import ThreadStretches
from traceconv.model.clocks import DRIFT_UNIT, FREE_DRIFT, ClockMap

_Timed = TypeVar("_Timed", Events, Samples, Bins, Pairs, ThreadStretches)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beforehand of two clocks.

    Attributes:
        prior: for what `without_drift` leaves of the times of clock y.
        drift: how much faster clock y runs than clock x, as a ratio.
    """

    prior: Prior
    drift: float

    @classmethod
    def of(cls, known: ClockMap | None, span: tuple[int, int], zeros: tuple[int, int]) -> Known:
        """What a map says between two times of clock x.

        Args:
            known: from clock x to clock y.
            span: ns of clock x.
            zeros: what the times of both count from.
        """
        if known is None or known.bound_ns is None:
            return cls(Prior(max_drift=FREE_DRIFT), 0.0)
        drift = 0.0 if known.bends else known.drift * DRIFT_UNIT
        knots = [bend.at_ns for bend in known.bends if min(span) < bend.at_ns < max(span)]
        # A clock that was set on the way was at either side of the step there.
        times = [*span, *knots, *(knot - 1 for knot in knots)]
        offsets = [(known.at(ts) - zeros[1]) / (1 + drift) - (ts - zeros[0]) for ts in times]
        return cls(Prior(min(offsets) - known.bound_ns, max(offsets) + known.bound_ns, FREE_DRIFT), drift)

    def without_drift(self, seen: _Timed) -> _Timed:
        """The same with times on clock y as they would be without the drift."""
        rate = 1 + self.drift
        if not self.drift:
            return seen
        if isinstance(seen, Events):
            return replace(seen, start=seen.start / rate, dur=seen.dur / rate)
        if isinstance(seen, Samples):
            return replace(seen, t=seen.t / rate)
        if isinstance(seen, Bins):
            return replace(seen, edge=seen.edge / rate)
        if isinstance(seen, ThreadStretches):
            return replace(seen, calls=self.without_drift(seen.calls))
        return replace(seen, begin=seen.begin / rate, end=seen.end / rate)

    def with_drift(self, found: Estimate) -> Estimate:
        """An estimate of clock y itself, from one that rests on without_drift times."""
        if not self.drift:
            return found
        landscape = found.landscape
        x0 = found.line.x0
        return replace(
            found,
            chain=Chain(tuple(map(self._line, found.chain.lines))),
            rivals=tuple(Rival(self._offset(rival.offset_ns, x0), rival.score) for rival in found.rivals),
            landscape=landscape and ((1 + self.drift) * landscape[0] + self.drift * x0, landscape[1]),
        )

    def _offset(self, offset: float, x0: float) -> float:
        return (1 + self.drift) * offset + self.drift * x0

    def _line(self, line: Line) -> Line:
        rate, old = 1 + self.drift, line.region
        region = old and Region(old.x0, rate * old.offsets + self.drift * old.x0, self.drift + rate * old.drifts)
        drift = self.drift + rate * line.drift
        return replace(line, offset=self._offset(line.offset, line.x0), drift=drift, region=region)
