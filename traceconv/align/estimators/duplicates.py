"""One recording that is given twice: equal times are one instant."""

from __future__ import annotations

from traceconv.align.duplicate_inputs import same_recording
from traceconv.align.estimate import Estimate, Method
from traceconv.align.inputs import ClockInput
from traceconv.align.messages import Text
from traceconv.align.names import NameMap
from traceconv.align.pairs import PairEstimate, rests_on
from traceconv.model.clocks import ClockMap, Provenance, Step, Verdict


class DuplicateEstimator:
    """See `Estimator`."""

    method = Method.DUPLICATE
    settles: frozenset[Verdict] = frozenset()
    explains = 0

    def applies(self, a: ClockInput, b: ClockInput) -> bool:
        """Whether both inputs hold the same events at the same times."""
        return same_recording(a.trace, b.trace)

    def estimate(self, a: ClockInput, b: ClockInput, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
        """Return that both are one clock; None of two different clocks of the recording."""
        if a.clock != b.clock:
            return None
        events = sum(len(table.ts) for _, table in a.trace.timed_tables())
        estimate = Estimate(self.method, Verdict.OK, Text.ALL_EQUAL(events=events), matches=events)
        way = ClockMap(0, 0, (Step(self.method, Provenance.ESTIMATED),), rests_on=rests_on(a, b))
        return PairEstimate(a, b, estimate, 0, 0, way, 0, known)
