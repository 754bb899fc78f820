"""Where a .pftrace puts what is no process or thread, asked of the trace processor, and what comes back from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import oracle
from tests.oracle.fixtures import OpenTrace
from traceconv.api import Output, read, write
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.layout import lay_out
from traceconv.model.marks import FormatMarks
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, TrackKind

T = 1_000_000

_ROWS = """
    select t.name, s.name as slice, p.name as parent, s.depth from slice s join track t on t.id = s.track_id
    left join track p on p.id = t.parent_id order by s.ts, s.dur desc
"""


def builder(marks: FormatMarks | None = None) -> Builder:
    info = SourceInfo("run.json", "pytorch-kineto")
    if marks is not None:
        info.marks = marks
    return Builder(info, REALTIME)


def rows(trace: Trace, trace_processor: OpenTrace, path: Path) -> list[tuple[object, ...]]:
    write(trace, Output(path, force=True))
    with trace_processor(path) as tp:
        assert oracle.import_problems(tp) == []
        return [tuple(row.values()) for row in oracle.rows(tp, _ROWS)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.pftrace"


def test_ranges_are_above_the_work_of_a_queue_and_not_around_it(trace_processor: OpenTrace, path: Path) -> None:
    out = builder(FormatMarks(asides=("range",)))
    device = out.tracks.add("GPU 0", NO_TRACK)
    queues = [out.tracks.add(f"stream {number}", device) for number in (7, 8)]
    for queue in queues:
        out.slice(queue, T, 10, "before", "kernel")
        out.slice(queue, T + 20, 30, "step", "range")
        out.slice(queue, T + 25, 10, "inside", "kernel")
    thread = out.tracks.thread(out.tracks.process("python", pid=5), 6, "main")
    out.slice(thread, T, 50, "around", "range")
    out.slice(thread, T + 20, 10, "call", "cpu_op")
    trace = lay_out(out.finish())
    names = [track.name for track in trace.tracks if track.kind is TrackKind.TRACK]
    assert names == ["GPU 0", "ranges on stream 7", "stream 7", "ranges on stream 8", "stream 8"]
    found = rows(trace, trace_processor, path)
    assert {row[:2] for row in found if row[1] == "step"} == {(name, "step") for name in names if name[0] == "r"}
    assert [row[3] for row in found if row[1] in ("before", "inside")] == [0, 0, 0, 0]
    assert [row[3] for row in found if row[1] == "call"] == [1]


def odd() -> Trace:
    """A process, a thread that the system does not have, a process that it does not have, and a device."""
    out = builder()
    process, other = out.tracks.process("python", pid=5), out.tracks.process("python", pid=0)
    for number, (parent, tid) in enumerate([(process, 6), (process, -7), (other, 0), (other, 8)]):
        out.slice(out.tracks.thread(parent, tid, "worker"), T + number, 1, f"slice {number}")
    out.slice(out.tracks.add("stream 7", out.tracks.add("GPU 0", NO_TRACK)), T + 9, 1, "kernel")
    return lay_out(out.finish())


def test_no_number_is_made_up_for_what_has_an_impossible_one(trace_processor: OpenTrace, path: Path) -> None:
    assert rows(odd(), trace_processor, path) == [
        (None, "slice 0", None, 0),
        ("worker (tid -7)", "slice 1", None, 0),
        ("worker (tid 0)", "slice 2", "python (pid 0)", 0),
        ("worker 8", "slice 3", "python (pid 0)", 0),
        ("GPU 0 · stream 7", "kernel", None, 0),
    ]
    with trace_processor(path) as tp:
        assert {row["pid"] for row in oracle.rows(tp, "select pid from process where pid > 0")} == {5}


def test_impossible_numbers_come_back(path: Path) -> None:
    write(odd(), Output(path))
    back = read(path)
    found = [(track.kind, track.name, track.pid, track.tid) for track in back.tracks]
    process, thread = TrackKind.PROCESS, TrackKind.THREAD
    assert sorted(one for one in found if one[0] in (process, thread)) == sorted(
        [(process, "python", 5, None), (process, "python", 0, None)]
        + [(thread, "worker", None, tid) for tid in (6, -7, 0, 8)]
    )


def test_a_device_is_inside_the_only_process_that_launches_on_it(trace_processor: OpenTrace, path: Path) -> None:
    out = builder()
    calls = {}
    for pid in (5, 6):
        calls[pid] = out.slice(
            out.tracks.thread(out.tracks.process("python", pid=pid), pid, "main"), T + pid, 1, "call"
        )
    for number, pids in enumerate([(5,), (6,), (5, 6)]):
        stream = out.tracks.add("stream", out.tracks.add(f"GPU {number}", NO_TRACK))
        for pid in pids:
            out.flow(calls[pid], out.slice(stream, T + 10 * number + 10 + pid, 1, f"kernel {number}"), "launch")
    rows(lay_out(out.finish()), trace_processor, path)
    sql = """
        select s.name as kernel, p.pid from slice s join track t on t.id = s.track_id
        left join process_track pt on pt.id = t.id left join process p using (upid)
        where s.name glob 'kernel*' group by s.name
    """
    with trace_processor(path) as tp:
        found = [tuple(row.values()) for row in oracle.rows(tp, sql)]
    assert found == [("kernel 0", 5), ("kernel 1", 6), ("kernel 2", None)]


def test_rows_about_the_recording_are_in_one_group(trace_processor: OpenTrace, path: Path) -> None:
    out = builder(FormatMarks(asides=("Trace",)))
    process = out.tracks.process("python", pid=5)
    out.slice(out.tracks.thread(process, 6, "main"), T, 9, "work")
    out.slice(out.tracks.add("overhead", process), T, 9, "flush", "overhead")
    out.slice(out.tracks.add("Spans", process), T, 9, "span", "Trace")
    out.instant(out.tracks.add("Global events", process), T, "start")
    out.counter(out.tracks.counter("memory", process), T, 1)
    found = rows(lay_out(out.finish()), trace_processor, path)
    parents = {str(row[1]): (row[0], row[2]) for row in found}
    assert parents == {
        "work": (None, None),
        "flush": ("overhead", None),
        "span": ("Spans", "· Marks"),
        "start": ("Global events", "· Marks"),
    }


def test_a_lane_of_a_thread_does_not_have_its_name_once_more(trace_processor: OpenTrace, path: Path) -> None:
    out = builder()
    thread = out.tracks.thread(out.tracks.process("python", pid=5), 6, "main")
    out.slice(thread, T, 10, "one")
    out.slice(thread, T + 5, 10, "two")
    trace = lay_out(out.finish())
    assert [row[:2] for row in rows(trace, trace_processor, path)] == [(None, "one"), ("overlapping", "two")]
    assert [track.name for track in read(path).tracks] == ["python", "main", "main"]
