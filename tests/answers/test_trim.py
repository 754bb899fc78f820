"""`--trim`: what is in the window is written whole, all else is counted as left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import traceconv
from tests import oracle
from tests.golden import ROOT
from tests.oracle.fixtures import OpenTrace
from traceconv import reading
from traceconv.align.constraints import Constraints
from traceconv.answers.selection import OUTSIDE, trimmed
from traceconv.api import Output, read
from traceconv.cli import cli
from traceconv.errors import UsageError
from traceconv.model.layout import validate
from traceconv.model.trace import Trace

CUDA = ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"
STEPS = ROOT / "pytorch-kineto" / "sampled-steps" / "input.json"
PERF = ROOT / "perf-script" / "sampled_steps" / "input.txt"


def slices_of(trace: Trace) -> set[tuple[int, int, str]]:
    columns = trace.slices.ts.tolist(), trace.slices.dur.tolist(), trace.slices.name.tolist()
    return {(ts, dur, trace.strings[name]) for ts, dur, name in zip(*columns, strict=True)}


@given(st.integers(-5, 100), st.integers(1, 100))
def test_what_the_window_has_a_part_of_stays_whole(start: int, length: int) -> None:
    trace = read(CUDA)
    before, origin = slices_of(trace), trace.span()
    counts = trace.counts()
    assert origin is not None
    low, high = origin[0] + 1000 * start, origin[0] + 1000 * (start + length)
    if high <= origin[0] or low > origin[1]:
        with pytest.raises(UsageError, match="nothing was recorded"):
            trimmed(trace, f"{low}..{high}")
        return
    found = trimmed(trace, f"{low}..{high}")
    validate(found)
    assert slices_of(found) == {one for one in before if low <= one[0] < high or one[0] < low < one[0] + one[1]}
    left_out = sum(counts.values()) - sum(found.counts().values())
    (source,) = found.sources
    assert source.diagnostics.count(OUTSIDE) == left_out
    assert source.diagnostics.lost == 0
    both_ends = {
        int(flow)
        for flow, *ends in zip(
            trace.flows.origin.tolist(), trace.flows.from_slice.tolist(), trace.flows.to_slice.tolist(), strict=True
        )
        if all((trace.slices.ts[end] < high and trace.slices.ts[end] + trace.slices.dur[end] > low)
               or low <= trace.slices.ts[end] < high for end in ends)
    }  # fmt: skip
    assert set(found.flows.origin.tolist()) == both_ends


def test_each_sample_is_of_its_own_input(tmp_path: Path) -> None:
    """Two recordings sampled the same event."""
    later = tmp_path / "later.txt"
    moved = PERF.read_text().replace(" 1790000000.", " 1790000009.")
    later.write_text(moved.replace("700/", "900/").replace("python ", "other "))
    both = traceconv.merge([PERF, later], tmp_path / "both.pftrace")
    for file, part in ((PERF, slice(None, 20)), (later, slice(20, None))):
        output = Output(tmp_path / f"{file.stem}.pftrace", trim=str(file))
        cut = traceconv.merge([PERF, later], output)
        assert np.sort(cut.trace.samples.ts).tolist() == np.sort(both.trace.samples.ts)[part].tolist()


def test_counters_keep_the_value_that_holds_when_it_starts() -> None:
    trace = read(CUDA)
    of_track = trace.counters.track == trace.counters.track[0]
    first, second = sorted(trace.counters.ts[of_track].tolist())[:2]
    assert second - first > 2
    found = trimmed(trace, f"{first + 1}..{second}")
    assert first in found.counters.ts.tolist()
    assert not (found.counters.ts >= second).any()


def test_the_time_of_an_input(tmp_path: Path, trace_processor: OpenTrace) -> None:
    output = tmp_path / "out.pftrace"
    inputs = ["merge", str(STEPS), str(PERF), "--same-machine", "-o", str(output)]
    done = CliRunner().invoke(cli, [*inputs, "--trim", str(STEPS), "--strict"])
    assert done.exit_code == 0, done.output
    assert "1 skipped (trim.outside)" in done.stderr
    assert "8 slices, 19 samples" in done.stderr
    assert CliRunner().invoke(cli, ["check", str(output)]).exit_code == 0
    with trace_processor(output) as tp:
        assert oracle.import_problems(tp) == []
        ((slices, low, high),) = [
            (row.n, row.low, row.high)
            for row in tp.query("select count(*) as n, min(ts) as low, max(ts + dur) as high from slice")
        ]
        ((samples, early, late),) = [
            (row.n, row.low, row.high)
            for row in tp.query("select count(*) as n, min(ts) as low, max(ts) as high from perf_sample")
        ]
    assert (slices, samples) == (8, 19)
    assert low <= early <= late <= high


def test_the_picture_has_whole_slices_and_their_flows(tmp_path: Path, trace_processor: OpenTrace) -> None:
    output = tmp_path / "out.pftrace"
    result = traceconv.convert(CUDA, Output(output, trim="20us..45us", strict=True))
    counts = result.trace.counts()
    assert 0 < counts["slices"] < read(CUDA).counts()["slices"]
    with trace_processor(output) as tp:
        assert oracle.import_problems(tp) == []
        (slices,) = [row.n for row in tp.query("select count(*) as n from slice where dur > 0")]
        (flows,) = [row.n for row in tp.query("select count(*) as n from flow")]
        (open_slices,) = [row.n for row in tp.query("select count(*) as n from slice where dur < 0")]
    assert (slices, flows, open_slices) == (int((result.trace.slices.dur > 0).sum()), counts["flows"], 0)


@pytest.mark.parametrize(
    ("trim", "message"),
    [
        ("1us..5xs", "--trim: '5xs' is not a time with a unit"),
        ("no such slice", "--trim: no slice is named 'no such slice'"),
        ("5us..5us", "--trim: nothing lies between"),
        ("ProfilerStep#2..4", "--trim: no slice is named 'ProfilerStep#4'"),
        ("900s..901s", "--trim: nothing was recorded from"),
    ],
)
def test_no_such_window_is_a_wrong_call(trim: str, message: str, tmp_path: Path) -> None:
    output = tmp_path / "out.pftrace"
    done = CliRunner().invoke(cli, ["convert", str(CUDA), "--trim", trim, "-o", str(output)])
    assert isinstance(done.exception, UsageError)
    assert message in done.exception.message
    assert not output.exists()


def test_write_trims(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    traceconv.write(read(CUDA), Output(output, trim="20us..45us"))
    assert 0 < read(output).counts()["slices"] < read(CUDA).counts()["slices"]


def test_write_attributes_and_leaves_the_trace_as_it_is(tmp_path: Path) -> None:
    trace = traceconv.merge([STEPS, PERF], tmp_path / "a.json", constraints=Constraints(same_machine=True)).trace
    counts, notes = trace.counts(), [list(source.notes) for source in trace.sources]
    balances = [source.balance.describe() for source in trace.sources]
    traceconv.write(trace, Output(tmp_path / "b.json", attribute=True))
    traceconv.write(trace, Output(tmp_path / "c.json", layer_counters=True, trim=str(STEPS)))
    assert "samples_total" in (tmp_path / "b.json").read_text()
    assert read(tmp_path / "c.json").counts()["counter values"] > counts["counter values"]
    assert (trace.counts(), [source.notes for source in trace.sources]) == (counts, notes)
    assert [source.balance.describe() for source in trace.sources] == balances


def test_an_output_that_asks_for_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="collective_flows"):
        traceconv.write(read(CUDA), Output(tmp_path / "a.json", collective_flows=True))
    with pytest.raises(UsageError, match="of traces do not apply"):
        traceconv.export([CUDA], Output(tmp_path / "a.csv", trim="1us..2us"))


def test_the_name_of_several_inputs_is_refused(tmp_path: Path) -> None:
    files = [tmp_path / folder / "trace.json" for folder in ("n1", "n2")]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(STEPS.read_bytes())
    inputs = ["merge", *map(str, files), "-o", str(tmp_path / "out.pftrace"), "--trim"]
    done = CliRunner().invoke(cli, [*inputs, "trace.json"])
    assert str(done.exception) == "--trim: 'trace.json' matches several inputs"


def test_standard_input_is_called_as_it_was_given(tmp_path: Path) -> None:
    output = tmp_path / "out.pftrace"
    inputs = ["merge", "-", str(PERF), "--same-machine", "-o", str(output)]
    done = CliRunner().invoke(cli, [*inputs, "--trim", "-"], input=STEPS.read_bytes())
    assert done.exit_code == 0, done.output
    assert "8 slices, 19 samples" in done.stderr


def test_a_wrong_call_is_found_before_archives_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "out.pftrace").touch()
    monkeypatch.setattr(reading, "files_of", lambda *_: pytest.fail("unpacked"))
    for more in (["--trim", "1us..5xs", "-f"], []):
        done = CliRunner().invoke(cli, ["merge", str(tmp_path / "runs"), "-o", str(tmp_path / "out.pftrace"), *more])
        assert isinstance(done.exception, UsageError)
