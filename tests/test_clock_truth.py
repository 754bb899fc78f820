"""Merges of recordings whose true clock offsets are known.

In each recording several tools watched one process, and the program read the clocks itself, before and after and around
every call. What these readings say is repeated here; the recordings are golden cases.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.golden import ROOT, Case
from traceconv.align import align
from traceconv.api import read
from traceconv.model.trace import Trace

#: Names of ONNX Runtime profiles, and the Unix time in ns of their ts 0 as `get_profiling_start_time_ns()` gave it.
ORT_STARTS = {
    "onnxruntime_profile__2026-11-21_07-17-34_140.json": 1795245454140082108,
    "onnxruntime_profile__2026-11-21_07-17-32_966.json": 1795245452966338432,
}

#: Unix time of ts 0 of the PyTorch profile, and how far the program's clock readings confine its error.
KINETO_ZERO_NS = 1790857026000000000
KINETO_UNCERTAINTY_NS = 12_312


def merged(name: str, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    case = Case(ROOT / "merge" / name)
    return case.merged(case.traces(tmp_path_factory.mktemp(name)))


def receipt(trace: Trace) -> dict[str, dict[str, object]]:
    return {line["format"]: line for line in trace.metadata["alignment"]}


def slices_of(trace: Trace, format: str, *categories: str) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of the slices of one input, of some categories or of all."""
    source_of_track = np.array([track.source for track in trace.tracks])
    format_of_source = np.array([source.format for source in trace.sources])
    wanted = format_of_source[source_of_track[trace.slices.track]] == format
    if categories:
        wanted &= np.isin(np.array(trace.strings)[trace.slices.category], categories)
    return trace.slices.ts[wanted], (trace.slices.ts + trace.slices.dur)[wanted]


def outside(trace: Trace, inner: str, outer: str, *categories: str, slack_ns: int) -> tuple[int, int]:
    """How many slices of `inner` in the span of `outer` lie in no slice of `outer`, and how many there are."""
    starts, ends = slices_of(trace, inner, "exec")
    around_starts, around_ends = slices_of(trace, outer, *categories)
    seen = (starts >= around_starts.min()) & (ends <= around_ends.max())
    starts, ends = starts[seen][:, None], ends[seen][:, None]
    inside = ((around_starts - slack_ns <= starts) & (ends <= around_ends + slack_ns)).any(axis=1)
    return int((~inside).sum()), len(inside)


def test_kineto_and_onednn(tmp_path_factory: pytest.TempPathFactory) -> None:
    trace = merged("kineto-onednn", tmp_path_factory)
    lines = receipt(trace)
    assert abs(lines["pytorch-kineto"]["offset_ns"] - KINETO_ZERO_NS) <= lines["pytorch-kineto"]["bound_ns"]  # type: ignore[operator]
    assert lines["pytorch-kineto"]["bound_ns"] >= KINETO_UNCERTAINTY_NS  # type: ignore[operator]
    assert lines["onednn-verbose"]["offset_ns"] == 0
    assert outside(trace, "onednn-verbose", "pytorch-kineto", "cpu_op", slack_ns=0) == (0, 80)


def test_mxnet_and_dnnl(tmp_path_factory: pytest.TempPathFactory) -> None:
    trace = merged("mxnet-dnnl", tmp_path_factory)
    lines = receipt(trace)
    assert {line["offset_ns"] for line in lines.values()} == {0}
    # both print whole microseconds: one of them may seem to stick out by one
    assert outside(trace, "onednn-verbose", "mxnet", "operator", slack_ns=0) == (0, 40)


@pytest.mark.parametrize(("name", "start_ns"), ORT_STARTS.items())
def test_onnxruntime_starts_within_the_millisecond_of_its_name(name: str, start_ns: int, tmp_path: Path) -> None:
    profile = tmp_path / name
    shutil.copyfile(ROOT / "onnxruntime" / "v1.31-perf-process" / "input.json", profile)
    (line,) = align([read(profile)]).receipt
    assert abs(line.offset_ns - start_ns) <= line.bound_ns <= 600_000
    assert "start time in the file name" in line.method
    assert "good to 1 ms" in line.method


def test_a_zone_is_assumed_whether_guessed_or_given(tmp_path: Path) -> None:
    profile = tmp_path / next(iter(ORT_STARTS))
    shutil.copyfile(ROOT / "onnxruntime" / "v1.31-perf-process" / "input.json", profile)
    assert align([read(profile)]).receipt[0].verdict == "assumed"
    assert align([read(profile, options={"utc_offset": "+00:00"})]).receipt[0].verdict == "assumed"
    assert align([read(profile, options={"start_ns": "1795245454140082108"})]).receipt[0].verdict == "assumed"


def test_a_bound_that_nobody_measured_is_not_stated(tmp_path: Path) -> None:
    trace = tmp_path / "a.json"
    trace.write_text(
        '{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}],"baseTimeNanoseconds":1700000000000000000}'
    )
    (line,) = align([read(trace)]).receipt
    assert (line.offset_ns, line.bound_ns, line.verdict) == (1700000000000000000, None, "ok")


def test_a_base_is_not_added_to_times_since_1970(tmp_path: Path) -> None:
    trace = tmp_path / "a.json"
    trace.write_text(
        '{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1700000000000000,"dur":1}],"baseTimeNanoseconds":1700000000000000000}'
    )
    (line,) = align([read(trace)]).receipt
    assert line.offset_ns == 0
