"""Begins and ends of slices, in order, to pairs of rows."""

from __future__ import annotations

import cython
import numpy as np

_FIRST_ROOM = 1 << 10


@cython.boundscheck(False)
@cython.wraparound(False)
def pair(
    order: cython.const_longlong[::1],
    track: cython.const_int[::1],
    is_begin: cython.const_uchar[::1],
    name: cython.const_int[::1],
    names: int,
    unnamed: int,
    begins: cython.longlong[::1],
    ends: cython.longlong[::1],
) -> int:
    """Join each end with its begin: the innermost open one of that name, or else the innermost one.

    Args:
        order: the rows of the other columns, track by track and in order of time.
        track, is_begin, name: the begins and ends; names are numbers.
        names: all names are less.
        unnamed: the name of ends that end the innermost slice.
        begins, ends: are filled with the rows of each pair, track by track in the order of their ends; then those that
            never end, outermost first. -1 stands for what is missing.

    Returns:
        The number of pairs.

    Raises:
        IndexError: a row or name out of range, or too little room.
    """
    marks: cython.Py_ssize_t = order.shape[0]
    rows: cython.Py_ssize_t = track.shape[0]
    limit: cython.int = names
    nameless: cython.int = unnamed
    if is_begin.shape[0] < rows or name.shape[0] < rows or begins.shape[0] < marks or ends.shape[0] < marks:
        raise IndexError("columns of different lengths")
    # Open slices from the outermost on: their rows, -1 for one that ended before those inside of it, and for each the
    # place of the next one further out with the same name.
    stack: cython.longlong[::1] = np.empty(_FIRST_ROOM, np.int64)
    outer: cython.longlong[::1] = np.empty(_FIRST_ROOM, np.int64)
    innermost: cython.longlong[::1] = np.full(max(names, 1), -1, np.int64)
    room: cython.Py_ssize_t = _FIRST_ROOM
    depth: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    row: cython.Py_ssize_t
    own: cython.int
    here: cython.int = -1
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
        own = name[row]
        if is_begin[row]:
            if depth == room:
                stack, outer = np.resize(stack, 2 * depth), np.resize(outer, 2 * depth)
                room = 2 * depth
            stack[depth] = row
            outer[depth] = innermost[own]
            innermost[own] = depth
            depth += 1
            continue
        ends[count] = row
        k = depth - 1
        if own != nameless and innermost[own] >= 0:
            k = innermost[own]
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
