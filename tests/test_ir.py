"""The builder: what importers say becomes columns, exactly, and nonsense is counted instead of raised or wrapped."""

from __future__ import annotations

import inspect
import itertools
import json
import math
import struct
import time
import tracemalloc
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests import GROWTH_S
from traceconv.model.args import Args, join_args
from traceconv.model.builder import IMPOSSIBLE_WEIGHT, NOT_A_NUMBER, Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Run, Zero
from traceconv.model.diagnostics import (
    DECLARED,
    Balance,
    Code,
    Diagnostic,
    Diagnostics,
    ProblemKind,
    Severity,
    noted,
)
from traceconv.model.drawable import END_NEVER_SET, IMPOSSIBLE_CPU, NEGATIVE_DURATION, OUT_OF_RANGE
from traceconv.model.dump import dump
from traceconv.model.event_tables import MISNAMED_END, UNBEGUN_END, UNENDED
from traceconv.model.layout import InvalidTrace, lay_out, validate
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import NO_CPU, TABLES, Level, SliceId, StackId, Trace, column_types
from traceconv.model.track_table import TrackId, TrackKind, Tracks

TEST = Code("test.lost", Severity.DATA_LOSS, "lost in a test", ProblemKind.LOST)
#: Without a resolution no overlap is small enough to be cut away.
CLOCK = structs.replace(REALTIME, resolution_ns=0)


@pytest.fixture
def out() -> Builder:
    return new()


def new() -> Builder:
    return Builder(SourceInfo("in.json", "test"), CLOCK)


def slices(trace: Trace) -> list[tuple[int, int, str, dict[str, Any]]]:
    """Start, length, name, args of all slices in order of the table."""
    t = trace.slices
    return [
        (int(ts), int(dur), trace.strings[name], json.loads(trace.args.get(int(at), int(length)) or b"{}"))
        for ts, dur, name, at, length in zip(t.ts, t.dur, t.name, t.args_at, t.args_len, strict=True)
    ]


def problems(trace: Trace) -> dict[str, int]:
    return {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}


# -- types and columns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ts", [1.0, 1e300, -0.5, math.nan, math.inf, "1", None, np.float64(1)])
def test_a_time_that_is_no_integer_is_a_type_error(ts: Any) -> None:
    calls = [
        lambda out, track: out.slice(track, ts, 1, "x"),
        lambda out, track: out.slice(track, 1, ts, "x"),
        lambda out, track: out.instant(track, ts, "x"),
        lambda out, track: out.counter(track, ts, 1),
        lambda out, track: out.sample(track, ts, out.frame("f")),
        lambda out, track: out.begin(track, ts, "x"),
        lambda out, track: out.end(track, ts),
        lambda out, track: out.bulk.slices([track], [ts], [1], [0], [0], [b""], [0]),
        lambda out, track: out.bulk.slices([track], [1], [ts], [0], [0], [b""], [0]),
    ]
    for call in calls:
        out = new()
        with pytest.raises(TypeError):
            call(out, out.tracks.add("t"))


@pytest.mark.parametrize(
    "times",
    [
        [1, 2.5, 3],
        [1, 2.0, 3],
        (1, np.float64(2), 3),
        np.array([1.0, 2.0, 3.0]),
        np.array([1, 1.9, 2]),
        [1, True, None],
    ],
)
def test_no_time_among_many_is_cut_to_an_integer(times: Any) -> None:
    fine = [1, 2, 3]
    for ts, dur in ((times, fine), (fine, times), (times, [1, -1, 1])):
        out = new()
        with pytest.raises(TypeError):
            out.bulk.slices([out.tracks.add("t")] * 3, ts, dur, [0] * 3, [0] * 3, [b""] * 3, [0] * 3)
        assert out.tables.slice_count == 0


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.uint8])
def test_columns_of_any_integers_are_times(kind: Any, out: Builder) -> None:
    times = np.array([1, 2], kind)
    out.bulk.slices([out.tracks.add("t")] * 2, times, times, [0] * 2, [0] * 2, [b""] * 2, [0] * 2)
    assert [row[:2] for row in slices(out.finish())] == [(1, 1), (2, 2)]


def test_numpy_integers_are_times(out: Builder) -> None:
    out.slice(out.tracks.add("t"), np.int64(2**60), np.int64(5), "x")  # type: ignore[arg-type]
    assert slices(out.finish()) == [(2**60, 5, "x", {})]


def test_strings_are_interned(out: Builder) -> None:
    track = out.tracks.add("t")
    out.slice(track, 0, 1, "conv", "op")
    out.instant(track, 0, "op", "conv")
    out.slice(track, 1, 1, "conv")
    trace = out.finish()
    assert trace.strings == ["", "conv", "op"]
    assert trace.slices.name.tolist() == [1, 1]
    assert trace.slices.category.tolist() == [2, 0]
    assert (trace.instants.name[0], trace.instants.category[0]) == (2, 1)
    assert out.tables.string("conv") == 1


def test_every_column(out: Builder) -> None:
    process = out.tracks.process("p", pid=7, description="d")
    thread = out.tracks.thread(process, 8, "t")
    values = out.tracks.counter("c", process, unit="bytes")
    first = out.slice(thread, 10, 5, "x", "cat", {"a": 1}, at=3)
    second = out.slice(thread, 20, 5, "y", args=b'{"b": [2]}', at=4)
    out.instant(thread, 12, "i", args={"c": None}, at=5)
    out.counter(values, 13, 2.5, at=6)
    out.flow(first, second, "f", "cat", at=7)
    inner = out.frame("inner", "python", out.frame("outer"))
    out.sample(thread, 14, inner, "s", 9, at=8, cpu=3)
    out.log(thread, 15, "text", Level.WARNING, "a.py:3", {"d": 1}, at=9)
    out.metadata["key"] = ["value"]
    out.note("once")
    out.note("once")
    out.clocks.snapshot(ClockSnapshot(REALTIME, 1, ClockDomain("b", Zero.BOOT, Run.MONOTONIC), 2, 3, "read together"))
    out.balance.read = out.balance.written = 5
    trace = lay_out(out.finish())
    validate(trace)
    assert dump(trace).splitlines() == [
        "source in.json (test): 5 events = 5 written",
        "  note: once",
        "clock CLOCK_REALTIME (wall clock, zero at Unix epoch), resolution 0 ns",
        "snapshot CLOCK_REALTIME 1 = b 2 (±3 ns: read together)",
        'metadata key = ["value"]',
        "process 0 'p' pid=7 (d)",
        "thread 1 't' in 0 tid=8",
        "counter track 2 'c' in 0 unit=bytes",
        "slice 0: 10 +5 on 1 'x' [cat] {\"a\":1} @3",
        "slice 1: 20 +5 on 1 'y' {\"b\": [2]} @4",
        "instant 12 on 1 'i' {\"c\":null} @5",
        "counter 13 on 2 = 2.5 @6",
        "flow 0 -> 1 'f' [cat] @7",
        "sample 14 on 1 's' inner < outer x9 cpu 3 @8",
        "log 15 on 1 warning [a.py:3] 'text' {\"d\":1} @9",
    ]
    counts = {"slices": 2, "instants": 1, "counter values": 1, "flows": 1, "samples": 1, "log entries": 1}
    assert trace.counts() == counts
    assert trace.span() == (10, 25)
    assert trace.place(1, 3) == "in.json:event 3"


def test_frames_are_shared(out: Builder) -> None:
    outer = out.frame("main")
    assert out.frame("main") == outer
    assert out.frame("main", "python") != outer
    assert out.frame("main", parent=outer) != outer


def test_the_default_clock_can_be_replaced(out: Builder) -> None:
    boot = ClockDomain("boot", Zero.BOOT, Run.MONOTONIC)
    assert out.clocks.add(boot) == 1
    assert out.clocks.add(boot) == 1
    out.clocks.set_default(boot.owned_by("x"))
    assert out.finish().clocks == [boot.owned_by("x"), boot]


# -- bulk and single --------------------------------------------------------------------------------------------------

any_int = st.one_of(
    st.integers(-10, 10),
    st.sampled_from([s * (b + d) for s in (1, -1) for b in (LIMIT_NS, 2**63, 2**64, 10**30) for d in (-1, 0, 1)]),
    st.integers(-LIMIT_NS, LIMIT_NS),
)
rows = st.lists(st.tuples(any_int, any_int, st.sampled_from(["", "a", "b"]), st.sampled_from([b"", b'{"k": 1}'])))


@given(rows)
def test_bulk_slices_equal_single_ones(rows: list[tuple[int, int, str, bytes]]) -> None:
    single, bulk = new(), new()
    tracks = [out.tracks.add("t") for out in (single, bulk)]
    for at, (ts, dur, name, args) in enumerate(rows):
        single.slice(tracks[0], ts, dur, name, "c", args, at)
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    names, categories = [bulk.tables.string(name) for name in columns[2]], [bulk.tables.string("c")] * len(rows)
    bulk.bulk.slices([tracks[1]] * len(rows), columns[0], columns[1], names, categories, columns[3], range(len(rows)))
    assert bulk.tables.slice_count == single.tables.slice_count == len(rows)
    one, other = single.finish(), bulk.finish()
    assert slices(one) == slices(other)
    assert one.slices.origin.tolist() == other.slices.origin.tolist()
    assert problems(one) == problems(other)
    for trace in (one, other):
        shown = [trace.strings[name] for name in trace.slices.name]
        assert shown == [row[2] for row in rows]


#: What columns of 64 bits may hold.
any_column_int = any_int.filter(lambda number: -(2**63) <= number < 2**63)
timed = st.lists(st.tuples(any_column_int, any_column_int, st.sampled_from([b"", b"{}", b'{"k":1}']), st.booleans()))


@given(timed)
def test_many_at_once_are_what_they_are_one_by_one(rows: list[tuple[int, int, bytes, bool]]) -> None:
    """All verbs for many: whatever the times are, the same rows, args and problems as from the verbs for one."""
    single, bulk = new(), new()
    for out in (single, bulk):
        out.tracks.add("t"), out.tracks.counter("c"), out.frame("f"), out.tables.string("x"), out.tables.string("y")
    track = TrackId(0)
    for at, (ts, number, args, flag) in enumerate(rows):
        single.slice(track, ts, number, "x", "y", args, at)
        single.instant(track, ts, "x", "y", args, at)
        single.counter(TrackId(1), ts, number if flag else _double(number), at)
        single.sample(track, ts, StackId(0), "x", 2, at, cpu=3 if flag else NO_CPU)
        (single.begin if flag else single.end)(track, ts, "x", args=args, at=at)
    ts, number, flags = (np.array([row[place] for row in rows], np.int64) for place in (0, 1, 3))
    lengths = np.array([len(row[2]) for row in rows], np.int32)
    places = np.cumsum(lengths, dtype=np.int64) - lengths + bulk.tables.args_part(b"".join(row[2] for row in rows))
    zeros, ones, at = np.zeros(len(rows), np.int32), np.ones(len(rows), np.int32), np.arange(len(rows))
    is_begin = flags.astype(np.uint8)
    bulk.bulk.slice_rows(zeros, ts, number, ones, ones * 2, places, lengths, at)
    bulk.bulk.instants(zeros, ts, ones, ones * 2, places, lengths, at)
    bulk.bulk.counters(ones, ts, number, is_begin, at)
    bulk.bulk.samples(zeros, ts, zeros, ones, ones * np.int64(2), np.where(flags, 3, NO_CPU).astype(np.int32), at)
    bulk.bulk.begins_and_ends(zeros, ts, is_begin, ones, zeros, places, lengths, at)
    one, other = single.finish(), bulk.finish()
    assert dump(one) == dump(other)
    for table in TABLES:
        for column in column_types(TABLES[table]):
            if column not in ("args_at", "args_len"):
                found = [getattr(getattr(trace, table), column).tolist() for trace in (one, other)]
                assert found[0] == found[1], (table, column)
    assert slices(one) == slices(other)
    assert [entry.message() for entry in one.sources[0].diagnostics] == [
        entry.message() for entry in sorted_like(one, other)
    ]
    assert one.sources[0].balance == other.sources[0].balance


def _double(bits: int) -> float:
    """The double with these bits."""
    number: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return number


def sorted_like(one: Trace, other: Trace) -> list[Diagnostic]:
    """The diagnostics of the other trace in the order of those of the one."""
    names = [entry.code.name for entry in one.sources[0].diagnostics]
    return sorted(other.sources[0].diagnostics, key=lambda entry: names.index(entry.code.name))


def test_bulk_and_single_slices_mix(out: Builder) -> None:
    track, name = out.tracks.add("t"), out.tables.string("bulk")
    out.slice(track, 0, 1, "single", args={"a": 1})
    out.bulk.slices([track] * 2, [1, 2], [1, 1], [name] * 2, [0, 0], [b'{"b":2}', b""], [0, 0])
    out.slice(track, 3, 1, "single", args={"c": 3})
    expected = [(0, 1, "single", {"a": 1}), (1, 1, "bulk", {"b": 2}), (2, 1, "bulk", {}), (3, 1, "single", {"c": 3})]
    assert slices(out.finish()) == expected


# -- out of range -----------------------------------------------------------------------------------------------------


@given(any_int, any_int)
def test_no_slice_leaves_the_range(ts: int, dur: int) -> None:
    out = new()
    out.slice(out.tracks.add("t"), ts, dur, "x")
    trace = lay_out(out.finish())
    validate(trace)
    ((drawn_ts, drawn_dur, _, args),) = slices(trace)
    span = trace.span()
    assert span is not None
    assert -LIMIT_NS <= span[0] <= span[1] <= LIMIT_NS
    fits = -LIMIT_NS <= ts <= ts + max(dur, 0) <= LIMIT_NS and abs(dur) <= LIMIT_NS
    assert problems(trace).get(OUT_OF_RANGE.name, 0) == (not fits)
    is_unset = problems(trace).get(END_NEVER_SET.name, 0)
    assert problems(trace).get(NEGATIVE_DURATION.name, 0) + is_unset == (dur < 0)
    if fits:
        assert (drawn_ts, drawn_dur) == (ts, max(dur, 0))
    else:
        assert (args["ts_ns"], args["dur_ns"]) == (str(ts), str(dur))
    if dur < 0:
        assert args["unfinished"] if is_unset else args["negative_dur_ns"] == max(dur, -LIMIT_NS)


@given(any_int)
def test_no_other_event_leaves_the_range(ts: int) -> None:
    out = new()
    track = out.tracks.add("t")
    out.instant(track, ts, "i")
    out.counter(out.tracks.counter("c"), ts, 1)
    out.sample(track, ts, out.frame("f"))
    trace = lay_out(out.finish())
    expected = max(-LIMIT_NS, min(ts, LIMIT_NS))
    assert trace.span() == (expected, expected)
    assert problems(trace).get(OUT_OF_RANGE.name, 0) == (0 if ts == expected else 3)


def test_a_pair_that_is_too_long(out: Builder) -> None:
    track = out.tracks.add("t")
    out.begin(track, -LIMIT_NS, "x")
    out.end(track, LIMIT_NS)
    trace = out.finish()
    assert problems(trace) == {OUT_OF_RANGE.name: 1}
    assert slices(trace) == [(-LIMIT_NS, LIMIT_NS, "x", {"ts_ns": str(-LIMIT_NS), "dur_ns": str(2 * LIMIT_NS)})]


@pytest.mark.parametrize(
    ("value", "integer", "double"),
    [
        (0, 0, 0.0),
        (2**53 + 1, 2**53 + 1, 2.0**53),
        (2**63 - 1, 2**63 - 1, 2.0**63),
        (-(2**63), -(2**63), -(2.0**63)),
        (2**63, None, 2.0**63),
        (2**64 - 1, None, 2.0**64),
        (0.1, None, 0.1),
        (5.0, None, 5.0),
        (-1.7976931348623157e308, None, -1.7976931348623157e308),
        (True, 1, 1.0),
    ],
)
def test_counter_values(value: float, integer: int | None, double: float, out: Builder) -> None:
    out.counter(out.tracks.counter("c"), 0, value)
    table = out.finish().counters
    assert table.value.tolist() == [double]
    assert table.is_integer.tolist() == [integer is not None]
    assert table.integer.tolist() == [integer or 0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, -(10**400), np.float64("inf")])
def test_a_counter_value_that_no_double_holds_is_left_out_and_counted(value: float, out: Builder) -> None:
    track = out.tracks.counter("c")
    out.counter(track, 0, 1)
    out.counter(track, 1, value, at=7)
    trace = out.finish()
    assert trace.counters.value.tolist() == [1.0]
    assert problems(trace) == {NOT_A_NUMBER.name: 1}
    ((place,),) = [entry.places for entry in trace.sources[0].diagnostics]
    assert place.startswith("in.json:event 7: ")
    assert len(place) < 60


# -- begins and ends --------------------------------------------------------------------------------------------------


def paired(*marks: tuple[str, int, str]) -> Trace:
    """B and E marks (kind, ts, name), numbered from 1."""
    out = new()
    track = out.tracks.add("t")
    for at, (kind, ts, name) in enumerate(marks, 1):
        if kind == "B":
            out.begin(track, ts, name, "cat", {f"b{at}": at}, at)
        else:
            out.end(track, ts, name, {f"e{at}": at}, at)
    out.balance.read = len(marks)
    trace = lay_out(out.finish())
    validate(trace)
    return trace


@pytest.mark.parametrize(
    ("marks", "expected", "diagnosed"),
    [
        ([("B", 1, "a"), ("E", 5, "a")], {("a", 1, 4)}, {}),
        ([("B", 1, "a"), ("B", 2, "b"), ("E", 3, ""), ("E", 5, "")], {("a", 1, 4), ("b", 2, 1)}, {}),
        # They cross: both keep their lengths.
        ([("B", 1, "a"), ("B", 2, "b"), ("E", 3, "a"), ("E", 5, "b")], {("a", 1, 2), ("b", 2, 3)}, {}),
        # Of one name the innermost goes first.
        ([("B", 1, "a"), ("B", 2, "a"), ("E", 3, "a"), ("E", 5, "a")], {("a", 1, 4), ("a", 2, 1)}, {}),
        # Not in order.
        ([("E", 5, "a"), ("B", 1, "a")], {("a", 1, 4)}, {}),
        ([("E", 3, "b"), ("E", 5, "a"), ("B", 2, "b"), ("B", 1, "a")], {("a", 1, 4), ("b", 2, 1)}, {}),
        # Two in a row, touching.
        ([("B", 1, "a"), ("E", 2, "a"), ("B", 2, "a"), ("E", 3, "a")], {("a", 1, 1), ("a", 2, 1)}, {}),
        ([("B", 1, "a"), ("E", 5, "z")], {("a", 1, 4)}, {MISNAMED_END: 1}),
        ([("E", 5, "a")], set(), {UNBEGUN_END: 1}),
        ([("B", 1, "a"), ("B", 4, "b"), ("E", 6, "b")], {("a", 1, 5), ("b", 4, 2)}, {UNENDED: 1}),
        ([("B", -9, "a"), ("B", -7, "b"), ("E", -5, "b")], {("a", -9, 4), ("b", -7, 2)}, {UNENDED: 1}),
    ],
)
def test_pairs(marks: Any, expected: Any, diagnosed: dict[Code, int]) -> None:
    trace = paired(*marks)
    assert {(name, ts, dur) for ts, dur, name, _ in slices(trace)} == expected
    found = {code: trace.sources[0].diagnostics.count(code) for code in (MISNAMED_END, UNBEGUN_END, UNENDED)}
    assert {code: count for code, count in found.items() if count} == diagnosed


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_order_of_the_input_does_not_matter(order: tuple[int, ...]) -> None:
    marks = [("B", 1, "a"), ("B", 2, "b"), ("E", 3, "a"), ("E", 5, "b")]
    trace = paired(*(marks[at] for at in order))
    assert [(ts, dur, name) for ts, dur, name, _ in slices(trace)] == [(1, 2, "a"), (2, 3, "b")]


@given(
    st.lists(
        st.tuples(st.sampled_from("BE"), st.integers(-5, 20), st.sampled_from(["", "a", "b", "c"])),
        max_size=30,
    )
)
def test_each_mark_is_accounted_for(marks: list[tuple[str, int, str]]) -> None:
    trace = paired(*marks)
    balance = trace.sources[0].balance
    begins = sum(kind == "B" for kind, _, _ in marks)
    assert balance.even
    assert len(trace.slices.ts) == balance.written == begins
    # The args of both ends are there: each key is the number of its mark.
    joined = [key for _, _, _, args in slices(trace) for key in args if key != "unfinished"]
    assert len(joined) == len(set(joined)) == begins + balance.merged.total()
    unfinished = sum("unfinished" in args for _, _, _, args in slices(trace))
    assert unfinished == problems(trace).get(UNENDED.name, 0)
    assert min((dur for _, dur, _, _ in slices(trace)), default=0) >= 0


def test_pairs_belong_to_their_track(out: Builder) -> None:
    one, other = out.tracks.add("a"), out.tracks.add("b")
    out.begin(one, 1, "x")
    out.begin(other, 2, "x")
    out.end(other, 3)
    out.end(one, 9)
    trace = out.finish()
    assert sorted(zip(trace.slices.track.tolist(), trace.slices.dur.tolist(), strict=True)) == [(0, 8), (1, 1)]


def test_begins_and_ends_out_of_range(out: Builder) -> None:
    track = out.tracks.add("t")
    out.begin(track, -(10**30), "x", args={"a": 1})
    out.end(track, -LIMIT_NS + 5, "x")
    out.begin(track, LIMIT_NS - 7, "y")
    out.end(track, 2**64, "y")
    trace = out.finish()
    assert problems(trace) == {OUT_OF_RANGE.name: 2}
    assert slices(trace) == [
        (-LIMIT_NS, 5, "x", {"a": 1, "ts_ns": str(-(10**30))}),
        (LIMIT_NS - 7, 7, "y", {"end_ts_ns": str(2**64)}),
    ]


class Mark(NamedTuple):
    track: int
    ts: int
    kind: str
    name: str
    at: int


def paired_by_definition(marks: list[Mark]) -> list[tuple[int, int, int, str, int]]:
    """Track, start, end, name and number of the start, of what has an end: the rule as the documentation states it."""
    rows = []
    for number in sorted({mark.track for mark in marks}):
        still_open: list[Mark] = []
        for mark in sorted((mark for mark in marks if mark.track == number), key=lambda mark: (mark.ts, mark.at)):
            if mark.kind == "B":
                still_open.append(mark)
                continue
            named = [begin for begin in still_open if begin.name == mark.name and mark.name]
            for begin in (named or still_open)[-1:]:
                still_open.remove(begin)
                rows.append((number, begin.ts, mark.ts, begin.name, begin.at))
    return rows


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, 9), st.sampled_from("BE"), st.sampled_from(["", "a", "b"]), st.booleans()
        )
    )
)
def test_pairs_are_those_of_the_definition_in_its_order(rows: list[tuple[int, int, str, str, bool]]) -> None:
    marks = [Mark(*row[:4], at) for at, row in enumerate(rows)]
    out = new()
    tracks = [out.tracks.add(str(number)) for number in range(3)]
    for mark, row in zip(marks, rows, strict=True):
        args = b'{"%s":%d}' % (mark.kind.encode(), mark.at) if row[4] else b" { }"
        if mark.kind == "B":
            out.begin(tracks[mark.track], mark.ts, mark.name, "cat", args, mark.at)
        else:
            out.end(tracks[mark.track], mark.ts, mark.name, args, mark.at)
    trace = out.finish()
    table = trace.slices
    found = [
        (track, ts, ts + dur, trace.strings[name], at)
        for track, ts, dur, name, at, (_, _, _, members) in zip(
            *(column.tolist() for column in (table.track, table.ts, table.dur, table.name, table.origin)),
            slices(trace),
            strict=True,
        )
        if "unfinished" not in members
    ]
    assert found == paired_by_definition(marks)
    for at, (_, _, _, members) in zip(table.origin.tolist(), slices(trace), strict=True):
        assert members.get("B") == (at if rows[at][4] else None)


def test_begins_and_ends_take_little_memory(out: Builder) -> None:
    """Half of what one Python object for each would take."""
    track = out.tracks.add("t")
    names = [f"function {number}" for number in range(50)]
    tracemalloc.start()
    for at in range(0, 100_000, 2):
        out.begin(track, 10**15 + at, names[at % 50], "cat", b"", 10**6 + at)
        out.end(track, 10**15 + at + 1, names[at % 50], b"", 10**6 + at + 1)
    out.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 100_000


def test_misnamed_ends_among_many_open_slices(out: Builder) -> None:
    """Generous for a slow machine; what is quadratic takes minutes."""
    track = out.tracks.add("t")
    for at in range(60_000):
        out.begin(track, at, f"begin {at}")
    for at in range(60_000):
        out.end(track, 100_000 + at, f"end {at}")
    begin = time.process_time()
    out.pair()
    assert time.process_time() - begin < GROWTH_S
    assert out.tables.slice_count == 60_000


def test_first_and_last_instant() -> None:
    assert (new().tables.first_ts(), new().tables.last_ts()) == (0, 0)
    for sign in (1, -1):
        out = new()
        track = out.tracks.add("t")
        out.slice(track, sign * 100, 50, "x")
        times = [sign * 100, sign * 100 + 50]
        assert (out.tables.first_ts(), out.tables.last_ts()) == (min(times), max(times))
        out.begin(track, sign * 1000, "y")
        times.append(sign * 1000)
        assert (out.tables.first_ts(), out.tables.last_ts()) == (min(times), max(times))


# -- args -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (b"", b"", {}),
        (b"{}", b"", {}),
        (b'{"a":1}', b"", {"a": 1}),
        (b"", b' {"a": 1}\n', {"a": 1}),
        (b'{"a":1}', b"{ \n}", {"a": 1}),
        (b"{\t}", b'{"a":1}', {"a": 1}),
        (b' {"a":1} ', b'{ "b":{} }', {"a": 1, "b": {}}),
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}),
        ({}, {"a": "µ"}, {"a": "µ"}),
        ({"a": 1}, b'{"b":2}', {"a": 1, "b": 2}),
    ],
)
def test_join_args(one: Any, other: Any, expected: dict[str, Any]) -> None:
    joined = join_args(one, other)
    assert json.loads(joined or b"{}") == expected


def test_args_of_any_python_value(out: Builder) -> None:
    track = out.tracks.add("t")
    out.slice(track, 0, 1, "x", args={"big": 2**70, "path": TrackKind.COUNTER, "odd": object, "n": [1.5, None, True]})
    ((_, _, _, args),) = slices(out.finish())
    assert args["big"] == 2**70
    assert args["n"] == [1.5, None, True]


def test_args_in_parts() -> None:
    args = Args([b"abc", bytearray(b""), b"de", bytearray(b"f")])
    assert len(args) == 6
    assert [args.get(at, length) for at, length in ((0, 3), (1, 2), (3, 2), (5, 1), (5, 0), (0, 0))] == [
        *(b"abc", b"bc", b"de", b"f", b"", b"")
    ]


# -- diagnostics and balance ------------------------------------------------------------------------------------------


def test_problems_are_counted_and_the_first_places_kept(out: Builder) -> None:
    for at in range(1, 1001):
        out.skip(TEST, at, "what")
    out.problem(TEST, "in words", count=5)
    (entry,) = out.info.diagnostics
    assert (entry.count, entry.places) == (1005, [f"in.json:event {at}: what" for at in (1, 2, 3)])
    assert out.info.diagnostics.lost == 1005
    assert out.balance.skipped == {"skipped (test.lost)": 1000}
    assert not out.balance.even
    out.balance.read = 1000
    assert out.balance.even
    assert out.balance.describe() == "1000 events = 0 written + 1000 skipped (test.lost)"


def test_the_first_places_of_the_file_are_kept() -> None:
    """Readers may look at a file in another order; what has no number stays behind, as it came."""
    found, rest = Diagnostics(), Diagnostics()
    for number in (5, 9, 7, 2):
        found.add(TEST, f"line {number}", number=number)
    (entry,) = found
    assert entry.places == ["line 2", "line 5", "line 7"]
    rest.add(TEST, "in words")
    rest.add(TEST, "line 6", number=6)
    found.extend(rest)
    assert entry.places == ["line 2", "line 5", "line 6"]
    rest.add(TEST, "in other words")
    rest.add(TEST, "in yet others")
    assert next(iter(rest)).places == ["line 6", "in words", "in other words"]
    assert entry.count == 6


def test_diagnostics_add_up() -> None:
    one, other = Diagnostics(), Diagnostics()
    one.add(TEST, "a")
    for place in "bcd":
        other.add(TEST, place, 2)
    one.extend(other)
    assert one.count(TEST) == 7
    assert next(iter(one)).places == ["a", "b", "c"]
    assert other.count(TEST) == 6


@pytest.mark.parametrize("kind", ProblemKind)
def test_what_is_lost_is_of_that_kind(kind: ProblemKind) -> None:
    found = Diagnostics()
    found.add(Code("test.kind", Severity.NOTICE, "x", kind), count=3)
    assert found.lost == (3 if kind is ProblemKind.LOST else 0)
    assert next(iter(found)).message() == f"{kind.value}: 3 x x (test.kind)"


def test_a_line_about_a_file_does_not_repeat_its_name_at_places() -> None:
    found = Diagnostics()
    for place in ("a.log:line 1: of a.log:2", "b.log:line 2", "line 3"):
        found.add(Code("test.kind", Severity.NOTICE, "x", ProblemKind.LOST), place)
    (problem,) = found
    assert problem.message().endswith("[a.log:line 1: of a.log:2; b.log:line 2; line 3]")
    assert problem.message("a.log").endswith("[line 1: of a.log:2; b.log:line 2; line 3]")


def test_codes_have_one_owner() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        noted(UNENDED.name, "again")
    assert DECLARED[UNENDED.name] is UNENDED


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 30))
def test_a_balance_is_even_or_not(written: int, merged: int, skipped: int, read: int) -> None:
    balance = Balance("lines", read, written)
    balance.merged["joined"] += merged
    balance.skipped["lost"] += skipped
    assert balance.even == (read == written + merged + skipped)


# -- validate finds what is wrong -------------------------------------------------------------------------------------


def sound() -> Trace:
    out = new()
    thread = out.tracks.thread(out.tracks.process("p", pid=1), 2)
    slice_id = out.slice(thread, 0, 10, "x", args={"a": 1})
    out.flow(slice_id, slice_id)
    out.instant(thread, 0, "i")
    out.sample(thread, 0, out.frame("f"))
    return lay_out(out.finish())


def test_a_sound_trace_is_valid() -> None:
    validate(sound())


@pytest.mark.parametrize(
    ("table", "column", "value", "rule"),
    [
        ("slices", "track", 2, "track out of range"),
        ("slices", "track", -1, "track out of range"),
        ("slices", "name", 99, "name out of range"),
        ("instants", "category", -1, "category out of range"),
        ("slices", "args_len", 100, "args out of range"),
        ("slices", "dur", -1, "negative duration"),
        ("flows", "to_slice", 1, "slice out of range"),
        ("samples", "stack", 1, "stack out of range"),
        ("samples", "cpu", -2, "cpu out of range"),
        ("slices", "args_len", -1, "args out of range"),
        ("flows", "name", 99, "name out of range"),
        ("flows", "category", -1, "category out of range"),
        ("samples", "name", -1, "name out of range"),
        ("samples", "name", 99, "name out of range"),
    ],
)
def test_wrong_rows_are_found(table: str, column: str, value: int, rule: str) -> None:
    trace = sound()
    rows = getattr(trace, table)
    wrong = {**{name: getattr(rows, name) for name in rows.__slots__}, column: np.array([value])}
    with pytest.raises(InvalidTrace, match=rule):
        validate(trace.with_tables(**{table: type(rows)(**wrong)}))


def test_wrong_order_and_wrong_nesting_are_found() -> None:
    out = new()
    track = out.tracks.add("t")
    out.slice(track, 5, 10, "x")
    out.slice(track, 0, 10, "y")
    with pytest.raises(InvalidTrace, match="not sorted"):
        validate(out.finish())
    out = new()
    track = out.tracks.add("t")
    out.slice(track, 0, 10, "x")
    out.slice(track, 5, 10, "y")
    with pytest.raises(InvalidTrace, match="crosses"):
        validate(out.finish())


@pytest.mark.parametrize(
    ("attribute", "value", "rule"),
    [
        ("parent", TrackId(1), "before its parent"),
        ("parent", TrackId(-2), "parent out of range"),
        ("kind", TrackKind.TRACK, "belongs to no process"),
        ("clock", 1, "clock out of range"),
        ("clock", -1, "clock out of range"),
        ("source", 1, "source out of range"),
        ("source", -1, "source out of range"),
        ("lane_of", 2, "lane_of out of range"),
        ("lane_of", -2, "lane_of out of range"),
    ],
)
def test_wrong_tracks_are_found(attribute: str, value: int, rule: str) -> None:
    trace = sound()
    trace.tracks = Tracks([structs.replace(trace.tracks[0], **{attribute: value}), *trace.tracks[1:]])
    with pytest.raises(InvalidTrace, match=rule):
        validate(trace)


def test_a_thread_without_a_process_is_found() -> None:
    out = new()
    out.slice(out.tracks.thread(TrackId(-1), 2), 0, 1, "x")
    out.slice(out.tracks.process("p"), 0, 1, "x")
    trace = out.finish()
    with pytest.raises(InvalidTrace, match="belongs to no process"):
        validate(trace)


@pytest.mark.parametrize(("table", "column"), [("slices", "origin"), ("flows", "name"), ("counters", "is_integer")])
def test_columns_of_different_lengths_are_found(table: str, column: str) -> None:
    trace = sound()
    rows = getattr(trace, table)
    longer = np.append(getattr(rows, column), 0)
    with pytest.raises(InvalidTrace, match=f"{table}: columns of different lengths"):
        validate(trace.with_tables(**{table: replace(rows, **{column: longer})}))


@pytest.mark.parametrize("parent", [0, 1, -2])
def test_a_frame_that_does_not_stand_behind_its_parent_is_found(parent: int) -> None:
    trace = sound()
    trace.frames[0] = structs.replace(trace.frames[0], parent=parent)
    with pytest.raises(InvalidTrace, match="frame 0"):
        validate(trace)


def test_an_uneven_balance_is_found() -> None:
    trace = sound()
    trace.sources[0].balance.read = 3
    with pytest.raises(InvalidTrace, match="not even"):
        validate(trace)


def test_flows_point_to_slices(out: Builder) -> None:
    track = out.tracks.add("t")
    out.flow(out.slice(track, 0, 1, "x"), SliceId(7))
    with pytest.raises((InvalidTrace, IndexError)):
        validate(lay_out(out.finish()))


def test_begins_and_ends_as_columns() -> None:
    """The same slices as one by one: with args, names, crossings, an end too many and times out of range."""
    marks = [
        (10, True, "a", "cat", b'{"x":1}'),
        (11, True, "b", "", b""),
        (12, False, "a", "", b""),
        (13, False, "", "", b'{"y":2}'),
        (14, False, "", "", b""),
        *((20 + n, n % 2 == 0, "many", "c", b"") for n in range(400)),
        (500, True, "open", "", b""),
    ]
    for far in ([], [(2**62 + 5, True, "far", "", b""), (2**62 + 6, False, "far", "", b"")]):
        traces = []
        for builder in (new(), new()):
            track = builder.tracks.add("t")
            rows = marks + far
            if not traces:
                for at, (ts, is_begin, name, category, args) in enumerate(rows):
                    if is_begin:
                        builder.begin(track, ts, name, category, args, at)
                    else:
                        builder.end(track, ts, name, args, at)
            else:
                ts, is_begin, names, categories, args = zip(*rows, strict=True)
                builder.bulk.begins_and_ends(
                    np.full(len(rows), track, np.int32),
                    np.array(ts, np.int64),
                    np.array(is_begin, np.uint8),
                    np.array([builder.tables.string(name) for name in names], np.int32),
                    np.array(
                        [builder.tables.string(c) if b else 0 for c, b in zip(categories, is_begin, strict=True)],
                        np.int32,
                    ),
                    np.cumsum([0, *map(len, args[:-1])]) + builder.tables.args_part(b"".join(args)),
                    np.array(list(map(len, args)), np.int32),
                    np.arange(len(rows)),
                )
            traces.append(dump(builder.finish()))
        assert traces[0] == traces[1]


@pytest.mark.parametrize(("weight", "kept"), [(2**64, 2**63 - 1), (-(2**64), -(2**63)), (2**63 - 1, 2**63 - 1), (0, 0)])
def test_a_weight_fits_into_its_column(weight: int, kept: int, out: Builder) -> None:
    out.sample(out.tracks.add("t"), 5, StackId(-1), "s", weight)
    trace = out.finish()
    assert trace.samples.weight.tolist() == [kept]
    assert problems(trace) == ({IMPOSSIBLE_WEIGHT.name: 1} if weight != kept else {})


@pytest.mark.parametrize(("cpu", "kept"), [(0, 0), (4095, 4095), (4096, NO_CPU), (2**31, NO_CPU), (-2, NO_CPU)])
def test_a_cpu_is_one_that_viewers_draw(cpu: int, kept: int, out: Builder) -> None:
    out.sample(out.tracks.add("t"), 5, StackId(-1), "s", cpu=cpu)
    trace = out.finish()
    assert trace.samples.cpu.tolist() == [kept]
    assert problems(trace) == ({IMPOSSIBLE_CPU.name: 1} if cpu != kept else {})


def test_cpus_of_many_samples_are_ones_that_viewers_draw(out: Builder) -> None:
    columns = [np.full(4, out.tracks.add("t"), np.int32), np.arange(4), np.full(4, -1, np.int32), np.zeros(4, np.int32)]
    out.bulk.samples(*columns, np.ones(4, np.int64), np.array([-1, 4095, 4096, -7], np.int32), np.arange(4))
    trace = out.finish()
    assert trace.samples.cpu.tolist() == [NO_CPU, 4095, NO_CPU, NO_CPU]
    assert problems(trace) == {IMPOSSIBLE_CPU.name: 2}


def test_a_sample_whose_weight_is_no_integer_leaves_all_columns_equal(out: Builder) -> None:
    track = out.tracks.add("t")
    with pytest.raises(TypeError):
        out.sample(track, 5, StackId(-1), "s", 1.5)  # type: ignore[arg-type]
    validate(lay_out(out.finish()))


def test_a_table_read_on_the_class_is_a_description() -> None:
    assert hasattr(Trace, "slices")
    assert {name for name, _ in inspect.getmembers(Trace)} >= {"slices", "instants"}
