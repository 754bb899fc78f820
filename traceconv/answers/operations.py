"""The section `operations`: the time of slices by name, or by other keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from traceconv import kernel
from traceconv.answers.nesting import NO_PARENT
from traceconv.answers.section import Cell, Column, Section, Unit, place_of
from traceconv.answers.tables import Rows, SliceTable
from traceconv.errors import UsageError
from traceconv.io.shown import quantity
from traceconv.model.arg_values import ABSENT, arg_values, as_text
from traceconv.model.counted import SLICES
from traceconv.model.inputs_of import inputs_of
from traceconv.model.ordering import chunks, gathered, like_next, stable_order
from traceconv.model.stated import by_stated_inputs
from traceconv.model.trace import I32, I64

_MEASURES = (
    Column("count", "count", Unit.COUNT),
    Column("total_ns", "total", Unit.NS),
    Column("self_ns", "self", Unit.NS),
    Column("mean_ns", "mean", Unit.NS, spare=True),
    Column("p50_ns", "p50", Unit.NS, spare=True),
    Column("p99_ns", "p99", Unit.NS, spare=True),
    Column("max_ns", "max", Unit.NS),
    Column("busy_share", "of busy", Unit.SHARE),
)
#: Only if some slice has no recorded duration.
_UNKNOWN = Column("no_duration", "no duration", Unit.COUNT)
#: A number for each slice.
Codes = I32 | I64
#: The keys that operations can be grouped by, besides `arg:KEY`.
KEYS = ("name", "category", "track", "thread", "process", "rank", "input", "shape")
_ARG = "arg:"
#: So many groups have a number each in memory, whether they occur or not.
_MOST_GROUPS = 1 << 20


def operations(table: SliceTable, by: Sequence[str] = ("name",), sort: str = "") -> Section:
    """Return a row for each value of the keys, sorted by a column: numbers descending, texts ascending.

    Slices without a recorded duration are counted in a column of their own; times are of the others, None without any.
    Of slices that sum up several calls, each call counts; percentiles and the maximum are None, since sums do not tell.
    So they are for means, and if the number of calls is not stated, the count and the mean are, too.

    Args:
        table: the slices.
        by: some of KEYS, or `arg:KEY` for the value of an arg.
        sort: the name or the title of a column; without such a column, the largest self time is first.

    Raises:
        UsageError: a key is not known.
    """
    slices = table.trace.slices
    columns = columns_of(by)
    section = Section("operations", columns[:-1])
    at = place_of(sort, columns)
    if at is None:
        at = section.place("self_ns")
    codes, values = combined([key_of(table, key) for key in by])
    if not len(table.counted):
        section.notes.append("no slice is left" if len(table.recorded) else "the inputs hold no slices")
        return section
    timed = table.counted[table.timed[table.counted]]
    busy = table.busy_on_lanes(timed)
    outermost = _outermost(table, codes, timed)
    order = gathered(table.counted, stable_order([gathered(codes, table.counted)], table.trace.forget))
    first = np.flatnonzero(np.append(True, ~like_next(order, codes)))
    counts = np.diff(np.append(first, len(order)))
    # Few columns are in memory at a time.
    known = gathered(table.timed, order)
    unknown = np.add.reduceat(~known, first, dtype=np.int64)
    self_ns = np.add.reduceat(np.where(known, gathered(table.nesting.self_ns, order), 0), first).tolist()
    durations = np.where(known, gathered(slices.dur, order), 0)
    sums = np.add.reduceat(durations, first).tolist()
    calls, timed_calls, several = counts, counts - unknown, 0
    is_sum = np.zeros(len(first), bool)
    if table.calls is not None:
        calls_of = gathered(table.calls, order)
        calls = np.add.reduceat(calls_of, first)
        timed_calls = np.add.reduceat(np.where(known, calls_of, 0), first)
        is_sum = np.maximum.reduceat(calls_of, first) > 1
        several = int(np.count_nonzero(calls_of > 1))
    is_whole, notes_on_several = np.zeros(len(first), bool), []
    if table.several is not None:
        means, wholes = (gathered(mask, order) for mask in table.several)
        is_whole = np.logical_or.reduceat(wholes, first)
        is_sum |= is_whole | np.logical_or.reduceat(means, first)
        notes_on_several = [
            f"{what} of several calls: {quantity(int(np.count_nonzero(mask)), SLICES)}; {unstated} of their rows are "
            "not known"
            for mask, what, unstated in (
                (means, "means", "the percentiles and the maximum"),
                (wholes, "sums", "the count, the mean, the percentiles and the maximum"),
            )
            if np.any(mask)
        ]
    total = np.add.reduceat(np.where(gathered(outermost, order), durations, 0), first).tolist()
    durations[~known] = -1  # the first ones of a group after sorting
    for start, count in zip(first.tolist(), counts.tolist(), strict=True):
        durations[start : start + count].sort()

    def percentile(percent: int) -> list[int]:
        """Return the nearest-rank percentile of each group."""
        ranks = -(-(counts - unknown) * percent // 100)
        values: list[int] = durations[np.minimum(first + unknown + np.maximum(ranks, 1), first + counts) - 1].tolist()
        return values

    columns_of_numbers = zip(
        calls.tolist(),
        timed_calls.tolist(),
        is_sum.tolist(),
        is_whole.tolist(),
        unknown.tolist(),
        total,
        self_ns,
        sums,
        percentile(50),
        percentile(99),
        percentile(100),
        strict=True,
    )
    rows: list[tuple[Cell, ...]] = []
    for code, (count, with_times, summed, unstated, without, outer, own, whole, *ranked) in zip(
        codes[order[first]].tolist(), columns_of_numbers, strict=True
    ):
        times: tuple[Cell, ...] = (None,) * 7
        if with_times:
            shown = (None, None, None) if summed else ranked
            mean = None if unstated else rounded(whole, with_times)
            times = (outer, own, mean, *shown, own / busy if busy else None)
        rows.append((*values(code), None if unstated else count, *times, without))

    section.rows = in_order(rows, at)
    if several:
        section.notes.append(
            f"count is the number of calls; {quantity(several, SLICES)} with several calls: "
            "the percentiles and the maximum of their rows are not known"
        )
    section.notes += notes_on_several
    missing = int(np.sum(unknown))
    if missing:
        section.columns = columns
        section.notes += table.untimed_notes(table.counted)
    else:
        section.rows = [row[:-1] for row in section.rows]
    left_out = len(slices.ts) - len(table.recorded)
    if left_out:
        section.notes.append(f"left out: {quantity(left_out, SLICES)} (copies of others, or about the recording)")
    section.notes += table.synthetic_notes(slices.track)
    section.notes += without_values(by, section.rows)
    section.notes.append(
        "self: duration without the slices directly inside; total: nested slices of one row count once; "
        "of busy: self as a share of the busy time of all tracks and lanes"
    )
    return section


def without_values(by: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> list[str]:
    """Return a note for each key that no row has a value of; the rows begin with the keys."""
    nothing = [key for at, key in enumerate(by) if rows and not any(row[at] for row in rows)]
    by_default = list(by) == ["name"]
    return [
        f"{'' if by_default else f'--by {key}: '}no slice here has {_as_value(key)}, so the cells are empty"
        for key in nothing
    ]


def _as_value(key: str) -> str:
    return f"the arg {key.removeprefix(_ARG)}" if key.startswith(_ARG) else f"a {key}"


def columns_of(by: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of operations that are grouped by some keys; the last one only if a duration is unknown."""
    return (*(Column(key, key, Unit.TEXT) for key in by), *_MEASURES, _UNKNOWN)


def in_order(rows: Sequence[tuple[Cell, ...]], at: int) -> list[tuple[Cell, ...]]:
    """Sort rows by a column, numbers descending and texts ascending, then by the texts of the row."""

    def key(row: tuple[Cell, ...]) -> tuple[float, str, list[str]]:
        value, texts = row[at], [cell for cell in row if isinstance(cell, str)]
        return (0, value, texts) if isinstance(value, str) else (-(value or 0), "", texts)

    return sorted(rows, key=key)


def check_key(key: str) -> None:
    """Raise UsageError if operations cannot be grouped by the key."""
    if key not in KEYS and not (key.startswith(_ARG) and key != _ARG):
        raise UsageError(f"--by: {key!r} is not a key", hint=f"keys: {', '.join(KEYS)}, arg:KEY")


def rounded(whole: int, count: int) -> int:
    """Return a mean in integer ns, rounded half to even."""
    quotient, rest = divmod(whole, count)
    return quotient + (2 * rest > count or (2 * rest == count and quotient % 2 == 1))


def _outermost(table: SliceTable, codes: Codes, timed: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of the slices that are inside no other one of `timed` of the same group."""
    parent = table.nesting.parent
    counted = np.zeros(len(codes), bool)
    counted[timed] = True
    outermost = np.ones(len(codes), bool)
    compiled = kernel.module("nesting")
    if compiled is not None:
        groups = int(np.max(codes, initial=0)) + 1
        if groups > max(_MOST_GROUPS, len(codes)):  # few of the combinations of several keys occur
            known, codes = np.unique(codes, return_inverse=True)
            groups = len(known)
        numbers = codes.astype(np.int64, copy=False)
        compiled.outermost(
            parent, numbers, counted.view(np.uint8), np.zeros(groups, np.int32), outermost.view(np.uint8)
        )
        return outermost
    for rows in chunks(len(codes)):
        above, inner = parent[rows], np.arange(rows.start, rows.stop)
        while np.any(some := above != NO_PARENT):
            above, inner = above[some], inner[some]
            same = (codes[above] == codes[inner]) & counted[above]
            outermost[inner[same]] = False
            above, inner = parent[above[~same]], inner[~same]
    return outermost


def combined(keys: Sequence[tuple[Codes, Sequence[str]]]) -> tuple[Codes, Callable[[int], tuple[str, ...]]]:
    """Return the number of the combination of keys of each slice, and a function that returns the texts of a number."""
    codes = keys[0][0]
    for numbers, texts in keys[1:]:
        codes = codes.astype(np.int64) * len(texts) + numbers

    def texts_of(code: int) -> tuple[str, ...]:
        path = []
        for _, texts in reversed(keys):
            code, number = divmod(code, len(texts))
            path.append(texts[number])
        return tuple(reversed(path))

    return codes, texts_of


def key_of(table: SliceTable, key: str) -> tuple[Codes, Sequence[str]]:
    """Return the value of a key for each slice as the number of a text, and the texts."""
    return keyed(table, key, table.title)


def keyed(table: SliceTable, key: str, track_text: Callable[[int], str]) -> tuple[Codes, Sequence[str]]:
    """Return what `key_of` returns, with a function that returns the text of a track."""
    check_key(key)
    trace = table.trace
    if key == "name":
        return trace.slices.name, trace.strings
    if key == "category":
        return trace.slices.category, trace.strings
    if key.startswith(_ARG):
        return _args(table, (key.removeprefix(_ARG),))
    if key == "shape":
        return _args(table, tuple(dict.fromkeys(arg for info in trace.sources for arg in info.marks.shapes)))
    known: dict[str, int] = {}
    if key == "rank":
        ranks = ("" if source.rank is None else str(source.rank) for source in trace.sources)
        return _numbered(ranks, known)[inputs_of(trace, "slices")], list(known)
    if key == "input":
        stated = by_stated_inputs(trace)
        return _numbered((source.name for source in stated.sources), known)[inputs_of(stated, "slices")], list(known)
    tracks = table.row_of_track
    if key == "process":
        tracks = table.processes[tracks]
    return _numbered((track_text(int(track)) for track in tracks), known)[trace.slices.track], list(known)


def _numbered(texts: Iterable[str], known: dict[str, int]) -> I32:
    """Return the numbers of texts; those that are not known get the next one."""
    return np.fromiter((known.setdefault(text, len(known)) for text in texts), np.int32)


def _args(table: SliceTable, keys: Sequence[str]) -> tuple[I32, list[str]]:
    """Return the first arg that each slice has as the number of a text, and the texts; "" for slices without any."""
    slices, known = table.trace.slices, dict[str, int]()
    numbers_of_rows = np.empty(len(slices.ts), np.int32)
    for rows in chunks(len(numbers_of_rows)):  # the values are Python objects
        numbers, values = arg_values(table.trace.args, slices.args_at[rows], slices.args_len[rows], keys)
        texts = (as_text(next((value for value in some if value is not ABSENT), "")) for some in values)
        numbers_of_rows[rows] = _numbered(texts, known)[numbers]
    return numbers_of_rows, list(known)
