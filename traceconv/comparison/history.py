"""Tell what each operation took over many runs, and in which run that changed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import msgspec

from traceconv.answers.section import Column, Finding, Section, Unit, shown_cell
from traceconv.comparison.change_points import Division, can_show, change_points
from traceconv.comparison.comparison import (
    LEAST_OF_STEP,
    LEAST_TICKS,
    LONGEST_NAME,
    MOST_NAMED,
    RUNS,
    TOTAL,
    WHAT,
    Run,
    about_runs,
    in_common,
    refuse_ranks,
    row_name,
    signed,
    summary_of,
)
from traceconv.comparison.environment import changes
from traceconv.comparison.rank_tests import found_change
from traceconv.comparison.run_values import Key
from traceconv.io.shown import Counted, one_line, quantity
from traceconv.model.diagnostics import ROWS
from traceconv.model.numbers import format_short

_OPERATIONS = Counted("operation", "operations")
#: The standard deviation of normal noise, as a multiple of the median distance between two values.
_OF_DISTANCES = 1.4826 / math.sqrt(2)
#: How many more runs are proposed at most.
_MOST_RUNS = 100
_LEVELS = (
    Column("first_ns", "first", Unit.NS),
    Column("last_ns", "last", Unit.NS),
    Column("ratio", "last / first", Unit.RATE),
    Column("changes", "changes", Unit.COUNT),
    Column("values_ns", "values", Unit.OBJECT, detail=True),
)
_CHANGES = (
    Column("run", "since run", Unit.TEXT),
    Column("number", "number", Unit.COUNT, spare=True),
    Column("before_ns", "before", Unit.NS),
    Column("after_ns", "after", Unit.NS),
    Column("change_ns", "change", Unit.NS),
    Column("ratio", "ratio", Unit.RATE),
    Column("p", "p", Unit.RATE, spare=True),
)


class _Change(NamedTuple):
    """Where a series reached another level: the number of the run, from 0, both levels (ns), and the p."""

    at: int
    before: float
    after: float
    p: float

    @property
    def ratio(self) -> float | None:
        """How many times as long it takes since then."""
        return self.after / self.before if self.before else None


class _Series(NamedTuple):
    """The value of each run for a key, ns, with its levels, one more than changes."""

    key: Key
    values: list[int]
    levels: list[float]
    changes: list[_Change]


def history(runs: Sequence[Run], by: Sequence[str], *, min_change: float) -> list[Section]:
    """Return the summary and the tables `history`, `history_changes`, `history_runs` of runs in order.

    Args:
        runs: two runs or more, with values by the same keys.
        by: the names of the keys.
        min_change: the smallest relative change that counts.

    Raises:
        UsageError: runs are ranks of one job.
    """
    refuse_ranks(runs)
    runs, told = in_common(runs, "history_runs")
    of_runs = [run.values for run in runs]
    # Of devices alone, no operation of the host is recorded.
    of_rows = next((each for each in ("operations", "kernels") if any(each in values for values in of_runs)), "steps")
    measure = "steps" if all("steps" in values for values in of_runs) else of_rows
    totals = [values[measure].median if measure in values else 0 for values in of_runs]
    found_in = [values.get(of_rows) for values in of_runs]
    medians = [dict(zip(v.keys, v.medians, strict=True)) if v else {} for v in found_in]
    keys = list(dict.fromkeys(key for of_run in medians for key in of_run))
    series = {key: [of_run.get(key, 0) for of_run in medians] for key in keys}
    least = max(LEAST_OF_STEP * statistics.median(totals), LEAST_TICKS * max(run.resolution_ns for run in runs))
    kept = [key for key, values in series.items() if max(values) > least]
    all_values = [totals, *(series[key] for key in kept)]
    found = [
        _series(key, values, divisions, least, min_change)
        for key, values, divisions in zip(
            [(TOTAL, *("",) * (len(by) - 1)), *kept], all_values, change_points(all_values), strict=True
        )
    ]
    found[1:] = sorted(found[1:], key=lambda each: (-max(each.levels), each.key))
    names = [run.name for run in runs]
    tables = [
        _levels(found, by),
        _changes(found, by, names),
        about_runs("history_runs", [(run.name, run.values.get(measure)) for run in runs]),
    ]
    tables[0].notes += dict.fromkeys(note for run in runs for note in run.notes)
    if left_out := len(keys) - len(kept):
        tables[0].notes.append(
            f"{quantity(left_out, _OPERATIONS)} took at most {format_short(least)} in half of the steps: left out"
        )
    unlike = changes(names, [run.environment for run in runs])
    findings = [*told, *_findings(found, by, names, WHAT[measure], min_change), *_environment(unlike)]
    return [summary_of(findings), *tables, *([unlike] if unlike.rows else [])]


def _series(key: Key, values: list[int], divisions: Sequence[Division], least: float, min_change: float) -> _Series:
    """Return a series with the changes that are large enough; levels are the medians between them."""
    edges = [0, *(division.at for division in divisions), len(values)]
    p_of = {division.at: division.p for division in divisions}
    while True:
        levels = [float(statistics.median(values[since:until])) for since, until in pairwise(edges)]
        small = [
            (abs(after - before), at)
            for at, (before, after) in zip(edges[1:], pairwise(levels), strict=False)
            if abs(after - before) <= max(least, min_change * min(before, after))
        ]
        if not small:
            break
        edges.remove(min(small)[1])
    changes = [
        _Change(at, before, after, p_of[at]) for at, (before, after) in zip(edges[1:], pairwise(levels), strict=False)
    ]
    return _Series(key, values, levels, changes)


def _levels(found: Sequence[_Series], by: Sequence[str]) -> Section:
    section = Section("history", (*(Column(key, key, Unit.TEXT) for key in by), *_LEVELS))
    for series in found:
        first, last = series.levels[0], series.levels[-1]
        values = msgspec.json.encode(series.values).decode()
        ratio = last / first if first else None
        section.rows.append((*series.key, round(first), round(last), ratio, len(series.changes), values))
    section.legend.append("first, last: the median of the runs before the first change and since the last one")
    return section


def _changes(found: Sequence[_Series], by: Sequence[str], names: Sequence[str]) -> Section:
    section = Section("history_changes", (*(Column(key, key, Unit.TEXT) for key in by), *_CHANGES))
    for key, (at, before, after, p) in _in_order(found):
        ratio = after / before if before else None
        section.rows.append(
            (*key, names[at], at + 1, round(before), round(after), round(after) - round(before), ratio, p)
        )
    return section


def _in_order(found: Sequence[_Series]) -> list[tuple[Key, _Change]]:
    """Return the changes of the total, then those of operations, the largest first."""
    total, *others = ([(series.key, change) for change in series.changes] for series in found)
    return [*total, *sorted(chain(*others), key=lambda row: -abs(row[1].after - row[1].before))]


def _environment(unlike: Section) -> Iterator[Finding]:
    """Tell since which run a property of the recordings is another one."""
    shown = [[shown_cell(cell, Unit.TEXT, LONGEST_NAME) or "not stated" for cell in row[1:]] for row in unlike.rows]
    if shown:
        named = ", ".join(
            f"{name} (since {one_line(str(row[0]))}: {new}, before {old})"
            for row, (name, old, new) in zip(unlike.rows, shown[:MOST_NAMED], strict=False)
        )
        more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
        text = f"The runs were recorded in different ways: {named}{more}."
        yield Finding("environment", text, unlike.name, {"changes": len(shown)})


def _findings(
    found: Sequence[_Series], by: Sequence[str], names: Sequence[str], what: str, min_change: float
) -> Iterator[Finding]:
    total, count = found[0], len(names)
    for change in total.changes:
        ratio = f", {100 * (change.ratio - 1):+z.1f} %" if change.ratio else ""
        since = f"Since run {change.at + 1} ({one_line(names[change.at])}), the time of {what} is"
        text = f"{since} {format_short(change.after)}, before {format_short(change.before)}{ratio}."
        numbers = {"run": change.at + 1, "before_ns": round(change.before), "after_ns": round(change.after)}
        yield Finding("total", text, "history_changes", numbers)
    if not total.changes:
        level = format_short(total.levels[0])
        text = f"In {quantity(count, RUNS)}, {what} took {level} (median), which is not found to have changed."
        yield Finding("total", text, "history", {"runs": count, "median_ns": round(total.levels[0])})
    changed = [series for series in found[1:] if series.changes]
    if changed:
        named = [
            f"{shown_cell(row_name(key, by), Unit.TEXT, LONGEST_NAME)} "
            f"({signed(round(change.after - change.before))} since run {change.at + 1})"
            for key, change in _in_order([total._replace(changes=[]), *changed])[:MOST_NAMED]
        ]
        text = f"{quantity(len(changed), _OPERATIONS)} changed: {', '.join(named)}."
        yield Finding("operations", text, "history_changes", {"changed": len(changed), "operations": len(found) - 1})
    yield _power(found, count, min_change)


def _power(found: Sequence[_Series], count: int, min_change: float) -> Finding:
    """Tell how large a change has to be to be found, or how many runs are needed.

    It is that of two sides of known runs, with the change in the middle: nothing smaller is found where its place has
    to be found, too.
    """
    spreads = sorted(_spread(series.values) for series in found[1:] or found)
    spread, rows = spreads[len(spreads) // 2], len(found)
    least = found_change(count // 2, count - count // 2, spread, rows, min_change) if can_show(count, rows) else None
    runs, change = f"With {quantity(count, RUNS)}", f"change of one of {quantity(rows, ROWS)}"
    numbers = {"spread_share": spread, "rows": rows, "found_share": least}
    if least is None:
        needed = next((more for more in range(count, count + _MOST_RUNS) if can_show(more, rows)), None)
        more = f"{needed} or more can show one" if needed else "--where leaves fewer rows"
        text = f"{runs}, a lasting {change} alone cannot be told: {more}."
        numbers["runs_needed"] = needed
    else:
        differ = f"which differ from the one before by {100 * spread:.1f} % (median of the rows)"
        size = f"has to be above {100 * least:.1f} % to be found in 95 % of histories, even in their middle"
        text = f"{runs}, {differ}, a {change} {size}."
    return Finding("power", text, "history_runs", numbers)


def _spread(values: Sequence[int]) -> float:
    """Return the standard deviation between runs, relative to their median: by those next to each other.

    So a change counts once. Of normal noise, the median of the distances is 0.6745 times the square root of 2 as large.
    """
    middle = statistics.median(values)
    return statistics.median(abs(b - a) for a, b in pairwise(values)) * _OF_DISTANCES / middle if middle else 0.0
