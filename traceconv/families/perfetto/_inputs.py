"""What an output of traceconv states of its inputs for answers: the input of each track, and how events were counted.

The attribute is JSON: {"sources": [{"without_periods": ["cycles"]}, ...], "tracks": {"1": [uuid, ...]}, ...}. A track
that is not in it is of the first input. Without it, answers would attribute costs by guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from traceconv.families.index import FORMATS
from traceconv.families.registry import importer_class
from traceconv.model.builder import Builder
from traceconv.model.marks import NO_MARKS
from traceconv.model.trace import Layer, SourceInfo, Trace, TrackId, TrackKind

INPUTS = "traceconv.inputs"
_TEXTS = ("without_periods", "sampled")
_JOINED = "join_category"


def attribute_of(trace: Trace, uuids: Sequence[int], left_out: Collection[int]) -> dict[str, Any]:
    """Return the attribute of a trace by its name; nothing if there is nothing to state.

    Args:
        trace: the trace.
        uuids: the uuids of its tracks.
        left_out: the tracks that are not written.
    """
    sources = [
        {key: value for key in (*_TEXTS, _JOINED) if (value := getattr(source, key))}
        | ({} if source.layer is _layer_of(source.format) else {"layer": source.layer and source.layer.name})
        for source in trace.sources
    ]
    of_source: dict[int, list[int]] = {}
    without_pid, unknown = [], []
    for index, track in enumerate(trace.tracks):
        if index in left_out:
            continue
        if track.source:
            of_source.setdefault(track.source, []).append(uuids[index])
        if track.kind is TrackKind.PROCESS and track.pid is None:
            without_pid.append(uuids[index])
        if track.unknown:
            unknown.append(uuids[index])
    found = {"sources": sources if any(sources) else [], "tracks": of_source}
    found |= {"without_pid": without_pid, "unknown": unknown}
    stated = {key: value for key, value in found.items() if value}
    return {INPUTS: stated} if stated else {}


def restore(sources: Any, attribute: Any, out: Builder, track_of: Callable[[int], TrackId | None]) -> None:
    """Restore the inputs of a file that traceconv wrote, as far as they are stated.

    Args:
        sources: the inputs with their formats, as the file states them.
        attribute: the value of the attribute.
        out: the builder, with all tracks.
        track_of: returns the track of a uuid.
    """
    named = [one for one in sources if isinstance(one, dict)] if isinstance(sources, list) else []
    attribute = attribute if isinstance(attribute, dict) else {}
    known = attribute.get("sources")
    more = known if isinstance(known, list) and len(known) == len(named) else [{}] * len(named)
    out.info.stated = tuple(_stated(one, other) for one, other in zip(named, more, strict=True))
    of_source = attribute.get("tracks")
    for number, uuids in of_source.items() if isinstance(of_source, dict) else ():
        if not (number.isdecimal() and int(number) < len(named)):
            continue
        for track in _tracks(uuids, track_of):
            out.tracks[track].stated = int(number)
    for track in _tracks(attribute.get("unknown"), track_of):
        out.tracks[track].unknown = True
    for track in _tracks(attribute.get("without_pid"), track_of):
        out.tracks[track].invented = True


def _stated(one: dict[str, Any], more: Any) -> SourceInfo:
    name = str(one.get("format"))
    marks = getattr(importer_class(name), "marks", NO_MARKS) if name in FORMATS else NO_MARKS
    found = SourceInfo(str(one.get("name")), name, layer=_layer_of(name), marks=marks)
    if isinstance(more, dict):
        found.layer = Layer.__members__.get(str(more["layer"])) if "layer" in more else found.layer
        found.without_periods, found.sampled = (_texts(more.get(key)) for key in _TEXTS)
        found.join_category = category if isinstance(category := more.get(_JOINED), str) else ""
    return found


def _layer_of(format: str) -> Layer | None:
    found: Layer | None = getattr(importer_class(format), "layer", None) if format in FORMATS else None
    return found


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(filter(lambda one: isinstance(one, str), value)) if isinstance(value, list) else ()


def _tracks(uuids: Any, track_of: Callable[[int], TrackId | None]) -> list[TrackId]:
    found = [track_of(uuid) for uuid in uuids if isinstance(uuid, int)] if isinstance(uuids, list) else []
    return [track for track in found if track is not None]
