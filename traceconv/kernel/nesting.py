# cython: wraparound=False, initializedcheck=False
"""Which slices lie inside which: the loops over all of them."""

from __future__ import annotations

from array import array

import cython


def first_crossing(
    tracks,
    starts,
    ends,
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    max_depth: cython.Py_ssize_t,
) -> int:
    """The first row that crosses the slice around it or lies deeper than max_depth slices; `stop` if there is none.

    Args:
        tracks, starts, ends: of slices in order of track, then begin, then longer first.
        first, stop: the rows to look at, of whole tracks.
        max_depth: how many slices may lie in each other.

    Raises:
        ValueError: rows outside of the columns.
    """
    track_of: cython.const_int[::1] = memoryview(tracks)
    start_of: cython.const_longlong[::1] = memoryview(starts)
    end_of: cython.const_longlong[::1] = memoryview(ends)
    if not 0 <= first <= stop <= min(track_of.shape[0], start_of.shape[0], end_of.shape[0]):
        raise ValueError("rows outside of the columns")
    open_ends: cython.longlong[::1] = memoryview(array("q", bytes(8 * max_depth + 8)))
    depth: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    for row in range(first, stop):
        if row > first and track_of[row] != track_of[row - 1]:
            depth = 0
        while depth and open_ends[depth - 1] <= start_of[row]:
            depth -= 1
        if depth >= max_depth or (depth and end_of[row] > open_ends[depth - 1]):
            return row
        open_ends[depth] = end_of[row]
        depth += 1
    return stop


@cython.boundscheck(False)
def innermost(
    starts: cython.const_longlong[::1],
    ends: cython.const_longlong[::1],
    points: cython.const_longlong[::1],
    found: cython.longlong[::1],
) -> None:
    """Put into `found`, for each point, the innermost slice around it, -1 where there is none.

    See traceconv/families/chrome/flows.py.

    Args:
        starts, ends: of slices in order of begin, the longer first.
        points: in order of time.

    Raises:
        ValueError: columns of different lengths.
    """
    if ends.shape[0] != starts.shape[0] or found.shape[0] < points.shape[0]:
        raise ValueError("columns of different lengths")
    stack: cython.longlong[::1] = memoryview(array("q", bytes(8 * starts.shape[0] + 8)))
    depth: cython.Py_ssize_t = 0
    upcoming: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t
    at: cython.Py_ssize_t
    ending: cython.longlong
    point: cython.longlong
    for at in range(points.shape[0]):
        point = points[at]
        if at > 0 and point == points[at - 1]:  # many slices may end here: one look at all of them is enough
            found[at] = found[at - 1]
            continue
        while upcoming < starts.shape[0] and starts[upcoming] <= point:
            while depth and ends[stack[depth - 1]] < starts[upcoming]:
                depth -= 1
            stack[depth] = upcoming
            depth += 1
            upcoming += 1
        while depth and ends[stack[depth - 1]] < point:
            depth -= 1
        ending = -1
        found[at] = -1
        for place in range(depth - 1, -1, -1):
            if ends[stack[place]] > point or starts[stack[place]] == point:
                found[at] = stack[place]
                break
            if ends[stack[place]] == point and ending < 0:
                ending = stack[place]
        if found[at] < 0:
            found[at] = ending
