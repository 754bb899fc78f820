"""Tables that answer questions about a timeline: what was slow, how long steps took, whether a device waited.

`docs/answers.md` defines all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from traceconv.align.receipt import Aligned, warned
from traceconv.answers.attributed import stacks
from traceconv.answers.devices import DISPATCH_LIMIT, device
from traceconv.answers.layers import Costs, layers
from traceconv.answers.operations import check_key, columns_of, operations, primitives, step_pattern, steps
from traceconv.answers.ranks import notes_of_merged, ranks
from traceconv.answers.section import Column, Section, place_of
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.summaries import COLUMNS, logs, memory, overview, with_totals
from traceconv.answers.where import absent_args, holds, parse
from traceconv.answers.windows import check_between, window_of
from traceconv.errors import UsageError, refuse_single_texts
from traceconv.io import progress
from traceconv.model.diagnostics import ProblemKind, Severity
from traceconv.model.numbers import format_short
from traceconv.model.trace import Trace


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a report.

    Attributes:
        sections: the names of sections, or of their tables; empty for all.
        by: the keys that operations are grouped by.
        step_name: a pattern of the whole names of steps; "" for the steps that formats declare.
        dispatch_limit: work that starts within this time after its launch call counts as dispatched at once, ns.
        sort: the column that operations and tables of sums are sorted by, and layers if `sections` names them; "" for
            the default.
        where: a condition for the slices that are counted; "" for all.
        between: the window of time, by names or times; "" for all of it.
        stacks: the layer whose call tree is added; "" for none.
    """

    sections: Sequence[str] = ()
    by: Sequence[str] = ("name",)
    step_name: str = ""
    dispatch_limit: int = DISPATCH_LIMIT
    sort: str = ""
    where: str = ""
    between: str = ""
    stacks: str = ""

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
            _tables_with(self.sort, {"operations": columns_of(self.by), "stated_totals": COLUMNS})
        if self.where:
            parse(self.where)
        check_between(self.between)
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
        known = [", ".join(one.name for one in columns) for columns in tables.values()]
        of = "; ".join(f"{name}: {columns}" for name, columns in zip(tables, known, strict=True))
        raise UsageError(f"--sort: there is no column {sort!r}", hint=f"columns of {of}")
    return having


@dataclass(frozen=True)
class _About:
    """What sections are about: the slices and the alignment of the inputs, and the questions."""

    table: SliceTable
    aligned: Aligned
    asked: Questions

    @cached_property
    def costs(self) -> Costs:
        """Return the layers in the window."""
        return Costs(_of_window(self.table), self.asked.by)


_SECTIONS: dict[str, Callable[[_About], list[Section]]] = {
    "overview": lambda on: [overview(on.table.trace, on.aligned.receipt)],
    "operations": lambda on: with_totals(
        operations(on.table, on.asked.by, on.asked.sort), on.table, on.asked.sort, on.asked.by
    ),
    "steps": lambda on: steps(on.table, on.asked.step_name),
    "device": lambda on: device(on.table, on.asked.dispatch_limit, on.asked.step_name),
    "ranks": lambda on: ranks(on.table, on.aligned, on.asked.step_name),
    "memory": lambda on: [memory(on.table)],
    "logs": lambda on: [logs(on.table)],
    "primitives": lambda on: [primitives(on.table)],
    "layers": lambda on: [layers(on.costs, on.asked.sort if "layers" in on.asked.to_sort else "")],
}
SECTIONS = tuple(_SECTIONS)
#: The sections of the tables that have other names: asking for one of these tables asks for its section.
SECTION_OF = {
    "stated_totals": "operations",
    "step_times": "steps",
    "host_late": "device",
    "collectives": "ranks",
    "hosts": "ranks",
}
#: The sections whose slices a condition can select, and those that ignore a window of time.
_OF_CHOSEN = ("operations", "steps", "step_times", "primitives")
_OF_ALL_TIMES = ("overview", "hosts")


def _of_window(table: SliceTable) -> SliceTable:
    """Return the part of a table in its window, of all slices."""
    if table.window is None:
        return table
    from traceconv.answers.windows import cut

    return cut(table, table.window)


def _repairs(trace: Trace) -> list[str]:
    """Return what was repaired or absent in reading, a line for each input and kind."""
    return [
        f"{source.name}: {entry.message(source.name)}"
        for source in trace.sources
        for entry in source.diagnostics
        if entry.code.severity > Severity.INFO and entry.code.kind is not ProblemKind.LOST
    ]


def answers(trace: Trace, aligned: Aligned, questions: Questions) -> list[Section]:
    """Return the tables of the requested sections, in the order of SECTIONS.

    If all are requested, the overview names those without rows. The first table names what was lost in reading the
    inputs, and the warnings of the alignment; the last one with rows names what was repaired or absent, which is usual.

    Args:
        trace: a trace on one clock, as `merge` returns it.
        aligned: the alignment of its inputs, and the collectives of their ranks.
        questions: the questions.

    Raises:
        UsageError: a section, key, layer or window does not exist, or a pattern or condition is invalid.
    """
    questions.check()
    window = window_of(SliceTable(trace), questions.between) if questions.between else None
    if not questions.where:
        table = SliceTable(trace, None, window)
    else:
        condition = parse(questions.where)
        table = SliceTable(trace, lambda of: holds(of, condition), window)
    on = _About(table, aligned, questions)
    by_name: dict[str, list[Section]] = {}
    for name, answer in _SECTIONS.items():
        if name in questions.wanted:
            progress.set_stage(f"section {name}")
            by_name[name] = answer(on)
    result = [section for sections in by_name.values() for section in sections]
    if questions.sort:
        tables = {section.name: section for name in questions.to_sort for section in by_name[name]}
        having = _tables_with(questions.sort, {name: section.columns for name, section in tables.items()})
        for name, section in tables.items():
            if section.rows and name not in having:
                section.notes.append(
                    f"--sort: only {' and '.join(having)} has the column {questions.sort}: the order is as without it"
                )
    empty = [name for name, sections in by_name.items() if not any(section.rows for section in sections)]
    if empty and not questions.sections:
        result[0].notes.append(f"nothing to show in {', '.join(empty)}: `traceconv report --section NAME` says why")
        result[0].notes += notes_of_merged(trace.sources) if "ranks" in empty else []
    result[0].notes += trace.losses()
    result[0].notes += ["; ".join(filter(None, both)) for both in warned(aligned.receipt)]
    if questions.where:
        result[0].notes += [f"--where: no slice here has {name}" for name in absent_args(table, condition)]
    result += [stacks(on.costs, questions.stacks)] if questions.stacks else []
    for section in result if questions.where else ():
        section.notes.append(
            f"--where leaves {len(table.counted)} of {len(table.recorded)} slices: {questions.where}"
            if section.name in _OF_CHOSEN
            else "--where does not apply to this section: it is about all that was recorded"
        )
    span = trace.span()
    if window and span and (window.start > span[1] or window.end <= span[0]):
        result[0].notes.append(
            f"nothing was recorded in the window: the recording lasts {format_short(span[1] - span[0])}"
        )
    for section in result if window else ():
        if section.name in _OF_ALL_TIMES:
            section.notes.append("--between does not apply to this section: it is about all that was recorded")
        else:
            section.window = window
    with_rows = [section for section in result if section.rows]  # text leaves out the others
    (with_rows or result)[-1].notes += _repairs(trace)
    return result
