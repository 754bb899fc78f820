"""Judge by the ends of collectives whether two hosts recorded one job, and whether their clocks ran evenly.

All members of a collective leave it together. So the ends that two hosts recorded differ by the difference of their
clocks, which is a line, and by what delayed each end by itself. The limits of `host_intervals` do not require that:
ranks of two jobs of one script, whose steps take equally long, satisfy them for seconds. Here the ends are compared:

- Ends of one job stay close to the line, or, where a busy machine scatters them, the times between them vary together
  on both hosts. If neither is so, the records are of no one job, or too few to tell.
- What scatters the ends changes from one collective to the next. A remainder that changes slowly is one of the clocks:
  a clock was set, or drifts more than clocks do.

Steps repeat their collectives, and a step has its own pattern. So ends are compared by their position in the step.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from traceconv.align.geometry import F64
from traceconv.align.robust import median, quantile, rank_correlation, robust_line, spread_of
from traceconv.model.clocks import HOSTS_DRIFT, SLEWED_DRIFT
from traceconv.model.columns import I64

#: Ends this close to the line are together, ns: the error of the profilers.
_CLOSE_NS = 20_000.0
#: Close ends show one job only if they do not wander by more than this besides, ns. Clocks may be uneven by
#: `_CLOSE_NS`, since profilers convert the times of devices by several lines.
_STEADY_NS = 5_000.0
#: The change of the rate of a clock, from temperature and corrections of the kernel, as a ratio.
_WANDER = 2e-6
#: The least rank correlation of the times between ends, and by how many standard deviations it must exceed 0.
_LEAST_SHARED, _LEAST_SIGMAS = 0.3, 4.0
#: A remainder whose steps from one end to the next are this part of those of independent ends changes slowly.
_SLOW = 0.5
#: The fewest ends from which scattered ends show that there are two jobs: random times between fewer may be correlated.
_ENOUGH = 26
#: The fewest ends at each position of a step, if there are enough and if not; the most positions of a step; to limit
#: time, the most numbers of positions that are compared.
_LEAST_STEPS, _LEAST_STEPS_OF_FEW, _MOST_POSITIONS, _MOST_COMPARED = 4, 2, 512, 64
#: A shorter step is taken if its ends repeat this much worse than those of the best one.
_NEARLY = 1.25
#: The fewest ends before and after the instant at which a clock was set.
_LEAST_PART = 4
#: A jump must be this many times what this share of the values before and after it is off besides. To limit time, so
#: many rows are tried first.
_JUMP, _NEARLY_ALL, _MOST_TRIED = 2.0, 0.9, 32
#: How often the line and the usual difference of each position are found in turn.
_ROUNDS = 3


class Ends(enum.Enum):
    """What the ends of the collectives of two hosts show."""

    OF_ONE_JOB = "one job, and clocks that run evenly"
    OF_NO_JOB = "no one job"
    FEW = "nothing, since they are too few"
    SET = "a clock that was set"
    STEEP = "a drift that is greater than that of clocks"
    UNEVEN = "clocks that do not run evenly"


@dataclass(frozen=True, slots=True)
class EndsOfTwo:
    """What the ends of the collectives of two hosts show.

    Attributes:
        shown: the conclusion.
        scatter_ns: the standard deviation of the ends from a line.
        drift: the drift of the second host against the first one, as a ratio.
        step_ns: by how much the second clock was set ahead of the first one, if one was set.
        after: the number of the last collective before that, in order.
        edge_ns: how far the first or the last few ends are off, if a clock may have been set beside them; else 0.
    """

    shown: Ends
    scatter_ns: float
    drift: float
    step_ns: float = 0.0
    after: int = 0
    edge_ns: float = 0.0


def ends_of_two(one: I64, other: I64, kinds: I64) -> EndsOfTwo:
    """Compare the ends of the common collectives of two hosts.

    Args:
        one, other: the ends on the clock of each host, ns, in order of `one`.
        kinds: the numbers of the groups, operations and sizes of the collectives.
    """
    if len(one) < 2 * _LEAST_PART:
        return EndsOfTwo(Ends.FEW, 0.0, 0.0)
    at = (one - one[0]).astype(np.float64)
    apart = (other - one - int(np.median(other - one))).astype(np.float64)
    between = np.diff(one).astype(np.float64), np.diff(other).astype(np.float64)
    place = _places(*between, kinds)
    pairs = _numbered(place[:-1] * (int(np.max(place)) + 1) + place[1:])
    shared = rank_correlation(*(_off(times, pairs) for times in between))
    varies_together = shared >= max(_LEAST_SHARED, _LEAST_SIGMAS / math.sqrt(len(at) - 1))
    wander_ns = _WANDER * float(at[-1])
    steady_ns = _CLOSE_NS + wander_ns
    rest, drift = _along_line(at, apart, place, HOSTS_DRIFT)
    scatter = spread_of(rest) * math.sqrt(len(rest) / (len(rest) - len(np.unique(place))))
    close = scatter <= _CLOSE_NS and _is_even(rest, _STEADY_NS + wander_ns)
    if not (varies_together or close):
        return EndsOfTwo(Ends.OF_NO_JOB if len(at) >= _ENOUGH else Ends.FEW, scatter, drift)
    if close or _is_even(rest, steady_ns):
        return EndsOfTwo(Ends.OF_ONE_JOB, scatter, drift, edge_ns=_edge(rest))
    steep_rest, steep = _along_line(at, apart, place, SLEWED_DRIFT)
    if _is_even(steep_rest, steady_ns):
        return EndsOfTwo(Ends.STEEP, spread_of(steep_rest), steep)
    after, step = _step(rest + drift * at - _usual_drift(at, rest + drift * at) * at)
    parted = apart - np.where(np.arange(len(at)) > after, step, 0.0)
    parted_rest, drift = _along_line(at, parted, place, HOSTS_DRIFT)
    shown = Ends.SET if _is_even(parted_rest, steady_ns) else Ends.UNEVEN
    return EndsOfTwo(shown, spread_of(parted_rest), drift, step, after)


def _places(one: F64, other: F64, kinds: I64) -> I64:
    """Return the position of each collective in its step; by its kind if no number of collectives is a step."""
    most = min(len(kinds) // _least_steps(len(kinds)), _MOST_POSITIONS)
    found: list[tuple[int, float]] = []
    for number in range(1, most + 1):
        if len(found) < _MOST_COMPARED and np.array_equal(kinds[number:], kinds[:-number]):
            found.append((number, sum(median(np.abs(times[number:] - times[:-number])) for times in (one, other))))
    if not found:
        return _numbered(kinds)
    best = min(off for _, off in found)
    return np.arange(len(kinds)) % next(number for number, off in found if off <= best * _NEARLY)


def _numbered(values: I64) -> I64:
    """Return numbers from 1 for equal values, and 0 for all that are rare."""
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    numbers: I64 = np.where(count[number] >= _least_steps(len(values)), number + 1, 0).astype(np.int64)
    return numbers


def _least_steps(count: int) -> int:
    """Return the fewest of so many ends at each position of a step."""
    return _LEAST_STEPS if count >= _ENOUGH else _LEAST_STEPS_OF_FEW


def _off(values: F64, place: I64) -> F64:
    """Return values without the median of their position."""
    rest = values.copy()
    for number in np.unique(place).tolist():
        rest[place == number] -= median(values[place == number])
    return rest


def _along_line(at: F64, apart: F64, place: I64, most: float) -> tuple[F64, float]:
    """Return what remains of the differences without a line and the usual difference of each position, and the drift.

    Args:
        at: the times, ns.
        apart: the differences, ns.
        place: the position of each in its step.
        most: the largest drift, as a ratio.
    """
    level, drift = apart, 0.0
    for _ in range(_ROUNDS):  # the line and the positions depend on each other
        _, drift, _ = robust_line(at, level, 1.0, most, most)
        along = drift * (at - at.mean())
        rest = _off(apart - along, place)
        level = rest + along
    return rest, drift


def _usual_drift(at: F64, apart: F64) -> float:
    """Return the drift of most pairs of collectives some time apart, to which a single jump does not matter."""
    away = max(1, len(at) // 5)
    drifts = (apart[away:] - apart[:-away]) / (at[away:] - at[:-away])
    return min(max(median(drifts), -HOSTS_DRIFT), HOSTS_DRIFT)


def _is_even(rest: F64, steady_ns: float) -> bool:
    """Return whether what remains changes from one collective to the next, and does not wander or jump for longer."""
    scatter = spread_of(rest)
    if scatter > steady_ns and spread_of(np.diff(rest)) < _SLOW * math.sqrt(2) * scatter:
        return False
    after, step = _step(rest)
    parts = rest[: after + 1], rest[after + 1 :]
    off = max(quantile(np.abs(part - median(part)), _NEARLY_ALL) for part in parts)
    return abs(step) <= max(steady_ns, _JUMP * off)


def _edge(rest: F64) -> float:
    """Return how far the first or the last few values are off, if they are farther off than all others; else 0.

    So few may have been delayed, or a clock may have been set beside them.
    """
    off = np.abs(rest - median(rest))
    edge = 0.0
    for few in range(1, _LEAST_PART):
        for part, others in ((off[:few], off[few:]), (off[-few:], off[:-few])):
            if np.min(part) > max(_CLOSE_NS, _JUMP * float(np.max(others))):
                edge = max(edge, float(np.max(part)))
    return edge


def _step(rest: F64) -> tuple[int, float]:
    """Return after which row values jump, and by how much, by the least sum of distances from the two medians."""
    rows = np.arange(_LEAST_PART - 1, len(rest) - _LEAST_PART)
    every = max(1, len(rows) // _MOST_TRIED)
    after = _best(rest, rows[::every])
    if every > 1:
        after = _best(rest, rows[(rows > after - every) & (rows < after + every)])
    return after, median(rest[after + 1 :]) - median(rest[: after + 1])


def _best(rest: F64, rows: I64) -> int:
    """Return the row after which a jump leaves the least sum of distances."""
    parts = [[rest[: row + 1], rest[row + 1 :]] for row in rows.tolist()]
    off = [sum(float(np.abs(part - median(part)).sum()) for part in both) for both in parts]
    return int(rows[int(np.argmin(off))])
