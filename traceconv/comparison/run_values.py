"""What a run spent on each operation, kernel and part of its steps: the values that comparisons are made of."""

from __future__ import annotations

import enum
import re
import statistics
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.attribution import NONE, expanded
from traceconv.answers.device_work import first_above, operators, work
from traceconv.answers.operations import NO_OPERATOR, OF_TRACKS, combined, key_of, left_ranges
from traceconv.answers.section import Unnamed
from traceconv.answers.slice_tables import NO_PARENT, Rows, SliceTable, sums_by
from traceconv.answers.step_parts import DISJOINT, step_parts
from traceconv.answers.steps import NOT_RECORDED, inside, is_step, ran_in, runs_nothing, timed_steps
from traceconv.model.columns import I64
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of
from traceconv.model.track_table import NO_TRACK

#: The measures of a run, in the order of the tables.
MEASURES = ("steps", "parts", "operations", "device", "kernels")
#: The measures of all threads, which count if the threads of the steps run nothing in them, in all runs.
OF_PROCESSES = {"parts": "parts of processes", "operations": "operations of processes"}
#: The most slices around a slice that its path names.
_DEEPEST = 64
#: The standard deviation of normal noise in median distances from the median.
_NORMAL = 1.4826
#: The key of what a condition leaves out, and its code.
OTHERS, _NOT_CHOSEN = Unnamed.NOT_CHOSEN, -2
#: The first texts of keys of what is no slice, which slices may have as names.
_SPECIAL = frozenset[str](Unnamed)
#: Addresses in names, which differ in each run.
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
#: No other names.
AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})
Key = tuple[str, ...]
_Path = tuple[Key, ...]


class Part(enum.Enum):
    """What of a run is compared: all steps, those after the first of each thread, the first ones, or the whole run."""

    STEPS = enum.auto()
    LATER = enum.auto()
    FIRST = enum.auto()
    WHOLE = enum.auto()


class Values(Struct, frozen=True):
    """What a run spent on each key of a measure; of runs without steps, the whole run counts as one step.

    Attributes:
        keys: the texts of each key.
        sums: the time of each key in all steps together, ns; they add up to `total`.
        medians: the median over the steps of the time of each key, ns; 0 counts where a step does not have it. They are
            the steps of the processes in which the key and the condition of the user can be.
        calls: how many slices each key has in all steps together.
        steps: the number of steps.
        total: the time of all steps, ns.
        median: the median of the times of the steps, ns.
        spread: by how much steps differ: 1.4826 times the median distance from the median, relative to it.
        paths: the keys of the slices around the longest slice of each key, outermost first.
        steps_of_keys: the number of the steps of each key.
    """

    keys: list[Key]
    sums: list[int]
    medians: list[int]
    calls: list[int]
    steps: int
    total: int
    median: int
    spread: float
    paths: list[_Path]
    steps_of_keys: list[int]

    @property
    def mean(self) -> Fraction:
        """The mean time of a step, ns."""
        return Fraction(self.total, self.steps)


class _Shares(Struct, frozen=True):
    """Times that belong to a step and a key: parallel arrays, the texts of the keys, and how many steps each has."""

    step: npt.NDArray[np.intp]
    key: I64
    ns: I64
    texts: Sequence[Key]
    steps_of_keys: I64


def run_values(
    table: SliceTable,
    by: Sequence[str],
    part: Part = Part.STEPS,
    renamed: Mapping[str, str] = AS_THEY_ARE,
    places: npt.NDArray[np.bool_] | None = None,
) -> dict[str, Values]:
    """Return the values of each measure of a run that has some.

    - `steps`: the durations of the steps.
    - `parts`: the columns of the table `step_parts`; of several devices, each device of each step is a step.
    - `operations`: self times on the threads of the steps, which add up to the steps; without steps, of all threads.
    - OF_PROCESSES: of all threads of the processes, where the threads of the steps run nothing in the steps.
    - `device`: the work of devices by the operator that launched it, and `kernels`: by name. It belongs to the step
      of its process in which it was launched, or else of its input in which it began.

    Args:
        table: the slices.
        by: the keys of operations, as for `operations`.
        part: what of the run counts; without such steps the whole of it counts as one step.
        renamed: other names for first texts of keys.
        places: a mask of the slices in whose process the condition of the user can hold; None for all.

    Raises:
        UsageError: a key is not known.
    """
    steps = compared_steps(table, part)
    values = {}
    if len(steps):
        durations = table.trace.slices.dur[steps]
        one_key = np.zeros(len(steps), np.int64)
        all_steps = np.array([len(steps)])
        shares = _Shares(np.arange(len(steps)), one_key, durations, [("",) * len(by)], all_steps)
        values["steps"] = _values(shares, len(steps))
    of_keys = _Codes(table, by, renamed, places)
    values.update(_operations(table, steps, of_keys))
    falls_back = OF_PROCESSES["operations"] in values
    if len(steps):
        values.update(_parts(table, steps, len(by), "parts", on_threads=falls_back))
    if falls_back:
        values.update(_parts(table, steps, len(by), OF_PROCESSES["parts"], on_threads=False))
    values.update(_device(table, steps, of_keys))
    return {name: values[name] for name in (*MEASURES, *OF_PROCESSES.values()) if name in values}


class _Codes:
    """The number of the key of each slice, and its texts, as both sides have them.

    Addresses differ in each run, so that they are left out; names are renamed.
    """

    def __init__(
        self,
        table: SliceTable,
        by: Sequence[str],
        renamed: Mapping[str, str],
        places: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        codes, texts_of = combined([key_of(table, key) for key in by])
        distinct, place = np.unique(codes, return_inverse=True)
        numbers: dict[Key, int] = {}
        texts = map(texts_of, distinct.tolist())
        renumbered = [numbers.setdefault(_renamed(key, renamed), len(numbers)) for key in texts]
        self.codes = np.array(renumbered, np.int64)[place.reshape(-1)]
        self.texts = list(numbers)
        self.by, self.renamed, self.places = by, renamed, places
        self._table = table

    def steps_of(self, codes: I64, steps: Rows) -> I64:
        """Return the number of steps of each code: of the processes that have slices at its place; else of all."""
        by = [key for key in self.by if key in OF_TRACKS]
        if not len(steps) or not (by or self.places is not None):
            return np.full(len(codes), max(len(steps), 1))
        table = self._table
        process, count = table.processes[table.trace.slices.track], len(table.trace.tracks)
        renamed = self.renamed if self.by[0] in by else AS_THEY_ARE
        place = _Codes(table, by, renamed).codes if by else np.zeros(len(process), np.int64)
        rows = table.recorded if self.places is None else table.recorded[self.places[table.recorded]]
        pairs = np.unique(place[rows] * count + process[rows])
        of_process = np.bincount(process[steps], minlength=count)
        of_place = sums_by(pairs // count, of_process[pairs % count], int(np.max(place, initial=0)) + 1)
        found = np.zeros(len(self.texts) + 2, np.int64)  # the last two are for NONE and _NOT_CHOSEN
        found[self.codes] = of_place[place]
        numbers = found[codes]
        return np.where(numbers == 0, len(steps), numbers)

    def text(self, code: int, without: str) -> Key:
        """Return the texts of a code, or `without` for NONE."""
        if code >= 0:
            return self.texts[code]
        return (without if code == NONE else OTHERS, *("",) * (len(self.by) - 1))


def _renamed(key: Key, renamed: Mapping[str, str]) -> Key:
    first, *others = map(without_address, key)
    first = renamed.get(key[0], renamed.get(first, first))
    return (f'"{first}"' if first in _SPECIAL else first, *others)


@lru_cache(maxsize=1 << 12)  # the runs of a program have the same names
def without_address(name: str) -> str:
    """Return a name without the addresses in it, which differ in each run."""
    return _ADDRESS.sub("at 0x...", name)


def part_of(table: SliceTable, wanted: Part) -> Part:
    """Return the part of a run that is wanted, or the next coarser one that it has."""
    coarser: list[Part] = [*Part]
    for part in coarser[coarser.index(wanted) :]:
        if len(compared_steps(table, part)):
            return part
    return Part.WHOLE


def compared_steps(table: SliceTable, part: Part) -> Rows:
    """Return the outermost steps of a part of a run with a duration in the window, by thread and time."""
    if part is Part.WHOLE:
        return np.empty(0, np.intp)
    slices = table.trace.slices
    rows = timed_steps(table)
    among = np.zeros(len(slices.ts), bool)
    among[rows] = True
    rows = rows[first_above(table, table.nesting.parent[rows].astype(np.int64), among) == NONE]
    thread = table.row_of_track[slices.track[rows]]
    order = np.argsort(thread, kind="stable")
    rows, thread = rows[order], thread[order]
    is_first = np.diff(thread, prepend=NO_TRACK) != 0
    chosen = is_first if part is Part.FIRST else ~is_first | (part is Part.STEPS)
    kept: Rows = rows[chosen & table.in_window(slices.ts[rows])]
    return kept


def _values(shares: _Shares, steps: int, calls: I64 | None = None, paths: Sequence[_Path] = ()) -> Values:
    """Return the sums and medians of times.

    Args:
        shares: the times.
        steps: the number of steps.
        calls: counts the slices of each time, 1 by default.
        paths: the path of each key, () by default.
    """
    count = len(shares.texts)
    calls = np.ones(len(shares.key), np.int64) if calls is None else calls
    pairs, group = np.unique(shares.key * steps + shares.step, return_inverse=True)
    of_keys = np.maximum(shares.steps_of_keys, np.bincount(pairs // steps, minlength=count))
    per_pair = sums_by(group.reshape(-1), shares.ns, len(pairs))
    per_step = sums_by(shares.step, shares.ns, steps)
    sums = sums_by(shares.key, shares.ns, count)
    having = sums_by(shares.key, calls, count)
    middle = round(statistics.median(per_step.tolist()))
    around = statistics.median(np.abs(per_step - middle).tolist())
    medians = _medians(pairs // steps, per_pair, of_keys)
    kept = np.flatnonzero((having > 0) | (sums != 0)).tolist()
    return Values(
        [shares.texts[at] for at in kept],
        [int(sums[at]) for at in kept],
        [int(medians[at]) for at in kept],
        [int(having[at]) for at in kept],
        steps,
        int(np.sum(per_step)),
        middle,
        _NORMAL * around / middle if middle else 0.0,
        [paths[at] for at in kept] if paths else [()] * len(kept),
        [int(of_keys[at]) for at in kept],
    )


def _medians(key: I64, ns: I64, steps: I64) -> I64:
    """Return the median for each key over as many steps as it has, half to even; steps without the key have 0."""
    order = np.lexsort((ns, key))
    ns, present = ns[order], np.bincount(key, minlength=len(steps))
    first = np.append(0, np.cumsum(present))[: len(steps)]

    def at(rank: I64) -> I64:
        place = rank - (steps - present)
        return np.where(place >= 0, np.append(ns, 0)[first + np.maximum(place, 0)], 0)

    low, high = at((steps - 1) // 2), at(steps // 2)
    half, odd = np.divmod(high - low, 2)
    middle = low + half
    medians: I64 = middle + (odd & middle & 1)
    return medians


# -- Parts of steps --------------------------------------------------------------------------------------------------


def _parts(table: SliceTable, steps: Rows, width: int, measure: str, *, on_threads: bool) -> dict[str, Values]:
    """Return the parts of the steps, as the table `step_parts` has them, whatever a condition leaves of the slices."""
    section = step_parts(table.choosing(None), on_threads=on_threads)
    slices = table.trace.slices
    titles = map(table.title, table.row_of_track[slices.track[steps]].tolist())
    wanted = set(zip((slices.ts[steps] - table.start).tolist(), slices.dur[steps].tolist(), titles, strict=True))
    start, span, track = map(section.place, ("start_ns", "span_ns", "track"))
    rows = [row for row in section.rows if (row[start], row[span], row[track]) in wanted]
    parts = [at for at in map(section.place, DISJOINT) if any(row[at] for row in rows)]
    if not parts:
        return {}
    ns = np.array([[row[at] or 0 for at in parts] for row in rows], np.int64)
    texts = [(section.columns[at].title, *("",) * (width - 1)) for at in parts]
    step, key = np.divmod(np.arange(ns.size), len(parts))
    shares = _Shares(step, key, ns.reshape(-1), texts, np.full(len(parts), len(rows)))
    return {measure: _values(shares, len(rows))}


# -- Operations on the host ------------------------------------------------------------------------------------------


def _operations(table: SliceTable, steps: Rows, keys: _Codes) -> dict[str, Values]:
    """Return the self time by the keys, inside the steps, or of the whole run."""
    if not len(steps):
        rows = _operations_in_window(table)
        found = _spent(table, keys, steps, rows, np.zeros(len(rows), np.intp), table.nesting.self_ns[rows])
        return {"operations": found} if found.keys else {}
    rows, step, self_ns, begun = _inside(table, steps)
    values = {"operations": _spent(table, keys, steps, rows, step, self_ns, begun)}
    if np.all(runs_nothing(table, rows)):
        values[OF_PROCESSES["operations"]] = _spent(table, keys, steps, *_around(table, steps))
    return values


def _spent(
    table: SliceTable,
    keys: _Codes,
    steps: Rows,
    rows: Rows,
    step: npt.NDArray[np.intp],
    self_ns: I64,
    begun: npt.NDArray[np.bool_] | Literal[True] = True,
) -> Values:
    """Return the values of some slices by the keys.

    Args:
        table: the slices.
        keys: those of all slices.
        steps: the steps.
        rows, step, self_ns: the slices, the step of each, and its time, ns.
        begun: whether each began in it.
    """
    nothing = runs_nothing(table, rows)
    code = np.where(nothing, NONE, np.where(_is_chosen(table)[rows], keys.codes[rows], _NOT_CHOSEN))
    distinct, key = np.unique(code, return_inverse=True)
    texts = [keys.text(each, NOT_RECORDED) for each in distinct.tolist()]
    shares = _Shares(step, key.reshape(-1).astype(np.int64), self_ns, texts, keys.steps_of(distinct, steps))
    calls = (np.ones(len(rows), np.int64) if table.calls is None else table.calls[rows]) * (begun & ~nothing)
    return _values(shares, max(len(steps), 1), calls, _paths(table, shares, rows, keys))


def _is_chosen(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices that meet the condition of the user."""
    return np.ones(len(table.trace.slices.ts), bool) if table.chosen is None else table.chosen(table)


def _operations_in_window(table: SliceTable) -> Rows:
    """Return the slices with a duration that are no steps, spans, waits, device work, or ranges that cross others."""
    mask = ~(runs_nothing(table) | table.is_wait | left_ranges(table, by_range=True)) & table.timed
    mask[work(table).rows] = False
    return table.recorded[mask[table.recorded] & table.in_window(table.trace.slices.ts[table.recorded])]


def _inside(table: SliceTable, steps: Rows) -> tuple[Rows, npt.NDArray[np.intp], I64, npt.NDArray[np.bool_]]:
    """Return the steps, what their threads ran and began in them, the step of each, its time, ns, and whether it began.

    The times add up to the durations of the steps.
    """
    step, rows, starts, ends = ran_in(table, steps)
    of_thread, first, last = inside(table, steps)
    around, place = expanded(first, last)
    ns = np.where(table.timed[rows] & (rows != steps[step]), ends - starts, 0)
    rest = table.trace.slices.dur[steps] - sums_by(step, ns, len(steps))
    begun = np.repeat([False, True], [len(steps) + len(rows), len(place)])
    return (
        np.concatenate([steps, rows, of_thread[place]]),
        np.concatenate([np.arange(len(steps)), step, around]),
        np.concatenate([rest, ns, np.zeros(len(place), np.int64)]),
        begun,
    )


def _around(table: SliceTable, steps: Rows) -> tuple[Rows, npt.NDArray[np.intp], I64]:
    """Return the operations of all threads of the processes that begin in steps, the step of each, their self times."""
    rows = _operations_in_window(table)
    process = table.processes[table.trace.slices.track]
    step = _step_at(table, steps, rows, process[steps], process[rows])
    rows, step = rows[step != NONE], step[step != NONE]
    return rows, step, table.nesting.self_ns[rows]


def _step_at(table: SliceTable, steps: Rows, rows: Rows, of_steps: I64, of_rows: I64) -> npt.NDArray[np.intp]:
    """Return the last step that began before each slice and contains its start, NONE without one.

    Only steps and slices with one number are compared; NONE for slices is that of no step.
    """
    slices = table.trace.slices
    found = np.full(len(rows), NONE, np.intp)
    for each in np.unique(of_steps):
        members, inner = np.flatnonzero(of_steps == each), np.flatnonzero(of_rows == each)
        members = members[np.argsort(slices.ts[steps[members]], kind="stable")]
        at = np.searchsorted(slices.ts[steps[members]], slices.ts[rows[inner]], "right") - 1
        inside = (at >= 0) & (slices.ts[rows[inner]] < table.ends(steps[members])[at])
        found[inner[inside]] = members[at[inside]]
    return found


def _paths(table: SliceTable, shares: _Shares, rows: Rows, keys: _Codes) -> list[_Path]:
    """Return the keys around each key, outermost first: those of its longest slice at its usual place.

    The usual place is the code around it in which most of its time was spent; without one, the path is empty. Steps are
    no place: their names are numbered.
    """
    parents = table.nesting.parent.astype(np.int64)
    parents[is_step(table)[parents] & (parents != NO_PARENT)] = NO_PARENT
    parent = parents[rows]
    around = np.where(parent == NO_PARENT, NONE, keys.codes[parent])
    order = np.lexsort((table.trace.slices.dur[rows], around, shares.key))
    key, around, rows = shares.key[order], around[order], rows[order]
    first = np.flatnonzero(np.append(True, (key[1:] != key[:-1]) | (around[1:] != around[:-1]))[: len(key)])
    spent = np.add.reduceat(shares.ns[order], first) if len(first) else first
    whole = sums_by(shares.key, shares.ns, len(shares.texts))
    longest = np.append(first[1:], len(key))[: len(first)] - 1
    paths: list[_Path] = [()] * len(shares.texts)
    for last in longest[2 * spent > whole[key[longest]]].tolist():
        path: list[Key] = []
        above = int(parents[rows[last]])
        while above != NO_PARENT and len(path) < _DEEPEST:
            path.append(keys.texts[keys.codes[above]])
            above = int(parents[above])
        paths[int(key[last])] = tuple(reversed(path))
    return paths


# -- Work of devices -------------------------------------------------------------------------------------------------


def _step_of_work(table: SliceTable, steps: Rows) -> npt.NDArray[np.intp]:
    """Return the step of each slice of device work, NONE without one.

    It is a step of the process that launched the work, or of its input, if no launch call or no step of its process is
    recorded.
    """
    launch, track = work(table).launch, table.trace.slices.track
    rows = np.where(launch == NONE, work(table).rows, launch)
    process = table.processes[track]
    inputs = inputs_of(by_stated_inputs(table.trace), "slices").astype(np.int64)
    by_process = (launch != NONE) & np.isin(process[rows], process[steps])
    places = (
        (process[steps], np.where(by_process, process[rows], NONE)),
        (
            inputs[steps],
            np.where(by_process, NONE, inputs[rows]),
        ),
    )
    found, others = (_step_at(table, steps, rows, *place) for place in places)
    return np.where(by_process, found, others)


def _device(table: SliceTable, steps: Rows, keys: _Codes) -> dict[str, Values]:
    """Return the device work by operator and by name."""
    found, slices = work(table), table.trace.slices
    if not len(found.rows):
        return {}
    step = _step_of_work(table, steps) if len(steps) else np.where(table.in_window(slices.ts[found.rows]), 0, NONE)
    some = step != NONE
    if not np.any(some):
        return {}
    rows, step, operator = found.rows[some], step[some], operators(table)[some]
    is_chosen = np.append(_is_chosen(table), table.chosen is None)[operator]
    code = np.where(is_chosen, np.where(operator == NONE, NONE, keys.codes[operator]), _NOT_CHOSEN)
    of_operator, key = np.unique(code, return_inverse=True)
    texts = [keys.text(each, NO_OPERATOR) for each in of_operator.tolist()]
    of_name = keys if tuple(keys.by) == ("name",) else _Codes(table, ("name",), keys.renamed, keys.places)
    names, name = np.unique(np.where(is_chosen, of_name.codes[rows], _NOT_CHOSEN), return_inverse=True)
    blank = ("",) * (len(keys.by) - 1)
    of_names = [(*of_name.text(each, ""), *blank) for each in names.tolist()]
    count = max(len(steps), 1)
    ns, at_name, at_key = slices.dur[rows], name.reshape(-1).astype(np.int64), key.reshape(-1).astype(np.int64)
    kernels = _Shares(step, at_name, ns, of_names, of_name.steps_of(names, steps))
    pairs, pair = np.unique(at_name * len(texts) + at_key, return_inverse=True)
    in_pairs, whole = sums_by(pair.reshape(-1), ns, len(pairs)), sums_by(at_name, ns, len(names))
    paths: list[_Path] = [()] * len(names)
    for at, operator_at in zip(*np.divmod(pairs[2 * in_pairs > whole[pairs // len(texts)]], len(texts)), strict=True):
        paths[at] = (texts[operator_at],) if of_operator[operator_at] >= 0 else ()
    return {
        "device": _values(_Shares(step, at_key, ns, texts, keys.steps_of(of_operator, steps)), count),
        "kernels": _values(kernels, count, paths=paths),
    }
