"""What traceconv is compared with.

Each runs in a process of its own: `python -m tests.benchmarks.contestants NAME PATH...`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SEQUENCE = 1


def load_only(source: Path, target: Path) -> None:
    """Decode the file, which is what any script in Python has to do first."""
    import orjson

    orjson.loads(source.read_bytes())


def load_typed(source: Path, target: Path) -> None:
    """Decode what every event has and leave the args as bytes: the least that a parser for any JSON takes."""
    import msgspec

    raw = msgspec.Raw
    members = [("ph", str), *((name, str, "") for name in ("name", "cat"))]
    members += [(name, raw, raw()) for name in ("pid", "tid", "ts", "dur", "id", "args")]
    event = msgspec.defstruct("event", members, gc=False)
    msgspec.json.decode(source.read_bytes(), type=msgspec.defstruct("document", [("traceEvents", list[event])]))


def load_and_dump(source: Path, target: Path) -> None:
    """Decode the file and encode what it holds: the least that any script costs that changes a trace."""
    import orjson

    target.write_bytes(orjson.dumps(orjson.loads(source.read_bytes())))


def trace_fuse(target: Path, *ranks: Path) -> None:
    """Merge as TraceLens documents it; it adds .gz to the name of the target."""
    from TraceLens import TraceFuse

    TraceFuse([str(rank) for rank in ranks]).merge_and_save(str(target))


def proto_builder(source: Path, target: Path) -> None:
    """Convert with the writer of the `perfetto` package, one packet per call, as its documentation shows."""
    import orjson
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

    document = orjson.loads(source.read_bytes())
    conversion = _Conversion(TraceProtoBuilder(), document.get("baseTimeNanoseconds", 0))
    for event in document["traceEvents"]:
        conversion.event(event)
    target.write_bytes(conversion.builder.serialize())


class _Conversion:
    def __init__(self, builder: Any, base_ns: int) -> None:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

        self.builder = builder
        self._base_ns = base_ns
        self._types = TrackEvent
        self._tracks: dict[tuple[object, ...], int] = {}
        self._thread_names: dict[tuple[object, object], str] = {}

    def event(self, event: dict[str, Any]) -> None:
        phase = event["ph"]
        if phase == "X":
            self._slice(event)
        elif phase == "i":
            packet = self._packet(event, self._ns(event), self._types.TYPE_INSTANT)
            self._describe(packet.track_event, event)
        elif phase == "C":
            self._counters(event)
        elif phase in "sf":
            self._flow(event, terminating=phase == "f")
        elif event["name"] == "thread_name":
            self._thread_names[event["pid"], event["tid"]] = event["args"]["name"]

    def _ns(self, event: dict[str, Any]) -> int:
        ts: float = event["ts"]
        return self._base_ns + round(ts * 1000)

    def _packet(self, event: dict[str, Any], ts: int, type: int) -> Any:
        uuid = self._thread(event["pid"], event["tid"])
        packet = self._new_packet(ts)
        packet.track_event.type = type
        packet.track_event.track_uuid = uuid
        return packet

    def _new_packet(self, ts: int) -> Any:
        packet = self.builder.add_packet()
        packet.timestamp = ts
        packet.trusted_packet_sequence_id = SEQUENCE
        return packet

    def _thread(self, pid: int, tid: int) -> int:
        uuid = self._tracks.get((pid, tid))
        if uuid is None:
            uuid = self._tracks[pid, tid] = len(self._tracks) + 1
            descriptor = self._new_packet(self._base_ns).track_descriptor
            descriptor.uuid = uuid
            descriptor.name = self._thread_names.get((pid, tid), f"{pid}/{tid}")
        return uuid

    def _slice(self, event: dict[str, Any]) -> None:
        start = self._ns(event)
        packet = self._packet(event, start, self._types.TYPE_SLICE_BEGIN)
        self._describe(packet.track_event, event)
        self._packet(event, start + round(event["dur"] * 1000), self._types.TYPE_SLICE_END)

    def _describe(self, target: Any, event: dict[str, Any]) -> None:
        target.name = event["name"]
        if "cat" in event:
            target.categories.append(event["cat"])
        for key, value in event.get("args", {}).items():
            annotation = target.debug_annotations.add()
            annotation.name = key
            _set_value(annotation, value)

    def _counters(self, event: dict[str, Any]) -> None:
        for series, value in event["args"].items():
            key = ("counter", event["pid"], event["name"], series)
            uuid = self._tracks.get(key)
            if uuid is None:
                uuid = self._tracks[key] = len(self._tracks) + 1
                descriptor = self._new_packet(self._base_ns).track_descriptor
                descriptor.uuid = uuid
                descriptor.name = f"{event['name']} {series}"
                descriptor.counter.SetInParent()
            packet = self._new_packet(self._ns(event))
            packet.track_event.type = self._types.TYPE_COUNTER
            packet.track_event.track_uuid = uuid
            packet.track_event.double_counter_value = value

    def _flow(self, event: dict[str, Any], terminating: bool) -> None:
        # Flows in this format hang on events, so an instant carries each end.
        packet = self._packet(event, self._ns(event), self._types.TYPE_INSTANT)
        packet.track_event.name = event["name"]
        ids = packet.track_event.terminating_flow_ids if terminating else packet.track_event.flow_ids
        ids.append(event["id"] * 2 + (event["cat"] == "fwdbwd"))


def _set_value(annotation: Any, value: Any) -> None:
    if isinstance(value, bool):
        annotation.bool_value = value
    elif isinstance(value, int):
        annotation.int_value = value
    elif isinstance(value, float):
        annotation.double_value = value
    elif isinstance(value, str):
        annotation.string_value = value
    elif isinstance(value, list):
        for item in value:
            _set_value(annotation.array_values.add(), item)
    elif isinstance(value, dict):
        for key, item in value.items():
            entry = annotation.dict_entries.add()
            entry.name = key
            _set_value(entry, item)


def row_by_row(source: Path, target: Path) -> None:
    """What nvprof2json does: each row becomes a dict with the members of a complete event, and one `json.dump`.

    It knows calls of the runtime and kernels only, draws no flows, and demangles nothing here.
    """
    import json
    import sqlite3

    database = sqlite3.connect(source)
    database.row_factory = sqlite3.Row
    texts = {row["id"]: row["value"] for row in database.execute("SELECT _id_ AS id, value FROM StringTable")}
    events: list[dict[str, Any]] = []
    for row in database.execute("SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME"):
        where = {"pid": f"[{row['processId']}] Process", "tid": f"Thread {row['threadId']}: Runtime API"}
        args = {"cbid": row["cbid"], "correlationId": row["correlationId"], "returnValue": row["returnValue"]}
        events.append(_complete(row, f"cbid {row['cbid']}", "cuda", where, args))
    for row in database.execute("SELECT * FROM CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"):
        where = {"pid": f"[{row['deviceId']}:{row['contextId']}] Overview", "tid": f"Stream {row['streamId']}"}
        args = {
            "grid": [row["gridX"], row["gridY"], row["gridZ"]],
            "block": [row["blockX"], row["blockY"], row["blockZ"]],
            "registersPerThread": row["registersPerThread"],
            "staticSharedMemory": row["staticSharedMemory"],
            "dynamicSharedMemory": row["dynamicSharedMemory"],
            "correlationId": row["correlationId"],
            "gridId": row["gridId"],
        }
        events.append(_complete(row, texts[row["name"]], "cuda", where, args))
    with target.open("w") as file:
        json.dump(events, file)


def _complete(row: Any, name: str, category: str, where: dict[str, str], args: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": row["start"] / 1000, "dur": (row["end"] - row["start"]) / 1000}
    return {"name": name, "ph": "X", "cat": category, **times, **where, "args": args}


def read_all(*sources: Path) -> None:
    """Read some inputs with traceconv, one after another."""
    from traceconv import read

    for source in sources:
        read(source)


def ask_all(source: Path) -> None:
    """Read an input with traceconv, ask each question of docs/sql.md, and print the CPU time of each."""
    import json
    import time

    from tests.database.test_questions import questions
    from traceconv import frames, query

    tables, spent = frames([source]), {}
    for question, text in questions().items():
        start = time.process_time()
        query(tables, text)
        spent[question] = time.process_time() - start
    print(json.dumps(spent))


CONTESTANTS: dict[str, Callable[..., None]] = {
    "ask_all": ask_all,
    "load_only": load_only,
    "load_typed": load_typed,
    "load_and_dump": load_and_dump,
    "proto_builder": proto_builder,
    "read_all": read_all,
    "row_by_row": row_by_row,
    "trace_fuse": trace_fuse,
}

if __name__ == "__main__":
    CONTESTANTS[sys.argv[1]](*map(Path, sys.argv[2:]))
