"""Parse numbers more strictly than `int` and `float` do, which accept 1_0, digits of other scripts, and nan."""

from __future__ import annotations

import re

_FORM = re.compile(r"[+-]?(?:\d+([.,]\d*)?|([.,]\d+))([eE][+-]?\d{1,4})?", re.ASCII)
#: The most digits of a double before the point.
_MOST_DIGITS = 309
_INFINITE = float("inf")


def number_of(text: str, mark: str = ".") -> int | float | None:
    """Return the number in a text, which may have blanks around it.

    Integers are exact. Return None if the text is not a number that JSON can hold.

    Args:
        mark: the decimal mark, "." or ",". Thousands separators are not accepted.

    >>> number_of("-12"), number_of("1e3"), number_of("0,5", ","), number_of("1_0"), number_of("nan")
    (-12, 1000.0, 0.5, None, None)
    """
    text = text.strip()
    if text.isdigit() and text.isascii():
        return int(text) if len(text) <= _MOST_DIGITS else None
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    decimals = match[1] or match[2]
    if decimals is None and match[3] is None:
        return int(text) if len(text) <= _MOST_DIGITS else None
    if decimals is not None and decimals[0] != mark:
        return None
    value = float(text.replace(mark, "."))
    return value if abs(value) < _INFINITE else None
