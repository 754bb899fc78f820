"""Merging: nothing of two files is put together because of equal numbers, and nothing is lost."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from tests.golden import ROOT, Case
from traceconv.align import Alignment, align
from traceconv.align.constraints import ClockConstraint, ClockKind, Constraints
from traceconv.api import read
from traceconv.errors import UsageError
from traceconv.merging.processes import SAME_PID
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Run, Zero
from traceconv.model.layout import lay_out, validate
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import NO_CPU, StackId, Trace
from traceconv.model.track_table import NO_TRACK, Track, TrackKind

HOST = replace(REALTIME, machine="host")
SECOND = 10**9
HOUR = 3600 * SECOND


def builder(name: str, clock: ClockDomain = REALTIME) -> Builder:
    return Builder(SourceInfo(name, f"format-{name[0]}", real_ids=True), clock)


def full(name: str, start: int = 0, clock: ClockDomain = REALTIME) -> Trace:
    """A trace with some of everything; all texts begin with the name of the file."""
    out = builder(name, clock)
    process = out.tracks.process(f"{name} process", pid=7)
    thread = out.tracks.thread(process, 8, f"{name} thread")
    slices = [
        out.slice(thread, start + ts, dur, f"{name} {ts}", f"{name} cat", {name: ts}, at=ts)
        for ts, dur in ((0, 100), (10, 20), (90, 50))
    ]
    out.instant(thread, start + 5, f"{name} instant", args={f"{name} i": 1})
    out.counter(out.tracks.counter(f"{name} counter", process, unit="bytes"), start + 6, 2**60 + 1)
    out.flow(slices[0], slices[2], f"{name} flow")
    outer = out.frame(f"{name} outer")
    out.sample(thread, start + 7, out.frame(f"{name} inner", "", outer), f"{name} sample")
    out.metadata["made by"] = name
    return lay_out(out.finish())


def merged(*traces: Trace, same_machine: bool = False, **offsets: int) -> Trace:
    by_index = {int(key[1:]): value for key, value in offsets.items()}
    result = merge_traces(traces, align(traces, constraints=Constraints(offsets=by_index, same_machine=same_machine)))
    validate(result)
    return result


def rows(trace: Trace) -> Counter[tuple[Any, ...]]:
    """Everything that is drawn, with all references followed."""
    found: Counter[tuple[Any, ...]] = Counter()

    def path(track: int) -> str:
        names = []
        while track != NO_TRACK:
            names.append(trace.tracks[track].name)
            track = trace.tracks[track].parent
        return "/".join(reversed(names))

    def args(table: Any, row: int) -> str:
        return trace.args.get(int(table.args_at[row]), int(table.args_len[row])).decode()

    for kind in ("slices", "instants"):
        table = getattr(trace, kind)
        for row in range(len(table.ts)):
            texts = (trace.strings[table.name[row]], trace.strings[table.category[row]], args(table, row))
            dur = int(table.dur[row]) if kind == "slices" else -1
            found[kind, path(table.track[row]), int(table.ts[row]), dur, *texts, int(table.origin[row])] += 1
    for row, track in enumerate(trace.counters.track):
        found["counter", path(track), int(trace.counters.ts[row]), int(trace.counters.integer[row])] += 1
    names = [trace.strings[name] for name in trace.slices.name]
    for one, other, name in zip(trace.flows.from_slice, trace.flows.to_slice, trace.flows.name, strict=True):
        found["flow", names[one], names[other], trace.strings[name]] += 1
    for row, track in enumerate(trace.samples.track):
        frame, stack = int(trace.samples.stack[row]), []
        while frame >= 0:
            stack.append(trace.frames[frame].name)
            frame = trace.frames[frame].parent
        name = trace.strings[trace.samples.name[row]]
        found["sample", path(track), int(trace.samples.ts[row]), name, *stack] += 1
    return found


# -- everything stays apart -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c"], ["b", "a"]])
def test_all_rows_of_all_files_are_there_and_their_own(names: list[str]) -> None:
    traces = [full(name, start) for start, name in enumerate(names)]
    result = merged(*traces)
    assert rows(result) == sum((rows(trace) for trace in traces), Counter())
    assert [source.name for source in result.sources] == names
    for track in result.tracks:
        assert track.name.startswith(names[track.source])
    processes = [track for track in result.tracks if track.kind is TrackKind.PROCESS]
    assert [process.pid for process in processes] == [7] * len(names)


def test_the_same_trace_twice_doubles_everything() -> None:
    once = merged(full("a"))
    twice = merged(full("a"), full("a"))
    assert twice.counts() == {what: 2 * count for what, count in once.counts().items()}
    assert rows(twice) == rows(once) + rows(once)
    assert len(twice.tracks) == 2 * len(once.tracks)
    assert len(twice.strings) == len(once.strings)
    assert twice.metadata["inputs"] == once.metadata["inputs"] * 2


@pytest.mark.parametrize("case", ["viztracer/functions", "onnxruntime/v1.31-perf-process"])
def test_a_real_trace_twice(case: str) -> None:
    folder = ROOT / case
    trace = read(Case(folder).input, format=folder.parent.name)
    once, twice = merged(trace, o0=5), merged(trace, trace, o0=5, o1=5)
    assert rows(twice) == rows(once) + rows(once)


def test_the_traces_that_go_in_are_not_changed() -> None:
    trace = full("a")
    before = rows(trace)
    names = [(track.name, track.source, track.description) for track in trace.tracks]
    merged(full("b"), trace, o1=10**9)
    assert rows(trace) == before
    assert [(track.name, track.source, track.description) for track in trace.tracks] == names


def test_one_trace_stays_as_it_is_but_for_the_receipt() -> None:
    trace = full("a")
    result = merged(trace)
    assert rows(result) == rows(trace)
    assert result.metadata["inputs"] == [{"file": "a", "metadata": {"made by": "a"}}]


def test_empty_traces_merge() -> None:
    empty = lay_out(builder("e").finish())
    assert rows(merged(empty, full("a"), empty)) == rows(full("a"))
    assert merged(empty, empty).counts() == merged(empty).counts()


# -- words about it ---------------------------------------------------------------------------------------------------


def test_metadata_of_each_file_and_the_receipt() -> None:
    private = ClockDomain("p", Zero.UNKNOWN, Run.MONOTONIC, 10)
    result = merged(full("a"), full("b", clock=private), o1=55)
    assert result.metadata["inputs"] == [
        {"file": "a", "metadata": {"made by": "a"}},
        {"file": "b", "metadata": {"made by": "b"}},
    ]
    lines = result.metadata["alignment"]
    assert [(line["file"], line["offset_ns"], line["verdict"]) for line in lines] == [
        ("a", 0, "ok"),
        ("b", 55, "assumed"),
    ]
    json.dumps(result.metadata)
    tops = [track for track in result.tracks if track.parent == NO_TRACK]
    assert "From a (format-a)" in tops[0].description
    assert "--offset" in tops[1].description
    assert result.clocks == [REALTIME]
    assert result.snapshots == []


def test_files_of_one_name_have_their_own_receipt() -> None:
    result = merged(full("a"), full("a"), o1=5)
    first, second = (track.description for track in result.tracks if track.parent == NO_TRACK)
    assert ("--offset" in first, "--offset" in second) == (False, True)
    assert first.count("Clock: ") == second.count("Clock: ") == 1


# -- time -------------------------------------------------------------------------------------------------------------


def test_all_times_are_moved_and_no_duration() -> None:
    out = builder("b", ClockDomain("p", Zero.RUN_START, Run.MONOTONIC))
    out.clocks.snapshot(ClockSnapshot(ClockDomain("p", Zero.RUN_START, Run.MONOTONIC), 0, REALTIME, 1000, 0, "read"))
    track = out.tracks.add("t")
    out.slice(track, 5, 7, "x")
    out.instant(track, 6, "i")
    out.counter(out.tracks.counter("c"), 7, 1)
    out.sample(track, 8, out.frame("f"))
    result = merged(lay_out(out.finish()))
    times = [table.ts.tolist() for table in (result.slices, result.instants, result.counters, result.samples)]
    assert times == [[1005], [1006], [1007], [1008]]
    assert result.slices.dur.tolist() == [7]


def test_each_clock_of_a_file_is_moved_by_its_own_map() -> None:
    untimed = ClockDomain("untimed", Zero.UNKNOWN, Run.NONE)
    out = builder("a")
    out.slice(out.tracks.add("late"), 1000, 5, "x")
    out.slice(out.tracks.add("untimed", clock=out.clocks.add(untimed)), 3, 5, "y")
    result = merged(lay_out(out.finish()))
    assert sorted(result.slices.ts.tolist()) == [1000, 1003]
    assert {track.clock for track in result.tracks} == {0}


def gaps(*traces: Trace) -> list[int]:
    return [len(line.warnings) for line in align(traces).receipt]


def test_files_without_overlap_are_noticed() -> None:
    first, *_ = align([full("a"), full("b", HOUR), full("c", HOUR + 50)]).receipt
    assert "is 59 min away from b" in first.warnings[0]
    assert gaps(full("a"), full("b", HOUR), full("c", HOUR + 50)) == [1, 0, 0]
    assert gaps(full("a"), full("b", 140)) == [0, 0]
    assert gaps(full("a"), full("b", 141)) == [1, 1]
    assert gaps(full("a")) == [0]
    assert gaps(full("a"), lay_out(builder("e").finish())) == [0]
    described = merged(full("a"), full("b", HOUR)).tracks[0].description
    assert "but it does not overlap in time with any other input" in described


@pytest.mark.parametrize("offset", [LIMIT_NS, -LIMIT_NS - 200, 2**63, -(2**64), 10**30])
def test_times_out_of_range_are_refused(offset: int) -> None:
    with pytest.raises(UsageError, match="b: after the move, its times are more than 146 years from zero") as error:
        merged(full("a"), full("b"), o1=offset)
    assert "--offset" in error.value.hint


def test_times_at_the_end_of_the_range_are_fine() -> None:
    result = merged(full("a"), full("b"), o1=LIMIT_NS - 140)
    assert result.span() == (0, LIMIT_NS)


# -- processes --------------------------------------------------------------------------------------------------------


def process_trace(name: str, start: int, pid: int | None, tids: tuple[int, ...], clock: ClockDomain = HOST) -> Trace:
    """A process with threads, each with two crossing slices, and a queue that belongs to the process."""
    out = builder(name, clock)
    process = out.tracks.process(f"{name} process", pid=pid)
    for track in [
        *(out.tracks.thread(process, tid, f"{name} {tid}") for tid in tids),
        out.tracks.add(f"{name} queue", process),
    ]:
        for ts in (0, 5):
            out.slice(track, start + ts, 10, f"{name} {ts}")
    return lay_out(out.finish())


def tree(trace: Trace) -> dict[str, str]:
    """For each track that is not an overflow lane the name of its parent."""
    names = {number: track.name for number, track in enumerate(trace.tracks)}
    return {track.name: names.get(track.parent, "") for track in trace.tracks if track.lane_of == NO_TRACK}


def test_one_process_of_two_files() -> None:
    traces = [process_trace("a", 0, 7, (1, 2)), process_trace("b", 3, 7, (2, 3))]
    result = merged(*traces)
    processes = [track for track in result.tracks if track.kind is TrackKind.PROCESS]
    assert [(track.name, track.pid) for track in processes] == [("a process", 7)]
    assert result.counts()["slices"] == 12
    parents = tree(result)
    assert parents["b queue"] == parents["b 3"] == parents["a 1"] == "a process"
    # Thread 2 is known to both: what b says of it stands beside what a says, under the same thread.
    assert parents["format-b: b 2"] == "a 2"
    threads = [(track.tid, track.name) for track in result.tracks if track.kind is TrackKind.THREAD]
    assert threads == [(1, "a 1"), (2, "a 2"), (3, "b 3")]
    assert all(track.clock == 0 for track in result.tracks)


def joined(*traces: Trace, same_machine: bool = False) -> bool:
    result = merged(*traces, same_machine=same_machine)
    assert result.counts()["slices"] == sum(trace.counts()["slices"] for trace in traces)
    return sum(track.kind is TrackKind.PROCESS for track in result.tracks) < len(traces)


OTHER = replace(REALTIME, machine="other host")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (process_trace("b", 3, 7, (2,)), True),
        (process_trace("b", 59 * 10**9, 7, (2,)), True),
        (process_trace("b", 61 * 10**9, 7, (2,)), False),  # the number may be used again
        (process_trace("b", -61 * 10**9, 7, (2,)), False),
        (process_trace("b", 3, 8, (2,)), False),
        (process_trace("b", 3, None, (2,)), False),
        (process_trace("b", 3, 7, (2,), OTHER), False),
        (process_trace("b", 3, 7, (2,), REALTIME), True),  # the machine is assumed: the other one names it
    ],
)
def test_when_processes_are_one(other: Trace, expected: bool) -> None:
    assert joined(process_trace("a", 0, 7, (1,)), other) is expected
    assert joined(other, process_trace("a", 0, 7, (1,))) is expected


def test_unknown_machines_are_not_one() -> None:
    traces = [process_trace(name, 0, 7, (1,), REALTIME) for name in "ab"]
    assert not joined(*traces)
    assert joined(*traces, same_machine=True)
    assert not joined(process_trace("a", 0, None, (1,)), process_trace("b", 0, None, (1,)), same_machine=True)
    assert not joined(traces[0], process_trace("b", 0, 8, (1,), REALTIME), same_machine=True)


def processes(trace: Trace) -> list[set[str]]:
    """For each process the inputs whose slices it has, by the first letter of these."""
    found: dict[int, set[str]] = {}
    for track, text in zip(trace.slices.track.tolist(), trace.slices.name.tolist(), strict=True):
        while trace.tracks[track].parent != NO_TRACK:
            track = trace.tracks[track].parent
        found.setdefault(track, set()).add(trace.strings[text][0])
    return sorted(found.values(), key=sorted)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_three_files_of_one_process_in_a_chain(order: tuple[int, ...]) -> None:
    """Each within a minute of the one before, not of the first; in whatever order they are given."""
    traces = [process_trace("abc"[at], at * 50 * 10**9, 7, (1,)) for at in order]
    result = merged(*traces)
    assert processes(result) == [{"a", "b", "c"}]
    threads = [track for track in result.tracks if track.kind is TrackKind.THREAD]
    assert [track.tid for track in threads] == [1]
    assert result.counts()["slices"] == sum(trace.counts()["slices"] for trace in traces)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_an_older_process_of_that_pid_keeps_others_together(order: tuple[int, ...]) -> None:
    starts = (0, 2 * HOUR, 2 * HOUR + 3)
    assert processes(merged(*(process_trace("abc"[at], starts[at], 7, (1,)) for at in order))) == [{"a"}, {"b", "c"}]


@pytest.mark.parametrize(("machines", "expected"), [(("h", "h"), [{"a", "b"}]), (("h", "g"), [{"a"}, {"b"}])])
@pytest.mark.parametrize("kind", [ClockKind.MONOTONIC, ClockKind.REALTIME])
def test_machines_that_the_user_states(kind: ClockKind, machines: tuple[str, str], expected: list[set[str]]) -> None:
    private = ClockDomain("p", Zero.UNKNOWN, Run.MONOTONIC)
    start = 1_790_000_000 * 10**9 if kind is ClockKind.REALTIME else 0
    traces = [process_trace(name, start, 7, (1,), private) for name in "ab"]
    constraints = Constraints(clocks={index: ClockConstraint(kind, machine) for index, machine in enumerate(machines)})
    offsets = {1: 0} if machines[0] != machines[1] else {}
    result = merge_traces(traces, align(traces, constraints=replace(constraints, offsets=offsets)))
    assert processes(result) == expected
    assert not any(found.code is SAME_PID for source in result.sources for found in source.diagnostics)


def test_one_machine_that_has_two_names_is_one_by_the_word_of_the_user() -> None:
    """Containers have names of their own."""
    traces = [process_trace("a", 0, 7, (1,)), process_trace("b", 0, 7, (1,), OTHER), process_trace("c", 0, 7, (1,))]
    assert processes(merged(*traces)) == [{"a", "c"}, {"b"}]
    assert processes(merged(*traces, same_machine=True)) == [{"a", "b", "c"}]


def test_threads_of_other_processes_stay_as_they_are() -> None:
    out = builder("e", HOST)
    process = out.tracks.process("e process", pid=9)
    for name in ("first", "second"):
        out.slice(out.tracks.thread(process, 1, name), 0, 5, name)
    result = merged(process_trace("a", 0, 7, (1,)), process_trace("b", SECOND, 7, (1,)), lay_out(out.finish()))
    threads = [(track.name, track.tid) for track in result.tracks if track.kind is TrackKind.THREAD]
    assert threads == [("a 1", 1), ("first", 1), ("second", 1)]


def test_two_tracks_of_one_thread_in_a_file_stay_two_where_its_process_is_joined() -> None:
    out = builder("b", HOST)
    process = out.tracks.process("b process", pid=7)
    for name in ("first", "second"):
        out.slice(out.tracks.thread(process, 1, name), SECOND, 5, name)
    one, two = process_trace("a", 0, 7, (1,)), lay_out(out.finish())
    for order, names in (((one, two), ["a 1", "second"]), ((two, one), ["first", "second"])):
        threads = [track for track in merged(*order).tracks if track.kind is TrackKind.THREAD]
        assert [(track.tid, track.name) for track in threads] == [(1, name) for name in names]


def test_a_sample_without_stack_gets_none_of_another_file() -> None:
    traces = []
    for name in "ab":
        out = builder(name, HOST)
        thread = out.tracks.thread(out.tracks.process(name, pid=7), 1)
        out.sample(thread, 5, out.frame(f"{name} function"), name, cpu=4)
        out.sample(thread, 6, StackId(-1), name)
        traces.append(lay_out(out.finish()))
    result = merged(*traces)
    assert sorted(result.samples.stack.tolist()) == [-1, -1, 0, 1]
    assert dict(zip(result.samples.ts.tolist(), result.samples.cpu.tolist(), strict=True)) == {5: 4, 6: NO_CPU}


def test_a_thread_of_two_files_at_the_same_time_gets_a_track_beside_it() -> None:
    result = merged(process_trace("a", 0, 7, (1,)), process_trace("b", 0, 7, (1,)))
    assert "format-b: b 1" in tree(result)


def test_equal_pids_of_unknown_machines_are_told() -> None:
    traces = [process_trace(name, 0, 7, (1,), REALTIME) for name in "ab"]
    result = merged(*traces)
    assert [found.count for found in result.sources[1].diagnostics if found.code is SAME_PID] == [1]


def test_samples_go_to_the_thread_that_another_file_has() -> None:
    out = builder("perf", HOST)
    process = out.tracks.process("python", pid=7)
    thread = out.tracks.thread(process, 1)
    out.sample(thread, 5, out.frame("main"), "cycles")
    result = merged(process_trace("a", 0, 7, (1,)), lay_out(out.finish()))
    threads = [number for number, track in enumerate(result.tracks) if track.tid == 1]
    assert threads == result.samples.track.tolist()
    assert set(threads) < set(result.slices.track.tolist())


def test_times_before_zero_are_told() -> None:
    private = ClockDomain("p", Zero.UNKNOWN, Run.MONOTONIC)
    result = merged(process_trace("a", -5000, 7, (1,), private))
    assert any("before zero: outputs add 5 µs" in note for note in result.sources[0].notes)


def test_a_file_with_two_processes_of_one_number_keeps_both() -> None:
    """Within one file its own tracks decide."""
    out = builder("a", HOST)
    for name in ("first", "second"):
        out.slice(out.tracks.thread(out.tracks.process(name, pid=7), 1, name), 0, 5, name)
    result = merged(lay_out(out.finish()), full("b"))
    assert {track.name for track in result.tracks if track.kind is TrackKind.PROCESS} == {
        "first",
        "second",
        "b process",
    }


def test_events_on_a_process_itself_stay_visible() -> None:
    traces = []
    for name in "ab":
        out = builder(name, HOST)
        out.instant(
            out.tracks.append(Track(TrackKind.PROCESS, f"{name} process", pid=7, labels=("x",))), 5, f"{name} i"
        )
        traces.append(lay_out(out.finish()))
    result = merged(*traces)
    assert tree(result) == {"a process": "", "format-b: b process": "a process"}
    assert result.instants.track.tolist() == [0, 1]


def test_the_alignment_has_a_map_for_each_file() -> None:
    with pytest.raises(ValueError, match="shorter"):
        merge_traces([full("a"), full("b")], Alignment(REALTIME, [{}], []))
