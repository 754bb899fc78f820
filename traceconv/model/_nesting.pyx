# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Which slices lie inside which: the loops over all of them."""

from libc.stdint cimport int32_t, int64_t

import numpy as np


def first_crossing(
    const int32_t[::1] tracks,
    const int64_t[::1] starts,
    const int64_t[::1] ends,
    Py_ssize_t first,
    Py_ssize_t stop,
    Py_ssize_t max_depth,
) -> int:
    """The first row that crosses the slice around it or lies deeper than max_depth slices; `stop` if there is none.

    Args:
        tracks, starts, ends: of slices in order of track, then begin, then longer first.
        first, stop: the rows to look at, of whole tracks.
        max_depth: how many slices may lie in each other.

    Raises:
        ValueError: rows outside of the columns.
    """
    if not 0 <= first <= stop <= min(tracks.shape[0], starts.shape[0], ends.shape[0]):
        raise ValueError("rows outside of the columns")
    cdef int64_t[::1] open_ends = np.empty(max_depth + 1, np.int64)
    cdef Py_ssize_t row, depth = 0
    for row in range(first, stop):
        if row > first and tracks[row] != tracks[row - 1]:
            depth = 0
        while depth and open_ends[depth - 1] <= starts[row]:
            depth -= 1
        if depth >= max_depth or (depth and ends[row] > open_ends[depth - 1]):
            return row
        open_ends[depth] = ends[row]
        depth += 1
    return stop


def innermost(
    const int64_t[::1] starts, const int64_t[::1] ends, const int64_t[::1] points, int64_t[::1] found
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
    cdef int64_t[::1] stack = np.empty(starts.shape[0], np.int64)
    cdef Py_ssize_t place, at, depth = 0, upcoming = 0
    cdef int64_t ending, point
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
