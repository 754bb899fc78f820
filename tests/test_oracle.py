"""The oracle itself: it must see what is right, what is lost and what does not load."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
from perfetto.trace_builder.proto_builder import TraceProtoBuilder
from perfetto.trace_processor import TraceProcessorException

from tests import HANG_S, oracle
from tests.oracle.fixtures import OpenTrace

BOOTTIME = 6
SEQUENCE_CLOCK = 64  # 64..127: a clock that only one packet sequence knows
UNKNOWN_CLOCK = 99
SEQUENCE = 7
THREAD, COUNTER = 2, 3
BASE_NS = 1_000_000_000

WriteTrace = Callable[[bytes], Path]

SLICES = "select ts, dur, name, depth from slice order by ts, depth"


def packet(builder: TraceProtoBuilder) -> TracePacket:
    new = builder.add_packet()
    new.trusted_packet_sequence_id = SEQUENCE
    return new


def event(builder: TraceProtoBuilder, ts: int, kind: int, *, clock: int = 0, name: str = "") -> TracePacket:
    new = packet(builder)
    new.timestamp = ts
    new.track_event.type = kind
    new.track_event.track_uuid = THREAD
    if clock:
        new.timestamp_clock_id = clock
    if name:
        new.track_event.name = name
    return new


def sound_proto() -> bytes:
    """A thread and a counter; 500 ns on the sequence's own clock is BASE_NS on the trace clock."""
    builder = TraceProtoBuilder()
    head = packet(builder)
    head.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    head.clock_snapshot.primary_trace_clock = BOOTTIME
    head.clock_snapshot.clocks.add(clock_id=BOOTTIME, timestamp=BASE_NS)
    head.clock_snapshot.clocks.add(clock_id=SEQUENCE_CLOCK, timestamp=500)
    thread = packet(builder).track_descriptor
    thread.uuid = THREAD
    thread.thread.pid, thread.thread.tid, thread.thread.thread_name = 10, 11, "worker"
    counter = packet(builder).track_descriptor
    counter.uuid, counter.name, counter.counter.unit_name = COUNTER, "load", "things"
    event(builder, BASE_NS + 100, TrackEvent.TYPE_SLICE_BEGIN, name="outer")
    event(builder, 500 + 150, TrackEvent.TYPE_SLICE_BEGIN, clock=SEQUENCE_CLOCK, name="inner")
    event(builder, 500 + 170, TrackEvent.TYPE_SLICE_END, clock=SEQUENCE_CLOCK)
    event(builder, BASE_NS + 300, TrackEvent.TYPE_SLICE_END)
    value = event(builder, BASE_NS + 200, TrackEvent.TYPE_COUNTER)
    value.track_event.track_uuid, value.track_event.counter_value = COUNTER, 8
    return builder.serialize()


def sound_json() -> bytes:
    events = [
        {"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 1.5, "dur": 10.25},
        {"ph": "B", "name": "b", "pid": 1, "tid": 2, "ts": 2},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 5},
    ]
    return json.dumps({"traceEvents": events}).encode()


@pytest.fixture
def trace_file(tmp_path: Path) -> WriteTrace:
    def write(data: bytes) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.trace"
        path.write_bytes(data)
        return path

    return write


def test_sound_proto(trace_processor: OpenTrace, trace_file: WriteTrace) -> None:
    with trace_processor(trace_file(sound_proto())) as tp:
        assert oracle.rows(tp, SLICES) == [
            {"ts": BASE_NS + 100, "dur": 200, "name": "outer", "depth": 0},
            {"ts": BASE_NS + 150, "dur": 20, "name": "inner", "depth": 1},
        ]
        counters = "select ts, value, name from counter join counter_track t on track_id = t.id"
        assert oracle.rows(tp, counters) == [{"ts": BASE_NS + 200, "value": 8.0, "name": "load"}]
        assert oracle.import_problems(tp) == []


def test_sound_json(trace_processor: OpenTrace, trace_file: WriteTrace) -> None:
    with trace_processor(trace_file(sound_json())) as tp:
        assert oracle.rows(tp, SLICES) == [
            {"ts": 1500, "dur": 10250, "name": "a", "depth": 0},
            {"ts": 2000, "dur": 3000, "name": "b", "depth": 1},
        ]
        assert oracle.import_problems(tp) == []


def test_error_is_noticed(trace_processor: OpenTrace, trace_file: WriteTrace) -> None:
    builder = TraceProtoBuilder()
    event(builder, 10, TrackEvent.TYPE_INSTANT, clock=UNKNOWN_CLOCK, name="x")
    with trace_processor(trace_file(builder.serialize())) as tp:
        assert "clock_sync_failure" in str(oracle.stats_errors(tp))


def test_quiet_loss_is_noticed(trace_processor: OpenTrace, trace_file: WriteTrace) -> None:
    """An event that needs the incremental state of a sequence which never began."""
    builder = TraceProtoBuilder()
    lost = event(builder, 10, TrackEvent.TYPE_INSTANT, name="x")
    lost.sequence_flags = TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
    with trace_processor(trace_file(builder.serialize())) as tp:
        assert oracle.rows(tp, SLICES) == []
        assert oracle.stats_errors(tp) == []
        assert [row["name"] for row in oracle.import_problems(tp)] == ["tokenizer_skipped_packets"]


@pytest.mark.parametrize("data", [b"hello, world\n" * 10, sound_json()[:-20]], ids=["text", "cut-json"])
def test_refused_trace(trace_processor: OpenTrace, trace_file: WriteTrace, data: bytes) -> None:
    with pytest.raises(oracle.TraceRefused), trace_processor(trace_file(data)):
        pass
    with trace_processor(trace_file(sound_json())) as tp:  # the server is still good
        assert len(oracle.rows(tp, SLICES)) == 2


def test_bad_sql(trace_processor: OpenTrace, trace_file: WriteTrace) -> None:
    with trace_processor(trace_file(sound_json())) as tp:
        with pytest.raises(TraceProcessorException, match="no such column"):
            tp.query("select nonsense")
        assert len(oracle.rows(tp, SLICES)) == 2


def test_two_traces_at_once(trace_processor: OpenTrace, trace_file: WriteTrace) -> None:
    with trace_processor(trace_file(sound_proto())) as one, trace_processor(trace_file(sound_json())) as two:
        assert [row["name"] for row in oracle.rows(one, SLICES)] == ["outer", "inner"]
        assert [row["name"] for row in oracle.rows(two, SLICES)] == ["a", "b"]


def test_64_bit_values_are_exact(trace_processor: OpenTrace, trace_file: WriteTrace) -> None:
    with trace_processor(trace_file(sound_json())) as tp:
        sql = "select 9223372036854775807 as big, -9223372036854775808 as low, null as none"
        assert oracle.rows(tp, sql) == [{"big": 2**63 - 1, "low": -(2**63), "none": None}]


def test_server_ends_with_its_client(trace_processor: OpenTrace) -> None:
    """A client that dies without any cleanup takes its server with it."""
    code = "import os; from tests import oracle; oracle._Server(); os._exit(3)"
    # The server inherits stderr, so run() comes back only when both have ended.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 3, done.stderr
