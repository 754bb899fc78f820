"""Logs without times in a merge: their slices inside those of the framework that they were matched to."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from tests.benchmarks.alignment.simulate import Shape, Truth, inner, outer, run
from tests.golden import ROOT
from traceconv.align import Policy, align
from traceconv.align.constraints import Constraints, parse_constraints
from traceconv.api import estimate
from traceconv.errors import UnrelatedClocks
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Verdict, Zero
from traceconv.model.layout import lay_out, validate
from traceconv.model.numbers import earlier_or_later, parse_duration
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace, take
from traceconv.model.track_table import TrackKind
from traceconv.writers.ids import Identities

ORDER = ClockDomain("order of the log", Zero.UNKNOWN, Run.NONE, 1000)
ZERO = 1_700_000_000_000_000_000
NAMES = ("convolution", "eltwise", "pooling", "matmul")


def pair(seed: int, shape: Shape) -> tuple[Trace, Trace]:
    """A framework on the wall clock, and the log of the library below it, without times."""
    rng = np.random.default_rng(seed)
    made = run(rng, shape)
    framework, (library, _) = outer(made), inner(rng, made, Truth(0.0, 0.0))
    host = Builder(SourceInfo("framework.json", "framework"), REALTIME)
    thread = host.tracks.thread(host.tracks.process("python", pid=1), 2)
    for ts, dur, kind in zip(framework.start.tolist(), framework.dur.tolist(), framework.kind.tolist(), strict=True):
        host.slice(thread, ZERO + round(ts), round(dur), NAMES[kind])
    guest = Builder(SourceInfo("library.log", "library", "line"), ORDER)
    track, at = guest.tracks.add("cpu (synthetic)"), 0
    for number, (dur, kind) in enumerate(zip(library.dur.tolist(), library.kind.tolist(), strict=True)):
        guest.slice(track, at, round(dur), NAMES[kind], at=number)
        at += round(dur)
    for out, count in ((host, len(framework)), (guest, len(library))):
        out.balance.read = out.balance.written = count
    return lay_out(host.finish()), lay_out(guest.finish())


def test_slices_lie_inside_their_parents() -> None:
    host, guest = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    alignment = align([host, guest])
    trace = merge_traces([host, guest], alignment)
    validate(trace)
    of_guest = [n for n, track in enumerate(trace.tracks) if track.source == 1]
    rows = np.flatnonzero(np.isin(trace.slices.track, of_guest))
    args = [
        json.loads(trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row])))
        for row in rows.tolist()
    ]
    assert all("placed" in one for one in args)
    inside = [row for row, one in zip(rows.tolist(), args, strict=True) if one["placed"].startswith("inside")]
    assert len(inside) > 0.8 * len(rows)
    parents = trace.slices.ts[~np.isin(trace.slices.track, of_guest)]
    ends = parents + trace.slices.dur[~np.isin(trace.slices.track, of_guest)]
    for row in inside:
        at = int(np.searchsorted(parents, trace.slices.ts[row], "right")) - 1
        assert trace.slices.ts[row] + trace.slices.dur[row] <= ends[at]
    # The order of the log is kept.
    in_time = rows[np.lexsort((trace.slices.origin[rows], trace.slices.ts[rows]))]
    assert (np.diff(trace.slices.origin[in_time]) > 0).all()
    assert [line.verdict for line in alignment.receipt] == [Verdict.OK, Verdict.ASSUMED]
    assert alignment.receipt[1].bound_ns is None


PERIODIC = Shape(iterations=40, operators=30).periodic()


def test_a_periodic_workload_is_refused() -> None:
    with pytest.raises(UnrelatedClocks, match="their events do not determine the offset"):
        align(pair(2, PERIODIC))


def test_the_best_place_is_taken_if_the_user_wants_it_and_stays_marked() -> None:
    host, whole = pair(2, PERIODIC)
    guest = whole.with_tables(slices=take(whole.slices, np.arange(300, 700)))
    alignment = align([host, guest], policy=Policy(on_ambiguous="best"))
    line = alignment.receipt[1]
    assert (line.method, line.verdict) == ("durations of the same work in framework.json", Verdict.AMBIGUOUS)
    assert line.matches > 0.8 * len(guest.slices.ts)
    assert "but that is ambiguous" in line.warnings[0]
    assert str(alignment.pairs[0].estimate.reason) in line.warnings[0]
    (found,) = alignment.pairs
    assert earlier_or_later(found.rival_moves(found.b)[0]) in line.warnings[0]
    trace = merge_traces([host, guest], alignment)
    validate(trace)
    assert words_of(trace)["inside"] == line.matches
    track = next(track for track in trace.tracks if track.source == 1)
    assert (track.name, track.doubts) == ("cpu (synthetic)", ("place uncertain",))


def test_separate_says_that_it_is_not_aligned() -> None:
    host, guest = pair(2, PERIODIC)
    alignment = align([host, guest], policy=Policy(on_ambiguous="separate"))
    line = alignment.receipt[1]
    assert (line.verdict, line.bound_ns) == (Verdict.SEPARATE, None)
    assert line.warnings[0].startswith("not aligned: ")
    assert str(alignment.pairs[0].estimate.reason) in line.warnings[0]
    trace = merge_traces([host, guest], alignment)
    (track,) = [track for track in trace.tracks if track.source == 1]
    assert (track.name, track.doubts) == ("cpu (synthetic)", ("not aligned",))
    assert "; not aligned; " in track.description
    assert trace.metadata["alignment"][1]["verdict"] == "separate"
    first = [int(trace.slices.ts[trace.slices.track == number].min()) for number in np.unique(trace.slices.track)]
    assert len(set(first)) == 1


@pytest.mark.parametrize(("wish", "words"), [("best", "place uncertain"), ("separate", "not aligned")])
def test_a_process_that_is_not_aligned_does_not_join_another_one(wish: str, words: str) -> None:
    host, whole = pair(2, PERIODIC)
    out = Builder(SourceInfo("library.log", "library", "line"), ORDER)
    track = out.tracks.add("cpu (synthetic)", out.tracks.process(pid=1))
    for row in range(300, 700):
        out.slice(track, int(whole.slices.ts[row]), int(whole.slices.dur[row]), whole.strings[whole.slices.name[row]])
    out.balance.read = out.balance.written = 400
    traces = [host, lay_out(out.finish())]
    trace = merge_traces(
        traces, align(traces, policy=Policy(on_ambiguous=wish), constraints=Constraints(same_machine=True))
    )
    processes = [track for track in trace.tracks if track.kind is TrackKind.PROCESS]
    assert [(track.name, track.pid, track.doubts) for track in processes] == [("python", 1, ()), ("", 1, (words,))]
    titles = [one.title for one, track in zip(Identities(trace), trace.tracks, strict=True) if track in processes]
    assert titles == ["python", f"pid 1 ({words})"]


def test_the_best_of_nothing_is_a_refusal() -> None:
    host, guest = pair(2, PERIODIC)
    few = guest.with_tables(slices=take(guest.slices, np.arange(4)))
    for policy in (Policy(), Policy(on_ambiguous="best")):
        with pytest.raises(UnrelatedClocks, match="for 4 slices only"):
            align([host, few], policy=policy)
    assert align([host, few], policy=Policy(on_ambiguous="separate")).receipt[1].verdict == Verdict.SEPARATE


def with_more(guest: Trace, before: int, dur: int) -> Trace:
    """The log, with so many slices of a length before the others, and a create line with a message before each one."""
    out = Builder(SourceInfo("library.log", "library", "line"), ORDER)
    root = out.tracks.add("library")
    work, made, said = (out.tracks.add(f"{name} (synthetic)", root) for name in ("cpu", "cpu create", "messages"))
    rows = guest.slices
    work_of = [(dur, "reorder")] * before
    work_of += [(int(rows.dur[row]), guest.strings[rows.name[row]]) for row in np.argsort(rows.origin).tolist()]
    at = 0
    for number, (length, name) in enumerate(work_of):
        out.slice(made, at, 700, f"create {name}", at=3 * number)
        at += 700
        out.instant(said, at, "ready", at=3 * number + 1)
        out.slice(work, at, length, name, at=3 * number + 2)
        at += length
    out.balance.read = out.balance.written = 3 * len(work_of)
    return lay_out(out.finish())


def words_of(trace: Trace) -> Counter[str]:
    """How many slices say that they were placed where."""
    found: Counter[str] = Counter()
    for at, size in zip(trace.slices.args_at.tolist(), trace.slices.args_len.tolist(), strict=True):
        placed = json.loads(trace.args.get(at, size) or b"{}").get("placed", "")
        found[placed.split()[0] if placed else "nothing"] += 1
    return found


def test_what_no_match_encloses_is_on_tracks_of_its_own() -> None:
    host, plain = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    guest = with_more(plain, before=50, dur=40_000)
    alignment = align([host, guest])
    trace = merge_traces([host, guest], alignment)
    validate(trace)
    slices = trace.slices
    name = {number: track.name for number, track in enumerate(trace.tracks)}
    of = {name[number]: np.flatnonzero(slices.track == number) for number in np.unique(slices.track).tolist()}
    first = int(slices.ts[of["cpu (synthetic)"]].min())
    for apart in ("cpu (times not measured)", "cpu create (times not measured)"):
        assert ((slices.ts[of[apart]] + slices.dur[of[apart]] <= first).sum()) >= 50
        number = next(n for n, track in enumerate(trace.tracks) if track.name == apart)
        assert trace.tracks[trace.tracks[number].parent].name == "library"
        assert "their times are not known" in trace.tracks[number].description
    found = words_of(trace)
    total = len(guest.slices.ts)
    assert sum(found[word] for word in ("inside", "between", "before", "after")) == total
    held = alignment.receipt[1].note
    well = re.search(r" \(if the matches are right, half of them within ±(\S+ \S+), 19 of 20 within ±(\S+ \S+)\)", held)
    assert well is not None
    half, nearly_all = (parse_duration(text.replace(" ", "").replace("µ", "u")) for text in well.groups())
    assert 0 < half < nearly_all < 200_000
    assert held.replace(well[0], "") == (
        f"{found['inside']} of {total} slices lie inside the slices of framework.json that they match, "
        f"{found['between']} without a match are laid in order between their neighbours, "
        f"{found['before'] + found['after']} before the first or after the last match are laid in order on "
        "'cpu (times not measured)' and "
        "'cpu create (times not measured)'"
    )
    assert alignment.receipt[1].note in next(track.description for track in trace.tracks if track.name == "library")
    assert alignment.receipt[1].as_json()["note"] == alignment.receipt[1].note


def test_the_order_of_a_log_holds_over_all_its_tracks() -> None:
    host, plain = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    guest = with_more(plain, before=5, dur=40_000)
    trace = merge_traces([host, guest], align([host, guest]))
    of_guest = np.array([track.source == 1 for track in trace.tracks])
    slices = take(trace.slices, np.flatnonzero(of_guest[trace.slices.track]))
    order = np.argsort(slices.origin)
    starts, ends = slices.ts[order], (slices.ts + slices.dur)[order]
    assert (starts[1:] >= ends[:-1]).all()
    instants = dict(zip(trace.instants.origin.tolist(), trace.instants.ts.tolist(), strict=True))
    assert len(instants) == len(order) // 2
    by_origin = dict(zip(slices.origin[order].tolist(), zip(starts.tolist(), ends.tolist(), strict=True), strict=True))
    for origin, ts in instants.items():
        assert by_origin[origin - 1][1] <= ts <= by_origin[origin + 1][0]


def test_what_holds_slices_of_a_log_is_laid_around_them() -> None:
    host, plain = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    out = Builder(SourceInfo("library.log", "library", "line"), ORDER)
    root = out.tracks.add("library")
    work, graph = out.tracks.add("cpu (synthetic)", root), out.tracks.add("graph (synthetic)", root)
    rows = plain.slices
    for number in range(0, len(rows.ts) - 5, 5):
        end = int(rows.ts[number + 4] + rows.dur[number + 4])
        out.slice(graph, int(rows.ts[number]), end - int(rows.ts[number]), "partition", at=number + 5)
        for row in range(number, number + 5):
            out.slice(work, int(rows.ts[row]), int(rows.dur[row]), plain.strings[rows.name[row]], at=row)
    out.balance.read = out.balance.written = 1
    guest = lay_out(out.finish())
    trace = merge_traces([host, guest], align([host, guest]))
    validate(trace)
    number = next(n for n, track in enumerate(trace.tracks) if track.name == "graph (synthetic)")
    graphs = take(trace.slices, np.flatnonzero(trace.slices.track == number))
    inner = np.array([track.name.startswith("cpu") and track.source == 1 for track in trace.tracks])
    work_rows = take(trace.slices, np.flatnonzero(inner[trace.slices.track]))
    for ts, dur, at in zip(graphs.ts.tolist(), graphs.dur.tolist(), graphs.origin.tolist(), strict=True):
        own = np.flatnonzero((work_rows.origin >= at - 5) & (work_rows.origin < at))
        assert ts == int(work_rows.ts[own].min())
        assert ts + dur == int((work_rows.ts + work_rows.dur)[own].max())


def again(host: Trace, name: str, later: int = 0) -> Trace:
    """Another recording of the same work."""
    source = structs.replace(host.sources[0], name=name)
    moved = replace(host.slices, ts=host.slices.ts + later)
    return replace(host, sources=[source]).with_tables(slices=moved)


def test_the_host_of_the_same_run_wins() -> None:
    shape = Shape(iterations=40, operators=30, jitter_operator=0.05)
    other, _ = pair(3, shape)
    host, guest = pair(1, shape)
    for traces, expected in (([again(other, "other.json"), host, guest], 1), ([host, other, guest], 0)):
        assert align(traces).placements[2].host == expected


def test_two_hosts_at_different_times_are_refused() -> None:
    host, guest = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    later = again(host, "later.json", 10**10)
    with pytest.raises(UnrelatedClocks, match=r"framework\.json and later\.json, at different times"):
        align([host, later, guest])
    assert not align([host, later, guest], policy=Policy(on_ambiguous="separate")).placements
    best = align([host, later, guest], policy=Policy(on_ambiguous="best"))
    assert best.placements[2].host in (0, 1)
    assert best.receipt[2].verdict == Verdict.AMBIGUOUS
    assert "at different times" in best.receipt[2].warnings[0]
    assert [pair.taken for pair in best.pairs if pair.b.index == 2] == [True, False]


def test_two_recordings_that_agree_are_no_rivals() -> None:
    host, guest = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    assert align([host, again(host, "twin.json", 5), guest]).placements[2].host in (0, 1)


def test_two_logs_in_the_same_slices_are_told() -> None:
    host, guest = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    shorter = replace(guest.slices, dur=np.maximum(guest.slices.dur - 1, 0))
    other = replace(guest, sources=[structs.replace(guest.sources[0], name="other.log")]).with_tables(slices=shorter)
    first, second = align([host, guest, other]).receipt[1:]
    assert first.warnings == ("it lies in the same slices as other.log, so one of the two must be of another run",)
    assert second.warnings == ("it lies in the same slices as library.log, so one of the two must be of another run",)
    (twice,) = (warning for line in align([host, guest, guest]).receipt for warning in line.warnings)
    assert "the same recording is drawn twice" in twice


def test_a_log_does_not_say_how_far_apart_times_are() -> None:
    assert align(pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))).receipt[1].residual_ns is None


def test_nothing_is_estimated_if_the_user_says_so() -> None:
    with pytest.raises(UnrelatedClocks) as raised:
        align(pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05)), policy=Policy(estimate=False))
    assert "events" not in raised.value.message


def test_an_offset_wins() -> None:
    host, guest = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    alignment = align([host, guest], constraints=Constraints(offsets={1: ZERO + 5}))
    assert not alignment.placements
    trace = merge_traces([host, guest], alignment)
    of_guest = [n for n, track in enumerate(trace.tracks) if track.source == 1]
    assert int(trace.slices.ts[np.isin(trace.slices.track, of_guest)].min()) == ZERO + 5


def test_slices_around_others_alone_cannot_be_laid() -> None:
    """The operators of a profile whose times mean nothing hold others: none of them lies in a call of the log."""
    files = [
        ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json",
        ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log",
    ]
    constraints = parse_constraints([str(path) for path in files], clocks=[f"{files[0]}=none"])
    with pytest.raises(UnrelatedClocks):
        estimate(files, constraints=constraints)
