"""Tell which input each row of a table comes from, also on threads that several inputs record."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.model.trace import Trace

Numbers = npt.NDArray[np.int32]


def inputs_of(trace: Trace, name: str, rows: slice = slice(None)) -> Numbers:
    """Return the input of each row of a table, an index into Trace.sources; a flow is of the input where it starts.

    If slices of several inputs are on one thread, all are counted for the first of them.
    """
    table: Any = getattr(trace, name)
    if name == "flows":
        on, name = trace.slices.track[table.from_slice[rows]], "slices"
    else:
        on = table.track[rows]
    if not len(on):
        return np.empty(0, np.int32)
    of_track = np.array([dict(track.carries).get(name, track.source) for track in trace.tracks], np.int32)
    numbers: Numbers = of_track[on]
    return _of_samples(trace, table.name[rows], numbers) if name == "samples" else numbers


def _of_samples(trace: Trace, name: Numbers, numbers: Numbers) -> Numbers:
    """Return the inputs of samples that are on threads of other inputs in an output of traceconv: by their names."""
    names, which = np.unique(name, return_inverse=True)
    texts = [trace.strings[number] for number in names.tolist()]
    sampled = np.array([[text in source.sampled for text in texts] for source in trace.sources], bool)
    elsewhere = np.any(sampled, axis=0)[which] & ~sampled[numbers, which]
    return np.where(elsewhere, np.argmax(sampled, axis=0)[which], numbers).astype(np.int32)
