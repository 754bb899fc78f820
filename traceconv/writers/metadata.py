"""The metadata of the trace that all writers write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceconv import __version__
from traceconv.model.trace import SourceInfo, Trace


def recording_metadata(trace: Trace) -> dict[str, Any]:
    """Return the tool, the clock, the inputs with notes, and the files left out, without `Trace.metadata`."""
    return {
        "version": __version__,
        "clock": trace.clocks[0].describe() if trace.clocks else "",
        "sources": [_described(source) for source in trace.sources],
    } | ({"left_out": trace.left_out} if trace.left_out else {})


def _described(source: SourceInfo) -> dict[str, Any]:
    found = {"name": source.name, "format": source.format, "notes": source.notes}
    return found | ({"fingerprint": source.fingerprint} if source.fingerprint else {})


def stated_sources(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the inputs of a trace that traceconv wrote, by their fingerprints, from its metadata.

    It is empty for other traces, and if one of the inputs was a stream.
    """
    sources = metadata.get("traceconv.sources")
    for name in ("metadata", "traceconv"):  # of Chrome JSON
        metadata = inside if isinstance(inside := metadata.get(name), dict) else {}
    sources = metadata.get("sources") if sources is None else sources
    if not isinstance(sources, list):
        return {}
    found = [(str(one.get("fingerprint", "")), str(one.get("name", ""))) for one in sources if isinstance(one, dict)]
    return dict(found) if len(found) == len(sources) and all(key for key, _ in found) else {}
