"""Calls of a host and the device work that they launched, told by the ids that both wrote down."""

from __future__ import annotations

from traceconv.align.drift_correction import Known
from traceconv.align.estimate import Method
from traceconv.align.inputs import ClockInput
from traceconv.align.launches import align_launches, launches_of
from traceconv.align.messages import Text
from traceconv.align.names import NameMap
from traceconv.align.pairs import PairEstimate, both_ways, common_times, made, narrowing
from traceconv.model.clocks import ClockMap, Verdict


class LaunchEstimator:
    """See `Estimator`. What it is not certain of, named events and activity may be."""

    method = Method.LAUNCHES
    settles = frozenset({Verdict.OK})
    explains = 2

    def applies(self, a: ClockInput, b: ClockInput) -> bool:
        """Whether the formats of both say how launches are told."""
        return all(side.trace.sources[0].marks.launches is not None for side in (a, b))

    def estimate(self, a: ClockInput, b: ClockInput, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
        """Return what calls in one say about the work of a device in the other one."""
        found = both_ways(_one_way, a, b, known)
        return min(found, key=lambda pair: pair.estimate.verdict.refused, default=None)


def _one_way(host: ClockInput, device: ClockInput, known: ClockMap | None) -> list[PairEstimate]:
    pairs = launches_of(host.trace, host.clock, device.trace, device.clock)
    if pairs is None:
        return []
    zeros = pairs.zero_x, pairs.zero_y
    before = Known.of(known, common_times(host, device, known), zeros)
    estimate = align_launches(before.without_drift(pairs), before.prior)
    return [narrowing(made(host, device, before.with_drift(estimate), zeros, known), Text.LAUNCHES_TELL_NO_MORE)]
