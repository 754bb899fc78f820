"""The kinds of packets, and the attributes of a trace."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from traceconv.families.common.wire_reader import Message, Value
from traceconv.families.perfetto import _fields as proto

#: The attribute with the inputs of a trace that traceconv wrote.
SOURCES = "traceconv.sources"
#: The attribute with its clock, as `ClockDomain.describe` says it.
CLOCK = "traceconv.clock"
#: The attribute in its last packet: how many bytes come before.
SIZE = "traceconv.size"
#: The packets of such a trace up to SOURCES: the first one, the view, the attributes.
TO_SOURCES = 3

#: The names of the kinds of packets by their field, for messages.
PACKET_KINDS = {
    1: "ftrace_events",
    2: "process_tree",
    4: "inode_file_map",
    5: "chrome_events",
    7: "sys_stats",
    9: "process_stats",
    33: "trace_config",
    34: "ftrace_stats",
    35: "trace_stats",
    36: "synchronization_marker",
    37: "profile_packet",
    38: "battery",
    39: "android_log",
    40: "power_rails",
    46: "trigger",
    47: "packages_list",
    48: "chrome_benchmark_metadata",
    49: "perfetto_metatrace",
    51: "chrome_metadata",
    52: "gpu_counter_event",
    53: "gpu_render_stage_event",
    54: "streaming_profile_packet",
    57: "graphics_frame_event",
    61: "module_symbols",
    62: "vulkan_memory_event",
    63: "gpu_log",
    64: "deobfuscation_mapping",
    65: "vulkan_api_event",
    67: "cpu_info",
    68: "smaps_packet",
    69: "service_event",
    70: "initial_display_state",
    71: "gpu_mem_total_event",
    72: "extension_descriptor",
    73: "memory_tracker_snapshot",
    74: "streaming_allocation",
    75: "streaming_free",
    77: "android_energy_estimation_breakdown",
    78: "ui_state",
    82: "translation_table",
    84: "statsd_atom",
    86: "android_system_property",
    90: "track_event_range_of_interest",
    91: "entity_state_residency",
    95: "etw_events",
    99: "v8_js_code",
    107: "remote_clock_sync",
    109: "chrome_trigger",
    113: "clone_snapshot_trigger",
    117: "generic_kernel_task_state_event",
    118: "generic_kernel_cpu_freq_event",
    120: "generic_kernel_task_rename_event",
    122: "generic_kernel_process_tree",
    124: "trace_provenance",
    128: "gpu_info",
    129: "generic_gpu_frequency_event",
    133: "zstd_compressed_packets",
    134: "concurrent_session_event",
    135: "stack_sample",
    138: "recovered_trace_info",
}
#: The kinds that describe the recording, and hold no recorded data.
ABOUT = frozenset((33, 34, 35, 36, 46, 69, 72, 78, 82, 90, 109, 113, 124, 134, 138))


def attributes_of(message: Message) -> dict[str, Any]:
    """Read TraceAttributes: attribute 1* {key 1, long_value 2, string_value 3}."""
    return {one.text(1): one.text(3) if 3 in one else one.signed(2) for one in map(Message, message.all(1))}


def json_attribute(packets: Iterable[Value], name: str) -> Any:
    """Return the value of an attribute that is JSON, from the first packet that has it; None if none has."""
    for packet in packets:
        try:
            value = attributes_of(Message(packet).message(proto.ATTRIBUTES)).get(name)
            if isinstance(value, str):
                return json.loads(value)
        except (ValueError, RecursionError):
            continue
    return None


def system_of(message: Message) -> dict[str, Any]:
    """Read SystemInfo: utsname 1 {sysname 1, version 2, release 3, machine 4}, num_cpus 8, machine_name 17."""
    kernel = message.message(1)
    info = {
        "system": " ".join(filter(None, (kernel.text(1), kernel.text(3), kernel.text(4)))),
        "machine_name": message.text(17),
        "num_cpus": message.unsigned(8),
        "tracing_service_version": message.text(4),
    }
    return {key: value for key, value in info.items() if value}
