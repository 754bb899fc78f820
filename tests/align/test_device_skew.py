"""How far the clock of a device may be from that of its host, by launches and waits of one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.align.test_host_ends import ranks
from tests.align.test_rank_hints import script
from tests.benchmarks.alignment.host_trials import HostClock, Recorded, written
from traceconv.align import align
from traceconv.align.clock_overview import survey
from traceconv.align.devices import NOTHING_KNOWN, DeviceSkew, skews
from traceconv.api import read
from traceconv.cli import cli

US, MS, SECOND = 10**3, 10**6, 10**9
_BASE = 1_790_857_026 * SECOND


def kineto(folder: Path, latency: int, skew: int, *, wait: int | None = None, count: int = 100) -> Path:
    """A file of one device that is ahead by the skew; latencies are at least so long; the last kernel is waited for."""
    random = np.random.default_rng(3)
    events: list[dict[str, Any]] = []
    for number in range(count):
        launch = number * MS
        begin = launch + latency + int(random.exponential(20 * US)) * bool(number % 3) + skew
        args = {"correlation": number + 1, "device": 0, "stream": 7}
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "dur": 5}
        kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "dur": 300}
        events.append({**call, "ts": launch / US, "args": {"correlation": number + 1}})
        events.append({**kernel, "ts": begin / US, "args": args})
    if wait is not None:
        returned = begin - skew + 300 * US + wait
        name = {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 9, "tid": 9}
        since = launch + 50 * US
        events.append({**name, "ts": since / US, "dur": (returned - since) / US, "args": {"correlation": count + 1}})
    path = folder / "kineto.json"
    top = {"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": _BASE, "traceEvents": events}
    path.write_text(json.dumps(top))
    return path


def limits(path: Path, at: int = 50 * MS) -> tuple[int, int]:
    (skew,) = skews(read(path), 0).values()
    least, most = skew.at(np.array([at]))
    return int(least[0]), int(most[0])


@pytest.mark.parametrize("wait", [None, 8 * US])
@pytest.mark.parametrize("skew", [0, 12 * US, 400 * US, 3 * MS, -12 * US, -394 * US])
def test_the_skew_is_within_its_limits(skew: int, wait: int | None, tmp_path: Path) -> None:
    least, most = limits(kineto(tmp_path, 15 * US, skew, wait=wait))
    assert least <= -skew <= most
    assert most - least <= 2 * max(skew, 0) + 75 * US


def test_kernels_before_their_launches_show_a_device_that_is_behind(tmp_path: Path) -> None:
    least, most = limits(kineto(tmp_path, 15 * US, -394 * US))
    assert (round(least, -3), round(most, -3)) == (379 * US, 429 * US)
    assert limits(kineto(tmp_path, 15 * US, -394 * US, wait=8 * US))[1] < 410 * US


def test_long_latencies_hide_as_much(tmp_path: Path) -> None:
    least, most = limits(kineto(tmp_path, 9 * MS, 0))
    assert (round(least, -3), round(most, -3)) == (-9 * MS, 9 * MS)
    assert limits(kineto(tmp_path, 9 * MS, 0, wait=8 * US))[1] < 20 * US


@pytest.mark.parametrize("late", [0, 100])
def test_a_device_whose_clock_drifts_by_100_ppm_is_within_its_limits(late: int, tmp_path: Path) -> None:
    path = kineto(tmp_path, 15 * US, 0, count=2000)
    document = json.loads(path.read_text())
    for event in document["traceEvents"][1::2]:
        event["ts"] += (event["ts"] + 1_000_000 * late) * 1e-4
    path.write_text(json.dumps(document))
    at = 1900 * MS
    least, most = limits(path, at)
    skew = -round((at + late * SECOND) * 1e-4)
    assert least - 20 * US <= skew <= most
    assert least < skew + 20 * US


def test_limits_widen_with_the_drift() -> None:
    skew = DeviceSkew(*(np.array([float(value)]) for value in (0, -5 * US, 0, 9 * US)))
    least, most = skew.at(np.array([0, SECOND, -2 * SECOND]))
    assert least.tolist() == [-5 * US, -105 * US, -205 * US]
    assert most.tolist() == [9 * US, 105 * US, 205 * US]


def test_a_few_wrong_ids_do_not_matter(tmp_path: Path) -> None:
    path = kineto(tmp_path, 15 * US, 0)
    document = json.loads(path.read_text())
    document["traceEvents"][1]["ts"] -= 10_000
    path.write_text(json.dumps(document))
    assert limits(path)[0] < 0


def test_without_launches_the_profiler_is_believed() -> None:
    assert [limit.tolist() for limit in NOTHING_KNOWN.at(np.array([0]))] == [[-50 * US], [50 * US]]


def test_a_device_that_is_behind_moves_no_host_beyond_the_bound() -> None:
    """The kernels of rank 1 begin 364 µs before their launches: its device is 394 µs behind."""
    line = align(ranks("gpu_skew")).receipt[1]
    assert line.verdict == "ok"
    assert line.bound_ns is not None
    assert 395 * US < line.bound_ns < 600 * US
    assert any("120 of 120 kernels start before" in warning for warning in line.warnings)


@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        (lambda event: event, "ok"),
        (lambda event: event | {"cat": "cpu_op"}, "assumed"),
        (lambda event: event | {"args": {}}, "assumed"),
        (lambda event: None, "ok"),
    ],
    ids=["launches", "operators", "launches without ids", "no events of the host"],
)
def test_a_device_that_nothing_ties_to_its_host_places_that_by_an_assumption(
    calls: Callable[[dict[str, Any]], Any], verdict: str, tmp_path: Path
) -> None:
    """The device of the second host is 1 ms ahead of it, which only launches tell."""
    job, clocks = script(40).job(np.random.default_rng(1)), (HostClock(), HostClock(3.0 * MS))
    for path in (paths := written(Recorded(job, clocks, (0.0, 1.0 * MS)), tmp_path, np.random.default_rng(2))):
        document = json.loads(path.read_text())
        changed = [calls(event) if event["cat"] == "cuda_runtime" else event for event in document["traceEvents"]]
        path.write_text(json.dumps(document | {"traceEvents": list(filter(None, changed))}))
    found = align([read(path) for path in paths])
    line = found.receipt[1]
    assert line.verdict == verdict
    for said in (line.method, found.hosts_apart[0].describe()):
        assert ("taking the clocks of devices for those of their hosts" in said) == (verdict == "assumed")
    assert line.moved_ns is not None
    assert line.bound_ns is not None
    assert (abs(line.moved_ns + 3 * MS) < line.bound_ns) == (calls({"args": 1}) == {"args": 1})


def step(folder: Path) -> Path:
    """A file of one slice on the wall clock."""
    path = folder / "other.json"
    events = [{"ph": "X", "name": "step", "ts": 5.0, "dur": 9.0, "pid": 1, "tid": 1}]
    path.write_text(json.dumps({"baseTimeNanoseconds": _BASE, "traceEvents": events}))
    return path


def test_one_file_whose_kernels_are_early_has_a_bound_that_contains_it(tmp_path: Path) -> None:
    line = align([read(kineto(tmp_path, 15 * US, -394 * US)), read(step(tmp_path))]).receipt[0]
    assert line.bound_ns is not None
    assert 394 * US < line.bound_ns < 500 * US


def test_one_file_alone_says_that_its_device_is_behind(tmp_path: Path) -> None:
    (line,) = align([read(kineto(tmp_path, 15 * US, -394 * US))]).receipt
    assert line.bound_ns is not None
    assert line.bound_ns > 379 * US
    assert any("start before the calls that launched them" in warning for warning in line.warnings)
    (line,) = align([read(kineto(tmp_path, 15 * US, 0))]).receipt
    assert not line.warnings


def test_convert_and_merge_of_one_file_warn_of_its_device(tmp_path: Path) -> None:
    path = kineto(tmp_path, 15 * US, -394 * US)
    for command in ("convert", "merge"):
        said = CliRunner().invoke(cli, [command, str(path), "-f", "-o", str(tmp_path / "o.pftrace")]).stderr
        assert said.count("start before the calls that launched them") == 1


def test_clocks_say_that_a_device_is_behind_with_the_bound_of_the_alignment(tmp_path: Path) -> None:
    path = kineto(tmp_path, 15 * US, -394 * US)
    other = tmp_path / "other"
    other.mkdir()
    traces = [read(path), read(kineto(other, 15 * US, 0))]
    found, aligned = survey(traces), align(traces).receipt[0]
    line = found.clocks[0]
    assert line.warnings == tuple(aligned.warnings)
    assert line.realtime is not None
    assert line.realtime.bound_ns is not None
    assert (aligned.bound_ns or 0) - 1 <= line.realtime.bound_ns <= (aligned.bound_ns or 0)  # with its resolution
    assert found.pairs[0].clock_map is not None
    assert (found.pairs[0].clock_map.bound_ns or 0) >= line.realtime.bound_ns
    said = CliRunner().invoke(cli, ["clocks", str(path)])
    assert said.stdout.count("the clock of its device is behind") == 1
    assert not found.clocks[1].warnings
