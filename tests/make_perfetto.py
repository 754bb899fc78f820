"""Perfetto traces as other writers make them, out of the messages of the `perfetto` package.

Synthetic: what each golden case of the format (but our own output) consists of. `python -m tests.make_perfetto` writes
the inputs anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tests.golden import ROOT

Message = Any
#: A time since 1970 in ns.
BASE = 1_790_000_000_000_000_000
BOOT, MONOTONIC, REALTIME = 6, 3, 1


class Packets:
    """A trace in the making, by Perfetto's own messages."""

    def __init__(self, clock: int = 0) -> None:
        self.trace = pb.Trace()
        first = self.add(sequence_flags=1)
        if clock:
            first.trace_packet_defaults.timestamp_clock_id = clock

    def add(self, **fields: Any) -> Message:
        return self.trace.packet.add(**{"trusted_packet_sequence_id": 1, **fields})

    def event(self, ts: int, kind: str, track: int = 5, **fields: Any) -> Message:
        packet = self.add(timestamp=ts)
        packet.track_event.type = getattr(pb.TrackEvent, f"TYPE_{kind}")
        packet.track_event.track_uuid = track
        for key, value in fields.items():
            target = getattr(packet.track_event, key)
            if isinstance(value, list):
                target.extend(value)
            else:
                setattr(packet.track_event, key, value)
        return packet.track_event

    def slice(self, ts: int, dur: int, name: str, track: int = 5, **fields: Any) -> Message:
        event = self.event(ts, "SLICE_BEGIN", track, name=name, **fields)
        self.event(ts + dur, "SLICE_END", track)
        return event

    def descriptor(self, uuid: int, name: str = "", **fields: Any) -> Message:
        packet = self.add()
        descriptor = packet.track_descriptor
        descriptor.uuid = uuid
        if name:
            descriptor.name = name
        for key, value in fields.items():
            setattr(descriptor, key, value)
        return descriptor

    def bytes(self) -> bytes:
        data: bytes = self.trace.SerializeToString()
        return data


def snapshot(packets: Packets, *clocks: tuple[int, int], primary: int = 0, sequence: int = 1) -> Message:
    """A reading of several clocks."""
    message = packets.add(trusted_packet_sequence_id=sequence).clock_snapshot
    for clock, ts in clocks:
        message.clocks.add(clock_id=clock, timestamp=ts)
    if primary:
        message.primary_trace_clock = primary
    return message


def _process(packets: Packets, uuid: int, pid: int, name: str) -> None:
    process = packets.descriptor(uuid)
    process.process.pid, process.process.process_name = pid, name


def _thread(packets: Packets, uuid: int, pid: int, tid: int, name: str) -> None:
    thread = packets.descriptor(uuid)
    thread.thread.pid, thread.thread.tid, thread.thread.thread_name = pid, tid, name


def sdk() -> bytes:
    """What the tracing SDK records: interned texts beside their first use, descriptors, snapshots of four clocks."""
    packets = Packets(clock=BOOT)
    snapshot(packets, (BOOT, 5_000_000), (MONOTONIC, 4_000_000), (REALTIME, BASE), (2, BASE - 100), sequence=9)
    packets.add().trace_config.SetInParent()
    packets.add().trace_uuid.msb = 77
    _process(packets, 10, 1234, "inference_server")
    _thread(packets, 11, 1234, 1234, "main")
    _thread(packets, 12, 1234, 1240, "worker")
    memory = packets.descriptor(13, "Tensor memory", parent_uuid=10, description="bytes held by tensors")
    memory.counter.unit = pb.CounterDescriptor.UNIT_SIZE_BYTES
    begin = packets.event(5_001_000, "SLICE_BEGIN", 11, name_iid=1, category_iids=[1], flow_ids=[501])
    data = packets.trace.packet[-1].interned_data
    data.event_names.add(iid=1, name="Infer")
    data.event_categories.add(iid=1, name="runtime")
    for iid, key in ((1, "shape"), (2, "model"), (3, "batch")):
        data.debug_annotation_names.add(iid=iid, name=key)
    data.debug_annotation_string_values.add(iid=1, str=b"resnet50")
    shape = begin.debug_annotations.add(name_iid=1)
    for size in (1, 3, 224, 224):
        shape.array_values.add(int_value=size)
    begin.debug_annotations.add(name_iid=2, string_value_iid=1)
    begin.debug_annotations.add(name_iid=3, uint_value=8)
    packets.event(5_002_000, "COUNTER", 13, counter_value=602_112)
    worker = packets.event(5_003_000, "SLICE_BEGIN", 12, name="Conv", categories=["op", "cpu"])
    worker.flow_ids.append(501)
    packets.event(5_009_500, "SLICE_END", 12)
    done = packets.event(5_009_600, "INSTANT", 12, name="done", terminating_flow_ids=[501])
    done.source_location.file_name, done.source_location.line_number = "server.cc", 88
    packets.event(5_010_000, "COUNTER", 13, counter_value=0)
    end = packets.event(5_011_000, "SLICE_END", 11)
    end.debug_annotations.add(name="status", string_value="ok")
    log = packets.event(5_011_500, "INSTANT", 11, name="request finished")
    packets.trace.packet[-1].interned_data.log_message_body.add(iid=1, body="request finished")
    log.log_message.body_iid, log.log_message.prio = 1, pb.LogMessage.PRIO_WARN
    return packets.bytes()


def perf_samples() -> bytes:
    """What the data source linux.perf records: samples with interned call stacks, names of processes, lost samples."""
    packets = Packets()
    first = packets.trace.packet[0]
    timebase = first.trace_packet_defaults.perf_sample_defaults.timebase
    timebase.frequency, timebase.counter = 100, pb.PerfEvents.SW_CPU_CLOCK
    data = first.interned_data
    for iid, text in enumerate(("main", "conv2d", "gemm"), 1):
        data.function_names.add(iid=iid, str=text.encode())
    for iid, text in enumerate(("usr", "bin", "server"), 1):
        data.mapping_paths.add(iid=iid, str=text.encode())
    data.mappings.add(iid=1, path_string_ids=[1, 2, 3])
    for iid in (1, 2, 3):
        data.frames.add(iid=iid, function_name_id=iid, mapping_id=1, rel_pc=0x1000 * iid)
    data.frames.add(iid=4, mapping_id=1, rel_pc=0xBEEF)
    for iid, frames in ((1, [1, 2, 3]), (2, [1, 2]), (3, [1, 4])):
        data.callstacks.add(iid=iid, frame_ids=frames)
    snapshot(packets, (BOOT, 1_000_000_000), (REALTIME, BASE))
    tree = packets.add().process_tree
    tree.processes.add(pid=700, ppid=1, cmdline=["/usr/bin/server", "--port", "80"])
    tree.threads.add(tid=701, tgid=700, name="worker")
    for step, (tid, stack) in enumerate(((700, 1), (700, 2), (701, 3), (700, 1))):
        sample = packets.add(timestamp=1_000_000_000 + 10_000_000 * step).perf_sample
        sample.cpu, sample.pid, sample.tid, sample.callstack_iid = tid % 2, 700, tid, stack
        sample.timebase_count, sample.cpu_mode = 10_000_000 * (step + 1), 2
    packets.add(timestamp=1_050_000_000).perf_sample.kernel_records_lost = 3
    for cpu in (0, 1):
        packets.add().ftrace_events.cpu = cpu
    return packets.bytes()


def odd() -> bytes:
    """Rare fields in one trace: sequence clocks, lanes, states, extra counters, unread kinds, a lost packet."""
    packets = Packets(clock=64)
    message = snapshot(packets, (BOOT, 2_000_000))
    message.clocks.add(clock_id=64, timestamp=0, is_incremental=True, unit_multiplier_ns=1000)
    packets.descriptor(20, "Device", child_ordering=1)
    for uuid in (21, 22):
        packets.descriptor(uuid, "queue", parent_uuid=20)
    packets.descriptor(23, "state", parent_uuid=20).state.SetInParent()
    steps = packets.descriptor(24, "steps", parent_uuid=20)
    steps.counter.is_incremental, steps.counter.unit_name = True, "steps"
    packets.event(5, "SLICE_BEGIN", 21, name="copy", extra_counter_values=[4], extra_counter_track_uuids=[24])
    packets.event(2, "SLICE_BEGIN", 22, name="kernel", correlation_id=9)
    packets.event(3, "SLICE_END", 21)
    packets.event(1, "STATE", 23, name="busy")
    packets.event(4, "SLICE_END", 22, extra_counter_values=[3], extra_counter_track_uuids=[24])
    packets.event(0, "STATE", 23, name="idle")
    packets.event(9, "STATE", 23)
    packets.add().gpu_render_stage_event.duration = 5
    packets.add(compressed_packets=zlib.compress(_more()))
    packets.add(previous_packet_dropped=1)
    packets.event(1, "INSTANT", 21, name="lost", name_iid=5)
    packets.trace.packet[-1].sequence_flags = 2
    return packets.bytes()


def _more() -> bytes:
    packets = Packets(clock=BOOT)
    packets.add(trusted_packet_sequence_id=3)
    packets.event(2_010_000, "INSTANT", 21, name="from compressed packets")
    for packet in packets.trace.packet:
        packet.trusted_packet_sequence_id = 3
    return packets.bytes()


def old_chrome() -> bytes:
    """Legacy events of Chrome before 2021: times as steps in microseconds, phases, async ids, bind ids."""
    packets = Packets()
    process = packets.add().process_descriptor
    process.pid, process.process_name = 3, "Renderer"
    thread = packets.add().thread_descriptor
    thread.pid, thread.tid, thread.thread_name, thread.reference_timestamp_us = 3, 8, "CrRendererMain", 1000
    for step, phase, name, fields in (
        (1, "B", "RunTask", {}),
        (1, "X", "Layout", {"duration_us": 5, "bind_id": 9, "flow_direction": 2}),
        (10, "E", "", {}),
        (1, "b", "Load", {"local_id": 77}),
        (2, "e", "Load", {"local_id": 77}),
        (1, "X", "Paint", {"duration_us": 2, "tid_override": 99, "bind_id": 9, "flow_direction": 1}),
        (1, "P", "Profile", {}),
    ):
        event = packets.add().track_event
        event.timestamp_delta_us, event.legacy_event.phase = step, ord(phase)
        if name:
            event.name = name
        for key, value in fields.items():
            setattr(event.legacy_event, key, value)
    return packets.bytes()


def cut() -> bytes:
    """A recording that was stopped inside of its last packet."""
    return sdk()[:-40]


CASES: dict[str, Callable[[], bytes]] = {
    "sdk": sdk,
    "perf-samples": perf_samples,
    "odd": odd,
    "old-chrome": old_chrome,
    "cut": cut,
}


def main() -> None:
    """Write all inputs."""
    for case, make in CASES.items():
        folder = ROOT / "perfetto" / case
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "input.pftrace").write_bytes(make())


if __name__ == "__main__":
    main()
