"""Text becomes a number in one place, and no odd number is an exception of Python."""

from __future__ import annotations

import ast
import csv
import importlib
import pkgutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceconv
from tests.test_imports import FOLDER
from traceconv.api import read, report
from traceconv.families.common.text_lines import fields_of
from traceconv.model.numbers import (
    decimal_of,
    decode_json,
    double_of,
    fits_int64,
    hex_of,
    is_digits,
    number_of,
    whole,
    whole_of,
)

DATA = Path(__file__).parent / "data" / "numbers"
#: What has its own reason to convert text: a loop over all events, names of functions in our own package, CSV.
OWN_WAY = {
    "model/numbers.py": ("int", "float", "Decimal", "loads"),
    "families/chrome/events.py": ("int",),  # the same for each event of a million
    "families/deepsparse/analysis.py": ("Decimal",),  # a pattern bounds it; infinities and NaN are read and counted
    "families/perf/header.py": ("JSONDecoder",),  # finds the end of a text
    "families/tvm/execution_trace.py": ("JSONDecoder",),  # only compares
    "io/outline.py": ("JSONDecoder",),
    "families/common/cupti.py": ("int",),  # a list of our own
    "families/common/text_lines.py": ("reader",),
    "io/spill.py": ("int",),  # files of the kernel
}
#: Names that hold text of an input.
TEXTS = {"text", "match", "raw", "digits", "word", "line", "cell", "field", "fields", "title", "count"}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("12", 12), ("-12", -12), ("+5", 5), ("007", 7), ("18446744073709551615", 2**64 - 1)),
        *(
            (text, None)
            for text in ("", "-", "1.5", "1_0", " 1", "²", "١٢", "１２", "inf", "1e3", "9" * 5000, "9" * 20)
        ),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert whole_of(text) == number
    if text.isascii():
        assert whole_of(text.encode()) == number
    if number is None:
        with pytest.raises(ValueError, match="not a whole number"):
            whole(text)


@pytest.mark.parametrize(
    "text",
    ["inf", "nan", "1e400", "-1e9999999999999999", "9" * 400, "9" * 309, "-" + "9" * 309, "²", "١.٥", "1_0.5", ""],
)
def test_what_no_double_holds_is_no_number(text: str) -> None:
    assert number_of(text) is None
    assert double_of(text) is None
    assert decimal_of(text) is None


def test_other_forms() -> None:
    assert (hex_of("0x1F"), hex_of(b"ff"), hex_of("1_0"), hex_of("f" * 17), hex_of("١")) == (31, 255, None, None, None)
    assert (decimal_of("1.50"), decimal_of("1e-99999999999999999999")) == (Decimal("1.50"), Decimal(0))
    assert decode_json(b'{"a":1e400,"b":%b,"c":1.5}' % (b"9" * 5000)) == {"a": "1e400", "b": "9" * 5000, "c": 1.5}


@given(st.text() | st.text("0123456789+-.,eE_ ²١"))
def test_any_text(text: str) -> None:
    number = number_of(text)
    assert number is None or abs(number) < 10**309
    assert not is_digits(text) or len(text) > 20 or whole_of(text) in (int(text), None)


@given(st.text('ab",; ', max_size=12))
def test_long_rows_of_csv_are_read_like_short_ones(line: str) -> None:
    long = "x" * csv.field_size_limit()
    short = fields_of(f"{line},xxx", ",")
    assert fields_of(f"{line},{long}x", ",") == [one.replace("xxx", f"{long}x") for one in short]


@pytest.mark.parametrize("path", sorted(DATA.iterdir()), ids=lambda path: path.name)
def test_inputs_that_were_an_exception(path: Path) -> None:
    """The first ones that were found; tests/test_number_mutations.py makes more."""
    trace = read(path, format="furiosa" if path.name.startswith("furiosa") else None)
    assert sum(trace.counts().values())
    report(trace)


def conversions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The calls that turn text into a number, rows or values of JSON by themselves: their names and lines."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        is_conversion = name in ("int", "float", "Decimal") and node.args and holds_text(node.args[0])
        if is_conversion or name in ("reader", "loads", "JSONDecoder"):
            yield name, node.lineno


def holds_text(node: ast.expr) -> bool:
    """Whether an expression is a group of a match, a member by its key, or has a name for text."""
    if isinstance(node, ast.Subscript):
        by_key = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        return by_key or isinstance(node.slice, ast.Slice) or holds_text(node.value)
    if isinstance(node, ast.Name):
        return node.id in TEXTS
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in ("decode", "strip", "group", "replace")
    return isinstance(node, ast.BoolOp | ast.BinOp) and any(
        holds_text(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)
    )


@pytest.mark.parametrize("folder", ["families", "io", "model", "check"])
def test_text_becomes_a_number_in_one_place(folder: str) -> None:
    found = []
    for path in sorted((FOLDER / folder).rglob("*.py")):
        module = path.relative_to(FOLDER).as_posix()
        allowed = OWN_WAY.get(module, ())
        found += [
            f"{module}:{line}: {name}(...)"
            for name, line in conversions(ast.parse(path.read_text("utf-8")))
            if name not in allowed
        ]
    assert not found, "use traceconv.model.numbers"


@pytest.mark.parametrize(
    "code", ["int(match[1])", "float(text)", 'Decimal(row["x"])', "csv.reader(lines)", "int(x[:9])", "json.loads(x)"]
)
def test_the_guard_sees_conversions(code: str) -> None:
    assert len(list(conversions(ast.parse(code)))) == 1


def test_the_range_of_64_bits() -> None:
    assert [fits_int64(one) for one in (0, -(2**63), 2**63 - 1)] == [True] * 3
    assert [fits_int64(one) for one in (None, 2**63, -(2**63) - 1, 10**400)] == [False] * 4


def test_no_range_is_long() -> None:
    """`None in range(2**63)` counts up to the end."""
    for module in pkgutil.walk_packages(traceconv.__path__, "traceconv."):
        if not module.name.endswith("__main__"):
            members = vars(importlib.import_module(module.name)).items()
            long = [name for name, value in members if isinstance(value, range) and value.stop - value.start > 1000]
            assert not long, module.name
