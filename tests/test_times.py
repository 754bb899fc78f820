"""Times: exact against fractions, which know no rounding."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from traceconv.model.numbers import (
    LIMIT_NS,
    MS,
    NS,
    US,
    S,
    earlier_or_later,
    format_long,
    format_option,
    format_short,
    format_time,
    format_us,
    format_within,
    parse_duration,
    parse_ns,
)

UNITS = [NS, US, MS, S]
DURATION_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}

digits = st.text("0123456789", max_size=30)


@st.composite
def decimals(draw: st.DrawFn) -> str:
    """Any way to write a decimal number."""
    whole, part = draw(digits), draw(st.none() | digits)
    assume(whole or part)
    exponent = draw(st.none() | st.integers(-60, 60))
    text = draw(st.sampled_from(["", "+", "-"])) + whole + ("" if part is None else f".{part}")
    if exponent is not None:
        text += (
            draw(st.sampled_from("eE")) + draw(st.sampled_from(["", "+"] if exponent >= 0 else [""])) + str(exponent)
        )
    return text


def half_away_from_zero(value: Fraction) -> int:
    rounded = math.floor(abs(value) + Fraction(1, 2))
    return -rounded if value < 0 else rounded


@given(decimals(), st.sampled_from(UNITS))
def test_any_decimal_is_exact(text: str, unit: int) -> None:
    # Fraction wants a digit before the point.
    sign, bare = (text[0], text[1:]) if text[0] in "+-" else ("", text)
    expected = half_away_from_zero(Fraction(f"{sign}0{bare}") * 10**unit)
    if abs(expected) > LIMIT_NS:
        with pytest.raises(ValueError, match="out of range"):
            parse_ns(text.encode(), unit)
    else:
        assert parse_ns(text.encode(), unit) == expected


@given(st.integers(-LIMIT_NS, LIMIT_NS))
def test_microseconds_come_back(ns: int) -> None:
    text = format_us(ns)
    assert parse_ns(text.encode(), US) == ns
    assert not ("." in text and text.endswith("0"))


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        (b"1795245461050843.123", US, 1795245461050843123),  # a double keeps a quarter of a microsecond here
        (b"6345678901234.123", US, 6345678901234123),
        (b"0.0005", US, 1),
        (b"0.00049999999999999999", US, 0),
        (b"-0.0005", US, -1),
        (b".5", US, 500),
        (b"5.", US, 5000),
        (b"1e-9", S, 1),
        (b"1e-10", S, 0),
        (b"5e-10", S, 1),
        (b"123456789e-12", S, 123457),
        (b" 7\n", NS, 7),
        (b"-0", NS, 0),
        (b"0" * 400 + b"1", NS, 1),
        (b"0." + b"0" * 400 + b"1", S, 0),
        (b"1." + b"9" * 400, US, 2000),
        (b"1" + b"0" * 38 + b"e-38", NS, 1),
        (b"0e9999", S, 0),
        (str(LIMIT_NS).encode(), NS, LIMIT_NS),
    ],
)
def test_examples(text: bytes, unit: int, expected: int) -> None:
    assert parse_ns(text, unit) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b" ", b".", b"-", b"+-1", b"1,5", b"1 2", b"1_000", b"0x10", b"nan", b"inf", b"-Infinity", b"1e"),
        *(b"1e1.5", b"e5", b".e5", b"1.2.3", b"\xff", b"\x00", b"1\x00", "١".encode(), b'"1"', b"1e99999", b"true"),
    ],
)
def test_what_is_no_number(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_ns(text, US)


@pytest.mark.parametrize(
    "text", [b"9" * 400, b"1e30", b"1e9999", b"-1e30", str(LIMIT_NS + 1).encode(), b"4611686018427387904.5"]
)
def test_what_is_too_large(text: bytes) -> None:
    with pytest.raises(ValueError, match="out of range") as error:
        parse_ns(text, NS)
    assert len(str(error.value)) < 80


@given(st.binary(max_size=20))
def test_any_bytes_are_a_time_or_a_value_error(text: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert abs(parse_ns(text, US)) <= LIMIT_NS


@given(decimals(), st.sampled_from(list(DURATION_UNITS)))
def test_any_duration_is_exact(number: str, unit: str) -> None:
    sign, bare = (number[0], number[1:]) if number[0] in "+-" else ("", number)
    expected = half_away_from_zero(Fraction(f"{sign}0{bare}") * DURATION_UNITS[unit])
    if abs(expected) > LIMIT_NS:
        with pytest.raises(ValueError, match="out of range"):
            parse_duration(f"{number}{unit}")
    else:
        assert parse_duration(f"{number}{unit}") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+1.5ms", 1_500_000),
        ("-20us", -20_000),
        ("1795245457.236s", 1795245457_236000000),
        ("1 h", 3600 * 10**9),
        (" 90 min ", 5400 * 10**9),
        ("0.3333333333333min", 19_999_999_999_998 // 1000 + 1),
        ("1e3 µs", 1_000_000),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "5", "ms", "1.5", "1.2.3ms", ".s", "1 day", "1ms 2us", "one s", "1m", "0x1s", "١s"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a (time|number)"):
        parse_duration(text)


@given(st.integers(-LIMIT_NS, LIMIT_NS))
def test_shown_times_are_exact(ns: int) -> None:
    assert parse_duration(format_time(ns)) == ns
    assert parse_duration(format_option(ns)) == ns
    assert format_option(ns)[0] in "+-"
    assert " " not in format_option(ns)


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (999, "999 ns"), (1500, "1.5 µs"), (-2_000_000, "-2 ms"), (1_000_000_001, "1.000000001 s")],
)
def test_shown_times(ns: int, text: str) -> None:
    assert format_time(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        *((0, "0 ns"), (0.25, "0.25 ns"), (999, "999 ns"), (1000, "1 µs"), (-71_496_800, "-71.5 ms"), (1.5e9, "1.5 s")),
        *((999_499, "999 µs"), (999_500, "1 ms"), (-999_700, "-1 ms"), (9e15, "104 d 4 h")),
    ],
)
def test_three_digits_for_people(ns: float, text: str) -> None:
    assert format_short(ns) == text


def test_moves_in_time() -> None:
    assert [earlier_or_later(ns) for ns in (1_500_000, -20_000)] == ["1.5 ms later", "20 µs earlier"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(119.5, "120 s"), (3.25, "3.25 s"), (120, "2 min"), (3600, "1 h"), (5025, "1 h 23 min"), (90_000, "1 d 1 h")],
)
def test_long_times(seconds: float, text: str) -> None:
    assert format_long(round(seconds * 10**9)) == text
    assert format_long(-round(seconds * 10**9)) == (f"-{text}" if seconds else text)


@pytest.mark.parametrize(
    ("ns", "within", "text"),
    [
        *((-3_600_002_000_000, 1_020_000, "-1 h 2 ms"), (3_600_002_000_000, 3_000_000, "1 h")),
        *((-6_738_273, 9_050_000, "-6.74 ms"), (-6_738_273, 1_001, "-6.738 ms"), (-6_738_273, 0, "-6.738273 ms")),
        *((406_812_345_678_901, 20_001, "4 d 17 h 12.34568 s"), (406_812_345_678_901, 15 * 10**9, "4 d 17 h")),
        *((499_930_000, 14_000, "499.93 ms"), (500_070_000, 14_000, "500.07 ms"), (500_070_000, 70_000, "500 ms")),
        *((119_999_999_999, 0, "119.999999999 s"), (120_000_000_001, 0, "2 min 1 ns"), (0, 0, "0 ns")),
    ],
)
def test_times_within_a_bound(ns: int, within: int, text: str) -> None:
    assert format_within(ns, within) == text


@given(st.integers(-LIMIT_NS, LIMIT_NS), st.integers(0, 10**14))
def test_no_more_is_hidden_than_the_bound(ns: int, within: int) -> None:
    parts = format_within(abs(ns), within).split(" ")
    units = DURATION_UNITS | {"d": 24 * DURATION_UNITS["h"]}
    shown = sum(Fraction(count) * units[unit] for count, unit in zip(parts[::2], parts[1::2], strict=True))
    assert abs(shown - abs(ns)) <= within


def test_a_factor_in_place_of_an_exponent_is_no_bad_data() -> None:
    """Importers take a ValueError for a bad row: this one would lose all rows."""
    with pytest.raises(TypeError, match=r"units of 10\*\*exponent ns: NS, US, MS or S, not 1000000000"):
        parse_ns(b"1.5", 10**9)
