"""Numbers of fields, as in protos/perfetto/trace/*.proto in github.com/google/perfetto, that the writer uses."""

from __future__ import annotations

from traceconv.families.perfetto import _wire as wire

PACKET = 1  # of Trace
# TracePacket
TIMESTAMP, SEQUENCE_ID, TRACK_EVENT, INTERNED_DATA, SEQUENCE_FLAGS = 8, 10, 11, 12, 13
DEFAULTS, TRACK_DESCRIPTOR, PERF_SAMPLE, SERVICE_EVENT, FIRST_PACKET, ATTRIBUTES = 59, 60, 66, 69, 87, 126
# TracePacketDefaults
DEFAULT_SAMPLE = 12
# TracingServiceEvent
TRACING_STARTED, TRACING_DISABLED = 2, 5
CLEARED, NEEDS_STATE = 1, 2
# TrackEvent
CATEGORY_IID, TYPE, NAME_IID, TRACK_UUID, COUNTER_VALUE = 3, 9, 10, 11, 30
DOUBLE_COUNTER_VALUE, FLOW, TERMINATING_FLOW = 44, 47, 48
LOG_MESSAGE = 21
TYPE_BEGIN, TYPE_END, TYPE_INSTANT, TYPE_COUNTER = 1, 2, 3, 4
# TrackDescriptor
UUID, NAME, PROCESS, THREAD, PARENT, COUNTER, CHILD_ORDERING = 1, 2, 3, 4, 5, 8, 11
ORDER_RANK, DESCRIPTION, MERGE_BEHAVIOR, MERGE_KEY, PROCESS_ORDERING, THREAD_ORDERING = 12, 14, 15, 17, 19, 20
EXPLICIT, MERGE_BY_KEY = 3, 3
# InternedData
CATEGORIES, NAMES, SOURCES, FUNCTIONS, FRAMES, CALLSTACKS, MAPPING_PATHS = 1, 2, 4, 5, 6, 7, 17
MAPPINGS, LOG_BODIES = 19, 20

#: The packet sequence of all events but call stack samples.
SEQUENCE = 1


def in_sequence(sequence: int, flags: int = NEEDS_STATE) -> bytes:
    """Return the fields of a packet about its sequence."""
    return wire.integer(SEQUENCE_ID, sequence) + wire.integer(SEQUENCE_FLAGS, flags)


#: The sequence fields of the packets of events.
STATE = in_sequence(SEQUENCE)
