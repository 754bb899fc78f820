"""Interned strings: with few of them as objects and with all, they are those of a list and a dict."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden import Case, cases
from tests.kernels import variants, without
from traceconv import api
from traceconv.model import columns as module
from traceconv.model.columns import ByKey, Strings, utf8

#: Also the surrogates that JSON escapes can name, and characters outside of the first plane.
TEXTS = st.lists(st.text(st.sampled_from("ab\0é\u20ac\ud800\udc00\U00010000"), max_size=3), max_size=60)


def _interned(texts: Sequence[str], objects: int) -> tuple[Strings, list[int]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MOST_OBJECTS", objects)
        strings = Strings()
        return strings, [strings.number(text) for text in texts]


@settings(deadline=None)
@given(TEXTS, st.integers(0, 4))
def test_numbers_and_texts(texts: list[str], objects: int) -> None:
    expected: dict[str, int] = {}
    numbers = [expected.setdefault(text, len(expected)) for text in texts]
    strings, found = _interned(texts, objects)
    known = list(expected)
    assert found == numbers
    assert list(strings) == known
    assert strings == known
    assert strings != [*known, "another"]
    assert len(strings) == len(known)
    assert [strings[at] for at in range(-len(known), len(known))] == [*known, *known]
    assert strings[1:-1] == known[1:-1]
    assert list(strings.for_reading()) == known
    assert all(text in strings and strings.index(text) == number for text, number in expected.items())
    for text in ("another", 1):
        assert text not in strings
    assert len(strings) == len(known)
    with pytest.raises(ValueError, match="another"):
        strings.index("another")
    for number in (len(known), -len(known) - 1):
        with pytest.raises(IndexError):
            strings[number]


@settings(deadline=None)
@given(TEXTS, st.booleans())
def test_keys_are_those_of_a_dict(texts: list[str], compiled: bool) -> None:
    with nullcontext() if compiled else without():
        found, expected = ByKey(), dict[bytes, int]()
        for number, key in enumerate(map(utf8, texts)):
            assert found.get(key) == expected.get(key, -1)
            found.put(key, number)
            expected[key] = number
        assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize("objects", [0, 1 << 30])
def test_many(objects: int) -> None:
    """The index grows many times, and so does the buffer."""
    texts = [f"{'name' * (number % 7)} {number % 50_000}" for number in range(120_000)]
    expected: dict[str, int] = {}
    numbers = [expected.setdefault(text, len(expected)) for text in texts]
    strings, found = _interned(texts, objects)
    assert found == numbers
    assert list(strings) == list(expected)
    assert isinstance(strings.for_reading(), list) == (objects > 0 or not variants("strings"))


def test_strings_added_while_reading() -> None:
    strings, _ = _interned("abcd", 2)
    for text in strings:
        strings.number(f"{text}{text}")
    assert list(strings) == ["a", "b", "c", "d", "aa", "bb", "cc", "dd"]


def test_all_are_objects_without_the_kernel() -> None:
    with without():
        strings, found = _interned("abcab", 1)
    assert found == [0, 1, 2, 0, 1]
    assert strings.for_reading() == ["a", "b", "c"]


def _one_per_format() -> list[Case]:
    found = {case.format: case for case in cases() if (case.folder / "expect.txt").exists()}
    return [case for format, case in found.items() if format != "merge"]


@pytest.mark.parametrize("case", _one_per_format(), ids=lambda case: case.format)
def test_same_bytes(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outputs do not depend on which strings are objects."""
    source = case.named_input(tmp_path)
    for ending in ("pftrace", "json"):
        outputs = []
        for objects in (1 << 30, 1):
            monkeypatch.setattr(module, "_MOST_OBJECTS", objects)
            outputs.append(tmp_path / f"{objects}.{ending}")
            api.convert(source, outputs[-1], format=case.format, options=case.options)
        assert outputs[0].read_bytes() == outputs[1].read_bytes()
