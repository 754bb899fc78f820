"""Conditions of `report --where`: read, refused, and against brute force."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden import ROOT
from traceconv import answers as answers_module
from traceconv.align.receipt import Aligned
from traceconv.answers import SECTIONS, Questions, answers
from traceconv.answers.section import Section
from traceconv.answers.selection import FIELDS, Comparison, Condition, Joined, Not, holds, parse
from traceconv.answers.slice_tables import SliceTable
from traceconv.api import read, report
from traceconv.errors import UsageError

TABLE = SliceTable(read(ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"))
SIGNS = ["=", "!=", "~", "!~", "<", "<=", ">", ">=", "(", ")", "and", "or", "not", '"', "'", "1", "1ms", "args.x", " "]
comparisons = st.builds(
    Comparison, st.sampled_from(["name", "args.a key", "args.x"]), st.sampled_from(["=", "!="]), st.text("ab\"' \\(")
)
conditions = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(Joined, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=8,
)


def shown(condition: Condition) -> str:
    def quoted(text: object) -> str:
        return '"' + str(text).replace('"', '""') + '"'

    if isinstance(condition, Not):
        return f"not ({shown(condition.condition)})"
    if isinstance(condition, Joined):
        return f" {condition.word} ".join(f"({shown(part)})" for part in condition.parts)
    name = condition.field
    name = f"args.{quoted(name[5:])}" if name.startswith("args.") else name
    return f"{name} {condition.sign} {quoted(condition.operand)}"


@given(conditions)
def test_a_condition_is_read_as_it_was_written(condition: Condition) -> None:
    assert parse(shown(condition)) == condition


@pytest.mark.filterwarnings("ignore:Possible")
@given(st.text() | st.lists(st.sampled_from([*SIGNS, *FIELDS])).map("".join) | st.integers(0, 2000).map("(".__mul__))
def test_garbage_is_a_wrong_call(text: str) -> None:
    said = "at character 1 of"
    try:
        holds(TABLE, parse(text))
    except UsageError as error:
        said = error.message
    assert re.search(r"at character \d+ of", said)


@pytest.mark.parametrize(
    ("text", "at"),
    [("nmae=1", 1), ("name~(", 6), ("dur>1", 5), ("name=a b", 8), ("(name=a", 8), ("name='a", 6), ("depth>x", 7),
     ("name<a", 5), ("dur~1ms", 4), ("", 1), ("name=a and", 11), ("args.x>y", 8)],
)  # fmt: skip
def test_an_error_says_where(text: str, at: int) -> None:
    with pytest.raises(UsageError, match=f"at character {at} of"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("name~(conv and dur>1ms", "quote a text"),
        ("nmae=1", "fields: name"),
        ("name (x)", "operators: = !="),
        ("name<a", "operators for name: = != ~ !~"),
        ("dur~1ms", "operators for dur: = != < <= > >="),
        ("name=a b", "joined by and, or"),
    ],
)
def test_a_hint_says_what_is_expected_there(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(text)
    assert hint in str(error.value.hint)


def test_args_that_no_slice_has_are_named() -> None:
    asked = Questions(sections=["operations"], where="not args.devcie!=1 or args.devcie=2 or args.stream=7 and dur>1us")
    (found,) = answers(TABLE.trace, Aligned(), asked)
    assert [note for note in found.notes if "no slice" in note] == ["--where: no slice here has args.devcie"]


def test_conditions_choose_as_brute_force_does() -> None:
    slices, nesting, strings = TABLE.trace.slices, TABLE.nesting, TABLE.trace.strings
    expected: dict[str, list[bool]] = {text: [] for text in (
        "name~'^cuda' and dur>=2us", "not name~cuda or depth=0", "args.stream=7", "args.stream!=7", "self<5us",
        "start>10us and (depth>0 or category=kernel)", "rank=0", "input~json", "args.stream>7", "thread~stream",
    )}  # fmt: skip
    for row in range(len(slices.ts)):
        name, dur, depth = strings[slices.name[row]], int(slices.dur[row]), int(nesting.depth[row])
        args = json.loads(bytes(TABLE.trace.args.view(int(slices.args_at[row]), int(slices.args_len[row]))) or b"{}")
        source = TABLE.trace.sources[TABLE.trace.tracks[slices.track[row]].source]
        stream = args.get("stream")
        values = (
            name.startswith("cuda") and dur >= 2000, "cuda" not in name or depth == 0, stream == 7, stream != 7,
            int(nesting.self_ns[row]) < 5000,
            slices.ts[row] - TABLE.start > 10_000 and (depth > 0 or strings[slices.category[row]] == "kernel"),
            source.rank == 0, "json" in source.name, stream is not None and stream > 7,
            "stream" in TABLE.path(int(TABLE.row_of_track[slices.track[row]])),
        )  # fmt: skip
        for one, value in zip(expected.values(), values, strict=True):
            one.append(bool(value))
    for text, wanted in expected.items():
        assert holds(TABLE, parse(text)).tolist() == wanted, text


def test_a_name_is_also_that_of_a_picture() -> None:
    table = SliceTable(read(ROOT / "onednn-verbose" / "graph-ts" / "input.log"))
    numbers, names = table.drawn_names
    expected = ["brg_conv" in names[number] for number in numbers]
    assert holds(table, parse("name~brg_conv")).tolist() == expected
    assert holds(table, parse("name!~brg_conv")).tolist() == [not one for one in expected]
    assert 0 < sum(expected) < len(expected)
    assert holds(table, parse("name=convolution")).sum() >= sum(expected)


def test_sections_count_what_is_left_or_say_that_they_do_not() -> None:
    found = {one.name: one for one in answers(TABLE.trace, Aligned(), Questions(where="name~^cuda"))}
    names = [row["name"] for row in found["operations"].records()]
    assert names
    assert all(name.startswith("cuda") for name in names)
    assert found["steps"].rows == []
    assert "--where leaves" in found["steps"].notes[-1]
    assert all(any("does not apply" in note for note in found[name].notes) for name in ("overview", "device"))


def test_sections_say_that_keys_do_not_group_them() -> None:
    asked = Questions(["launches", "operations"], by=["category"])
    found = {
        one.name: any("--by does not apply" in note for note in one.notes)
        for one in answers(TABLE.trace, Aligned(), asked)
    }
    assert found == {"launches": True, "operations": False}


def test_a_condition_leaves_the_share_of_the_thread_that_waits(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}
        for name, ts, dur in (("aten::mm", 0, 90), ("cudaDeviceSynchronize", 90, 10))
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    for where in ("", "name~Sync"):
        (section,) = report([path], Questions(["waits"], where=where))
        assert [(row["self_ns"], row["thread_share"]) for row in section.records()] == [(10_000, 0.1)]


def test_sections_without_the_condition_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def noted(section: str) -> Callable[[Any], list[Section]]:
        make = answers_module._SECTIONS[section]
        return lambda on: (made.append(section), make(on))[1]

    for name in SECTIONS:
        monkeypatch.setitem(answers_module._SECTIONS, name, noted(name))
    asked = Questions(where="name~^cuda")
    found = answers(TABLE.trace, Aligned(), asked)
    twice = {name for name in SECTIONS if made.count(name) > 1}
    assert twice == {"operations", "steps", "waits"}, "in the summary they are about all slices"
    monkeypatch.undo()
    alone = [
        section
        for name in SECTIONS
        for section in answers(TABLE.trace, Aligned(), Questions([name], where=asked.where))
    ]
    assert {section.name: section.rows for section in found} == {section.name: section.rows for section in alone}
