"""The metadata of the trace that all writers write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceconv import __version__
from traceconv.model.trace import Trace


def recording_metadata(trace: Trace) -> dict[str, Any]:
    """Return the tool, the clock, the inputs with notes, and the files left out, without `Trace.metadata`."""
    return {
        "version": __version__,
        "clock": trace.clocks[0].describe() if trace.clocks else "",
        "sources": [{"name": s.name, "format": s.format, "notes": s.notes} for s in trace.sources],
    } | ({"left_out": trace.left_out} if trace.left_out else {})


def stated_sources(metadata: Mapping[str, Any]) -> list[str]:
    """Return the names of the inputs of a trace that traceconv wrote, by its metadata as read again; [] for others."""
    sources = metadata.get("traceconv.sources")
    for name in ("metadata", "traceconv"):  # of Chrome JSON
        metadata = inside if isinstance(inside := metadata.get(name), dict) else {}
    sources = metadata.get("sources") if sources is None else sources
    if not isinstance(sources, list):
        return []
    return [str(source["name"]) for source in sources if isinstance(source, dict) and "name" in source]
