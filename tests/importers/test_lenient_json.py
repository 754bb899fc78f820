"""Reading JSON that is not quite JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceconv.families.chrome.event import Hopeless, Incomplete, repair_value
from traceconv.model.numbers import MAX_DEPTH, flatten

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def repaired(text: str) -> Any:
    value, end = repair_value(text.encode(), 0, Counter())
    assert end == len(text.encode())
    return json.loads(value)


@given(value=st.lists(JSON) | st.dictionaries(st.text(), JSON), ascii_only=st.booleans())
def test_valid_json_keeps_its_value(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace")
    counts: Counter[str] = Counter()
    mended, end = repair_value(text, 0, counts)
    assert end == len(text)
    assert not counts
    assert json.loads(mended) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":"say "x" now"}', {"a": 'say "x" now'}),
        ('{"a":"x","b":"y "z""}', {"a": "x", "b": 'y "z"'}),
        ('{"a "b"":1}', {'a "b"': 1}),
        (r'{"p":"C:\Users\q"}', {"p": r"C:\Users\q"}),
        ('{"a":"x\ny\tz"}', {"a": "x\ny\tz"}),
        ('{"a":NaN,"b":-Infinity,"c":None}', {"a": "NaN", "b": "-Infinity", "c": "None"}),
        ('{"a":0x1F,"b":01}', {"a": "0x1F", "b": "01"}),
        ('{,"a":1,,"b":[1,,2,],}', {"a": 1, "b": [1, 2]}),
        ('{"a":"x",,"b":"y"}', {"a": "x", "b": "y"}),
        (r'["\ud83d","\ude00","\ud83d\ude00"]', ["\ufffd", "\ufffd", "\U0001f600"]),
        ('["a "b" c","d"]', ['a "b" c', "d"]),
        ('{"a":"}, {","b":"]"}', {"a": "}, {", "b": "]"}),
        ('{"name":"op,"pid":1}', {"name": "op", "pid": 1}),
        ('{"name":"a "b" c ,\n "ts":1}', {"name": 'a "b" c', "ts": 1}),
        ('{"ts": 42.75, tid": 0, "pid": 1}', {"ts": 42.75, "tid": 0, "pid": 1}),
        ('{name" :"a", ph":"X"}', {"name": "a", "ph": "X"}),
    ],
)
def test_defects(text: str, value: Any) -> None:
    assert repaired(text) == value


@pytest.mark.parametrize("text", ["{", "[" * 300, '{"a', '{"a":', '{"a":[1,2', '{"a":{"b":1}', '["x', '{"a":"b'])
def test_incomplete(text: str) -> None:
    with pytest.raises(Incomplete):
        repair_value(text.encode(), 0, Counter())


@pytest.mark.parametrize(
    "text",
    ['{"a":[1}}', '{"a":1,{"b":2}}', '{"a":{}{}}', '{"args":{"x":[1,{"name":"n","ph":"X"}]}}'],
)
def test_hopeless(text: str) -> None:
    with pytest.raises(Hopeless):
        repair_value(text.encode(), 0, Counter())


@pytest.mark.parametrize("field", ["name", "args"])
def test_a_text_that_swallows_the_next_event_ends_there(field: str) -> None:
    text = f'{{"ph":"X","{field}":"op}},\n'
    with pytest.raises(Hopeless, match="before the next event") as caught:
        repair_value((text + '{ "cat":"c","ph":"X","name":"op"}').encode(), 0, Counter())
    assert len(text) < caught.value.at < len(text) + 4


@pytest.mark.parametrize("depth", [1, MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 2, 3000])
def test_what_is_nested_too_deeply_becomes_text(depth: int) -> None:
    value = b'{"a":' * (depth - 1) + b'{"]":"}"}' + b"}" * (depth - 1)
    flat = flatten(value)
    assert (flat == value) == (depth <= MAX_DEPTH)
    inner = json.loads(flat)
    for _ in range(min(depth, MAX_DEPTH) - 1):
        inner = inner["a"]
    if depth > MAX_DEPTH:
        assert inner["a"].encode() == value[5 * MAX_DEPTH : len(value) - MAX_DEPTH]
    else:
        assert inner == {"]": "}"}


def test_what_is_nested_too_deeply_and_never_ends_is_not_deep() -> None:
    """A decoder says what is wrong with it, instead of that its own recursion went too far."""
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(flatten(b'{"a":[1,' + b"[" * 5000 + b'"},{"b":1}]}'))
