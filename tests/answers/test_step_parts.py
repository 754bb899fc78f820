"""What steps were spent on and what made slow ones slow, against a raster of single ns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from shlex import split
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import traceconv
from tests.answers.test_sections import Events, event, kineto
from tests.golden import ROOT
from tests.make_xplane import START, Plane
from traceconv.answers import device_time
from traceconv.answers.device_time import NOTHING_RAN, device
from traceconv.answers.operations import operations, waits
from traceconv.answers.section import Window
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.step_parts import step_kernels, step_parts
from traceconv.answers.steps import (
    IN_PARALLEL,
    LEAST_STEPS,
    NOT_RECORDED,
    OTHERS,
    SLOW,
    is_step,
    no_steps,
    step_differences,
    steps,
)
from traceconv.api import convert, read
from traceconv.comparison.run_values import run_values

BEGIN = 10_000  # ns; a time of 0 would be one that was never set
LIMIT = 6  # of dispatch, ns


@pytest.fixture(autouse=True, scope="module")
def _short_dispatch() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_time, "DISPATCH_LIMIT", LIMIT)
        yield


KINDS = (("kernel", "gemm"), ("kernel", "ncclDevKernel_AllReduce"), ("gpu_memcpy", "Memcpy DtoD"))
CAUSES = ("host_late_ns", "launch_call_ns", "dispatch_ns", "device_wait_ns", "unknown_ns")
PARTS = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
WAIT = {"cat": "cuda_runtime"}

#: The start and length of a kernel, its kind, and the start and length of its launch call, from its own start back.
KERNEL = st.tuples(
    st.integers(0, 60),
    st.integers(1, 15),
    st.integers(0, 2),
    st.none() | st.tuples(st.integers(-3, 20), st.integers(0, 9)),
)
STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 25)), min_size=1, max_size=4)


def at_ns(name: str, start: int, length: int, **more: Any) -> dict[str, Any]:
    return event(name, (BEGIN + start) / 1000, length / 1000, **more)


def steps_in_row(gaps_and_lengths: list[tuple[int, int]]) -> tuple[Events, list[tuple[int, int]]]:
    """Steps of one thread with gaps before them, and their times."""
    at, spans, events = 0, [], []
    for number, (gap, length) in enumerate(gaps_and_lengths):
        spans.append((at + gap, at + gap + length))
        at += gap + length
        events.append(at_ns(f"ProfilerStep#{number}", spans[-1][0], length, cat="user_annotation"))
    return events, spans


@settings(max_examples=60)
@given(STEPS, st.lists(KERNEL, min_size=1, max_size=7))
def test_parts_of_steps_are_those_of_a_raster(
    tmp_path_factory: pytest.TempPathFactory, chosen: list[tuple[int, int]], work: list[Any]
) -> None:
    events, spans = steps_in_row(chosen)
    for number, (start, length, kind, call) in enumerate(work):  # each on a stream of its own: nothing is trimmed
        category, name = KINDS[kind]
        args = {"device": 0, "stream": number, "correlation": number + 1}
        events.append(at_ns(name, start, length, cat=category, pid=0, tid=number, args=args))
        if call is not None:
            args = {"correlation": number + 1}
            begin, took = start - call[0], call[1]
            events.append(at_ns("cudaLaunchKernel", begin, took, cat="cuda_runtime", tid=100 + number, args=args))
    table = kineto(tmp_path_factory.mktemp("steps") / "a.json", events)
    rows = step_parts(table).records()
    assert [row["span_ns"] for row in rows] == [end - start for start, end in spans]
    first = min(int(one["ts"] * 1000) - BEGIN for one in events)
    for row, (start, end) in zip(rows, spans, strict=True):
        found: Counter[str] = Counter()
        for at in range(start, end):
            running = {kind for begin, length, kind, _ in work if begin <= at < begin + length}
            found[PARTS[min(running) if running else 3]] += 1
            if not running:
                found[cause(at, first, work)] += 1
        assert {key: row[key] for key in (*PARTS, *CAUSES)} == {key: found[key] for key in (*PARTS, *CAUSES)}
        assert sum(row[key] for key in PARTS) == row["span_ns"]
        assert sum(row[key] for key in CAUSES) == row["idle_ns"]
        assert row["start_ns"] == start - first
        idle = "".join(" x"[any(b <= at < b + length for b, length, _, _ in work)] for at in range(start, end))
        longest = max(len(gap) for gap in idle.split("x"))
        assert row["longest_gap_ns"] == longest
        assert row["longest_gap_at_ns"] == (idle.index(" " * longest) if longest else None)
    parts = {row["start_ns"]: row for row in rows}
    of_steps: dict[int, list[dict[str, Any]]] = {}
    for one in step_kernels(table).records():
        of_steps.setdefault(one["start_ns"], []).append(one)
    assert of_steps.keys() == {one["start_ns"] for one in step_differences(table).records()}
    for begin, ran in of_steps.items():
        kinds = ("computation", "communication", "copy", "idle")
        took = [sum(one["time_ns"] for one in ran if one["kind"] == kind) for kind in kinds]
        assert took == [parts[begin][key] for key in PARTS]
        usual = next(row for row in rows if row["name"] == ran[0]["usual_step"])
        assert sum(one["difference_ns"] for one in ran) == parts[begin]["span_ns"] - usual["span_ns"]


def cause(at: int, first: int, work: list[Any]) -> str:
    """The cause of idle time at an instant."""
    begin = max([end for start, length, _, _ in work if (end := start + length) <= at], default=min(first, at))
    later = [start for start, _, _, _ in work if start > at]
    if not later:
        return "unknown_ns"
    end = min(later)
    calls = [(start - call[0], call[1]) for start, _, _, call in work if start == end and call is not None]
    if not calls or max(calls)[0] > end:
        return "unknown_ns"
    # Of calls that start together the last one in the file counts.
    since = max(since for since, _ in calls)
    took = [length for begun, length in calls if begun == since][-1]
    called = max(min(max(since + took, begin), end), min(max(since, begin), end))
    if at < since:
        return "host_late_ns"
    if at < called:
        return "launch_call_ns"
    return "dispatch_ns" if end - called <= LIMIT else "device_wait_ns"


WAITING = "cudaDeviceSynchronize"
#: What another thread runs: the name, the length before, and the length.
OTHER = st.tuples(st.sampled_from(["gloo:all_reduce", "gloo:barrier", "c"]), st.integers(0, 20), st.integers(0, 30))
#: The name, the length before, the length, and what runs inside.
SLICES = st.recursive(
    st.just([]),
    lambda inner: st.lists(
        st.tuples(st.sampled_from(["a", "b", "c10d::send", WAITING]), st.integers(0, 5), st.integers(0, 9), inner),
        max_size=3,
    ),
    max_leaves=6,
)


def drawn(tree: list[Any], at: int, end: int, events: Events, owner: list[str]) -> None:
    """Add the slices of a tree from a time on, as far as they fit, and note which runs at each ns."""
    for name, gap, length, inner in tree:
        at += gap
        stop = min(at + length, end)
        if stop <= at:
            return
        events.append(at_ns(name, at, stop - at, cat="cuda_runtime" if name.startswith("cuda") else "cpu_op"))
        owner[at:stop] = [name] * (stop - at)
        drawn(inner, at, stop, events, owner)
        at = stop


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 30), SLICES), min_size=LEAST_STEPS, max_size=5),
    st.lists(OTHER, max_size=5),
)
def test_steps_without_a_device_are_those_of_a_raster(
    tmp_path_factory: pytest.TempPathFactory,
    chosen: list[tuple[int, int, list[Any]]],
    others: list[tuple[str, int, int]],
) -> None:
    """Another thread communicates beside them, which counts where their own runs no operation."""
    events, spans = steps_in_row([(gap, length) for gap, length, _ in chosen])
    owner, other = [""] * (spans[-1][1] + 300), [""] * (spans[-1][1] + 300)
    for (start, end), (_, _, tree) in zip(spans, chosen, strict=True):
        drawn([("a", 0, 1, []), *tree] if start == spans[0][0] else tree, start, end, events, owner)
    communicates = [False] * len(owner)
    at = 0
    for name, gap, length in others:
        events.append(at_ns(name, at + gap, length, tid=2, cat="user_annotation"))
        other[at + gap : at + gap + length] = [name] * length
        at += gap + length
    for one in events:
        if one["name"].startswith(("c10d", "gloo")):
            first = round(one["ts"] * 1000) - BEGIN
            communicates[first : first + round(one["dur"] * 1000)] = [True] * round(one["dur"] * 1000)
    table = kineto(tmp_path_factory.mktemp("steps") / "a.json", events)
    times = []
    for row, (start, end) in zip(step_parts(table).records(), spans, strict=True):
        ran, parts = Counter[str](), Counter[str]()
        for at in range(start, end):
            name = owner[at]
            is_operation = name in ("a", "b")
            part = "host" if is_operation else "exposed_comm" if communicates[at] else "wait" if name else "untraced"
            parts[f"{part}_ns"] += 1
            ran[name or (other[at] if other[at].startswith("gloo") else "")] += 1
        times.append(ran)
        keys = ("host_ns", "exposed_comm_ns", "wait_ns", "untraced_ns")
        assert {key: row[key] for key in keys} == {key: parts[key] for key in keys}
        assert row["compute_ns"] is row["idle_ns"] is None
    lengths = [end - start for start, end in spans]
    middle = sorted(range(len(spans)), key=lambda number: (lengths[number], number))[(len(spans) - 1) // 2]
    differences = step_differences(table).records()
    slow = {f"ProfilerStep#{at}" for at, length in enumerate(lengths) if length >= SLOW * lengths[middle]}
    assert {row["step"] for row in differences} == slow - {f"ProfilerStep#{middle}"}
    for step in {row["step"] for row in differences}:
        rows = [row for row in differences if row["step"] == step]
        at = int(step.removeprefix("ProfilerStep#"))
        assert {row["usual_step"] for row in rows} == {f"ProfilerStep#{middle}"}
        assert {row["name"].replace(NOT_RECORDED, ""): row["time_ns"] for row in rows if row["time_ns"]} == {
            name: time for name, time in times[at].items() if time
        }
        assert all(row["difference_ns"] == row["time_ns"] - row["usual_ns"] for row in rows)
        assert sum(row["difference_ns"] for row in rows) == lengths[at] - lengths[middle]
    assert not any(row["name"].startswith(("cudaDevice", "Profiler")) for row in operations(table).records())
    assert {row["name"] for row in waits(table).records()} <= {"cudaDeviceSynchronize"}


@settings(max_examples=40)
@given(STEPS, SLICES, SLICES)
def test_shares_of_steps_are_those_of_a_raster(
    tmp_path_factory: pytest.TempPathFactory, chosen: list[tuple[int, int]], first: list[Any], second: list[Any]
) -> None:
    """Two threads run the same names, also beside the steps; an instant at which both run one counts once."""
    steps, spans = steps_in_row(chosen)
    end = spans[-1][1]
    threads: list[Events] = [[], []]
    for events, tree in zip(threads, (first, second), strict=True):
        drawn([("a", 0, 1, []), *tree], 0, end, events, [""] * end)
    events = [one | {"tid": 2 + number} for number, of_thread in enumerate(threads) for one in of_thread]
    table = kineto(tmp_path_factory.mktemp("steps") / "a.json", [*steps, *events])
    in_steps = "".join("-x"[any(begin <= at < stop for begin, stop in spans)] for at in range(end))

    def running(of_thread: Events, at: int) -> str:
        """What a thread runs innermost, if this lies inside of steps."""
        times = [(round(one["ts"] * 1000) - BEGIN, round(one["dur"] * 1000), one["name"]) for one in of_thread]
        inner = [(begin, length, name) for begin, length, name in times if begin <= at < begin + length]
        return inner[-1][2] if inner and "-" not in in_steps[inner[-1][0] : sum(inner[-1][:2])] else ""

    ran = Counter(name for at in range(end) for name in {running(of_thread, at) for of_thread in threads})
    rows = operations(table).records()
    assert rows
    for row in rows:
        assert row["step_share"] == ran[row["name"]] / in_steps.count("x")


def test_a_track_without_slices_in_steps_is_parted_by_its_process(tmp_path: Any) -> None:
    """Beside a track whose steps hold slices, in one table."""
    events = [event(f"ProfilerStep#{at}", 100 * at + 1, 50, cat="user_annotation", tid=2) for at in range(3)]
    events += [event("a", 100 * at + 11, 10, tid=2) for at in range(3)]
    events += [event(f"ProfilerStep#{at}", 100 * at + 1, 50, cat="user_annotation", pid=9, tid=3) for at in range(3)]
    events += [event("b", 100 * at + 11, 20, pid=9, tid=4) for at in range(3)]
    events += [event("cudaDeviceSynchronize", 100 * at + 21, 20, pid=9, tid=5, **WAIT) for at in range(3)]
    rows = step_parts(kineto(tmp_path / "a.json", events)).records()
    found = {(row["track"][-1], row["host_ns"], row["wait_ns"], row["untraced_ns"]) for row in rows}
    assert found == {("2", 10_000, 0, 40_000), ("3", 20_000, 10_000, 20_000)}


def test_steps_of_one_name_stay_apart(tmp_path: Any) -> None:
    """As runs of a model in ONNX Runtime."""
    lengths = (10, 20, 10, 30, 10)
    events = [event("run", 100 * at + 1, length) for at, length in enumerate(lengths)]
    table = replace(kineto(tmp_path / "a.json", events), step_name="run")
    assert [(row["start_ns"], row["span_ns"]) for row in step_parts(table).records()] == [
        (100_000 * at, 1000 * length) for at, length in enumerate(lengths)
    ]
    slow = [(row["start_ns"], row["difference_ns"]) for row in step_differences(table).records()]
    assert slow == [(300_000, 20_000), (100_000, 10_000)]


@pytest.mark.parametrize(("count", "others"), [(11, 0), (14, 4)])
def test_the_names_of_a_slow_step_that_differ_least_have_one_row(count: int, others: int, tmp_path: Any) -> None:
    """The eleventh name would not be shorter as a row of others; nothing recorded is a name, and differs most."""
    events = []
    for step in range(3):
        events.append(event(f"ProfilerStep#{step}", 1000 * step + 1, 900 if step == 2 else 300, cat="user_annotation"))
        for at in range(count - 1):
            start, slower = 1000 * step + 2 + 60 * at * (step == 2) + 20 * at * (step < 2), at if step == 2 else 0
            events.append(event(f"op{at}", start, 15 - slower if at % 2 else 15 + slower))
    rows = step_differences(kineto(tmp_path / "a.json", events)).records()
    changes = {f"op{at}": 1000 * (-at if at % 2 else at) for at in range(count - 1)}
    named = {row["name"]: row["difference_ns"] for row in rows if row["name"] not in (OTHERS, NOT_RECORDED)}
    kept = sorted(changes, key=lambda name: -abs(changes[name]))[: count - 1 - others]
    assert named == {name: changes[name] for name in kept}
    assert sum(row["difference_ns"] for row in rows) == 600_000
    assert sum(row["usual_ns"] for row in rows) == 300_000
    assert [row["name"] for row in rows if row["name"] == OTHERS] == [OTHERS] * (others > 0)
    assert others == 0 or rows[-1]["name"] == OTHERS


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["step 7", "step 8", "step 9"], 3),
        (["Iteration_3", "Iteration_4", "Iteration_5"], 3),
        (["Step[0]", "Step[1]", "Step[2]"], 3),
        (["train.step#0", "train.step#1", "train.step#2", "train.step#4"], 4),  # one is missing
        (["conv1", "conv2", "conv3"], 0),
        (["footstep 1", "footstep 2", "footstep 3"], 0),
        (["step 1", "step 3", "step 5", "step 7"], 0),  # with a gap everywhere
        (["step 1", "step 2"], 0),
        (["step 3", "step 2", "step 1"], 0),
    ],
)
def test_names_that_count_steps_are_steps(names: list[str], found: int, tmp_path: Any) -> None:
    path = tmp_path / "a.json"
    table = kineto(path, [event(name, 10 * at + 1, 8) for at, name in enumerate(names)])
    assert int(is_step(table).sum()) == found
    assert len(steps(table)[0].rows) == found
    joined = int(names[-1] == "step 7")
    assert len(operations(table).rows) == (1 if joined else len(names) - found)
    convert(path, tmp_path / "a.pftrace")
    assert int(is_step(SliceTable(read(tmp_path / "a.pftrace"))).sum()) == found
    beside = [event(name, 10 * at + 1, 8) for at, name in enumerate(names)]
    beside.append(event("ProfilerStep#1", 500, 8, cat="user_annotation"))
    assert int(is_step(kineto(path, beside)).sum()) == 1, "what the recorder marks comes first"


@pytest.mark.parametrize(
    ("count", "length", "said"),
    [
        (3, 10, "; Optimizer.step repeats 3 times, in 60.0 % of the time from its first to its last"),
        (2, 10, ""),
        (3, 1, ""),
    ],
)
def test_a_range_that_repeats_is_said_where_nothing_marks_steps(
    count: int, length: float, said: str, tmp_path: Any
) -> None:
    """It is a part of what repeats: nothing tells where a step begins. What takes 3 µs of 41 is none."""
    events = [event("Optimizer.step", 100 + 20 * at, length, cat="user_annotation") for at in range(count)]
    events += [event("aten::mm", 10 * at, 5) for at in range(5)]
    named = "'Optimizer\\.step'" if said else "REGEX"
    assert no_steps(kineto(tmp_path / "a.json", events)) == (
        f"no input marks steps{said}; if slices of the input are steps, name them: --step-name {named}"
    )


@pytest.mark.parametrize(
    ("names", "category", "said", "pattern"),
    [
        (
            ["iter 1/3", "iter 2/3", "iter 3/3"],
            "user_annotation",
            "iter N/N repeats 3 times, in 100.0 %",
            r"iter \d+/\d+",
        ),
        (
            ["step 3 loss=0.1", "step 4 loss=0.2", "step 5 loss=0.0"],
            "cpu_op",
            "step N loss=N.N",
            r"step \d+ loss=\d+\.\d+",
        ),
        (["iteration_0", "iteration_10", "iteration_20"], "user_annotation", "iteration_N", r"iteration_\d+"),
        (["training_step"] * 3, "cpu_op", "training_step repeats 3 times", "training_step"),
        (
            ["epoch 0", "epoch 0", "epoch 1", "epoch 1", "epoch 0"],
            "user_annotation",
            "epoch 0 repeats 3 times",
            "epoch 0",
        ),
        (["aten::batch_norm"] * 3, "cpu_op", "", ""),
    ],
)
def test_ranges_that_may_be_steps_are_said_with_a_pattern_that_finds_them(
    names: list[str], category: str, said: str, pattern: str, tmp_path: Any
) -> None:
    table = kineto(tmp_path / "a.json", [event(name, 10 * at, 10, cat=category) for at, name in enumerate(names)])
    note = no_steps(table)
    assert not is_step(table).any()
    assert ("repeats" in note) is bool(said)
    assert said in note
    if pattern:
        stated = note.split("--step-name ")[1]
        assert split(stated) == [pattern]
        rows = steps(replace(table, step_name=pattern))[0].rows
        assert len(rows) == int(note.split("repeats ")[1].split()[0])


def test_steps_are_of_the_outermost_of_numbered_names(tmp_path: Any) -> None:
    outer = [event(f"step {at}", 1 + 100 * at, 90) for at in range(3)]
    inner = [event(f"batch {at}", 2 + 25 * at, 20) for at in range(12)]
    times = steps(kineto(tmp_path / "a.json", inner + outer))[1].records()
    assert [(row["count"], row["p50_ns"]) for row in times] == [(3, 90_000)]
    apart = [event(f"valid batch {at}", 400 + 25 * at, 20) for at in range(4)]
    assert int(is_step(kineto(tmp_path / "a.json", inner + outer + apart)).sum()) == 7


def test_marks_of_steps_are_no_work_if_other_steps_are_named(tmp_path: Any) -> None:
    events, _ = steps_in_row([(0, 20), (2, 20)])
    events += [at_ns("forward", 1 + 22 * at, 18) for at in range(2)] + [at_ns("aten::mm", 3, 4)]
    table = replace(kineto(tmp_path / "a.json", events), step_name="forward")
    assert [row["name"] for row in operations(table, ("name", "range")).records()] == ["aten::mm"]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["round 0", "round 1", "round 5"], {"round N": 3}),
        (["round 0", "round 1"], {"round 0": 1, "round 1": 1}),
        (["layer 0", "layer 1", "layer 0", "layer 1"], {"layer 0": 2, "layer 1": 2}),  # of each forward pass
    ],
)
def test_ranges_whose_names_count_up_have_one_row(names: list[str], shown: dict[str, int], tmp_path: Any) -> None:
    events = [event(name, 10 * at + 1, 8, cat="user_annotation") for at, name in enumerate(names)]
    events += [event("aten::mm", 10 * at + 2, 4) for at in range(len(names))]
    table = kineto(tmp_path / "a.json", events)
    rows = operations(table, ("name", "range")).records()
    assert {row["range"]: row["count"] for row in rows if row["name"] == "aten::mm"} == shown
    assert {row["name"] for row in rows} == {"aten::mm", *shown}
    assert ("; round N repeats 3 times, in 85.7 % of " in no_steps(table)) is (len(shown) == 1)


def test_numbered_names_inside_of_one_another_are_no_steps(tmp_path: Any) -> None:
    events = [event(f"step {at}", 1 + at, 100 - 2 * at) for at in range(5)]
    assert not is_step(kineto(tmp_path / "a.json", events)).any()


@pytest.mark.parametrize("case", ["pytorch-kineto/cuda-graph", "pytorch-kineto/cuda-stacks-memory"])
def test_parts_of_recorded_steps_add_up(case: str) -> None:
    table = SliceTable(read(ROOT / case / "input.json"))
    rows = step_parts(table).records()
    assert rows
    for row in rows:
        assert sum(row[key] for key in PARTS) == row["span_ns"]
        assert sum(row[key] for key in CAUSES) == row["idle_ns"]


def test_the_median_step_is_that_of_all_steps_in_a_window_too(tmp_path: Any) -> None:
    lengths = [100, 110, 120, 500, 130]
    events, spans = steps_in_row([(0, length) for length in lengths])
    table = kineto(tmp_path / "a.json", [*events, at_ns("aten::mm", 0, 50)])
    whole = step_differences(table)
    first, last = spans[2][0] + BEGIN, spans[4][1] + BEGIN
    cut = step_differences(replace(table, window=Window("", first, last, table.start)))
    assert whole.rows == cut.rows
    assert {row["usual_step"] for row in whole.records()} == {"ProfilerStep#2"}


@settings(max_examples=40)
@given(
    st.lists(st.integers(20, 60), min_size=3, max_size=5),
    st.lists(
        st.tuples(st.integers(0, 250), st.integers(1, 30), st.sampled_from("abc"), st.integers(2, 3)), max_size=12
    ),
)
def test_differences_of_steps_whose_thread_only_holds_them(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], work: list[tuple[int, int, str, int]]
) -> None:
    """What ran on other threads is summed by name where it begins; what ran at once is taken off, ns by ns."""
    events, spans = steps_in_row([(0, length) for length in lengths])
    ran: list[tuple[int, int, str]] = []
    until = {2: 0, 3: 0}
    for gap, length, name, thread in work:
        start = max(until[thread], gap)
        until[thread] = start + length
        ran.append((start, start + length, name))
        events.append(at_ns(f"aten::{name}", start, length, tid=thread))

    def spent(begin: int, end: int) -> Counter[str]:
        found: Counter[str] = Counter()
        for start, stop, name in ran:
            if begin <= start < end:
                found[f"aten::{name}"] += stop - start
        idle = sum(not any(start <= at < stop for start, stop, _ in ran) for at in range(begin, end))
        found[NOT_RECORDED] = idle
        found[IN_PARALLEL] = end - begin - found.total()
        return found

    usual = sorted(spans, key=lambda span: span[1] - span[0])[(len(spans) - 1) // 2]
    rows = step_differences(kineto(tmp_path_factory.mktemp("d") / "a.json", events)).records()
    for begin, end in spans:
        of_step = [row for row in rows if row["start_ns"] == begin]
        if not of_step:
            continue
        expected = spent(begin, end)
        expected.subtract(spent(*usual))
        assert sum(row["difference_ns"] for row in of_step) == (end - begin) - (usual[1] - usual[0])
        assert {row["name"]: row["difference_ns"] for row in of_step if row["difference_ns"]} == {
            name: amount for name, amount in expected.items() if amount
        }


def test_the_host_is_late_in_the_steps_of_its_own_input_only(tmp_path: Any) -> None:
    def launched(number: int, call: int, start: int, end: int) -> Events:
        same = {"correlation": number}
        of_device = {"device": 0, "stream": 7} | same
        return [
            at_ns("cudaLaunchKernel", call, 10, cat="cuda_runtime", args=same),
            at_ns("gemm", start, end - start, cat="kernel", pid=0, tid=7, args=of_device),
        ]

    steps = [at_ns("ProfilerStep#1", 1000, 500, cat="user_annotation")]
    steps += [at_ns("ProfilerStep#2", 3000, 500, cat="user_annotation")]
    with_device = [*steps, *launched(1, 900, 950, 1100), *launched(2, 1300, 1350, 2000), *launched(3, 3200, 3250, 3500)]
    on_host = [at_ns("ProfilerStep#1", 1900, 1500, cat="user_annotation", pid=5), at_ns("conv", 1950, 400, pid=5)]
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, events in zip(paths, (with_device, on_host), strict=True):
        about = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 0, "host_name": "a"}
        path.write_text(json.dumps(about | {"traceEvents": events}))
    same_machine = traceconv.Constraints(same_machine=True)
    traceconv.merge(paths, tmp_path / "both.pftrace", constraints=same_machine)
    for inputs in (paths, [tmp_path / "both.pftrace"]):
        sections = traceconv.report(inputs, traceconv.Questions(["device", "steps"]), constraints=same_machine)
        tables = {section.name: section.records() for section in sections}
        of_steps = sum(row["host_late_ns"] or 0 for row in tables["step_parts"])
        assert of_steps == sum(row["steps_ns"] for row in tables["host_late"]) == (1300 - 1100) + (3200 - 3000)
        assert sum(row["time_ns"] for row in tables["host_late"]) == (1300 - 1100) + (3200 - 2000)


@pytest.mark.parametrize("on_host", [False, True])
def test_steps_of_a_device_count_for_it_alone(on_host: bool, tmp_path: Any) -> None:
    """Unless hosts mark steps, which count for all devices."""
    planes = []
    for number in range(2):
        gpu = Plane(f"/device:GPU:{number}")
        begin = 10_000_000 * (1 + number)
        gpu.line("Stream #1(Compute)", START, gpu.event("gemm", begin, 1_000_000, correlation_id=1 + number))
        gpu.line("Steps", START, gpu.event("0", begin - 1_000_000, 4_000_000), id=2)
        planes.append(gpu.bytes())
    host = Plane("/host:CPU")
    marks = {"step_num": 7} if on_host else {}
    host.line("python", START, host.event("train", 5_000_000, 20_000_000, **marks))
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(b"".join([*planes, host.bytes()]))
    table = SliceTable(read(path))
    found = [(row["name"], row["device"], row["compute_ns"], row["idle_ns"]) for row in step_parts(table).records()]
    of_host = [("train 7", f"/device:GPU:{number}", 1000, 19_000) for number in range(2)]
    assert found == (of_host if on_host else [("0", f"/device:GPU:{number}", 1000, 3000) for number in range(2)])
    late = {section.name: section for section in device(table)}.get("host_late")
    assert late is None
    traceconv.convert(path, tmp_path / "a.pftrace")
    again = step_parts(SliceTable(read(tmp_path / "a.pftrace"))).records()
    assert [(row["name"], row["compute_ns"], row["idle_ns"]) for row in again] == [
        (name, compute, idle) for name, _, compute, idle in found
    ]


@pytest.mark.parametrize("begin", [1000, 2000])
def test_what_a_host_ran_before_the_first_work_of_a_step(begin: int, tmp_path: Any) -> None:
    """A step that begins with its first work has no such gap, as the window of the device has none."""
    launch = at_ns("cudaLaunchKernel", 1990, 5, cat="cuda_runtime", args={"correlation": 1})
    args = {"device": 0, "stream": 7, "correlation": 1}
    events = [
        at_ns("ProfilerStep#1", begin, 3000 - begin, cat="user_annotation"),
        at_ns("preprocess", 1100, 600),
        launch,
        at_ns("gemm", 2000, 500, cat="kernel", pid=0, tid=7, args=args),
    ]
    found = {section.name: section.records() for section in device(kineto(tmp_path / "a.json", events))}
    (whole,) = found["device"]
    late = {row["name"]: (row["time_ns"], row["steps_ns"], row["gaps"]) for row in found.get("host_late", [])}
    assert whole["host_late_ns"] == 0
    assert late == ({"preprocess": (0, 600, 0), NOTHING_RAN: (0, 390, 0)} if begin == 1000 else {})


def test_steps_that_overlap_are_those_of_their_thread(tmp_path: Any) -> None:
    """Every second one is on a lane, and what runs in it on the main track, inside of a slice around all steps."""
    events, at = [at_ns("train", 0, 600)], 10
    for number, length in enumerate((100, 100, 100, 150, 100)):
        events.append(at_ns(f"ProfilerStep#{number}", at, length, cat="user_annotation"))
        events.append(at_ns("aten::mm", at + 20, length - 40))
        at += length - 10
    table = kineto(tmp_path / "a.json", events)
    assert [row["interval_ns"] for row in steps(table)[0].records()] == [90, 90, 90, 140, None]
    parts = step_parts(table).records()
    assert [(row["host_ns"], row["untraced_ns"]) for row in parts] == [(60, 40)] * 3 + [(110, 40), (60, 40)]
    slow = step_differences(table).records()
    assert [(row["step"], row["name"], row["difference_ns"]) for row in slow] == [
        ("ProfilerStep#3", "aten::mm", 50),
        ("ProfilerStep#3", NOT_RECORDED, 0),
    ]
    values = run_values(table, ("name",))["operations"]
    assert dict(zip(values.keys, values.sums, strict=True)) == {("aten::mm",): 350, (NOT_RECORDED,): 200}
    assert dict(zip(values.keys, values.calls, strict=True))["aten::mm",] == 5
