"""Find the iterations of a workload: its period in events, and the operator of the iteration that each event is.

Kinds and durations repeat, independently of pauses between iterations, and even if some events are missing.
"""

from __future__ import annotations

import numpy as np

from traceconv.align.estimate import Array, Events
from traceconv.align.geometry import F64, rank_correlation, vary_together

# Each with its unit and what it was chosen on, in the terms of `sequences`: simulated pairs, tuned and few iterations.

_MOST_EVENTS = 1 << 13  # The most events that are searched for repetition. Not tuned: limits time.
_MOST_BINS = 1 << 16  # The most bins of a search. Not tuned: limits time.
#: Durations are equal if their logarithms differ by less than this: steady ones, unsteady ones (simulated).
_CLASS_WIDTHS = (0.06, 0.25)
#: Repetitions are summed over this many distances, since missing events and unsteady pauses move them (simulated).
_SMEARS = (1, 5)
_LEAST_SIGMA = 8.0  # A repetition must exceed chance by this many sigma (simulated).
#: The period is the first distance with this share of the best repetition, since its multiples are as good (simulated).
_NEARLY_BEST = 0.85
_LEAST_REPEATS = 3  # The fewest occurrences of a repetition. Not tuned: twice may be chance.
_MOSTLY = 0.5  # If this share of all events repeats, distances in events are used. Not tuned: most of them.
#: The longest iteration whose operators are distinguished, in events. Not tuned: limits time and memory.
_LONGEST_TEMPLATE = 4096

_SPREAD = 0.1  # The spread of the logarithm of durations of one operator (simulated).
_WORST_FIT = -4.0  # The greatest cost of an event that fits an operator, in spreads (simulated).
_SKIP = -0.5  # The cost of skipping an operator, in spreads (simulated).
#: An event fits its operator if the logarithms of durations differ by less than this. Not tuned: three spreads.
_FITS = 0.3
_OTHER_OPERATOR = 0.08  # Unmatched events are of one operator if the logarithms differ by less than this (simulated).
_OFTEN = 0.3  # They are added to the template if they occur this share of the usual number of times (simulated).
_GROWTHS = 4  # The number of times that the template grows. Not tuned: each costs a search.

_TIMES_USUAL_DEVIATION = 8.0  # Deviations beyond this many times the median one are warm-up, and left out (simulated).
_COARSEST_RESOLUTION = 0.1  # Durations are used if the resolution is at most this share of them (simulated).
_LEAST_LABELLED = 0.85  # Operators are known if this share of the events has one (simulated).
_MOST_COMPARED = 2000  # The most outer events that are searched for bursts. Not tuned: limits time.
_LEAST_BURSTS = 4  # The fewest equal bursts (few iterations).
_TIMES_LONGER = 3.0  # A pause before a burst is longer than those in it by this factor (few iterations).
_NEARLY_NONE = 0.2  # The share of bursts that may be exceptions (few iterations).
#: Variation may repeat by chance up to this many sigma, at any of the compared distances (few iterations).
_REPEATED_SIGMA = 2.5


def log_durations(events: Events) -> F64:
    """Return the logarithm of each duration, which is at least the resolution."""
    logarithms: F64 = np.log(np.maximum(events.dur, max(events.quantum_ns, 1.0)))
    return logarithms


def period_of(events: Events) -> int | None:
    """Return the period of kinds and durations, in events; None if they do not repeat.

    Distances are measured in events, which pauses do not change, and in time, which missing events do not change.
    """
    part = events.take(np.arange(min(len(events), _MOST_EVENTS)))
    if len(part) < 2 * _LEAST_REPEATS:
        return None
    bin_ns = max(float(np.median(np.diff(part.start))) / 2, float(part.start[-1] - part.start[0]) / _MOST_BINS, 1.0)
    bins = ((part.start - part.start[0]) / bin_ns).astype(np.int64)
    best, period = _LEAST_SIGMA, None
    for width in _CLASS_WIDTHS:
        # Events of one class are of one kind with about one duration.
        level = np.floor(log_durations(part) / width).astype(np.int64)
        classes = np.unique(part.kind.astype(np.int64) * (1 << 20) + level, return_inverse=True)[1]
        for at, least in (np.arange(len(part)), 2), (bins, 4):
            same, expected = _repetition(classes, at)
            sigma, lag = _top(same, expected, least)
            if sigma > best:
                early = at[at <= at[-1] - lag]
                between = np.searchsorted(at, early + lag) - np.arange(len(early))  # the number of events
                best, period = sigma, max(2, round(float(np.mean(between))))
                if least == 2 and same[lag] - expected[lag] > _MOSTLY * (len(part) - lag):
                    return lag
    return period


def _repetition(classes: Array, at: Array) -> tuple[F64, F64]:
    """Return, by distance, the number of events with one of their class there, and the number expected by chance."""
    length = int(at[-1]) + 1
    size = 1 << (2 * length).bit_length()
    power = np.zeros(size // 2 + 1)
    chance = 0.0
    counts = np.bincount(classes)
    for number in np.flatnonzero(counts > 2).tolist():
        power += np.abs(np.fft.rfft(np.bincount(at[classes == number], minlength=size))) ** 2
        chance += (counts[number] / length) ** 2
    same: F64 = np.rint(np.fft.irfft(power, size)[:length])
    expected: F64 = chance * (length - np.arange(length, dtype=np.float64))
    return same, expected


def _top(same: F64, expected: F64, least: int) -> tuple[float, int]:
    """Return the significance of the best repetition in sigma, and its distance."""
    usable = slice(least, len(same) // _LEAST_REPEATS + 1)
    best, top = 0.0, 0
    surplus = same - expected
    surplus[:least] = 0.0
    for width in _SMEARS:
        box = np.ones(width)
        excess = np.convolve(surplus, box, "same")[usable]
        if not len(excess) or np.max(excess) <= 0:
            continue
        chance = np.convolve(expected, box, "same")[usable] + 1
        rate = excess / (len(same) - np.arange(len(same))[usable])
        high = int(np.flatnonzero(rate >= _NEARLY_BEST * np.max(rate))[0])  # the first of the highest peaks
        at = high + int(np.argmax(rate[high : high + _SMEARS[-1]]))
        sigma = float(excess[at] / np.sqrt(chance[at]))
        if sigma > best:
            best, top = sigma, at + least
    return best, top


def positions(events: Events, period: int) -> Array:
    """Return the number of the operator within the iteration of each event; -1 if it fits none.

    The template is a part of one period. Dynamic programming finds a path through its endless repetition, in which
    events and operators may stay unmatched. Events that stay unmatched repeatedly at one position of the template are
    added to it: the part that it was made of lacked them.
    """
    if period > _LONGEST_TEMPLATE:
        return np.full(len(events), -1)
    logs = log_durations(events)
    middle = (len(events) - period) // 2
    kinds, typical = events.kind[middle : middle + period], logs[middle : middle + period]
    label = _path(events.kind, logs, kinds, typical)
    for _ in range(_GROWTHS):
        fitting = label >= 0
        fitting[fitting] = np.abs(logs[fitting] - typical[label[fitting]]) < _FITS
        length = len(kinds)
        kinds, typical = _grown(events.kind, logs, kinds, typical, label, fitting)
        label = _path(events.kind, logs, kinds, typical)
        if len(kinds) == length:
            break
    return label


def _grown(kind: Array, logs: F64, kinds: Array, typical: F64, label: Array, fitting: Array) -> tuple[Array, F64]:
    """Return the template with the medians of the events that fit it, and with frequent unmatched events."""
    period = len(kinds)
    typical = typical.copy()
    for number in range(period):
        rows = (label == number) & fitting
        if rows.sum() > 2:
            typical[number] = np.median(logs[rows])
    if period > _LONGEST_TEMPLATE // 2:
        return kinds, typical
    latest = np.maximum.accumulate(np.where(fitting, np.arange(len(label)), 0))
    slot = np.where(fitting[latest], label[latest], -1)
    usual = float(np.median(np.bincount(label[fitting], minlength=period))) if fitting.any() else 0.0
    left = np.flatnonzero(~fitting & (slot >= 0))
    order = left[np.lexsort((logs[left], kind[left], slot[left]))]
    apart = (np.diff(slot[order]) != 0) | (np.diff(kind[order]) != 0) | (np.diff(logs[order]) > _OTHER_OPERATOR)
    groups = [rows for rows in np.split(order, np.flatnonzero(apart) + 1) if len(rows) > max(2.0, _OFTEN * usual)]
    groups.sort(key=lambda rows: (int(slot[rows[0]]), float(np.median(rows - latest[rows]))))
    where = [int(slot[rows[0]]) + 1 for rows in groups]
    return (
        np.insert(kinds, where, [kind[rows[0]] for rows in groups]),
        np.insert(typical, where, [np.median(logs[rows]) for rows in groups]),
    )


def _path(kind: Array, logs: F64, kinds: Array, typical: F64) -> Array:
    """Return the position of each event on the best path through the repeated template; -1 if it fits nowhere."""
    n, period = len(kind), len(kinds)
    tilt = np.arange(2 * period) * _SKIP
    score = np.zeros(period)
    came = np.empty((n, period), np.int16)
    stay = np.empty((n, period), bool)
    numbers = np.arange(2 * period)
    for row in range(n):
        twice = np.concatenate((score, score)) - tilt
        reached = np.maximum.accumulate(twice)
        source = np.maximum.accumulate(np.where(twice >= reached, numbers, 0))
        before = slice(period - 1, 2 * period - 1)
        fit = np.maximum(-np.abs(logs[row] - typical) / _SPREAD, _WORST_FIT)
        moved = reached[before] + tilt[before] + np.where(kinds == kind[row], fit, -np.inf)
        left = score + _WORST_FIT
        stay[row] = left >= moved
        came[row] = source[before] % period
        score = np.maximum(left, moved)
        score -= score.max()
    label = np.full(n, -1)
    at = int(np.argmax(score))
    for row in range(n - 1, -1, -1):
        if not stay[row, at]:
            label[row] = at
            at = int(came[row, at])
    return label


def correlation_of_deviations(
    a: Events, b: Events, pairs: tuple[Array, Array], period: int
) -> tuple[float, int] | None:
    """Return the rank correlation of the deviations of the same operators on both sides, and their number.

    A deviation is the logarithm of a duration less the median of its operator. None if these are not known.
    """
    rows_a, rows_b = pairs
    first, last = int(rows_a[0]), int(rows_a[-1]) + 1
    label = positions(a.take(np.arange(first, last)), period)
    if (label >= 0).mean() < _LEAST_LABELLED:
        return None
    of_pair = label[rows_a - first]
    logs = log_durations(a)[rows_a], log_durations(b)[rows_b]
    of_a, of_b = (_deviation(side, of_pair) for side in logs)
    shorter = np.minimum(a.dur[rows_a], b.dur[rows_b])
    quantum = max(a.quantum_ns, b.quantum_ns) / np.maximum(shorter, 1.0)
    used = _usual(of_a, quantum) & _usual(of_b, quantum)
    of_pair = np.where(used, of_pair, -1)  # again without warm-up, which moves the medians of both sides together
    of_a, of_b = (_deviation(side, of_pair) for side in logs)
    used = np.isfinite(of_a) & np.isfinite(of_b)
    if used.sum() < 3:
        return 0.0, int(used.sum())
    return rank_correlation(of_a[used], of_b[used]), int(used.sum())


def correlation_within_iterations(
    a: Events, b: Events, pairs: tuple[Array, Array], at_once_ns: float
) -> list[tuple[float, int]]:
    """Return how well matched work varies together, beyond what all runs of a program have in common.

    The usual duration of each operator and of each iteration is common to all runs; the rest is of one run. It is
    compared for durations, and for the time from one call to the next if that follows at once: other calls may follow a
    schedule that two runs share. The time between operators varies more than the work in them, and both sides record
    all of it.

    Args:
        a, b: the outer events, none of which is missing, and the inner ones.
        pairs: matched rows of both.
        at_once_ns: a call that follows another one within this time did not wait for a schedule.

    Returns:
        The rank correlation and the number of values, for durations and for steps; empty without distinct iterations.
    """
    bursts = _equal_bursts(a.take(np.arange(min(len(a), _MOST_COMPARED))))
    if bursts is None:
        return []
    label, number = bursts
    rows_a, rows_b = (np.asarray(rows)[pairs[0] < len(label)] for rows in pairs)
    order = np.argsort(rows_b, kind="stable")
    rows_a, rows_b = rows_a[order], rows_b[order]
    once = np.append(np.diff(rows_a) != 0, True) & np.insert(np.diff(rows_a) != 0, 0, True)
    pause = b.start[rows_b[1:]] - b.end[rows_b[:-1]]
    step = np.flatnonzero((pause <= at_once_ns) & (np.diff(rows_a) == 1))
    steps = [np.diff(side.start[rows])[step] for side, rows in ((a, rows_a), (b, rows_b))]
    alone = rows_a[once], rows_b[once]
    return [
        _correlation_of_rest(label[alone[0]], number[alone[0]], a.dur[alone[0]], b.dur[alone[1]]),
        _correlation_of_rest(label[rows_a[step]], number[rows_a[step]], *steps),
    ]


def _equal_bursts(events: Events) -> tuple[Array, Array] | None:
    """Return the number of each event within its burst, and the number of its burst; None without equal bursts."""
    # All bursts have the same sequence of kinds, and nearly every pause before one is longer than those in it. A burst
    # may be a part of an iteration with a duration of its own in every run: `_comes_again` finds that.
    pause = np.append(np.inf, events.start[1:] - np.maximum.accumulate(events.end)[:-1])
    what = np.unique(np.column_stack((events.kind, events.labels)), axis=0, return_inverse=True)[1].ravel()
    rows = np.arange(len(events))
    for size in range(2, len(events) // _LEAST_BURSTS + 1):
        if np.array_equal(what[size:], what[:-size]):
            whole = len(events) // size * size
            pauses = pause[:whole].reshape(-1, size)
            least = float(np.quantile(pauses[:, 0], _NEARLY_NONE, method="lower"))
            if least > _TIMES_LONGER * max(float(np.max(np.median(pauses[:, 1:], axis=0))), 1.0):
                return rows % size, rows // size
    return None


def _correlation_of_rest(label: Array, number: Array, outside: F64, inside: F64) -> tuple[float, int]:
    """Return the rank correlation of deviations from the usual of an operator and of an iteration, and their number."""
    deviations = []
    for side in (outside, inside):
        left = _deviation(np.log(np.maximum(side, 1.0)), label)
        deviations.append(_deviation(left, np.where(np.isfinite(left), number, -1)))
    known = np.isfinite(deviations[0]) & np.isfinite(deviations[1])
    if not known.any():
        return 0.0, 0
    label, number, deviations = label[known], number[known], [side[known] for side in deviations]
    same, count = vary_together(*deviations)
    return (0.0, count) if any(_comes_again(label, number, side, same / 2) for side in deviations) else (same, count)


def _comes_again(label: Array, number: Array, deviation: F64, most: float) -> bool:
    """Return whether the variation repeats some bursts later, beyond chance: then it is common to all runs."""
    bursts = int(np.max(number)) + 1
    table = np.full((int(np.max(label)) + 1, bursts), np.nan)
    table[label, number] = deviation
    for distance in range(1, bursts - _LEAST_BURSTS + 2):
        before, after = table[:, :-distance].ravel(), table[:, distance:].ravel()
        known = np.isfinite(before) & np.isfinite(after)
        together, count = vary_together(before[known], after[known]) if known.any() else (0.0, 0)
        if together > most and together * np.sqrt(max(count - 1, 0)) > _REPEATED_SIGMA:
            return True
    return False


def _deviation(logs: F64, label: Array) -> F64:
    """Return each value less the median of those with its label; NaN for labels with fewer than three values."""
    deviations = np.full(len(logs), np.nan)
    order = np.argsort(label, kind="stable")
    starts = np.flatnonzero(np.diff(label[order], prepend=-2))
    for group in np.split(order, starts[1:]):
        if len(group) >= 3 and label[group[0]] >= 0:
            deviations[group] = logs[group] - np.median(logs[group])
    return deviations


def _usual(deviation: F64, quantum: F64) -> Array:
    """Return a mask of usual deviations: without warm-up, which is similar in all runs, and without too coarse ones."""
    size = np.abs(deviation)
    known: Array = np.isfinite(size) & (quantum <= _COARSEST_RESOLUTION)
    if known.any():
        known &= size <= _TIMES_USUAL_DEVIATION * max(float(np.median(size[known])), float(np.median(quantum[known])))
    return known
