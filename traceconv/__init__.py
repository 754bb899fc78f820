"""Timelines for ui.perfetto.dev out of what machine-learning runtimes print about their own speed.

>>> import traceconv
>>> trace = traceconv.read("model.json")                                   # doctest: +SKIP
>>> traceconv.merge(["kineto.json", "onednn.log"], "out.pftrace")         # doctest: +SKIP
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # that of typing, which takes as long to import as all that comes before the command
if TYPE_CHECKING:
    from typing import Any

    from traceconv.api import Input, convert, formats, identify, merge, read, write
    from traceconv.errors import TraceconvError

__all__ = ["Input", "TraceconvError", "__version__", "convert", "formats", "identify", "merge", "read", "write"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    # Loaded on first use: `traceconv --help` must not pay for numpy and the importers.
    if name == "TraceconvError":
        from traceconv.errors import TraceconvError

        return TraceconvError
    if name in __all__:
        from traceconv import api

        return getattr(api, name)
    raise AttributeError(f"module 'traceconv' has no attribute {name!r}")
