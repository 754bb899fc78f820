"""Many times at once: the numbers of a batch of events as they stand in the file, to integer nanoseconds.

Nearly all writers print microseconds in one of two shapes, with exactly three decimals or with none. A batch of one
shape is read as whole numbers without the point; anything else is for the exact reader of single times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Raw

from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import I64

_DIGITS = b"0123456789 -"
_LONGEST = 19  # characters with the point: the digits fit into an int64 in any case
_POINT, _SPACE, _MINUS = ord("."), ord(" "), ord("-")


def microseconds(raws: Sequence[Raw]) -> I64 | None:
    """Nanoseconds of microseconds in one of the two common shapes; None if any has another shape."""
    joined = b" ".join(raws)
    text = np.frombuffer(joined, np.uint8)
    ends = np.append(np.flatnonzero(text == _SPACE), len(text))
    starts = np.append(0, ends[:-1] + 1)
    if len(ends) != len(raws) or np.any(ends - starts > _LONGEST) or np.any(ends == starts):
        return None
    points = np.flatnonzero(text == _POINT)
    if len(points) not in (0, len(raws)) or (len(points) and not np.array_equal(points, ends - 4)):
        return None
    digits = joined.replace(b".", b"")
    signs = np.count_nonzero(text[starts] == _MINUS)
    if digits.translate(None, _DIGITS) or joined.count(b"-") != signs or np.any(text[ends - 1] == _MINUS):
        return None
    values = np.fromstring(digits, np.int64, sep=" ")
    unit = 1 if len(points) else 1000
    return values * unit if len(values) and np.max(np.abs(values)) <= LIMIT_NS // unit else None
