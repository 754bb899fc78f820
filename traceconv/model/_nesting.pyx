# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Loops over all slices: which of them lie inside others, and which end belongs to which start."""

from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

ctypedef fused _Rows:
    int32_t
    int64_t


def first_crossing(
    const int32_t[::1] tracks,
    const int64_t[::1] starts,
    const int64_t[::1] durations,
    Py_ssize_t first,
    Py_ssize_t stop,
    Py_ssize_t max_depth,
) -> int:
    """Return the first row that crosses the slice around it or lies deeper than max_depth slices; `stop` if none does.

    Args:
        tracks, starts, durations: of slices in order of track, then begin, then longer first.
        first, stop: the rows to look at, of whole tracks.
        max_depth: how many slices may lie in each other.

    Raises:
        ValueError: rows outside of the columns.
    """
    if not 0 <= first <= stop <= min(tracks.shape[0], starts.shape[0], durations.shape[0]):
        raise ValueError("rows outside of the columns")
    cdef int64_t[::1] open_ends = np.empty(max_depth + 1, np.int64)
    cdef Py_ssize_t row, depth = 0
    cdef int64_t end
    for row in range(first, stop):
        end = starts[row] + durations[row]
        if row > first and tracks[row] != tracks[row - 1]:
            depth = 0
        while depth and open_ends[depth - 1] <= starts[row]:
            depth -= 1
        if depth >= max_depth or (depth and end > open_ends[depth - 1]):
            return row
        open_ends[depth] = end
        depth += 1
    return stop


def nest(
    const int64_t[::1] starts, const int64_t[::1] ends, Py_ssize_t row, int64_t[::1] open_ends, Py_ssize_t depth
) -> tuple[int, int]:
    """Open and close slices of one track from a row on, until one crosses the slice around it or lies too deep.

    Args:
        starts, ends: of the slices in order of begin, then longer first.
        row: the next slice.
        open_ends: the ends of the open slices, outermost first, and room for as many as may be open.
        depth: how many slices are open.

    Returns:
        That row, or the number of slices; and how many slices are open before it.

    Raises:
        ValueError: a row or depth outside of the columns.
    """
    cdef Py_ssize_t stop = starts.shape[0], room = open_ends.shape[0]
    if ends.shape[0] != stop or not 0 <= row <= stop or not 0 <= depth <= room:
        raise ValueError("a row or depth outside of the columns")
    while row < stop:
        while depth and open_ends[depth - 1] <= starts[row]:
            depth -= 1
        if depth >= room or (depth and ends[row] > open_ends[depth - 1]):
            break
        open_ends[depth] = ends[row]
        depth += 1
        row += 1
    return row, depth


def nesting(
    const int32_t[::1] tracks,
    const int64_t[::1] starts,
    const int64_t[::1] durations,
    _Rows[::1] parent,
    int32_t[::1] depth,
    int64_t[::1] self_ns,
) -> None:
    """Fill in the nesting of slices; see traceconv/answers/nesting.py.

    Args:
        tracks, starts, durations: of slices in order of track, then begin, then longer first, that nest.
        parent: gets the row of the slice around each, -1 without one.
        depth: gets the number of slices around each.
        self_ns: holds the durations; those of the slices directly inside are subtracted.

    Raises:
        ValueError: columns of different lengths.
    """
    cdef Py_ssize_t row, level = 0, room = 1 << 10, count = tracks.shape[0]
    if min(starts.shape[0], durations.shape[0], parent.shape[0], depth.shape[0], self_ns.shape[0]) < count:
        raise ValueError("columns of different lengths")
    cdef int64_t[::1] stack = np.empty(room, np.int64)
    cdef int64_t above
    for row in range(count):
        if row > 0 and tracks[row] != tracks[row - 1]:
            level = 0
        while level and starts[stack[level - 1]] + durations[stack[level - 1]] <= starts[row]:
            level -= 1
        parent[row] = -1
        depth[row] = level
        if level:
            above = stack[level - 1]
            parent[row] = above
            self_ns[above] -= durations[row]
        if level == room:
            stack = np.resize(stack, 2 * room)
            room *= 2
        stack[level] = row
        level += 1


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
    cdef Py_ssize_t at, depth = 0, upcoming = 0
    cdef int64_t point
    for at in range(points.shape[0]):
        point = points[at]
        while upcoming < starts.shape[0] and starts[upcoming] <= point:
            while depth and ends[stack[depth - 1]] < starts[upcoming]:
                depth -= 1
            stack[depth] = upcoming
            depth += 1
            upcoming += 1
        while depth and ends[stack[depth - 1]] < point:
            depth -= 1
        found[at] = stack[depth - 1] if depth else -1


def pair(
    const int64_t[::1] order,
    const int32_t[::1] track,
    const uint8_t[::1] is_begin,
    const int32_t[::1] name,
    names: int,
    unnamed: int,
    int64_t[::1] begins,
    int64_t[::1] ends,
) -> int:
    """Join each end with its start: the innermost open one of that name, or else the innermost one.

    Args:
        order: the rows of the other columns, track by track and in order of time.
        track, is_begin, name: the starts and ends; names are numbers.
        names: all names are less.
        unnamed: the name of ends that end the innermost slice.
        begins, ends: are filled with the rows of each pair, track by track in the order of their ends; then those that
            never end, outermost first. -1 stands for what is missing.

    Returns:
        The number of pairs.

    Raises:
        IndexError: a row or name out of range, or too little room.
    """
    cdef Py_ssize_t marks = order.shape[0]
    cdef Py_ssize_t rows = track.shape[0]
    cdef int limit = names
    cdef int nameless = unnamed
    if is_begin.shape[0] < rows or name.shape[0] < rows or begins.shape[0] < marks or ends.shape[0] < marks:
        raise IndexError("columns of different lengths")
    # Open slices from the outermost on: their rows, -1 for one that ended before those inside of it, and for each the
    # place of the next one further out with the same name.
    cdef int64_t[::1] stack = np.empty(1 << 10, np.int64)
    cdef int64_t[::1] outer = np.empty(1 << 10, np.int64)
    cdef int64_t[::1] innermost = np.full(max(names, 1), -1, np.int64)
    cdef Py_ssize_t room = 1 << 10
    cdef Py_ssize_t depth = 0
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t i, k, row
    cdef int row_name
    cdef int here = -1
    for i in range(marks + 1):
        row = order[i] if i < marks else -1
        if i < marks and (row < 0 or row >= rows or name[row] < 0 or name[row] >= limit):
            raise IndexError("no such row or name")
        if i == marks or track[row] != here:
            for k in range(depth):
                if stack[k] >= 0:
                    begins[count], ends[count] = stack[k], -1
                    innermost[name[stack[k]]] = -1
                    count += 1
            depth = 0
            if i == marks:
                break
            here = track[row]
        row_name = name[row]
        if is_begin[row]:
            if depth == room:
                stack, outer = np.resize(stack, 2 * depth), np.resize(outer, 2 * depth)
                room = 2 * depth
            stack[depth] = row
            outer[depth] = innermost[row_name]
            innermost[row_name] = depth
            depth += 1
            continue
        ends[count] = row
        k = depth - 1
        if row_name != nameless and innermost[row_name] >= 0:
            k = innermost[row_name]
        if k < 0:
            begins[count] = -1
        else:
            begins[count] = stack[k]
            innermost[name[stack[k]]] = outer[k]
            stack[k] = -1
            while depth > 0 and stack[depth - 1] < 0:
                depth -= 1
        count += 1
    return count
