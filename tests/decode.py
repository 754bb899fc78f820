"""Reads a .pftrace back with Perfetto's own protobuf messages, into a form that compares with a trace."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, Track, TrackKind

#: Containers nested deeper than this are written as text.
MAX_DEPTH = 64

#: The original number that stands in the name of a process or thread whose number had to be replaced.
_NUMBER = re.compile(r"(?:^| \()[pt]id -?\d+\)?$")


@dataclass
class Events:
    """All events, sorted, so that two of them compare equal if they hold the same."""

    slices: list[tuple[Any, ...]] = field(default_factory=list)
    instants: list[tuple[Any, ...]] = field(default_factory=list)
    counters: list[tuple[Any, ...]] = field(default_factory=list)
    flows: list[tuple[Any, ...]] = field(default_factory=list)
    samples: list[tuple[Any, ...]] = field(default_factory=list)
    logs: list[tuple[Any, ...]] = field(default_factory=list)

    def sorted(self) -> Events:
        for events in (self.slices, self.instants, self.counters, self.flows, self.samples, self.logs):
            events.sort(key=repr)
        return self


def events_of(trace: Trace) -> Events:
    """The events of a trace."""
    events = Events()
    text = trace.strings
    slices = trace.slices
    names = _track_names(trace)
    shift = _shift(trace)
    for row in range(len(slices.ts)):
        args = _plain(trace.args.get(int(slices.args_at[row]), int(slices.args_len[row])))
        what = (names[slices.track[row]], shown_name(trace, row), text[slices.category[row]], args)
        events.slices.append((int(slices.ts[row]) + shift, int(slices.dur[row]), *what))
    table = trace.instants
    for row in range(len(table.ts)):
        args = _plain(trace.args.get(int(table.args_at[row]), int(table.args_len[row])))
        what = (names[table.track[row]], text[table.name[row]], text[table.category[row]], args)
        events.instants.append((int(table.ts[row]) + shift, *what))
    counters = trace.counters
    for row in range(len(counters.ts)):
        value = int(counters.integer[row]) if counters.is_integer[row] else float(counters.value[row])
        events.counters.append((int(counters.ts[row]) + shift, names[counters.track[row]], value))
    for start, end in zip(trace.flows.from_slice.tolist(), trace.flows.to_slice.tolist(), strict=True):
        pair = sorted((int(slices.ts[row]) + shift, shown_name(trace, row)) for row in (start, end))
        events.flows.append(tuple(pair))
    for row in range(len(trace.samples.ts)):
        events.samples.append((int(trace.samples.ts[row]) + shift, shown_stack(trace, int(trace.samples.stack[row]))))
    logs = trace.logs
    for row in range(len(logs.ts)):
        args = _plain(trace.args.get(int(logs.args_at[row]), int(logs.args_len[row])))
        what = (names[logs.track[row]], int(logs.level[row]), text[logs.text[row]], text[logs.source[row]], args)
        events.logs.append((int(logs.ts[row]) + shift, *what))
    return events.sorted()


def shown_name(trace: Trace, row: int) -> str:
    """The name of a slice in pictures: calls of oneDNN say the size of their result and the implementation."""
    slices, text = trace.slices, trace.strings
    name = text[slices.name[row]]
    source = trace.sources[trace.tracks[slices.track[row]].source]
    if source.format != "onednn-verbose" or text[slices.category[row]] != "exec":
        return name
    args = json.loads(trace.args.get(int(slices.args_at[row]), int(slices.args_len[row])) or b"{}")
    problem = args.get("problem", "")
    sizes = re.findall(r"(?:mb|oc|od|oh|ow)(\d+)", problem)
    return " ".join(filter(None, (name, "x".join(sizes) or problem, args.get("impl"))))


def shown_stack(trace: Trace, frame: int) -> tuple[str, ...]:
    """Names of a call stack in pictures, innermost first: a run of unknown code in one file is named by it, once."""
    names, unknown_before = list[str](), None
    while frame >= 0:
        one = trace.frames[frame]
        file = one.category.rpartition("/")[2] or one.category or "unknown"
        unknown = None if one.named else one.category
        if one.named or unknown != unknown_before:
            names.append(one.name if one.named else file if file[0] == "[" else f"[{file}]")
        frame, unknown_before = one.parent, unknown
    return tuple(names)


def _track_names(trace: Trace) -> list[str]:
    """How each track is called in the file: lanes as the track that they belong to, what has nothing as what it is."""
    return [_own(_called(trace.tracks[t.lane_of] if t.lane_of != NO_TRACK else t)) for t in trace.tracks]


def _own(name: str) -> str:
    """The name of a track without those of the groups that it stands for, too: tests/picture.py judges these."""
    return name.rpartition("· ")[2].partition(", ")[0]


def _called(track: Track) -> str:
    if track.shown or track.name or not (track.pid is track.tid is None):
        return track.shown or track.name
    return {TrackKind.PROCESS: "process", TrackKind.THREAD: "thread"}.get(track.kind, "")


def _shift(trace: Trace) -> int:
    """What the writer adds to all times, because Perfetto drops times below zero."""
    span = trace.span()
    return -span[0] if span and span[0] < 0 else 0


def _plain(raw: bytes) -> str:
    """Args in one spelling: keys in order, numbers that protobuf cannot hold as text."""
    return _spelled(json.loads(raw) if raw else {})


def _spelled(value: Any) -> str:
    return json.dumps(_storable(value), sort_keys=True, ensure_ascii=False)


def _storable(value: Any, depth: int = 0) -> Any:
    """A value as annotations hold it: what protobuf cannot express, or nobody can read, is text."""
    if isinstance(value, dict | list) and (not value or depth > MAX_DEPTH):
        return json.dumps(value, separators=(",", ":"))
    if isinstance(value, dict):
        return {key: _storable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_storable(inner, depth + 1) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "1e400"  # the only such number in the golden cases
    return "null" if value is None else value


class _Decoder:
    def __init__(self) -> None:
        self.events = Events()
        self.names: dict[int, str] = {}
        self.is_counter: dict[int, bool] = {}
        self.sequence = 0
        self.event_names: dict[tuple[int, int], str] = {}
        self.categories: dict[tuple[int, int], str] = {}
        self.keys: dict[tuple[int, int], str] = {}
        self.values: dict[tuple[int, int], str] = {}
        self.functions: dict[tuple[int, int], str] = {}
        self.frames: dict[tuple[int, int], int] = {}
        self.bodies: dict[tuple[int, int], str] = {}
        self.places: dict[tuple[int, int], str] = {}
        self.stacks: dict[tuple[int, int], list[int]] = {}
        self.open: dict[int, list[tuple[int, Any]]] = {}
        self.flow_ends: dict[int, list[tuple[int, str]]] = {}

    def packet(self, packet: Any) -> None:
        self.sequence = packet.trusted_packet_sequence_id
        self.intern(packet.interned_data)
        if packet.HasField("track_descriptor"):
            self.track(packet.track_descriptor)
        if packet.HasField("track_event"):
            self.event(packet.timestamp, packet.track_event)
        if packet.HasField("perf_sample"):
            stack = self.stacks[self.sequence, packet.perf_sample.callstack_iid]
            frames = [self.functions[self.sequence, self.frames[self.sequence, frame]] for frame in reversed(stack)]
            self.events.samples.append((packet.timestamp, tuple(frames)))

    def intern(self, data: Any) -> None:
        own = self.sequence  # interned ids belong to their sequence
        self.event_names |= {(own, entry.iid): entry.name for entry in data.event_names}
        self.categories |= {(own, entry.iid): entry.name for entry in data.event_categories}
        self.keys |= {(own, entry.iid): entry.name for entry in data.debug_annotation_names}
        self.values |= {(own, entry.iid): entry.str.decode() for entry in data.debug_annotation_string_values}
        self.functions |= {(own, entry.iid): entry.str.decode() for entry in data.function_names}
        self.frames |= {(own, entry.iid): entry.function_name_id for entry in data.frames}
        self.bodies |= {(own, entry.iid): entry.body for entry in data.log_message_body}
        self.places |= {
            (own, entry.iid): entry.file_name + (f":{entry.line_number}" if entry.HasField("line_number") else "")
            for entry in data.source_locations
        }
        self.stacks |= {(own, entry.iid): list(entry.frame_ids) for entry in data.callstacks}

    def track(self, descriptor: Any) -> None:
        name = descriptor.name
        if descriptor.HasField("process"):
            name = descriptor.process.process_name
        elif descriptor.HasField("thread"):
            name = descriptor.thread.thread_name
        self.names[descriptor.uuid] = _own(_NUMBER.sub("", name))
        self.is_counter[descriptor.uuid] = descriptor.HasField("counter")

    def event(self, ts: int, event: Any) -> None:
        uuid = event.track_uuid
        if event.type == pb.TrackEvent.TYPE_COUNTER:
            exact = event.HasField("counter_value")
            value = event.counter_value if exact else event.double_counter_value
            self.events.counters.append((ts, self.names[uuid], value))
        elif event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            self.open.setdefault(uuid, []).append((ts, event))
            self.flow(ts, event)
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            begin, opened = self.open[uuid].pop()
            self.events.slices.append((begin, ts - begin, self.names[uuid], *self.what(opened)))
        elif event.HasField("log_message"):
            name, category, args = self.what(event)
            log = event.log_message
            body = self.bodies[self.sequence, log.body_iid]
            place = self.places[self.sequence, log.source_location_iid] if log.source_location_iid else ""
            assert (name, category) == (body, "")
            self.events.logs.append((ts, self.names[uuid], int(log.prio), body, place, args))
        else:
            assert event.type == pb.TrackEvent.TYPE_INSTANT
            self.events.instants.append((ts, self.names[uuid], *self.what(event)))

    def flow(self, ts: int, event: Any) -> None:
        for number in [*event.flow_ids, *event.terminating_flow_ids]:
            self.flow_ends.setdefault(number, []).append((ts, self.name(event)))

    def name(self, event: Any) -> str:
        return self.event_names[self.sequence, event.name_iid] if event.name_iid else event.name

    def what(self, event: Any) -> tuple[str, str, str]:
        categories = [self.categories[self.sequence, iid] for iid in event.category_iids] + list(event.categories)
        args = {self.key(entry): self.value(entry) for entry in event.debug_annotations}
        return self.name(event), ",".join(categories), _spelled(args)

    def key(self, annotation: Any) -> str:
        return self.keys[self.sequence, annotation.name_iid] if annotation.name_iid else annotation.name

    def value(self, annotation: Any) -> Any:
        if annotation.dict_entries:
            return {self.key(entry): self.value(entry) for entry in annotation.dict_entries}
        if annotation.array_values:
            return [self.value(entry) for entry in annotation.array_values]
        kind = annotation.WhichOneof("value")
        if kind == "string_value_iid":
            return self.values[self.sequence, annotation.string_value_iid]
        return getattr(annotation, kind) if kind else None


def unknown_fields(data: bytes) -> list[str]:
    """The fields of a .pftrace, at any depth, that the schema of the installed package `perfetto` does not have."""
    return [*_unknown(pb.Trace.FromString(data), "Trace")]


def _unknown(message: Any, place: str) -> Iterator[str]:
    yield from (f"{place}.{field.field_number}" for field in UnknownFieldSet(message))
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for inner in [value] if isinstance(value, Message) else value:
                yield from _unknown(inner, f"{place}.{descriptor.name}")


def decode_pftrace(data: bytes) -> Events:
    """The events of a .pftrace."""
    trace = pb.Trace()
    trace.ParseFromString(data)
    decoder = _Decoder()
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            decoder.track(packet.track_descriptor)
    for packet in trace.packet:
        decoder.packet(packet)
    assert not any(decoder.open.values()), "slices without an end"
    decoder.events.flows = [tuple(sorted(ends)) for ends in decoder.flow_ends.values()]
    return decoder.events.sorted()
