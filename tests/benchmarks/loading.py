"""What loading a .pftrace costs, by what is in it: `python -m tests.benchmarks.loading`.

The same trace is written in several ways, and Perfetto's trace processor loads them in turns, all in one process, so
that neither its start nor its compilation counts. The least of all turns counts: what else runs on the machine only
adds. Ways that say the same say so in SQL, too; the others show what a part of it costs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tests import oracle
from tests.benchmarks.frame import ROOT, traceconv
from tests.benchmarks.generate import generate

_LOADER = Path(__file__).with_name("tp_race.mjs")


class _Texts:
    """The interned texts of a trace, by their numbers."""

    def __init__(self, trace: Any) -> None:
        interned = [packet.interned_data for packet in trace.packet]
        self.names = {one.iid: one.name for data in interned for one in data.debug_annotation_names}
        self.values = {one.iid: one.str.decode() for data in interned for one in data.debug_annotation_string_values}

    def value(self, annotation: Any) -> Any:
        """What an annotation says."""
        if annotation.dict_entries:
            return {self.names[entry.name_iid]: self.value(entry) for entry in annotation.dict_entries}
        if annotation.array_values:
            return [self.value(item) for item in annotation.array_values]
        kind = annotation.WhichOneof("value")
        return self.values[annotation.string_value_iid] if kind == "string_value_iid" else getattr(annotation, kind)


def _events(trace: Any) -> Iterator[Any]:
    return (packet.track_event for packet in trace.packet if packet.HasField("track_event"))


def _nested(trace: Any) -> Iterator[Any]:
    for event in _events(trace):
        yield from (one for one in event.debug_annotations if one.array_values or one.dict_entries)


def _everywhere(annotations: Any) -> Iterator[Any]:
    for one in annotations:
        yield one
        yield from _everywhere(one.dict_entries)
        yield from _everywhere(one.array_values)


def _with_json(annotation: Any, value: Any) -> None:
    annotation.ClearField("array_values")
    annotation.ClearField("dict_entries")
    annotation.legacy_json_value = json.dumps(value, separators=(",", ":"))


def _arrays_as_json(trace: Any, texts: _Texts) -> None:
    for annotation in _nested(trace):
        _with_json(annotation, texts.value(annotation))


def _no_empty_arrays(trace: Any, texts: _Texts) -> None:
    for annotation in _nested(trace):
        value = texts.value(annotation)
        _with_json(annotation, [one for one in value if one != "[]"] if isinstance(value, list) else value)


def _texts_inline(trace: Any, texts: _Texts) -> None:
    for event in _events(trace):
        for annotation in _everywhere(event.debug_annotations):
            if annotation.HasField("string_value_iid"):
                annotation.string_value = texts.values[annotation.string_value_iid]


def _names_inline(trace: Any, texts: _Texts) -> None:
    for event in _events(trace):
        for annotation in _everywhere(event.debug_annotations):
            if annotation.HasField("name_iid"):
                annotation.name = texts.names[annotation.name_iid]


def _sequence_of_each_track(trace: Any, texts: _Texts) -> None:
    """The track becomes a default of the sequence, which has all interned texts."""
    first, packets = trace.packet[0], list(trace.packet)
    interned = pb.InternedData()
    for packet in packets:
        interned.MergeFrom(packet.interned_data)
    changed = pb.Trace()
    sequences: dict[int, int] = {}
    for packet in packets:
        track = packet.track_event.track_uuid
        if packet.HasField("track_event") and track not in sequences:
            sequences[track] = len(sequences) + 2
            head = changed.packet.add()
            head.CopyFrom(first)
            head.ClearField("clock_snapshot")
            head.trusted_packet_sequence_id = sequences[track]
            head.trace_packet_defaults.track_event_defaults.track_uuid = track
            head.interned_data.CopyFrom(interned)
        if packet.HasField("track_event"):
            packet.trusted_packet_sequence_id = sequences[track]
            packet.track_event.ClearField("track_uuid")
        changed.packet.add().CopyFrom(packet)
    trace.CopyFrom(changed)


def _no_flags(trace: Any, texts: _Texts) -> None:
    for packet in trace.packet:
        if packet.HasField("track_event"):
            packet.ClearField("sequence_flags")


def _no_nested_args(trace: Any, texts: _Texts) -> None:
    for event in _events(trace):
        kept = [pb.DebugAnnotation.FromString(one.SerializeToString()) for one in event.debug_annotations]
        event.ClearField("debug_annotations")
        event.debug_annotations.extend(one for one in kept if not one.array_values and not one.dict_entries)


def _no_args(trace: Any, texts: _Texts) -> None:
    for event in _events(trace):
        event.ClearField("debug_annotations")


#: Ways to say the same, and traces that say less.
CHANGES: dict[str, Callable[[Any, _Texts], None]] = {
    "arrays as JSON text": _arrays_as_json,
    "texts not interned": _texts_inline,
    "names of args not interned": _names_inline,
    "a sequence for each track": _sequence_of_each_track,
    "no flags of sequences": _no_flags,
    "less: no empty arrays": _no_empty_arrays,
    "less: no arrays": _no_nested_args,
    "less: no args": _no_args,
}


def _write_all(folder: Path, events: int) -> dict[str, Path]:
    """The files by what they are."""
    source, converted = folder / "trace.json", folder / "trace.pftrace"
    generate(source, events)
    subprocess.run(traceconv("convert", source, "-o", converted), cwd=ROOT, check=True, capture_output=True)
    files = {"Chrome JSON": source, "as written": converted}
    for number, (name, change) in enumerate(CHANGES.items()):
        trace = pb.Trace.FromString(converted.read_bytes())
        change(trace, _Texts(trace))
        files[name] = folder / f"{number}.pftrace"
        files[name].write_bytes(trace.SerializeToString())
    document = json.loads(source.read_bytes())
    for event in document["traceEvents"]:
        if event["ph"] in "Xi":
            event.pop("args", None)
    files["Chrome JSON, less: no args"] = folder / "no_args.json"
    files["Chrome JSON, less: no args"].write_text(json.dumps(document, indent=1))
    return files


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.loading", description=__doc__)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--turns", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = _write_all(Path(folder), arguments.events)
        command = [oracle.node_executable(), str(_LOADER), str(oracle.ui_dir()), str(arguments.turns)]
        done = subprocess.run([*command, *map(str, files.values())], check=True, capture_output=True, text=True)
        costs = dict(zip(files, json.loads(done.stdout), strict=True))
        base = min(costs["Chrome JSON"])
        size = files["Chrome JSON"].stat().st_size
        print(f"{'':28}   CPU s   ratio    size")
        for name, path in files.items():
            least = min(costs[name])
            print(f"{name:28}  {least:6.2f}  {least / base:6.2f}  {path.stat().st_size / size:6.0%}")


if __name__ == "__main__":
    main()
