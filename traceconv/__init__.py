"""Timelines for ui.perfetto.dev out of what machine-learning runtimes print about their own speed.

>>> import traceconv
>>> trace = traceconv.read("model.json")                                   # doctest: +SKIP
>>> traceconv.merge(["kineto.json", "onednn.log"], "out.pftrace")         # doctest: +SKIP

`Input` and `Output` say more of a file than its path, `Constraints` and `Policy` what the command line says of clocks.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # that of typing, which takes as long to import as all that comes before the command
if TYPE_CHECKING:
    from typing import Any

    from traceconv.align import Alignment, Policy, ReceiptLine
    from traceconv.align.checks import Causality
    from traceconv.align.clock_overview import Survey
    from traceconv.align.constraint_parser import Constraints, parse_constraints
    from traceconv.align.identity import Together
    from traceconv.align.names import NameMap
    from traceconv.answers import Questions
    from traceconv.answers.frames import Frame, Frames
    from traceconv.answers.section import Section
    from traceconv.api import (
        Output,
        Result,
        clocks,
        convert,
        estimate,
        export,
        formats,
        frames,
        identify,
        merge,
        read,
        report,
        write,
    )

    # fmt: off
    from traceconv.errors import (
        AlignmentError,
        AmbiguousAlignment,
        AmbiguousFormat,
        ImporterFailed,
        InconsistentClocks,
        InputError,
        LostData,
        MalformedInput,
        NothingRead,
        OutputError,
        SeveralErrors,
        TraceconvError,
        UnrecognizedFormat,
        UnrelatedClocks,
        UnverifiedAlignment,
        UsageError,
    )

    # fmt: on
    from traceconv.expanding import Expanded, expand
    from traceconv.families.registry import Importer
    from traceconv.inputs import Input
    from traceconv.io.limits import Limits
    from traceconv.model.trace import Trace

# fmt: off
__all__ = [
    "Alignment", "AlignmentError", "AmbiguousAlignment", "AmbiguousFormat", "Causality", "Constraints", "Expanded",
    "Frame", "Frames", "Importer", "ImporterFailed", "InconsistentClocks", "Input", "InputError", "Limits", "LostData",
    "MalformedInput", "NameMap", "NothingRead", "Output", "OutputError", "Policy", "Questions", "ReceiptLine",
    "Result", "Section", "SeveralErrors", "Survey", "Together", "Trace", "TraceconvError", "UnrecognizedFormat",
    "UnrelatedClocks", "UnverifiedAlignment", "UsageError", "__version__", "clocks", "convert", "estimate",
    "expand", "export", "formats", "frames", "identify", "merge", "parse_constraints", "read", "report", "write",
]
# fmt: on

#: Where the names are looked for, from the module that takes least to load.
_HOMES = (
    "errors",
    "api",
    "inputs",
    "expanding",
    "align.constraint_parser",
    "align.names",
    "answers",
    "answers.frames",
    "align.clock_overview",
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


#: Names that were documented before, for one version more.
_OLD_NAMES = {"Facts": "Constraints", "parse_facts": "parse_constraints"}


def __getattr__(name: str) -> Any:
    if name in _OLD_NAMES:
        import warnings

        warnings.warn(f"traceconv.{name} is now {_OLD_NAMES[name]}", DeprecationWarning, stacklevel=2)
        return __getattr__(_OLD_NAMES[name])
    # Loaded on first use: `traceconv --help` must not pay for numpy and the importers.
    if name in __all__:
        from importlib import import_module

        for home in _HOMES:
            module = import_module(f"traceconv.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'traceconv' has no attribute {name!r}")
