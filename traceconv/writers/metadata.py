"""The metadata of the trace that all writers write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceconv import __version__
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace


def recording_metadata(trace: Trace) -> dict[str, Any]:
    """Return the tool, the clock, the inputs with notes, and the files left out, without `Trace.metadata`."""
    return {
        "version": __version__,
        "clock": trace.clocks[0].describe() if trace.clocks else "",
        "sources": [_described(source) for source in trace.sources],
    } | ({"left_out": trace.left_out} if trace.left_out else {})


def _described(source: SourceInfo) -> dict[str, Any]:
    described = {"name": source.name, "format": source.format, "notes": source.notes}
    return described | ({"fingerprint": source.fingerprint} if source.fingerprint else {})


def names_of_sources(sources: Any) -> dict[str, str]:
    """Return the names of the inputs of a trace by their fingerprints, from the `sources` that its writer states.

    It is empty for any other value, and if one of the inputs was a stream.
    """
    if not isinstance(sources, list):
        return {}
    names = [(str(one.get("fingerprint", "")), str(one.get("name", ""))) for one in sources if isinstance(one, dict)]
    return dict(names) if len(names) == len(sources) and all(key for key, _ in names) else {}


def is_output(metadata: Mapping[str, Any]) -> bool:
    """Return whether traceconv wrote a trace, from its metadata: those of Perfetto or of Chrome JSON."""
    if "traceconv.sources" in metadata:
        return True
    inside = metadata.get("metadata")
    return isinstance(inside, dict) and isinstance(about := inside.get("traceconv"), dict) and "sources" in about


def ranks_of_inputs(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the different ranks of the inputs that a trace of traceconv states, ascending."""
    inside = metadata if "traceconv.sources" in metadata else metadata.get("metadata")
    lines = inside.get("alignment") if isinstance(inside, dict) else None
    stated = {line.get("rank") for line in lines if isinstance(line, dict)} if isinstance(lines, list) else set()
    return tuple(sorted(rank for rank in stated if type(rank) is int))
