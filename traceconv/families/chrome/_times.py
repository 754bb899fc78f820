"""Convert times of the file to integer ns, one or many at once.

Nearly all writers print microseconds with exactly three decimals or with none. A batch in one of these forms is read as
integers without the point; other times are read one by one, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Raw

from traceconv.model.times import LIMIT_NS, US, parse_ns
from traceconv.model.trace import I64

_DIGITS = b"0123456789 -"
_LONGEST = 19  # the most characters, with the point: the digits fit into an int64
_POINT, _SPACE, _MINUS = ord("."), ord(" "), ord("-")
_MAX_TIME_TEXT = 22
_SURE_TIME_TEXT = 16  # a time with fewer characters is in range


class Times:
    """Reads times that count 10**exponent ns."""

    def __init__(self, exponent: int) -> None:
        self._exponent = exponent

    def one(self, raw: bytes) -> int:
        """Return the ns of a ts or dur of the file. Raises ValueError if it is not a time."""
        if self._exponent == US and len(raw) < _MAX_TIME_TEXT:
            try:  # fast path for the usual forms: 12.345 and 12
                value = int(raw[:-4] + raw[-3:]) if raw[-4:-3] == b"." else int(raw) * 1000
                if len(raw) < _SURE_TIME_TEXT or -LIMIT_NS <= value <= LIMIT_NS:
                    return value
            except ValueError:
                pass
        if raw[:1] == b'"':
            raw = raw[1:-1]
        if not raw or raw == b"null":
            raise ValueError("missing")
        return parse_ns(raw, self._exponent)

    def many(self, raws: list[Raw]) -> Sequence[int] | I64:
        """Return the ns of several times. Raises ValueError if one of them is not a time."""
        times = _microseconds(raws) if self._exponent == US else None
        return [self.one(bytes(raw)) for raw in raws] if times is None else times


def _microseconds(raws: Sequence[Raw]) -> I64 | None:
    """Return the ns of times in one of the two usual forms; None if any has another form."""
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
