"""Which window of time is shown first."""

from __future__ import annotations

import io
import json
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tests.decode import decode_pftrace
from tests.golden import ROOT, Case, written
from traceconv.api import read
from traceconv.families.perfetto.writer import PerfettoProto
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.layout import lay_out
from traceconv.model.marks import FormatMarks
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.trace_inputs import concatenate_traces
from traceconv.model.track_table import TrackKind
from traceconv.opening import address_part
from traceconv.writers.order import window

MS = 1_000_000


def recording(*spans: tuple[int, int], mark: int | None = None, totals: bool = False) -> Trace:
    """Slices of a thread from and to some ms, and a mark."""
    out = Builder(SourceInfo("a", "b"), REALTIME)
    thread = out.tracks.thread(out.tracks.process("p", pid=1), 1)
    for start, end in spans:
        out.slice(thread, start * MS, (end - start) * MS, "work")
    if mark is not None:
        out.instant(thread, mark * MS, "mark")
    if totals:
        out.belongs_to(("b",))
    return lay_out(out.finish())


def merged(*traces: Trace) -> Trace:
    """The recordings in one trace, as they are."""
    for number, trace in enumerate(traces):
        for index in range(len(trace.tracks)):
            trace.tracks.changeable(index).source = number  # type: ignore[attr-defined]
    return concatenate_traces(traces)


STARTUP = [(0, 50), (2390, 2400)]


@pytest.mark.parametrize(
    ("traces", "expected"),
    [
        ([recording((0, 10), (90, 100))], None),
        ([recording((0, 10), mark=100)], (0, 10.2)),
        ([recording(*STARTUP), recording((2377, 2400))], (2376.54, 2400)),
        ([recording((0, 100)), recording((20, 100))], None),
        ([recording((0, 100)), recording((9000, 9001))], (0, 102)),
        ([recording((0, 100)), recording((0, 1), totals=True)], None),
    ],
    ids=["whole", "mark", "start-up", "nearly", "far", "totals"],
)
def test_the_window_is_where_the_work_is(traces: list[Trace], expected: tuple[float, float] | None) -> None:
    found = window(merged(*traces))
    assert found == (expected and tuple(round(ms * MS) for ms in expected))


def test_how_long_the_recording_took_is_no_work() -> None:
    out = Builder(SourceInfo("a", "b", marks=FormatMarks(asides=("Trace",))), REALTIME)
    process = out.tracks.process("p", pid=1)
    out.slice(out.tracks.add("Spans", process), 0, 100 * MS, "Profiler", "Trace")
    thread = out.tracks.thread(process, 1)
    out.slice(thread, 40 * MS, 10 * MS, "work", "Trace")  # beside one that is not about it
    out.slice(thread, 50 * MS, 10 * MS, "work", "op")
    assert window(lay_out(out.finish())) == (39.6 * MS, 60.4 * MS)


def pftrace(*traces: Trace) -> bytes:
    """The recordings as a file."""
    sink = io.BytesIO()
    PerfettoProto().write(merged(*traces), sink)
    return sink.getvalue()


def test_the_file_says_its_window_once() -> None:
    packets = pb.Trace.FromString(pftrace(recording(*STARTUP), recording((2377, 2400)))).packet
    said = [(p.service_event, p.timestamp) for p in packets if p.HasField("service_event")]
    assert [time for _, time in said] == [2376.54 * MS, 2400 * MS]
    assert [one.tracing_started for one, _ in said] == [True, False]
    assert [one.tracing_disabled for one, _ in said] == [False, True]
    assert not any(p.timestamp_clock_id or p.HasField("clock_snapshot") for p in packets)


def address(head: bytes) -> dict[str, list[str]]:
    part = address_part(head)
    assert part.startswith("&")
    return parse_qs(part[1:], strict_parsing=True)


def test_the_address_says_where_and_what_to_expand() -> None:
    found = address(pftrace(recording(*STARTUP), recording((2377, 2400)))[:4000])
    assert found["visStart"] == ["2376540000"]
    assert found["visEnd"] == ["2400000000"]
    assert found["hideSidebar"] == ["true"]
    (command,) = json.loads(found["startupCommands"][0])
    assert command == {"id": "dev.perfetto.ExpandTracksByRegex", "args": ["^(p 1|p \\(pid 1\\) 10000000)$"]}


def test_a_window_that_is_the_whole_trace_is_not_in_the_address() -> None:
    assert address(pftrace(recording((0, 10)))).keys() == {"hideSidebar", "startupCommands"}


@pytest.mark.parametrize(
    ("case", "title"),
    [("timed-log/json-arrivals", "input.jsonl 10000000"), ("perf-report/three_events_with_counts", "input.txt")],
)
def test_what_has_only_log_entries_is_expanded(case: str, title: str) -> None:
    sent = address(written(read(Case(ROOT / case).input), "perfetto"))
    expanded = [json.loads(command)[0]["args"] for command in sent.get("startupCommands", [])]
    assert expanded == ([[f"^({title.replace('.', chr(92) + '.')})$"]] if title else [])


def table(name: str) -> Trace:
    """A file with one track at the top, of no process."""
    out = Builder(SourceInfo(name, "b"), REALTIME)
    out.slice(out.tracks.add("Totals"), 0, MS, "row")
    return lay_out(out.finish())


def test_tracks_at_the_top_are_in_a_group_with_the_name_of_their_input() -> None:
    """Else the UI puts them into "Global Track Events". Inputs of one name have a group each."""
    data = pftrace(recording((0, 10)), table("one/log.txt"), table("two/log.txt"))
    found = [p.track_descriptor for p in pb.Trace.FromString(data).packet if p.HasField("track_descriptor")]
    groups = [track for track in found if track.name == "log.txt"]
    assert len({track.uuid for track in groups}) == len({track.sibling_merge_key_int for track in groups}) == 2
    assert {track.sibling_merge_behavior for track in groups} == {
        pb.TrackDescriptor.SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY
    }
    parents = [track.parent_uuid for track in found if track.name == "Totals"]
    assert parents == [track.uuid for track in groups]
    (command,) = json.loads(address(data)["startupCommands"][0])
    assert command["args"] == [r"^(p 1|log\.txt)$"]


def test_the_group_of_an_input_is_no_track(tmp_path: Path) -> None:
    """The file says which of its tracks are such groups; one with events stays, whatever it says."""
    path = tmp_path / "out.pftrace"
    path.write_bytes(pftrace(recording((0, 10)), table("one/log.txt"), table("two/log.txt")))
    found = read(path).tracks
    assert [(track.name, track.parent) for track in found if track.kind is TrackKind.TRACK] == [("Totals", -1)] * 2
    of_events = pb.Trace.FromString(path.read_bytes())
    (group, *_) = [p.track_descriptor for p in of_events.packet if p.track_descriptor.name == "log.txt"]
    (event, *_) = [p.track_event for p in of_events.packet if p.track_event.type == pb.TrackEvent.TYPE_SLICE_BEGIN]
    event.track_uuid = group.uuid
    path.write_bytes(of_events.SerializeToString())
    assert len(read(path).slices.ts) == 3


@pytest.mark.parametrize(
    "value", ["", "[", "[1]", '{"window_ns": [1], "expand": [1]}', '{"window_ns": "x", "expand": 5}', "[" * 100_000]
)
def test_an_attribute_that_makes_no_sense_is_left_out(value: str) -> None:
    trace = pb.Trace()
    attribute = trace.packet.add().trace_attributes.attribute.add()
    attribute.key, attribute.string_value = "traceconv.view", value
    assert address(trace.SerializeToString()) == {"hideSidebar": ["true"]}


@pytest.mark.parametrize("head", [b"", b"\x0a\x05ab", b'{"traceEvents": []}', b"[" * 10, bytes(range(256))])
def test_a_foreign_file_only_shuts_the_sidebar(head: bytes) -> None:
    assert address(head) == {"hideSidebar": ["true"]}


def test_a_trace_that_is_read_back_says_its_view_once(tmp_path: Path) -> None:
    file = tmp_path / "a.pftrace"
    file.write_bytes(pftrace(recording(*STARTUP), recording((2377, 2400))))
    assert not [key for key in read(file).metadata if "view" in key]


def test_primitives_say_what_tells_them_apart(tmp_path: Path) -> None:
    """In pictures; the trace itself and the JSON have the name alone."""
    case = Case(ROOT / "merge" / "kineto-onednn")
    trace = case.merged(case.traces(tmp_path))
    slices = {name for _, _, _, name, *_ in decode_pftrace(written(trace, "perfetto")).slices}
    assert {"convolution 8x16x28x28 jit:avx512_core", "reorder 16x3x5x5 jit:uni"} <= slices
    assert "convolution" in trace.strings
    assert b'jit:avx512_core"' in written(trace, "chrome-json")
    assert b"convolution 8x16x28x28" not in written(trace, "chrome-json")


@pytest.mark.parametrize("kind", ["samples", "counters"])
def test_what_has_no_slices_opens_at_the_rest(kind: str) -> None:
    out = Builder(SourceInfo("a", "b"), REALTIME)
    process = out.tracks.process("p", pid=7)
    if kind == "samples":
        out.sample(out.tracks.thread(process, 7), MS, out.frame("main"))
    else:
        out.counter(out.tracks.counter("c", process), MS, 1)
    out.counter(out.tracks.counter("d", out.tracks.process("other", pid=8)), MS, 1)
    view = address_part(pftrace(lay_out(out.finish())))
    (commands,) = parse_qs(view)["startupCommands"]
    assert json.loads(commands)[0]["args"] == ["^(p 7)$" if kind == "samples" else "^(p 7|other 8)$"]
