"""Convert and merge the recordings of machine-learning runtimes into timelines for ui.perfetto.dev.

>>> import traceconv
>>> trace = traceconv.read("model.json")                                   # doctest: +SKIP
>>> traceconv.merge(["kineto.json", "onednn.log"], "out.pftrace")         # doctest: +SKIP

Pass an `Input` or `Output` instead of a path to state a format, options or an offset. `Constraints` and `Policy` hold
the options of the command line about clocks and alignment.
"""

from __future__ import annotations

__version__ = "0.2.0"

TYPE_CHECKING = False  # that of typing, which takes as long to import as all that comes before the command
if TYPE_CHECKING:
    from typing import Any

    from traceconv.align import Alignment, Policy, ReceiptLine
    from traceconv.align.checks import Causality, Check
    from traceconv.align.clock_overview import ClockLine, PairLine, Survey
    from traceconv.align.collective_matching import Matched
    from traceconv.align.constraints import (
        Anchor,
        ClockConstraint,
        ClockKind,
        Constraints,
        EventPoint,
        NameMap,
        TimePoint,
        parse_constraints,
    )
    from traceconv.align.devices import DeviceBound
    from traceconv.align.domains import Machine
    from traceconv.align.duration_layout import Placement
    from traceconv.align.estimate import PairEstimate
    from traceconv.align.identity import Identity, Together
    from traceconv.align.inputs import HostsApart
    from traceconv.answers import Questions
    from traceconv.answers.frames import Frame, Frames
    from traceconv.answers.picture import Picture
    from traceconv.answers.section import Activity, Column, Report, Section, Window
    from traceconv.answers.weighted_stacks import Stacks, WeightedStack
    from traceconv.api import (
        Identified,
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
        query,
        read,
        report,
        stacks,
        write,
    )
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
        UnrecognizedInput,
        UnrelatedClocks,
        UnverifiedAlignment,
        UsageError,
    )
    from traceconv.families.importer import Importer, Match
    from traceconv.io.limits import Limits
    from traceconv.io.source import Head, Source
    from traceconv.model.args import Args
    from traceconv.model.builder import Builder
    from traceconv.model.clocks import ClockDomain, ClockMap, ClockSnapshot, Verdict
    from traceconv.model.source_info import SourceInfo
    from traceconv.model.stated_collectives import Collectives
    from traceconv.model.trace import Counters, Flows, Instants, Level, Logs, Samples, Slices, Trace
    from traceconv.model.track_table import Track, TrackKind, Tracks
    from traceconv.opening import open as open
    from traceconv.reading import Expanded, Recording, expand
    from traceconv.recordings import Input, MergeArguments

# fmt: off
__all__ = [
    "Activity", "Alignment", "AlignmentError", "AmbiguousAlignment", "AmbiguousFormat", "Anchor", "Args", "Builder",
    "Causality", "Check", "ClockConstraint", "ClockDomain", "ClockKind", "ClockLine", "ClockMap", "ClockSnapshot",
    "Collectives", "Column", "Constraints", "Counters", "DeviceBound", "EventPoint", "Expanded", "Flows", "Frame",
    "Frames", "Head", "HostsApart", "Identified", "Identity", "Importer", "ImporterFailed", "InconsistentClocks",
    "Input", "InputError", "Instants", "Level", "Limits", "Logs", "LostData", "Machine", "MalformedInput", "Match",
    "Matched", "MergeArguments", "NameMap", "NothingRead", "Output", "OutputError", "PairEstimate", "PairLine",
    "Picture", "Placement", "Policy", "Questions", "ReceiptLine", "Recording", "Report", "Result", "Samples", "Section",
    "SeveralErrors", "Slices", "Source", "SourceInfo", "Stacks", "Survey", "TimePoint", "Together", "Trace",
    "TraceconvError", "Track", "TrackKind", "Tracks", "UnrecognizedFormat", "UnrecognizedInput", "UnrelatedClocks",
    "UnverifiedAlignment", "UsageError", "Verdict", "WeightedStack", "Window", "__version__", "clocks", "convert",
    "estimate", "expand", "export", "formats", "frames", "identify", "merge", "parse_constraints", "query", "read",
    "report", "stacks", "write",
]
# fmt: on
#: Public, too, but `from traceconv import *` does not replace a function of Python by it.
_OPEN = "open"

#: The modules that define these names, the one that loads fastest first.
_HOMES = (
    "errors",
    "api",
    "recordings",
    "reading",
    "align.constraints",
    "model.clocks",
    "io.source",
    "align.checks",
    "align.collective_matching",
    "align.devices",
    "align.duration_layout",
    "align.identity",
    "align.inputs",
    "align.domains",
    "answers",
    "answers.frames",
    "answers.picture",
    "answers.section",
    "answers.weighted_stacks",
    "align.clock_overview",
    "families.importer",
    "model.args",
    "model.builder",
    "model.stated_collectives",
    "model.trace",
    "align.estimate",
    "model.source_info",
    "model.track_table",
    "opening",
)


def __dir__() -> list[str]:
    # Without the submodules, which may change, and what this one needs itself.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, _OPEN})


def __getattr__(name: str) -> Any:
    # Loaded on first use: `traceconv --help` must not pay for numpy and the importers.
    if name in (*__all__, _OPEN):
        from importlib import import_module

        for home in _HOMES:
            module = import_module(f"traceconv.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'traceconv' has no attribute {name!r}")
