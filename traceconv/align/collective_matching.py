"""Match the collectives that several ranks recorded, on trace time, for checks, flows and reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceconv.align.collective_order import Odd, ordered_collectives
from traceconv.align.collectives import (
    Occurrences,
    Terms,
    joined_numbers,
    numbered_collectives,
    one_sided_collectives,
    recorded_collectives,
)
from traceconv.model.stated_collectives import Side
from traceconv.model.trace import Trace

if TYPE_CHECKING:
    from traceconv.align.receipt import Alignment


@dataclass(frozen=True, slots=True)
class Matched:
    """The collectives that several ranks recorded.

    Attributes:
        occurrences: the records of all ranks that took part.
        ranks: all ranks with recorded collectives.
        unmatched: the records without a certain partner on another rank.
        terms: the meaning of the numbers of groups and kinds.
        odd: pairs of ranks whose records cannot be matched at all.
        one_sided: the records of collectives in which only some ranks wait, with numbers of their own.
    """

    occurrences: Occurrences
    ranks: tuple[int, ...]
    unmatched: Occurrences
    terms: Terms
    odd: tuple[Odd, ...]
    one_sided: Occurrences

    @property
    def is_empty(self) -> bool:
        """Whether fewer than two ranks recorded collectives that can be compared."""
        return not self.ranks and not len(self.one_sided.row)

    @property
    def checked(self) -> Occurrences:
        """All records that can be checked for whether they can have happened as drawn."""
        return joined_numbers(self.occurrences, self.one_sided)

    @property
    def alone(self) -> int:
        """The number of records without a certain partner."""
        return len(self.unmatched.row)


def match_collectives(traces: Sequence[Trace], alignment: Alignment) -> Matched:
    """Match the collectives of inputs of different ranks; none, with their terms, if fewer than two ranks have any.

    Args:
        traces: the inputs.
        alignment: how they are put on one time axis.
    """
    terms = Terms()
    seen = recorded_collectives(traces, alignment.maps, terms, alignment.repeats, alignment.skews)
    nothing = Occurrences.none()
    none = Matched(nothing, (), nothing, terms, (), nothing)
    if seen is None:
        return none
    one_sided = one_sided_collectives(seen)
    seen = seen.where(seen.side == Side.BOTH)
    if len(np.unique(seen.rank)) < 2 and not len(one_sided.row):
        return none
    hosts = alignment.apart
    host_of = np.array([hosts.index(host) for host in hosts], np.int64)
    ordered = ordered_collectives(seen, host_of[seen.input], drawn=True)
    every = joined_numbers(numbered_collectives(seen), ordered.matches)
    slices = int(np.max(seen.row, initial=0)) + 1
    used = np.isin(seen.input * slices + seen.row, every.input * slices + every.row)
    return Matched(every, tuple(np.unique(seen.rank).tolist()), seen.where(~used), terms, ordered.odd, one_sided)
