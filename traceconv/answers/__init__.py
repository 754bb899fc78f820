"""Tables that answer questions about a timeline: what was slow, how long steps took, whether a device waited.

`docs/answers.md` defines all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from msgspec import Struct, structs

from traceconv.align.receipt import Aligned, warning_lines
from traceconv.answers.allocations import allocations, memory_steps
from traceconv.answers.attributed import stacks
from traceconv.answers.device_time import device
from traceconv.answers.device_work import kernels, work
from traceconv.answers.flops import flops
from traceconv.answers.launch_calls import launches
from traceconv.answers.layers import Costs, layers
from traceconv.answers.operations import ARG, check_key, columns_of, operations, primitives, waits
from traceconv.answers.peaks import parse_peak
from traceconv.answers.rank_waits import notes_of_merged, ranks
from traceconv.answers.run_ratios import run_ratios
from traceconv.answers.section import Column, Section, place_of
from traceconv.answers.selection import Condition, absent_args, check_between, cut, holds, parse, window_of
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.step_parts import step_kernels, step_parts
from traceconv.answers.steps import step_differences, step_pattern, steps
from traceconv.answers.summaries import STATED_TOTALS, logs, memory, overview, with_totals
from traceconv.answers.summary import KINDS, summary
from traceconv.errors import UsageError, refuse_single_texts
from traceconv.io import progress
from traceconv.io.shown import quantity
from traceconv.model.diagnostics import FILES, Code, Diagnostic, ProblemKind, Severity
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace


class Questions(Struct, frozen=True):
    """The questions of a report.

    Attributes:
        sections: the names of sections, or of their tables; empty for all.
        by: the keys that operations are grouped by.
        step_name: a pattern of the whole names of steps; "" for the steps that formats declare.
        sort: the column that operations and tables of sums are sorted by, and layers if `sections` names them; "" for
            the default.
        where: a condition for the slices that are counted; "" for all.
        between: the window of time, by names or times; "" for all of it.
        stacks: the layer whose call tree is added; "" for none.
        peak: what the device can do at most, as "TFLOPS,GBPS", or its name such as "H100-SXM"; "" if not known.
    """

    sections: Sequence[str] = ()
    by: Sequence[str] = ("name",)
    step_name: str = ""
    sort: str = ""
    where: str = ""
    between: str = ""
    stacks: str = ""
    peak: str = ""

    def check(self) -> None:
        """Raise UsageError if a section, key or column is not known, or a pattern, condition or time cannot be read.

        Also if a text is given instead of a list.
        """
        refuse_single_texts(sections=self.sections, by=self.by)
        for name in self.sections:
            if name not in _SECTIONS and name not in SECTION_OF:
                raise UsageError(
                    f"there is no section {name!r}", hint=f"sections: {', '.join((*SECTIONS, *SECTION_OF))}"
                )
        for key in self.by:
            check_key(key)
        if self.sort and not self.to_sort:
            raise UsageError("--sort: none of these sections is sorted by a column", hint="operations and layers are")
        if self.sort and "layers" not in self.to_sort:  # whose columns are known when the inputs are read
            _tables_with(self.sort, {"operations": columns_of(self.by), "stated_totals": STATED_TOTALS})
        if self.where:
            parse(self.where)
        check_between(self.between)
        parse_peak(self.peak)
        step_pattern(self.step_name)

    @property
    def wanted(self) -> list[str]:
        """The sections to show, in the order of SECTIONS."""
        named = {SECTION_OF.get(name, name) for name in self.sections}
        return [name for name in SECTIONS if name in named or not named]

    @property
    def to_sort(self) -> list[str]:
        """The sections that `sort` applies to."""
        return [name for name in self.wanted if name == "operations" or (name == "layers" and self.sections)]


def _tables_with(sort: str, tables: Mapping[str, Sequence[Column]]) -> list[str]:
    """Return the names of the tables that have a column of this name or title. Raises UsageError if none has."""
    having = [name for name, columns in tables.items() if place_of(sort, columns) is not None]
    if not having:
        known = [f"{name}: {', '.join(column.name for column in columns)}" for name, columns in tables.items()]
        raise UsageError(f"--sort: there is no column {sort!r}", hint=f"columns of {'; '.join(known)}")
    return having


class _About(Struct, frozen=True, dict=True):
    """What sections are about: the slices that a condition leaves, all of them, the alignment, and the questions."""

    table: SliceTable
    whole: SliceTable
    aligned: Aligned
    asked: Questions
    condition: Condition | None
    made: dict[str, list[Section]] = {}

    def tables(self, section: str) -> list[Section]:
        """Return the tables of a section; those of the summary are made once."""
        if section not in self.made:
            self.made[section] = _SECTIONS[section](self)
        return self.made[section]

    @cached_property
    def costs(self) -> Costs:
        """Return the layers in the window, of all slices."""
        window = self.table.window
        return Costs(self.table if window is None else cut(self.table, window), self.asked.by)


_SECTIONS: dict[str, Callable[[_About], list[Section]]] = {
    "summary": lambda on: _summary(on),
    "device": lambda on: device(on.table),
    "kernels": lambda on: [kernels(on.table)],
    "operations": lambda on: with_totals(
        operations(on.table, on.asked.by, on.asked.sort), on.table, on.asked.sort, on.asked.by
    ),
    "flops": lambda on: [flops(on.table, parse_peak(on.asked.peak))],
    "launches": lambda on: [launches(on.table)],
    "steps": lambda on: [
        *steps(on.table),
        *(part for part in (step_parts(on.table), step_differences(on.table), step_kernels(on.table)) if part.rows),
    ],
    "waits": lambda on: [waits(on.table)],
    "ranks": lambda on: ranks(on.table, on.aligned),
    "layers": lambda on: [
        layers(on.costs, on.asked.sort if "layers" in on.asked.to_sort else ""),
        *(part for part in (run_ratios(on.costs),) if part.rows or part.notes),
    ],
    "memory": lambda on: [
        memory(on.table),
        *(part for part in (allocations(on.table, on.asked.by), memory_steps(on.table)) if part.rows),
    ],
    "primitives": lambda on: [primitives(on.table)],
    "logs": lambda on: [logs(on.table)],
    "overview": lambda on: [overview(on.table.trace, on.aligned.receipt)],
}
SECTIONS = tuple(_SECTIONS)
#: The order of the questions if no work of a device was recorded.
_ON_HOSTS = tuple(
    sorted(SECTIONS, key=(*("summary", "steps", "operations", "layers", "primitives", "waits"), *SECTIONS).index)
)
#: The sections of the tables that have other names: asking for one of these tables asks for its section.
SECTION_OF = {
    "unanswered": "summary",
    "stated_totals": "operations",
    "step_times": "steps",
    "step_parts": "steps",
    "step_differences": "steps",
    "step_kernels": "steps",
    "host_late": "device",
    "run_ratios": "layers",
    "late_causes": "ranks",
    "allocations": "memory",
    "memory_steps": "memory",
    "collectives": "ranks",
    "hosts": "ranks",
}
#: The sections whose slices a condition can select, and those that ignore a window of time.
_OF_STEPS = ("steps", "step_times", "step_parts", "step_differences", "step_kernels")
_OF_CHOSEN = ("operations", *_OF_STEPS, "waits", "primitives", "flops")
_OF_ALL_TIMES = ("overview", "hosts")
#: The tables that `by` groups.
_GROUPED = ("operations", "stated_totals", "layers", "allocations")
#: The sections that the summary is made of.
_SUMMARISED = ("device", "kernels", "operations", "steps", "waits", "ranks")


def _summary(about: _About) -> list[Section]:
    """Return the summary of all that was recorded in the window, whatever the other options choose."""
    asked = Questions()
    grouped = ("operations",) if tuple(about.asked.by) != ("name",) or about.asked.sort else ()
    others = grouped if about.condition is None else _OF_CHOSEN
    of_inputs = [] if about.table.window else about.tables("overview")  # which is about the whole recording
    if others:
        made = {name: about.tables(name) for name in _SUMMARISED if name not in others}
        about = structs.replace(about, table=about.whole, asked=asked, condition=None, made=made)
    sections = [section for name in _SUMMARISED for section in about.tables(name)]
    if not any(section.rows for section in sections):  # samples and counts only
        sections += about.tables("layers")
    sections += of_inputs + [replace(operations(about.table, (by,)), name=KINDS) for by in _kinds(about.table)]
    window, origin = about.table.window, about.table.start
    start, end = (window.start, window.end) if window else about.table.trace.span() or (origin, origin)
    return summary(sections, start - origin, end - origin, "window" if window else "recording")


def _kinds(table: SliceTable) -> list[str]:
    """Return the key of the kinds of operations, such as Conv, whose names are those of instances, as of layers."""
    flops = [marks for source in table.trace.sources for marks in source.marks.flops]
    return [f"{ARG}{marks.calls[0]}" for marks in flops[:1] if marks.calls]


class _Report(Struct, frozen=True):
    """The sections of a report, and what is needed to say which options did not apply to them."""

    about: _About
    sections: list[Section]
    sorted: list[str]
    to_sort: list[str]
    empty: list[str]


def _order_kept(report: _Report, section: Section) -> Iterator[str]:
    if section.name in report.to_sort and section.rows and section.name not in report.sorted:
        having = " and ".join(report.sorted)
        yield f"--sort: only {having} has the column {report.about.asked.sort}: the order is as without it"


def _left_empty(report: _Report, section: Section) -> Iterator[str]:
    if section is report.sections[0] and report.empty and not report.about.asked.sections:
        yield f"nothing to show in {', '.join(report.empty)}: `traceconv report --section NAME` says why"
        yield from notes_of_merged(report.about.table.trace.sources) if "ranks" in report.empty else []


def _not_grouped(report: _Report, section: Section) -> Iterator[str]:
    asked = report.about.asked
    if asked.sections and tuple(asked.by) != ("name",) and section.name not in _GROUPED:
        yield "--by does not apply to this section: it groups operations, allocations and layers"


def _losses_and_warnings(report: _Report, section: Section) -> Iterator[str]:
    if section is report.sections[0]:
        yield from report.about.table.trace.losses()
        yield from warning_lines(report.about.aligned.receipt)


def _chosen(report: _Report, section: Section) -> Iterator[str]:
    table, condition = report.about.table, report.about.condition
    if condition is None:
        return
    if section is report.sections[0]:
        yield from (f"--where: no slice here has {name}" for name in absent_args(table, condition))
    if section.name in _OF_CHOSEN:
        yield f"--where leaves {len(table.counted)} of {len(table.recorded)} slices: {report.about.asked.where}"
    else:
        yield "--where does not apply to this section: it is about all that was recorded"


def _windowed(report: _Report, section: Section) -> Iterator[str]:
    if report.about.table.window is not None and section.name in _OF_ALL_TIMES:
        yield "--between does not apply to this section: it is about all that was recorded"


#: What is usual and needs no action: it is in legends, not in notes.
_USUAL = (ProblemKind.ABSENT, ProblemKind.SKIPPED)


def _repairs(report: _Report, section: Section, *, usual: bool) -> Iterator[str]:
    """Yield what was repaired or absent in reading, for the last section that text shows: the usual, or the rest."""
    with_rows = [section for section in report.sections if section.rows]
    if section is (with_rows or report.sections)[-1]:
        found: dict[Code, list[tuple[SourceInfo, Diagnostic]]] = {}
        for source in report.about.table.trace.sources:
            for entry in source.diagnostics:
                code = entry.code
                told = code.severity > Severity.INFO and code.kind is not ProblemKind.LOST and not code.unmeasured
                if told and (code.kind in _USUAL) is usual:
                    found.setdefault(code, []).append((source, entry))
        for code, entries in found.items():
            (source, entry), count = entries[0], sum(entry.count for _, entry in entries)
            said = entry if len(entries) == 1 else Diagnostic(code, count)
            yield f"{source.name if len(entries) == 1 else quantity(len(entries), FILES)}: {said.message(source.name)}"


#: The notes on a section, in this order.
_NOTES: tuple[Callable[[_Report, Section], Iterator[str]], ...] = (
    _order_kept,
    _not_grouped,
    _left_empty,
    _losses_and_warnings,
    _chosen,
    _windowed,
)


def answers(trace: Trace, aligned: Aligned, questions: Questions) -> list[Section]:
    """Return the tables of the requested sections, in the order of SECTIONS; without device work steps come first.

    If all are requested, the overview names those without rows. The first table names what was lost in reading the
    inputs or never measured, and the warnings of the alignment; the last one with rows names what was repaired, and in
    its legend what was absent or left out by design, which is usual.

    Args:
        trace: a trace on one clock, as `merge` returns it.
        aligned: the alignment of its inputs, and the collectives of their ranks.
        questions: the questions.

    Raises:
        UsageError: a section, key, layer or window does not exist, or a pattern or condition is invalid.
        InputError: the durations of all slices add up to more than 292 years.
    """
    questions.check()
    window = window_of(SliceTable(trace), questions.between) if questions.between else None
    condition = parse(questions.where) if questions.where else None
    whole = SliceTable(trace, window=window, step_name=questions.step_name)
    whole.check_sums()
    table = whole.choosing(partial(holds, condition=condition)) if condition else whole
    about = _About(table, whole, aligned, questions, condition)
    by_name: dict[str, list[Section]] = {}
    in_order = SECTIONS if len(work(table).rows) else _ON_HOSTS
    for name in sorted(questions.wanted, key=in_order.index):
        progress.set_stage(f"section {name}")
        by_name[name] = about.tables(name)
    to_sort = (
        {section.name: section for name in questions.to_sort for section in by_name[name]} if questions.sort else {}
    )
    having = (
        _tables_with(questions.sort, {name: section.columns for name, section in to_sort.items()}) if to_sort else []
    )
    sections = [section for sections in by_name.values() for section in sections]
    empty = [name for name, answer in by_name.items() if not any(section.rows for section in answer)]
    if questions.stacks:
        sections.append(stacks(about.costs, questions.stacks))
    report = _Report(about, sections, having, list(to_sort), empty)
    for section in sections:
        section.notes += [words for note in _NOTES for words in note(report, section)]
        section.notes += _repairs(report, section, usual=False)
        section.legend += _repairs(report, section, usual=True)
        section.window = None if section.name in _OF_ALL_TIMES else window
    return sections
