"""Which event of one trace is which of another one, when a line between their clocks is known about."""

from __future__ import annotations

import numpy as np

from traceconv.align.estimate import Array, Events
from traceconv.align.geometry import F64

NONE = -1


class Matcher:
    """Finds for each event of b the nearest one of its kind in a.

    Args:
        a, b: events in order of their start, with common kinds.
    """

    def __init__(self, a: Events, b: Events) -> None:
        self._a, self._b = a, b
        self._groups = [
            (np.flatnonzero(a.kind == kind), np.flatnonzero(b.kind == kind)) for kind in np.unique(b.kind).tolist()
        ]

    def nearest(self, offset: float, drift: float, x0: float, tolerance: float) -> Array:
        """For each event of b the row in a whose mapped start is nearest, NONE if none is within the tolerance, ns."""
        a, b = self._a, self._b
        found = np.full(len(b), NONE)
        for rows_a, rows_b in self._groups:
            if not len(rows_a):
                continue
            mapped = a.start[rows_a] + offset + drift * (a.start[rows_a] - x0)
            wanted = b.start[rows_b]
            after = np.clip(np.searchsorted(mapped, wanted), 1, max(len(mapped) - 1, 1))
            after = np.minimum(after, len(mapped) - 1)
            before = np.maximum(after - 1, 0)
            nearest = np.where(np.abs(mapped[before] - wanted) <= np.abs(mapped[after] - wanted), before, after)
            close = np.abs(mapped[nearest] - wanted) < tolerance
            found[rows_b[close]] = rows_a[nearest[close]]
        return found


def one_to_one(match: Array, residual: F64, fits: Array) -> Array:
    """The rows of b whose match no other row wants more: each row of a goes to the one with the smallest residual.

    Args:
        match: for each row of b the row of a, or NONE.
        residual: for each row of b how far off it is, ns.
        fits: which rows of b may be used at all.
    """
    rows = np.flatnonzero((match >= 0) & fits)
    order = rows[np.argsort(np.abs(residual[rows]), kind="stable")]
    _, first = np.unique(match[order], return_index=True)
    return np.sort(order[first])
