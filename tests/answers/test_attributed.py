"""What layers cost, in the picture: args of slices, frames of call stacks and counters add up to the input."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import traceconv
from tests import oracle
from tests.answers.test_layers import (
    MERGED,
    RECORDED,
    SAMPLES,
    Count,
    Sample,
    Slice,
    crossing,
    made,
    nested,
    rows_of,
    running,
    threads_with_slices,
)
from tests.golden import ROOT, Case, by_format
from tests.oracle.fixtures import OpenTrace
from tests.together import together
from traceconv import Constraints, Output, Questions
from traceconv.answers.attributed import attributed
from traceconv.answers.layers import NO_LAYER, Costs, layers
from traceconv.answers.slice_tables import SliceTable
from traceconv.cli import cli
from traceconv.io.spill import Memory
from traceconv.model.args import with_more_args
from traceconv.model.layout import validate
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind

FILES = [RECORDED / "profile.json", RECORDED / "perf.data.gz"]
TAKEN = st.lists(st.integers(0, 39).map(lambda at: Sample(1, at)), min_size=1)
SAME_MACHINE = Constraints(same_machine=True)


def with_costs(trace: Trace, memory: int | None = None) -> Trace:
    found = attributed(trace, Memory(memory).parts(), counters=True)
    validate(found)
    return found


def args_of(trace: Trace) -> list[dict[str, Any]]:
    slices = trace.slices
    texts = map(trace.args.get, slices.args_at.tolist(), slices.args_len.tolist())
    return [json.loads(text) if text else {} for text in texts]


def stack_of(trace: Trace, frame: int) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    while frame >= 0:
        names = (trace.frames[frame].name, *names)
        frame = trace.frames[frame].parent
    return names


@given(threads_with_slices(), SAMPLES.filter(bool), st.integers(0, 3), st.booleans())
def test_args_add_up_to_the_section_on_layers(
    slices: list[Slice], samples: list[Sample], bound: int, in_files: bool
) -> None:
    counts = [Count(at * 10, at * 10 + 10, 100 + at) for at in range(3)]
    trace = made(slices, samples, counts, bound)
    rows = rows_of(trace)
    found = with_costs(trace, 1 if in_files else None)
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for name, args in zip(found.slices.name.tolist(), args_of(found), strict=True):
        sums[trace.strings[name]].update(args)
    for column in ("samples", "worker_samples", "page-faults", *{sample.event for sample in samples}):
        assert sum(one[column] for one in sums.values()) + rows[NO_LAYER][column] == sum(
            row[column] for row in rows.values()
        )
        for name, of_name in sums.items():
            assert of_name[column] == rows[name][column]
            if column != "worker_samples":
                assert of_name[f"{column}_total"] >= rows[name][f"{column}_total"]
    for name, of_name in sums.items():
        assert of_name["uncertain_samples"] >= rows[name]["uncertain_samples"]


@given(st.one_of(nested(1), crossing(1)), TAKEN)
def test_each_slice_against_every_sample(slices: list[Slice], samples: list[Sample]) -> None:
    found = with_costs(made(slices, samples))
    table = found.slices
    own: Counter[tuple[int, int, str]] = Counter()
    inside: Counter[tuple[int, int, str]] = Counter()
    for sample in samples:
        stack = [(one.start, one.end - one.start, one.name) for one in running(slices, 1, sample.at)]
        own.update(stack[-1:])
        inside.update(set(stack))
    for ts, dur, name, args in zip(
        table.ts.tolist(), table.dur.tolist(), table.name.tolist(), args_of(found), strict=True
    ):
        key = ts, dur, found.strings[name]
        if slices.count(Slice(1, key[2], ts, ts + dur)) == 1 and len({one[1:] for one in slices}) == len(slices):
            assert (args["samples"], args["samples_total"]) == (own[key], inside[key])


@given(nested(1), st.lists(st.tuples(st.integers(1, 3), st.integers(-3, 43), st.integers(0, 3)), min_size=1))
def test_layers_are_the_outermost_frames(slices: list[Slice], chosen: list[tuple[int, int, int]]) -> None:
    calls = [(), ("main",), ("main", "f"), ("main", "g", "f")]
    samples = [Sample(thread, at, frames=calls[which]) for thread, at, which in chosen]
    found = with_costs(made(slices, samples))
    expected: Counter[tuple[str, ...]] = Counter()
    for sample in samples:
        layers = tuple(one.name for one in running(slices, 1, sample.at)) or (NO_LAYER,)
        expected[(*(layers if slices else ()), *sample.frames)] += 1
    assert Counter(stack_of(found, stack) for stack in found.samples.stack.tolist()) == expected
    assert len(found.frames) <= sum(map(len, expected)), "no frames that nothing uses"


@given(nested(1).filter(bool), TAKEN)
def test_counters_have_what_the_innermost_slice_has(slices: list[Slice], samples: list[Sample]) -> None:
    found = with_costs(made(slices, samples))
    tracks = [at for at, track in enumerate(found.tracks) if track.name == "cpu-clock by layer"]
    values = found.counters.track == (tracks[0] if tracks else -1)
    steps = dict(zip(found.counters.ts[values].tolist(), found.counters.integer[values].tolist(), strict=True))
    of_slice = {
        (ts, ts + dur, found.strings[name]): args["cpu-clock"]
        for ts, dur, name, args in zip(
            found.slices.ts.tolist(),
            found.slices.dur.tolist(),
            found.slices.name.tolist(),
            args_of(found),
            strict=True,
        )
    }
    assert len(tracks) == any(of_slice.values())
    for at in range(40) if tracks else ():
        inner = running(slices, 1, at)[-1:]
        value = next((steps[ts] for ts in sorted(steps, reverse=True) if ts <= at), 0)
        assert value == (of_slice[inner[0].start, inner[0].end, inner[0].name] if inner else 0)


def test_args_that_are_there_stay(tmp_path: Path) -> None:
    merged = ROOT / "merge" / "attributed" / "expect.json"
    relu = [event for event in json.loads(merged.read_text())["traceEvents"] if event["name"] == "aten::relu"]
    assert [(one["args"]["samples"], one["args"]["samples (attributed)"]) for one in relu] == [(7, 2), (7, 2)]


def check_nothing_lost(trace: Trace) -> None:
    rows = {row["name"]: row for row in layers(Costs(SliceTable(trace))).records()}
    found = with_costs(trace)
    sums: Counter[str] = Counter()
    for old, new in zip(args_of(trace), args_of(found), strict=True):
        assert new | old == new
        sums.update({key: new[key] for key in new.keys() - old.keys()})
    names = [trace.strings[name] for name in np.unique(trace.samples.name).tolist()]
    for column in ("samples", "primitives", "primitives_ns", *names):
        if column in sums:
            assert sums[column] + rows[NO_LAYER][column] == sum(row[column] for row in rows.values())
    of_layers = [row["samples"] for name, row in rows.items() if name != NO_LAYER]
    assert "samples" in sums or not names or of_layers == [None] * len(of_layers)
    assert trace.samples.weight.tolist() == found.samples.weight.tolist()
    for old_stack, new_stack in zip(trace.samples.stack.tolist(), found.samples.stack.tolist(), strict=True):
        stack = stack_of(trace, old_stack)
        assert stack_of(found, new_stack)[-len(stack) :] == stack or not stack


@by_format(case for case in MERGED if not case.about.get("attribute", False))
def test_nothing_of_the_inputs_is_lost(cases: list[Case], tmp_path: Path) -> None:
    with together() as each:
        for case in cases:
            with each(case.name):
                check_nothing_lost(case.merged(case.traces(tmp_path / case.name)))


def test_layers_have_the_counts_of_the_kernels_that_they_launched(tmp_path: Path) -> None:
    case = Case(ROOT / "merge" / "nsight")
    trace = case.merged(case.traces(tmp_path))
    column = "dram__bytes.sum (Mbyte)_total"
    rows = {row["name"]: row[column] for row in layers(Costs(SliceTable(trace))).records()}
    sums: Counter[str] = Counter()
    found = with_costs(trace)
    for name, args in zip(found.slices.name.tolist(), args_of(found), strict=True):
        sums[found.strings[name]] += args.get(column, 0)
    assert {name: sums[name] for name in ("step 0", "forward", "cudaLaunchKernel", "poll")} == pytest.approx(
        {"step 0": 1037.08, "forward": 2061.58, "cudaLaunchKernel": 2061.58, "poll": 0}
    )
    assert all(rows[name] == pytest.approx(amount) for name, amount in sums.items() if amount)


def test_nothing_to_attribute_is_said(tmp_path: Path) -> None:
    kineto = ROOT / "pytorch-kineto" / "sampled-steps" / "input.json"
    script = ROOT / "perf-script" / "sampled_steps" / "input.txt"
    for path, why in ((kineto, "no input has samples"), (script, "no input has layers")):
        plain = traceconv.convert(path, tmp_path / f"{path.name}.plain.pftrace").trace
        result = traceconv.convert(path, Output(tmp_path / f"{path.name}.pftrace", attribute=True))
        assert any(why in note for note in result.trace.sources[0].notes)
        assert result.trace.counts() == plain.counts()
        assert args_of(result.trace) == args_of(plain)


SUMS = """
    select name, count(*) as slices, sum(extract_arg(arg_set_id, 'debug.samples')) as samples,
    sum(extract_arg(arg_set_id, 'debug.cpu-clock')) as cpu_ns,
    sum(extract_arg(arg_set_id, 'debug.page-faults/period=10/')) as faults,
    sum(extract_arg(arg_set_id, 'debug.worker_samples')) as of_workers
    from slice group by name
"""
#: The samples of each outermost frame.
STACKS = """
    with recursive up(root, id) as (
        select id, id from stack_profile_callsite where depth = 0
        union all select up.root, c.id from stack_profile_callsite c join up on c.parent_id = up.id
    )
    select f.name, m.name as module, count(*) as samples from perf_sample s join up on up.id = s.callsite_id
    join stack_profile_callsite r on r.id = up.root join stack_profile_frame f on f.id = r.frame_id
    join stack_profile_mapping m on m.id = f.mapping group by 1, 2
"""


def test_perfetto_has_the_numbers_and_the_frames(trace_processor: OpenTrace, tmp_path: Path) -> None:
    (section,) = traceconv.report(FILES, Questions(["layers"]), constraints=SAME_MACHINE)
    rows = {row["name"]: row for row in section.records()}
    layers = rows.keys() - {NO_LAYER}
    output = tmp_path / "out.pftrace"
    asked = ["merge", *map(str, FILES), "--same-machine", "--layer-counters", "-o", str(output)]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    assert "638 of 7923 samples are in no layer" in done.stderr
    assert "319 ms of cpu-clock" in done.stderr
    assert CliRunner().invoke(cli, ["check", str(output)]).exit_code == 0
    with trace_processor(output) as tp:
        assert oracle.import_problems(tp) == []
        sums = {row.name: row for row in tp.query(SUMS)}
        frames = {row.name: row for row in tp.query(STACKS)}
        counters = list(tp.query("select name, unit from counter_track where name glob '*by layer'"))
    for name in layers:
        row, found = rows[name], sums[name]
        assert (found.slices, found.samples, found.of_workers) == (row["calls"], row["samples"], row["worker_samples"])
        assert (found.cpu_ns, found.faults) == (row["cpu-clock"], row["page-faults/period=10/"])
        assert (frames[name].samples >= row["samples"], frames[name].module) == (True, "/layer")
    assert frames.keys() == rows.keys()
    assert sum(sums[name].samples for name in layers) == 7923 - rows[NO_LAYER]["samples"]
    assert sum(row.samples for row in frames.values()) == 15613
    units = {row.name: row.unit for row in counters}
    assert units == {"cpu-clock by layer": "ns", "page-faults/period=10/ by layer": "count"}


def test_json_has_the_same_numbers(tmp_path: Path) -> None:
    for name in ("a.json", "b.pftrace"):
        traceconv.merge(FILES, Output(tmp_path / name, attribute=True), constraints=SAME_MACHINE)
    document = json.loads((tmp_path / "a.json").read_text())
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert sum(event["args"]["samples"] for event in slices) == 7923 - 638
    roots: Counter[str] = Counter()
    for event in document["traceEvents"]:
        frame = event.get("sf") if event["ph"] == "P" else None
        while frame is not None:
            name, frame = document["stackFrames"][frame]["name"], document["stackFrames"][frame].get("parent")
            roots[name] += frame is None
    assert sum(roots.values()) == 15613
    assert not any(event["ph"] == "C" for event in document["traceEvents"])
    assert CliRunner().invoke(cli, ["check", str(tmp_path / "a.json")]).exit_code == 0
    again = traceconv.report([tmp_path / "b.pftrace"], Questions(["layers"]))
    records = list(again[0].records())
    assert sum(row["samples"] for row in records) == 7923
    assert {row["uncertain_samples"] for row in records} == {None}  # the bounds of its inputs are not known


def test_memory_that_is_short_changes_nothing(tmp_path: Path) -> None:
    for name, memory in (("a", None), ("b", 1)):
        output = Output(tmp_path / f"{name}.pftrace", layer_counters=True)
        traceconv.merge(FILES, output, constraints=SAME_MACHINE, memory=memory)
    assert (tmp_path / "a.pftrace").read_bytes() == (tmp_path / "b.pftrace").read_bytes()


def test_counts_of_a_profile_stay_its_own(tmp_path: Path) -> None:
    (path,) = (ROOT / "onnxruntime" / "perf-counters-hw").glob("input.*")
    result = traceconv.convert(path, Output(tmp_path / "out.json", layer_counters=True))
    plain = traceconv.convert(path, tmp_path / "plain.json")
    assert args_of(result.trace) == args_of(plain.trace)
    counters = [track.name for track in result.trace.tracks if track.kind is TrackKind.COUNTER]
    assert not [name for name in counters if name.endswith("by layer")]


@pytest.mark.parametrize("budget", [None, 1])
def test_more_args_are_the_same_in_memory_and_in_a_store(budget: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceconv.model.args._CHUNK_BYTES", 20)
    trace = made([Slice(1, "a", at, at + 1) for at in range(9)], [])
    rows, more = range(1, 9), [{"n": n} if n % 3 else None for n in range(1, 9)]
    in_memory = with_more_args(trace, rows, more)
    kept = with_more_args(in_memory, rows, [{"m": n} for n in rows], Memory(budget).parts())
    assert args_of(in_memory) == [{}, *[{"n": n} if n % 3 else {} for n in range(1, 9)]]
    assert args_of(kept) == [{}, *[{"n": n, "m": n} if n % 3 else {"m": n} for n in range(1, 9)]]
    validate(kept)
