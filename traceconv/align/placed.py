"""The clocks on trace time, and the warnings about those that are placed without certainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from traceconv.align.domains import Key, Warnings
from traceconv.align.inputs import ClockInput, Inputs, Maps
from traceconv.model.clocks import ClockGraph, ClockMap, Provenance, Step, Verdict
from traceconv.model.columns import I64

if TYPE_CHECKING:
    from traceconv.align.duration_layout import Placement
    from traceconv.align.pairs import PairEstimate


@dataclass(frozen=True, slots=True)
class Placed:
    """The clocks on trace time.

    Attributes:
        maps: the map to trace time of each clock that is related to it.
        pairs: the estimates, each with whether it is used.
        warnings: warnings, each with its clock.
        placements: for each input without times that was laid into slices of another one: its position there.
        others: for a log with calls of other processes than the recorded one: the rows of these slices.
    """

    maps: Maps
    pairs: Sequence[PairEstimate] = ()
    warnings: Warnings = ()
    placements: Mapping[int, Placement] = field(default_factory=dict)
    others: Mapping[int, I64] = field(default_factory=dict)


def related_maps(inputs: Inputs, graph: ClockGraph) -> dict[Key, ClockMap]:
    """Return the maps of all clocks that are related to trace time, without the offsets of the user."""
    known = graph.maps_to(inputs.target)
    return {one.key: one.correction.then(known[one.domain]) for one in inputs.clocks if one.domain in known}


def beside(offset: int) -> ClockMap:
    """Return the map, by its offset in ns, of a clock that nothing relates and that is drawn beside the others."""
    return ClockMap(offset, None, (Step("not aligned: starts with the others", Provenance.ASSUMED),), Verdict.SEPARATE)


def taken_as_best(pair: PairEstimate, moved: ClockInput) -> str:
    """Return the warning for a clock, one of the pair, that is placed by its best offset though that is not certain."""
    return (
        f"placed at the best offset (--on-ambiguous best), but that is {pair.estimate.verdict}: "
        f"{pair.why_refused(moved)}"
    )


def not_aligned(tried: Sequence[PairEstimate]) -> str:
    """Return the warning for a clock that is drawn beside the others, given its estimates."""
    return (
        f"not aligned: do not compare its times with those of other files ({tried[0].estimate.reason})"
        if tried
        else "not aligned: do not compare its times with those of other files"
    )


def is_related(inputs: Inputs, maps: Maps, index: int) -> bool:
    """Return whether any clock of an input with events has a map; True for an input without events."""
    clocks = inputs.of(index)
    return not clocks or any(one.key in maps for one in clocks)
