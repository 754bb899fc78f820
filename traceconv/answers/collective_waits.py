"""How long ranks waited for one another in collectives, from the durations and starts of their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.model.columns import I64

if TYPE_CHECKING:
    from traceconv.align.collectives import Occurrences


class Waits(Struct, frozen=True):
    """The waits of ranks, in the order of the records, and their collectives, in the order of their numbers.

    Attributes:
        records: the records, in the order of their collectives.
        collective: the collective of each record, a row of the columns below.
        wait: for each record the time that its rank waited for others, ns.
        late: for each record the time beyond transfer and wait, ns: its rank left late.
        total: the sum of these for each collective, ns.
        first: the first record of each collective.
        transfer: the shortest duration of its ranks, ns.
        last: the record that started last.
        lead: the time from the start of the last but one to the last one, ns.
        bound: the sum of the bounds of these two clocks, ns.
        beyond: whether the last one started after all others by more than the bounds of their clocks.
        comparable: whether the clocks of all its ranks are related within bounds.
    """

    records: Occurrences
    collective: I64
    wait: I64
    late: I64
    total: I64
    first: I64
    transfer: I64
    last: I64
    lead: I64
    bound: I64
    beyond: npt.NDArray[np.bool_]
    comparable: npt.NDArray[np.bool_]


def waits(records: Occurrences, clock: I64) -> Waits:
    """Return the waits of ranks, and the last rank of each collective.

    Args:
        records: the records of collectives of at least two ranks each, in the order of their collectives.
        clock: the number of the clock of each record, equal for clocks that are related within bounds; negative if the
            bound is not known.
    """
    first = np.flatnonzero(np.diff(records.number, prepend=-1))
    collective = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(records.number))))
    if not len(first):
        none = np.zeros(0, np.int64)
        return Waits(
            records, none, none, none, none, first, none, none, none, none, none.astype(bool), none.astype(bool)
        )
    duration = np.maximum(records.end - records.start, 0)
    transfer = np.minimum.reduceat(duration, first)
    # Sorted by start within each collective: the last one, and the last but one.
    order = np.lexsort((records.rank, records.start, collective))
    ends = np.append(first[1:], len(records.number)) - 1
    last, next_one = order[ends], order[ends - 1]
    # The latest possible start of the other ranks.
    reach = records.start + records.bound
    order = np.lexsort((reach, collective))
    others = reach[order[ends]][collective]
    others[order[ends]] = reach[order[ends - 1]]
    lowest = np.minimum.reduceat(clock, first)
    comparable = (lowest >= 0) & (lowest == np.maximum.reduceat(clock, first))
    rest = duration - transfer[collective]
    possible = np.maximum(others - records.start + records.bound, 0)
    wait = np.where(comparable[collective], np.minimum(rest, possible), rest)
    return Waits(
        records,
        collective,
        wait,
        rest - wait,
        np.add.reduceat(wait, first),
        first,
        transfer,
        last,
        records.start[last] - records.start[next_one],
        records.bound[last] + records.bound[next_one],
        records.start[last] - records.bound[last] > others[last],
        comparable,
    )
