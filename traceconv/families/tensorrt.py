"""Exports of TensorRT's `trtexec`: `--exportTimes`, `--exportProfile` and `--exportLayerInfo`.

    [
      { "startEnqMs" : 3.1, "endEnqMs" : 3.2, "startH2dMs" : 3.0, "endH2dMs" : 3.1, "startComputeMs" : 3.3,
        "endComputeMs" : 5.2, "startD2hMs" : 5.2, "endD2hMs" : 5.3, "h2dMs" : 0.1, "computeMs" : 1.9, ... },
    ]
    [
      { "count" : 742 }
    , { "name" : "conv1 + relu", "timeMs" : 88.8, "averageMs" : 0.119, "medianMs" : 0.118, "percentage" : 4.1 }
    ]
    {"Layers": [{"Name": "conv1 + relu", "LayerType": "CaskConvolution", "Inputs": [...], ...}], "Bindings": ["input"]}

Source: TensorRT's samples (samples/common/sampleReporting.cpp) and from public outputs; to 7.0 the names are
startInMs, endInMs, startOutMs, endOutMs, inMs, outMs. One object per inference, milliseconds from the start of the run:
enqueue is measured by the host, the rest by CUDA events placed on the host's time. Numbers have six significant digits:
times are good to 1 us in the first second, to 100 us after ten; the durations beside them are finer. A profile has
the sums over `count` inferences for each layer, in the order of the network and without times (medians since 8.5).
Nothing is escaped in names, and old versions print `nan`. Layers of --exportLayerInfo are names, or objects where the
engine was built with detailed verbosity.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
from msgspec.structs import replace

from traceconv.families.chrome.event import Hopeless, Incomplete, repair_value
from traceconv.families.common.json_document import JsonDocument, is_array
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME, ClockDomain, Run, Zero
from traceconv.model.diagnostics import lost, repaired
from traceconv.model.marks import FormatMarks, SeveralMarks
from traceconv.model.numbers import MS, decode_json, double_of, format_time, parse_ns, whole
from traceconv.model.trace import SliceId
from traceconv.model.track_table import TrackId

LAYERS = Counted("layer", "layers")
OBJECTS = Counted("object", "objects")
INFERENCE_COUNTS = Counted("count of inferences", "counts of inferences")

BAD_RECORD = lost("tensorrt.bad_record", "an object is cut, or has no numeric time: it was left out")
REPAIRED_JSON = repaired(
    "tensorrt.repaired", "the file is not valid JSON (names without escapes, nan, cut): read object by object"
)

_LINE = re.compile(rb"[^\r\n]+")
_OBJECT = re.compile(rb"\{[^{}]*\}")
_LAYER = re.compile(rb'\A[^{]*+\{\s*"name"\s*:\s*"(?>(.*)"\s*,\s*"timeMs"\s*:)(.*)\}')
_MEMBER = re.compile(rb'"(\w+)"\s*:\s*([^,}\s]+)')
_TIMES = re.compile(rb'\A\[\s*\{[^{}]*"(?:startComputeMs|startEnqMs|endComputeMs)"\s*:')
_PROFILE = re.compile(rb'\A\s*\[\s*\{\s*"count"\s*:\s*\d+\s*\}')
#: printf of a C++ stream: six digits, zeros at the end cut off.
_DIGITS = 6
_NUMBER = re.compile(rb"-?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,2})?")
_SYNTHETIC = "A profile has no times: the layers stand end to end in the order of the network, with their mean lengths."

_LAYERS = "TensorRT layers"
_NOTHING = msgspec.Raw(b"[]")

RUN_CLOCK = ClockDomain("trtexec time", Zero.RUN_START, Run.MONOTONIC, 1000)
ORDER_CLOCK = ClockDomain("TensorRT layer order", Zero.UNKNOWN, Run.NONE, 1000)
#: The phases of an inference: the track, the names of its start and end times, and their names in old versions.
_PHASES = (
    ("Host: enqueue", "enqueue", ("startEnqMs", "endEnqMs"), ("startEnqMs", "endEnqMs")),
    ("Device: H2D", "H2D", ("startH2dMs", "endH2dMs"), ("startInMs", "endInMs")),
    ("Device: compute", "compute", ("startComputeMs", "endComputeMs"), ("startComputeMs", "endComputeMs")),
    ("Device: D2H", "D2H", ("startD2hMs", "endD2hMs"), ("startOutMs", "endOutMs")),
)

_ENQUEUE = 0

Record = dict[str, bytes]


def _records(document: JsonDocument, out: Builder) -> Iterator[Record]:
    """Yield the members of each object as they are written; names are decoded."""
    try:
        elements = document.elements(msgspec.json.decode(document.text, type=msgspec.Raw))
    except (msgspec.DecodeError, RecursionError):
        out.problem(REPAIRED_JSON, out.info.name)
    else:
        yield from map(_members_of, elements)
        return
    for text in _LINE.finditer(document.text):
        line = text[0]
        layer = _LAYER.search(line)
        if layer is not None:
            yield {"name": layer[1], **_members(b'"timeMs":' + layer[2])}
        elif b'"name"' in line:
            yield {}
        else:
            for match in _OBJECT.finditer(line):
                yield _members(match[0])
            if line.count(b"{") > line.count(b"}"):
                yield {}  # cut


def _members_of(element: msgspec.Raw) -> Record:
    """Return the members of an object; none of another value."""
    try:
        members = msgspec.json.decode(element, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return {}
    return {key: _plain(bytes(value)) for key, value in members.items()}


def _plain(value: bytes) -> bytes:
    return str(msgspec.json.decode(value)).encode("utf-8", "replace") if value[:1] == b'"' else value


def _members(text: bytes) -> Record:
    return {key.decode(): value for key, value in _MEMBER.findall(text)}


class _Times(msgspec.Struct):
    """Writes the inferences of `--exportTimes`."""

    out: Builder
    tracks: list[TrackId] = msgspec.field(default_factory=list)
    ends: list[int] = msgspec.field(default_factory=lambda: [0] * len(_PHASES))  # of the last slice on each track
    step: int = RUN_CLOCK.resolution_ns

    def add(self, number: int, record: Record) -> None:
        if not self.tracks:
            root = self.out.tracks.process("trtexec")
            self.tracks = [self.out.tracks.add(phase[0], root) for phase in _PHASES]
        try:
            spans = list(self._placed(record))
        except ValueError as error:
            self.out.skip(BAD_RECORD, number, str(error))
            return
        if not spans:
            self.out.skip(BAD_RECORD, number)
            return
        durations = {
            f"{key[:-2]}_ms": length
            for key, value in record.items()
            if not _is_instant(key) and (length := _double(value)) is not None
        }
        self.step = max(self.step, *(_step(end) for _, _, _, end in spans))
        parts: list[tuple[int, SliceId]] = []
        for track, name, start, end in spans:
            args = {"inference": number - 1, **(durations if name == "compute" else {})}
            slice_id = self.out.slice(self.tracks[track], start, end - start, name, "inference", args, number)
            parts.append((start, slice_id))
        parts.sort(key=lambda part: part[0])  # the input of an inference is often copied before it is enqueued
        for (_, before), (_, after) in pairwise(parts):
            self.out.flow(before, after, "inference", at=number)
        self.out.balance.written += 1

    def finish(self) -> None:
        self.out.clocks.set_default(replace(RUN_CLOCK, resolution_ns=self.step))
        if self.step > RUN_CLOCK.resolution_ns:
            self.out.note(
                f"starts are printed with six digits, so the last ones are in steps of {format_time(self.step)}; "
                "durations are finer, so a slice after a copy or `compute` is drawn at its end"
            )

    def _placed(self, record: Record) -> Iterator[tuple[int, str, int, int]]:
        """Yield the spans of an inference; a start that was rounded to before the previous end is moved to that end."""
        before = 0
        for track, name, start, end in self._spans(record):
            known = max(self.ends[track], before if track != _ENQUEUE else 0)
            shift = known - start if 0 < known - start <= _step(start) else 0
            self.ends[track] = end + shift
            before = end + shift if track != _ENQUEUE else 0
            yield track, name, start + shift, end + shift

    def _spans(self, record: Record) -> Iterator[tuple[int, str, int, int]]:
        """Yield track, name, start and end (ns) of each known phase of an inference."""
        for track, (_, name, new, old) in enumerate(_PHASES):
            for start, end in (new, old):
                if start in record and end in record:
                    yield track, name, *_span(record, start, end)
                    break


def _span(record: Record, start: str, end: str) -> tuple[int, int]:
    """Return start and end, ns. The end follows from the duration, which has more digits, where both agree."""
    begin, stop = parse_ns(record[start], MS), parse_ns(record[end], MS)
    stated = record.get(f"{start[5].lower()}{start[6:]}", b"")  # startH2dMs: h2dMs
    if not _NUMBER.fullmatch(stated):
        return begin, stop
    dur = parse_ns(stated, MS)
    return begin, begin + dur if abs(stop - begin - dur) <= _step(stop) else stop


def _step(ts: int) -> int:
    """Return the resolution of a printed time, ns."""
    return int(10 ** max(len(str(abs(ts))) - _DIGITS, 0))


def _is_instant(key: str) -> bool:
    return key.startswith(("start", "end")) or not key.endswith("Ms")


class _Profile(msgspec.Struct):
    """Writes the layers of `--exportProfile`."""

    out: Builder
    track: TrackId
    end: int = 0
    count: int = 1

    def add(self, number: int, record: Record) -> None:
        try:
            if "name" not in record:
                self.count = whole(record["count"])
                self.out.metadata["tensorrt_inferences"] = self.count
                self.out.balance.merged[INFERENCE_COUNTS] += 1
                return
            total = parse_ns(record["timeMs"], MS)
            dur = parse_ns(record["averageMs"], MS) if "averageMs" in record else total // max(self.count, 1)
        except (KeyError, ValueError):
            self.out.skip(BAD_RECORD, number)
            return
        args: dict[str, float] = {"total_time_ns": total, "inferences": self.count}
        for key in ("medianMs", "percentage"):
            if (value := _double(record.get(key, b""))) is not None:
                args[key.replace("Ms", "_ms")] = value
        name = record["name"].decode("utf-8", "replace")
        self.out.slice(self.track, self.end, dur, name, "layer", args, number)
        self.end += dur
        self.out.balance.written += 1


def _double(text: bytes) -> float | None:
    return double_of(text.decode("latin-1")) if _NUMBER.fullmatch(text) else None


def _layers_file(source: Source, document: JsonDocument, out: Builder) -> dict[str, msgspec.Raw]:
    """Return the members of a file, repaired where names hold quotes. Raises MalformedInput if it does not end."""
    try:
        return msgspec.json.decode(document.text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        text, _ = repair_value(bytes(document.text), 0, Counter())
        members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (Incomplete, Hopeless, msgspec.DecodeError, RecursionError):
        raise source.malformed(
            "the list of layers is not complete", hint="was the file copied whole? Export it again"
        ) from None
    out.problem(REPAIRED_JSON, out.info.name)
    return members


def _read_layers(source: Source, document: JsonDocument, out: Builder) -> None:
    """Read the layers of `--exportLayerInfo`, without times: a row each. Raises MalformedInput if it is cut."""
    members = _layers_file(source, document, out)
    out.clocks.set_default(NO_TIME)
    out.belongs_to(("tensorrt",))
    out.counts(LAYERS)
    if bindings := decode_json(members.get("Bindings", _NOTHING)):
        out.metadata["tensorrt_bindings"] = bindings
    track = out.tracks.totals(_LAYERS)
    layers = members.get("Layers", _NOTHING)
    elements = document.elements(layers) if is_array(layers) else ()
    for number, element in enumerate(elements, 1):
        out.balance.read += 1
        layer = decode_json(element)
        args: dict[str, Any] = dict(layer) if isinstance(layer, dict) else {"Name": layer}
        name = args.pop("Name", "")
        if not isinstance(name, str) or not name:
            out.skip(BAD_RECORD, number)
            continue
        out.totals(track, name, "layer", args, number)
        out.balance.written += 1


def _has_layers(head: Head) -> bool:
    """Return whether a file is of `--exportLayerInfo`: layers with names and types, or names only beside bindings."""
    layers = head.json.members.get("Layers")
    if not isinstance(layers, list) or not layers:
        return False
    first = layers[0]
    if isinstance(first, dict):
        return {"Name", "LayerType", "Inputs", "Outputs"} <= first.keys()
    return isinstance(first, str) and (b'"Bindings"' in head.tail)


@dataclass(frozen=True)
class Tensorrt(Importer):
    name = "tensorrt"
    title = "TensorRT trtexec times and layer profiles"
    url = "https://docs.nvidia.com/deeplearning/tensorrt/latest/reference/command-line-programs.html"
    versions = "--exportTimes, --exportProfile and --exportLayerInfo of TensorRT 5 to 10"
    signature = Signature(
        '"startcomputems" | "startenqms" | "endcomputems" | "layers" & "layertype" | "layers" & "bindings"',
        (rb'\A(?:\xef\xbb\xbf)?\s*\[\s*\{\s*"count"',),
    )
    clock = RUN_CLOCK
    record = (
        "trtexec --loadEngine=model.engine --exportTimes=times.json\n"
        "trtexec --loadEngine=model.engine --dumpProfile --separateProfileRun --exportProfile=profile.json\n"
        "trtexec --loadEngine=model.engine --profilingVerbosity=detailed --exportLayerInfo=layers.json"
    )

    line_up = (
        "Times count from the start of the run, and profiles have none: `--offset FILE=TIME`. TIME can be the start "
        "of the first inference in an Nsight Systems recording of the run (nsys profile trtexec ...)."
    )
    becomes = (
        ("inference of --exportTimes", "slices for enqueue, H2D, compute and D2H, with flows between them"),
        ("h2dMs, computeMs, latencyMs, ...", "args of the compute slice"),
        ("layer of --exportProfile", "slice of its mean length, end to end, with total, median and share as args"),
        ("layer of --exportLayerInfo", "row of a table without times; the bindings are metadata"),
    )
    unrecorded = "no machine with TensorRT was at hand. Public files of trtexec were read, too."
    marks = FormatMarks(libraries="libnvinfer", several=SeveralMarks(r".* / layers \(synthetic\)", means=True))

    def sniff(self, head: Head) -> Match:
        """Return YES by the members that only trtexec writes."""
        if _TIMES.match(head.text):
            return Match.yes("inference times of trtexec")
        if _has_layers(head):
            return Match.yes("the layers of an engine of TensorRT")
        if _PROFILE.match(head.text) and (b'"averageMs"' in head.data or b'"timeMs"' in head.data or head.complete):
            return Match.yes("a layer profile of trtexec")
        return Match.no("no array of inference times or layer times of trtexec")

    def read(self, source: Source, out: Builder) -> None:
        document = JsonDocument(source)
        data = document.text
        out.counts(OBJECTS)
        if _has_layers(source.head()):
            _read_layers(source, document, out)
            return
        has_phases = data.find(b"ComputeMs") >= 0
        is_profile = _PROFILE.match(data) is not None or (data.find(b'"timeMs"') >= 0 and not has_phases)
        if not is_profile and not has_phases and data.find(b"EnqMs") < 0:
            raise source.malformed("no times of trtexec found", hint=f"record them with {self.record.splitlines()[0]}")
        adder: _Profile | _Times
        if is_profile:
            out.clocks.set_default(ORDER_CLOCK.owned_by(out.info.name))
            adder = _Profile(
                out, out.tracks.add("layers (synthetic)", out.tracks.process("TensorRT"), description=_SYNTHETIC)
            )
            out.note(_SYNTHETIC)
        else:
            adder = _Times(out)
        for number, record in enumerate(_records(document, out), 1):
            out.balance.read += 1
            adder.add(number, record)
        if isinstance(adder, _Times):
            adder.finish()
