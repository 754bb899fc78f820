"""The same work in both, by name: that of one trace lies inside that of the other one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceconv.align.drift_correction import Known
from traceconv.align.estimate import Events, Method, insufficient
from traceconv.align.features import SharedWork, nested_work, shared_work
from traceconv.align.inputs import ClockInput
from traceconv.align.messages import Text
from traceconv.align.names import NameMap
from traceconv.align.pairs import PairEstimate, common_times, made, stated_outer, turned
from traceconv.align.sequences import align_sequences
from traceconv.model.clocks import ClockMap, Verdict
from traceconv.model.trace import Layer


class NamedEventEstimator:
    """See `Estimator`."""

    method = Method.SEQUENCE
    settles = frozenset(verdict for verdict in Verdict if not verdict.refused)
    explains = 1  # names tell people most

    def applies(self, a: ClockInput, b: ClockInput) -> bool:
        """Whether both have slices."""
        return bool(len(a.trace.slices.ts) and len(b.trace.slices.ts))

    def estimate(self, a: ClockInput, b: ClockInput, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
        """Return where the sequence of the inner events fits into that of the outer ones; None with no names in common.

        Which side is outer is what the formats say. If they say nothing, it is the one with the longer events, and that
        its events are around the others has to be seen.
        """
        views = shared_work(a.trace, a.clock, b.trace, b.clock, names)
        if views is None:
            return None
        stated = stated_outer(a, b)
        if stated is not None and Layer.DEVICE in (a.layer, b.layer):
            return made(a, b, insufficient(self.method, Text.QUEUED()), (0, 0), known)
        outer = stated or (a if _typical(views[0].events) >= _typical(views[1].events) else b)
        if outer is a:
            return _nested(a, b, views, known, inside=stated is not None)
        back = known.inverse() if known else None
        return turned(_nested(b, a, (views[1], views[0]), back, inside=stated is not None))


def _nested(
    a: ClockInput, b: ClockInput, views: tuple[SharedWork, SharedWork], known: ClockMap | None, *, inside: bool
) -> PairEstimate:
    """What the work of b says that lies inside that of a.

    Args:
        a, b: the outer one and the inner one.
        views: what both know.
        known: what is known beforehand.
        inside: whether the formats say that it does lie inside; else that has to be seen.
    """
    one, other = (view.events for view in views)
    before = Known.of(known, common_times(a, b, known), (one.zero_ns, other.zero_ns))
    nest = nested_work(a.trace, b.trace, views)
    estimate = align_sequences(
        one, before.without_drift(other), before.prior, nest and before.without_drift(nest), inside=inside
    )
    pair = made(a, b, before.with_drift(estimate), (one.zero_ns, other.zero_ns), known)
    matched = estimate.pairs
    return pair if matched is None else replace(pair, rows=(views[0].rows[matched[0]], views[1].rows[matched[1]]))


def _typical(events: Events) -> float:
    """How long the events are, kind by kind: those of the outer trace are longer, unless work runs in a queue."""
    return float(sum(np.median(events.dur[events.kind == kind]) for kind in np.unique(events.kind).tolist()))
