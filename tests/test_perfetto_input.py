"""Perfetto traces as an input: our own output comes back, and what only other writers write is understood."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import zlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tests import oracle
from tests.decode import decode_pftrace, events_of
from tests.golden import ROOT, Case, written
from tests.make_perfetto import BASE, Packets, snapshot
from tests.make_perfetto import CASES as MADE
from tests.shapes import every_shape
from traceconv.align import align
from traceconv.api import Output, convert, identify, read
from traceconv.errors import MalformedInput, TraceconvError
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.diagnostics import Severity
from traceconv.model.layout import lay_out, validate
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import NO_CPU, Trace
from traceconv.model.track_table import TrackKind
from traceconv.reading import NO_DATA

Message = Any


# -- our own output -----------------------------------------------------------------------------------------------


@every_shape
def test_own_output_comes_back(case: Case, tmp_path: Path) -> None:
    """Written, read, written again: the same events on the same tracks.

    What Perfetto's format has no place for is not there: names of flows; the name "" of samples; a sampled track that
    is neither process nor thread is a thread. Tracks without events go. A merge adds a line to the description of each
    track at the top.
    """
    first = case.merged(case.traces(tmp_path))
    path = tmp_path / "unknown"
    path.write_bytes(written(first, "perfetto"))
    if any(first.counts().values()):
        assert identify(path)[0] == "perfetto"
    back = read(path, format="perfetto")
    assert back.counts() == first.counts()
    told = [entry.code for entry in back.sources[0].diagnostics if entry.code.severity > Severity.INFO]
    assert told == ([] if any(first.counts().values()) else [NO_DATA])
    # The writer moves times before zero; they come back to where they were.
    assert [span_of(back)] == [span_of(first)]
    second = merge_traces([back], align([back]))
    validate(second)
    assert second.clocks[0].describe() == first.clocks[0].describe()
    again = written(second, "perfetto")
    assert decode_pftrace(again) == decode_pftrace(path.read_bytes()) == events_of(first)
    assert tracks_of(again) == tracks_of(path.read_bytes())
    assert weights_of(back) == weights_of(first)


def span_of(trace: Trace) -> tuple[int, int] | None:
    return trace.span()


def weights_of(trace: Trace) -> list[tuple[int, str, int, int]]:
    """Of each sample: time, name, weight, CPU; samples without a name are called so."""
    table = trace.samples
    names = [trace.strings[name] or "samples" for name in table.name]
    return sorted(zip(table.ts.tolist(), names, table.weight.tolist(), table.cpu.tolist(), strict=True))


def tracks_of(data: bytes) -> list[tuple[Any, ...]]:
    """All tracks with events of a .pftrace, as they look in Perfetto: names from the top, order, unit, help."""
    trace = pb.Trace.FromString(data)
    declared = [p.track_descriptor for p in trace.packet if p.HasField("track_descriptor") and p.track_descriptor.uuid]
    tracks = {track.uuid: track for track in declared}
    processes = {track.process.pid: track for track in declared if track.HasField("process")}
    threads = {(track.thread.pid, track.thread.tid): track for track in declared if track.HasField("thread")}

    def above(track: Message) -> Message | None:
        found: Message | None = processes.get(track.thread.pid) if track.HasField("thread") else None
        return found if track.HasField("thread") else tracks.get(track.parent_uuid)

    def path(track: Message) -> tuple[str, ...]:
        parent = above(track)
        ids = f"process {track.process.pid} thread {track.thread.pid}/{track.thread.tid}"
        own = f"{ids} {track.process.process_name}{track.thread.thread_name}{track.name}"
        return (*(path(parent) if parent is not None else ()), own)

    used: dict[int, Message] = {}
    for packet in trace.packet:
        at = tracks.get(packet.track_event.track_uuid)
        if packet.HasField("perf_sample"):
            pid, tid = packet.perf_sample.pid, packet.perf_sample.tid
            at = threads.get((pid, tid), processes.get(pid))
        while at is not None and at.uuid not in used:
            used[at.uuid] = at
            at = above(at)
    drawn_as_one = Counter((path(track), track.sibling_merge_key_int) for track in used.values())
    children: dict[int, list[Message]] = defaultdict(list)
    for track in used.values():
        parent = above(track)
        children[parent.uuid if parent is not None else 0].append(track)
    order = {
        track.uuid: place
        for siblings in children.values()
        for place, track in enumerate(sorted(siblings, key=lambda one: one.sibling_order_rank))
    }
    return sorted(
        (
            path(track),
            order[track.uuid],
            drawn_as_one[path(track), track.sibling_merge_key_int],
            str(track.counter),
            tuple(track.process.process_labels),
            track.description.split("From ")[0],
        )
        for track in used.values()
    )


# -- what other writers write -------------------------------------------------------------------------------------


def read_bytes(folder: Path, data: bytes) -> Trace:
    path = folder / "other.pftrace"
    path.write_bytes(data)
    assert identify(path)[0] == "perfetto"
    trace = read(path)
    assert trace.sources[0].balance.even
    return trace


def codes(trace: Trace) -> dict[str, int]:
    return {entry.code.name.removeprefix("perfetto."): entry.count for entry in trace.sources[0].diagnostics}


def slices(trace: Trace) -> list[tuple[int, int, str]]:
    table = trace.slices
    return [
        (ts, dur, trace.strings[name])
        for ts, dur, name in sorted(zip(table.ts.tolist(), table.dur.tolist(), table.name.tolist(), strict=True))
    ]


def values(trace: Trace) -> list[tuple[int, float]]:
    table = trace.counters
    return [
        (int(table.ts[row]), int(table.integer[row]) if table.is_integer[row] else float(table.value[row]))
        for row in range(len(table.ts))
    ]


def args_of(trace: Trace, row: int = 0, table: str = "slices") -> str:
    columns = getattr(trace, table)
    return trace.args.get(int(columns.args_at[row]), int(columns.args_len[row])).decode()


def test_names_are_found_whenever_they_come(tmp_path: Path) -> None:
    packets = Packets()
    packets.slice(10, 5, "work", track=7)
    thread = packets.descriptor(7)
    thread.thread.pid, thread.thread.tid, thread.thread.thread_name = 4, 9, "worker"
    process = packets.descriptor(6, description="help")
    process.process.pid, process.process.process_name = 4, "server"
    process.process.process_labels.append("gpu")
    trace = read_bytes(tmp_path, packets.bytes())
    assert [(t.kind, t.name, t.pid, t.tid, t.labels) for t in trace.tracks] == [
        (TrackKind.PROCESS, "server", 4, None, ("gpu",)),
        (TrackKind.THREAD, "worker", None, 9, ()),
    ]
    assert trace.tracks[0].description == "help"
    assert slices(trace) == [(10, 5, "work")]


def test_interned_texts_until_the_state_begins_anew(tmp_path: Path) -> None:
    packets = Packets()
    first = packets.event(10, "SLICE_BEGIN", name_iid=3, category_iids=[1, 2])
    packets.trace.packet[-1].interned_data.event_names.add(iid=3, name="one")
    packets.trace.packet[-1].interned_data.event_categories.add(iid=1, name="a")
    packets.trace.packet[-1].interned_data.event_categories.add(iid=2, name="b")
    assert first.name_iid == 3
    packets.event(20, "SLICE_END")
    packets.event(21, "SLICE_BEGIN", name_iid=3)
    packets.event(22, "SLICE_END")
    packets.add(sequence_flags=1).interned_data.event_names.add(iid=3, name="two")
    packets.event(30, "SLICE_BEGIN", name_iid=3)
    packets.event(40, "SLICE_END")
    packets.event(50, "SLICE_BEGIN", name_iid=4)
    packets.event(51, "SLICE_END")
    trace = read_bytes(tmp_path, packets.bytes())
    assert slices(trace) == [(10, 10, "one"), (21, 1, "one"), (30, 10, "two"), (50, 1, "(unknown text 4)")]
    assert trace.strings[trace.slices.category[0]] == "a,b"
    assert codes(trace) == {"not_interned": 1, "undeclared_track": 1}


def test_same_bytes_mean_something_else_after_a_change(tmp_path: Path) -> None:
    """Packets that are found again by their bytes: not when what they refer to changed."""
    packets = Packets(clock=6)
    packets.descriptor(5, "track")
    for round, name in enumerate(("one", "two")):
        packets.add(sequence_flags=1).interned_data.event_names.add(iid=1, name=name)
        for step in range(3):
            packets.event(10**9 + 100 * round + 10 * step, "INSTANT", name_iid=1)
    # Serialized by hand so that the timestamp stands first, as the writers of big traces do.
    data = b"".join(timestamp_first(packet) for packet in packets.trace.packet)
    trace = read_bytes(tmp_path, data)
    assert [trace.strings[name] for name in trace.instants.name] == ["one"] * 3 + ["two"] * 3
    assert trace.instants.ts.tolist() == [10**9 + n for n in (0, 10, 20, 100, 110, 120)]


def timestamp_first(packet: Message) -> bytes:
    stamp = pb.TracePacket(timestamp=packet.timestamp).SerializeToString() if packet.HasField("timestamp") else b""
    rest = pb.TracePacket()
    rest.CopyFrom(packet)
    rest.ClearField("timestamp")
    body = stamp + rest.SerializeToString()
    assert len(body) < 128
    return bytes([0x0A, len(body)]) + body


def test_state_that_was_lost(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "track")
    packets.slice(10, 1, "kept")
    packets.add(previous_packet_dropped=1)
    packets.event(20, "INSTANT", name="lost")
    packets.trace.packet[-1].sequence_flags = 2
    packets.add(sequence_flags=1)
    packets.slice(30, 1, "again")
    trace = read_bytes(tmp_path, packets.bytes())
    assert slices(trace) == [(10, 1, "kept"), (30, 1, "again")]
    assert codes(trace) == {"packets_dropped": 1, "no_state": 1}


def test_counters(tmp_path: Path) -> None:
    packets = Packets()
    memory = packets.descriptor(7, "memory")
    memory.counter.unit = pb.CounterDescriptor.UNIT_SIZE_BYTES
    memory.counter.unit_multiplier = 1024
    steps = packets.descriptor(8, "steps")
    steps.counter.unit_name, steps.counter.is_incremental = "steps", True
    load = packets.descriptor(9, "load")
    load.counter.SetInParent()
    packets.event(10, "COUNTER", 7, counter_value=2)
    packets.event(10, "COUNTER", 9, double_counter_value=0.5)
    packets.descriptor(5, "work")
    packets.slice(20, 5, "op", extra_counter_values=[3, -1], extra_counter_track_uuids=[7, 8])
    packets.event(30, "COUNTER", 8, counter_value=6)
    packets.event(31, "COUNTER", 8)
    packets.event(32, "COUNTER", 9, extra_double_counter_values=[1.5], extra_double_counter_track_uuids=[9])
    trace = read_bytes(tmp_path, packets.bytes())
    by_name = {trace.tracks[track].name: (trace.tracks[track].unit, []) for track in trace.counters.track}
    for (ts, value), track in zip(values(trace), trace.counters.track, strict=True):
        by_name[trace.tracks[track].name][1].append((ts, value))
    assert by_name == {
        "memory": ("bytes", [(10, 2048), (20, 3072)]),
        "steps": ("steps", [(20, -1), (30, 5)]),
        "load": ("", [(10, 0.5), (32, 1.5)]),
    }
    assert codes(trace) == {"counter_without_value": 2}
    assert trace.sources[0].balance.read == len(packets.trace.packet)


def test_extra_counters_by_default_tracks(tmp_path: Path) -> None:
    packets = Packets()
    defaults = packets.trace.packet[0].trace_packet_defaults.track_event_defaults
    defaults.track_uuid = 5
    defaults.extra_counter_track_uuids.append(7)
    packets.descriptor(5, "work")
    packets.descriptor(7, "instructions").counter.unit = 2
    event = packets.add(timestamp=10).track_event
    event.type, event.name = 1, "op"
    event.extra_counter_values.extend([100, 200])
    end = packets.add(timestamp=20).track_event
    end.type = 2
    end.extra_counter_values.append(150)
    trace = read_bytes(tmp_path, packets.bytes())
    assert slices(trace) == [(10, 10, "op")]
    assert values(trace) == [(10, 100), (20, 150)]
    assert codes(trace) == {"counter_without_value": 1}


def test_flows(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "one")
    packets.descriptor(6, "two")
    packets.slice(10, 5, "a", flow_ids=[1, 9])
    packets.slice(20, 5, "b", 6, flow_ids=[1])
    packets.slice(30, 5, "c", 5, terminating_flow_ids=[1])
    packets.slice(40, 5, "d", 5, flow_ids=[1])
    packets.event(50, "INSTANT", 6, name="e", terminating_flow_ids_old=[1])
    packets.slice(60, 5, "f", 5, flow_ids_old=[7])
    packets.slice(70, 5, "g", 6, terminating_flow_ids=[7])
    trace = read_bytes(tmp_path, packets.bytes())
    name = [trace.strings[n] for n in trace.slices.name]
    flows = zip(trace.flows.from_slice.tolist(), trace.flows.to_slice.tolist(), strict=True)
    assert sorted(name[one] + name[other] for one, other in flows) == ["ab", "bc", "de", "fg"]
    assert (50, 0, "e") in slices(trace)
    assert codes(trace) == {"half_flow": 1}


def test_flow_before_its_start_in_the_file(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "one")
    packets.slice(20, 5, "late", flow_ids=[1])
    packets.slice(10, 5, "early", flow_ids=[1])
    trace = read_bytes(tmp_path, packets.bytes())
    (one,), (other,) = trace.flows.from_slice.tolist(), trace.flows.to_slice.tolist()
    assert [trace.strings[trace.slices.name[row]] for row in (one, other)] == ["early", "late"]


def test_annotations(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    event = packets.slice(10, 5, "op")
    add = event.debug_annotations.add
    add(name="b", bool_value=True)
    add(name="u", uint_value=2**64 - 1)
    add(name="i", int_value=-3)
    add(name="d", double_value=0.1)
    add(name="n", double_value=float("nan"))
    add(name="s", string_value='a "text" \n')
    add(name="p", pointer_value=0xFF)
    add(name="j", legacy_json_value='{"x": [1, 2]}')
    add(name="k", legacy_json_value="{broken")
    nested = add(name="dict")
    nested.dict_entries.add(name="x", int_value=1)
    nested.dict_entries.add(name="y").array_values.add(string_value="z")
    old = add(name="old").nested_value
    old.dict_keys.append("q")
    old.dict_values.add().int_value = 7
    add(name="empty")
    trace = read_bytes(tmp_path, packets.bytes())
    assert args_of(trace) == (
        '{"b":true,"u":18446744073709551615,"i":-3,"d":0.1,"n":"nan","s":"a \\"text\\" \\n","p":"0xff",'
        '"j":{"x": [1, 2]},"k":"{broken","dict":{"x":1,"y":["z"]},"old":{"q":7},"empty":null}'
    )


def test_interned_annotations_and_context(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    event = packets.slice(10, 5, "op")
    data = packets.trace.packet[-2].interned_data
    data.debug_annotation_names.add(iid=1, name="key")
    data.debug_annotation_string_values.add(iid=1, str=b"value")
    data.source_locations.add(iid=1, file_name="a.cc", function_name="f", line_number=12)
    event.debug_annotations.add(name_iid=1, string_value_iid=1)
    event.source_location_iid = 1
    event.correlation_id = 77
    event.callstack.frames.add(function_name="main")
    event.callstack.frames.add(function_name="leaf")
    event.callstack_weight = 2.5
    trace = read_bytes(tmp_path, packets.bytes())
    assert args_of(trace) == (
        '{"key":"value","source_location":"a.cc:12","correlation_id":77,"callstack":["main","leaf"],'
        '"callstack_weight":2.5}'
    )


def test_log_messages(tmp_path: Path) -> None:
    packets = Packets()
    process, thread = packets.descriptor(4), packets.descriptor(5)
    process.process.pid = thread.thread.pid = 3
    thread.thread.tid = 3
    event = packets.event(10, "INSTANT", name="event name")
    data = packets.trace.packet[-1].interned_data
    data.log_message_body.add(iid=1, body="out of memory")
    data.source_locations.add(iid=1, file_name="a.cc", line_number=12)
    event.log_message.body_iid = event.log_message.source_location_iid = 1
    event.log_message.prio = pb.LogMessage.PRIO_ERROR
    on_slice = packets.slice(20, 5, "op")
    on_slice.log_message.body_iid = 1
    on_process = packets.event(30, "INSTANT", 4, name="out of memory")
    on_process.log_message.body_iid = 1
    trace = read_bytes(tmp_path, packets.bytes())
    logs = trace.logs
    assert [
        (int(logs.ts[row]), int(logs.level[row]), trace.strings[logs.text[row]], trace.strings[logs.source[row]])
        for row in sorted(range(len(logs.ts)), key=lambda row: int(logs.ts[row]))
    ] == [(10, 6, "out of memory", "a.cc:12"), (20, 4, "out of memory", ""), (30, 4, "out of memory", "")]
    assert args_of(trace, 0, "logs") == '{"event":"event name"}'
    assert slices(trace) == [(20, 5, "op")]


def test_samples(tmp_path: Path) -> None:
    packets = Packets()
    first = packets.trace.packet[0]
    first.trace_packet_defaults.perf_sample_defaults.timebase.counter = pb.PerfEvents.HW_CPU_CYCLES
    data = first.interned_data
    for iid, text in ((1, b"main"), (2, b"leaf")):
        data.function_names.add(iid=iid, str=text)
    for iid, text in ((1, b"usr"), (2, b"lib.so")):
        data.mapping_paths.add(iid=iid, str=text)
    data.mappings.add(iid=1, path_string_ids=[1, 2])
    data.frames.add(iid=1, function_name_id=1, mapping_id=1)
    data.frames.add(iid=2, function_name_id=2, mapping_id=1)
    data.frames.add(iid=3, rel_pc=0x10, mapping_id=1)
    data.callstacks.add(iid=1, frame_ids=[1, 2])
    data.callstacks.add(iid=2, frame_ids=[1, 3])
    tree = packets.add().process_tree
    tree.processes.add(pid=3, cmdline=["/bin/server", "-x"])
    tree.threads.add(tid=4, tgid=3, name="worker")
    for ts, cpu, count, stack in ((10, 0, 100, 1), (20, 1, 40, 2), (30, 0, 250, 1)):
        sample = packets.add(timestamp=ts).perf_sample
        sample.pid, sample.tid, sample.cpu, sample.timebase_count, sample.callstack_iid = 3, 4, cpu, count, stack
    packets.add(timestamp=40).perf_sample.kernel_records_lost = 5
    trace = read_bytes(tmp_path, packets.bytes())
    table = trace.samples
    stacks = [trace.frames[stack] for stack in table.stack]
    assert [(f.name, f.category, trace.frames[f.parent].name) for f in stacks] == [
        ("leaf", "/usr/lib.so", "main"),
        ("0x10", "/usr/lib.so", "main"),
        ("leaf", "/usr/lib.so", "main"),
    ]
    assert table.weight.tolist() == [100, 40, 150]
    assert table.cpu.tolist() == [0, 1, 0]
    assert {trace.strings[name] for name in table.name} == {"cycles"}
    assert [(t.name, t.pid, t.tid) for t in trace.tracks] == [("/bin/server -x", 3, None), ("worker", None, 4)]
    assert codes(trace) == {"lost_samples": 1}


@pytest.mark.parametrize("name", ["cycles", "cycles (CPU not known)"])
@pytest.mark.parametrize("cpu", [3, NO_CPU])
def test_names_of_samples_come_back_whatever_they_end_with(name: str, cpu: int, tmp_path: Path) -> None:
    """The writer says in the name that no CPU is known; what takes it off again is that none is."""
    out = Builder(SourceInfo("a", "test"), REALTIME)
    thread = out.tracks.thread(out.tracks.process("p", pid=3), 4)
    for ts in (10, 20):
        out.sample(thread, ts, out.frame("main"), name, 5, cpu=cpu)
    trace = read_bytes(tmp_path, written(lay_out(out.finish()), "perfetto"))
    assert [trace.strings[one] for one in trace.samples.name] == [name] * 2
    assert (trace.samples.cpu.tolist(), trace.samples.weight.tolist()) == ([cpu] * 2, [5] * 2)


def instants_at(trace: Trace) -> list[int]:
    return sorted(trace.instants.ts.tolist())


def timed(packets: Packets, clock: int, ts: int, sequence: int = 1) -> None:
    packets.event(ts, "INSTANT", name=f"clock {clock}")
    packets.trace.packet[-1].timestamp_clock_id = clock
    packets.trace.packet[-1].trusted_packet_sequence_id = sequence


def test_clocks_of_the_system(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "events")
    timed(packets, 3, 1100)  # before its snapshot in the file
    snapshot(packets, (6, 1000), (3, 900), (1, BASE))
    snapshot(packets, (6, 2000), (3, 1903), (1, BASE + 1000))
    timed(packets, 1, BASE + 20)
    timed(packets, 3, 1903)
    timed(packets, 6, 5)
    timed(packets, 9, 5)
    trace = read_bytes(tmp_path, packets.bytes())
    assert instants_at(trace) == [5, 1020, 1200, 2000]
    assert codes(trace) == {"unknown_clock": 1}
    assert trace.clocks[0].name == "CLOCK_BOOTTIME"
    bounds = {s.other.name: (s.ts, s.other_ts, s.bound_ns) for s in trace.snapshots}
    assert bounds == {"CLOCK_MONOTONIC": (1000, 900, 3), "CLOCK_REALTIME": (1000, BASE, 0)}
    alignment = align([trace])
    assert alignment.clock == REALTIME
    assert merge_traces([trace], alignment).instants.ts.tolist()[0] == BASE - 995


def test_primary_clock(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "events")
    snapshot(packets, (1, BASE), (6, 1000), primary=1)
    timed(packets, 6, 1500)
    packets.event(BASE + 7, "INSTANT", name="on the clock of the trace")
    trace = read_bytes(tmp_path, packets.bytes())
    assert trace.clocks[0] == REALTIME
    assert instants_at(trace) == [BASE + 7, BASE + 500]


def test_clocks_of_a_sequence(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "events")
    for sequence, start in ((1, 100), (2, 200)):
        message = snapshot(packets, (6, start * 1000), sequence=sequence)
        message.clocks.add(clock_id=64, timestamp=1, unit_multiplier_ns=1000)
        message.clocks.add(clock_id=65, timestamp=0, is_incremental=True)
    timed(packets, 64, 3, sequence=1)
    timed(packets, 64, 3, sequence=2)
    timed(packets, 65, 10, sequence=1)
    timed(packets, 65, 10, sequence=1)
    trace = read_bytes(tmp_path, packets.bytes())
    assert instants_at(trace) == [100_010, 100_020, 102_000, 202_000]


def test_a_clock_without_any_snapshot(tmp_path: Path) -> None:
    packets = Packets(clock=3)
    packets.descriptor(5, "events")
    packets.event(70, "INSTANT", name="x")
    trace = read_bytes(tmp_path, packets.bytes())
    assert trace.clocks[0].name == "CLOCK_MONOTONIC"
    assert instants_at(trace) == [70]


def test_tracks_in_tracks(tmp_path: Path) -> None:
    packets = Packets()
    group = packets.descriptor(6, "group", child_ordering=1)
    assert group.uuid
    packets.descriptor(5, "b", parent_uuid=6)
    packets.descriptor(7, "a", parent_uuid=6)
    packets.descriptor(8, "lost", parent_uuid=99)
    packets.descriptor(9, "own parent", parent_uuid=9)
    for at, track in enumerate((5, 7, 8, 9, 10)):
        packets.slice(10 + at, 1, "op", track)
    event = packets.add(timestamp=50).track_event
    event.type, event.name = 3, "nowhere"
    trace = read_bytes(tmp_path, packets.bytes())
    named = {t.name: (trace.tracks[t.parent].name if t.parent >= 0 else None, t.rank) for t in trace.tracks}
    assert named == {
        "group": (None, None),
        "b": ("group", 1),
        "a": ("group", 0),
        "lost": (None, None),
        "own parent": (None, None),
        "": (None, None),
        "Default track": (None, None),
    }
    assert codes(trace) == {"no_parent": 2, "undeclared_track": 1}


def test_tracks_of_one_name_are_lanes(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "queue")
    packets.descriptor(6, "queue")
    packets.descriptor(7, "queue", sibling_merge_behavior=2)
    packets.descriptor(8, "queue", sibling_merge_behavior=3, sibling_merge_key="k")
    packets.descriptor(9, "queue", sibling_merge_behavior=3, sibling_merge_key="k")
    for track in range(5, 10):
        packets.slice(10, 5 + track, "op", track)
    trace = read_bytes(tmp_path, packets.bytes())
    assert [int(track.lane_of) for track in trace.tracks] == [-1, 0, -1, -1, 3]


def test_tracks_without_a_name_are_lanes_if_their_keys_say_so(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(4).process.pid = 4
    thread = packets.descriptor(5).thread
    thread.pid, thread.tid = 4, 9
    packets.descriptor(6, parent_uuid=5, sibling_merge_behavior=3, sibling_merge_key_int=5)
    packets.descriptor(7, parent_uuid=5, sibling_merge_behavior=3, sibling_merge_key_int=7)
    packets.descriptor(8, parent_uuid=5, sibling_merge_behavior=3, sibling_merge_key_int=7)
    packets.descriptor(9, parent_uuid=5)
    for track in range(5, 10):
        packets.slice(10, 5 + track, "op", track)
    trace = read_bytes(tmp_path, packets.bytes())
    assert [int(track.lane_of) for track in trace.tracks] == [-1, -1, 1, -1, 3, -1]


def test_pid_that_is_used_again(tmp_path: Path) -> None:
    packets = Packets()
    for uuid, name in ((10, "first"), (20, "second")):
        process = packets.descriptor(uuid)
        process.process.pid, process.process.process_name = 4, name
        thread = packets.descriptor(uuid + 1)
        thread.thread.pid, thread.thread.tid = 4, 4
        packets.slice(uuid, 5, name, uuid + 1)
    trace = read_bytes(tmp_path, packets.bytes())
    parents = [trace.tracks[trace.tracks[track].parent].name for track in trace.slices.track]
    assert parents == [trace.strings[name] for name in trace.slices.name] == ["first", "second"]


def test_states(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "state").state.SetInParent()
    packets.event(10, "STATE", name="running")
    packets.event(30, "STATE", name="waiting")
    packets.event(70, "STATE")
    packets.event(90, "STATE", name="running")
    packets.event(95, "INSTANT", name="last")
    trace = read_bytes(tmp_path, packets.bytes())
    assert slices(trace) == [(10, 20, "running"), (30, 40, "waiting"), (90, 5, "running")]
    assert codes(trace) == {"slice.begin_without_end": 1}


def test_events_of_old_chrome(tmp_path: Path) -> None:
    packets = Packets()
    packets.add().process_descriptor.pid = 3
    packets.trace.packet[-1].process_descriptor.process_name = "Browser"
    thread = packets.add().thread_descriptor
    thread.pid, thread.tid, thread.thread_name, thread.reference_timestamp_us = 3, 8, "Main", 1000

    def legacy(step: int, phase: str, name: str, **fields: Any) -> None:
        event = packets.add().track_event
        event.timestamp_delta_us, event.legacy_event.phase = step, ord(phase)
        event.name = name
        for key, value in fields.items():
            setattr(event.legacy_event, key, value)

    legacy(1, "B", "outer")
    legacy(1, "X", "inner", duration_us=5, bind_id=9, flow_direction=2)
    legacy(10, "s", "flow", bind_id=4)
    legacy(1, "E", "")
    legacy(1, "b", "request", local_id=77)
    legacy(2, "e", "request", local_id=77)
    legacy(1, "X", "other thread", duration_us=2, tid_override=99, bind_id=9, flow_direction=1)
    legacy(1, "i", "mark")
    legacy(1, "X", "target", duration_us=2)
    legacy(1, "f", "flow", bind_id=4, bind_to_enclosing=True)
    legacy(1, "P", "sample")
    trace = read_bytes(tmp_path, packets.bytes())
    assert slices(trace) == [
        (1_001_000, 12_000 - 1000 + 1000, "outer"),
        (1_002_000, 5000, "inner"),
        (1_014_000, 2000, "request"),
        (1_017_000, 2000, "other thread"),
        (1_019_000, 2000, "target"),
    ]
    names = {t.name or t.tid for t in trace.tracks}
    assert {"Browser", "Main", 99} <= names
    flows = zip(trace.flows.from_slice.tolist(), trace.flows.to_slice.tolist(), strict=True)
    text = [trace.strings[n] for n in trace.slices.name]
    assert sorted((text[a], text[b]) for a, b in flows) == [("inner", "other thread"), ("outer", "target")]
    assert codes(trace) == {"unknown_event": 1}


def test_other_data_sources_are_counted_by_kind(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    packets.slice(10, 5, "op")
    for _ in range(3):
        packets.add().ftrace_events.cpu = 1
    packets.add().process_stats.SetInParent()
    packets.add().trace_config.SetInParent()
    packets.add(synchronization_marker=b"x" * 16)
    event = packets.event(20, "INSTANT", name="typed")
    event.chrome_user_event.action = "click"
    trace = read_bytes(tmp_path, packets.bytes())
    balance = trace.sources[0].balance
    assert dict(balance.skipped) == {
        "skipped (perfetto.other_data_source: ftrace_events)": 3,
        "skipped (perfetto.other_data_source: process_stats)": 1,
        "skipped (perfetto.about_recording: trace_config)": 1,
        "skipped (perfetto.about_recording: synchronization_marker)": 1,
    }
    assert codes(trace) == {"other_data_source": 4, "about_recording": 2, "typed_args": 1}


def test_metadata(tmp_path: Path) -> None:
    packets = Packets()
    packets.add().trace_uuid.msb = 0x12
    attributes = packets.add().trace_attributes
    attributes.attribute.add(key="host", string_value="node7")
    attributes.attribute.add(key="rank", long_value=3)
    packets.add().system_info.machine_name = "node7"
    packets.descriptor(5, "work")
    packets.slice(10, 5, "op")
    trace = read_bytes(tmp_path, packets.bytes())
    uuid = "00000000000000120000000000000000"
    assert trace.metadata == {"trace_uuid": uuid, "host": "node7", "rank": 3, "machine_name": "node7"}


def test_compression(tmp_path: Path) -> None:
    inner, outer = Packets(), Packets()
    inner.descriptor(5, "work")
    inner.slice(10, 5, "op")
    outer.add(compressed_packets=zlib.compress(inner.bytes()))
    outer.add(compressed_packets=b"no zlib")
    trace = read_bytes(tmp_path, gzip.compress(outer.bytes()))
    assert slices(trace) == [(10, 5, "op")]
    assert codes(trace) == {"bad_compression": 1}
    assert trace.sources[0].balance.read == len(inner.trace.packet) + len(outer.trace.packet)


def test_machines(tmp_path: Path) -> None:
    packets = Packets()
    for machine in (0, 5):
        process = packets.descriptor(10 + machine)
        process.process.pid, process.process.process_name = 4, "server"
        packets.trace.packet[-1].machine_id = machine
        packets.slice(10, 5, "op", 10 + machine)
    trace = read_bytes(tmp_path, packets.bytes())
    assert [track.labels for track in trace.tracks] == [(), ("machine 5",)]


# -- damage -------------------------------------------------------------------------------------------------------


def whole() -> bytes:
    packets = Packets()
    packets.descriptor(5, "work")
    for ts in range(10):
        packets.slice(100 * ts, 5, "op")
    return packets.bytes()


def test_every_cut_is_counted(tmp_path: Path) -> None:
    data = whole()
    for end in range(len(data) - 30, len(data)):
        trace = read_bytes(tmp_path, data[:end])
        lost = codes(trace).get("truncated", 0)
        at_boundary = decodes(data[:end])
        assert lost == (not at_boundary), end


def decodes(data: bytes) -> bool:
    """Whether a trace is whole packets."""
    stream = io.BytesIO(data)
    while head := stream.read(2):
        if len(head) < 2 or len(stream.read(head[1])) < head[1]:
            return False
    return True


def test_rest_that_is_no_packet(tmp_path: Path) -> None:
    path = tmp_path / "x.pftrace"
    path.write_bytes(whole() + b"\xff" * 20)
    trace = read(path, format="perfetto")
    assert len(trace.slices.ts) == 10
    assert codes(trace) == {"corrupt": 1}


def test_packet_that_is_no_message(tmp_path: Path) -> None:
    trace = read_bytes_forced(tmp_path, whole() + b"\x0a\x03\x5a\x7f\x00")
    assert codes(trace) == {"not_a_packet": 1}
    assert len(trace.slices.ts) == 10


def read_bytes_forced(folder: Path, data: bytes) -> Trace:
    path = folder / "x.pftrace"
    path.write_bytes(data)
    trace = read(path, format="perfetto")
    assert trace.sources[0].balance.even
    return trace


def test_no_packet_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.pftrace"
    path.write_bytes(b"\x1a\x05hello")
    with pytest.raises(MalformedInput, match="no Perfetto packet"):
        read(path, format="perfetto")


@pytest.mark.slow
def test_any_byte_may_be_wrong(tmp_path: Path) -> None:
    """Damage is an error of ours or is read somehow; never anything else."""
    data = whole()
    for at in range(0, len(data), 3):
        for value in (0x00, 0x7F, 0x80, 0xFF):
            broken = bytearray(data)
            broken[at] = value
            path = tmp_path / "x.pftrace"
            path.write_bytes(broken)
            try:
                trace = read(path, format="perfetto")
            except TraceconvError:
                continue
            assert trace.sources[0].balance.even


def test_packets_of_one_kind_before_all_others_do_not_hide_a_trace(tmp_path: Path) -> None:
    """As many as fill the head of the file, without timestamp and sequence."""
    snapshots = pb.Trace()
    for clock in (1, 6):
        snapshots.packet.add().clock_snapshot.clocks.add(clock_id=clock, timestamp=10**9)
    packages = pb.Trace()
    packages.packet.add().packages_list.packages.add(name="app", uid=1)
    for first in (snapshots, packages):
        trace = read_bytes(tmp_path, first.SerializeToString() * 20_000 + whole())
        assert len(trace.slices.ts) == 10


def test_other_protobuf_files_are_not_claimed(tmp_path: Path) -> None:
    for data in (
        b"\x0a\x04\x08\x01\x10\x02\x12\x00",
        b"\x0a\x05hello",
        b"\x0a\x0btext, with\n",
        b"\n\n\n\n",
        b"\x0a\x06\x32\x04\x08\x01\x10\x02",
    ):
        path = tmp_path / "x"
        path.write_bytes(data)
        with contextlib.suppress(TraceconvError):
            assert identify(path)[0] != "perfetto"


@pytest.mark.parametrize("case", MADE)
def test_the_inputs_of_the_goldens_are_as_made(case: str) -> None:
    assert (ROOT / "perfetto" / case / "input.pftrace").read_bytes() == MADE[case]()


@pytest.mark.parametrize("case", ["sdk", "perf-samples", "old-chrome", "own-output", "cut"])
def test_the_trace_processor_reads_the_same(case: str, trace_processor: Any) -> None:
    """Times, lengths and names of slices and instants, counter values, flows and samples, as Perfetto sees them."""
    path = ROOT / "perfetto" / case / "input.pftrace"
    trace = read(path)
    points = [
        (int(ts), 0, trace.strings[name]) for ts, name in zip(trace.instants.ts, trace.instants.name, strict=True)
    ]
    points += [(int(ts), 0, trace.strings[text]) for ts, text in zip(trace.logs.ts, trace.logs.text, strict=True)]
    with trace_processor(path) as processor:
        found = oracle.rows(processor, "select ts, dur, name from slice")
        (flows,) = oracle.rows(processor, "select count(*) as n from flow")
        counters = oracle.rows(
            processor,
            "select ts, value from counter join counter_track as t on track_id = t.id where t.type not glob 'perf*'",
        )
        samples = oracle.rows(processor, "select ts from perf_sample where callsite_id is not null")
    assert sorted((row["ts"], row["dur"], row["name"] or "") for row in found) == sorted(slices(trace) + points)
    assert flows["n"] == len(trace.flows.from_slice)
    assert sorted((row["ts"], row["value"]) for row in counters) == sorted(values(trace))
    assert sorted(row["ts"] for row in samples) == sorted(trace.samples.ts.tolist())


def test_the_trace_processor_converts_times_the_same(tmp_path: Path, trace_processor: Any) -> None:
    packets = Packets()
    packets.descriptor(5, "events")
    snapshot(packets, (6, 1000), (3, 900), (1, BASE))
    snapshot(packets, (6, 2000), (3, 1903), (1, BASE + 1000))
    for clock, ts in ((1, BASE + 20), (3, 1903), (3, 1902), (3, 899), (3, 5000), (6, 5)):
        timed(packets, clock, ts)
    trace = read_bytes(tmp_path, packets.bytes())
    with trace_processor(tmp_path / "other.pftrace") as processor:
        found = oracle.rows(processor, "select ts from slice")
    assert sorted(row["ts"] for row in found) == instants_at(trace) == [5, 999, 1020, 2000, 2002, 5097]


@pytest.mark.parametrize("before", [True, False])
def test_a_trace_beside_one_of_traceconv_hides_the_inputs_of_both(before: bool, tmp_path: Path) -> None:
    """Which input events are from is only known if the file holds one trace of traceconv, and nothing else."""
    case = Case(ROOT / "merge" / "kineto-onednn")
    own = written(case.merged(case.traces(tmp_path)), "perfetto")
    packets = Packets()
    packets.slice(BASE, 10, "other")
    other = packets.trace.SerializeToString()
    path = tmp_path / "x.pftrace"
    path.write_bytes(own)
    assert read(path).sources[0].stated
    for data in (own + own, other + own if before else own + other):
        path.write_bytes(data)
        found = read(path)
        assert found.sources[0].stated == ()
        assert "perfetto.joined" in {entry.code.name for entry in found.sources[0].diagnostics}
        assert found.clocks[0].name == "CLOCK_REALTIME"
        assert not [key for key in found.metadata if key.startswith("traceconv.") and key != "traceconv.clock"]


def own_trace(folder: Path, *times_us: int) -> bytes:
    """Return a trace of traceconv with slices at these times; the writer moves all of them if one is negative."""
    source, output = folder / "own.json", folder / "own.pftrace"
    events = [{"ph": "X", "pid": 1, "tid": 1, "ts": ts, "dur": 5, "name": f"{ts} us"} for ts in times_us]
    source.write_text(json.dumps({"traceEvents": events}))
    convert(source, Output(output, force=True))
    return output.read_bytes()


def test_times_of_joined_traces_are_each_moved_back(tmp_path: Path) -> None:
    early, late = own_trace(tmp_path, -500, 20), own_trace(tmp_path, 10)
    earlier = own_trace(tmp_path, -700, 30)
    packets = Packets()
    packets.descriptor(5, "events")
    packets.slice(60_000, 10, "other")
    other = packets.bytes()
    for data in ([early, late, earlier, other], [other, late, early, earlier], [earlier, other, early, late]):
        trace = read_bytes(tmp_path, b"".join(data))
        assert [(ts, name) for ts, _, name in sorted(slices(trace))] == [
            (-700_000, "-700 us"),
            (-500_000, "-500 us"),
            (10_000, "10 us"),
            (20_000, "20 us"),
            (30_000, "30 us"),
            (60_000, "other"),
        ]
        assert trace.clocks[0].name == "Chrome trace time"
        assert codes(trace) == {"joined": 1}


def test_a_joined_trace_whose_end_is_missing_is_not_moved_back(tmp_path: Path) -> None:
    """Where the moved times end is not known, so neither is the clock."""
    early, late = own_trace(tmp_path, -500, 20), own_trace(tmp_path, 10)
    for data in (ended(early) + late, late + ended(early)):
        trace = read_bytes(tmp_path, data)
        assert sorted(trace.slices.ts.tolist()) == [0, 10_000, 520_000]
        assert trace.clocks[0].describe() == "clocks of several traces (unknown clock)"
        assert codes(trace) == {"joined": 1, "shift_without_end": 1}


def ended(trace: bytes) -> bytes:
    """Return a trace of traceconv without its last packet."""
    packets = pb.Trace.FromString(trace)
    del packets.packet[-1]
    data: bytes = packets.SerializeToString()
    return data


def test_attributes_beside_a_trace_of_traceconv_are_kept(tmp_path: Path) -> None:
    names = ["inputs", "inputs per second", "alignment", "alignment-mode"]
    packets = Packets()
    packets.slice(60_000, 10, "other")
    for name in names:
        packets.add().trace_attributes.attribute.add(key=name, string_value="x")
    own = own_trace(tmp_path, 10)
    for data in (own + packets.bytes(), packets.bytes() + own):
        metadata = read_bytes(tmp_path, data).metadata
        assert [key for key in metadata if key != "traceconv.clock"] == names
