"""What an output of traceconv states of its inputs for answers: the input of each track, and how events were counted.

The attribute is JSON: {"sources": [{"without_periods": ["cycles"]}, ...], "tracks": {"1": [uuid, ...]}, ...}. A track
that is not in it is of the first input. In "carries", a thread that several inputs recorded one after the other has
[uuid, table, input, time (ns) from which rows of the table are of it]. "synthetic" has the tracks without real times,
beside others that have them, and "doubts" a list [uuid, "not aligned"] for each track whose name in the file ends in
doubts. Without the attribute, answers would attribute costs by guesses.

An output that was made of outputs states the inputs of these. Then each source has its name and format, and in "placed"
how it was placed: in the output that held it, in the one that held that, and so on, as indices into "placings".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from traceconv.families.importer import extras
from traceconv.families.index import FORMATS
from traceconv.families.perfetto._arranged import Arrangement
from traceconv.families.registry import importer_class
from traceconv.model.builder import Builder
from traceconv.model.clocks import Verdict
from traceconv.model.diagnostics import lost
from traceconv.model.marks import NO_MARKS
from traceconv.model.placing import Placing, placing_of, read_placing
from traceconv.model.stated import by_stated_inputs, placings_of
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import EVER, TIMED, Layer, SourceInfo, Trace, TrackId, TrackKind
from traceconv.model.tracks import NO_NUMBER
from traceconv.writers.ids import without_doubts

BAD_INPUTS = lost(
    "perfetto.bad_inputs",
    "what the file states of its inputs is damaged: a part was ignored, so answers about layers can lack an input",
)

INPUTS = "traceconv.inputs"
_TEXTS = ("without_periods", "sampled")
_JOINED = "join_category"


def attribute_of(trace: Trace, uuids: Sequence[int], shown: Arrangement, groups: Sequence[int]) -> dict[str, Any]:
    """Return the attribute of a trace by its name; nothing if there is nothing to state.

    Args:
        trace: the trace.
        uuids: the uuids of its tracks.
        shown: how its tracks are displayed.
        groups: the uuids of the groups of inputs, which are no tracks of the trace.
    """
    outputs = {number for number, source in enumerate(trace.sources) if source.stated}
    trace = by_stated_inputs(trace)
    number_of = {number: at for at, number in enumerate(sorted({*range(len(trace.sources))} - outputs))}
    sources = [_counted(trace.sources[number]) for number in number_of]
    attribute: dict[str, Any] = {}
    if outputs:
        all_placings, placings = placings_of(trace), list[Placing]()
        for number, one in zip(number_of, sources, strict=True):
            placings += (step for step in all_placings[number] if step not in placings)
            one |= {"name": trace.sources[number].name, "format": trace.sources[number].format}
            one |= {"placed": [placings.index(step) for step in all_placings[number]]}
        attribute["placings"] = [[one.bound_ns, Verdict.SEPARATE if one.apart else "", one.host] for one in placings]
    tracks, ids = trace.tracks, np.asarray(uuids, np.int64)
    is_written = np.ones(len(tracks), bool)
    is_written[list(shown.left_out)] = False
    numbers = np.array([number_of.get(number, 0) for number in range(len(trace.sources))])[tracks.column("source")]
    of_source = {
        number: ids[is_written & (numbers == number)].tolist()
        for number in dict.fromkeys(numbers[is_written].tolist())
        if number
    }
    lacks_pid = is_written & (tracks.column("kind") == TrackKind.PROCESS) & (tracks.numbers() == NO_NUMBER)
    without_pid = ids[lacks_pid].tolist()
    unknown, synthetic, carries, doubts = [], [], [], []
    for index in sorted({*shown.joined_doubts, *(index for index, _ in tracks.special())}):
        track = tracks[index]
        if not is_written[index]:
            continue
        carries += [
            (uuids[index], table, number_of[source], since)
            for table, source, since in track.carries
            if source in number_of
        ]
        if own := shown.doubts(index):
            doubts.append([uuids[index], *own])
        if track.synthetic and not trace.clocks[track.clock].synthetic:
            synthetic.append(uuids[index])
        if track.unknown:
            unknown.append(uuids[index])
    attribute |= {"sources": sources if any(sources) else [], "tracks": of_source}
    attribute |= {"without_pid": without_pid, "unknown": unknown, "groups": groups}
    attribute |= {"synthetic": synthetic, "carries": carries, "doubts": doubts}
    stated = {key: value for key, value in attribute.items() if value}
    return {INPUTS: stated} if stated else {}


def stated_groups(attribute: Any) -> set[int]:
    """Return the uuids of the groups of inputs, from the value of the attribute."""
    groups = _list(attribute.get("groups")) if isinstance(attribute, dict) else []
    return {uuid for uuid in groups if isinstance(uuid, int)}


def stated_inputs(sources: Any, attribute: Any, alignment: Any) -> tuple[SourceInfo, ...]:
    """Return the inputs that a file of traceconv states.

    Args:
        sources: the files that it was made of, with their formats, as the file states them.
        attribute: the value of the attribute.
        alignment: how these files were placed, as the file states it.
    """
    attribute = attribute if isinstance(attribute, dict) else {}
    known, files = _dicts(attribute.get("sources")), _dicts(sources)
    if known and all("placed" in one for one in known):
        steps = [read_placing(one) for one in _list(attribute.get("placings"))]
        return tuple(_stated(one, one, _placings(one["placed"], steps)) for one in known)
    known = known if len(known) == len(files) else [{}] * len(files)
    return tuple(
        _stated(one, more, (placing_of(str(one.get("name")), alignment),))
        for one, more in zip(files, known, strict=True)
    )


def _placings(numbers: Any, steps: Sequence[Placing]) -> tuple[Placing, ...]:
    """Return the placings with these numbers; one that states nothing if some are wrong."""
    placings = [steps[at] for at in _list(numbers) if type(at) is int and 0 <= at < len(steps)]
    return tuple(placings) if placings and len(placings) == len(_list(numbers)) else (Placing(),)


def restore(attribute: Any, out: Builder, track_of: Callable[[int], TrackId | None]) -> None:
    """Restore the input of each track, as far as the file states it; count damaged statements.

    Args:
        attribute: the value of the attribute; None if there is none.
        out: the builder, with all tracks and the stated inputs.
        track_of: returns the track of a uuid.
    """
    if not isinstance(attribute, dict | None):
        out.problem(BAD_INPUTS, INPUTS, "no JSON object")
    attribute = attribute if isinstance(attribute, dict) else {}
    numbers = {str(number): number for number in range(len(out.info.stated))}
    of_source = attribute.get("tracks", {})
    for key, uuids in of_source.items() if isinstance(of_source, dict) else (("", None),):
        if key not in numbers or not isinstance(uuids, list):
            out.problem(BAD_INPUTS, INPUTS, f"tracks of input {key!r:.40}")
            continue
        for track in _tracks(uuids, track_of):
            out.tracks[track].stated = numbers[key]
    for entry in _list(attribute.get("carries")):
        known = type(entry) is list and [type(one) for one in entry] == [int, str, int, int]
        if not known or entry[1] not in TIMED or not 0 <= entry[2] < len(numbers) or not EVER <= entry[3] <= LIMIT_NS:
            out.problem(BAD_INPUTS, INPUTS, f"rows of an input {entry!r:.40}")
            continue
        for track in _tracks(entry[:1], track_of):
            out.tracks[track].stated_carries += (tuple(entry[1:]),)
    for entry in _list(attribute.get("doubts")):
        if type(entry) is not list or not entry[1:] or len(_texts(entry)) < len(entry) - 1:
            out.problem(BAD_INPUTS, INPUTS, f"doubts of a track {entry!r:.40}")
            continue
        for track in _tracks(entry[:1], track_of):
            own = out.tracks[track]
            own.doubts = _texts(entry)
            own.name = without_doubts(own.name, own, own.doubts)
    for track in _tracks(attribute.get("synthetic"), track_of):
        out.tracks[track].synthetic = True
    for track in _tracks(attribute.get("unknown"), track_of):
        out.tracks[track].unknown = True
    for track in _tracks(attribute.get("without_pid"), track_of):
        out.tracks[track].invented = True


def _counted(source: SourceInfo) -> dict[str, Any]:
    """Return what is stated of an input: how its events were counted, and a layer that its format does not declare."""
    texts = {key: value for key in (*_TEXTS, _JOINED) if (value := getattr(source, key))}
    if source.layer is not _layer_of(source.format):
        texts["layer"] = source.layer and source.layer.name
    return texts


def _stated(stated: dict[str, Any], more: dict[str, Any], placings: tuple[Placing, ...]) -> SourceInfo:
    name = str(stated.get("format"))
    marks = extras(importer_class(name)).marks if name in FORMATS else NO_MARKS
    source = SourceInfo(str(stated.get("name")), name, layer=_layer_of(name), marks=marks, placings=placings)
    source.layer = Layer.__members__.get(str(more["layer"])) if "layer" in more else source.layer
    source.without_periods, source.sampled = (_texts(more.get(key)) for key in _TEXTS)
    source.join_category = category if isinstance(category := more.get(_JOINED), str) else ""
    return source


def _layer_of(format: str) -> Layer | None:
    return extras(importer_class(format)).layer if format in FORMATS else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in _list(value) if isinstance(one, dict)]


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in _list(value) if isinstance(one, str))


def _tracks(uuids: Any, track_of: Callable[[int], TrackId | None]) -> list[TrackId]:
    tracks = [track_of(uuid) for uuid in _list(uuids) if isinstance(uuid, int)]
    return [track for track in tracks if track is not None]
