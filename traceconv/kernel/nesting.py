# cython: wraparound=False, initializedcheck=False
"""Whether slices nest: the loop over all of them, which lanes.py and validate.py need."""

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
    """
    track_of: cython.const_int[::1] = memoryview(tracks)
    start_of: cython.const_longlong[::1] = memoryview(starts)
    end_of: cython.const_longlong[::1] = memoryview(ends)
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
