"""The picture of a run of each side, step below step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests import commands
from tests.answers.test_sections import event, kineto, launched
from tests.comparison.test_diff_command import CUDA, ORT
from tests.comparison.test_run_values import RECORDINGS
from traceconv.answers.slice_tables import SliceTable
from traceconv.api import on_one_clock
from traceconv.comparison.run_values import Part
from traceconv.comparison.runs import Recorded
from traceconv.comparison.side_by_side import side_by_side
from traceconv.model.args import ABSENT, arg_values
from traceconv.model.trace import TIMED, Trace
from traceconv.model.track_table import NO_TRACK

#: The lengths of the steps of both sides, µs; the first of each side is left out.
BEFORE, AFTER = (50, 10, 30, 20), (5, 15, 20, 20, 99)


def _recorded(path: Path, lengths: tuple[int, ...]) -> Recorded:
    """Write steps, each with work that begins in it and ends 1 µs after it, and a slice around all of them."""
    events, ts = [event("all", 100, sum(lengths) + 10, tid=2)], 100.0
    for number, length in enumerate(lengths):
        events.append(event(f"ProfilerStep#{number}", ts, length, cat="user_annotation"))
        events += launched(number, (ts + 1, ts + 2), (ts + length - 1, ts + length + 1))
        ts += length
    return Recorded(path.name, kineto(path, events), 1)


def _rows(trace: Trace, name: str) -> np.ndarray:
    slices = trace.slices
    rows = [row for row, text in enumerate(slices.name.tolist()) if trace.strings[text].startswith(name)]
    return np.array(sorted(rows, key=lambda row: (slices.ts[row], row)))


def test_steps_begin_together_and_their_differences_are_drawn(tmp_path: Path) -> None:
    before, after = _recorded(tmp_path / "a.json", BEFORE), _recorded(tmp_path / "b.json", AFTER)
    trace = side_by_side(before, after, part=Part.LATER)
    steps = _rows(trace, "ProfilerStep#")
    names = [trace.strings[trace.slices.name[row]] for row in steps]
    starts = [int(ts) // 1000 for ts in trace.slices.ts[steps]]
    together = {name: [at for at, other in zip(starts, names, strict=True) if other == name] for name in names}
    assert together == {
        "ProfilerStep#0": [0, 45],  # each ends where the next one begins
        "ProfilerStep#1": [50, 50],
        "ProfilerStep#2": [65, 65],
        "ProfilerStep#3": [95, 95],
        "ProfilerStep#4": [115],
    }
    (process,) = [number for number, track in enumerate(trace.tracks) if track.name == "difference"]
    drawn = [number for number, track in enumerate(trace.tracks) if track.parent == process]
    words = [trace.strings[name] for name in trace.slices.name[np.isin(trace.slices.track, drawn)].tolist()]
    assert words == ["longer", "shorter", "as long"]
    values = {
        trace.tracks[track].name: trace.counters.integer[trace.counters.track == track].tolist()
        for track in np.unique(trace.counters.track).tolist()
    }
    assert values["step: after - before"] == [5000, -10_000, 0]
    parts = [values for name, values in values.items() if name != "step: after - before"]
    assert np.sum(parts, axis=0).tolist() == [5000, -10_000, 0]
    assert trace.clocks[0].synthetic
    top = sorted((track.rank, track.name) for track in trace.tracks if track.parent == NO_TRACK)
    assert [name.partition(":")[0] for _, name in top] == ["difference", *["1 before"] * 2, *["2 after"] * 2]


def test_runs_without_steps_differ_as_in_the_table_and_reports_count_operations_alone(tmp_path: Path) -> None:
    """The second run takes less, but has a gap."""
    for name, spans in (("a", ((0, 10), (10, 10))), ("b", ((0, 6), (40, 6)))):
        kineto(tmp_path / f"{name}.json", [event("A", *span) for span in spans])
    picture = tmp_path / "diff.pftrace"
    assert commands.run("diff", tmp_path / "a.json", tmp_path / "b.json", "-o", picture).returncode == 0
    trace, _ = on_one_clock([picture])
    assert trace.counters.integer.tolist() == [-8000]
    assert len(_rows(trace, "shorter")) == 1
    found = json.loads(commands.run("report", picture, "--section", "operations", "--json").stdout)
    assert [row["name"] for row in found["operations"]] == ["A"]


def test_slices_that_reach_into_the_next_step_state_the_gap(tmp_path: Path) -> None:
    before, after = _recorded(tmp_path / "a.json", BEFORE), _recorded(tmp_path / "b.json", AFTER)
    trace = side_by_side(before, after, part=Part.LATER)
    (around, _) = _rows(trace, "all")
    assert trace.slices.dur[around] == (sum(BEFORE) + 10 + 5) * 1000
    assert trace.args.get(int(trace.slices.args_at[around]), int(trace.slices.args_len[around])) == b'{"gap_ns":5000}'
    assert "longer by gaps between steps, which the arg gap_ns has: 2 slices" in trace.sources[0].notes


@pytest.mark.parametrize("path", RECORDINGS[::9], ids=lambda path: path.parent.name)
def test_nothing_is_lost_but_where_it_was(path: Path) -> None:
    if not (path.parent / "expect.txt").exists():
        pytest.skip("it cannot be read")
    sides = [Recorded(str(each), SliceTable(on_one_clock([str(each)])[0]), 1) for each in (path, CUDA)]
    trace = side_by_side(*sides, part=Part.LATER)
    for number, side in enumerate(sides):
        of_side = trace.tracks.column("source") == number
        for name in TIMED:
            table, original = getattr(trace, name), getattr(side.table.trace, name)
            assert np.count_nonzero(of_side[table.track]) == len(original.ts)
        slices = trace.slices
        rows = np.flatnonzero(of_side[slices.track])
        numbers, values = arg_values(trace.args, slices.args_at[rows], slices.args_len[rows], ["gap_ns"])
        gaps = [0 if gap is ABSENT else gap for (gap,) in values]
        assert np.array_equal(slices.dur[rows] - np.array(gaps, np.int64)[numbers], side.table.trace.slices.dur)


def test_the_trace_processor_reads_the_picture(tmp_path: Path) -> None:
    result = commands.run("diff", ORT, CUDA, "-o", tmp_path / "diff.pftrace")
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith(f"wrote {tmp_path / 'diff.pftrace'}: {ORT} and {CUDA} on one axis\n")
    assert "diff_operations" in result.stdout
    assert commands.run("check", tmp_path / "diff.pftrace").returncode == 0


def test_a_picture_needs_a_file() -> None:
    result = commands.run("diff", CUDA, CUDA, "--format", "pftrace")
    assert result.returncode == 2
    assert "error: --format pftrace: the trace needs a file\nhint: -o diff.pftrace" in result.stderr
