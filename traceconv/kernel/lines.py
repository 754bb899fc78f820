# cython: wraparound=False, initializedcheck=False
"""Lines of texts that say the same again and again: what was read once is found by its bytes, times are read as digits.

Each reader reads whole lines of some data on until a line that it does not know, and tells where that line begins. What
lines mean, the importers say: they read such a line, and tell the reader what it is to put into the columns.
"""

from __future__ import annotations

import os
from array import array

import cython

if cython.compiled:
    from cython.cimports.libc.string import memchr, memcmp

#: Why reading has ended: the data end or the columns are full; a line is not plain; a frame, a stack, the fields of a
#: line or the last one of them are not known yet.
END, ODD, NEW_FRAME, NEW_STACK, NEW_FIELDS, NEW_LAST = range(6)

_END = cython.declare(cython.int, 0)
_ODD = cython.declare(cython.int, 1)
_NEW_FRAME = cython.declare(cython.int, 2)
_NEW_STACK = cython.declare(cython.int, 3)
_NEW_FIELDS = cython.declare(cython.int, 4)
_NEW_LAST = cython.declare(cython.int, 5)

#: Milliseconds since 1970 that are taken for such: from 2001, when they got 13 digits, to 2096.
_FIRST_MS = cython.declare(cython.longlong, 1_000_000_000_000)
_LAST_MS = cython.declare(cython.longlong, 3_999_999_999_999)
_MS_DIGITS = cython.declare(cython.int, 13)
_MAX_LAST = cython.declare(cython.Py_ssize_t, 16)  # the bytes of two words

_MAX_SECONDS = cython.declare(cython.Py_ssize_t, 9)  # digits, so that in ns they fit into 64 bits
_MAX_DIGITS = cython.declare(cython.Py_ssize_t, 18)  # so many always fit

_MASK = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_LOW = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_FACTOR = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
#: Differs from run to run, so that nobody can prepare lines that fall into the same slot; it changes no output.
_SEED = cython.declare(cython.ulonglong, int.from_bytes(os.urandom(8), "little"))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_digit(byte: cython.uchar) -> cython.bint:
    return ord("0") <= byte <= ord("9")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_blank(byte: cython.uchar) -> cython.bint:
    return byte == ord(" ") or byte == ord("\t")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _after_digits(p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while at < end and _is_digit(p[at]):
        at += 1
    return at


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _before_digits(p: cython.p_const_uchar, begin: cython.Py_ssize_t, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the digits begin that end at a place."""
    while at > begin and _is_digit(p[at - 1]):
        at -= 1
    return at


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _after_blanks(p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while at < end and _is_blank(p[at]):
        at += 1
    return at


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _with_digits(
    number: cython.longlong, p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.longlong:
    """A number with digits added at its end."""
    while at < end:
        number = number * 10 + (p[at] - ord("0"))
        at += 1
    return number


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _line_end(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the next line feed is, -1 if there is none."""
    if cython.compiled:
        found: cython.p_const_uchar = cython.cast(cython.p_const_uchar, memchr(p + at, ord("\n"), size - at))
        return found - p if found else -1
    return p.find(b"\n", at, size)


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
class _Numbers:
    """Numbers, not negative, for 16 bytes, given as two words, and a kind.

    Open addressing with linear steps, in slots of three words: the bytes, then the kind above 32 bits and the number
    plus 1.
    """

    _slots: cython.ulonglong[::1]
    _mask: cython.ulonglong
    _count: cython.ulonglong

    def __init__(self) -> None:
        self._count = 0
        self._resize(1 << 10)

    @cython.cfunc
    def _resize(self, slots: cython.ulonglong) -> cython.int:
        self._slots = memoryview(array("Q", bytes(8 * 3 * slots)))
        self._mask = slots - 1
        return 0

    @cython.cfunc
    def add(
        self, low: cython.ulonglong, high: cython.ulonglong, kind: cython.ulonglong, number: cython.ulonglong
    ) -> cython.int:
        """Note the number of what has none yet."""
        if 2 * self._count > self._mask:
            self._grow()
        self._count += 1
        self._place(low, high, kind << 32 | (number + 1))
        return 0

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def find(self, low: cython.ulonglong, high: cython.ulonglong, kind: cython.ulonglong) -> cython.longlong:
        """The number, -1 if there is none."""
        slot: cython.ulonglong = self._first_slot(low, high, kind)
        entry: cython.ulonglong = self._slots[3 * slot + 2]
        while entry and (entry >> 32 != kind or self._slots[3 * slot] != low or self._slots[3 * slot + 1] != high):
            slot = (slot + 1) & self._mask
            entry = self._slots[3 * slot + 2]
        return cython.cast(cython.longlong, entry & _LOW) - 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _first_slot(self, low: cython.ulonglong, high: cython.ulonglong, kind: cython.ulonglong) -> cython.ulonglong:
        mixed: cython.ulonglong = ((low ^ _SEED) * _FACTOR) & _MASK
        mixed ^= mixed >> 32
        mixed = ((mixed ^ high ^ (kind << 40)) * _FACTOR) & _MASK
        return (mixed ^ mixed >> 29) & self._mask

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _place(self, low: cython.ulonglong, high: cython.ulonglong, entry: cython.ulonglong) -> cython.void:
        slot: cython.ulonglong = self._first_slot(low, high, entry >> 32)
        while self._slots[3 * slot + 2]:
            slot = (slot + 1) & self._mask
        self._slots[3 * slot], self._slots[3 * slot + 1], self._slots[3 * slot + 2] = low, high, entry

    @cython.cfunc
    def _grow(self) -> cython.int:
        """Twice as many slots, so that at most half of them are taken."""
        old: cython.ulonglong[::1] = self._slots
        at: cython.Py_ssize_t
        self._resize(2 * (self._mask + 1))
        for at in range(0, old.shape[0], 3):
            if old[at + 2]:
                self._place(old[at], old[at + 1], old[at + 2])
        return 0


@cython.final
@cython.cclass
class Timed:
    """Reads lines of comma separated fields: MARKER,[vN,]MILLISECONDS,FIELDS,LAST.

    The milliseconds count from 1970: 13 digits (from 2001 on) that are less than 4e12 (2096), so that in ns they are,
    with any duration added, far below 2**62; and 1 to 6 decimals. LAST has at most 16 bytes.

    Lines of one MARKER and one FIELDS are a kind, counted from 1 on. What follows a line of a kind is mostly what has
    followed it before, and then nothing has to be looked up but LAST.

    Args:
        columns: where lines go, each row is a column: times in ns, what `add_last` was told, numbers of the lines.

    Attributes:
        row: how many lines the columns hold; the caller takes them and calls `clear`.
        at, number: where the first line begins that was not read, and its number.
        time, fields, last, end: where in that line its time, FIELDS, LAST and line end are, and
        kind: its kind, 0 if there is none; if `read` has ended with NEW_FIELDS or NEW_LAST.
    """

    row = cython.declare(cython.Py_ssize_t, visibility="readonly")
    at = cython.declare(cython.Py_ssize_t, visibility="readonly")
    number = cython.declare(cython.longlong, visibility="readonly")
    time = cython.declare(cython.Py_ssize_t, visibility="readonly")
    fields = cython.declare(cython.Py_ssize_t, visibility="readonly")
    last = cython.declare(cython.Py_ssize_t, visibility="readonly")
    end = cython.declare(cython.Py_ssize_t, visibility="readonly")
    kind = cython.declare(cython.int, visibility="readonly")
    _columns: cython.longlong[:, ::1]
    _p: cython.p_const_uchar  # the data, while `read` runs
    _size: cython.Py_ssize_t
    _kind_of: dict
    _markers: list
    _fields_of: list
    _next: cython.int[::1]
    _before: cython.int
    _numbers: _Numbers
    _ts: cython.longlong
    _low: cython.ulonglong
    _high: cython.ulonglong

    def __init__(self, columns) -> None:
        if len(columns) != 3:
            raise ValueError("lines have 3 columns")
        self._columns = columns
        self.row = self.at = self.number = 0
        self.time = self.fields = self.last = self.end = self.kind = 0
        self.forget()

    def clear(self) -> None:
        """Begin the columns anew."""
        self.row = 0

    def forget(self) -> None:
        """Forget all kinds, and what was told about them."""
        #: By marker with its comma, then by fields.
        self._kind_of = {}
        #: By kind.
        self._markers, self._fields_of = [b""], [b""]
        #: By kind, that of the line which followed last time.
        self._next = memoryview(array("i", bytes(4 << 8)))
        self._before = 0
        self._numbers = _Numbers()

    def add_fields(self, marker: bytes, fields: bytes) -> int:
        """Make a kind of what is none yet, and tell its number."""
        kind: cython.int = len(self._markers)
        old: cython.Py_ssize_t = self._next.shape[0]
        following: cython.int[::1]
        self._kind_of.setdefault(marker, {})[fields] = kind
        self._markers.append(marker)
        self._fields_of.append(fields)
        if kind >= old:
            following = memoryview(array("i", bytes(8 * old)))
            following[:old] = self._next
            self._next = following
        return kind

    def add_last(self, kind: cython.int, last: bytes, number: cython.int) -> None:
        """Note what to put into the columns for lines of a kind with this LAST, for which nothing is known yet.

        Raises:
            ValueError: `last` is none, or a number is negative.
        """
        line: bytes = last + b"\n"
        if kind < 0 or number < 0 or not last or self._pack(line, 0, len(line)) != len(last):
            raise ValueError("not the last field of a line")
        self._numbers.add(self._low, self._high, kind, number)

    def read(self, data: bytes, at: cython.Py_ssize_t, number: cython.longlong) -> int:
        """Read lines that are known.

        Args:
            data: whole lines.
            at: where to begin.
            number: the number of the line there.

        Returns:
            END, ODD, NEW_FIELDS or NEW_LAST.

        Raises:
            ValueError: `at` is negative.
        """
        room: cython.Py_ssize_t = self._columns.shape[1]
        what: cython.longlong
        if at < 0:
            raise ValueError("a place before the first")
        self._p, self._size = data, len(data)
        self.at, self.number = at, number
        while self.row < room and self.at < self._size:
            if not self._parse():
                return _ODD
            if not self.kind:
                return _NEW_FIELDS
            self._next[self._before] = self.kind
            what = self._numbers.find(self._low, self._high, self.kind)
            if what < 0:
                return _NEW_LAST
            self._append(what)
        return _END

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _append(self, what: cython.longlong) -> cython.void:
        """Put the line into the columns, and go on behind it."""
        self._columns[0, self.row] = self._ts
        self._columns[1, self.row] = what
        self._columns[2, self.row] = self.number
        self._before = self.kind
        self.row += 1
        self.number += 1
        self.at = self.end + 1

    @cython.cfunc
    @cython.boundscheck(False)
    def _parse(self) -> cython.bint:
        """Whether the line is of that form; if so, all about it is known but its kind may be 0."""
        self.kind = self._next[self._before]
        self.time = self._after_marker()
        if self.time < 0:
            return False
        self.fields = self._after_time(self.time)
        if self.fields < 0:
            return False
        return self._has_expected_fields() or self._look_up()

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    def _after_marker(self) -> cython.Py_ssize_t:
        """Where the time begins, -1 if there is no marker; if it is not that of the expected kind, none is expected."""
        p: cython.p_const_uchar = self._p
        at: cython.Py_ssize_t
        marker: bytes = self._markers[self.kind]
        if self.kind and _stands_at(p, self.at, self._size, marker):
            return self.at + len(marker)
        self.kind = 0
        at = self._field_end(self.at)
        if at + 1 < self._size and p[at] == ord(",") and p[at + 1] == ord("v"):
            at = self._field_end(at + 1)
        return at + 1 if at < self._size and p[at] == ord(",") else -1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _field_end(self, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the next comma or line feed is, or the end of the data."""
        p: cython.p_const_uchar = self._p
        while at < self._size and p[at] != ord(",") and p[at] != ord("\n"):
            at += 1
        return at

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _after_time(self, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Behind the time, which is read, and its comma; -1 if there is none."""
        p: cython.p_const_uchar = self._p
        point: cython.Py_ssize_t = _after_digits(p, at, min(self._size, at + _MS_DIGITS))
        ms: cython.longlong = _with_digits(0, p, at, point)
        if not _FIRST_MS <= ms <= _LAST_MS or point >= self._size or p[point] != ord("."):
            return -1
        end: cython.Py_ssize_t = _after_digits(p, point + 1, min(self._size, point + 7))
        if end == point + 1 or end >= self._size or p[end] != ord(","):
            return -1
        ns: cython.longlong = _with_digits(ms, p, point + 1, end)
        missing: cython.Py_ssize_t
        for missing in range(end, point + 7):  # noqa: B007 a loop of Py_ssize_t
            ns *= 10
        self._ts = ns
        return end + 1

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    def _has_expected_fields(self) -> cython.bint:
        """Whether the line has the FIELDS of the expected kind, and some LAST."""
        if not self.kind:
            return False
        fields: bytes = self._fields_of[self.kind]
        self.last = self.fields + len(fields) + 1
        if not _stands_at(self._p, self.fields, self._size, fields) or self._p[self.last - 1] != ord(","):
            return False
        self.end = self._pack(self._p, self.last, self._size)
        return self.end > self.last

    @cython.cfunc
    def _look_up(self) -> cython.bint:
        """Find FIELDS and LAST and the kind of the line; whether it has them."""
        self.end = _line_end(self._p, self.fields, self._size)
        if self.end < 0:
            return False
        self.last = self.end
        while self.last > self.fields and self._p[self.last - 1] != ord(","):
            self.last -= 1
        if self.last <= self.fields + 1 or self.last == self.end or self._pack(self._p, self.last, self._size) < 0:
            return False
        by_fields = self._kind_of.get(self._p[self.at : self.time])
        self.kind = 0 if by_fields is None else by_fields.get(self._p[self.fields : self.last - 1], 0)
        return True

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _pack(self, p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Put the LAST at a place into two words; where its line ends, -1 if it ends nowhere or that is no LAST."""
        first: cython.ulonglong = 0
        word: cython.ulonglong = 0
        byte: cython.uchar
        i: cython.Py_ssize_t
        for i in range(at, size):
            byte = p[i]
            if byte == ord("\n"):
                if i - at <= 8:
                    self._low, self._high = word, 0
                else:
                    self._low, self._high = first, word
                return i
            if byte == ord(",") or byte == 0 or i - at >= _MAX_LAST:
                return -1
            if i - at == 8:
                first, word = word, 0
            word = (word << 8 | byte) & _MASK
        return -1


@cython.final
@cython.cclass
class _FirstLine:
    """What the first line of a sample says."""

    time: cython.longlong
    six_decimals: cython.bint
    head: cython.longlong
    number: cython.longlong
    tail: cython.longlong


@cython.final
@cython.cclass
class Samples:
    """Reads samples: a line HEAD SECONDS.DECIMALS: [NUMBER] TAIL, lines of frames, and a blank line or the next sample.

    A line of a frame begins with a tab. A sample is read when all of it is known, up to the first line of the next one.

    Args:
        heads: what precedes the time, to what to put into the columns.
        tails: what follows the number, with the line end; to what to put into the columns, and above 32 bits the number
            of a frame (from 1 on; 0 is none).
        frames: lines with their ends, to the numbers of the frames, from 1 on.
        stacks: the number of a caller's stack plus 1, shifted by 32 bits, and that of the frame that it called, to the
            number of that stack; 0 to the number of an empty stack.
        max_frames: samples with more than so many frames are not plain.
        columns: where samples go, each row is a column: times in ns, numbers of lines, heads, tails, numbers (1 if
            there is none), stacks.

    Attributes:
        row: how many samples the columns hold; the caller takes them and calls `clear`.
        at, line: where the first sample begins that was not read, and the number of that line.
        new_frame: where the line is for which `read` has ended with NEW_FRAME.
        any_sample: whether the first line of the last `read` began a sample.
        frame_lines, blank_lines: how many lines of frames and blank lines were read so far.
        six_decimals: whether any time had 6 decimals and not 9.
    """

    row = cython.declare(cython.Py_ssize_t, visibility="readonly")
    at = cython.declare(cython.Py_ssize_t, visibility="readonly")
    line = cython.declare(cython.longlong, visibility="readonly")
    new_frame = cython.declare(cython.Py_ssize_t, visibility="readonly")
    any_sample = cython.declare(cython.bint, visibility="readonly")
    frame_lines = cython.declare(cython.longlong, visibility="readonly")
    blank_lines = cython.declare(cython.longlong, visibility="readonly")
    six_decimals = cython.declare(cython.bint, visibility="readonly")
    _heads: dict
    _tails: dict
    _frames: dict
    _stacks: dict
    _columns: cython.longlong[:, ::1]
    _p: cython.p_const_uchar  # the data, while `read` runs
    _line: cython.longlong
    _is_open: cython.bint
    _first: _FirstLine
    _next: _FirstLine
    _stack: cython.longlong[::1]
    _depth: cython.Py_ssize_t
    _seconds: cython.Py_ssize_t
    _point: cython.Py_ssize_t
    _why: cython.int

    def __init__(self, heads: dict, tails: dict, frames: dict, stacks: dict, max_frames: int, columns) -> None:
        if len(columns) != 6:
            raise ValueError("samples have 6 columns")
        if max_frames < 1:
            raise ValueError("no room for frames")
        self._heads, self._tails, self._frames, self._stacks = heads, tails, frames, stacks
        self._columns = columns
        #: The frames of the sample at hand, the innermost first.
        self._stack = memoryview(array("q", bytes(8 * max_frames)))
        self._first, self._next = _FirstLine(), _FirstLine()
        self.row = self.at = self.line = self.new_frame = 0
        self.frame_lines = self.blank_lines = 0
        self.any_sample = self.six_decimals = False
        self._depth = self._seconds = self._point = 0

    def clear(self) -> None:
        """Begin the columns anew."""
        self.row = 0

    def stack(self) -> list:
        """The frames of the sample for which `read` has ended with NEW_STACK, the innermost first."""
        return list(self._stack[: self._depth])

    def read(self, data: bytes, at: cython.Py_ssize_t, line: cython.longlong) -> int:
        """Read samples that are known.

        Args:
            data: whole lines.
            at: where to begin.
            line: the number of the line there.

        Returns:
            END, ODD, NEW_FRAME or NEW_STACK.

        Raises:
            ValueError: `at` is negative.
        """
        size: cython.Py_ssize_t = len(data)
        end: cython.Py_ssize_t
        if at < 0:
            raise ValueError("a place before the first")
        self._p = data
        self.at, self.line, self._line = at, line, line
        self.any_sample = self._is_open = False
        self._why = _END
        while at < size:
            end = _line_end(self._p, at, size)
            if end < 0 or not self._read_line(at, end):
                break
            at = end + 1
            self._line += 1
        return self._why

    @cython.cfunc
    @cython.inline
    def _read_line(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Whether to read on behind a line; if not, `_why` says why."""
        if self._p[at] == ord("\t"):
            return self._read_frame(at, end)
        if at == end:
            return self._read_blank(at)
        return self._read_first(at, end)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _stop(self, why: cython.int) -> cython.bint:
        self._why = why
        return False

    @cython.cfunc
    @cython.boundscheck(False)
    def _read_frame(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        if not self._is_open:
            return self._stop(_ODD)
        frame = self._frames.get(self._p[at : end + 1])
        if frame is None:
            self.new_frame = at
            return self._stop(_NEW_FRAME)
        if self._depth == self._stack.shape[0]:
            return self._stop(_ODD)
        self._stack[self._depth] = frame
        self._depth += 1
        return True

    @cython.cfunc
    def _read_blank(self, at: cython.Py_ssize_t) -> cython.bint:
        if not self._is_open:
            return self._stop(_ODD)
        if not self._complete():
            return self._stop(_NEW_STACK)
        self.blank_lines += 1
        self.at, self.line = at + 1, self._line + 1
        return True

    @cython.cfunc
    def _read_first(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        if not self._parse_first(at, end):
            return self._stop(_ODD)
        self.any_sample = True
        if self._is_open and not self._complete():
            return self._stop(_NEW_STACK)
        self.at, self.line = at, self._line
        if self.row >= self._columns.shape[1]:
            return self._stop(_END)
        self._begin()
        return True

    # -- the first line of a sample ---------------------------------------------------------------------------------

    @cython.cfunc
    def _parse_first(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Put what a line says into `_next`; whether all of it is known."""
        found: _FirstLine = self._next
        colon: cython.Py_ssize_t = self._find_time(at, end)
        if colon < 0 or self._point - self._seconds > _MAX_SECONDS:
            return False
        head = self._heads.get(self._p[at : self._seconds])
        if head is None:
            return False
        found.head = head
        found.time = _with_digits(0, self._p, self._seconds, self._point)
        found.time = _with_digits(found.time, self._p, self._point + 1, colon)
        found.six_decimals = colon - self._point == 7
        if found.six_decimals:
            found.time *= 1000
        tail = self._tails.get(self._p[self._after_number(colon + 1, end) : end + 1])
        if tail is None:
            return False
        found.tail = tail
        return True

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _find_time(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The colon behind the first time of a line, -1 if there is none."""
        p: cython.p_const_uchar = self._p
        i: cython.Py_ssize_t
        for i in range(at, end):
            if p[i] == ord(":") and _is_blank(p[i + 1]) and self._is_time(at, i):
                return i
        return -1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _is_time(self, at: cython.Py_ssize_t, colon: cython.Py_ssize_t) -> cython.bint:
        """Whether a blank, or the line's begin, and SECONDS.DECIMALS precede a colon; where they are is noted."""
        p: cython.p_const_uchar = self._p
        point: cython.Py_ssize_t = _before_digits(p, at, colon) - 1
        if point <= at or p[point] != ord(".") or (colon - point != 7 and colon - point != 10):
            return False
        self._point = point
        self._seconds = _before_digits(p, at, point)
        return self._seconds < point and (self._seconds == at or _is_blank(p[self._seconds - 1]))

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _after_number(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Behind the number, which is 1 where there is none, and the blanks around it."""
        p: cython.p_const_uchar = self._p
        at = _after_blanks(p, at, end)
        after: cython.Py_ssize_t = _after_digits(p, at, min(end, at + _MAX_DIGITS))
        if after > at and _is_blank(p[after]):
            self._next.number = _with_digits(0, p, at, after)
            return _after_blanks(p, after, end)
        self._next.number = 1
        return at

    # -- the sample at hand -----------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.boundscheck(False)
    def _begin(self) -> cython.int:
        """The line that was parsed last begins a sample."""
        self._first, self._next = self._next, self._first
        self._is_open = True
        self._depth = 0
        frame: cython.longlong = self._first.tail >> 32
        if frame:
            self._stack[0] = frame
            self._depth = 1
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    def _complete(self) -> cython.bint:
        """Put the sample at hand, which ends before this line, into the columns; not if its stack is not known."""
        first: _FirstLine = self._first
        stack: cython.longlong = self._find_stack()
        if stack < 0:
            return False
        self._columns[0, self.row] = first.time
        self._columns[1, self.row] = self.line
        self._columns[2, self.row] = first.head
        self._columns[3, self.row] = first.tail & 0xFFFFFFFF
        self._columns[4, self.row] = first.number
        self._columns[5, self.row] = stack
        self.row += 1
        self.frame_lines += self._line - self.line - 1
        self.six_decimals |= first.six_decimals
        self._is_open = False
        return True

    @cython.cfunc
    @cython.boundscheck(False)
    def _find_stack(self) -> cython.longlong:
        """The number of the stack, -1 if it is not known."""
        stack: cython.longlong = -1
        i: cython.Py_ssize_t = self._depth
        if i == 0:
            empty = self._stacks.get(0)
            return -1 if empty is None else empty
        while i > 0:  # from the outermost frame on
            i -= 1
            found = self._stacks.get(((stack + 1) << 32) | self._stack[i])
            if found is None:
                return -1
            stack = found
        return stack
