"""Flows between what several ranks recorded of the same collective: from rank to rank, in ascending order.

Drawn is what is certain: collectives of groups whose ranks are known, with a number in the group that each rank has
once. Equal order alone is not enough, since training repeats itself from step to step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from traceconv.align import Alignment
from traceconv.align.collective_matching import match_collectives
from traceconv.model.trace import I64, Flows, Trace

_NAME = "collective"


def with_collective_flows(merged: Trace, traces: Sequence[Trace], alignment: Alignment) -> Trace:
    """Return the trace with the flows; a note of its first input says how many.

    Args:
        merged: the rows of all inputs, one behind the other.
        traces: the inputs.
        alignment: how they are put on trace time.
    """
    source, target, count = _pairs(traces, alignment)
    drawn = f"{len(source)} flows are drawn between the members of {count} collectives"
    none = "no flows are drawn between collectives: none of several ranks has a number (Seq) that tells which is which"
    merged.sources[0].notes.append(drawn if count else none)
    if not count:
        return merged
    strings = list(dict.fromkeys((*merged.strings, _NAME)))
    name = np.full(len(source), strings.index(_NAME), np.int32)
    added = Flows(source, target, name, name, merged.slices.origin[source])
    flows = merged.flows
    columns = {column: np.concatenate((getattr(flows, column), getattr(added, column))) for column in Flows.__slots__}
    return merged.with_tables(strings=strings, flows=replace(flows, **columns))


def _pairs(traces: Sequence[Trace], alignment: Alignment) -> tuple[I64, I64, int]:
    """Return from which slices of the merged trace to which ones flows go, and of how many collectives they are."""
    matched = match_collectives(traces, alignment.maps)
    if matched is None:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, 0
    seen = matched.occurrences.where(matched.occurrences.seq >= 0)
    seen = seen.where(np.lexsort((seen.rank, seen.number)))
    starts = np.array(list(accumulate((len(trace.slices.ts) for trace in traces), initial=0)))
    rows, of_one = starts[seen.input] + seen.row, np.flatnonzero(np.diff(seen.number) == 0)
    return rows[of_one], rows[of_one + 1], seen.count
