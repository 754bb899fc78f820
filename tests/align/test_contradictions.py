"""Several inputs together: loops that close or not, files that their events contradict, clocks of one machine."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from tests import commands
from tests.benchmarks.alignment.recordings import load, truth, without_metadata
from tests.benchmarks.alignment.simulate import Run, Shape, run
from tests.benchmarks.alignment.trials import late_pair
from tests.benchmarks.alignment.trials import recorded as on_unknown_clock
from tests.golden import ROOT as GOLDEN
from traceconv.align import Policy, align, comparison, evidence
from traceconv.align.constraints import Constraints, NameMap, parse_constraints
from traceconv.align.duplicates import same_recording
from traceconv.align.estimate import PairEstimate
from traceconv.align.inputs import ClockInput
from traceconv.errors import InconsistentClocks, UnrelatedClocks
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import (
    BOOTTIME,
    REALTIME,
    WELL_KNOWN_NS,
    ClockDomain,
    ClockMap,
    ClockSnapshot,
    LocalTime,
    Provenance,
    Zero,
)
from traceconv.model.clocks import Run as Runs
from traceconv.model.layout import lay_out
from traceconv.model.numbers import format_time, parse_duration
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import SliceId, Trace

NAMES = ("Conv", "Relu", "MatMul", "Softmax")
OWN = ClockDomain("own clock", Zero.UNKNOWN, Runs.MONOTONIC, 1000)
BOOT = ClockDomain("CLOCK_MONOTONIC", Zero.BOOT, Runs.MONOTONIC, 1)
EPOCH_NS = 1_790_000_000 * 10**9
QUARTER_NS = 900 * 10**9


def made(seed: int = 1000, iterations: int = 40) -> Run:
    return run(np.random.default_rng(seed), Shape(iterations=iterations, operators=12))


def view(
    name: str,
    work: Run,
    shift_ns: int,
    clock: ClockDomain = OWN,
    depth: int = 0,
    snapshots: tuple[ClockSnapshot, ...] = (),
    format: str = "",
) -> Trace:
    """What one tool sees of a run: each operator a little inside of what an outer tool sees."""
    out = Builder(SourceInfo(name, format or f"format of {name}"), clock)
    track = out.tracks.thread(out.tracks.process("p"), 1)
    inside = 1500 * depth
    for start, dur, kind in zip(work.start, work.dur, work.kind, strict=True):
        begin = int(start + inside) // 1000 * 1000
        end = max(int(start + dur - inside) // 1000 * 1000, begin)
        out.slice(track, begin + shift_ns, end - begin, NAMES[int(kind)])
    for snapshot in snapshots:
        out.clocks.snapshot(snapshot)
    return lay_out(out.finish())


def snap(unix_ns: int, bound_ns: int, local: LocalTime | None = None) -> ClockSnapshot:
    who = Provenance.METADATA if local is None else Provenance.ASSUMED
    return ClockSnapshot(OWN, 0, REALTIME, unix_ns, bound_ns, "as the file says", local, who)


def test_three_traces_of_one_run_close_their_loop() -> None:
    work = made()
    shifts = [EPOCH_NS, 5_000_000_000, -77_000]
    clocks = [REALTIME, OWN, OWN]
    traces = [view(f"{i}.json", work, shift, clocks[i], i) for i, shift in enumerate(shifts)]
    found = align(traces)
    assert len(found.pairs) == 3
    for line, shift in zip(found.receipt, shifts, strict=True):
        assert abs(line.offset_ns - (EPOCH_NS - shift)) <= (line.bound_ns or 0) <= 10_000


def test_the_receipt_counts_the_matches_that_a_place_rests_on() -> None:
    """The second is placed by the first; the third, which has more in common with it, by the second."""
    work = made()
    begin = replace(work, start=work.start[:240], dur=work.dur[:240], kind=work.kind[:240])
    few = view("a.json", begin, EPOCH_NS, REALTIME)
    traces = [few, view("b.json", work, 5_000_000_000, OWN, 1), view("c.json", work, -77_000, OWN, 2)]
    found = align(traces)
    by_files = {frozenset((pair.a.index, pair.b.index)): pair for pair in found.pairs}
    assert found.receipt[0].matches == 0
    assert found.receipt[1].matches == by_files[frozenset((0, 1))].estimate.matches
    assert by_files[frozenset((1, 2))].estimate.matches > found.receipt[1].matches


def test_files_that_the_events_contradict_are_refused() -> None:
    work = made()
    right = view("a.json", work, EPOCH_NS, REALTIME)
    wrong = view("b.json", work, EPOCH_NS + 40_000_000, REALTIME, 1)
    with pytest.raises(InconsistentClocks, match=r"a\.json and b\.json") as caught:
        align([right, wrong])
    assert caught.value.exit_code == 4
    assert "--offset" in caught.value.hint


def test_no_offset_is_searched_if_events_confirm_the_stated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(*args: object, **options: object) -> None:
        raise AssertionError("offsets were searched")

    monkeypatch.setattr(evidence, "align_sequences", searched)
    framework, library = (load(file) for file in truth()["torch_convnet"].values())
    assert [line.verdict for line in align([framework, library]).receipt] == ["ok", "ok"]
    late = replace(library.slices, ts=library.slices.ts + 40_000_000)
    with pytest.raises(AssertionError, match="were searched"):
        align([framework, library.with_tables(slices=late)])


def test_two_ranks_do_the_same_work_at_their_own_times() -> None:
    """What is alike in two recordings of one tool happened twice: it says nothing about their clocks."""
    work = made()
    ranks = [
        view(f"rank{rank}.json", work, EPOCH_NS + rank * 40_000_000, REALTIME, rank, format="pytorch-kineto")
        for rank in range(2)
    ]
    found = align(ranks)
    assert [line.offset_ns for line in found.receipt] == [0, 0]
    assert not found.pairs


def two(late_ns: int = 40_000_000, drift: float = 0.0) -> list[Trace]:
    """Two views of one run on the wall clock, of which the second says that it was later."""
    work = made()
    late = replace(work, start=work.start * (1 + drift)) if drift else work
    return [
        view("a.json", work, EPOCH_NS, REALTIME),
        view("b.json", late, EPOCH_NS + late_ns, REALTIME, 1),
    ]


@pytest.mark.parametrize(("offset", "late"), [(0, 40_000_000), (-39_900_000, 40_000_000), (50_000, 0), (10**12, 0)])
def test_the_word_of_the_user_stands_and_is_doubted(offset: int, late: int) -> None:
    """Far from where the events fit, and near to it."""
    found = align(two(late), constraints=Constraints(offsets={1: offset}))
    first, second = found.receipt
    assert (second.offset_ns, second.verdict) == (offset, "assumed")
    warning, *away = second.warnings
    assert len(away) == len(first.warnings) == (abs(offset) >= 10**12)  # and then they do not overlap
    match = re.search(r"fit (\S+ \S+) (earlier|later) .*--offset b.json=([^\s~]+)~\S+ would agree", warning)
    assert match is not None
    moved = parse_duration(match[1]) * (1 if match[2] == "later" else -1)
    assert moved == pytest.approx(-late - offset, rel=0.005)
    agreed = parse_duration(match[3])
    assert abs(agreed - -late) < 5_000
    assert not align(two(late), constraints=Constraints(offsets={1: agreed})).receipt[1].warnings
    assert second.as_json()["warnings"] == second.warnings


@pytest.mark.parametrize(("offset", "late"), [(0, 0), (-40_000_000, 40_000_000), (700, 0)])
def test_the_word_of_the_user_that_events_do_not_contradict(offset: int, late: int) -> None:
    assert not any(line.warnings for line in align(two(late), constraints=Constraints(offsets={1: offset})).receipt)


def test_an_anchor_and_a_drift_are_doubted_and_stand() -> None:
    begin = "a.json:Conv#1.start=b.json:Conv#2.start"
    names = ["a.json", "b.json"]
    traces = [view("a.json", made(), EPOCH_NS, REALTIME), view("b.json", made(), 7_000_000, OWN, 1)]
    found = align(traces, constraints=parse_constraints(names, anchors=[begin.replace("#2", "#1") + "~2s"]))
    assert not any(line.warnings for line in found.receipt)  # within what the anchor leaves open
    found = align(traces, constraints=parse_constraints(names, anchors=[f"{begin}~1us"]))
    assert [line.verdict for line in found.receipt] == ["ok", "assumed"]
    assert " matches, within " in found.receipt[1].warnings[0]
    found = align(two(0), constraints=parse_constraints(names, drifts=["b.json=800ppm"]))
    assert "at its start and" in found.receipt[1].warnings[0]


def test_several_clocks_of_a_file_are_doubted_by_one_anchor() -> None:
    files = [GOLDEN / "xplane" / "device" / "input.pb", GOLDEN / "onnxruntime" / "perf-counters-hw" / "input.json"]
    done = commands.run("align", *files, "--anchor", f"{files[0]}@1s={files[1]}@1ms")
    assert done.returncode == 0
    assert len(re.findall("^warning: input.json: its events .* would fit better", done.stderr, re.MULTILINE)) == 1


@pytest.mark.parametrize(("ppm", "doubted"), [(0, False), (0.5, False), (300, True)])
def test_the_events_place_a_clock_whose_drift_is_stated(ppm: float, doubted: bool) -> None:
    traces = [view("a.json", made(), EPOCH_NS, REALTIME), view("b.json", made(), 7_000_000, OWN, 1)]
    found = align(traces, constraints=parse_constraints(["a.json", "b.json"], drifts=[f"b.json={ppm}ppm"]))
    line = found.receipt[1]
    assert (line.verdict, line.drift_ppm) == ("assumed", ppm)
    assert line.matches > 400
    assert any(" matches, within " in text for text in line.warnings) == doubted
    if ppm == 0:
        assert line.bound_ns is not None
        assert abs(line.offset_ns - (EPOCH_NS - 7_000_000)) <= line.bound_ns


@pytest.mark.parametrize("off_ns", [300_000, -800_000, 100_000_000, 5 * 10**9])
def test_an_anchor_of_times_is_doubted_at_its_instant(off_ns: int) -> None:
    """Away from it, the unknown drift leaves more open than it is wrong by."""
    names = ["a.json", "b.json"]
    traces = [view("a.json", made(), EPOCH_NS, REALTIME), view("b.json", made(), 0, OWN, 1)]
    anchor = f"a.json@{EPOCH_NS - 5 * 10**9 + off_ns}ns=b.json@-5s~1us"
    found = align(traces, constraints=parse_constraints(names, anchors=[anchor]))
    line = found.receipt[1]
    assert (line.offset_ns, line.verdict) == (EPOCH_NS + off_ns, "assumed")
    assert (line.bound_ns or 0) > 10**6
    belongs = [re.search(r"fit (\S+ \S+) (earlier|later)", warning) for warning in line.warnings]
    ((size, to),) = [match.groups() for match in belongs if match is not None]
    assert parse_duration(size) * (1 if to == "later" else -1) == pytest.approx(-off_ns, rel=0.01)
    right = align(
        traces, constraints=parse_constraints(names, anchors=[f"a.json@{EPOCH_NS - 5 * 10**9}ns=b.json@-5s~1us"])
    )
    assert not right.receipt[1].warnings
    assert abs(right.receipt[1].offset_ns - EPOCH_NS) < 5_000


def test_an_offset_between_two_ranks_is_not_doubted() -> None:
    """What is alike in two recordings of one tool happened twice."""
    ranks = [view(f"rank{rank}.json", made(), EPOCH_NS, REALTIME, rank, format="pytorch-kineto") for rank in range(2)]
    assert not any(line.warnings for line in align(ranks, constraints=Constraints(offsets={1: 40_000_000})).receipt)


def test_a_place_between_the_places_where_events_fit_is_doubted() -> None:
    one = made(iterations=1)
    period = float(one.start[-1] + one.dur[-1]) + 300_000
    starts = np.concatenate([one.start + number * period for number in range(6)])
    work = replace(one, start=starts, dur=np.tile(one.dur, 6), kind=np.tile(one.kind, 6))
    traces = [view("a.json", work, EPOCH_NS, REALTIME), view("b.json", work, EPOCH_NS, REALTIME, 1)]
    between = align(traces, constraints=Constraints(offsets={1: round(0.5 * period)})).receipt[1]
    assert "at this offset, but at several others" in between.warnings[0]
    assert not align(traces, constraints=Constraints(offsets={1: round(period)})).receipt[1].warnings


def test_no_warning_where_events_say_nothing() -> None:
    traces = [view("a.json", made(1000), EPOCH_NS, REALTIME), view("b.json", made(1001), EPOCH_NS, REALTIME, 1)]
    assert not any(line.warnings for line in align(traces, constraints=Constraints(offsets={1: 5_000_000})).receipt)


@pytest.mark.parametrize("late_ns", [0, 500])
def test_a_small_difference_is_no_contradiction(late_ns: int) -> None:
    work = made()
    traces = [view("a.json", work, EPOCH_NS, REALTIME), view("b.json", work, EPOCH_NS + late_ns, REALTIME, 1)]
    assert [line.offset_ns for line in align(traces).receipt] == [0, 0]


def test_two_runs_on_one_clock_are_no_contradiction() -> None:
    one, other = made(1000), made(1001)
    traces = [view("a.json", one, EPOCH_NS, REALTIME), view("b.json", other, EPOCH_NS + 3_000_000, REALTIME, 1)]
    assert [line.offset_ns for line in align(traces).receipt] == [0, 0]
    later = [view("a.json", one, EPOCH_NS, REALTIME), view("b.json", other, EPOCH_NS + 10**12, REALTIME, 1)]
    assert [line.offset_ns for line in align(later).receipt] == [0, 0]


@pytest.mark.parametrize("late_ns", [20_000, -600_000, 7_000_000, 10**9, -3600 * 10**9])
def test_clocks_that_are_stated_to_be_equal_are_contradicted_beyond_what_events_leave_open(late_ns: int) -> None:
    """Also where the two do not overlap as their files have it."""
    with pytest.raises(InconsistentClocks, match="as both files state them") as caught:
        align(two(late_ns))
    (moved,) = re.findall(r"--offset a\.json=([^\s~]+)~\S+ follows the events", caught.value.hint)
    assert abs(parse_duration(moved) - late_ns) < 5_000


@pytest.mark.parametrize(("bound_ns", "compared"), [(WELL_KNOWN_NS, False), (WELL_KNOWN_NS + 1, True)])
def test_events_refine_only_clocks_that_are_not_well_known(bound_ns: int, compared: bool) -> None:
    """Events may contradict both."""
    work = made()
    outer = view("a.json", work, 0, OWN, snapshots=(snap(EPOCH_NS, bound_ns),))
    found = align([outer, view("b.json", work, EPOCH_NS, REALTIME, 1)])
    assert [line.verdict for line in found.receipt] == ["ok", "ok"]
    assert [pair.taken for pair in found.pairs] == [True] * compared
    with pytest.raises(InconsistentClocks, match="contradict"):
        align([outer, view("b.json", work, EPOCH_NS + 100_000, REALTIME, 1)])


@pytest.mark.parametrize("late_ns", [-100_000, -60_000, -50_000, 50_000, 100_000])
def test_a_recorded_log_is_refused_a_little_beyond_what_files_state(late_ns: int) -> None:
    """All of its calls lie in operators, with room around them, also where its clock is wrong."""
    one, other = (load(file) for file in truth()["short_torch_steady_10"].values())
    assert align([one, other]).receipt[1].verdict == "ok"
    with pytest.raises(InconsistentClocks, match="events fit only if"):
        align([one, other.with_tables(slices=replace(other.slices, ts=other.slices.ts + late_ns))])


def based(off_ns: int) -> list[Trace]:
    """Three views of a run: two say what their times count from, but not how well, the second wrongly."""
    work = made()
    bases = [(ClockSnapshot(OWN, 0, REALTIME, EPOCH_NS + off, None, "base time of the file"),) for off in (0, off_ns)]
    return [view(f"{name}.json", work, 0, OWN, i, (*bases, ())[i]) for i, name in enumerate("abc")]


@pytest.mark.parametrize("off_ns", [100_000, 5_000_000, -(10**9)])
def test_base_times_that_contradict_each_other_are_refused(off_ns: int) -> None:
    for traces in (based(off_ns), based(off_ns)[:2]):
        with pytest.raises(InconsistentClocks, match=r"a\.json and b\.json: .*\(base time of the file\) contradict"):
            align(traces)


def test_base_times_that_agree_place_all() -> None:
    assert [line.offset_ns for line in align(based(0)).receipt] == pytest.approx([EPOCH_NS] * 3, abs=5_000)


def test_base_times_of_which_no_pair_is_compared_close_their_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third file alone relates the two."""
    right = comparison.estimate_pair
    monkeypatch.setattr(comparison, "estimate_pair", lambda a, b, *args: right(a, b, *args) if b.index == 2 else None)
    assert [line.offset_ns for line in align(based(0)).receipt] == pytest.approx([EPOCH_NS] * 3, abs=5_000)
    for off_ns in (5_000_000, -(10**9)):
        with pytest.raises(InconsistentClocks, match="contradict each other"):
            align(based(off_ns))


def test_what_is_too_much_to_compare_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_MOST_SLICES", 100)
    (warning,) = align(two(40_000_000)).receipt[0].warnings
    assert "was not checked against the events of b.json: there are more than 100 slices" in warning


def test_stated_clocks_under_which_events_fit_nowhere_near_but_in_several_places() -> None:
    one = made(iterations=1)
    period = float(one.start[-1] + one.dur[-1]) + 3_000_000
    starts = np.concatenate([one.start + number * period for number in range(6)])
    work = replace(one, start=starts, dur=np.tile(one.dur, 6), kind=np.tile(one.kind, 6))
    for late, warned in ((0, 0), (round(period / 2), 1)):
        traces = [view("a.json", work, EPOCH_NS, REALTIME), view("b.json", work, EPOCH_NS + late, REALTIME, 1)]
        warnings = align(traces).receipt[0].warnings
        assert len(warnings) == warned
        assert all("at this offset, but at several others" in warning for warning in warnings)


def guessed(off_ns: int, local: LocalTime, bound_ns: int = 500_000) -> list[Trace]:
    """Two views of a run, of which the second says by a local time when it began, off by so much."""
    work = made()
    return [
        view("a.json", work, EPOCH_NS, REALTIME),
        view("b.json", work, 0, OWN, 1, (snap(EPOCH_NS + off_ns, bound_ns, local),)),
    ]


@pytest.mark.parametrize(("quarters", "zone"), [(4, "+01:00"), (22, "+05:30"), (-14, "-03:30"), (23, "+05:45")])
@pytest.mark.parametrize("turned", [False, True])
def test_a_guessed_zone_is_overruled_and_said(quarters: int, zone: str, turned: bool) -> None:
    traces = guessed(quarters * QUARTER_NS + 300_000, LocalTime(0, guessed=True))
    found = align(traces[::-1] if turned else traces)
    line = next(line for line in found.receipt if line.file == "b.json")
    assert abs(line.offset_ns - EPOCH_NS) <= (line.bound_ns or 0) <= 10_000
    (warning,) = line.warnings
    assert "was read as UTC, but" in warning
    assert f"--tz b.json={zone} states it" in warning


@pytest.mark.parametrize(
    ("off_ns", "local"),
    [
        (411_000_000, LocalTime(0, guessed=True)),
        (800_000, LocalTime(0, guessed=True)),
        (900 * 10**9, LocalTime(0, guessed=True)),  # there is no zone of +00:15
        (-4 * 900 * 10**9 - 20_000_000, LocalTime(0, guessed=True)),
        (60 * 900 * 10**9, LocalTime(0, guessed=True)),  # there is no zone of +15:00
    ],
)
def test_a_name_that_is_wrong_by_no_zone_is_refused(off_ns: int, local: LocalTime) -> None:
    with pytest.raises(InconsistentClocks, match=r"as the file says\) contradict their events") as caught:
        align(guessed(off_ns, local))
    (moved,) = re.findall(r"--offset b\.json=([^\s~]+)~\S+ follows the events", caught.value.hint)
    assert abs(parse_duration(moved) + off_ns) < 5_000
    assert f"if b.json is moved by {format_time(parse_duration(moved))}" in caught.value.message
    assert "--tz" not in caught.value.hint
    assert caught.value.exit_code == 4


def test_a_zone_that_the_user_gave_is_not_overruled() -> None:
    with pytest.raises(InconsistentClocks, match="contradict their events") as caught:
        align(guessed(-2 * 3600 * 10**9, LocalTime(2 * 3600 * 10**9)))
    assert "--tz b.json=UTC would agree" in caught.value.hint


@pytest.mark.parametrize("off_ns", [0, 450_000, -499_000])
def test_a_name_that_is_right_is_not_doubted(off_ns: int) -> None:
    line = align(guessed(off_ns, LocalTime(0, guessed=True))).receipt[1]
    assert abs(line.offset_ns - EPOCH_NS) <= (line.bound_ns or 0) <= 10_000
    assert not line.warnings


def test_a_name_is_not_doubted_for_what_another_run_did() -> None:
    other = view("b.json", made(1001), 0, OWN, 1, (snap(EPOCH_NS, 500_000, LocalTime(0, guessed=True)),))
    line = align([view("a.json", made(1000), EPOCH_NS, REALTIME), other]).receipt[1]
    assert (line.offset_ns, line.verdict, line.warnings) == (EPOCH_NS, "assumed", ())


def with_a_wrong_pair(monkeypatch: pytest.MonkeyPatch, wrong: set[str], by_ns: int) -> None:
    """Let the events of two inputs tell a wrong place."""
    right = comparison.estimate_pair

    def tricked(a: ClockInput, b: ClockInput, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
        pair = right(a, b, known, names)
        if pair is None or {a.name, b.name} != wrong:
            return pair
        return structs.replace(
            pair, clock_map=structs.replace(pair.clock_map, offset_ns=pair.clock_map.offset_ns + by_ns)
        )

    monkeypatch.setattr(comparison, "estimate_pair", tricked)


def test_a_loop_that_does_not_close_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    work = made()
    traces = [
        view("a.json", work, EPOCH_NS, REALTIME),
        view("b.json", work, 0, OWN, 1),
        view("c.json", work, 7, OWN, 2),
    ]
    with_a_wrong_pair(monkeypatch, {"b.json", "c.json"}, 8_000_000)
    with pytest.raises(InconsistentClocks, match="contradict each other") as caught:
        align(traces)
    text = str(caught.value)
    assert all(f"{name}.json" in text for name in "abc")
    match = re.search(r"comes back (\S+ ms) off, expected \S+ .s at most", text)
    assert match is not None
    assert abs(parse_duration(match[1]) - 8_000_000) < 20_000
    assert caught.value.exit_code == 4


def test_the_one_pair_that_does_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    work = made()
    shifts = [EPOCH_NS, 0, 5_000, -5_000_000]
    traces = [view(f"{i}.json", work, shift, OWN if i else REALTIME, i) for i, shift in enumerate(shifts)]
    with_a_wrong_pair(monkeypatch, {"0.json", "3.json"}, 8_000_000)
    found = align(traces)
    for line, shift in zip(found.receipt, shifts, strict=True):
        assert abs(line.offset_ns - (EPOCH_NS - shift)) <= (line.bound_ns or 0) <= 10_000
    warned = [line.file for line in found.receipt if any("left out" in warning for warning in line.warnings)]
    assert warned == ["0.json", "3.json"]


def test_clocks_since_boot_of_one_machine_are_one_clock_if_the_user_says_so() -> None:
    work = made(iterations=1)
    traces = [view("a.json", work, 1000, BOOT), view("b.json", made(1001, 1), 5_000_000, BOOT)]
    with pytest.raises(UnrelatedClocks):
        align(traces)
    lines = align(traces, constraints=Constraints(same_machine=True)).receipt
    assert [line.offset_ns for line in lines] == [0, 0]
    assert lines[1].verdict == "assumed"
    assert "--same-machine" in lines[1].method


def test_other_machines_and_a_clock_that_never_sleeps_stay_apart() -> None:
    work, other = made(iterations=1), made(1001, 1)
    asleep = BOOTTIME
    with pytest.raises(UnrelatedClocks):
        align([view("a", work, 0, BOOT), view("b", other, 0, asleep)], constraints=Constraints(same_machine=True))
    here, there = (ClockDomain("CLOCK_MONOTONIC", Zero.BOOT, Runs.MONOTONIC, 1, name) for name in ("m", "n"))
    by_user = align(
        [view("a", work, 0, here), view("b", other, 0, there)], constraints=Constraints(same_machine=True)
    )  # containers
    assert sorted(line.verdict for line in by_user.receipt) == ["assumed", "ok"]
    with pytest.raises(UnrelatedClocks):
        align([view("a", work, 0, here), view("b", other, 0, there)])


@pytest.mark.parametrize("clock", [OWN, REALTIME])
def test_one_recording_given_twice(clock: ClockDomain) -> None:
    traces = [view(name, made(), 12_345, clock, format="one tool") for name in ("a.json", "b.json")]
    found = align(traces)
    assert [line.offset_ns for line in found.receipt] == [0, 0]
    assert [line.verdict for line in found.receipt] == ["ok", "ok"]
    (said,) = found.receipt[1].warnings
    assert said == "its events are those of a.json: the same recording is drawn twice; leave one of the two out"
    assert not found.receipt[0].warnings
    descriptions = [track.description for track in merge_traces(traces, found).tracks]
    assert any(f"but {said}" in text for text in descriptions)
    assert "fit 5 ms earlier" in align(traces, constraints=Constraints(offsets={1: 5_000_000})).receipt[1].warnings[0]


def test_ranks_of_two_jobs_are_said_to_be() -> None:
    sizes = {"a": 8, "b": None, "c": 4, "d": 8}
    traces = [view(name, made(iterations=2), 0, REALTIME) for name in sizes]
    for trace, size in zip(traces, sizes.values(), strict=True):
        trace.sources[0].world_size = size
    warnings = [line.warnings for line in align(traces, policy=Policy(estimate=False)).receipt]
    assert warnings == [
        (),
        (),
        ("it is from a job of 4 ranks, and a from one of 8: collectives of two jobs are not compared",),
        (),
    ]


def recorded(name: str, *, pid: int = 1, value: int = 5, function: str = "f", arg: int = 3, called: str = "") -> Trace:
    """Something of every kind at the same times; its only process is called like the file if it has no name."""
    out = Builder(SourceInfo(name, "one tool"), OWN)
    process = out.tracks.process(called or name, pid=pid)
    thread = out.tracks.thread(process, 1)
    counter = out.tracks.counter("memory", process)
    for at in range(8):
        out.slice(thread, at * 1000, 500, "work", args={"number": at * arg})
        out.counter(counter, at * 1000, at * value)
        out.sample(thread, at * 1000, out.frame(function))
    out.flow(SliceId(0), SliceId(arg))
    return lay_out(out.finish())


@pytest.mark.parametrize("other", [{"pid": 2}, {"value": 6}, {"function": "g"}, {"arg": 4}, {"called": "other"}])
def test_recordings_that_differ_in_anything_but_times_are_two(other: dict[str, Any]) -> None:
    """Recordings that count from their own start may well have the same times."""
    assert same_recording(recorded("a.json"), recorded("b.json"))
    assert not same_recording(recorded("a.json"), recorded("b.json", **other))


def test_nearly_equal_recordings_are_two() -> None:
    work = made()
    longer = replace(work, dur=work.dur + 5_000)
    traces = [view("a.json", work, 0, format="one tool"), view("b.json", longer, 0, format="one tool")]
    align(traces)
    assert not align(traces).notes


def test_weak_evidence_against_an_offset_is_said_as_weak() -> None:
    """Events that are certain of no place, but name none near to the user's: the warning says what they are worth."""
    a, b, truth = late_pair(1004, queue=False)
    files = [on_unknown_clock(a, "calls.json", None), on_unknown_clock(b, "work.log", None)]
    right = round(truth.offset)
    for off, warned in ((0, False), (50_000_000, True)):
        warnings = align(files, constraints=Constraints(offsets={1: off - right})).receipt[1].warnings
        texts = [text for text in warnings if "fit better" in text]
        assert bool(texts) is warned, warnings
        assert all("but that is unverified" in text for text in texts)


def _moved(trace: Trace, by_ns: int) -> Trace:
    return trace.with_tables(slices=replace(trace.slices, ts=trace.slices.ts + by_ns))


def test_the_user_settles_that_it_is_one_run() -> None:
    one, other = (load(file) for file in truth()["short_torch_steady_10"].values())
    with pytest.raises(InconsistentClocks, match=r"contradict their events: 30 events fit only if .* is moved by "):
        align([one, _moved(other, 2_000_000)], policy=Policy(same_run=True))


def test_what_the_user_settles_rests_on_the_word_of_the_user() -> None:
    """Sizes of images differ from one iteration to the next: nothing in ten of them shows that it is one run."""
    traces = [without_metadata(load(file)) for file in truth()["short_torch_convnet_10"].values()]
    with pytest.raises(UnrelatedClocks, match="could match as well; durations do not tell") as caught:
        align(traces)
    assert "--same-run" in caught.value.hint
    verdicts = [line.verdict for line in align(traces, policy=Policy(same_run=True)).receipt]
    assert sorted(verdicts) == ["assumed", "ok"]
