"""Lines of texts that say the same again and again: what was read once is found by its bytes, times are read as digits.

Each function reads whole lines of `data` from `at` on until a line that it does not know, and tells where that line
begins. What lines mean, the importers say: they read such a line, and put what it holds into the dicts.
"""

from __future__ import annotations

import os
from array import array

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcmp

#: Why `samples` has stopped: at the end of the data, at a line that is not plain, at a frame or stack not known yet.
END, ODD, NEW_FRAME, NEW_STACK = 0, 1, 2, 3

_MASK = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_FACTOR = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
#: Differs from run to run, so that nobody can prepare lines that fall into the same slot; it changes no output.
_SEED = cython.declare(cython.ulonglong, int.from_bytes(os.urandom(8), "little"))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _stands_at(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, text: bytes) -> cython.bint:
    """Whether a text stands at a place of `size` bytes, and something behind it."""
    length: cython.Py_ssize_t = len(text)
    if size - at <= length:
        return False
    if cython.compiled:
        return memcmp(p + at, cython.cast(cython.p_const_uchar, text), length) == 0
    return p[at : at + length] == text


@cython.final
@cython.cclass
class Timed:
    """Lines of comma separated fields: MARKER,[vN,]MILLISECONDS,FIELDS,LAST.

    The milliseconds count from 1970: 13 digits (from 2001 on) that are less than 4e12 (2096), so that in ns they are,
    with any duration added, far below 2**62; and 1 to 6 decimals. LAST has at most 16 bytes.

    Lines of one MARKER and one FIELDS are a kind, counted from 1 on. What follows a line of a kind is mostly what has
    followed it before, and then nothing has to be looked up but LAST.
    """

    _kind_of: dict
    _markers: list
    _fields: list
    _next: cython.int[::1]
    _before: cython.int
    _slots: cython.ulonglong[::1]
    _count: cython.Py_ssize_t
    _low: cython.ulonglong
    _high: cython.ulonglong

    def __init__(self) -> None:
        #: By marker with its comma, then by fields.
        self._kind_of = {}
        #: By kind.
        self._markers, self._fields = [b""], [b""]
        self._next = memoryview(array("i", bytes(4 << 8)))
        self._before = 0
        # The bytes of LAST in two words, then the kind above 32 bits and the caller's number plus 1.
        self._slots = memoryview(array("Q", bytes(8 * 3 << 10)))
        self._count = 0

    def add_fields(self, marker: bytes, fields: bytes) -> int:
        """Make a kind of what is none yet, and tell its number."""
        kind: cython.int = len(self._fields)
        old: cython.Py_ssize_t = self._next.shape[0]
        following: cython.int[::1]
        self._kind_of.setdefault(marker, {})[fields] = kind
        self._markers.append(marker)
        self._fields.append(fields)
        if kind >= old:
            following = memoryview(array("i", bytes(8 * old)))
            following[:old] = self._next
            self._next = following
        return kind

    def add_last(self, kind: cython.int, last: bytes, number: cython.int) -> None:
        """Note what `read` is to say about lines of a kind with this LAST, of which it knows none yet.

        Raises:
            ValueError: `last` is none, or a number is negative.
        """
        if kind < 0 or number < 0 or self._pack(last + b"\n", 0, len(last) + 1) != len(last) or not last:
            raise ValueError("not the last field of a line")
        if 2 * self._count >= self._slots.shape[0] // 3:
            self._grow()
        self._place(self._low, self._high, (cython.cast(cython.ulonglong, kind) << 32) | (number + 1))
        self._count += 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _slot(self, low: cython.ulonglong, high: cython.ulonglong, kind: cython.ulonglong) -> cython.ulonglong:
        mixed: cython.ulonglong = ((low ^ _SEED) * _FACTOR) & _MASK
        mixed ^= mixed >> 32
        mixed = ((mixed ^ high ^ (kind << 40)) * _FACTOR) & _MASK
        return (mixed ^ mixed >> 29) & (cython.cast(cython.ulonglong, self._slots.shape[0]) // 3 - 1)

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _place(self, low: cython.ulonglong, high: cython.ulonglong, entry: cython.ulonglong) -> cython.void:
        mask: cython.ulonglong = self._slots.shape[0] // 3 - 1
        slot: cython.ulonglong = self._slot(low, high, entry >> 32)
        while self._slots[3 * slot + 2]:
            slot = (slot + 1) & mask
        self._slots[3 * slot], self._slots[3 * slot + 1], self._slots[3 * slot + 2] = low, high, entry

    @cython.cfunc
    def _grow(self) -> cython.int:
        """Twice as much; the slots stay at most half full."""
        old: cython.ulonglong[::1] = self._slots
        at: cython.Py_ssize_t
        self._slots = memoryview(array("Q", bytes(16 * old.shape[0])))
        for at in range(0, old.shape[0], 3):
            if old[at + 2]:
                self._place(old[at], old[at + 1], old[at + 2])
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _pack(self, p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the line ends whose LAST begins at a place: -1 if it ends nowhere or that is no LAST."""
        word: cython.ulonglong = 0
        byte: cython.ulonglong
        i: cython.Py_ssize_t = at
        self._low = 0
        while i < size:
            byte = p[i]
            if byte == 10:
                if i - at <= 8:
                    self._low, self._high = word, 0
                else:
                    self._high = word
                return i
            if byte == 44 or byte == 0 or i - at >= 16:
                return -1
            if i - at == 8:
                self._low, word = word, 0
            word = (word << 8 | byte) & _MASK
            i += 1
        return -1

    @cython.boundscheck(False)
    def read(
        self,
        data: bytes,
        at: cython.Py_ssize_t,
        number: cython.longlong,
        row: cython.Py_ssize_t,
        ts: cython.longlong[::1],
        what: cython.longlong[::1],
        origin: cython.longlong[::1],
    ) -> tuple:
        """Read lines that are known.

        Args:
            data: whole lines.
            at: where to begin.
            number: the number of the line there.
            row: where to go on in the columns.
            ts: the times, in ns.
            what: what `add_last` was told about such lines.
            origin: the numbers of the lines.

        Returns:
            The next row; where the first line begins that was not read, and its number; where its FIELDS, its LAST
            and its line end are, if it is of that form, else 0; and its kind, if there is one for its fields, else 0.

        Raises:
            ValueError: `at` or `row` is negative.
        """
        newline: cython.int = 10
        comma: cython.int = 44
        point: cython.int = 46
        zero: cython.int = 48
        nine: cython.int = 57
        lower_v: cython.int = 118
        view: cython.p_const_uchar = data
        size: cython.Py_ssize_t = len(data)
        room: cython.Py_ssize_t = min(len(ts), len(what), len(origin))
        i: cython.Py_ssize_t
        start: cython.Py_ssize_t
        fields: cython.Py_ssize_t
        last: cython.Py_ssize_t
        digits: cython.Py_ssize_t
        value: cython.longlong
        kind: cython.int
        mask: cython.ulonglong
        slot: cython.ulonglong
        entry: cython.ulonglong
        text: bytes
        if at < 0 or row < 0:
            raise ValueError("a place before the first")
        while row < room and at < size:
            kind = self._next[self._before]
            text = self._markers[kind]
            i = at
            if kind and _stands_at(view, at, size, text):
                start = at + len(text)
            else:
                kind = 0
                while i < size and view[i] != comma and view[i] != newline:
                    i += 1
                if i + 1 < size and view[i] == comma and view[i + 1] == lower_v:
                    i += 1
                    while i < size and view[i] != comma and view[i] != newline:
                        i += 1
                if i >= size or view[i] != comma:
                    break
                start = i + 1
            i = start
            value = 0
            while i < size and i - start < 13 and zero <= view[i] <= nine:
                value = value * 10 + (view[i] - zero)
                i += 1
            if not 1000000000000 <= value < 4000000000000 or i >= size or view[i] != point:
                break
            i += 1
            digits = 0
            while i < size and digits < 6 and zero <= view[i] <= nine:
                value = value * 10 + (view[i] - zero)
                i += 1
                digits += 1
            if digits == 0 or i >= size or view[i] != comma:
                break
            while digits < 6:
                value *= 10
                digits += 1
            fields = i + 1
            if kind:
                text = self._fields[kind]
                last = fields + len(text) + 1
                if _stands_at(view, fields, size, text) and view[last - 1] == comma:
                    i = self._pack(view, last, size)
                    if i <= last:
                        kind = 0
                else:
                    kind = 0
            if not kind:
                i = fields
                while i < size and view[i] != newline:
                    i += 1
                if i >= size:
                    break
                last = i
                while last > fields and view[last - 1] != comma:
                    last -= 1
                if last <= fields + 1 or last == i or self._pack(view, last, size) < 0:
                    break
                kind = self._kind(data[at:start], data[fields : last - 1])
                if not kind:
                    return row, at, number, fields, last, i, 0
            self._next[self._before] = kind
            mask = self._slots.shape[0] // 3 - 1
            slot = self._slot(self._low, self._high, kind)
            entry = self._slots[3 * slot + 2]
            while entry and (
                entry >> 32 != kind or self._slots[3 * slot] != self._low or self._slots[3 * slot + 1] != self._high
            ):
                slot = (slot + 1) & mask
                entry = self._slots[3 * slot + 2]
            if not entry:
                return row, at, number, fields, last, i, kind
            self._before = kind
            ts[row] = value
            what[row] = cython.cast(cython.longlong, entry & 0xFFFFFFFF) - 1
            origin[row] = number
            row += 1
            number += 1
            at = i + 1
        return row, at, number, 0, 0, 0, 0

    @cython.cfunc
    def _kind(self, marker: bytes, fields: bytes) -> cython.int:
        """The kind of a line, 0 if there is none."""
        by_fields = self._kind_of.get(marker)
        return 0 if by_fields is None else by_fields.get(fields, 0)


@cython.boundscheck(False)
@cython.wraparound(False)
def samples(
    data: bytes,
    at: cython.Py_ssize_t,
    number: cython.longlong,
    heads: dict,
    tails: dict,
    frames: dict,
    stacks: dict,
    stack: cython.longlong[::1],
    row: cython.Py_ssize_t,
    columns: cython.longlong[:, ::1],
) -> tuple:
    """Samples: a line HEAD SECONDS.DECIMALS: [NUMBER] TAIL, lines of frames, and a blank line or the next sample.

    A line of a frame begins with a tab. A sample is read when all of it is known; if not, `at` is where it begins.

    Args:
        data: whole lines.
        at: where to begin.
        number: the number of the line there.
        heads: what precedes the time, to what to put into the columns.
        tails: what follows the number, with the line end; to what to put into the columns, and above 32 bits the number
            of a frame (from 1 on; 0 is none).
        frames: lines with their ends, to the numbers of the frames, from 1 on.
        stacks: the number of a caller's stack plus 1, shifted by 32 bits, and that of the frame that it called, to the
            number of that stack; 0 to the number of an empty stack.
        stack: takes the frames of the sample at hand, the innermost first.
        row: where to go on in the columns.
        columns: each row is a column: times in ns, numbers of lines, heads, tails, numbers (1 if there is none),
            stacks.

    Returns:
        Why the reading ended, the next row, where the first sample begins that was not read, the number of that line;
        how many lines of frames and blank lines were read; whether a time had 6 decimals and not 9; whether the first
        line was a sample; and where a frame is that is not known, or how many frames a new stack has.

    Raises:
        ValueError: `at` or `row` is negative, there is no room for frames, or the columns are not 6.
    """
    newline: cython.int = 10
    tab: cython.int = 9
    space: cython.int = 32
    full_stop: cython.int = 46
    colon: cython.int = 58
    zero: cython.int = 48
    nine: cython.int = 57
    view: cython.p_const_uchar = data
    size: cython.Py_ssize_t = len(data)
    room: cython.Py_ssize_t = columns.shape[1]
    most_frames: cython.Py_ssize_t = len(stack)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    point: cython.Py_ssize_t
    start: cython.Py_ssize_t
    depth: cython.Py_ssize_t
    line: cython.longlong
    time: cython.longlong = 0
    weight: cython.longlong = 1
    parent: cython.longlong
    tail: cython.longlong = 0
    frame_lines: cython.longlong = 0
    blank: cython.longlong = 0
    short: cython.bint = False
    is_short: cython.bint = False
    any_sample: cython.bint = False
    pending: cython.bint = False
    head: cython.longlong = 0
    begin: cython.Py_ssize_t = at
    pending_short: cython.bint = False
    next_head: cython.longlong = 0
    why: cython.int = END
    more: cython.Py_ssize_t = 0
    pending_line: cython.longlong = number
    pending_time: cython.longlong = 0
    pending_weight: cython.longlong = 1
    pending_tail: cython.longlong = 0
    ends_here: cython.bint
    if columns.shape[0] != 6:
        raise ValueError("samples have 6 columns")
    if at < 0 or row < 0:
        raise ValueError("a place before the first")
    if most_frames == 0:
        raise ValueError("no room for frames")
    depth = 0
    line = number
    i = at  # of the line at hand
    while True:
        # -- one line from i on; a sample may be pending, which began at `begin`
        if i >= size:
            why = END
            break
        ends_here = False
        if view[i] == tab:
            if not pending:
                why = ODD
                break
            j = i
            while j < size and view[j] != newline:
                j += 1
            if j >= size:
                why = END
                break
            found = frames.get(view[i : j + 1])
            if found is None:
                why = NEW_FRAME
                more = i
                break
            if depth >= most_frames:
                why = ODD
                break
            stack[depth] = found
            depth += 1
            i = j + 1
            line += 1
            continue
        if view[i] == newline:
            if not pending:
                why = ODD
                break
            ends_here = True
        else:
            # -- the head: up to the first SECONDS.DECIMALS: that stands between blanks
            j = i
            start = -1
            point = -1
            while j < size and view[j] != newline:
                if view[j] == colon and j + 1 < size and (view[j + 1] == space or view[j + 1] == tab):
                    point = j - 1
                    while point >= i and zero <= view[point] <= nine:
                        point -= 1
                    if point > i and view[point] == full_stop and (j - point == 7 or j - point == 10):
                        start = point
                        while start > i and zero <= view[start - 1] <= nine:
                            start -= 1
                        if start < point and (start == i or view[start - 1] == space or view[start - 1] == tab):
                            break
                        start = -1
                j += 1
            if j >= size and start < 0:
                why = END
                break
            if start < 0 or point - start > 9:
                why = ODD
                break
            found = heads.get(view[i:start])
            if found is None:
                why = ODD
                break
            next_head = found
            time = 0
            for k in range(start, j):
                if k != point:
                    time = time * 10 + (view[k] - zero)
            is_short = j - point == 7
            if is_short:
                time *= 1000
            # -- the number and the tail
            j += 1
            while j < size and (view[j] == space or view[j] == tab):
                j += 1
            k = j
            weight = 0
            while k < size and k - j < 18 and zero <= view[k] <= nine:
                weight = weight * 10 + (view[k] - zero)
                k += 1
            if k > j and k < size and (view[k] == space or view[k] == tab):
                while k < size and (view[k] == space or view[k] == tab):
                    k += 1
            else:
                weight = 1
                k = j
            j = k
            while k < size and view[k] != newline:
                k += 1
            if k >= size:
                why = END
                break
            found = tails.get(view[j : k + 1])
            if found is None:
                why = ODD
                break
            tail = found
        if not pending:
            any_sample = True
        else:
            # -- the pending sample is complete: its stack, from the outermost frame on
            parent = -1
            if depth == 0:
                found = stacks.get(0)
                if found is None:
                    why = NEW_STACK
                    more = 0
                    break
                parent = found
            k = depth
            found = 0
            while k > 0:
                k -= 1
                found = stacks.get(((parent + 1) << 32) | stack[k])
                if found is None:
                    break
                parent = found
            if found is None:
                why = NEW_STACK
                more = depth
                break
            columns[0, row] = pending_time
            columns[1, row] = pending_line
            columns[2, row] = head
            columns[3, row] = pending_tail & 0xFFFFFFFF
            columns[4, row] = pending_weight
            columns[5, row] = parent
            row += 1
            frame_lines += line - pending_line - 1
            blank += ends_here
            short |= pending_short
            pending = False
            if ends_here:
                i += 1
                line += 1
            begin = i
            pending_line = line
            if ends_here:
                continue
        if row >= room:
            why = END
            break
        pending = True
        begin = i
        head = next_head
        pending_line = line
        pending_time = time
        pending_weight = weight
        pending_tail = tail
        pending_short = is_short
        depth = 0
        if tail >> 32:
            stack[0] = tail >> 32
            depth = 1
        i = k + 1
        line += 1
    return why, row, begin, pending_line, frame_lines, blank, short, any_sample, more
