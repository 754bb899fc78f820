"""What a writer says about the trace as a whole."""

from __future__ import annotations

from typing import Any

from traceconv import __version__
from traceconv.model.trace import Trace


def recording_metadata(trace: Trace) -> dict[str, Any]:
    """Return the tool, the clock, the inputs with their notes, what was left out; `Trace.metadata` stands beside it."""
    return {
        "version": __version__,
        "clock": trace.clocks[0].describe() if trace.clocks else "",
        "sources": [{"name": s.name, "format": s.format, "notes": s.notes} for s in trace.sources],
    } | ({"left_out": trace.left_out} if trace.left_out else {})
