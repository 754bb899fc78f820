"""Where clocks lie on trace time: what `decide` returns and `place` starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from traceconv.align.inputs import Inputs, Key, Ways, without_other_hosts
from traceconv.align.messages import Message, Text
from traceconv.model.clocks import ClockGraph, ClockMap, Provenance, Step, Verdict

if TYPE_CHECKING:
    from traceconv.align.pairs import PairEstimate

#: What is to be said of clocks.
Warnings = Sequence[tuple[Key, Message]]


@dataclass(frozen=True, slots=True)
class Decision:
    """Where the clocks with times lie.

    Attributes:
        ways: for each clock that is related to trace time, the map.
        pairs: what the events say, with whether it is used.
        warnings: what is to be said of clocks.
    """

    ways: Ways
    pairs: Sequence[PairEstimate] = ()
    warnings: Warnings = field(default=())


def on_trace_time(inputs: Inputs, graph: ClockGraph) -> dict[Key, ClockMap]:
    """The maps of all clocks that are related to trace time, without what --offset adds."""
    related = graph.maps_to(inputs.target)
    found: dict[Key, ClockMap] = {}
    for one in inputs.clocks:
        moved = one.offset is not None
        known = without_other_hosts(related, graph, inputs.target, one.wall) if moved else related
        if one.domain in known:
            found[one.key] = one.correction.then(known[one.domain])
    return found


def beside(offset: int) -> ClockMap:
    """Return the map of a clock that nothing relates and that stands beside the others."""
    return ClockMap(offset, None, (Step(Text.BESIDE_OTHERS(), Provenance.ASSUMED),), Verdict.SEPARATE)


def taken_as_best(pair: PairEstimate) -> Message:
    """Return what is said of a clock that lies where it fits best."""
    return Text.TAKEN_AS_BEST(verdict=pair.estimate.verdict, why=pair.why_refused())


def not_aligned(tried: Sequence[PairEstimate]) -> Message:
    """Return what is said of a clock that lies beside the others."""
    return Text.NOT_ALIGNED_BECAUSE(reason=tried[0].estimate.reason) if tried else Text.NOT_ALIGNED()
