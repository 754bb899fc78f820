"""Causality: what is out of order is found, with its number, size and place, and nothing else is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from tests.align.pairs import private, recordings
from traceconv.align import Alignment, Policy, align
from traceconv.align.causality import believed, causality
from traceconv.align.checks import Breaches, Causality, Check, Limit, Rule
from traceconv.align.constraints import Constraints
from traceconv.align.inputs import Placed, gathered
from traceconv.align.placement import place
from traceconv.errors import InconsistentClocks
from traceconv.model.builder import Builder
from traceconv.model.clocks import (
    MOST_DRIFT,
    NO_TIME,
    REALTIME,
    ClockDomain,
    ClockMap,
    ClockSnapshot,
    Provenance,
    Step,
    Verdict,
    Zero,
)
from traceconv.model.layout import lay_out
from traceconv.model.marks import ANY_TOOL_MARKS, GPU_MARKS
from traceconv.model.numbers import parse_duration
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

US = 1000


def with_flow(
    name: str, category: str, source: tuple[int, int], target: tuple[int, int], device: ClockDomain | None = None
) -> Trace:
    """Two slices (start, duration) and a flow from one to the other."""
    out = Builder(SourceInfo("gpu.json", "gpu", marks=ANY_TOOL_MARKS), REALTIME)
    host, queue = out.tracks.add("host"), out.tracks.add("queue")
    if device is not None:
        out.tracks[queue].clock = out.clocks.add(device)
    caller = out.slice(host, *source, "cudaLaunchKernel", at=1)
    out.flow(caller, out.slice(queue, *target, "sgemm", at=2), name, category)
    return lay_out(out.finish())


@pytest.mark.parametrize(
    ("name", "category", "target", "rule", "late"),
    [
        ("ac2g", "ac2g", (100, 50), Rule.LAUNCH, 0),
        ("launch", "", (99, 50), Rule.LAUNCH, 1),
        ("", "async_cpu_to_gpu", (40, 200), Rule.LAUNCH, 60),
        ("ncclSend", "", (40, 60), Rule.RECEIVE, 0),  # a receive waits: only its end must come after
        ("", "recv", (40, 50), Rule.RECEIVE, 10),
        ("fwdbwd", "fwdbwd", (70, 500), Rule.FLOW, 30),
    ],
)
def test_a_flow_in_a_file(name: str, category: str, target: tuple[int, int], rule: Rule, late: int) -> None:
    trace = with_flow(name, category, (100, 10), target)
    (check,) = causality([trace], align([trace])).checks
    place = "gpu.json:event 2 'sgemm', gpu.json:event 1 'cudaLaunchKernel'" if late else ""
    assert (check.rule, check.files, check.checked, check.before) == (rule, ("gpu.json",), 1, None)
    assert check.after.as_json() == Breaches(int(late > 0), late, place).as_json()


def test_a_backward_flow_is_said_to_be_a_fault_of_the_file() -> None:
    trace = with_flow("launch", "", (100, 10), (40, 50))
    found = causality([trace], align([trace]))
    total, line = found.describe()
    assert total == "causality: 1 flow checked, 1 out of order"
    assert line.strip().startswith("kernel before its launch: 1 of 1 flow of gpu.json, by up to 60 ns")
    assert line.endswith("a fault of the recording, not of the alignment")


def test_the_resolution_of_another_clock_is_allowed_for() -> None:
    device = private("device")
    snapshot = ClockSnapshot(device, 0, REALTIME, 5 * US, 0, "header")
    for start, late in ((0, 0), (-US, 999)):
        trace = with_flow("launch", "", (5 * US + 999, 10), (start, US), device)
        trace = trace.with_tables(snapshots=[snapshot])
        (check,) = causality([trace], align([trace])).checks
        assert check.after.worst_ns == late


def test_positions_that_were_invented_are_not_judged() -> None:
    trace = with_flow("launch", "", (100, 10), (0, 5), NO_TIME)
    assert causality([trace], align([trace])).checks == ()
    assert causality([trace], align([trace])).describe() == []


@pytest.mark.parametrize(("rule", "one"), [(Rule.LAUNCH, "launch"), (Rule.INSIDE, "match"), (Rule.CALL, "call")])
def test_one_of_them_is_said_to_be_one(rule: Rule, one: str) -> None:
    found = Causality((Check(rule, ("a", "b"), 1, Breaches(0, 0)),))
    assert found.describe() == [f"causality: 1 {one} checked, all in order"]


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return recordings()


@pytest.fixture(scope="module")
def alignment(traces: list[Trace]) -> Alignment:
    return align(traces)


def test_matched_slices_lie_inside_after_the_alignment(traces: list[Trace], alignment: Alignment) -> None:
    (check,) = causality(traces, alignment).checks
    assert (check.rule, check.files) == (Rule.INSIDE, ("framework.json", "library.log"))
    assert check.checked == alignment.pairs[0].estimate.matches > 1000
    assert check.after.count < 0.03 * check.checked  # some matches are wrong, since events are missing
    assert check.before is None
    assert "not known before the correction" in str(check.describe())


def test_the_order_of_the_inputs_does_not_matter(traces: list[Trace], alignment: Alignment) -> None:
    turned = traces[::-1]
    (check,) = causality(turned, align(turned)).checks
    (straight,) = causality(traces, alignment).checks
    assert check.files == ("library.log", "framework.json")
    assert check.checked == straight.checked
    assert check.after.count == pytest.approx(straight.after.count, abs=5)


def test_a_wrong_map_breaks_nearly_all(traces: list[Trace], alignment: Alignment) -> None:
    maps = [dict(own) for own in alignment.maps]
    maps[1][0] = maps[1][0].then(ClockMap(-1_000_000))
    (check,) = causality(traces, structs.replace(alignment, maps=maps)).checks
    assert check.after.count > 0.95 * check.checked
    assert check.after.worst_ns == pytest.approx(1_000_000, abs=20_000)
    trace = traces[1]
    origin = int(str(check.after.place).partition("event ")[2].partition(" ")[0])
    assert f"library.log:event {origin} " in str(check.after.place)
    assert origin in trace.slices.origin


def test_what_the_files_said_is_compared(traces: list[Trace], alignment: Alignment) -> None:
    """A rough relation in the files: the true one, off by 300 µs."""
    way = alignment.maps[1][0]
    rough = ClockSnapshot(
        traces[1].clocks[0], way.at_ns, REALTIME, way.at(way.at_ns) + 300 * US, 500 * US, "start in the file name"
    )
    first = traces[0].with_tables(clocks=[private("wall", Zero.UNIX_EPOCH)])
    second = traces[1].with_tables(snapshots=[rough])
    both = [first, second]
    (check,) = causality(both, align(both)).checks
    assert check.before is not None
    assert check.before.count > 0.9 * check.checked
    assert check.before.worst_ns == pytest.approx(300 * US, rel=0.2)
    assert check.after.count < 0.03 * check.checked
    assert "before the correction: " in str(check.describe())


def moved(alignment: Alignment, by_ns: int, **changes: Any) -> Alignment:
    """The alignment with the second file somewhere else, on the same evidence."""
    maps = [dict(own) for own in alignment.maps]
    way = maps[1][0]
    maps[1][0] = structs.replace(way.then(ClockMap(by_ns)), **changes)
    return structs.replace(alignment, maps=maps)


def test_a_check_measures_against_the_bound_that_is_stated(traces: list[Trace], alignment: Alignment) -> None:
    (pair,) = alignment.pairs
    (check,) = causality(traces, alignment).checks
    assert check.limit.bound_ns == pair.bound_ns < 5 * US
    assert 0 < check.beyond <= check.limit.excused(check.checked)
    assert check.verdict is Verdict.OK
    assert believed(alignment, causality(traces, alignment)) is alignment


@pytest.mark.parametrize("by_us", [-30, 30, 1000])
def test_what_its_own_checks_contradict_is_inconsistent(traces: list[Trace], alignment: Alignment, by_us: int) -> None:
    wrong = moved(alignment, by_us * US)
    found = causality(traces, wrong)
    (check,) = found.checks
    assert check.verdict is Verdict.INCONSISTENT
    with pytest.raises(InconsistentClocks, match=r"child outside its parent: .* than the possible") as error:
        believed(wrong, found)
    assert (error.value.exit_code, error.value.verdict) == (4, "inconsistent")
    best = believed(wrong, found, "best")
    assert [line.verdict for line in best.receipt] == ["ok", "inconsistent"]
    assert str(check.describe()) in best.receipt[1].warnings[-1]


def test_the_word_of_the_user_stays_with_a_warning(traces: list[Trace], alignment: Alignment) -> None:
    steps = (Step("--drift", Provenance.USER), Step("the same events in both", Provenance.ESTIMATED))
    wrong = moved(alignment, 1000 * US, steps=steps, verdict=Verdict.ASSUMED)
    found = causality(traces, wrong)
    lines = believed(wrong, found).receipt
    assert lines[1].verdict == "assumed"
    assert "child outside its parent" in lines[1].warnings[-1]


def test_where_nothing_is_stated_nothing_is_contradicted(traces: list[Trace], alignment: Alignment) -> None:
    unknown = moved(alignment, 1000 * US, bound_ns=None, rests_on=frozenset(), verdict=Verdict.SEPARATE)
    (check,) = causality(traces, unknown).checks
    assert (check.after.count > 1000, check.limit, check.beyond) == (True, Limit(), 0)


def test_files_whose_work_sticks_out_are_refused() -> None:
    """Of the work, 5 % lies up to 15 µs off, where all else lies inside its calls: these are not wrong matches."""
    framework, library = recordings()
    rng = np.random.default_rng(1)
    count = len(library.slices.ts)
    off = rng.choice([-1, 1], count) * np.where(rng.random(count) < 0.05, rng.integers(6, 16, count), 0)
    both = [framework, library.with_tables(slices=replace(library.slices, ts=library.slices.ts + off * US))]
    found = align(both)
    checks = causality(both, found)
    with pytest.raises(InconsistentClocks, match="its events break a rule"):
        believed(found, checks)


def test_refused_pairs_are_not_judged(traces: list[Trace], alignment: Alignment) -> None:
    (pair,) = alignment.pairs
    refused = structs.replace(pair, estimate=structs.replace(pair.estimate, verdict=Verdict.AMBIGUOUS))
    assert causality(traces, structs.replace(alignment, pairs=[refused])).checks == ()


def gpu_files(early: int = 0, *, known: bool = True) -> list[Trace]:
    """A file with calls and one with their kernels, 10 µs later but the last one, which is early by so many ns."""
    host = Builder(SourceInfo("host.json", "host", marks=GPU_MARKS), REALTIME if known else private("host"))
    device = Builder(SourceInfo("device.csv", "device", marks=GPU_MARKS), REALTIME if known else private("device"))
    thread, queue = host.tracks.add("main"), device.tracks.add("stream 7")
    for number in range(1, 41):
        ts = number * 50 * US
        host.slice(thread, ts, US, "cudaLaunchKernel", "cuda_runtime", {"correlation": number}, number)
        begin = ts - early if early and number == 40 else ts + 10 * US
        device.slice(queue, begin, 5 * US, "sgemm", "kernel", {"correlation": number}, number)
    return [lay_out(one.finish()) for one in (host, device)]


@pytest.mark.parametrize("turned", [False, True])
def test_kernels_of_one_file_begin_after_their_launches_in_another_one(turned: bool) -> None:
    for early, late in ((0, 0), (300, 299)):
        files = gpu_files(early)[:: -1 if turned else 1]
        found = causality(files, align(files))
        (check,) = found.checks
        assert (check.rule, check.files, check.checked) == (Rule.LAUNCH, ("host.json", "device.csv"), 40)
        assert check.after == check.before
        assert (check.after.count, check.after.worst_ns) == (int(late > 0), late)
        assert found.describe()[0].startswith("causality: 40 launches checked, ")
    assert "40 launches of host.json and device.csv, by up to 299 ns (device.csv:event 40 'sgemm', " in str(
        check.describe()
    )


def test_what_the_user_says_is_judged_by_the_launches() -> None:
    files = gpu_files(known=False)
    (check,) = causality(files, align(files, constraints=Constraints(offsets={1: -15 * US}))).checks
    assert (check.before, check.after.count, check.after.worst_ns) == (None, 40, 4 * US)  # such clocks count in µs
    assert "not known before the correction" in str(check.describe())


@pytest.mark.parametrize("early_us", [10, 5_000, 5_000_000])
@pytest.mark.parametrize("turned", [False, True])
def test_clocks_under_which_most_kernels_begin_before_their_launches_are_refused(early_us: int, turned: bool) -> None:
    """As the files state them, also of two files of one format; the word of the user stands, with a warning."""
    host, device = (replace(one, sources=[structs.replace(one.sources[0], format="one")]) for one in gpu_files())
    early = device.slices.ts - (early_us + 10) * US
    wrong = device.with_tables(slices=replace(device.slices, ts=early))
    with pytest.raises(InconsistentClocks, match="40 of 40 kernels start before the calls that launched them") as error:
        align([wrong, host] if turned else [host, wrong])
    assert error.value.exit_code == 4
    (option,) = re.findall(r"--offset device.csv=TIME; it is at least (\S+ \S+)$", error.value.hint)
    assert parse_duration(option.replace(" ", "").replace("µ", "u")) == early_us * US
    found = align([host, device], constraints=Constraints(offsets={1: -(early_us + 10) * US}))
    assert any("40 of 40 kernels start before the calls" in text for text in found.receipt[1].warnings)
    assert found.receipt[1].verdict == "assumed"


def test_a_drift_beyond_all_clocks_is_refused() -> None:
    """Whatever it comes from: maps cannot be applied with it, and keep no order."""
    inputs = gathered(gpu_files()[:1])
    decision = Placed({(0, 0): ClockMap(drift=MOST_DRIFT)})
    place(inputs, decision, Policy())
    with pytest.raises(InconsistentClocks, match="contradict each other"):
        place(inputs, Placed({(0, 0): ClockMap(drift=MOST_DRIFT + 1)}), Policy())


def waited_files(late: int, formats: tuple[str, str]) -> list[Trace]:
    """A file with calls that launch and wait, and one with their kernels, which state that they are late by some ns."""
    rng, ts = np.random.default_rng(3), US
    infos = [SourceInfo(f"{name}.json", name, marks=GPU_MARKS) for name in formats]
    host, device = (Builder(info, REALTIME) for info in infos)
    thread, queue = host.tracks.add("main"), device.tracks.add("stream 7")
    for number in range(1, 101):
        length = int(rng.integers(50, 3000)) * US
        host.slice(thread, ts, 5 * US, "cudaLaunchKernel", "cuda_runtime", {"correlation": number}, number)
        host.slice(thread, ts + 6 * US, length + 10 * US, "cudaDeviceSynchronize", "cuda_runtime", {}, number)
        device.slice(queue, ts + 12 * US + late, length, "sgemm", "kernel", {"correlation": number}, number)
        ts += length + int(rng.integers(20, 4000)) * US
    return [lay_out(builder.finish()) for builder in (host, device)]


def test_calls_that_wait_return_after_the_work() -> None:
    files = waited_files(0, ("one", "one"))
    launches, waits = causality(files, align(files)).checks
    assert (waits.rule, waits.checked, waits.after.count) == (Rule.WAIT, 100, 0)
    files = waited_files(400 * US, ("one", "one"))
    found = align(files)
    launches, waits = (checks := causality(files, found)).checks
    assert (launches.after.count, waits.after.count, waits.after.worst_ns) == (0, 100, 396 * US - 2)
    with pytest.raises(InconsistentClocks, match="wait returned before its work: 100 of 100 waits"):
        believed(found, checks)


@pytest.mark.parametrize("late_us", [900, 1_100, 20_000])
def test_launches_contradict_stated_clocks_however_far_they_are_off(late_us: int) -> None:
    files = waited_files(late_us * US, ("host", "device"))
    with pytest.raises(InconsistentClocks, match="contradict their events: 100 events fit only if") as error:
        align(files)
    hint = re.match(r"--offset (\w+)\.json=([+-][\d.]+m?u?s)", error.value.hint)
    assert hint is not None
    moved = parse_duration(hint[2]) * (1 if hint[1] == "host" else -1)
    assert abs(moved - late_us * US) < 10 * US


def test_launches_of_several_processes_are_not_mixed_up() -> None:
    files = [*gpu_files(), *gpu_files()]
    assert causality(files, align(files)).checks == ()


def test_a_million_flows_take_little_time() -> None:
    trace = with_flow("launch", "", (100, 10), (110, 5))
    many = np.zeros(1_000_000, np.int64)
    flows = trace.flows
    columns = {
        "from_slice": many + flows.from_slice[0],
        "to_slice": many + flows.to_slice[0],
        "name": (many + flows.name[0]).astype(np.int32),
        "category": (many + flows.category[0]).astype(np.int32),
        "origin": many,
    }
    (check,) = causality([trace.with_tables(flows=replace(flows, **columns))], align([trace])).checks
    assert (check.checked, check.after.count) == (1_000_000, 0)
