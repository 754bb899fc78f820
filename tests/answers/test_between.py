"""Windows of time: how they are named, and what each section counts in them, against brute force."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traceconv
from tests.align.test_ranks import MS
from tests.answers.test_layers import Count, Sample, Slice, made, running, threads_with_slices
from tests.answers.test_ranks import collective, write
from tests.answers.test_sections import event, kineto, launched
from tests.answers.test_totals import OWN
from tests.golden import ROOT
from traceconv.align.receipt import Aligned
from traceconv.answers import Questions, answers
from traceconv.answers.device_time import DISPATCH_LIMIT, device
from traceconv.answers.layers import Costs, layers
from traceconv.answers.section import Section, Window
from traceconv.answers.selection import cut, window_of
from traceconv.answers.slice_tables import SliceTable
from traceconv.api import read
from traceconv.errors import UsageError

CUDA = SliceTable(read(ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"))
PARTS = ("host_late_ns", "launch_call_ns", "dispatch_ns", "device_wait_ns", "unknown_ns")
KINDS = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> SliceTable:
    names = ["step 1", "step 2", "a..b", "same", "same", "same[7]", "1us..2us", 'say "x"']
    events = [event(name, 10 * at, 5) for at, name in enumerate(names)]
    return kineto(tmp_path_factory.mktemp("named") / "a.json", events)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("step 2", 10, 15),
        ("step 1..step 2", 0, 15),
        (" 'step 1' .. step 2 ", 0, 15),
        ("a..b", 20, 25),
        ("step 1..'a..b'", 0, 25),
        ("step 1..a..b", 0, 25),
        ("same[1]", 30, 35),
        ("same[2]", 40, 45),
        ("same[7]", 50, 55),
        ("same[1]..same[2]", 30, 45),
        ("1us..2us", 60, 65),
        ("step 1..2", 0, 15),
        ("'say \"x\"'", 70, 75),
        ('"say ""x"""', 70, 75),
        ("1us..3us", 1, 3),
        ("-1us..0.003ms", 0, 3),
        ("12us..step 2", 12, 15),
        ("12us..", 12, 75),
        ("..step 1", 0, 5),
        ("..", 0, 75),
    ],
)
def test_windows_have_names_and_times(named: SliceTable, text: str, start: int, end: int) -> None:
    found = window_of(named, text)
    assert (found.start - named.start, found.end - named.start) == (1000 * start, 1000 * end)
    absolute = window_of(named, f"{found.start}..{found.end}")
    assert (absolute.start, absolute.end) == (found.start, found.end)


def test_a_window_has_the_name_that_a_picture_shows() -> None:
    table = SliceTable(read(ROOT / "onednn-verbose" / "graph-ts" / "input.log"))
    numbers, names = table.drawn_names
    drawn = next(name for name in names if name.startswith("convolution 1x"))
    rows = np.flatnonzero([names[number] == drawn for number in numbers])
    window = window_of(table, f"{drawn}[1]..{drawn}[{len(rows)}]")
    assert (window.start, window.end) == (int(table.trace.slices.ts[rows[0]]), int(table.ends(rows)[-1]))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("step 3", "no slice is named 'step 3', at character 1 of 'step 3'", "near it: 'step 2', 'step 1'"),
        ("step 1..step 3", "no slice is named 'step 3', at character 9", "near it"),
        ("same", "2 slices are named 'same'", "'same[1]' is the first, 'same[2]' the last one"),
        (
            "same[3]",
            "'same' is the name of 2 slices: 'same[1]' is the first, 'same[2]' the last",
            "the name of a slice",
        ),
        ("step 1[2]", "'step 1' is the name of 1 slice: 'step 1[1]' is the first", "the name of a slice"),
        ("same[0]", "'same' is the name of 2 slices: 'same[1]' is the first", "the name of a slice"),
        ("", "no slice is named ''", "the name of a slice"),
        ("5us", "no slice is named '5us'", "or an interval"),
        ("same[1]..5", "nothing lies between", "5 has no unit, so it is ns on the clock of the trace"),
        ("1us..5", "'5' has no unit, but '1us' has one, at character 6", "need a unit: 5us; without a unit, both"),
        ("20..1.5 ms", "'20' has no unit, but '1.5 ms' has one, at character 1", "need a unit: 20ms"),
        ("0..5us", "'0' has no unit, but '5us' has one, at character 1", "need a unit: 0us"),
        ("5..2", "nothing lies between 5 ns and 2 ns", "2 has no unit, so it is ns on the clock of the trace"),
        ("5us..5us", "nothing lies between +5us and +5us from the start", "or an interval"),
        ("1us..5xs", "'5xs' is not a time with a unit", "or an interval"),
        ("..1e99s", "time out of range", "or an interval"),
        ("0..9999999999999999999", "time out of range", "or an interval"),
    ],
)
def test_what_names_no_window_is_a_wrong_call(named: SliceTable, text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        window_of(named, text)
    assert message in error.value.message
    assert hint in str(error.value.hint)


@given(st.text() | st.lists(st.sampled_from(["..", "1", "us", " ", "'", '"', "[1]", "same", "-", "9e9"])).map("".join))
def test_garbage_is_a_wrong_call(text: str) -> None:
    said = "at character"
    try:
        window_of(CUDA, text)
    except UsageError as error:
        said = error.message
    assert "at character" in said


def test_a_copy_on_the_device_is_no_second_step() -> None:
    assert str(window_of(CUDA, "ProfilerStep#2")) == "ProfilerStep#2: from 0 ns to 95 µs after the start"


def asked(trace: Any, between: str, **more: Any) -> dict[str, Section]:
    return {section.name: section for section in answers(trace, Aligned(), Questions(between=between, **more))}


@given(st.integers(0, 99), st.integers(1, 100))
def test_operations_and_steps_are_those_that_start_in_the_window(start: int, length: int) -> None:
    slices, strings = CUDA.trace.slices, CUDA.trace.strings
    expected: dict[str, int] = {}
    for row in CUDA.recorded.tolist():
        if 1000 * start <= slices.ts[row] - CUDA.start < 1000 * (start + length):
            name = strings[slices.name[row]]
            expected[name] = expected.get(name, 0) + int(slices.dur[row])
    sections = asked(CUDA.trace, f"{start}us..{start + length}us")
    found: dict[str, int] = {}
    for name, of, total in (
        ("operations", "name", "total_ns"),
        ("kernels", "name", "total_ns"),
        ("waits", "name", "total_ns"),
        ("steps", "step", "duration_ns"),
    ):
        found |= {row[of]: row[total] for row in sections[name].records() if row[total] is not None}
    assert found == expected
    assert len(sections["steps"].rows) == ("ProfilerStep#2" in expected)
    both = asked(CUDA.trace, f"{start}us..{start + length}us", where="name~cuda")["operations"]
    waits = {"cudaDeviceSynchronize"}
    assert {row["name"] for row in both.records()} == {name for name in expected if "cuda" in name} - waits


def test_a_window_tells_how_many_of_all_steps_are_in_it() -> None:
    trace = read(OWN / "torch_cuda.json.gz")
    section, times, *_ = asked(trace, "ProfilerStep#2..3", sections=["steps"]).values()
    durations = sorted(row["duration_ns"] for row in section.records())
    assert len(durations) == 2
    assert times.rows[0][1:5] == (2, 4, *durations)
    _, whole, *_ = asked(trace, "..", sections=["steps"]).values()
    assert whole.rows[0][1:3] == (4, 4)


@pytest.mark.parametrize("window", ["100s..200s", "-2s..-1s"])
def test_a_window_outside_of_the_recording_is_refused(window: str) -> None:
    with pytest.raises(UsageError, match=r"nothing was recorded from .* after the start: the recording lasts"):
        asked(CUDA.trace, window)


def test_time_beyond_the_recording_is_no_idle_time() -> None:
    span = CUDA.trace.span()
    assert span is not None
    wide, whole = (asked(CUDA.trace, text)["device"].records() for text in ("-5s..100s", ".."))
    assert window_of(CUDA, "-5s..100s").end == span[1] + 1  # an instant is there
    assert [row["idle_ns"] - 1 for row in wide] == [row["idle_ns"] for row in whole]


def test_a_window_beyond_the_end_holds_an_instant_there(tmp_path: Path) -> None:
    mark = {"ph": "i", "s": "t", "name": "mark", "pid": 1, "tid": 1, "ts": 1015}
    table = kineto(tmp_path / "a.json", [event("op", 1000, 15), mark])
    window = window_of(table, "5us..1s")
    assert (window.start - table.start, window.end - table.start) == (5000, 15_001)


def test_memory_that_is_held_when_the_window_starts_counts() -> None:
    trace = read(ROOT / "pytorch-kineto" / "memory-and-stacks" / "input.json")
    table, counters = SliceTable(trace), trace.counters
    span = trace.span()
    assert span is not None
    rng = np.random.default_rng(1)
    some = False
    for start, end in np.sort(rng.integers(span[0], span[1] + 1, (40, 2))).tolist():
        if start == end:
            continue
        rows = {row["counter"]: row for row in asked(trace, f"{start}..{end}", sections=["memory"])["memory"].records()}
        for number in np.unique(counters.track).tolist():
            mine = [
                (ts, v) for ts, t, v in zip(counters.ts, counters.track, counters.integer, strict=True) if t == number
            ]
            before = [value for ts, value in mine if ts <= start][-1:]
            inside = [(ts, value) for ts, value in mine if start <= ts < end]
            held = before + [value for _, value in inside]
            row = rows.get(table.path(number))
            assert (row is None) == (not held)
            if row:
                some = True
                assert (row["peak_bytes"], row["last_bytes"], row["values"]) == (max(held), held[-1], len(inside))
                at = start if before and before[0] == max(held) else min(t for t, v in inside if v == max(held))
                assert row["peak_at_ns"] == at - span[0]
    assert some


@pytest.mark.parametrize(
    ("case", "section", "count"),
    [("onednn-verbose/torch-convnet-process", "primitives", "count"), ("timed-log/python-logging", "logs", "count")],
)
def test_counts_of_two_windows_are_that_of_both(case: str, section: str, count: str) -> None:
    paths = sorted((ROOT / case).glob("input.*"))
    if not paths:
        pytest.fail(f"no input: {case}")
    trace = read(paths[0])
    span = trace.span()
    assert span is not None
    middle = (span[0] + span[1]) // 2
    counts = [
        sum(row[count] for row in asked(trace, between, sections=[section])[section].records())
        for between in (f"..{middle}", f"{middle}..{span[1] + 1}", f"..{span[1] + 1}")
    ]
    assert counts[0] + counts[1] == counts[2] > 0


# -- devices ----------------------------------------------------------------------------------------------------------

WORK = st.tuples(
    st.integers(0, 60),
    st.integers(1, 20),
    st.sampled_from(["gemm", "ncclDevKernel", "Memcpy"]),
    st.none() | st.tuples(st.integers(-3, 40), st.integers(1, 8)),
)


def of_devices(path: Path, works: list[Any]) -> SliceTable:
    """Return work on streams, some of it with a launch call so long before it on a thread of its own; in 10 µs."""
    events: list[dict[str, Any]] = [event("first", -500, 1, tid=99), event("last", 1500, 1, tid=99)]
    for number, (start, length, name, call) in enumerate(works, 1):
        called = 10 * (start - call[0]) if call else 0
        returned = called + 10 * (call[1] if call else 1)
        at = {"cat": "gpu_memcpy" if name == "Memcpy" else "kernel", "tid": number, "pid": 0}
        at["args"] = {"device": 0, "stream": number, "correlation": number}
        one = launched(number, (called, returned), (10 * start, 10 * (start + length)), **at)
        one[1]["name"] = name
        one[0]["tid"] = one[2]["tid"] = 100 + number
        events += one if call else one[1:2]
    return kineto(path, events)


def raster(works: list[Any], start: int, end: int, limit: int) -> tuple[list[int], list[int]]:
    """Return how long each kind runs, and what each idle instant waits for; in steps of 10 µs."""
    kinds, parts = [0] * 4, [0] * 5
    priority = ["gemm", "ncclDevKernel", "Memcpy"]
    for now in range(start, end):
        running = [priority.index(name) for begin, length, name, _ in works if begin <= now < begin + length]
        kinds[min(running, default=3)] += 1
        if running:
            continue
        first = min((work[0] for work in works if work[0] > now), default=None)
        # Of all that starts then, what was launched last.
        calls = [(begin - call[0], begin - call[0] + call[1]) for begin, _, _, call in works if begin == first and call]
        called = max((one[0] for one in calls), default=0)
        ends = {one[1] for one in calls if one[0] == called}
        if len(ends) > 1:
            raise LookupError("two calls start at once: either is right")
        if first is None or not calls or called > first:
            parts[4] += 1
            continue
        before = max((begin + length for begin, length, *_ in works if begin + length <= now), default=-50)
        returned = min(max(*ends, before), first)
        where = 0 if now < called else 1 if now < returned else 2 if first - returned <= limit else 3
        parts[where] += 1
    return [10_000 * value for value in kinds], [10_000 * value for value in parts]


@given(st.lists(WORK, min_size=1, max_size=8), st.integers(-20, 90), st.integers(1, 60), st.integers(1, 60))
def test_the_parts_of_a_window_are_those_of_a_raster(
    tmp_path_factory: pytest.TempPathFactory, works: list[Any], start: int, first: int, second: int
) -> None:
    trace = of_devices(tmp_path_factory.mktemp("device") / "a.json", works).trace
    origin = SliceTable(trace).start + 500_000
    limit = DISPATCH_LIMIT // 10_000
    middle, end = start + first, start + first + second
    found = []
    for low, high in ((start, middle), (middle, end), (start, end)):
        window = Window("", origin + 10_000 * low, origin + 10_000 * high, origin)
        row = device(SliceTable(trace, None, window))[0].records()[0]
        found.append([row[name] or 0 for name in (*KINDS, *PARTS, "launches", "negative")])
        assert sum(found[-1][:4]) == row["window_ns"] == 10_000 * (high - low)
        assert sum(found[-1][4:9]) == row["idle_ns"]
        try:
            kinds, parts = raster(works, low, high, limit)
        except LookupError:
            continue
        assert found[-1] == [*kinds, *parts, *found[-1][9:]]
    assert [a + b for a, b in zip(found[0], found[1], strict=True)] == found[2]


@given(st.lists(WORK, min_size=1, max_size=8))
def test_the_window_of_all_work_says_what_no_window_says(
    tmp_path_factory: pytest.TempPathFactory, works: list[Any]
) -> None:
    trace = of_devices(tmp_path_factory.mktemp("device") / "a.json", works).trace
    origin = SliceTable(trace).start + 500_000
    start, end = min(work[0] for work in works), max(work[0] + work[1] for work in works)
    window = Window("", origin + 10_000 * start, origin + 10_000 * end, origin)
    assert device(SliceTable(trace, None, window))[0].rows[0] == device(SliceTable(trace))[0].rows[0]


@settings(max_examples=60)
@given(
    threads_with_slices(),
    st.lists(st.tuples(st.integers(1, 3), st.integers(-3, 45)), max_size=20),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 10**6)), max_size=6),
    st.tuples(st.integers(-5, 45), st.integers(1, 20), st.integers(1, 20)),
)
def test_layers_are_cut_to_the_window(
    slices: list[Slice],
    samples: list[tuple[int, int]],
    parts: list[tuple[int, int, int]],
    edges: tuple[int, int, int],
) -> None:
    counts, at = [], -3
    for gap, length, value in parts:
        counts.append(Count(at + gap, at + gap + length, value))
        at += gap + length
    own_threads = {one.thread for one in slices}
    taken = [Sample(thread, instant) for thread, instant in samples if thread in own_threads]
    trace = made(slices, taken, counts)
    first, middle, last = edges[0], edges[0] + edges[1], sum(edges)

    def between(start: int, end: int) -> dict[str, dict[str, Any]]:
        window = Window("w", start, end, 0)
        (section,) = [layers(Costs(cut(SliceTable(trace), window)))]
        return {row["name"]: row for row in section.records()}

    two, one = [between(first, middle), between(middle, last)], between(first, last)
    # Windows in which nothing was sampled or counted have no rows.
    columns = ["samples", "samples_total", "self_ns", "total_ns"] if all(two) else ["samples", "samples_total"]
    for column in columns:
        for name in {*one, *two[0], *two[1]}:
            parts_of_it, whole = ([rows.get(name, {}).get(column) or 0 for rows in some] for some in (two, [one]))
            assert sum(parts_of_it) == sum(whole)
    within = [sample for sample in taken if first <= sample.at < last]
    for name, row in one.items():
        inside = [[each.name for each in running(slices, sample.thread, sample.at)] for sample in within]
        assert (row["samples"] or 0) == sum((stack or ["(no layer)"])[-1] == name for stack in inside)
    totals = [sum(row.get("page-faults", 0) for row in rows.values()) for rows in (one, *two)]
    shares = [
        Fraction(int(count.value) * max(0, min(count.end, last) - max(count.start, first)), count.end - count.start)
        for count in counts
    ]
    assert totals[0] == sum(totals[1:]) == pytest.approx(float(sum(shares)), abs=1 + len(counts))


def test_slices_that_start_before_the_window_have_no_counts_of_their_own_in_it() -> None:
    trace = read(ROOT / "onnxruntime" / "perf-counters-hw" / "input.json")
    rows, table = trace.slices, SliceTable(trace)
    middle = int(np.sort(rows.ts)[len(rows.ts) // 2]) + 1
    ends = rows.ts + rows.dur
    left = cut(table, Window("w", middle, int(ends.max()), table.start)).trace.slices
    crossing = set(rows.origin[(rows.ts < middle) & (ends > middle)].tolist())
    assert crossing
    assert set(left.origin.tolist()) == crossing | set(rows.origin[rows.ts >= middle].tolist())
    assert set(left.origin[left.args_len == 0].tolist()) >= crossing


def test_collectives_of_a_window_are_whole(tmp_path: Path) -> None:
    events = {
        rank: [collective(seq * 10 * MS + rank * 4 * MS, (9 - 4 * rank) * MS, seq) for seq in (1, 2, 3)]
        for rank in (0, 1)
    }
    paths = write(tmp_path, events)

    def of(between: str) -> dict[str, Section]:
        return {one.name: one for one in traceconv.report(paths, Questions(["ranks"], between=between))}

    # Times are from the first event: the collectives start at 0, 10 and 20 ms on rank 0, 4 ms later on rank 1.
    found = of("2ms..12ms")
    (row,) = found["collectives"].records()
    assert (row["start_ns"], row["seq"], row["ranks"], row["longest_wait_ns"]) == (10 * MS, 2, 2, 4 * MS)
    assert [row["collectives"] for row in found["ranks"].records()] == [1, 1]
    assert found["ranks"].window is not None
    assert found["hosts"].window is None
    assert found["hosts"].notes[-1].startswith("--between does not apply")
    assert len(of("..")["collectives"].rows) == 3
    assert not of("21ms..24ms")["collectives"].rows
