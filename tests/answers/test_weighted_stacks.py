"""Stacks with weights, against brute force over every instant and every slice, and against the tables of a report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceconv
from tests.answers.compare_runtimes import RECORDED
from tests.answers.test_layers import Sample, Slice, made, nested, running
from tests.answers.test_sections import event, kineto
from tests.golden import ROOT, Case, by_format, cases
from tests.together import together
from traceconv import Constraints, InputError, Questions, Stacks, Trace, UsageError
from traceconv.answers.device_work import work
from traceconv.answers.layers import NO_LAYER, called
from traceconv.answers.operations import _is_around_operators
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.steps import names, runs_nothing
from traceconv.answers.weighted_stacks import _repeated, stacks_of

KINETO = ROOT / "pytorch-kineto/torch-convnet-process/input.json"
PERF = ROOT / "perf-data/several_events/input.data"
LAYERS = [RECORDED / "profile.json", RECORDED / "perf.data.gz"]
SAME_MACHINE = Constraints(same_machine=True)


def sums(stacks: Stacks) -> Counter[tuple[str, ...]]:
    """The weights by stack, of all tracks."""
    found: Counter[tuple[str, ...]] = Counter()
    for row in stacks:
        found[row.stack] += row.weight
    return found


def self_times(trace: Trace) -> dict[str, int]:
    """The self times of `report`; without slices of unknown duration and those that were left out, as there."""
    (section, *_) = traceconv.report(trace, Questions(sections=["operations"]))
    return {row["name"]: row["self_ns"] for row in section.records() if row["self_ns"] is not None}


def other_names(trace: Trace) -> set[str]:
    """The names of slices that are stacks, but no operations: device work, steps, spans, waits, ranges of the user.

    Ranges that cross other slices are the opposite.
    """
    table = SliceTable(trace)
    others = runs_nothing(table) | table.is_wait | table.once(_is_around_operators) | _repeated(table)
    others[work(table).rows] = True
    return {trace.strings[number] for number in np.unique(trace.slices.name[others]).tolist()}


# -- slices -----------------------------------------------------------------------------------------------------------


def check_self_times(trace: Trace) -> None:
    expected = self_times(trace)
    try:
        stacks = stacks_of(trace, slices=True)
    except InputError:
        assert not expected
        return
    others = other_names(stacks.trace)
    shown = names(SliceTable(trace))
    text_of = {
        trace.strings[name]: shown.texts[number]
        for name, number in zip(trace.slices.name.tolist(), shown.numbers.tolist(), strict=True)
    }
    by_name: Counter[str] = Counter()
    for row in stacks:
        by_name[text_of[row.stack[-1]]] += row.weight
    assert {name: amount for name, amount in by_name.items() if name not in others} == {
        name: amount for name, amount in expected.items() if name not in others
    }
    assert set(by_name) <= set(expected) | others
    assert min(stacks.weight.tolist()) >= 0


@by_format(case for case in cases() if (case.folder / "expect.txt").exists())
def test_self_times_add_up_to_the_table_of_operations(cases: list[Case], tmp_path: Path) -> None:
    with together() as each:
        for case in cases:
            with each(case.name):
                check_self_times(case.merged(case.traces(tmp_path / case.name)))


@given(nested(1), nested(2))
def test_slices_are_below_those_around_them(one: list[Slice], other: list[Slice]) -> None:
    slices = one + other
    if not slices:
        return
    expected: Counter[tuple[str, ...]] = Counter()
    for at in range(max(one.end for one in slices)):
        for thread in (1, 2):
            if inner := running(slices, thread, at):
                expected[tuple(one.name for one in inner)] += 1
    stacks = stacks_of(made(slices, []), slices=True)
    assert sums(stacks) == expected | {stack: 0 for stack in sums(stacks) if stack not in expected}
    assert int(np.sum(stacks.count)) == len(slices)


def test_what_is_left_out_is_counted() -> None:
    stacks = traceconv.stacks([PERF], slices=True)
    left_out = [int(text.split()[0]) for text in stacks.left_out]
    assert left_out
    assert int(np.sum(stacks.count)) + sum(left_out) == len(stacks.trace.slices.ts)
    assert "left out: " in repr(stacks)


# -- samples ----------------------------------------------------------------------------------------------------------

_FRAMES = st.lists(st.sampled_from("xyz"), max_size=3).map(tuple)
_EVENTS = st.sampled_from(["cpu-clock", "cycles"])
_ON_LAYERS = st.lists(
    st.builds(Sample, st.just(1), st.integers(0, 39), _EVENTS, st.integers(0, 9), _FRAMES), min_size=1
)


@given(nested(1), _ON_LAYERS)
def test_samples_are_below_the_layers_of_their_thread(slices: list[Slice], samples: list[Sample]) -> None:
    expected: Counter[tuple[tuple[str, ...], str]] = Counter()
    for one in samples:
        layers = tuple(layer.name for layer in running(slices, 1, one.at))
        if slices:
            layers = layers or (NO_LAYER,)
        expected[(*layers, *one.frames) or ("(no call stack)",), one.event] += one.period
    stacks = stacks_of(made(slices, samples))
    assert {(row.stack, row.event): row.weight for row in stacks} == expected
    assert int(np.sum(stacks.count)) == len(samples)
    assert {*stacks.measures} == {(one.event, "count") for one in samples}


def test_samples_of_a_recording_add_up_to_the_table_of_layers() -> None:
    stacks = traceconv.stacks(LAYERS, constraints=SAME_MACHINE)
    (section,) = traceconv.report(stacks.trace, Questions(sections=["layers"]))
    events = [event for event, _ in stacks.measures]
    weights: Counter[tuple[str, str]] = Counter()
    for _, _, measure, weight, path in stacks.rows():
        layers = [name for name, file in map(stacks.frames.__getitem__, path) if file == "layer"]
        weights[layers[-1] if layers else NO_LAYER, events[measure]] += weight
    rows = {(row["name"], event): row[event] for row in section.records() for event in events}
    assert weights == {key: weight for key, weight in rows.items() if weight}


def test_samples_without_layers_keep_their_stacks_and_files() -> None:
    stacks = traceconv.stacks([PERF])
    trace = stacks.trace
    expected: Counter[tuple[tuple[str, ...], str]] = Counter()
    for stack, name, weight in zip(trace.samples.stack, trace.samples.name, trace.samples.weight, strict=True):
        names: tuple[str, ...] = ()
        while stack >= 0:
            names = (called(trace.frames[stack]), *names)
            stack = trace.frames[stack].parent
        expected[names, trace.strings[name]] += int(weight)
    found: Counter[tuple[tuple[str, ...], str]] = Counter()
    for row in stacks:
        found[row.stack, row.event] += row.weight
    assert found == expected
    assert stacks.measures == [("cpu-clock/freq=499/", "ns"), ("page-faults/period=100/", "count")]
    assert {file for _, file in stacks.frames} >= {frame.category for frame in trace.frames}
    assert (stacks.is_sampled, stacks.left_out) == (True, [])


def test_events_without_periods_count_samples() -> None:
    trace = made([], [Sample(1, at, "cycles", 1, ("f",)) for at in range(3)])
    trace.sources[1].without_periods = ("cycles",)
    (row,) = stacks_of(trace)
    assert (row.event, row.unit, row.weight, row.number) == ("cycles", "samples", 3, 3)
    assert "samples of cycles" in repr(stacks_of(trace))


def test_weights_that_cannot_be_added() -> None:
    stacks = stacks_of(made([], [Sample(1, 0, "cycles", -5), Sample(1, 1, "cycles", 7)]))
    assert [(row.weight, row.stack) for row in stacks] == [(7, ("(no call stack)",))]
    assert stacks.left_out == ["1 sample of negative weight"]
    with pytest.raises(InputError, match=r"no stack is left: 1 sample of negative weight"):
        stacks_of(made([], [Sample(1, 0, "cycles", -5)]))
    with pytest.raises(InputError, match=r"2\^62"):
        stacks_of(made([], [Sample(1, at, "cycles", 2**62) for at in range(2)]))


# -- both -------------------------------------------------------------------------------------------------------------


def test_samples_are_the_default_and_slices_a_choice() -> None:
    trace = made([Slice(1, "a", 0, 9)], [Sample(1, 3)])
    assert stacks_of(trace).is_sampled
    assert not stacks_of(trace, slices=True).is_sampled
    assert not stacks_of(made([Slice(1, "a", 0, 9)], [])).is_sampled


def test_nothing_to_write() -> None:
    with pytest.raises(InputError, match="neither samples nor slices"):
        stacks_of(made([], []))
    with pytest.raises(InputError, match="there are no slices"):
        stacks_of(made([], [Sample(1, 3)]), slices=True)


def test_the_tree_is_in_depth_first_order() -> None:
    stacks = traceconv.stacks([KINETO])
    parent = stacks.parent.tolist()
    above: list[int] = []
    for node, outer in enumerate(parent):
        while above and above[-1] != outer:
            above.pop()
        assert (above[-1] if above else -1) == outer
        above.append(node)
    assert len({(outer, frame) for outer, frame in zip(parent, stacks.frame.tolist(), strict=True)}) == len(parent)
    assert len(stacks) == len([*stacks])


def test_steps_and_ranges_that_cross_frames_count_once(tmp_path: Path) -> None:
    """The step begins inside of a frame and ends behind it; what it lasts is the time of the frames."""
    frames = [event(name, at, dur, cat="python_function") for name, at, dur in (("main", 0, 100), ("step", 10, 30))]
    steps = [event("ProfilerStep#1", 20, 70, cat="user_annotation"), event("forward", 30, 50, cat="user_annotation")]
    stacks = stacks_of(kineto(tmp_path / "a.json", [*frames, *steps, event("aten::mm", 50, 20)]).trace)
    assert sum(sums(stacks).values()) == 100_000
    assert stacks.left_out == ["2 slices (steps and ranges that cross others)"]


def test_lanes_count_as_their_track() -> None:
    crossing = [Slice(1, "a", 0, 10), Slice(1, "b", 5, 20), Slice(1, "c", 15, 30)]
    trace = made(crossing, [])
    assert np.any(trace.tracks.column("lane_of") >= 0)
    assert {row.track for row in stacks_of(trace)} == {"p 1 / thread 1"}


@pytest.mark.parametrize("more", [{"attribute": True}, {"trim": "1us..2us"}, {"to": "perfetto"}])
def test_options_of_traces_do_not_apply(more: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="stacks are no trace"):
        traceconv.stacks([KINETO], traceconv.Output(tmp_path / "a.folded", **more))
