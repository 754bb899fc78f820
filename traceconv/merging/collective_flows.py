"""Add flows between the slices of a collective on its ranks, from rank to rank in ascending order.

Only collectives are connected whose group has known ranks. Either each rank has their sequence number once; or the
clocks of the ranks are related within a bound, and their order shows which are one, as `collective_order` has it. Equal
order alone is not enough, since training repeats its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from traceconv.align import Alignment
from traceconv.align.collective_matching import Matched
from traceconv.align.collectives import Occurrences
from traceconv.model.columns import I64
from traceconv.model.trace import Flows, Trace

_NAME = "collective"


def with_collective_flows(
    merged: Trace, traces: Sequence[Trace], alignment: Alignment, matched: Matched | None
) -> Trace:
    """Return the trace with the flows; a note of its first input states their number.

    Args:
        merged: the concatenated rows of all inputs.
        traces: the inputs.
        alignment: their alignment.
        matched: their collectives, as the checks of the alignment found them; None without any.
    """
    notes = merged.sources[0].notes
    source, target, count = _pairs(traces, alignment, matched.occurrences if matched else Occurrences.none())
    if not count:
        notes.append(
            "no flows are drawn between collectives: "
            "it is not certain which records of several ranks are one collective"
        )
        return merged
    notes.append(f"{len(source)} flows are drawn between the members of {count} collectives")
    strings = list(dict.fromkeys((*merged.strings, _NAME)))
    name = np.full(len(source), strings.index(_NAME), np.int32)
    added = Flows(source, target, name, name, merged.slices.origin[source])
    flows = merged.flows
    columns = {column: np.concatenate((getattr(flows, column), getattr(added, column))) for column in Flows.__slots__}
    return merged.with_tables(strings=strings, flows=replace(flows, **columns))


def _pairs(traces: Sequence[Trace], alignment: Alignment, seen: Occurrences) -> tuple[I64, I64, int]:
    """Return the rows of the slices that flows start at and end at, and the number of collectives."""
    clock = np.array(alignment.related, np.int64)[seen.input]
    first, last = np.full((2, len(clock)), [[len(traces)], [-1]])
    np.minimum.at(first, seen.number, clock)
    np.maximum.at(last, seen.number, clock)
    of_one_clock = (first == last) & (first >= 0)
    seen = seen.where((seen.seq >= 0) | of_one_clock[seen.number])
    seen = seen.where(np.lexsort((seen.rank, seen.number)))
    starts = np.array(list(accumulate((len(trace.slices.ts) for trace in traces), initial=0)))
    rows, of_one = starts[seen.input] + seen.row, np.flatnonzero(np.diff(seen.number) == 0)
    return rows[of_one], rows[of_one + 1], seen.count
