# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Loops over all slices: which lie inside others, on which lanes they fit, and which end belongs to which start."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t

import numpy as np

#: The latest end that a slice may have on a lane without open slices, and on one with too many.
cdef int64_t _FREE = INT64_MAX, _FULL = INT64_MIN

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


cdef struct _Entry:
    int64_t key, second, number


@cython.final
cdef class _Heap:
    """Entries in order of their numbers; the first is the least."""

    cdef _Entry *entries
    cdef Py_ssize_t count, _room

    def __dealloc__(self):
        PyMem_Free(self.entries)

    cdef int push(self, _Entry entry) except -1:
        cdef Py_ssize_t at = self.count, above
        cdef _Entry *entries
        if at == self._room:
            entries = <_Entry *>PyMem_Realloc(self.entries, (2 * at + 64) * sizeof(_Entry))
            if entries == NULL:
                raise MemoryError
            self.entries, self._room = entries, 2 * at + 64
        self.count += 1
        while at:
            above = (at - 1) // 2
            if not _is_less(&entry, &self.entries[above]):
                break
            self.entries[at] = self.entries[above]
            at = above
        self.entries[at] = entry
        return 0

    cdef _Entry pop(self) noexcept:
        cdef _Entry first = self.entries[0], last
        cdef Py_ssize_t at = 0, below
        self.count -= 1
        last = self.entries[self.count]
        while 2 * at + 1 < self.count:
            below = 2 * at + 1
            if below + 1 < self.count and _is_less(&self.entries[below + 1], &self.entries[below]):
                below += 1
            if not _is_less(&self.entries[below], &last):
                break
            self.entries[at] = self.entries[below]
            at = below
        self.entries[at] = last
        return first


cdef inline bint _is_less(const _Entry *entry, const _Entry *other) noexcept:
    if entry.key != other.key:
        return entry.key < other.key
    return entry.second < other.second if entry.second != other.second else entry.number < other.number


@cython.final
cdef class _Lanes:
    """The open slices of the lanes of a track: `_OpenSlices` of traceconv/model/layout.py, which explains it.

    Attributes:
        first: the ends of the open slices of the first lane, outermost first.
        depth: their number.
    """

    cdef int64_t[::1] first
    cdef Py_ssize_t depth
    # By further lane: the innermost open slice, -1 for none, and how many are open. By open slice: its end and that
    # around it; the unused ones are linked by the latter, too.
    cdef int64_t[::1] _latest, _innermost, _open, _ends, _outer
    cdef Py_ssize_t _count
    cdef int64_t _unused
    cdef _Heap _closing

    def __cinit__(self, Py_ssize_t max_depth):
        self.first, self._closing, self._unused = np.empty(max_depth, np.int64), _Heap(), -1
        self._innermost, self._open = np.full(1, -1, np.int64), np.zeros(1, np.int64)
        self._ends, self._outer = np.empty((2, 0), np.int64)
        self._latest, self._count = np.full(2, _FREE, np.int64), 1

    cdef int64_t around(self, int64_t time) except? -1:
        """Close the slices that end by this time; return the end of the innermost slice on the first lane."""
        cdef int64_t lane, ended
        while self.depth and self.first[self.depth - 1] <= time:
            self.depth -= 1
        while self._closing.count and self._closing.entries[0].key <= time:
            lane = self._closing.pop().number
            ended = self._innermost[lane]
            self._innermost[lane] = self._outer[ended]
            self._outer[ended], self._unused = self._unused, ended
            self._open[lane] -= 1
            self._update(lane)
        return self.first[self.depth - 1] if self.depth else _FREE

    cdef Py_ssize_t place(self, int64_t end) except -1:
        """Open a slice on the first lane on which it nests or is disjoint; return the lane."""
        cdef Py_ssize_t node = 1, lane
        cdef int64_t opened
        if not self.depth or (end <= self.first[self.depth - 1] and self.depth < self.first.shape[0]):
            self.first[self.depth] = end
            self.depth += 1
            return 0
        if self._latest[1] < end:
            self._grow()
        while node < self._count:
            node *= 2
            if self._latest[node] < end:
                node += 1
        lane = node - self._count
        if self._unused < 0:
            self._add_unused()
        opened = self._unused
        self._unused = self._outer[opened]
        self._ends[opened], self._outer[opened], self._innermost[lane] = end, self._innermost[lane], opened
        self._open[lane] += 1
        self._update(lane)
        self._closing.push(_Entry(end, 0, lane))
        return lane + 1

    cdef void _update(self, int64_t lane) noexcept:
        cdef Py_ssize_t node = lane + self._count
        cdef int64_t value = _FREE
        if self._open[lane] >= self.first.shape[0]:
            value = _FULL
        elif self._open[lane]:
            value = self._ends[self._innermost[lane]]
        while node and self._latest[node] != value:
            self._latest[node] = value
            if node > 1:
                value = max(value, self._latest[node ^ 1])
            node //= 2

    cdef int _grow(self) except -1:
        """Double the number of lanes."""
        cdef Py_ssize_t count = self._count, node
        leaves = np.append(np.asarray(self._latest)[count:], np.full(count, _FREE, np.int64))
        self._innermost = np.append(self._innermost, np.full(count, -1, np.int64))
        self._open = np.append(self._open, np.zeros(count, np.int64))
        self._latest, self._count = np.append(np.full(2 * count, _FREE, np.int64), leaves), 2 * count
        for node in range(2 * count - 1, 0, -1):
            self._latest[node] = max(self._latest[2 * node], self._latest[2 * node + 1])
        return 0

    cdef int _add_unused(self) except -1:
        cdef Py_ssize_t count = self._ends.shape[0], at
        self._ends, self._outer = np.resize(self._ends, 2 * count + 64), np.resize(self._outer, 2 * count + 64)
        for at in range(count, self._ends.shape[0]):
            self._outer[at], self._unused = self._unused, at
        return 0


def assign(
    int64_t[::1] starts, int64_t[::1] ends, int64_t resolution, Py_ssize_t max_depth, marks_of, int32_t[::1] lane,
    uint8_t[::1] marks,
) -> None:
    """Put slices of one track on lanes; see `_assign` of traceconv/model/layout.py.

    Args:
        starts, ends: of the slices in order of begin, then longer first; those of trimmed ones are changed.
        resolution: how much may be trimmed, ns.
        max_depth: how many slices may lie in each other on a lane.
        marks_of: the marks of slices that were trimmed, that cross others, and that are too deep.
        lane, marks: get the lane of each slice, 0 for the track itself, and its marks; zeros before.

    Raises:
        ValueError: columns of different lengths, or a depth of 0.
    """
    cdef Py_ssize_t count = starts.shape[0], upcoming = 0, index
    if not ends.shape[0] == lane.shape[0] == marks.shape[0] == count or max_depth < 1:
        raise ValueError("columns of different lengths, or no depth")
    cdef uint8_t cut, crosses, deep
    cut, crosses, deep = marks_of
    cdef int64_t[::1] earliest = np.array(starts)
    cdef _Heap delayed = _Heap()  # they come at their new starts
    cdef _Lanes lanes = _Lanes(max_depth)
    cdef _Entry entry
    cdef int64_t around
    while upcoming < count or delayed.count:
        if upcoming < count:
            entry = _Entry(starts[upcoming], -ends[upcoming], upcoming)
        if delayed.count and (upcoming == count or _is_less(&delayed.entries[0], &entry)):
            index = delayed.pop().number
        else:
            index = upcoming
            upcoming += 1
        around = lanes.around(starts[index])
        if ends[index] > around and ends[index] - around <= resolution:
            ends[index] = around
            marks[index] |= cut
        elif ends[index] > around and around - earliest[index] <= resolution:
            starts[index] = around  # handled again in the order of its new start
            marks[index] |= cut
            delayed.push(_Entry(around, -ends[index], index))
            continue
        lane[index] = lanes.place(ends[index])
        if lane[index]:
            marks[index] |= crosses if ends[index] > around else deep


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
