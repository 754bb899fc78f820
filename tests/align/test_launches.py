"""Launches of a host, and kernels of a device with the same ids: related if they are of one run, refused if not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from tests.align.pairs import private
from traceconv.align import align
from traceconv.align.constraints import Constraints, NameMap
from traceconv.align.estimate import Estimate, Method, PairEstimate, Prior
from traceconv.align.evidence import estimate_pair
from traceconv.align.inputs import ClockInput
from traceconv.align.launches import _longest_ascent, align_launches, launches_of
from traceconv.errors import TraceconvError
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, ClockMap, Run, Step, Verdict, Zero
from traceconv.model.layout import lay_out
from traceconv.model.marks import GPU_LAUNCHES, GPU_MARKS, FormatMarks
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

US = 1e3
ITERATIONS, KERNELS = 60, 12
HOST_ZERO, DEVICE_ZERO = 5_000_000_000, 9_000_000_000


@dataclass(frozen=True)
class Made:
    """A run: what each clock noted down, in true time of the host from its zero, ns."""

    calls: list[tuple[float, float, str, int]]
    work: list[tuple[float, float, str, int]]


def run(seed: int, *, waits: bool = True, busy: bool = False, jitter: float = 0.2, by_copies: bool = False) -> Made:
    """Iterations of some kernels, each with a wait at its end; work is in order on one stream.

    Args:
        seed: of the noise; the programme is always the same one.
        waits: whether iterations end with a wait.
        busy: whether kernels take longer than the gaps between their launches, so that they queue up.
        jitter: how much gaps vary, as a share.
        by_copies: whether the wait is a copy to the host.
    """
    noise, programme = np.random.default_rng(seed), np.random.default_rng(0)
    gaps = programme.uniform(20, 90, KERNELS) * US
    lengths = programme.uniform(60, 200, KERNELS) * US if busy else programme.uniform(4, 15, KERNELS) * US
    calls: list[tuple[float, float, str, int]] = []
    work: list[tuple[float, float, str, int]] = []
    now = free = 0.0
    number = 1
    for _ in range(ITERATIONS):
        for kernel in range(KERNELS):
            now += gaps[kernel] * (1 + jitter * abs(noise.normal()))
            begin = max(free + 1 * US, now + (2 + noise.exponential(4)) * US)
            free = begin + lengths[kernel] * (1 + jitter / 4 * abs(noise.normal()))
            calls.append((now, 4 * US, "cudaLaunchKernel", number))
            work.append((begin, free - begin, f"kernel {kernel}", number))
            number += 1
            now += 5 * US
        if waits:
            back = free
            if by_copies:
                begin = max(free, now + 3 * US)
                back = free = begin + 5 * US
                work.append((begin, 5 * US, "[CUDA memcpy DtoH]", number))
            back = max(now + 1 * US, back) + (2 + noise.exponential(4)) * US
            calls.append((now, back - now, "cudaMemcpy" if by_copies else "cudaDeviceSynchronize", number))
            number += 1
            now = back
    return Made(calls, work)


def paced_run(seed: int, late: float = 0.03) -> Made:
    """A request each millisecond, by a clock of whole microseconds: one kernel each, and a wait after each fourth.

    Args:
        seed: of the noise.
        late: the share of requests that come 1 to 4 us late.
    """
    noise = np.random.default_rng(seed)
    made = Made([], [])
    now = 0.0
    for number in range(1, 201):
        now += 1000 * US + (noise.random() < late) * noise.integers(1, 5) * US
        made.calls.append((now, 5 * US, "cudaLaunchKernel", number))
        made.work.append((now + 20 * US, 200 * US, "gemm", number))
        if number % 4 == 0:
            made.calls.append((now + 10 * US, 290 * US, "cudaDeviceSynchronize", 1000 + number))
    return made


def host_file(made: Made, clock: ClockDomain | None = None) -> Trace:
    out = Builder(SourceInfo("host.json", "host", marks=GPU_MARKS), clock or private("host"))
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "main")
    for at, (start, dur, name, number) in enumerate(made.calls, 1):
        ts, end = HOST_ZERO + int(start), HOST_ZERO + int(start + dur)
        out.slice(track, ts, end - ts, name, "cuda_runtime", {"correlation": number}, at)
    return lay_out(out.finish())


def device_file(
    made: Made, offset: float, drift: float, wrong: float = 0.0, seed: int = 0, clock: ClockDomain | None = None
) -> Trace:
    """The device's side on its own clock; a share of the ids are those of others, or of nothing."""
    rng = np.random.default_rng(seed)
    out = Builder(SourceInfo("device.csv", "device", marks=GPU_MARKS), clock or private("device"))
    device = out.tracks.process("GPU 0", pid=2)
    track = out.tracks.thread(device, 7, "stream 7")
    ids = np.array([number for *_, number in made.work])
    chosen = np.flatnonzero(rng.random(len(ids)) < wrong)
    moved, lost = chosen[: 2 * len(chosen) // 3], chosen[2 * len(chosen) // 3 :]
    ids[moved] = ids[np.roll(rng.permutation(moved), 1)]
    ids[lost] = rng.integers(1, ids.max() + 50, len(lost))
    for at, ((start, dur, name, _), number) in enumerate(zip(made.work, ids.tolist(), strict=True), 1):
        ts, end = (DEVICE_ZERO + int(time * (1 + drift) + offset) for time in (start, start + dur))
        category = "memcpy" if "memcpy" in name else "kernel"
        out.slice(track, ts, end - ts, name, category, {"correlation_id": number}, at)
    return lay_out(out.finish())


def without(made: Made, share: float, seed: int) -> Made:
    """A run, of whose work some was lost."""
    kept = np.random.default_rng(seed).random(len(made.work)) >= share
    return Made(made.calls, [row for row, there in zip(made.work, kept.tolist(), strict=True) if there])


def related(host: Trace, device: Trace, known: ClockMap | None = None) -> PairEstimate:
    found = estimate_pair(ClockInput(0, 0, host), ClockInput(1, 0, device), known, NameMap())
    assert found is not None
    assert found.estimate.method is Method.LAUNCHES
    return found


def judged(host: Trace, device: Trace) -> Estimate:
    return related(host, device).estimate


def error(pair: PairEstimate, offset: float, drift: float, last: float) -> float:
    """The greatest error of the map between the start and the end."""
    times = np.linspace(0, last, 50)
    true = DEVICE_ZERO + times * (1 + drift) + offset
    return max(
        abs(pair.clock_map.at(HOST_ZERO + int(time)) - there)
        for time, there in zip(times.tolist(), true.tolist(), strict=True)
    )


@pytest.mark.parametrize("wrong", [0.0, 0.05])
@pytest.mark.parametrize("kind", ["idle", "busy", "copies"])
def test_truth_lies_within_the_bound(kind: str, wrong: float) -> None:
    right, bounds = [], []
    for seed in range(40):
        rng = np.random.default_rng(1000 + seed)
        offset, drift = rng.uniform(-1e9, 1e9), rng.uniform(-50e-6, 50e-6)
        made = run(seed, busy=kind == "busy", by_copies=kind == "copies")
        pair = related(host_file(made), device_file(made, offset, drift, wrong, seed))
        assert pair.estimate.verdict is Verdict.OK, pair.estimate.reason
        right.append(error(pair, offset, drift, made.calls[-1][0]) <= pair.bound_ns)
        bounds.append(pair.bound_ns)
    assert np.mean(right) >= 0.95
    assert np.median(bounds) < 15 * US


@pytest.mark.parametrize("busy", [False, True])
def test_another_run_of_the_same_programme_is_refused(busy: bool) -> None:
    """The ids, the names and the order are all the same: both count from 1."""
    for seed in range(30):
        for jitter in (0.2, 0.01, 0.001):
            made, other = (run(number, busy=busy, jitter=jitter) for number in (seed, 500 + seed))
            estimate = judged(host_file(made), device_file(other, 1e6, 0.0))
            assert estimate.verdict is not Verdict.OK
            assert jitter < 0.2 or (
                estimate.verdict is Verdict.INSUFFICIENT and "perhaps two runs" in str(estimate.reason)
            )


def test_another_run_without_waits_is_refused_also_near_what_is_known() -> None:
    for seed in range(30):
        made, other = run(seed, waits=False), run(500 + seed, waits=False)
        offset = DEVICE_ZERO - HOST_ZERO
        known = ClockMap(offset, 5_000_000, (Step("a guess"),))
        estimate = related(host_file(made), device_file(other, 0.0, 0.0), known).estimate
        assert estimate.verdict is not Verdict.OK


def test_exactly_regular_runs_are_not_told_apart_and_so_not_believed() -> None:
    made, other = run(1, jitter=0.0), run(2, jitter=0.0)
    assert judged(host_file(made), device_file(made, 0.0, 0.0)).verdict is not Verdict.OK
    assert judged(host_file(made), device_file(other, 0.0, 0.0)).verdict is not Verdict.OK


@pytest.mark.parametrize("lost", [0.0, 0.2])
@pytest.mark.parametrize("late", [0.01, 0.02, 0.03, 0.2])
def test_paced_work_on_a_coarse_clock_is_believed_only_where_it_varies(late: float, lost: float) -> None:
    """Most gaps are equal, in all runs alike: that they are says nothing, whatever their order.

    Nor does it say anything that the gap is twice as long where something was lost.
    """
    for seed in range(20):
        made, other = (paced_run(number, late) for number in (seed, 500 + seed))
        estimate = judged(host_file(made), device_file(without(other, lost, seed), 5e9, 0.0))
        assert estimate.verdict is not Verdict.OK, estimate.reason
        assert late == 0.2 or "too little shows that the files are of one run" in str(estimate.reason)
        own = judged(host_file(made), device_file(without(made, lost, seed), 5e9, 0.0))
        assert (own.verdict is Verdict.OK) if late == 0.2 else own.verdict.unusable


def test_other_programmes_are_refused() -> None:
    """Unrelated work, the ids of which count from 1 as well."""
    rng = np.random.default_rng(3)
    for seed in range(10):
        times = np.cumsum(rng.exponential(80 * US, 700))
        other = Made([], [(time, 3 * US, f"kernel {number % 7}", number) for number, time in enumerate(times, 1)])
        assert judged(host_file(run(seed)), device_file(other, 0.0, 0.0)).verdict.unusable


def test_without_waits_one_side_is_open() -> None:
    made = run(5, waits=False)
    host, device = host_file(made), device_file(made, 2e6, 10e-6)
    estimate = judged(host, device)
    assert estimate.verdict is Verdict.INSUFFICIENT
    assert "cudaDeviceSynchronize" in str(estimate.reason)
    with pytest.raises(TraceconvError):
        align([host, device])


@pytest.mark.parametrize(("to_host", "waits"), [("", 0), (".*", 60)])
def test_a_mark_that_says_nothing_matches_nothing(to_host: str, waits: int) -> None:
    """No call is a wait where the format does not say which copies go to the host."""
    made = run(5, waits=False)
    host, device = host_file(made), device_file(made, 2e6, 10e-6)
    for trace in (host, device):
        trace.sources[0].marks = FormatMarks(replace(GPU_LAUNCHES, copies=".*", to_host=to_host))
    pairs = launches_of(host, 0, device, 0)
    assert pairs is not None
    assert min(len(pairs.waited), 60) == waits


def test_what_is_known_is_the_other_side() -> None:
    """The kernels of a launch begin 2 us after it at the earliest: the later half of what is known is ruled out."""
    made = run(5, waits=False, jitter=0.6)
    shift = 90 * US
    known = ClockMap(int(DEVICE_ZERO - HOST_ZERO + shift), 100_000, (Step("known to 0.1 ms"),))
    pair = related(host_file(made), device_file(made, 0.0, 0.0), known)
    assert pair.estimate.verdict is Verdict.OK
    assert pair.bound_ns < 20 * US
    assert error(pair, 0.0, 0.0, made.calls[-1][0]) <= pair.bound_ns


def test_what_is_known_and_impossible_is_said() -> None:
    made = run(5)
    known = ClockMap(DEVICE_ZERO - HOST_ZERO + 5_000_000, 1_000_000, (Step("wrong"),))
    estimate = related(host_file(made), device_file(made, 0.0, 0.0), known).estimate
    assert estimate.verdict is Verdict.INCONSISTENT


def test_files_are_put_together_in_either_order() -> None:
    made = run(7)
    host, device = host_file(made), device_file(made, 3e8, -20e-6, 0.05)
    for files in ([host, device], [device, host]):
        line = align(files).receipt[1]
        assert line.verdict == Verdict.OK
        assert line.method.startswith("kernels and the calls that launched them")
        assert line.matches > 600
        assert line.drift_ppm == pytest.approx(20.0 if files[1] is device else -20.0, abs=5)


def test_the_word_of_the_user_is_compared() -> None:
    made = run(7)
    host, device = host_file(made), device_file(made, 0.0, 0.0)
    line = align([host, device], constraints=Constraints(offsets={1: HOST_ZERO - DEVICE_ZERO + 2_000_000})).receipt[1]
    assert "fit 2 ms earlier" in line.warnings[0]


def test_few_ids_and_ids_that_are_not_their_own_say_nothing() -> None:
    made = run(1)
    few = Made(made.calls[:21], made.work[:20])
    assert "only 20 launch ids" in str(judged(host_file(few), device_file(few, 0.0, 0.0)).reason)
    twice = Made(made.calls, [*made.work, *((start + 1e9, dur, name, at) for start, dur, name, at in made.work[:-5])])
    estimate = judged(host_file(made), device_file(twice, 0.0, 0.0))
    assert estimate.verdict is Verdict.INSUFFICIENT
    assert "left out: 1430 slices whose id belongs to another slice" in str(estimate.reason)


def test_ids_inside_of_other_args_are_of_other_things() -> None:
    made = run(1)
    out = Builder(SourceInfo("host.json", "host", marks=GPU_MARKS), private("host"))
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "main")
    for at, (start, dur, name, number) in enumerate(made.calls, 1):
        args = {"of": {"correlation": 7, "return_value": 1}, "said": '"correlation": 8,', "correlation": number}
        out.slice(track, int(start), int(dur), name, "cuda_runtime", args, at)
    pairs = launches_of(lay_out(out.finish()), 0, device_file(made, 0.0, 0.0), 0)
    assert pairs is not None
    assert (len(pairs), pairs.joined.repeated) == (ITERATIONS * KERNELS, 0)


def test_a_file_with_both_ends_says_nothing_about_others() -> None:
    """As of two processes of one programme, each with its own kernels."""
    made = run(1)
    out = Builder(SourceInfo("both.json", "both", marks=GPU_MARKS), ClockDomain("both", Zero.UNKNOWN, Run.MONOTONIC, 1))
    process = out.tracks.process("run", pid=1)
    for track, category, rows in ((1, "cuda_runtime", made.calls), (2, "kernel", made.work)):
        thread = out.tracks.thread(process, track, category)
        for at, (start, dur, name, number) in enumerate(rows, 1):
            out.slice(thread, int(start), int(dur), name, category, {"correlation": number}, at)
    both = lay_out(out.finish())
    device = device_file(made, 0.0, 0.0)
    assert launches_of(both, 0, device, 0) is None
    assert launches_of(host_file(made), 0, both, 0) is None


def test_calls_that_failed_and_waits_of_other_devices_say_nothing() -> None:
    made = run(1)
    device = device_file(made, 0.0, 0.0)
    pairs = launches_of(host_file(made), 0, device, 0)
    assert pairs is not None
    assert (len(pairs), len(pairs.waited)) == (ITERATIONS * KERNELS, ITERATIONS)
    out = Builder(SourceInfo("two.csv", "two", marks=GPU_MARKS), private("two"))
    tracks = [out.tracks.thread(out.tracks.process(f"GPU {number}", pid=number), 7, "stream 7") for number in (1, 2)]
    for at, (start, dur, name, number) in enumerate(made.work, 1):
        out.slice(tracks[at % 2], int(start), int(dur), name, "kernel", {"correlation": number}, at)
    pairs = launches_of(host_file(made), 0, lay_out(out.finish()), 0)
    assert pairs is not None
    assert len(pairs.waited) == 0


def test_the_call_of_the_driver_inside_that_of_the_runtime_is_no_repetition() -> None:
    made = run(1)
    out = Builder(SourceInfo("host.json", "host", marks=GPU_MARKS), private("host"))
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "main")
    for at, (start, dur, name, number) in enumerate(made.calls, 1):
        out.slice(track, int(start), int(dur), name, "cuda_runtime", {"correlation": number}, at)
        out.slice(
            track, int(start) + 500, int(dur) - 1000, "cuLaunchKernel", "cuda_driver", {"correlation": number}, at
        )
    pairs = launches_of(lay_out(out.finish()), 0, device_file(made, 0.0, 0.0), 0)
    assert pairs is not None
    assert (len(pairs), pairs.joined.repeated) == (ITERATIONS * KERNELS, 0)
    assert align_launches(pairs, Prior()).verdict is Verdict.OK


def test_the_longest_ascent_leaves_out_what_is_out_of_order() -> None:
    values = np.array([1.0, 9.0, 2.0, 3.0, 0.0, 4.0, 4.0, 5.0])
    kept = _longest_ascent(values)
    assert kept == [0, 2, 3, 5, 6, 7]
    assert all(values[one] <= values[then] for one, then in pairwise(kept))


@pytest.mark.parametrize("category", ["cuda_runtime", "cuda_driver"])
def test_calls_of_two_processes_with_the_same_ids_are_no_evidence(category: str) -> None:
    """Each process counts from 1: which one launched the work of the other file is not known."""
    made = run(1)
    out = Builder(SourceInfo("host.json", "host", marks=GPU_MARKS), private("host"))
    for pid, own in ((1, "cuda_runtime"), (2, category)):
        track = out.tracks.thread(out.tracks.process("run", pid=pid), pid, "main")
        for at, (start, dur, name, number) in enumerate(made.calls, 1):
            out.slice(track, HOST_ZERO + int(start) * pid, int(dur), name, own, {"correlation": number}, at)
    assert launches_of(lay_out(out.finish()), 0, device_file(made, 0, 0), 0) is None
    assert launches_of(host_file(made), 0, device_file(made, 0, 0), 0) is not None
