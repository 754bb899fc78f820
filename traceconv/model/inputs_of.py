"""Tell which input each row of a table comes from, also on threads that several inputs record."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceconv.model.trace import I64, Trace

Numbers = npt.NDArray[np.int32]


class Inputs:
    """The inputs of the rows of a table, as indices into Trace.sources; a flow is of the input where it starts.

    If several inputs have such rows on one track, and those of one are not all before those of the other, they count
    for the first of them, but samples with the names of another input for that one.
    """

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace, self._name = trace, name
        table = "slices" if name == "flows" else name
        self._of_track = trace.tracks.column("source")
        self._shared: dict[int, tuple[I64, Numbers]] = {}
        for number, track in trace.tracks.special():
            inputs = track.inputs_over_time(table) if track.carries else ()
            if len(inputs) > 1:
                since, sources = zip(*inputs, strict=True)
                self._shared[number] = np.array(since, np.int64), np.array(sources, np.int32)

    def of(self, rows: slice) -> Numbers:
        """Return the input of each of some rows."""
        trace, table = self._trace, getattr(self._trace, self._name)
        timed, at = (trace.slices, table.from_slice[rows]) if self._name == "flows" else (table, rows)
        track = timed.track[at]
        if not len(track):
            return np.empty(0, np.int32)
        found: Numbers = self._of_track[track]
        if self._shared:
            shared = np.flatnonzero(np.isin(track, list(self._shared)))
            on, times = track[shared], timed.ts[at][shared]
            for number in np.unique(on).tolist():
                since, sources = self._shared[number]
                mine = on == number
                found[shared[mine]] = sources[np.searchsorted(since, times[mine], "right") - 1]
        return _of_samples(trace, table.name[rows], found) if self._name == "samples" else found


def inputs_of(trace: Trace, name: str) -> Numbers:
    """Return the input of each row of a table, as `Inputs` has it."""
    return Inputs(trace, name).of(slice(None))


def _of_samples(trace: Trace, name: Numbers, numbers: Numbers) -> Numbers:
    """Return the inputs of samples that are on threads of other inputs in an output of traceconv: by their names."""
    names, which = np.unique(name, return_inverse=True)
    texts = [trace.strings[number] for number in names.tolist()]
    sampled = np.array([[text in source.sampled for text in texts] for source in trace.sources], bool)
    elsewhere = np.any(sampled, axis=0)[which] & ~sampled[numbers, which]
    return np.where(elsewhere, np.argmax(sampled, axis=0)[which], numbers).astype(np.int32)
