"""Files of one host, in regimes that were merged wrongly, or refused though right."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from tests.align.pairs import trace_of
from tests.benchmarks.alignment.one_host_trials import (
    TRIALS,
    late_step,
    late_step_samples,
    late_step_unstated,
    log_of_two,
    set_late,
)
from tests.benchmarks.alignment.simulate import Shape, Truth, inner, outer, run
from tests.benchmarks.alignment.trials import recorded
from traceconv.align import Alignment, Policy, align, containment
from traceconv.align.activity import Samples, set_clock
from traceconv.align.causality import believed, causality
from traceconv.align.checks import Rule
from traceconv.align.constraints import Constraints, NameMap
from traceconv.align.estimate import Events
from traceconv.align.geometry import Line, hidden_step
from traceconv.align.inputs import Inputs, Placed
from traceconv.api import merge, read
from traceconv.errors import AlignmentError, AmbiguousAlignment, UnrelatedClocks, UnverifiedAlignment
from traceconv.model.builder import Builder
from traceconv.model.clocks import DRIFT_UNIT, ONE_HOST_DRIFT, REALTIME, WELL_KNOWN_NS, Verdict
from traceconv.model.layout import lay_out
from traceconv.model.numbers import parse_duration
from traceconv.model.source_info import Layer
from traceconv.model.trace import Trace, column_types, take

_DATA = Path(__file__).parents[1] / "data" / "one_host"


def inputs(name: str) -> list[Trace]:
    """The files of a case, the trace first."""
    return [read(path) for path in sorted((_DATA / name).iterdir())]


def merged(traces: list[Trace], policy: Policy | None = None, constraints: Constraints | None = None) -> Alignment:
    """The alignment, as far as its checks confirm it."""
    policy = policy or Policy()
    found = align(traces, policy=policy, constraints=constraints or Constraints())
    return believed(found, causality(traces, found), policy.on_ambiguous)


def test_no_offset_is_guessed_against_the_best_candidate() -> None:
    with pytest.raises(UnrelatedClocks, match="look like two runs") as caught:
        merged(inputs("guess"))
    assert not re.search(r"--offset \S+=[-+0-9]", caught.value.hint)
    assert "--same-run" in caught.value.hint


def test_same_run_settles_what_looks_like_two_runs() -> None:
    line = merged(inputs("guess"), Policy(same_run=True)).receipt[1]
    assert line.verdict == "assumed"
    assert line.bound_ns is not None
    assert line.bound_ns > 1_000_000


def test_the_bound_of_an_offset_reaches_to_where_events_fit() -> None:
    offset = parse_duration("-3593.000777s")
    line = merged(inputs("guess"), constraints=Constraints(offsets={1: offset})).receipt[1]
    assert line.bound_ns is not None
    assert line.bound_ns > 30 * 10**9
    assert any("would fit better" in warning for warning in line.warnings)


def test_a_log_of_two_processes_is_placed() -> None:
    line = merged(inputs("mixed")).receipt[1]
    assert line.verdict == "ok"
    assert (line.bound_ns or 0) < 5_000


def test_calls_of_another_process_are_drawn_apart(tmp_path: Path) -> None:
    result = merge(sorted((_DATA / "mixed").iterdir()), tmp_path / "both.json")
    (warning,) = (text for line in result.receipt for text in line.warnings)
    count = int(re.findall(r"(\d+) of 1338 calls are drawn apart, as of another process or thread", warning)[0])
    assert 500 < count < 700
    events = json.loads((tmp_path / "both.json").read_text())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    calls = Counter(names[event["pid"]] for event in events if event.get("cat") == "exec")
    assert calls == {"python": 1421 - count, "another process or thread": count}


def some_longer(log: Trace, seed: int) -> Trace:
    """A log of which every fifth call ends late, as work does that goes on by itself."""
    longer = np.where(np.random.default_rng(seed).random(len(log.slices.ts)) < 0.2, 2, 1)
    return log.with_tables(slices=replace(log.slices, dur=log.slices.dur * longer))


@pytest.mark.parametrize(("stated", "late"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("seed", range(3))
def test_hardly_a_call_of_the_recorded_process_is_taken_for_one_of_another(seed: int, stated: bool, late: bool) -> None:
    (calls, log), _, whose = log_of_two(seed, stated=stated)
    rows = align([calls, some_longer(log, seed) if late else log]).others[1]
    apart = np.isin(np.arange(len(whose)), rows)
    assert (apart & (whose == 0)).sum() <= 0.005 * (whose == 0).sum()
    assert (apart & (whose == 1)).sum() >= 0.6 * (whose == 1).sum()


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_drawn_apart_of_a_log_of_one_process(seed: int) -> None:
    assert not align(log_of_two(seed, processes=1)[0]).others


@pytest.mark.parametrize("share", [1.0, 0.85])
@pytest.mark.parametrize("seed", range(3))
def test_calls_that_end_behind_their_operators_are_of_their_process(seed: int, share: float) -> None:
    """Also where operators are missing, as those that the recorder dropped: that shows no second process."""
    (calls, log), _, _ = log_of_two(seed, stated=True, processes=1)
    rng = np.random.default_rng(seed)
    kept = np.flatnonzero(rng.random(len(calls.slices.ts)) < share)
    columns = {name: getattr(calls.slices, name)[kept] for name in column_types(type(calls.slices))}
    calls = calls.with_tables(slices=replace(calls.slices, **columns))
    found = align([calls, some_longer(log, seed)])
    assert found.receipt[1].verdict == "ok"
    assert not found.others


@pytest.mark.parametrize(("bound_ns", "apart"), [(WELL_KNOWN_NS, True), (WELL_KNOWN_NS + 1, False)])
def test_clocks_that_are_not_known_exactly_tell_no_calls_apart(
    bound_ns: int, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = containment.with_others_apart

    def less_known(inputs: Inputs, placed: Placed, names: NameMap) -> Placed:
        maps = {key: structs.replace(one, bound_ns=bound_ns if key[0] else 0) for key, one in placed.maps.items()}
        return known(inputs, structs.replace(placed, maps=maps), names)

    monkeypatch.setattr(containment, "with_others_apart", less_known)
    assert bool(align(log_of_two(0)[0]).others) == apart


def test_calls_of_two_recorded_threads_may_overlap() -> None:
    (calls, log), _, whose = log_of_two(0, stated=True)
    own = np.flatnonzero(whose == 0)
    traces = []
    for trace, rows in ((calls, np.arange(len(calls.slices.ts))), (log, own)):
        out = Builder(trace.sources[0], trace.clocks[0])
        process = out.tracks.process("run", pid=1)
        first, second = out.tracks.thread(process, 1, "work"), out.tracks.thread(process, 2, "more work")
        every, texts = trace.slices, trace.strings
        of_both = [(first, 0, row) for row in range(len(every.ts))]
        of_both += [(second if trace is calls else first, 300_000, row) for row in rows.tolist()]
        for at, (track, later, row) in enumerate(of_both, 1):
            out.slice(track, int(every.ts[row]) + later, int(every.dur[row]), texts[every.name[row]], at=at)
        traces.append(lay_out(out.finish()))
    others = align(traces).others[1]
    origins = traces[1].slices.origin[others] - 1
    is_own = (origins >= len(whose)) | (whose[np.minimum(origins, len(whose) - 1)] == 0)
    assert len(others) > 100
    assert is_own.sum() <= 0.005 * 2 * len(own)


def test_a_clock_set_near_the_end_is_refused() -> None:
    with pytest.raises(UnverifiedAlignment, match=r"37 calls lie in no operator .* 11\.6 ms later"):
        merged(inputs("st_step_late"))
    line = merged(inputs("st_step_late"), Policy(on_ambiguous="best")).receipt[1]
    assert (line.verdict, line.bound_ns) == ("unverified", None)


@pytest.mark.parametrize(
    "constraints", [Constraints(offsets={0: 0}), Constraints(offsets={1: 0}), Constraints(drifts={1: 0})]
)
def test_an_option_that_moves_nothing_confirms_no_clock(constraints: Constraints) -> None:
    line = merged(inputs("st_step_late"), constraints=constraints).receipt[1]
    assert (line.verdict, line.bound_ns) == ("unverified", None)
    assert any("11.6 ms later" in warning for warning in line.warnings)


@pytest.mark.parametrize(
    ("name", "offset", "least"),
    [("mixed", "-3591.840475548s", 1_900), ("step_fwd_small", "-3591.13777s", 34_000)],
)
def test_the_bound_of_an_offset_contains_the_events(name: str, offset: str, least: int) -> None:
    line = merged(inputs(name), constraints=Constraints(offsets={1: parse_duration(offset)})).receipt[1]
    assert line.bound_ns is not None
    assert least < line.bound_ns < 3 * least
    assert line.verdict == "assumed"


def test_cycles_of_one_schedule_need_not_overlap() -> None:
    cycles = [read(path) for path in sorted((_DATA / "sched").glob("*.json"))]
    assert all(not line.warnings for line in merged(cycles[:3]).receipt)


def test_the_instant_of_a_small_step_is_that_of_the_events() -> None:
    try:
        (pair,) = merged(inputs("step_fwd_small")).pairs
    except UnrelatedClocks as error:
        raise AssertionError("the step is taken for something else") from error
    chain = pair.estimate.chain
    assert chain is not None, "no step is seen"
    first, last = chain.lines[1].doubt or (0.0, 0.0)
    assert 0 < last - first < 1e6


def test_cycles_of_one_schedule_are_named_as_the_reason() -> None:
    traces = inputs("sched")
    with pytest.raises(AmbiguousAlignment, match=r"sched\.0\.json and .*sched\.4\.json are on one clock"):
        merged([*traces[:-1], traces[-1]])


def test_more_drift_than_that_of_one_host_is_of_one_run_only_if_the_user_says_so() -> None:
    work = run(np.random.default_rng(3), Shape(iterations=60))
    calls = trace_of(outer(work), "calls.json")
    log = trace_of(inner(np.random.default_rng(3), work, Truth(3e9, 80e-6))[0], "work.log")
    with pytest.raises(UnrelatedClocks, match=r"drift by \+80 ppm, expected 50 ppm at most") as caught:
        merged([calls, log])
    assert "--same-run" in caught.value.hint
    assert merged([calls, log], Policy(same_run=True)).receipt[1].verdict == "assumed"
    stated = Constraints(drifts={1: round(-80e-6 / DRIFT_UNIT)})
    assert merged([calls, log], constraints=stated).receipt[1].verdict in ("ok", "assumed")
    steady = trace_of(inner(np.random.default_rng(3), work, Truth(3e9, 49e-6))[0], "work.log")
    assert merged([calls, steady]).receipt[1].verdict == "ok"


def test_only_what_moves_starts_and_ends_together_is_a_step() -> None:
    rng = np.random.default_rng(5)
    x, early, late = np.arange(400.0), rng.normal(0, 1000, 400), rng.normal(0, 1000, 400)
    step = np.where(x >= 200, 4000.0, 0.0)
    assert hidden_step(x, early, late) == 0
    assert 3000 < hidden_step(x, early + step, late + step) < 5000
    assert hidden_step(x, early + step, late) == 0
    assert hidden_step(x, early + step, late - step) == 0
    assert hidden_step(x[:5], early[:5], late[:5]) == 0


@pytest.mark.parametrize("regime", TRIALS)
@pytest.mark.parametrize("seed", range(3))
def test_none_is_placed_outside_of_its_bound(regime: str, seed: int) -> None:
    assert not TRIALS[regime][1](seed).wrong


@pytest.mark.parametrize("seed", range(2))
def test_a_clock_that_was_not_set_is_believed(seed: int) -> None:
    assert not late_step(seed, is_set=False).refused
    assert not late_step_unstated(seed, is_set=False).refused
    assert not late_step_samples(seed, is_set=False).refused


@pytest.mark.parametrize("seed", range(3))
def test_one_run_does_not_settle_a_clock_that_was_set(seed: int) -> None:
    traces, _ = set_late(seed, Truth(1e12, 2e-5), is_set=True)
    with pytest.raises(AlignmentError):
        merged(traces, Policy(same_run=True))


@pytest.mark.parametrize(("iterations", "drift"), [(8, -190e-6), (8, 60e-6), (12, 190e-6)])
def test_a_drift_is_that_of_one_host_if_the_events_allow_it(iterations: int, drift: float) -> None:
    made = run(np.random.default_rng(3), Shape(iterations=iterations, operators=15))
    truth = Truth(1e12, drift)
    log, _ = inner(np.random.default_rng(4), made, truth, missing=0.1)
    traces = [recorded(outer(made), "calls.json", Layer.FRAMEWORK), recorded(log, "work.log", Layer.LIBRARY)]
    (pair,) = align(traces, policy=Policy(on_ambiguous="separate")).pairs
    if iterations == 12:
        assert not pair.taken
        assert "would drift by +192 ppm" in str(pair.estimate.reason)
        return
    assert abs(pair.clock_map.drift * DRIFT_UNIT) <= ONE_HOST_DRIFT
    times = traces[0].slices.ts
    assert np.max(np.abs(pair.clock_map.apply(times) - truth.map(times.astype(np.float64)))) <= pair.bound_ns


def test_a_rough_offset_does_not_hide_a_clock_that_was_set() -> None:
    offset = parse_duration("1ms")
    line = merged(inputs("st_step_late"), constraints=Constraints(offsets={1: offset})).receipt[1]
    assert (line.verdict, line.bound_ns) == ("unverified", None)
    assert any("37 calls" in warning and "11.6 ms later" in warning for warning in line.warnings)


def test_calls_drawn_apart_are_not_counted_out_of_order() -> None:
    traces = inputs("mixed")
    found = align(traces)
    (check,) = (check for check in causality(traces, found).checks if check.rule is Rule.INSIDE)
    assert check.after.count < 0.01 * check.checked
    assert check.verdict is Verdict.OK


def test_two_processes_are_warned_of_once() -> None:
    offset = parse_duration("-3591.840475548s")
    line = merged(inputs("mixed"), constraints=Constraints(offsets={1: offset})).receipt[1]
    assert sum("process" in warning for warning in line.warnings) == 1


@pytest.mark.parametrize("ppm", [12, 500])
def test_a_drift_that_files_contradict_widens_the_bound(ppm: int) -> None:
    made = run(np.random.default_rng(1), Shape(iterations=4))
    seen, _ = inner(np.random.default_rng(2), made, Truth(offset=0.0, drift=0.0))
    wall = structs.replace(REALTIME, resolution_ns=1000)
    traces = [trace_of(outer(made), "f.json", wall), trace_of(seen, "o.log", wall)]
    found = align(traces, constraints=Constraints(drifts={1: round(ppm * 1e-6 / DRIFT_UNIT)}))
    starts = traces[1].slices.ts
    moved = int(np.abs(found.maps[1][0].apply(starts) - starts).max())
    assert (found.receipt[1].bound_ns or 0) >= moved
    assert any("no events confirm" in warning for warning in found.receipt[1].warnings) == (moved > 1000)


@pytest.mark.parametrize("option", [False, True])
@pytest.mark.parametrize("most", [1_000, 50_000])
def test_calls_drawn_apart_are_no_contradiction_in_any_window(
    option: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containment, "_MOST_SLICES", most)
    traces = log_of_two(1, stated=option)[0]
    constraints = Constraints(offsets={1: 0}) if option else Constraints()
    found = align(traces, constraints=constraints)
    assert len(found.others[1]) > 1_000
    (check,) = containment.check_of_calls(traces, found, NameMap())
    assert check.checked > 300
    assert not check.contradictions


def set_in_its_last_part(trace: Trace, by: int) -> Trace:
    """The recording, as if its clock was set ahead by some ns in its last 7 %."""
    slices = trace.slices
    first, last = int(np.min(slices.ts)), int(np.max(slices.ts + slices.dur))
    ts = np.where(slices.ts >= first + 0.93 * (last - first), slices.ts + by, slices.ts)
    return trace.with_tables(slices=take(replace(slices, ts=ts), np.argsort(ts, kind="stable")))


@pytest.mark.parametrize("by_ms", [-20, -10, -5, -3, 2, 3, 5, 10, 20])
def test_a_clock_that_was_set_late_is_seen_by_samples(by_ms: int) -> None:
    trace, samples = inputs("ort_big")
    for policy in (Policy(), Policy(same_run=True)):
        with pytest.raises(UnrelatedClocks, match=r"\d+ of 416 samples at one end .* as if a clock was set") as caught:
            merged([set_in_its_last_part(trace, by_ms * 1_000_000), samples], policy)
        assert not re.search(r"--offset \S+=[-+0-9]", caught.value.hint)


@pytest.mark.parametrize("name", ["ort_cnn", "ort_big"])
@pytest.mark.parametrize("before_ms", [0, 60, 100])
def test_samples_behind_all_slices_show_no_set_clock(name: str, before_ms: int) -> None:
    """As where a sampler goes on when a profiler has ended: what ran then is recorded by samples alone."""
    trace, samples = inputs(name)
    ends = trace.slices.ts + trace.slices.dur
    kept = np.flatnonzero(ends <= np.max(ends) - before_ms * 1_000_000)
    trace = trace.with_tables(slices=take(trace.slices, kept), flows=take(trace.flows, np.empty(0, np.int64)))
    assert merged([trace, samples]).receipt[1].verdict == "ok"


def test_many_samples_and_slices_are_searched_with_little_memory() -> None:
    span, count = 30e9, 300_000
    start = np.sort(np.random.default_rng(1).uniform(0, span, count))
    slices = Events(start, np.full(count, 20e3), np.zeros(count, np.int32), 0)
    t = np.sort(np.random.default_rng(2).uniform(0, span, 30_000))
    tracemalloc.start()
    set_clock(slices, Samples(t, np.arange(len(t)) % 2 == 0, 0), Line(0.0, 0.0, span / 2))
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
