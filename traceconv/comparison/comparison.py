"""Compare runs before and after a change: rows with exact differences, and verdicts that rest on several runs a side.

The statistics follow `rank_tests`; `docs/comparison.md` defines the columns.
"""

from __future__ import annotations

import enum
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from traceconv.answers.section import Cell, Column, Finding, Section, Unit, Unnamed, shown_cell, without
from traceconv.answers.summary import SUMMARY
from traceconv.comparison.environment import differences
from traceconv.comparison.rank_tests import LEVEL, Shift, adjusted, found_change, runs_to_find, shift, u_test
from traceconv.comparison.run_values import MEASURES, OF_PROCESSES, Key, Part, Values
from traceconv.errors import UsageError
from traceconv.io.shown import Counted, one_line, quantity
from traceconv.model.numbers import format_short

RUNS = Counted("run", "runs")
_OTHERS = Counted("other property", "other properties")
#: The smallest relative change that is called one.
MIN_CHANGE = 0.02
#: A change below this share of the step is none; one of so few steps of the clock cannot be told.
LEAST_OF_STEP, LEAST_TICKS = 0.0001, 3
#: The change that too few runs are measured by, unless the user asks for larger ones.
_USUAL_CHANGE = 0.05
#: Calls per step that differ by less are the same: not all steps do everything.
_SAME_CALLS = 0.01
#: The line of a Python function in a name: "module.py(1743): forward".
_LINE = re.compile(r"\([0-9]+\): ")
MOST_NAMED = 3
LONGEST_NAME = 60


class Verdict(enum.Enum):
    """What is known of a change."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    UNCLEAR = "unclear"
    UNKNOWN = "unknown"


class State(enum.Enum):
    """How a row of one side belongs to the other side."""

    MATCHED = ""
    CALLS = "other calls"
    PLACE = "same place"
    BEFORE = "only before"
    AFTER = "only after"


class Run(Struct, frozen=True):
    """A run.

    Attributes:
        name: its name.
        values: its values by measure.
        resolution_ns: the largest step of its clocks, ns.
        environment: how it was recorded: the properties of its host, devices, tools, by name.
        span_ns: when it began and ended, ns since 1970; None if not known.
        part: what of it the values are of.
        again: returns the values of a coarser part.
        notes: what of the options does not apply to it, and what was lost in reading.
        content: marks of its files, by which copies are known; () if it has no such mark.
        ranks: the ranks of its recordings, each with the number of ranks of its job; without those that state neither.
    """

    name: str
    values: Mapping[str, Values]
    resolution_ns: int = 1
    environment: Mapping[str, str] = {}
    span_ns: tuple[int, int] | None = None
    part: Part = Part.LATER
    again: Callable[[Part], Mapping[str, Values]] = lambda _: {}
    notes: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    ranks: frozenset[tuple[int, int]] = frozenset()


class Row(Struct, frozen=True):
    """One row of a comparison.

    Attributes:
        key: the texts of its keys.
        state: how it belongs to the other side.
        values: the time per step of each run, ns, before and after; () on a side that does not have it. It is the
            median over the steps; the mean, where that is next to nothing on a side.
        run_means: the mean time per step of each run, ns, as `values`.
        means: the mean time per step of each side, ns.
        calls: the calls per step of each side: the median over its runs.
    """

    key: Key
    state: State
    values: tuple[tuple[int, ...], tuple[int, ...]]
    run_means: tuple[tuple[int, ...], tuple[int, ...]]
    means: tuple[Fraction, Fraction]
    calls: tuple[float, float]


class Judged(Struct, frozen=True):
    """A row with its verdict."""

    row: Row
    verdict: Verdict
    shift: Shift | None = None
    p: float | None = None
    p_adjusted: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times as long it takes after the change; None if one side has no time."""
        if self.shift is not None:
            return self.shift.ratio
        before, after = (_middle(values) if values else 0.0 for values in self.row.values)
        return after / before if before and after else None


class Table(Struct):
    """The rows of a measure; their exact differences add up to that of `total`."""

    measure: str
    by: Sequence[str]
    total: Row
    rows: list[Row]
    spread: float
    judged: list[Judged] = []


# -- Rows: match the keys of both sides ------------------------------------------------------------------------------


def table_of(measure: str, by: Sequence[str], sides: tuple[Sequence[Values], Sequence[Values]]) -> Table:
    """Return the rows of a measure that all runs of both sides have.

    Keys are matched by their texts, then without the numbers of lines of Python functions, then by their place: those
    left that are usually in the same key of both sides are one row.
    """
    keys = by if measure in _BY_KEYS else ("name",)
    keyed = [[_by_key(values) for values in runs] for runs in sides]
    known = [dict.fromkeys(key for run in runs for key in run) for runs in keyed]
    rows = [_row(State.MATCHED, key, ([key], [key]), keyed) for key in known[0] if key in known[1]]
    alone = [[key for key in known[side] if key not in known[1 - side]] for side in (0, 1)]
    moved = dict(_moved(*alone))
    rows += [_row(State.MATCHED, new, ([old], [new]), keyed) for old, new in moved.items()]
    matched = moved.keys(), set(moved.values())
    around = [{moved.get(key, key) for run in runs for spent in run.values() for key in spent.path} for runs in keyed]
    places: dict[Key | None, tuple[list[Key], list[Key]]] = {}
    for side in (0, 1):
        for key in alone[side]:
            if key not in matched[side]:
                places.setdefault(_place(key, keyed[side], around[0] & around[1], moved), ([], []))[side].append(key)
    for place, (before, after) in places.items():
        if place is not None and before and after:
            rows.append(_row(State.PLACE, _replaced(place, before, after, by, keys), (before, after), keyed))
            continue
        rows += [_row(State.BEFORE, key, ([key], []), keyed) for key in before]
        rows += [_row(State.AFTER, key, ([], [key]), keyed) for key in after]
    medians = [[run.median for run in runs] for runs in sides]
    total = _of_sides(("",), State.MATCHED, medians, [[run.mean for run in runs] for runs in sides], (1.0, 1.0))
    rows.sort(key=lambda row: row.key)
    spread = max(run.spread for runs in sides for run in runs)
    return Table(measure, keys, total, rows, spread)


class _Spent(Struct, frozen=True):
    """What a run spent on a key."""

    total: int
    median: int
    calls: int
    steps: int
    path: tuple[Key, ...]
    steps_of_key: int


def _by_key(values: Values) -> dict[Key, _Spent]:
    columns = values.keys, values.sums, values.medians, values.calls, values.paths, values.steps_of_keys
    return {
        key: _Spent(total, median, calls, values.steps, path, steps)
        for key, total, median, calls, path, steps in zip(*columns, strict=True)
    }


def _moved(before: Sequence[Key], after: Sequence[Key]) -> Iterator[tuple[Key, Key]]:
    """Yield the pairs of keys that differ in the numbers of lines of Python alone, and are the only ones that do."""
    by_text: dict[Key, tuple[list[Key], list[Key]]] = {}
    for side, keys in enumerate((before, after)):
        for key in keys:
            by_text.setdefault(tuple(_LINE.sub(": ", text) for text in key), ([], []))[side].append(key)
    yield from ((old[0], new[0]) for old, new in by_text.values() if len(old) == len(new) == 1)


def _place(key: Key, runs: Sequence[Mapping[Key, _Spent]], around: Set[Key], moved: Mapping[Key, Key]) -> Key | None:
    """Return the innermost of some keys around a key, None without one; `moved`: those that differ between sides."""
    path = next(run[key].path for run in runs if key in run)
    return next((above for above in (moved.get(key, key) for key in reversed(path)) if above in around), None)


def _replaced(
    place: Key, before: Sequence[Key], after: Sequence[Key], of_place: Sequence[str], by: Sequence[str]
) -> Key:
    """Return the key of a row of keys that took the place of others: what all are in, and their names."""
    inside = next(filter(None, place), without(of_place[0]))
    old, new = (
        ", ".join(f"{count} x {name}" if count > 1 else name for name, count in names.items())
        for names in (
            Counter(shown_cell(key[0] or without(by[0]), Unit.TEXT, LONGEST_NAME) for key in keys)
            for keys in (before, after)
        )
    )
    return (f"in {shown_cell(inside, Unit.TEXT, LONGEST_NAME)}: {old} -> {new}", *place[1:])


def _row(
    state: State, name: Key, keys: tuple[Sequence[Key], Sequence[Key]], keyed: Sequence[Sequence[Mapping[Key, _Spent]]]
) -> Row:
    """Return the row of some keys of each side: the sum of their times."""
    medians: list[list[int]] = []
    means: list[list[Fraction]] = []
    calls: list[float] = []
    for of_side, runs in zip(keys, keyed, strict=True):
        found = [[run[key] for key in of_side if key in run] for run in runs] if of_side else []
        medians.append([sum(each.median for each in run) for run in found])
        means.append([Fraction(sum(each.total for each in run), run[0].steps) if run else Fraction(0) for run in found])
        calls.append(_middle([sum(each.calls / each.steps_of_key for each in run) for run in found]))
    if state is State.MATCHED and not math.isclose(*calls, rel_tol=_SAME_CALLS):
        state = State.CALLS
    return _of_sides(name, state, medians, means, (calls[0], calls[1]))


def _of_sides(
    key: Key,
    state: State,
    medians: Sequence[Sequence[int]],
    means: Sequence[Sequence[Fraction]],
    calls: tuple[float, float],
) -> Row:
    """Return the row of the median and the mean time per step of each run of both sides, ns."""
    before, after = (tuple(map(round, of_side)) for of_side in means)
    values = tuple(medians[0]), tuple(medians[1])
    return Row(key, state, values, (before, after), (_mean(means[0]), _mean(means[1])), calls)


def _mean(values: Sequence[Fraction]) -> Fraction:
    parts = math.lcm(*(value.denominator for value in values))
    return Fraction(sum(value.numerator * parts // value.denominator for value in values), parts * max(len(values), 1))


def _middle(values: Sequence[float]) -> float:
    """Return the median, 0 without any values."""
    return statistics.median(values) if values else 0.0


# -- Verdicts --------------------------------------------------------------------------------------------------------


def judge(tables: Sequence[Table], step_ns: float, resolution_ns: int, min_change: float) -> None:
    """Fill in the verdicts of all rows.

    The p of all tests of all tables are adjusted together, so that with equal sides any verdict of a change at all is
    as rare as LEVEL.

    Args:
        tables: the tables.
        step_ns: the median step, of which a change has to be a share.
        resolution_ns: the largest step of the clocks.
        min_change: the smallest relative change that counts.
    """
    of_step, of_clock = LEAST_OF_STEP * step_ns, LEAST_TICKS * resolution_ns
    shown = [(table, _shown(row, of_step)) for table in tables for row in (table.total, *table.rows)]
    places = [(table, row, _untested(row, of_step, of_clock)) for table, row in shown]
    p = {id(row): u_test(*row.values) for _, row, verdict in places if verdict is None}
    p_adjusted = dict(zip(p, adjusted(list(p.values())), strict=True))
    for table, row, verdict in places:
        if verdict is not None:
            table.judged.append(Judged(row, verdict))
            continue
        around = shift(*row.values)
        tested = _verdict(row, around, p_adjusted[id(row)], max(of_step, of_clock), min_change)
        table.judged.append(Judged(row, tested, around, p[id(row)], p_adjusted[id(row)]))


def _shown(row: Row, of_step: float) -> Row:
    """Return a row with means as values if a median tells nothing: fewer than half of the steps of a side do it."""
    least = min(_middle(values) for values in row.values if values)
    return replace(row, values=row.run_means) if least <= of_step else row


def _untested(row: Row, of_step: float, of_clock: float) -> Verdict | None:
    """Return the verdict of a row that needs no test; None for several runs of the same calls that take enough time."""
    if min(map(len, row.values)) < 2 or row.state not in (State.MATCHED, State.PLACE):
        return Verdict.UNKNOWN
    larger = max(map(_middle, row.values))
    if larger <= of_step:
        return Verdict.SAME
    return Verdict.UNCLEAR if larger <= of_clock else None


def _verdict(row: Row, around: Shift | None, p: float, least: float, min_change: float) -> Verdict:
    before, after = (_middle(values) for values in row.values)
    ratio = around.ratio if around is not None else after / before if before else math.inf
    # In logarithms, so that swapped sides have the opposite verdict.
    far = math.log1p(min_change)
    is_changed = p <= LEVEL and (not ratio or abs(math.log(ratio)) > far) and abs(after - before) > least
    if is_changed and (ratio > 1) is (after > before):
        return Verdict.SLOWER if after > before else Verdict.FASTER
    if around is None or around.low is None or around.high is None:
        return Verdict.UNCLEAR
    is_within = -far <= math.log(around.low) and math.log(around.high) <= far
    # What few steps do is in their mean alone.
    is_mean_within = all(row.means) and abs(math.log(row.means[1] / row.means[0])) <= far
    return Verdict.SAME if is_within and is_mean_within else Verdict.UNCLEAR


# -- Sections --------------------------------------------------------------------------------------------------------

_CELLS = (
    Column("state", "state", Unit.TEXT),
    Column("before_ns", "before", Unit.NS),
    Column("after_ns", "after", Unit.NS),
    Column("contribution_ns", "contribution", Unit.NS),
    Column("contribution_share", "of before", Unit.SHARE),
    Column("ratio", "ratio", Unit.RATE),
    Column("low", "low", Unit.RATE, spare=True),
    Column("high", "high", Unit.RATE, spare=True),
    Column("p", "p", Unit.RATE, detail=True),
    Column("p_adjusted", "p adjusted", Unit.RATE, spare=True),
    Column("calls_before", "calls before", Unit.RATE, spare=True),
    Column("calls_after", "calls after", Unit.RATE, spare=True),
    Column("runs_before", "runs before", Unit.COUNT, detail=True),
    Column("runs_after", "runs after", Unit.COUNT, detail=True),
    Column("verdict", "verdict", Unit.TEXT),
)
#: The name of the first row of each table.
TOTAL: Final = Unnamed.TOTAL
#: The measures whose rows are by the keys that were asked for; others are by name.
_BY_KEYS = ("operations", "device")
#: What the times of a measure are of.
WHAT: Final = {
    "steps": "a step",
    "operations": "all operations",
    "device": "all work of devices",
    "kernels": "all kernels and copies",
}
#: How names of tables begin here, since those of reports have other columns.
_PREFIX = "diff_"
_RUNS = (
    Column("run", "run", Unit.TEXT),
    Column("steps", "steps", Unit.COUNT),
    Column("median_ns", "median", Unit.NS),
    Column("spread_share", "steps differ by", Unit.SHARE),
)


class Comparison(Struct, frozen=True):
    """The tables of a comparison with their verdicts, and the sections of its report, the summary first.

    Attributes:
        tables: the tables.
        sections: the sections.
        part: what of all runs is compared.
    """

    tables: list[Table]
    sections: list[Section]
    part: Part

    def slower(self, share: float, *, rows: bool) -> list[str]:
        """Return what became slower by more than a share: the total, or, if `rows`, the names of all such rows."""
        return [
            name
            for name, judged in self._asked(rows)
            if judged.verdict is Verdict.SLOWER and (judged.ratio is None or judged.ratio > 1 + share)
        ]

    def undecided(self, *, rows: bool) -> list[str]:
        """Return what is unclear or unknown: the total, or, if `rows`, the names of all such rows."""
        asked = self._asked(rows)
        undecided = [name for name, judged in asked if judged.verdict in (Verdict.UNCLEAR, Verdict.UNKNOWN)]
        return undecided if asked else [TOTAL]

    def _asked(self, rows: bool) -> list[tuple[str, Judged]]:
        """Return the first total, or, if `rows`, all rows, with their names and that of their table."""
        if not rows:
            return [(TOTAL, table.judged[0]) for table in self.tables[:1]]
        return [
            (f"{row_name(judged.row.key, table.by) if at else TOTAL} ({_PREFIX}{table.measure})", judged)
            for table in self.tables
            for at, judged in enumerate(table.judged)
        ]


def refuse_ranks(runs: Sequence[Run]) -> None:
    """Raise UsageError if runs are different ranks of as many, and not known to be recorded one after the other."""
    for run, other in combinations([run for run in runs if run.ranks], 2):
        (size, rank), (other_size, other_rank) = min(run.ranks), min(other.ranks)
        spans = [each.span_ns for each in (run, other) if each.span_ns]
        apart = len(spans) > 1 and max(first for first, _ in spans) >= min(last for _, last in spans)
        if size == other_size and run.ranks.isdisjoint(other.ranks) and not apart:
            names = f"{one_line(run.name)} and {one_line(other.name)}"
            raise UsageError(
                f"{names} seem to be ranks {rank} and {other_rank} of one job, not runs",
                hint="the files of all ranks are one run: give the folder with them as a recording",
            )


def compare(
    before: Sequence[Run],
    after: Sequence[Run],
    by: Sequence[str] = ("name",),
    *,
    min_change: float = MIN_CHANGE,
) -> Comparison:
    """Compare runs: a table for each measure that all of them have.

    Args:
        before, after: at least one run each, with values by the same keys.
        by: the names of the keys.
        min_change: the smallest relative change that counts.

    Raises:
        UsageError: the runs have no measure in common, or runs of a side are ranks of one job.
    """
    for side in (before, after):
        refuse_ranks(side)
    runs, told = in_common([*before, *after], f"{_PREFIX}runs")
    before, after = runs[: len(before)], runs[len(before) :]
    tables = [
        table_of(
            measure,
            by,
            ([run.values[measure] for run in before], [run.values[measure] for run in after]),
        )
        for measure in MEASURES
        if all(measure in run.values for run in runs)
    ]
    if not tables:
        found = [" and ".join(sorted({measure for run in side for measure in run.values})) for side in (before, after)]
        raise UsageError(
            f"there is nothing to compare: before, {found[0]} are recorded, after, {found[1]}",
            hint="record all runs in the same way, or compare some of them",
        )
    if tables[0].measure == "steps":
        tables[0].rows = []
    step_ns = _middle([_middle(values) for values in tables[0].total.values])
    judge(tables, step_ns, max(run.resolution_ns for run in runs), min_change)
    sections = [_section(table) for table in tables]
    unlike = differences([run.environment for run in before], [run.environment for run in after])
    findings = [
        *told,
        *_environment(unlike),
        *_in_turns(before, after),
        *_step_counts(before, after),
        *_copies(before, after),
        _power(tables, len(before), len(after), min_change),
    ]
    about_runs = [*([unlike] if unlike.rows else []), _runs(tables, before, after)]
    summary = _summary(tables, sections, findings)
    summary.notes += dict.fromkeys(note for run in runs for note in run.notes)
    return Comparison(tables, [summary, *sections, *about_runs], runs[0].part)


def _runs(tables: Sequence[Table], before: Sequence[Run], after: Sequence[Run]) -> Section:
    """Return a row for each run, about its steps, or, without steps, about the whole of it."""
    measure, sides = tables[0].measure, [*["before"] * len(before), *["after"] * len(after)]
    section = about_runs(f"{_PREFIX}runs", [(run.name, run.values.get(measure)) for run in (*before, *after)])
    totals = [values.total if (values := run.values.get(measure)) else None for run in (*before, *after)]
    side, total = Column("side", "side", Unit.TEXT), Column("total_ns", "total", Unit.NS, detail=True)
    section.columns = (side, *section.columns, total)
    section.rows = [(side, *row, total) for side, row, total in zip(sides, section.rows, totals, strict=True)]
    return section


def about_runs(name: str, runs: Sequence[tuple[str, Values | None]]) -> Section:
    """Return a table with a row for each run, given its name and the values of its steps, or of the whole of it."""
    section = Section(name, _RUNS)
    for run, values in runs:
        section.rows.append((run, *((values.steps, values.median, values.spread) if values else (None,) * 3)))
    section.legend.append("steps differ by: 1.4826 times the median distance from their median, as a share of that")
    return section


def _section(table: Table) -> Section:
    by, keys = table.by, [Column(key, key, Unit.TEXT) for key in table.by]
    section = Section(f"{_PREFIX}{table.measure}", (*keys, *_CELLS))
    before_ns = table.total.means[0]
    whole = table.total.means[1] - before_ns
    amounts = _rounded([each.row.means[1] - each.row.means[0] for each in table.judged[1:]], round(whole))
    rows = [
        _cells(each.row.key[: len(by)], each, amount, before_ns)
        for each, amount in zip(table.judged[1:], amounts, strict=True)
    ]
    at = section.place("contribution_ns")
    rows.sort(key=lambda row: (-abs(int(row[at] or 0)), str(row[0])))
    section.rows = [_cells((TOTAL, *("",) * (len(by) - 1)), table.judged[0], round(whole), before_ns), *rows]
    return section


def _rounded(parts: Sequence[Fraction], whole: int) -> list[int]:
    """Return whole numbers near the parts, which add up to `whole`; those of the opposite parts are the opposite."""
    near = [round(part) for part in parts]
    short = whole - sum(near)
    sign = 1 if short > 0 else -1
    order = sorted(range(len(parts)), key=lambda at: -sign * (parts[at] - near[at]))
    for at in order[: abs(short)]:
        near[at] += sign
    return near


def _cells(key: Key, judged: Judged, amount: int, before_ns: Fraction) -> tuple[Cell, ...]:
    row, around = judged.row, judged.shift
    before, after = (_middle(values) if values else None for values in row.values)
    return (
        *key,
        row.state.value,
        None if before is None else round(before),
        None if after is None else round(after),
        amount,
        amount / float(before_ns) if before_ns else None,
        judged.ratio,
        around.low if around is not None else None,
        around.high if around is not None else None,
        judged.p,
        judged.p_adjusted,
        row.calls[0] if row.values[0] else None,
        row.calls[1] if row.values[1] else None,
        len(row.values[0]),
        len(row.values[1]),
        judged.verdict.value,
    )


# -- The summary -----------------------------------------------------------------------------------------------------


def _summary(tables: Sequence[Table], sections: Sequence[Section], of_runs: Sequence[Finding]) -> Section:
    divided = [section for table, section in zip(tables, sections, strict=True) if table.measure != "steps"]
    return summary_of([*map(_changed, tables[:1]), *map(_contributions, divided), *of_runs])


def summary_of(findings: Sequence[Finding]) -> Section:
    """Return the table `summary` of some findings, with a sentence for each."""
    section = Section("summary", SUMMARY)
    for finding in findings:
        numbers = msgspec.json.encode(finding.numbers).decode()
        section.rows.append((finding.id, finding.text, finding.section, numbers))
    section.sentences = [f"{row[1]} ({row[2]})" if row[2] else str(row[1]) for row in section.rows]
    return section


def row_name(key: Sequence[str], by: Sequence[str]) -> str:
    """Return the texts of a key as the name of a row in a message."""
    return " · ".join(filter(None, key)) or without(by[0])


def signed(ns: int) -> str:
    """Return a time for people, with its sign."""
    return f"{'+' if ns > 0 else ''}{format_short(float(ns))}"


def _changed(table: Table) -> Finding:
    judged, (before, after) = table.judged[0], table.total.means
    change = f"{100 * float(after / before - 1):+z.1f} %" if before else "no ratio"
    bounds = judged.shift
    within = ""
    if bounds is not None and bounds.low is not None and bounds.high is not None:
        ratio, low, high = (f"{100 * (each - 1):+.1f}" for each in (bounds.ratio, bounds.low, bounds.high))
        within = f" ({ratio} % from run to run, 95 %: {low} to {high} %)"
    times = f"{format_short(float(before))} before and {format_short(float(after))} after"
    text = f"On average, {WHAT[table.measure]} took {times}: {change}, {judged.verdict.value}{within}."
    numbers = {"before_ns": round(before), "after_ns": round(after), "verdict": judged.verdict.value}
    return Finding("total", text, f"{_PREFIX}{table.measure}", numbers)


def _contributions(section: Section) -> Finding:
    amount = section.place("contribution_ns")
    whole = int(section.rows[0][amount] or 0)
    most = [row for row in section.rows[1 : 1 + MOST_NAMED] if row[amount]]
    by = [column.name for column in section.columns[: section.place("state")]]
    keys = [row_name([str(cell) for cell in row[: len(by)]], by) for row in most]
    named = [
        f"{shown_cell(key, Unit.TEXT, LONGEST_NAME)} {signed(int(row[amount] or 0))}"
        for key, row in zip(keys, most, strict=True)
    ]
    text = f"Of {signed(whole)}: {', '.join(named)}." if named else "No time changed."
    names = {f"name_{at}": key for at, key in enumerate(keys, 1)}
    amounts = {f"contribution_{at}_ns": int(row[amount] or 0) for at, row in enumerate(most, 1)}
    return Finding("contributions", text, section.name, {"change_ns": whole, **names, **amounts})


def in_common(runs: Sequence[Run], section: str) -> tuple[list[Run], list[Finding]]:
    """Return runs with values of one part of all: the coarsest one; and what is to be told of that.

    Values are of whole processes if the threads of the steps run nothing in any run.

    Args:
        runs: the runs, at least one.
        section: the table that lists them.
    """
    part = max((run.part for run in runs), key=[*Part].index)
    coarse = [run.name for run in runs if run.part is part]
    runs = [run if run.part is part else replace(run, part=part, values=run.again(part)) for run in runs]
    elsewhere = [run.values.get(OF_PROCESSES["operations"]) for run in runs]
    if all(elsewhere) and any(values.keys for values in elsewhere if values):
        runs = [replace(run, values=_of_processes(run.values)) for run in runs]
    told = {"without": len(coarse), "runs": len(runs)}
    such = f"{len(coarse)} of {quantity(len(runs), RUNS)} have no {{}}, such as {one_line(coarse[0])}."
    if part is Part.FIRST:
        text = f"First steps are compared, though they warm up: {such.format('others')} Record more steps."
        return runs, [Finding("first_steps", text, section, told)]
    if part is Part.WHOLE and len(coarse) < len(runs):
        named = "If slices of them are steps, name those of all runs: --step-name REGEX."
        return runs, [Finding("whole_runs", f"Whole runs are compared: {such.format('steps')} {named}", section, told)]
    return runs, []


def _of_processes(values: Mapping[str, Values]) -> dict[str, Values]:
    return {name: values.get(OF_PROCESSES.get(name, name), of_thread) for name, of_thread in values.items()}


def _step_counts(before: Sequence[Run], after: Sequence[Run]) -> Iterator[Finding]:
    """Tell that runs of one side have more steps than those of the other, if they do."""
    counts = [[run.values["steps"].steps for run in side if "steps" in run.values] for side in (before, after)]
    middle = [_middle(of_side) for of_side in counts]
    if middle[0] != middle[1]:
        text = (
            f"A run has {middle[0]:g} steps before and {middle[1]:g} after the change (median of the runs): "
            "what changes in the course of a run counts as a change."
        )
        yield Finding("step_counts", text, f"{_PREFIX}runs", {"before": middle[0], "after": middle[1]})


def _environment(unlike: Section) -> Iterator[Finding]:
    """Tell what differs between the sides in how the runs were recorded."""
    differing = [row for row in unlike.rows if row[1] != row[2]]
    if differing:
        short = [[shown_cell(cell, Unit.TEXT, LONGEST_NAME) or "not stated" for cell in row] for row in differing]
        named = ", ".join(f"{name} ({before} before, {after} after)" for name, before, after in short[:MOST_NAMED])
        more = len(short) - MOST_NAMED
        text = (
            f"The runs were recorded in different ways: {named}{f' and {quantity(more, _OTHERS)}' if more > 0 else ''}."
        )
        yield Finding(
            "environment", text, unlike.name, {f"property_{at}": str(row[0]) for at, row in enumerate(differing, 1)}
        )


def _in_turns(before: Sequence[Run], after: Sequence[Run]) -> Iterator[Finding]:
    """Tell that all runs of one side are earlier than those of the other, if several are."""
    spans = [[run.span_ns for run in side if run.span_ns is not None] for side in (before, after)]
    if min(map(len, spans)) < 2 or [len(side) for side in spans] != [len(before), len(after)]:
        return
    for earlier, name, later, other in (
        (spans[0], "before", spans[1], "after"),
        (spans[1], "after", spans[0], "before"),
    ):
        if max(end for _, end in earlier) <= min(start for start, _ in later):
            text = (
                f"All runs {name} the change were recorded earlier than those {other} it: what changed with time alone "
                "counts as a change. Record both in turns."
            )
            yield Finding("turns", text, "", {"earlier": name})


def _copies(before: Sequence[Run], after: Sequence[Run]) -> Iterator[Finding]:
    """Tell that runs of a side are copies of one another."""
    content = [[run.content for run in side if run.content] for side in (before, after)]
    copies = sum(len(side) - len(set(side)) for side in content)
    if copies:
        count = quantity(len(before) + len(after), RUNS)
        text = f"{copies} of {count} are copies of others of their side, though each counts as a run: record new ones."
        yield Finding("copies", text, f"{_PREFIX}runs", {"copies": copies})


def _power(tables: Sequence[Table], before: int, after: int, min_change: float) -> Finding:
    """Tell how large a change has to be to be found, or how many runs are needed."""
    of_all = [judged for table in tables for judged in table.judged if all(map(any, judged.row.values))]
    tests = max(sum(judged.p is not None for judged in of_all), 1)
    sides = f"{quantity(before, RUNS)} of each side" if before == after else f"{before} and {quantity(after, RUNS)}"
    runs = f"With {sides}"
    if min(before, after) < 2:
        spread = tables[0].spread
        wanted, needed = _needed(spread, len(of_all), min_change) if spread else (0.0, None)
        steps = f"if runs differ by as much as steps, {100 * spread:.1f} %"
        more = f"{steps}, {needed} of each side find a change of {100 * wanted:g} % in one row"
        text = f"{runs}, no change can be told from noise: {more if needed else 'record several of each side'}."
        return Finding("power", text, "", {"spread_share": spread, "runs_needed": needed})
    totals = [id(table.judged[0]) for table in tables]
    of_rows = [judged for judged in of_all if judged.p is not None and id(judged) not in totals]
    spreads = sorted(_spread(judged.row) for judged in of_rows or of_all)
    spread = spreads[len(spreads) // 2] if spreads else 0.0
    found = found_change(before, after, spread, tests, min_change)
    numbers: dict[str, Any] = {"spread_share": spread, "rows": tests, "found_share": found}
    if found is not None:
        finds = f"a change of {100 * found:.1f} % in {_one_of(tests)} is found in 95 % of comparisons"
        text = f"{runs}, which differ by {100 * spread:.1f} % (median of the rows), {finds}."
        return Finding("power", text, "", numbers)
    wanted, needed = _needed(spread, tests, min_change)
    more = f"record {needed} of each side to find a change of {100 * wanted:g} % in one row"
    return Finding("power", f"{runs}, a change of {_one_of(tests)} alone cannot be told: {more}.", "", numbers)


def _needed(spread: float, tests: int, min_change: float) -> tuple[float, int]:
    """Return a change, doubled until a number of runs that can be recorded finds it, and that number of each side."""
    wanted = max(2 * min_change, _USUAL_CHANGE)
    while (needed := runs_to_find(wanted, spread, tests, min_change)) is None:
        wanted *= 2
    return wanted, needed


def _one_of(rows: int) -> str:
    return f"one of {rows} rows" if rows > 1 else "the only row"


def _spread(row: Row) -> float:
    """Return the standard deviation between the runs of a side, relative to their mean; the mean of both sides."""
    found = []
    for values in row.values:
        mean = sum(values) / len(values)
        if mean and len(values) > 1:
            found.append(math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1)) / mean)
    return sum(found) / len(found) if found else 0.0
