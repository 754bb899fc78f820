"""The metadata of the trace that all writers write."""

from __future__ import annotations

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
