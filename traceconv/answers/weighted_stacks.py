"""Stacks with weights: of samples, below the layers that their thread ran, or of slices, with their self times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.answers.attributed import each, with_layer_frames
from traceconv.answers.attribution import NONE, expanded
from traceconv.answers.device_work import first_above
from traceconv.answers.layer_sums import Kind
from traceconv.answers.layers import called, events_of, main_event
from traceconv.answers.operations import is_around, is_on_lane
from traceconv.answers.owners import Owners
from traceconv.answers.slice_tables import ALL, SliceTable, Some, table_by_stated_inputs
from traceconv.answers.steps import runs_nothing
from traceconv.errors import InputError
from traceconv.io.shown import Counted, quantity
from traceconv.model.columns import I32, I64
from traceconv.model.diagnostics import SAMPLES, SLICES
from traceconv.model.trace import Trace, take

STACKS = Counted("stack", "stacks")
_NO_STACK = "(no call stack)"
#: Sums from here on are refused.
_TOO_LARGE = 1 << 62


class WeightedStack(NamedTuple):
    """A stack of one thread, or another track.

    Attributes:
        track: the path of the track.
        stack: the names of the frames, the outermost one first.
        event: the event of the samples, as the input names it; "self time" for slices.
        unit: of the weight: "ns", "count", or "samples" where the input states no counts of the event.
        weight: the sum of the weights of the samples, or of the self times of the slices, with this stack.
        number: how many samples or slices these are.
    """

    track: str
    stack: tuple[str, ...]
    event: str
    unit: str
    weight: int
    number: int


@dataclass(frozen=True, repr=False)
class Stacks:
    """The weighted stacks of a trace: frames as a tree, and a row for each stack of a track. Iterate for the rows.

    Attributes:
        trace: the trace.
        is_sampled: whether the stacks are those of samples, not of slices.
        measures: the event and the unit of each kind of weight; the one that tells the use of the CPU comes first.
        left_out: the number of samples or slices that are in no stack, with the reason.
        tracks: the paths of the tracks.
        frames: the name and the file of each frame, "" if no file is known.
        parent: the node around each node of the tree, -1 for none; nodes are in depth-first order.
        frame: the frame of each node.
        track: the track of each row, a number in `tracks`.
        node: the node of its innermost frame.
        measure: the number of its measure.
        weight: its weight.
        count: its number of samples or slices.
    """

    trace: Trace
    is_sampled: bool
    measures: list[tuple[str, str]]
    left_out: list[str]
    tracks: list[str]
    frames: list[tuple[str, str]]
    parent: I64
    frame: I64
    track: I64
    node: I64
    measure: I64
    weight: I64
    count: I64

    def __len__(self) -> int:
        return len(self.node)

    def __iter__(self) -> Iterator[WeightedStack]:
        names = [name for name, _ in self.frames]
        for (track, _, measure, weight, path), number in zip(self.rows(), self.count.tolist(), strict=True):
            stack = tuple(names[frame] for frame in path)
            yield WeightedStack(self.tracks[track], stack, *self.measures[measure], weight, number)

    def __repr__(self) -> str:
        return f"<Stacks: {self.summary(len(self.measures))}>"

    def rows(self, order: Some = ALL) -> Iterator[tuple[int, int, int, int, list[int]]]:
        """Yield track, node, measure and weight of each row, or some, and its frames, the outermost one first."""
        parent, frame = self.parent.tolist(), self.frame.tolist()
        columns = (column[order].tolist() for column in (self.track, self.node, self.measure, self.weight))
        for track, node, measure, weight in zip(*columns, strict=True):
            path, at = [], node
            while at != NONE:
                path.append(frame[at])
                at = parent[at]
            yield track, node, measure, weight, path[::-1]

    def summary(self, measures: int) -> str:
        """Return how many samples or slices the stacks of the first measures hold, and how many are left out."""
        what, table = (SAMPLES, self.trace.samples) if self.is_sampled else (SLICES, self.trace.slices)
        counts = [int(np.sum(self.count[self.measure == at])) for at in range(len(self.measures))]
        titles = [f"{title_of(event, unit)}{' in ns' * (unit == 'ns')}" for event, unit in self.measures]
        left_out = self.left_out + [
            f"{quantity(count, SAMPLES)} of {event}: folded stacks have one weight"
            for (event, _), count in zip(self.measures[measures:], counts[measures:], strict=True)
        ]
        stacks = quantity(int(np.count_nonzero(self.measure < measures)), STACKS)
        written = f"{sum(counts[:measures])} of {quantity(len(table.ts), what)}"
        text = f"{written} in {stacks}, by {', '.join(titles[:measures])}"
        return f"{text}; left out: {', '.join(left_out)}" if left_out else text


def title_of(event: str, unit: str) -> str:
    """Return the title of a measure: its event; "samples of" it if these are counted."""
    return event if unit != "samples" else f"samples of {event}" if event else unit


# -- The stacks of a trace -------------------------------------------------------------------------------------------


def stacks_of(trace: Trace, *, slices: bool = False) -> Stacks:
    """Return the stacks of a trace on one clock: of its samples, if it has some, else of its slices.

    Args:
        trace: the trace.
        slices: whether to take the slices, also if there are samples.

    Raises:
        InputError: there is no stack, or the weights add up to 2^62 or more.
    """
    is_sampled = len(trace.samples.ts) > 0 and not slices
    stacks = _of_samples(trace) if is_sampled else _of_slices(trace)
    if not len(stacks):
        missing = "there are no slices" if slices else "there are neither samples nor slices"
        raise InputError(f"no stack is left: {', '.join(stacks.left_out)}" if stacks.left_out else missing)
    return stacks


def _of_samples(trace: Trace) -> Stacks:
    """Return the stacks of samples: the layers that their thread ran, then their frames."""
    table = table_by_stated_inputs(SliceTable(trace))
    layers = each(Owners(table))
    sampled = layers.samples()
    events = events_of(layers, sampled, [], ())
    main = events[main_event(events)]
    measure_of_name, measures = np.zeros(len(trace.strings), np.int64), list[tuple[str, str]]()
    for event in [main, *(event for event in events.values() if event is not main)]:
        measure_of_name[event.number] = len(measures)
        measures.append((event.name, "samples" if event.kind is Kind.SAMPLES else event.unit or "count"))
    drawn = with_layer_frames(table.trace, layers, sampled)
    known: dict[tuple[str, str], int] = {}
    frames = [*((called(frame), frame.category) for frame in drawn.frames), (_NO_STACK, "")]
    numbers = np.array([known.setdefault(frame, len(known)) for frame in frames], np.int64)
    # The last row is for samples without a call stack, whose number is -1.
    parent, frame, node = _tree(np.array([*(frame.parent for frame in drawn.frames), NONE], np.int64), numbers)
    kept = np.flatnonzero(drawn.samples.weight >= 0)
    samples = take(drawn.samples, kept)
    tracks, track = _tracks(table, samples.track)
    sums = _summed(track, node[samples.stack], measure_of_name[samples.name], samples.weight)
    negative = len(drawn.samples.ts) - len(kept)
    left_out = [f"{quantity(negative, SAMPLES)} of negative weight"] if negative else []
    return Stacks(trace, True, measures, left_out, tracks, [*known], parent, frame, *sums)


def _of_slices(trace: Trace) -> Stacks:
    """Return the stacks of slices, each with those around it on its track, and their self times.

    Steps and ranges that cross other slices are left out: what they last is the time of these.
    """
    table, slices = SliceTable(trace), trace.slices
    table.check_sums()
    rows = table.recorded[~_repeated(table)[table.recorded]]
    is_frame = np.zeros(len(slices.ts), bool)
    is_frame[rows] = True
    above = first_above(table, table.nesting.parent[rows], is_frame)
    names, numbers = np.unique(slices.name[rows], return_inverse=True)
    parent, frame, node = _tree(np.where(above == NONE, NONE, np.searchsorted(rows, above)), numbers.reshape(-1))
    timed = table.timed[rows]
    tracks, track = _tracks(table, slices.track[rows[timed]])
    sums = _summed(track, node[timed], np.zeros(len(track), np.int64), table.nesting.self_ns[rows[timed]])
    reasons = {
        "(copies of others, or about the recording)": len(slices.ts) - len(table.recorded),
        "(steps and ranges that cross others)": len(table.recorded) - len(rows),
        "whose duration was not recorded": int(np.count_nonzero(~timed)),
    }
    left_out = [f"{quantity(count, SLICES)} {why}" for why, count in reasons.items() if count]
    frames = [(trace.strings[name], "") for name in names.tolist()]
    return Stacks(trace, False, [("self time", "ns")], left_out, tracks, frames, parent, frame, *sums)


def _repeated(table: SliceTable) -> npt.NDArray[np.bool_]:
    """Return a mask of the steps and ranges on lanes of threads that run other slices; exchanges of data are none."""
    track, is_range = table.trace.slices.track, is_around(table, "range") & ~table.is_exchange
    is_mark = runs_nothing(table) | is_range
    runs = np.isin(table.row_of_track, table.row_of_track[track[table.recorded[~is_mark[table.recorded]]]])
    mask: npt.NDArray[np.bool_] = is_mark & is_on_lane(table) & runs[track]
    return mask


def _tracks(table: SliceTable, tracks: I32) -> tuple[list[str], I64]:
    """Return the paths of tracks, and the number of the path of each; lanes count as their track."""
    used, at = np.unique(table.row_of_track[tracks], return_inverse=True)
    known: dict[str, int] = {}
    number = np.array([known.setdefault(table.title(track), len(known)) for track in used.tolist()], np.int64)
    return list(known), number[at.reshape(-1)]


def _tree(above: I64, frame: I64) -> tuple[I64, I64, I64]:
    """Join rows with equal stacks to a tree; return the parent and the frame of each node, and the node of each row.

    Args:
        above: the row around each row, NONE for none.
        frame: the frame of each row.
    """
    order = np.argsort(above, kind="stable")
    ordered, frames = above[order], int(np.max(frame, initial=0)) + 1
    row, node = np.flatnonzero(above == NONE), np.full(len(above) + 1, NONE, np.int64)  # the last one is for no row
    parents, frames_inside = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    count = 0
    while len(row):
        used, at = np.unique(node[above[row]] * frames + frame[row], return_inverse=True)
        node[row] = count + at.reshape(-1)
        count += len(used)
        parents.append(used // frames)
        frames_inside.append(used % frames)
        low, high = (np.searchsorted(ordered, row, side) for side in ("left", "right"))
        row = order[expanded(low, high)[1]]
    around, inside = np.concatenate(parents), np.concatenate(frames_inside)
    number = np.append(_depth_first(around.tolist()), NONE)
    by_number = np.argsort(number[:-1])
    return number[around][by_number], inside[by_number], number[node[:-1]]


def _depth_first(parent: Sequence[int]) -> I64:
    """Return the number of each node in depth-first order."""
    inside: dict[int, list[int]] = {}
    for node in range(len(parent) - 1, -1, -1):
        inside.setdefault(parent[node], []).append(node)
    number, todo = np.empty(len(parent), np.int64), inside.get(NONE, [])
    for at in range(len(parent)):
        node = todo.pop()
        number[node] = at
        todo += inside.get(node, [])
    return number


def _summed(track: I64, node: I64, measure: I64, weight: I64) -> tuple[I64, ...]:
    """Return track, node, measure, sum of the weights and count of each combination. Raises InputError: too large."""
    if np.sum(weight, dtype=np.float64) >= _TOO_LARGE:
        raise InputError("the weights of the samples add up to 2^62 or more")
    order = np.lexsort((measure, node, track))
    columns = track[order], node[order], measure[order]
    first = np.flatnonzero(np.any([np.diff(column, prepend=-1) != 0 for column in columns], axis=0))
    weights = np.add.reduceat(weight[order], first) if len(first) else weight
    return *(column[first] for column in columns), weights, np.diff(np.append(first, len(order)))
