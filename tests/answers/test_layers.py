"""The section on layers, against brute force over every instant, and against moved clocks."""

from __future__ import annotations

import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import traceconv
from tests.answers.compare_runtimes import RECORDED, compared, shares
from tests.answers.compare_runtimes import rows_of as layer_rows
from tests.answers.record_runtimes import GFLOP, PROGRAMS
from tests.golden import ROOT, Case, by_format, cases
from tests.together import together
from traceconv import Constraints
from traceconv.align.receipt import Aligned
from traceconv.answers import Questions, answers
from traceconv.answers.attributed import stacks
from traceconv.answers.layer_sums import Kind
from traceconv.answers.layers import NO_LAYER, Costs, events_of, layers
from traceconv.answers.operations import primitives
from traceconv.answers.render import text
from traceconv.answers.section import Column, Section, Unit, is_certain
from traceconv.answers.slice_tables import SliceTable, interval_counters
from traceconv.cli.question_commands import report_command
from traceconv.errors import UsageError
from traceconv.families.perf.header import PERF_CLOCK
from traceconv.families.perfetto.tracks import restore, stated_inputs
from traceconv.families.vtune.reports import BAD_INDENT
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.layout import lay_out
from traceconv.model.marks import CountMarks, FormatMarks, LaunchMarks
from traceconv.model.source_info import Layer, Placing, SourceInfo, unshared
from traceconv.model.trace import Slices, Trace
from traceconv.model.track_table import TrackKind, Tracks

END = 40
US_2026 = 1_790_000_000 * 10**6  # since 1970
MERGED = [
    case
    for case in cases()
    if (case.folder / "expect.txt").exists()
    and any(
        word in (case.folder / "expect.txt").read_text(encoding="utf-8")
        for word in ("\nsample", "perf stat", "exec", "perf::", "SQ_WAVES", "cycles")
    )
]


class Slice(NamedTuple):
    thread: int
    name: str
    start: int
    end: int


class Sample(NamedTuple):
    thread: int
    at: int
    event: str = "cpu-clock"
    period: int = 1
    frames: tuple[str, ...] = ()


class Count(NamedTuple):
    start: int
    end: int
    value: float


def made(slices: list[Slice], samples: list[Sample], counts: list[Count] = (), bound: int | None = 0) -> Trace:
    """A process with threads 1, 2, ..., of which a profile has slices, and another input samples and counts."""
    info = SourceInfo("profile", "test", layer=Layer.FRAMEWORK)
    out = Builder(info, ClockDomain("test", Zero.UNKNOWN, Run.MONOTONIC))
    process = out.tracks.process("p", pid=1)
    threads = {thread: out.tracks.thread(process, thread) for thread in range(1, 6)}
    for one in slices:
        out.slice(threads[one.thread], one.start, one.end - one.start, one.name)
    for sample in samples:
        stack = -1
        for frame in sample.frames:
            stack = out.frame(frame, "lib", stack)
        out.sample(threads[sample.thread], sample.at, stack, sample.event, sample.period)
    counter = out.tracks.counter("page-faults", process)
    for count in counts:
        out.counter(counter, count.start, count.value)
        out.counter(counter, count.end, 0)
    trace = lay_out(out.finish())
    other = SourceInfo("perf", "test", sampled=tuple({sample.event for sample in samples}))
    other.marks = FormatMarks(interval_counts="page-faults")
    tracks = [replace(track, source=1) if track.name == "page-faults" else track for track in trace.tracks]
    alignment = [{"file": name, "bound_ns": bound, "verdict": "ok"} for name in ("profile", "perf")]
    return trace.with_tables(sources=[info, other], tracks=Tracks(tracks), metadata={"alignment": alignment})


@st.composite
def nested(draw: st.DrawFn, thread: int) -> list[Slice]:
    found = []
    windows = [(0, END)]
    while windows and len(found) < 12:
        start, end = windows.pop()
        while start < end and draw(st.booleans()):
            begin = draw(st.integers(start, end - 1))
            stop = draw(st.integers(begin + 1, end))
            found.append(Slice(thread, draw(st.sampled_from("abc")), begin, stop))
            windows.append((begin, stop))
            start = stop
    return found


@st.composite
def crossing(draw: st.DrawFn, thread: int) -> list[Slice]:
    """Slices that may cross: the trace has them on lanes of the thread."""
    # In steps of 5: the layout cuts what crosses by 1 ns, the resolution of the clock.
    spans = st.tuples(st.integers(0, 7), st.integers(1, 8)).map(lambda one: (5 * min(one), 5 * max(one[1], one[0] + 1)))
    names = draw(st.lists(st.sampled_from("abc"), max_size=8))
    return [Slice(thread, name, *span) for name, span in zip(names, draw(st.sets(spans, min_size=8)), strict=False)]


@st.composite
def threads_with_slices(draw: st.DrawFn) -> list[Slice]:
    kinds = (crossing, nested)
    return [one for thread in range(1, draw(st.integers(1, 4))) for one in draw(draw(st.sampled_from(kinds))(thread))]


SAMPLES = st.lists(
    st.builds(
        Sample, st.integers(1, 5), st.integers(-3, END + 3), st.sampled_from(["cpu-clock", "cycles"]), st.integers(0, 9)
    ),
    max_size=30,
)


def running(slices: list[Slice], thread: int, at: int) -> list[Slice]:
    """What runs on a thread, the innermost one last."""
    found = [one for one in slices if one.thread == thread and one.start <= at < one.end]
    return sorted(found, key=lambda one: (one.start, -one.end))


def rows_of(trace: Trace) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in layers(Costs(SliceTable(trace))).records()}


@given(threads_with_slices(), SAMPLES)
def test_samples_against_every_instant(slices: list[Slice], samples: list[Sample]) -> None:
    with_slices = {one.thread for one in slices}
    own: dict[str, Counter[str]] = defaultdict(Counter)
    inside: dict[str, Counter[str]] = defaultdict(Counter)
    counted = "cycles" if any(one.event == "cycles" for one in samples) else "cpu-clock"  # which is no time here
    workers = [one for one in samples if one.thread not in with_slices and with_slices]
    of_workers = [one for one in workers if one.event == counted]
    shared = 0
    several: list[list[str]] = []
    for sample in sorted(samples, key=lambda one: one.at):
        where = [sample.thread] if sample.thread in with_slices else sorted(with_slices)
        found = [stack for thread in where if (stack := running(slices, thread, sample.at))]
        if len(found) > 1:
            shared += sample.event == counted
            several.append([stack[-1].name for stack in found])
            continue
        names = [one.name for one in found[0]] if found else [NO_LAYER]
        for event, amount in ((sample.event, sample.period), ("samples", sample.event == counted)):
            own[names[-1]][event] += amount
            for name in set(names):
                inside[name][event] += amount
    if not samples:
        return
    rows = rows_of(made(slices, samples))
    assert sum(row["samples"] for row in rows.values()) == len([one for one in samples if one.event == counted])
    assert sum(row["worker_samples"] for row in rows.values()) == len(of_workers)
    for event in {sample.event for sample in samples}:
        assert sum(row[event] for row in rows.values()) == sum(one.period for one in samples if one.event == event)
    more = 0
    for name, row in rows.items():
        assert row["uncertain_samples"] == row["uncertain_samples_total"] == 0
        assert row["samples_total"] >= row["samples"] >= own[name]["samples"]
        more += row["samples"] - own[name]["samples"]
        if not several:
            for event in ("samples", *{sample.event for sample in samples}):
                assert (row[event], row[f"{event}_total"]) == (own[name][event], inside[name][event])
    assert more == shared
    assert {name for name in rows if name != NO_LAYER} == {one.name for one in slices}
    for name in {one.name for one in slices}:
        assert rows[name]["calls"] == sum(one.name == name for one in slices)
        stacks = [running(slices, thread, at) for thread in with_slices for at in range(END)]
        assert rows[name]["self_ns"] == sum(bool(stack) and stack[-1].name == name for stack in stacks)
        assert rows[name]["total_ns"] == sum(name in {one.name for one in stack} for stack in stacks)


def test_a_note_says_how_many_samples_of_workers_are_in_a_layer() -> None:
    notes = layers(Costs(SliceTable(made([Slice(1, "a", 0, 30)], [Sample(5, at) for at in range(40)])))).notes
    assert "30 of 40 samples of worker threads count for the layer that their process was running" in notes
    assert any("(median over layers: 0.0 % of the samples of a layer)" in note for note in notes)


def test_numbers_below_their_uncertainty_are_not_shown() -> None:
    slices = [Slice(1, name, at, end) for name, at, end in (("a", 10, 12), ("b", 20, 22), ("c", 30, 90))]
    table = SliceTable(made(slices, [Sample(1, at) for at in range(100)], bound=8))
    section = layers(Costs(table))
    assert "not shown for 2 of 3 layers: fewer samples than their uncertainty" in section.notes
    lines = {line.split()[0]: line for line in text([section], 0, 0).splitlines()[2:6]}
    assert "60 ± 32" in lines["c"]
    assert [len(lines[name].split()) for name in ("a", "b")] == [6, 6], "name, calls, and two times only"
    assert {row["name"]: row["samples"] for row in section.records()}["a"] == 2, "data has all numbers"
    shown = text([section.detailed()], 0, 0)
    assert "± samples" in shown, "so do details"


@pytest.mark.parametrize(
    ("samples", "around", "certain"),
    [
        (0, 0, True),
        (3, 0, False),
        (4, 0, True),
        (104, 255, False),
        (255, 104, True),
        (200, 171, True),
        (200, 172, False),
    ],
)
def test_samples_are_certain_above_two_standard_errors(samples: int, around: int, certain: bool) -> None:
    assert is_certain(samples, around) is certain
    assert certain is (around + 2 * math.sqrt(samples) <= samples)


def test_samples_of_other_processes_leave_layers_empty(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 40, "tid": 40, "ts": 0, "dur": 9000}
    profile = {"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": [event]}
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    lines = [f"other 50/50 0.00{at}500000: 250 cycles: 401000 f+0x0 (a)\n" for at in range(9)]
    (tmp_path / "script.txt").write_text("".join(lines))
    samples = traceconv.Input(tmp_path / "script.txt", "perf-script", offset_ns=10**18)
    inputs = [tmp_path / "profile.json", samples]
    (section,) = traceconv.report(inputs, Questions(["layers"]), constraints=Constraints(same_machine=True))
    rows = {row["name"]: (row["samples"], row["cycles"], row["cycles_total"]) for row in section.records()}
    assert rows == {"a": (None, None, None), NO_LAYER: (9, 2250, 2250)}, "not 0: nothing is known"
    assert "9 of 9 samples are in no layer: their processes have no layers" in section.notes


def test_notes_on_reading_come_after_those_on_layers() -> None:
    trace = made([Slice(1, "a", 0, 30)], [Sample(1, at) for at in range(40)])
    trace.sources[1].diagnostics.add(BAD_INDENT)
    notes = answers(trace, Aligned(), Questions(["layers"]))[0].notes
    assert [note.startswith("perf: ") for note in notes] == [False] * (len(notes) - 1) + [True]


def test_samples_that_several_threads_share_take_turns() -> None:
    slices = [Slice(1, "a", 0, 30), Slice(2, "b", 10, 40), Slice(3, "c", 20, 25)]
    rows = rows_of(made(slices, [Sample(5, at) for at in range(40)]))
    # a 0..9; a, b in turn 10..19; b, c, a, b, c 20..24; b, a, b, a, b 25..29; b 30..39: the count of turns goes on.
    assert {name: row["samples"] for name, row in rows.items()} == {
        "a": 10 + 5 + 1 + 2,
        "b": 5 + 2 + 3 + 10,
        "c": 2,
        NO_LAYER: 0,
    }


@given(
    threads_with_slices(),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 10**6)), min_size=1, max_size=6),
)
def test_counts_of_intervals_are_divided_by_overlap(slices: list[Slice], parts: list[tuple[int, int, int]]) -> None:
    counts, at = [], -3
    for gap, length, value in parts:
        counts.append(Count(at + gap, at + gap + length, value))
        at += gap + length
    expected: dict[str, Fraction] = defaultdict(Fraction)
    inside: dict[str, Fraction] = defaultdict(Fraction)
    for count in counts:
        for instant in range(count.start, count.end):
            each = Fraction(int(count.value), count.end - count.start)
            stacks = [stack for thread in range(1, 6) if (stack := running(slices, thread, instant))]
            for stack in stacks:
                expected[stack[-1].name] += each / len(stacks)
                for name in {one.name for one in stack}:
                    inside[name] += each / len(stacks)
            expected[NO_LAYER] += 0 if stacks else each
    rows = rows_of(made(slices, [], counts))
    assert sum(row["page-faults"] for row in rows.values()) == sum(count.value for count in counts)
    for name, row in rows.items():
        assert isinstance(row["page-faults"], int)
        assert row["page-faults"] == pytest.approx(float(expected[name]), abs=200)
        if name != NO_LAYER:
            assert row["page-faults_total"] == pytest.approx(float(inside[name]), abs=200)


@given(threads_with_slices(), SAMPLES.filter(bool), st.integers(0, 6), st.integers(-12, 12))
def test_the_truth_lies_within_what_is_uncertain(
    slices: list[Slice], samples: list[Sample], bound: int, by: int
) -> None:
    """Samples were taken at most 2 bounds (of both inputs) from where they are drawn."""
    by = max(-2 * bound, min(by, 2 * bound))
    with_slices = {one.thread for one in slices}
    samples = [one for one in samples if one.thread in with_slices or len(with_slices) < 2]
    if not samples:
        return
    true = rows_of(made(slices, samples))
    rows = rows_of(made(slices, [one._replace(at=one.at + by) for one in samples], bound=bound))
    edges = [edge for one in slices for edge in (one.start, one.end)]
    for name, row in rows.items():
        for column in ("samples", "samples_total"):
            assert abs(row[column] - true[name][column]) <= row[f"uncertain_{column}"]
        near = sum(any(abs(one.at + by - edge) <= 2 * bound for edge in edges) for one in samples)
        assert row["uncertain_samples"] <= near


def test_a_process_whose_cpu_time_and_page_faults_are_known() -> None:
    """Two workers without slices do most of it; `record_layers` recorded it, with the kernel's counts as truth."""
    truth = json.loads((RECORDED / "truth.json").read_text(encoding="utf-8"))
    inputs = [RECORDED / "profile.json", RECORDED / "perf.data.gz"]
    (section,) = traceconv.report(inputs, Questions(["layers"]), constraints=Constraints(same_machine=True))
    rows = {row["name"]: row for row in section.records()}
    assert sum(row["samples"] for row in rows.values()) == 7923, "those of cpu-clock, of 15,613 of both events"
    assert sum(row["cpu-clock"] > 0 for row in rows.values()) == 6
    clock, faults = "cpu-clock", "page-faults/period=10/"
    for at, event in enumerate((clock, faults)):
        known = sum(costs[at] for costs in truth.values())
        found = sum(row[event] for name, row in rows.items() if name != NO_LAYER)
        for name, costs in truth.items():
            assert rows[name][event] / found == pytest.approx(costs[at] / known, abs=0.02)
            if costs[at] > 0.01 * known:
                assert rows[name][event] == pytest.approx(costs[at], rel=0.02)
    assert rows["conv"]["worker_samples"] > 0.9 * rows["conv"]["samples"]
    assert rows["pool"]["worker_samples"] == 0


def check_sums(trace: Trace) -> None:
    section = layers(Costs(SliceTable(trace)))
    sums = {
        column.name: sum(row[at] or 0 for row in section.rows)
        for at, column in enumerate(section.columns)
        if column.unit in (Unit.COUNT, Unit.RATE, Unit.NS)
    }
    samples = trace.samples
    by_event = Counter(trace.strings[name] for name in samples.name.tolist())
    clocks, cycles = ([one for one in by_event if re.search(sign, one)] for sign in (r"^(cpu|task)-clock", "cycles"))
    of_cycles = [sum(by_event[one] for one in cycles)] if cycles else [0, *by_event.values()]
    assert sums["samples"] in ([by_event[clocks[0]]] if clocks else of_cycles)
    assert bool(sums["samples"]) == bool(len(samples.ts))
    for name in np.unique(samples.name).tolist():
        assert sums[trace.strings[name]] == np.sum(samples.weight[samples.name == name])
    known = sum(row["count"] for row in primitives(SliceTable(trace)).records())
    has_layers = any(source.layer is Layer.FRAMEWORK for source in trace.sources)
    assert sums["primitives"] == known or (not has_layers and not sums["primitives"])
    counts: Counter[str] = Counter()
    for number, one in enumerate(trace.tracks):
        pattern = trace.sources[one.source].marks.interval_counts
        if pattern and one.kind is TrackKind.COUNTER and re.fullmatch(pattern, one.name):
            ns = 10**6 if one.unit == "msec" else 1
            counts[one.name] += ns * float(np.sum(trace.counters.value[trace.counters.track == number]))
    counts += counted_in_slices(trace)
    for name, value in counts.items():
        names = {name} | {f"{name} ({source.name})" for source in trace.sources}
        assert sum(sums[column] for column in names & sums.keys()) == pytest.approx(value)


@by_format(MERGED)
def test_sums_are_those_of_the_inputs(cases: list[Case], tmp_path: Path) -> None:
    with together() as each:
        for case in cases:
            with each(case.name):
                check_sums(case.merged(case.traces(tmp_path / case.name)))


#: A thread without a number is a plain track in Perfetto, and such a track of any tool has no layers.
NOT_KEPT = {"chrome-trace/huge-numbers"}


@by_format(MERGED)
def test_a_trace_that_was_written_before_says_the_same(cases: list[Case], tmp_path: Path) -> None:
    """Also how sure samples are, which events have no periods, and which input recorded what."""
    with together() as each:
        for case in cases:
            with each(case.name):
                trace = case.merged(case.traces(tmp_path / case.name))
                path = tmp_path / f"{case.folder.name}.pftrace"
                traceconv.write(trace, path)
                again, *_ = traceconv.report([path], Questions(["layers"]))
                sections = layers(Costs(SliceTable(trace))), again
                # Perfetto has processes and threads of other numbers, so that titles of those with number 0 differ.
                found = [[{**row, "sampled_threads": ""} for row in section.records()] for section in sections]
                assert found[0] == found[1] or case.name in NOT_KEPT


def test_events_without_periods_have_none_in_a_trace_that_was_written_before(tmp_path: Path) -> None:
    text = tmp_path / "perf.script.txt"
    text.write_text(
        "".join(f"python 7/7 1.{at:06}: 9 cycles: 1 f (a)\npython 7/7 1.{at:06}: faults: 1 f (a)\n" for at in (1, 2))
    )
    traceconv.convert(text, tmp_path / "out.pftrace")
    trace = traceconv.read(tmp_path / "out.pftrace")
    assert [one.without_periods for one in trace.sources[0].stated] == [("faults",)]
    kinds = []
    for one in (traceconv.read(text), trace):
        costs = Costs(SliceTable(one))
        kinds.append({name: event.kind for name, event in events_of(costs.sums, costs.sampled, [], ()).items()})
    assert kinds == [{"cycles": Kind.PERIODS, "faults": Kind.SAMPLES}] * 2


LAYERS = ROOT.parent / "tests" / "data" / "layers"


def layers_in(*files: Path, **options: Any) -> tuple[list[dict[str, Any]], list[str]]:
    (section,) = traceconv.report(list(files), Questions(["layers"]), **options)
    return [{**row} for row in section.records()], section.notes


@pytest.mark.parametrize("runtime", ["torch", "mxnet"])
def test_outputs_of_outputs_answer_like_the_inputs(runtime: str, tmp_path: Path) -> None:
    inputs = [LAYERS / runtime / "profile.json.gz", LAYERS / runtime / "perf.data.gz"]
    rows, notes = layers_in(*inputs)
    assert any(row["uncertain_samples"] for row in rows)
    written = [tmp_path / f"{number}.pftrace" for number in range(3)]
    traceconv.merge(inputs, written[0])
    for before, output in pairwise(written):
        traceconv.convert(before, output)
        assert layers_in(output) == (rows, notes)
    columns = {column.name: column.unit for column in traceconv.report([written[-1]], Questions(["layers"]))[0].columns}
    assert columns["cpu-clock"] is Unit.NS


def test_samples_are_uncertain_if_their_input_comes_first(tmp_path: Path) -> None:
    """A thread that both record is a track of the first one."""
    inputs = [LAYERS / "torch" / "perf.data.gz", LAYERS / "torch" / "profile.json.gz"]
    rows, _ = layers_in(*inputs)
    assert all(row["uncertain_samples"] for row in rows if row["samples"] > 10)
    traceconv.merge(inputs, tmp_path / "out.pftrace")
    assert layers_in(tmp_path / "out.pftrace")[0] == rows


def test_an_output_keeps_its_bounds_beside_other_files(tmp_path: Path) -> None:
    """Also if nothing bounds the offset of the other file."""
    inputs = [LAYERS / "torch" / "profile.json.gz", LAYERS / "torch" / "perf.data.gz"]
    rows, _ = layers_in(*inputs)
    traceconv.merge(inputs, tmp_path / "a.pftrace")
    log = tmp_path / "b.json"
    log.write_text('{"traceEvents": [{"ph": "i", "name": "x", "pid": 3, "tid": 3, "ts": 5}]}', encoding="utf-8")
    other = traceconv.Input(log, offset_ns=1_795_652_761 * 10**9)
    traceconv.merge([tmp_path / "a.pftrace", other], tmp_path / "ab.pftrace")
    assert layers_in(tmp_path / "a.pftrace", other)[0] == rows
    assert layers_in(tmp_path / "ab.pftrace")[0] == rows
    traceconv.convert(tmp_path / "ab.pftrace", tmp_path / "abc.pftrace")
    assert layers_in(tmp_path / "abc.pftrace")[0] == rows


def test_placings_between_two_inputs() -> None:
    """What two inputs share does not count: the output that holds both."""
    output, a, b, c = (Placing(bound) for bound in (100, 3, 4, 5))
    assert unshared((a, output), (b, output)) == [a, b]
    assert unshared((a, output), (c,)) == [a, output, c]


def test_bounds_that_a_file_does_not_state_are_not_known(tmp_path: Path) -> None:
    """Chrome JSON states none, and other tools merge files without stating any."""
    inputs = [LAYERS / "torch" / "profile.json.gz", LAYERS / "torch" / "perf.data.gz"]
    traceconv.merge(inputs, tmp_path / "out.json")
    rows, notes = layers_in(tmp_path / "out.json")
    assert sum(row["samples"] for row in rows) == 9919
    assert {row["uncertain_samples"] for row in rows} == {None}
    assert any(note.startswith("± samples: not known") for note in notes)


@pytest.mark.parametrize("alignment", [None, 7, [7], [{"file": "b", "bound_ns": "x"}], [{"file": "c", "bound_ns": 1}]])
def test_a_missing_or_damaged_alignment_bounds_nothing(alignment: Any) -> None:
    (one,) = stated_inputs([{"name": "b", "format": "perf-script"}], None, alignment)
    assert [step.bound_ns for step in one.placings] == [None]


@pytest.mark.parametrize("placed", [7, [], [3], [True], [-1], ["0"]])
def test_damaged_placings_bound_nothing(placed: Any) -> None:
    attribute = {"sources": [{"name": "b", "format": "perf-script", "placed": placed}], "placings": [[5, "", ""]]}
    (one,) = stated_inputs([], attribute, None)
    assert [step.bound_ns for step in one.placings] == [None]


@pytest.mark.parametrize(
    ("attribute", "damaged"),
    [
        (None, 0),
        ([], 1),
        ({"sources": 1}, 0),
        ({"sources": [7], "tracks": {"9": [1], "0": [{}], "x": 3}}, 2),
        ({"tracks": {"9" * 5000: [1], "²": [1]}}, 2),
        ({"tracks": 7}, 1),
        ({"unknown": [-1]}, 0),
    ],
)
def test_a_damaged_attribute_is_as_good_as_none(attribute: Any, damaged: int) -> None:
    out = Builder(SourceInfo("a", "perfetto"), PERF_CLOCK)
    track = out.tracks.process("p", pid=7)
    out.info.stated = stated_inputs([{"name": "b", "format": "perf-script"}], attribute, None)
    restore(attribute, out, {1: track}.get)
    assert [one.name for one in out.info.stated] == ["b"]
    assert (out.tracks[track].stated.input, out.tracks[track].pid) == (0, 7)
    assert sum(entry.count for entry in out.info.diagnostics) == damaged


def test_samples_whose_process_can_be_one_of_several_are_said_to_be(tmp_path: Path) -> None:
    """The profile of MXNet states no pid: with layers of another process, nothing tells which one was sampled."""
    inputs = [LAYERS / "mxnet" / "profile.json.gz", LAYERS / "mxnet" / "perf.data.gz"]
    other = tmp_path / "b.json"
    event = {"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": 5, "dur": 5}
    other.write_text(json.dumps({"traceEvents": [event]}), encoding="utf-8")
    offset = traceconv.Input(other, offset_ns=1_795_652_768 * 10**9)
    for constraints in (Constraints(), Constraints(same_machine=True)):
        _, notes = layers_in(*inputs, offset, constraints=constraints)
        why = "it is not known which of 2 processes with layers they are from, if any: profile.json.gz states no pid"
        assert f"3838 of 3838 samples are in no layer: {why}" in notes


@pytest.mark.parametrize("said", [False, True])
def test_same_machine_is_only_advised_where_it_helps(said: bool, tmp_path: Path) -> None:
    """Two files of one pid and no host: the option joins their processes."""
    (tmp_path / "b.script.txt").write_text("python 7/7 1790000000.000001: 9 cycles: 1 f (a)\n" * 2, encoding="utf-8")
    event = {"ph": "X", "name": "x", "pid": 7, "tid": 7, "ts": US_2026, "dur": 9}
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": [event]}), encoding="utf-8")
    inputs = [
        traceconv.Input(tmp_path / "a.json", offset_ns=0),
        traceconv.Input(tmp_path / "b.script.txt", offset_ns=0),
    ]
    _, notes = layers_in(*inputs, constraints=Constraints(same_machine=said))
    assert any("--same-machine" in note for note in notes) != said
    assert any("samples are in no layer" in note for note in notes)


def counted_in_slices(trace: Trace) -> Counter[str]:
    """What slices and rows of tables hold, without what lies in another one that holds it."""
    found: Counter[str] = Counter()
    for number, source in enumerate(trace.sources):
        marks = source.marks.counts
        if marks is None or marks.inside or marks.layer:
            continue
        for events in (trace.slices, trace.instants):
            ends: dict[tuple[int, str], int] = {}
            for at in range(len(events.ts)):
                track = int(events.track[at])
                if trace.tracks[track].source != number or trace.strings[events.category[at]] not in marks.categories:
                    continue
                args = json.loads(trace.args.get(int(events.args_at[at]), int(events.args_len[at])) or b"{}")
                end = int(events.ts[at]) + (int(trace.slices.dur[at]) if isinstance(events, Slices) else 0)
                for name, value in args.items():
                    if marks.value:  # perf stat: {"value": 1.5, "unit": "msec"}
                        is_time = isinstance(value, dict) and value.get("unit") == "msec"
                        value = value["value"] * (10**6 if is_time else 1) if isinstance(value, dict) else None
                    is_count = re.fullmatch(marks.names, name) and type(value) in (int, float) and value >= 0
                    if is_count and end > ends.get((track, name), -(10**19)):
                        found[name] += value
                        ends[track, name] = end
    return found


def simulated(folder: Path, seed: int) -> tuple[dict[str, Counter[str]], list[traceconv.Input | Path]]:
    """A profile and samples whose clock is off and runs off by less than what is stated.

    Returns the true numbers of samples by layer (own, and with all inside), and the inputs.
    """
    chance = random.Random(seed)
    epoch, tid, length = 1_790_000_000 * 10**9, 100, 50_000_000
    stated = chance.choice([2_000, 20_000, 100_000])
    error, drift = stated * chance.uniform(-0.5, 0.5), stated / length * chance.uniform(-0.5, 0.5)
    slices, at = [], 0
    while at < length:
        inner = [chance.randrange(1_000, 900_000) for _ in range(chance.randrange(4))]
        end = at + sum(inner) + 1_000 * (len(inner) + 1)
        slices.append(Slice(tid, chance.choice(["block", "head"]), at, end))
        start = at + 1_000
        for dur in inner:
            slices.append(Slice(tid, chance.choice("abcd"), start, start + dur))
            start += dur + 1_000
        at = end + chance.randrange(500_000)
    events = [
        {"ph": "X", "cat": "cpu_op", "name": one.name, "pid": tid, "tid": tid, "ts": one.start / 1000}
        | {"dur": (one.end - one.start) / 1000}
        for one in slices
    ]
    profile = {"schemaVersion": 1, "baseTimeNanoseconds": epoch, "traceEvents": events}
    (folder / "kineto.json").write_text(json.dumps(profile), encoding="utf-8")
    own: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    lines = []
    offset = chance.randrange(10**9)
    for true in sorted(chance.randrange(length) for _ in range(2_000)):
        names = [one.name for one in running(slices, tid, true)] or [NO_LAYER]
        own[names[-1]] += 1
        inside.update(set(names))
        shown = epoch + true + round(error + drift * true) - offset
        lines.append(f"python {tid}/{tid} {shown // 10**9}.{shown % 10**9:09}: 250000 cpu-clock: 401000 f+0x0 (a)\n")
    (folder / "perf.script.txt").write_text("".join(lines), encoding="utf-8")
    samples = traceconv.Input(folder / "perf.script.txt", "perf-script", offset_ns=offset, offset_within_ns=stated)
    return {"samples": own, "samples_total": inside}, [folder / "kineto.json", samples]


def test_the_truth_of_simulated_merges(tmp_path: Path) -> None:
    """Offsets, drifts and bounds: it lies within n ± k in at least 95 % of all rows."""
    within, shares = [], []
    for seed in range(12):
        truth, inputs = simulated(tmp_path, seed)
        (section,) = traceconv.report(inputs, Questions(["layers"]), constraints=Constraints(same_machine=True))
        rows = section.records()
        assert sum(row["samples"] for row in rows) == 2_000
        for row in rows:
            for column, true in truth.items():
                within.append(abs(row[column] - true[row["name"]]) <= row[f"uncertain_{column}"])
                shares.append(row[f"uncertain_{column}"] / max(row[column], 1))
    assert len(within) > 150
    assert np.mean(within) >= 0.95
    assert 0 < np.median(shares) < 0.25, "the bound tells something"


@pytest.mark.slow
@pytest.mark.parametrize("runtime", PROGRAMS)
def test_layers_cost_what_the_runtime_itself_measures(runtime: str) -> None:
    """`record_runtimes` recorded layers with known numbers of operations."""
    found = compared(RECORDED / runtime)
    assert [one.calls for one in found.values()] == [100] * len(GFLOP)
    by_time, by_cpu = (shares([one[at] for one in found.values()]) for at in (1, 2))
    count = sum(one.samples for one in found.values())
    for time, cpu in zip(by_time, by_cpu, strict=True):
        assert cpu == pytest.approx(time, abs=min(0.02, 3 * (time * (1 - time) / count) ** 0.5))  # what sampling leaves
    for whole, half in (("conv", "conv_half"), ("product", "product_half")):
        assert GFLOP[whole] == 2 * GFLOP[half]
    # Half the columns of a product are half the work. A convolution also reads its input, which is the same.
    assert found["product"].cpu_ns / found["product_half"].cpu_ns == pytest.approx(2, rel=0.1)
    assert 1.3 < found["conv"].cpu_ns / found["conv_half"].cpu_ns < 2.3


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "workers"), [("onnxruntime", 0.5), ("torch", 0), ("mxnet", 1)])
def test_samples_of_threads_that_the_profile_does_not_name(runtime: str, workers: float) -> None:
    """ONNX Runtime used a second thread, torch none; MXNet names no threads."""
    rows = layer_rows(RECORDED / runtime)
    assert sum(row["cpu-clock"] for row in rows.values()) == 500_250 * sum(row["samples"] for row in rows.values())
    work = {"onnxruntime": ["conv", "product"], "torch": ["aten::mm"], "mxnet": ["Convolution", "dot"]}[runtime]
    for name in work:
        assert rows[name]["worker_samples"] / rows[name]["samples"] == pytest.approx(workers, abs=0.1)
        assert rows[name]["samples"] > 350
    assert rows[NO_LAYER]["samples"] > 300  # such as the start of Python


def test_operators_of_mxnet_are_inside_the_calls_that_wait_for_them(tmp_path: Path) -> None:
    """Also if the call that waits starts after the operator, or before it; the threads of both are not known."""
    events = [
        ("MXNDArrayWaitToRead", "MXNET_C_API", "b", 900, 0, 40),
        ("Convolution", "operator", "B", 1, 10, 30),
        ("MXNDArrayWaitToRead", "MXNET_C_API", "b", 900, 60, 100),
        ("dot", "operator", "B", 1, 50, 90),
    ]
    ends = {"b": "e", "B": "E"}
    records = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "cpu/0"}}]
    for number, (name, category, begin, pid, start, end) in enumerate(events):
        common = {"name": name, "cat": category, "pid": pid << (32 if pid > 1 else 0), "tid": (1 << 60) + pid}
        common |= {"id": number} if begin == "b" else {}
        records += [common | {"ph": begin, "ts": US_2026 + start}, common | {"ph": ends[begin], "ts": US_2026 + end}]
    (tmp_path / "profile.json").write_text(json.dumps({"traceEvents": records}), encoding="utf-8")
    times = [5, 15, 25, 35, 55, 65, 75, 85, 95]  # µs
    lines = [f"python 7/8 {(US_2026 + at) / 10**6:.6f}: 1 cycles: 1 f (a)\n" for at in times]
    (tmp_path / "perf.script.txt").write_text("".join(lines), encoding="utf-8")
    samples = traceconv.Input(tmp_path / "perf.script.txt", "perf-script", offset_ns=0)
    inputs = [tmp_path / "profile.json", samples]
    (section,) = traceconv.report(inputs, Questions(["layers"]), constraints=Constraints(same_machine=True))
    rows = {row["name"]: row for row in section.records()}
    assert {name: row["samples"] for name, row in rows.items() if row["samples"]} == {
        "Convolution": 2,
        "dot": 4,
        "MXNDArrayWaitToRead": 3,
    }
    assert rows["MXNDArrayWaitToRead"]["samples_total"] == 8  # the sample at 55 is before the call that waits


def test_what_nobody_states_is_not_known() -> None:
    rows = rows_of(made([Slice(1, "a", 0, 10)], [Sample(1, 5)], bound=None))
    assert [row["uncertain_samples"] for row in rows.values()] == [None, None]


def test_ratios_need_both_parts() -> None:
    samples = [Sample(1, 5, "cycles", 500), Sample(1, 5, "instructions", 1000), Sample(1, 15, "cycles", 10)]
    samples += [Sample(1, 5, "cache-misses", 3), Sample(1, 5, "cycles:u", 7)]
    row, none = (rows_of(made([Slice(1, "a", 0, 10)], samples))[name] for name in ("a", NO_LAYER))
    assert (row["ipc"], row["ipc_total"], row["cache-misses_per_1000_instructions"]) == (2.0, 2.0, 3.0)
    assert none["ipc"] == 0
    assert none["cache-misses_per_1000_instructions"] is None
    assert "ipc:u" not in row


def test_hardware_events_of_a_synthetic_recording(tmp_path: Path) -> None:
    """Written by hand, since the machines that record here have no such events: periods of a layer and of none."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 40, "tid": 40, "ts": ts, "dur": 1000}
        for name, ts in (("fast", 0), ("slow", 1000))
    ]
    profile = {"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": events}
    (tmp_path / "synthetic.json").write_text(json.dumps(profile), encoding="utf-8")
    periods = {"cycles:u": (4000, 9000, 10), "instructions:u": (10_000, 3000, 0), "cache-misses:u": (5, 90, 1)}
    lines = [
        f"python 40/40 0.00{at}500000: {period} {event}: 401000 f+0x0 (a)\n"
        for event, found in periods.items()
        for at, period in enumerate(found)
    ]
    (tmp_path / "synthetic.script.txt").write_text("".join(sorted(lines)), encoding="utf-8")
    samples = traceconv.Input(tmp_path / "synthetic.script.txt", "perf-script", offset_ns=10**18)
    asked = Constraints(same_machine=True)
    (section,) = traceconv.report([tmp_path / "synthetic.json", samples], Questions(["layers"]), constraints=asked)
    rows = {row["name"]: row for row in section.records()}
    assert {name: tuple(row[event] for event in periods) for name, row in rows.items()} == {
        "fast": (4000, 10_000, 5),
        "slow": (9000, 3000, 90),
        NO_LAYER: (10, 0, 1),
    }
    assert [rows[name]["ipc:u"] for name in ("fast", "slow", NO_LAYER)] == [2.5, 3000 / 9000, 0]
    misses = [rows[name]["cache-misses:u_per_1000_instructions"] for name in ("fast", "slow", NO_LAYER)]
    assert misses == [0.5, 30, None]


def test_functions_that_take_most_of_the_cpu() -> None:
    samples = [Sample(1, at, frames=("main", "f" if at < 6 else "g")) for at in range(8)] + [Sample(1, 20)]
    rows = rows_of(made([Slice(1, "a", 0, 10)], samples))
    assert (rows["a"]["symbols"], rows[NO_LAYER]["symbols"]) == ("75 % f, 25 % g", "")
    seldom = [Sample(1, 1, "page-faults", 10, ("touch",))] * 9 + [Sample(1, 2, "cycles", 600, ("f",))]
    slow = [Sample(1, 12, "cycles", 1000, ("g",)), Sample(1, 13, "cycles", 3000, ("h",))]
    (section,) = [layers(Costs(SliceTable(made([Slice(1, "a", 0, 10), Slice(1, "b", 10, 20)], seldom + slow))))]
    assert [row["name"] for row in section.records()] == ["b", "a", NO_LAYER], "by cycles, not by samples"
    assert [row["symbols"] for row in section.records()] == ["75 % h, 25 % g", "100 % f", ""]
    assert "top symbols and samples: of cycles; other events have only their own numbers" in section.notes


def test_samples_of_different_events_are_not_added() -> None:
    faults = [Sample(1, 1, "page-faults", 10)] * 9 + [Sample(1, 12, "page-faults", 10)] * 2
    kinds = [Sample(1, 2, "cpu_core/cycles/", 600), *[Sample(1, 12, "cpu_atom/cycles/", 500)] * 3]
    slices = [Slice(1, "a", 0, 10), Slice(1, "b", 10, 20)]
    table = SliceTable(made(slices, faults + kinds))
    records = layers(Costs(table)).records()
    assert [(row["name"], row["samples"], row["page-faults"]) for row in records] == [
        ("a", 1, 90),
        ("b", 3, 20),
        (NO_LAYER, 0, 0),
    ]
    (tree,) = stacks(Costs(SliceTable(made(slices, [Sample(1, 2, "page-faults", 1, ("f",)), *kinds]))), "b").records()
    assert tree["samples"] == 3
    assert {row["samples"] for row in layers(Costs(SliceTable(made(slices, faults)))).records()} == {9, 2, 0}


def test_layers_are_sorted_by_counted_cycles(tmp_path: Path) -> None:
    path = ROOT / "onnxruntime" / "perf-counters-hw" / "input.json"
    document = json.loads(path.read_text())
    slowest = max((one for one in document if "cycles" in one.get("args", {})), key=lambda one: one["dur"])
    slowest["dur"] *= 3
    slowest["args"]["cycles"] = "1"
    changed = tmp_path / "input.json"
    changed.write_text(json.dumps(document))
    (section,) = traceconv.report([changed], Questions(["layers"]))
    cycles = [-1 if row["cycles"] is None else row["cycles"] for row in section.records()]
    assert -1 in cycles
    assert cycles == sorted(cycles, reverse=True)
    times = [row["self_ns"] or 0 for row in section.records()]
    assert times != sorted(times, reverse=True)


def test_a_number_of_samples_that_is_too_uncertain_is_no_text() -> None:
    columns = (Column("samples", "samples", Unit.COUNT, within="k"), Column("k", "k", Unit.COUNT, detail=True))
    shown = text([Section("layers", columns, [(104, 255), (255, 104), (7, 7), (None, None), (5, None)])], 0)
    assert [line.strip() for line in shown.splitlines()[2:]] == ["", "255 ± 104", "", "", "5"]


def test_code_without_names_counts_by_its_file() -> None:
    trace = made([Slice(1, "a", 0, 10)], [Sample(1, at, frames=(f"l.so+{at}",)) for at in range(4)])
    frames = [replace(frame, category="/opt/l.so", named=frame.name == "l.so+3") for frame in trace.frames]
    table = SliceTable(trace.with_tables(frames=frames))
    assert layers(Costs(table)).records()[0]["symbols"] == "75 % l.so, 25 % l.so+3"
    assert [(row["tree"], row["samples"]) for row in stacks(Costs(table), "a").records()] == [
        ("l.so", 3),
        ("l.so+3", 1),
    ]


def test_events_that_count_time_are_shown_as_such(tmp_path: Path) -> None:
    profile = tmp_path / "synthetic.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 40, "tid": 40, "ts": 0, "dur": 5000}
    profile.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": [event]}))
    lines = ["python 40/40 0.001000000: 2500000 cpu-clock:ppp: 401000 f+0x0 (a)\n"]
    lines += ["python 40/40 0.002000000: 7 page-faults: 401000 g+0x0 (a)\n"]
    for without in (False, True):
        path = tmp_path / "synthetic.script.txt"
        path.write_text(re.sub(r": (2500000|7) ", ": ", "".join(lines)) if without else "".join(lines))
        inputs = [profile, traceconv.Input(path, "perf-script", offset_ns=10**18)]
        asked = Questions(["layers"], stacks="a")
        section, tree = traceconv.report(inputs, asked, constraints=Constraints(same_machine=True))
        row = section.records()[0]
        assert (row["cpu-clock:ppp"], row["page-faults"]) == ((1, 1) if without else (2_500_000, 7))
        units = {column.name: column.unit for column in section.columns}
        assert units["cpu-clock:ppp"] is (Unit.COUNT if without else Unit.NS)
        assert units["page-faults"] is Unit.COUNT
        assert any("an event has no periods" in note for note in tree.notes) == without
        shown = {row["frame"]: (row["cpu-clock:ppp"], row["share"]) for row in tree.records()}
        assert shown == {"f": (row["cpu-clock:ppp"], 1), "g": (0, 0)}


def test_it_is_said_how_sure_counts_of_intervals_are(tmp_path: Path) -> None:
    profile = tmp_path / "synthetic.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 40, "tid": 40, "ts": 0, "dur": 5000}
    profile.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": [event]}))
    stat = tmp_path / "synthetic.stat.txt"
    head = "# started on Sun Sep  9 01:46:40 2001\n\n#           time             counts unit events\n"
    stat.write_text(head + "     0.002000000               1.50 msec task-clock\n")
    counted = traceconv.Input(stat, "perf-stat", options={"utc_offset": "+00:00"})
    section, *_ = traceconv.report([profile, counted], Questions(["layers"]))
    assert ("task-clock", Unit.NS) in [(column.name, column.unit) for column in section.columns]
    assert sum(row["task-clock"] for row in section.records()) == 1_500_000, "ns in data, as those of samples"
    said = [note for note in section.notes if note.startswith("synthetic.stat.txt: the") or "no thread" in note]
    assert said == [
        "synthetic.stat.txt: the intervals are placed within 1 s: "
        "a layer that is not longer can have the counts of its neighbours",
        "synthetic.stat.txt: no thread is named, so counts of a whole CPU can include other programs",
    ]


def test_counts_of_a_profile_belong_to_its_layers() -> None:
    (path,) = (ROOT / "onnxruntime" / "perf-counters-hw").glob("input.*")
    events = [
        event for event in json.loads(path.read_text(encoding="utf-8")) if "instructions" in event.get("args", {})
    ]
    (section,) = traceconv.report([path], Questions(["layers"]))
    for row in section.records():
        mine = [event["args"] for event in events if event["name"].removesuffix("_kernel_time") == row["name"]]
        for name in ("instructions", "cycles"):
            assert (row[name] or 0) == sum(int(args[name]) for args in mine)
            assert row[f"{name}_total"] == row[name] or not mine
        if mine:
            assert row["ipc"] == row["instructions"] / row["cycles"]


def test_counts_inside_counts_are_counted_once(tmp_path: Path) -> None:
    def node(name: str, ts: int, dur: int, **args: str) -> dict[str, Any]:
        return {"cat": "Node", "pid": 1, "tid": 1, "dur": dur, "ts": ts, "ph": "X", "name": f"{name}_kernel_time"} | {
            "args": {"op_name": name, "provider": "CPUExecutionProvider", **args}
        }

    path = tmp_path / "ort.json"
    run = {"cat": "Session", "pid": 1, "tid": 1, "dur": 100, "ts": 0, "ph": "X", "name": "model_run", "args": {}}
    loop = [node("Loop", 10, 80, cycles="100"), node("If", 20, 40), node("Add", 20, 30, cycles="70")]
    path.write_text(json.dumps([run, *loop]))
    (section,) = traceconv.report([path], Questions(["layers"]))
    found = {row["name"]: (row["cycles"], row["cycles_total"]) for row in section.records()}
    assert found == {
        NO_LAYER: (None, None),  # nothing was counted there
        "model_run": (None, 100),
        "Loop": (30, 100),
        "If": (None, 70),
        "Add": (70, 70),
    }


def launching(**marks: str) -> Trace:
    """A step with an operator that launches kernels, a kernel without a launch, and one that runs for no time."""
    launches = LaunchMarks(calls=("call",), work=("kernel",))
    info = SourceInfo("gpu", "test", layer=Layer.FRAMEWORK)
    info.marks = FormatMarks(launches, "launch", counts=CountMarks(("kernel", "row"), "waves|bytes", **marks))
    out = Builder(info, ClockDomain("test", Zero.UNKNOWN, Run.MONOTONIC))
    thread = out.tracks.thread(out.tracks.process("p", pid=1), 1)
    queue = out.tracks.add("queue")
    out.slice(thread, 0, 100, "step")
    out.slice(thread, 10, 50, "op")
    for at, (name, dur, args) in enumerate(
        [("k", 30, {"waves": 5, "grid": 7}), ("k", 0, {"waves": 1.0}), ("op", 20, {"waves": 8, "bytes": 0.5})]
    ):
        call = out.slice(thread, 20 + 10 * at, 5, "launch call", "call")
        out.flow(call, out.slice(queue, 200 + 100 * at, dur, name, "kernel", args), "launch")
    out.slice(queue, 900, 10, "k", "kernel", {"waves": 100, "bytes": -1})
    out.totals(out.tracks.totals("table"), "k", "row", {"waves": 1000})
    out.totals(out.tracks.totals("table"), "other", "row", {"waves": 10_000, "bytes": 2})
    return lay_out(out.finish())


def test_a_summary_beside_intervals_is_not_counted_again() -> None:
    case = ROOT / "perf-stat/text_intervals_summary/input.txt"
    section, *_ = traceconv.report([case], Questions(["layers"]))
    assert [row["name"] for row in section.records()] == [NO_LAYER]


def test_runs_of_perf_stat_in_one_file_are_added_up(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("2.50,msec,task-clock,2500000,100.00,,\n7,,page-faults,2500000,100.00,,\n" * 2)
    sections = {section.name: section for section in traceconv.report([path], Questions(["overview", "layers"]))}
    overview, section = sections["overview"], sections["layers"]
    row = section.records()[0]
    assert (row["name"], row["calls"], row["task-clock"], row["page-faults"]) == ("summary", 2, 5_000_000, 14)
    assert any("each time is taken as a run of its own" in note for note in overview.notes)


def test_what_is_measured_but_no_count_is_named(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    heading = "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,sig,obj"
    counters = "MemUnitStalled,VALUUtilization,TCC_EA_WRREQ_avr,SQ_WAVES"
    path.write_text(f'{heading},{counters}\n0,"k",2,0,1,31,31,1024,16,0,0x0,0x7f,7.2,9.5,3,64\n')
    (section,) = traceconv.report([path], Questions(["layers"]))
    assert section.records()[0]["SQ_WAVES"] == 64
    note = "counters.csv: averages, shares and the like are not added up, and are only in args: "
    assert note + "MemUnitStalled, TCC_EA_WRREQ_avr, VALUUtilization" in section.notes
    path.write_text(f'{heading},GPUBusy\n0,"k",2,0,1,31,31,1024,16,0,0x0,0x7f,7.2\n')
    (section,) = traceconv.report([path], Questions(["layers"]))
    assert (section.rows, note + "GPUBusy" in section.notes) == ([], True)


def test_counts_of_kernels_are_inside_what_launched_them() -> None:
    rows = rows_of(launching())
    found = {name: (row["waves"], row["waves_total"], row["bytes"], row["bytes_total"]) for name, row in rows.items()}
    assert found == {
        "other": (10_000, 10_000, 2.0, 2.0),
        "k": (1106, 1106, None, None),
        "op": (8, 14, 0.5, 0.5),  # with a kernel of its own name, once
        "step": (None, 14, None, 0.5),
        "launch call": (None, 14, None, 0.5),
        NO_LAYER: (None, None, None, None),
    }
    times = {name: (row["calls"], row["self_ns"], row["total_ns"], row["samples"]) for name, row in rows.items()}
    assert times["k"] == (3, 40, 40, None)
    assert times["op"] == (2, 35 + 20, 50 + 20, None)
    assert times["other"] == (None, None, None, None)


@pytest.mark.parametrize(
    ("golden", "sums"),
    [
        ("rocprof/counters", {"SQ_WAVES": 2 * 16_384, "GRBM_COUNT": 91_234}),
        ("rocprof/counters-without-times", {"SQ_WAVES": 2 * 16_384, "GRBM_COUNT": 91_234}),
        ("rocprof/v1-counters", {"SQ_WAVES": 15_876}),
        ("tvm-profile/counters-and-locale", {"perf::CACHE_MISSES": 3 + 1024, "perf::CYCLES": 90_237}),
        ("nvprof-text/metrics", {"warps_launched": 3138}),
        ("nvprof-text/metrics-csv", {"warps_launched": 1568}),
        ("nvprof/streams-and-ranges", {"event_12": 1900}),
        ("nsight-compute/raw", {"dram__bytes.sum (Mbyte)": 2 * 1024.5 + 12.58}),
        ("perf-stat/json", {"task-clock": 756_961_618, "page-faults": 11_839, "cpu-migrations": 0}),
        ("perf-stat/text", {"task-clock": 664_690_000, "page-faults": 11_840}),
    ],
)
def test_counts_that_slices_and_tables_hold(golden: str, sums: dict[str, float]) -> None:
    (path,) = (ROOT / golden).glob("input.*")
    section, *_ = traceconv.report([path], Questions(["layers"]))
    rows = section.records()
    assert {name: sum(row[name] or 0 for row in rows) for name in sums} == pytest.approx(sums)
    assert all(row[f"{name}_total"] == pytest.approx(row[name]) for row in rows for name in sums)


def test_metrics_of_a_kernel_are_inside_the_ranges_that_launched_it() -> None:
    inputs = [next((ROOT / name).glob("input.*")) for name in ("nsight-systems/session", "nsight-compute/raw")]
    (section,) = traceconv.report(inputs, Questions(["layers"]))
    rows = {row["name"]: row["dram__bytes.sum (Mbyte)_total"] for row in section.records()}
    assert rows["cudaLaunchKernel"] == rows["forward"] == pytest.approx(2 * 1024.5 + 12.58)
    assert rows["step 0"] == pytest.approx(1024.5 + 12.58)  # the other kernel is of another thread


def test_metrics_of_ranges_of_kineto(tmp_path: Path) -> None:
    metrics = {"kineto__cuda_core_flops": 5000.0, "sm__inst_executed.sum": 70, "sm__throughput.avg.pct_of_peak": 60}
    event = {"ph": "X", "cat": "cuda_profiler_range", "name": "gemm", "pid": 0, "tid": "range", "ts": 1, "dur": 2}
    other = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1, "dur": 3, "args": {}}
    events = [event | {"args": metrics}, other, event | {"ts": 9, "args": {"sm__inst_executed.sum": 30}}]
    (tmp_path / "k.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    (section,) = traceconv.report([tmp_path / "k.json"], Questions(["layers"]))
    row = next(row for row in section.records() if row["name"] == "gemm")
    assert (row["calls"], row["kineto__cuda_core_flops"], row["sm__inst_executed.sum"]) == (2, 5000, 100)
    assert "sm__throughput.avg.pct_of_peak" not in row


@pytest.mark.parametrize(
    ("cycles", "instructions", "misses", "others"),
    [
        ("perf::CYCLES", "perf::INSTRUCTIONS", "perf::CACHE_MISSES", "perf::CACHE_REFERENCES"),
        ("PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_L2_TCM", "PAPI_L2_TCA"),
    ],
)
def test_ratios_of_papi(cycles: str, instructions: str, misses: str, others: str) -> None:
    counts = {cycles: 50, instructions: 200, misses: 4, others: 8}
    samples = [Sample(1, 5, name, count) for name, count in counts.items()]
    row = rows_of(made([Slice(1, "a", 0, 10)], samples))["a"]
    assert (row["ipc (PAPI)"], row[f"{misses}_per_1000_instructions"]) == (4, 20)
    assert f"{others}_per_1000_instructions" not in row


def stat_of(folder: Path, *lines: str) -> dict[str, dict[str, Any]]:
    """What `perf stat -I` with these lines adds to a process with two threads that run a and b, and c after them."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 40, "tid": tid, "ts": ts * 1000, "dur": dur * 1000}
        for name, tid, ts, dur in (("a", 40, 0, 100), ("b", 41, 0, 60), ("c", 41, 100, 100))
    ]
    profile = {"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": events}
    (folder / "profile.json").write_text(json.dumps(profile), encoding="utf-8")
    (folder / "stat.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    stat = traceconv.Input(folder / "stat.txt", "perf-stat", offset_ns=10**18)
    section, *_ = traceconv.report([folder / "profile.json", stat], Questions(["layers"]))
    return {row["name"]: row for row in section.records()}


def test_counts_of_a_thread_belong_to_what_it_ran(tmp_path: Path) -> None:
    heading = "#           time             comm-pid                  counts unit events"
    lines = [
        "     0.100000000            python-40                   1000      page-faults",
        "     0.100000000            python-41                    100      page-faults",
        "     0.100000000            python-42                     10      page-faults",
        "     0.100000000            other-43                       1      page-faults",
        "     0.200000000            python-40                   2000      page-faults",
        "     0.200000000            python-41                    200      page-faults",
        "     0.200000000            python-42                     20      page-faults",
    ]
    rows = stat_of(tmp_path, heading, *lines)
    found = {name: row["page-faults"] for name, row in rows.items()}
    # Nothing tells whose thread 42 is: the profile calls its process by a number only.
    assert found == {"a": 1000, "b": 60, "c": 200, NO_LAYER: 40 + 10 + 1 + 2000 + 20}


def test_counts_of_cores_and_of_the_system_belong_to_all_that_ran(tmp_path: Path) -> None:
    core = "#           time core            cpus             counts unit events"
    lines = [
        "     0.100000000 S0-D0-C0           1               1000      page-faults",
        "     0.100000000 S0-D0-C1           1                100      page-faults",
        "     0.200000000 S0-D0-C0           1                 10      page-faults",
        "     0.200000000 S0-D0-C1           1                  1      page-faults",
    ]
    found = {name: row["page-faults"] for name, row in stat_of(tmp_path, core, *lines).items()}
    assert found == {"a": 770, "b": 330, "c": 11, NO_LAYER: 0}  # a: half of the time to 60 ms, then all
    heading = "#           time             counts unit events"
    lines = [
        "     0.100000000               1100      page-faults",
        "     0.200000000                 11      page-faults",
    ]
    assert found == {name: row["page-faults"] for name, row in stat_of(tmp_path, heading, *lines).items()}


def test_the_call_tree_of_a_layer() -> None:
    slices = [Slice(1, "outer", 0, 20), Slice(1, "inner", 5, 10)]
    samples = [
        Sample(1, 1, frames=("main", "f")),
        Sample(1, 6, frames=("main", "f", "g")),
        Sample(1, 7, frames=("main",)),
    ]
    table = SliceTable(
        made(slices, [*samples, Sample(1, 8, frames=("other",)), Sample(1, 9), Sample(1, 30, frames=("x",))])
    )
    found = [(row["tree"], row["samples"], row["self_samples"]) for row in stacks(Costs(table), "outer").records()]
    assert found == [("main", 3, 1), ("  f", 2, 1), ("    g", 1, 1), ("other", 1, 1), ("(no call stack)", 1, 1)]
    inner = [(row["depth"], row["frame"], row["share"]) for row in stacks(Costs(table), "inner").records()]
    assert inner == [(0, "main", 0.5), (1, "f", 0.25), (2, "g", 0.25), (0, "other", 0.25), (0, "(no call stack)", 0.25)]
    assert [row["frame"] for row in stacks(Costs(table), NO_LAYER).records()] == ["x"]
    with pytest.raises(UsageError, match="there is no layer 'none'"):
        stacks(Costs(table), "none")
    (note,) = stacks(Costs(SliceTable(made([Slice(1, "a", 0, 9)], [Sample(1, 2, frames=("f",))]))), "a").notes
    assert note.startswith("1 sample while a ran")


def test_layers_and_their_call_trees_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = made([Slice(1, "outer", 0, 9)], [Sample(1, 2, frames=("f",))])
    tables: list[SliceTable] = []
    module = sys.modules[Costs.__module__]
    original = module.layers_of

    def counted(table: SliceTable, *arguments: Any) -> Any:
        tables.append(table)
        return original(table, *arguments)

    monkeypatch.setattr(module, "layers_of", counted)
    found = answers(trace, Aligned(), Questions(["layers"], between="0ns..5ns", stacks="outer"))
    assert [section.name for section in found if section.rows] == ["layers", "stacks"]
    assert len(tables) == 1


def test_a_layer_without_samples_has_no_call_tree_and_says_so() -> None:
    of_another = made([Slice(1, "a", 0, 2), Slice(1, "b", 4, 9)], [Sample(1, 6, frames=("f",))])
    for trace, note in (
        (of_another, "no sample while a ran"),
        (made([Slice(1, "a", 0, 2)], []), "no input has samples"),
    ):
        section = stacks(Costs(SliceTable(trace)), "a")
        assert (section.rows, section.notes) == ([], [note])
    result = CliRunner().invoke(report_command, [str(RECORDED / "profile.json"), "--stacks", "conv"])
    assert result.stdout.endswith("\nstacks\n  no input has samples\n")


def test_only_layers_can_lack_the_name_that_they_are_grouped_by() -> None:
    section = layers(Costs(SliceTable(made([], [Sample(1, 2, frames=("f",))]))))
    assert section.rows
    assert not [note for note in section.notes if "no slice here has" in note]


def test_the_command_prints_the_call_tree() -> None:
    asked = ["--section", "layers", "--stacks", "conv", "--same-machine", "--format", "json", "--top", "0"]
    files = [RECORDED / "profile.json", RECORDED / "perf.data.gz"]
    result = CliRunner().invoke(report_command, [*map(str, files), *asked])
    document = json.loads(result.stdout)
    (conv,) = [row for row in document["layers"] if row["name"] == "conv"]
    assert sum(row["self_samples"] for row in document["stacks"]) == conv["samples_total"]


def test_an_event_called_like_a_column_keeps_apart(tmp_path: Path) -> None:
    text = (ROOT / "perf-script" / "sampled_steps" / "input.txt").read_text()
    renamed = tmp_path / "perf.txt"
    renamed.write_text(text.replace(" cycles:", " samples:"))
    assert renamed.read_text() != text
    profile = ROOT / "pytorch-kineto" / "sampled-steps" / "input.json"
    rows = []
    for perf in (ROOT / "perf-script" / "sampled_steps" / "input.txt", renamed):
        (section,) = traceconv.report(
            [profile, perf], Questions(["layers"]), constraints=Constraints(same_machine=True)
        )
        rows.append(list(section.records()))
    columns = ("name", "samples", "samples_total")
    assert [[row[key] for key in columns] for row in rows[0]] == [[row[key] for key in columns] for row in rows[1]]
    assert [row["cycles"] for row in rows[0]] == [row["samples (event)"] for row in rows[1]]


def test_sums_beyond_63_bits_do_not_wrap_round() -> None:
    rows = rows_of(made([Slice(1, "a", 0, 9)], [Sample(1, at, period=1 << 61) for at in range(8)]))
    assert rows["a"]["cpu-clock"] == rows["a"]["cpu-clock_total"] == 1 << 64


def test_a_row_without_times_is_a_call_if_the_table_has_one_for_each() -> None:
    (section,) = traceconv.report([ROOT / "rocprof" / "counters-without-times" / "input.csv"], Questions(["layers"]))
    row = next(row for row in section.records() if row["name"].startswith("subtract_kernel"))
    assert (row["calls"], row["self_ns"], row["SQ_WAVES"]) == (1, None, 16384)
    (section,) = traceconv.report([ROOT / "nvprof-text" / "metrics-csv" / "input.csv"], Questions(["layers"]))
    assert section.records()[0]["calls"] is None


def counted_in(folder: Path, **files: dict[str, int]) -> tuple[dict[str, Any], list[str]]:
    """The row of a layer of 100 ms, and the columns; each file is of `perf stat -I`, with counts of these 100 ms."""
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 40, "tid": 40, "ts": 0, "dur": 100_000}
    profile = {"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": [event]}
    (folder / "profile.json").write_text(json.dumps(profile), encoding="utf-8")
    inputs = [traceconv.Input(folder / "profile.json")]
    for file, counts in files.items():
        path = folder / f"{file}.csv"
        path.write_text("".join(f"0.100000000,{value},,{name},100000000,100.00,,\n" for name, value in counts.items()))
        inputs.append(traceconv.Input(path, "perf-stat", offset_ns=10**18))
    section, *_ = traceconv.report(inputs, Questions(["layers"]))
    return section.records()[0], [column.name for column in section.columns]


def test_ratios_are_of_one_input(tmp_path: Path) -> None:
    both = {"cycles": 1000, "instructions": 2000, "cache-misses": 8}
    row, columns = counted_in(tmp_path, one=both, two={"cycles": 10, "cache-misses": 1})
    assert row["ipc"] == 2
    assert row["cache-misses_per_1000_instructions"] == 4
    assert row["cycles (two.csv)"] == 10
    assert [name for name in columns if "ipc" in name or "_per_1000" in name] == [
        *("ipc", "ipc_total", "cache-misses_per_1000_instructions", "cache-misses_per_1000_instructions_total")
    ]
    row, _ = counted_in(tmp_path, one={"cycles": 10, "cache-misses": 1}, two=both)
    assert (row["ipc (two.csv)"], row["cache-misses_per_1000_instructions (two.csv)"]) == (2, 4)
    assert "ipc" not in row
    row, columns = counted_in(tmp_path, one={"cycles": 1000}, two={"instructions": 2000})
    assert not [name for name in columns if "ipc" in name]


def test_ratios_are_of_one_control_group(tmp_path: Path) -> None:
    """Control groups are counted apart, and `perf stat` states them behind the event."""
    stat = [f"0.100000000,{v},,{e},{g},100000000,100.00,," for e, g, v in CGROUPS]
    row = stat_of(tmp_path, *stat)["a"]
    assert row["ipc (/fast)"] == 3
    assert row["ipc (/slow)"] == 0.5
    assert "ipc" not in row


CGROUPS = [("cycles", "/fast", 100), ("instructions", "/fast", 300), ("cycles", "/slow", 200)]
CGROUPS += [("instructions", "/slow", 100)]


def test_samples_and_counts_of_an_event_have_no_ratio() -> None:
    samples = [Sample(1, 5, "cycles", 500), Sample(1, 5, "instructions", 1000)]
    trace = made([Slice(1, "a", 0, 10)], samples)
    first, second = trace.sources
    first.sampled, second.sampled = ("cycles",), ("instructions",)
    assert "ipc" not in rows_of(trace)["a"]
    first.sampled = second.sampled = ("cycles", "instructions")
    assert rows_of(trace)["a"]["ipc"] == 2


def test_slices_that_count_only_one_part_have_no_ratio(tmp_path: Path) -> None:
    def node(name: str, ts: int, **args: str) -> dict[str, Any]:
        return {"cat": "Node", "pid": 1, "tid": 1, "dur": 9, "ts": ts, "ph": "X", "name": f"{name}_kernel_time"} | {
            "args": {"op_name": name, "provider": "CPUExecutionProvider", **args}
        }

    run = {"cat": "Session", "pid": 1, "tid": 1, "dur": 100, "ts": 0, "ph": "X", "name": "model_run", "args": {}}
    nodes = [node("Add", 10, cycles="100", instructions="200"), node("Mul", 20, cycles="100", instructions="200")]
    path = tmp_path / "ort.json"
    path.write_text(json.dumps([run, *nodes, node("Mul", 30, instructions="800")]))
    (section,) = traceconv.report([path], Questions(["layers"]))
    found = {row["name"]: (row["ipc"], row["ipc_total"]) for row in section.records()}
    assert (found["Add"], found["Mul"], found["model_run"]) == ((2, 2), (None, None), (None, None))


@pytest.mark.parametrize(
    ("line", "unit", "ns"),
    [
        ("0.100000000,43.912345,msec,task-clock,100000000,100.00,,\n", Unit.NS, 43_912_345),
        ("0.100000000,43,msec,task-clock,100000000,100.00,,\n", Unit.NS, 43_000_000),
        ("0.100000000,9007199254740993,ns,duration_time,100000000,100.00,,\n", Unit.NS, 9_007_199_254_740_993),
        ("0.100000000,1e300,msec,task-clock,100000000,100.00,,\n", Unit.RATE, 1e306),
        ("0.100000000,1.5,Joules,power/energy-pkg/,100000000,100.00,,\n", Unit.RATE, 1.5),
    ],
)
def test_counted_times_are_ns(tmp_path: Path, line: str, unit: Unit, ns: float) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 40, "tid": 40, "ts": 0, "dur": 100_000}
    profile = {"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": [event]}
    (tmp_path / "profile.json").write_text(json.dumps(profile), encoding="utf-8")
    (tmp_path / "stat.csv").write_text(line, encoding="utf-8")
    stat = traceconv.Input(tmp_path / "stat.csv", "perf-stat", offset_ns=10**18)
    section, *_ = traceconv.report([tmp_path / "profile.json", stat], Questions(["layers"]))
    name = line.split(",")[3]
    assert section.records()[0][name] == ns
    assert {column.name: column.unit for column in section.columns}[name] is unit


def test_each_event_has_periods_or_not(tmp_path: Path) -> None:
    """Of one recording, some events can have periods, and others not."""
    profile = tmp_path / "synthetic.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 40, "tid": 40, "ts": 0, "dur": 9000}
    profile.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": [event]}))
    path = tmp_path / "synthetic.script.txt"
    periods = {"cpu-clock": " 2500000", "task-clock": "", "cycles": "", "instructions": "", "cycles:u": " 50"}
    periods |= {"instructions:u": " 100"}
    path.write_text(
        "".join(
            f"python 40/40 0.00{at}500000:{period} {event}: 401000 f+0x0 (a)\n"
            for at, (event, period) in enumerate(periods.items())
        )
    )
    samples = traceconv.Input(path, "perf-script", offset_ns=10**18)
    (section,) = traceconv.report([profile, samples], Questions(["layers"]), constraints=Constraints(same_machine=True))
    row, units = section.records()[0], {column.name: column.unit for column in section.columns}
    assert (row["cpu-clock"], units["cpu-clock"]) == (2_500_000, Unit.NS)
    assert (row["task-clock"], units["task-clock"]) == (1, Unit.COUNT)
    assert row["ipc:u"] == 2
    assert "ipc" not in row, "numbers of samples have no ratio"
    (note,) = [note for note in section.notes if "an event has no periods" in note]
    assert "task-clock" in note


def test_counters_of_intervals_are_looked_up_once_for_all_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made([Slice(1, "a", 0, 10)], [Sample(1, 5)], [Count(0, 5, 3)])
    more = [SourceInfo(f"more {number}", "test") for number in range(20)]
    calls: list[Trace] = []

    def counters(trace: Trace) -> list[int]:
        calls.append(trace)
        return interval_counters(trace)

    monkeypatch.setattr(sys.modules[layers.__module__], "interval_counters", counters)
    rows_of(one.with_tables(sources=[*one.sources, *more]))
    assert len(calls) == 1


def test_speeds_of_layers_are_those_of_the_primitives_with_known_work(tmp_path: Path) -> None:
    tensors = "src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 dst:f32::blocked:ab::f0"
    reorder = "src:f32::blocked:ab::f0 dst:f32::blocked:ba::f0"
    line = "onednn_verbose,v1,{}.{:06},primitive,exec,cpu,{},{},undef,{},,,{},{}\n"
    log, profile = tmp_path / "a.log", tmp_path / "a.json"
    log.write_text(
        line.format(1795245457250, 100000, "matmul", "brg:avx2", tensors, "10x20:20x30", "0.004")
        + line.format(1795245457250, 200000, "reorder", "jit:uni", reorder, "32x4", "0.002")
        + line.format(1795245457250, 300000, "reorder", "jit:uni", reorder, "32x4", "0")
    )
    layer = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1795245457250000, "dur": 900}
    profile.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [layer | {"args": {}}]}))
    (section,) = traceconv.report([profile, log], Questions(sections=["layers"]))
    row = section.records()[0]
    assert (row["name"], row["primitives"]) == ("aten::mm", 3)
    assert row["gflop_per_s"] == pytest.approx(2 * 10 * 20 * 30 / 4000)
    moved = 4 * (10 * 20 + 20 * 30 + 10 * 30) + 2 * 4 * 32 * 4
    assert row["gb_per_s"] == pytest.approx(moved / 6000)
    assert [note for note in section.notes if "/s" in note] == [
        "GFLOP/s: 2 primitives left out: operations not known, or a time of 0",
        "GB/s: 1 primitive left out: bytes not known, or a time of 0",
    ]


def test_a_loss_is_told_once() -> None:
    case = ROOT / "rocprof/sdk-counters/input.json"
    (section,) = traceconv.report([case], Questions(sections=["layers"]))
    assert sum("cut" in note for note in section.notes) == 1
