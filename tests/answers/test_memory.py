"""The section on memory, against maxima by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import traceconv
from tests.answers.test_totals import OWN
from tests.golden import ROOT
from traceconv.answers import Questions
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.summaries import memory
from traceconv.api import read
from traceconv.model.track_table import TrackKind


@pytest.mark.parametrize("case", ["pytorch-kineto/memory-and-stacks", "pytorch-kineto/cuda-streams", "mxnet/counters"])
def test_peaks_are_the_largest_values(case: str) -> None:
    (path,) = (ROOT / case).glob("input.*")
    trace = read(path)
    section = memory(SliceTable(trace))
    span = trace.span()
    assert span is not None
    series: dict[int, list[tuple[int, int]]] = {}
    counters = trace.counters
    for ts, track, value in zip(counters.ts.tolist(), counters.track.tolist(), counters.integer.tolist(), strict=True):
        series.setdefault(track, []).append((ts, value))
    table = SliceTable(trace)
    expected = {}
    for track, values in series.items():
        assert trace.tracks[track].kind is TrackKind.COUNTER
        if trace.tracks[track].unit == "bytes":
            peak = max(value for _, value in values)
            at = min(ts for ts, value in values if value == peak)
            expected[table.path(track)] = (peak, at - span[0], len(values))
    found = {row["counter"]: (row["peak_bytes"], row["peak_at_ns"], row["values"]) for row in section.records()}
    assert found == expected
    assert found
    peaks = [row["peak_bytes"] for row in section.records()]
    assert peaks == sorted(peaks, reverse=True)


@pytest.mark.parametrize("case", ["nsight-systems/session", "nvprof/unified-memory"])
def test_allocations_on_a_device_are_counters_of_memory(case: str) -> None:
    (path,) = (ROOT / case).glob("input.*")
    names = [str(row["counter"]) for row in memory(SliceTable(read(path))).records()]
    assert names
    assert all("Allocated" in name for name in names)


@pytest.mark.parametrize(("table", "digits"), [("mxnet.dumps.txt", 0), ("mxnet.dumps.json", -3)])
def test_the_peak_in_the_table_of_mxnet_is_that_of_its_run(table: str, digits: int, tmp_path: Path) -> None:
    """Text states kB with four decimals, as floats of 32 bit; JSON has four significant digits."""
    paths = [OWN / "mxnet.json", OWN / table]
    traceconv.merge(paths, tmp_path / "a.pftrace")
    for inputs in (paths, [tmp_path / "a.pftrace"]):
        (section,) = traceconv.report(inputs, Questions(["memory"]))
        run, stated = sorted(section.records(), key=lambda row: row["first_bytes"] is None)
        assert stated["counter"] == "MXNet / MXNet totals: Device Storage / Memory: cpu/0"
        assert stated["peak_bytes"] == round(run["peak_bytes"], digits)
        assert [stated[key] for key in ("peak_at_ns", "first_bytes", "last_bytes")] == [None] * 3
        assert "an empty time: the input states none" in section.notes
    (section,) = traceconv.report([OWN / table], Questions(["memory"], between="0s..1s"))
    assert section.rows == []
    assert section.notes == [f"{table}: its sums cannot be divided: they are left out"]


def test_an_input_that_tells_nothing_has_no_zero() -> None:
    (path,) = (ROOT / "onednn-verbose" / "torch-convnet-process").glob("input.*")
    section = memory(SliceTable(read(path)))
    assert section.rows == []
    assert section.notes == ["no input tells how much memory is held"]
