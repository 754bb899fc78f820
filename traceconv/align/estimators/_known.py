"""What is known of two clocks before their events are asked."""

from __future__ import annotations

from dataclasses import replace

from traceconv.align.estimate import refused
from traceconv.align.inputs import ClockInput
from traceconv.align.messages import Text
from traceconv.align.pairs import PairEstimate
from traceconv.clocks import ClockMap, Verdict


def common_times(a: ClockInput, b: ClockInput, known: ClockMap | None) -> tuple[int, int]:
    """Return the first and the last time of clock a at which both have events, as far as is known, ns."""
    first, last = a.span()
    if known is None:
        return first, last
    first_b, last_b = map(known.inverse().at, b.span())
    return max(first, first_b), min(last, last_b)


def narrowing(pair: PairEstimate, no_more: Text) -> PairEstimate:
    """Return the estimate, refused with a reason if it tells no more than what was known."""
    known = pair.known.bound_ns if pair.known else None
    if known is None or pair.estimate.verdict.refused or pair.bound_ns < known:
        return pair
    reason = no_more(bound=pair.bound_ns)
    return replace(pair, estimate=refused(pair.estimate.method, Verdict.INSUFFICIENT, reason))
