# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Lines of texts that repeat: what was read once is found by its bytes, and times are read as digits.

Each reader reads whole lines of some data on until a line that it does not know, and tells where that line begins. What
lines mean, the importers say: they read such a line, and tell the reader what it is to put into the columns.
"""

from libc.string cimport memchr

import numpy as np

include "traceconv/families/common/_bytes.pxi"

#: Why reading has ended: the data end or the columns are full; a line is not plain; a frame, a stack, the fields of a
#: line or the last one of them are not known yet.
END, ODD, NEW_FRAME, NEW_STACK, NEW_FIELDS, NEW_LAST = range(6)

cdef enum:
    _END
    _ODD
    _NEW_FRAME
    _NEW_STACK
    _NEW_FIELDS
    _NEW_LAST

#: Milliseconds since 1970 that are taken for such: from 2001, when they got 13 digits, to 2096.
cdef int64_t _FIRST_MS = 1_000_000_000_000
cdef int64_t _LAST_MS = 3_999_999_999_999

cdef enum:
    _MS_DIGITS = 13
    _MAX_LAST = 16  # the bytes of two words
    _MAX_SECONDS = 9  # digits, so that in ns they fit into 64 bits
    _MAX_DIGITS = 18  # so many always fit


cdef inline bint _is_blank(uint8_t byte) noexcept:
    return byte == c" " or byte == c"\t"


cdef inline Py_ssize_t _after_digits(const uint8_t *p, Py_ssize_t at, Py_ssize_t end) noexcept:
    while at < end and _is_digit(p[at]):
        at += 1
    return at


cdef inline Py_ssize_t _before_digits(const uint8_t *p, Py_ssize_t begin, Py_ssize_t at) noexcept:
    """Return the position of the first of the digits that end at `at`."""
    while at > begin and _is_digit(p[at - 1]):
        at -= 1
    return at


cdef inline Py_ssize_t _after_blanks(const uint8_t *p, Py_ssize_t at, Py_ssize_t end) noexcept:
    while at < end and _is_blank(p[at]):
        at += 1
    return at


cdef inline int64_t _with_digits(int64_t number, const uint8_t *p, Py_ssize_t at, Py_ssize_t end) noexcept:
    """Return a number with digits appended."""
    while at < end:
        number = number * 10 + (p[at] - c"0")
        at += 1
    return number


cdef inline Py_ssize_t _line_end(const uint8_t *p, Py_ssize_t at, Py_ssize_t size) noexcept:
    """Return the position of the next line feed, -1 if there is none."""
    cdef const uint8_t *found = <const uint8_t *>memchr(p + at, c"\n", size - at)
    return found - p if found else -1


cdef inline bint _stands_at(const uint8_t *p, Py_ssize_t at, Py_ssize_t size, bytes text) noexcept:
    """Return whether a text is at `at`, with at least one of the `size` bytes after it."""
    cdef Py_ssize_t length = len(text)
    return size - at > length and memcmp(p + at, <const uint8_t *>text, length) == 0


@cython.final
cdef class Timed:
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

    cdef readonly Py_ssize_t row, at
    cdef readonly int64_t number
    cdef readonly Py_ssize_t time, fields, last, end
    cdef readonly int kind
    cdef int64_t[:, ::1] _columns
    cdef const uint8_t *_p  # the data, while `read` runs
    cdef Py_ssize_t _size
    cdef dict _kind_of
    cdef list _markers, _fields_of
    cdef int32_t[::1] _next
    cdef int _before
    cdef _Numbers _known  # by LAST and kind
    cdef int64_t _ts
    cdef uint64_t _low, _high

    def __init__(self, columns) -> None:
        if len(columns) != 3:
            raise ValueError("lines have 3 columns")
        self._columns = columns
        self.forget()

    def clear(self) -> None:
        """Start the columns again."""
        self.row = 0

    def forget(self) -> None:
        """Forget all kinds, and what the caller told about them."""
        #: By marker with its comma, then by fields.
        self._kind_of = {}
        #: By kind.
        self._markers, self._fields_of = [b""], [b""]
        #: By kind, that of the line which followed last time.
        self._next = np.zeros(1 << 8, np.int32)
        self._before = 0
        self._known = _Numbers()

    def add_fields(self, marker: bytes, fields: bytes) -> int:
        """Make a new kind, and return its number."""
        cdef int kind = len(self._markers)
        self._kind_of.setdefault(marker, {})[fields] = kind
        self._markers.append(marker)
        self._fields_of.append(fields)
        if kind >= self._next.shape[0]:
            self._next = np.concatenate((self._next, np.zeros_like(self._next)))
        return kind

    def add_last(self, int kind, last: bytes, int number) -> None:
        """Note what to put into the columns for lines of a kind with this LAST, for which nothing is known yet.

        Raises:
            ValueError: `last` is none, or a number is negative.
        """
        cdef bytes line = last + b"\n"
        if kind < 0 or number < 0 or not last or self._pack(line, 0, len(line)) != len(last):
            raise ValueError("not the last field of a line")
        self._known.set(self._low, self._high, kind, number)

    def read(self, data: bytes, Py_ssize_t at, int64_t number) -> int:
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
        cdef Py_ssize_t room = self._columns.shape[1]
        cdef int64_t what
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
            what = self._known.get(self._low, self._high, self.kind)
            if what < 0:
                return _NEW_LAST
            self._append(what)
        return _END

    cdef inline void _append(self, int64_t what) noexcept:
        """Put the line into the columns, and go on after it."""
        self._columns[0, self.row] = self._ts
        self._columns[1, self.row] = what
        self._columns[2, self.row] = self.number
        self._before = self.kind
        self.row += 1
        self.number += 1
        self.at = self.end + 1

    cdef bint _parse(self):
        """Parse the line; return whether it has that form. If so, all is known but the kind, which may be 0."""
        self.kind = self._next[self._before]
        self.time = self._after_marker()
        if self.time < 0:
            return False
        self.fields = self._after_time(self.time)
        if self.fields < 0:
            return False
        return self._has_expected_fields() or self._look_up()

    cdef inline Py_ssize_t _after_marker(self):
        """Return the position of the time, -1 without a marker. Expect no kind if the marker is of another one."""
        cdef const uint8_t *p = self._p
        cdef Py_ssize_t at
        cdef bytes marker = self._markers[self.kind]
        if self.kind and _stands_at(p, self.at, self._size, marker):
            return self.at + len(marker)
        self.kind = 0
        at = self._field_end(self.at)
        if at + 1 < self._size and p[at] == c"," and p[at + 1] == c"v":
            at = self._field_end(at + 1)
        return at + 1 if at < self._size and p[at] == c"," else -1

    cdef Py_ssize_t _field_end(self, Py_ssize_t at) noexcept:
        """Return the position of the next comma or line feed, or the end of the data."""
        cdef const uint8_t *p = self._p
        while at < self._size and p[at] != c"," and p[at] != c"\n":
            at += 1
        return at

    cdef inline Py_ssize_t _after_time(self, Py_ssize_t at) noexcept:
        """Read the time; return the position after it and its comma, -1 if there is none."""
        cdef const uint8_t *p = self._p
        cdef Py_ssize_t point = _after_digits(p, at, min(self._size, at + _MS_DIGITS))
        cdef int64_t ms = _with_digits(0, p, at, point)
        if not _FIRST_MS <= ms <= _LAST_MS or point >= self._size or p[point] != c".":
            return -1
        cdef Py_ssize_t end = _after_digits(p, point + 1, min(self._size, point + 7))
        if end == point + 1 or end >= self._size or p[end] != c",":
            return -1
        cdef int64_t ns = _with_digits(ms, p, point + 1, end)
        cdef Py_ssize_t missing
        for missing in range(end, point + 7):
            ns *= 10
        self._ts = ns
        return end + 1

    cdef inline bint _has_expected_fields(self):
        """Return whether the line has the FIELDS of the expected kind, and some LAST."""
        if not self.kind:
            return False
        cdef bytes fields = self._fields_of[self.kind]
        self.last = self.fields + len(fields) + 1
        if not _stands_at(self._p, self.fields, self._size, fields) or self._p[self.last - 1] != c",":
            return False
        self.end = self._pack(self._p, self.last, self._size)
        return self.end > self.last

    cdef bint _look_up(self):
        """Find FIELDS, LAST and the kind of the line; return whether it has them."""
        self.end = _line_end(self._p, self.fields, self._size)
        if self.end < 0:
            return False
        self.last = self.end
        while self.last > self.fields and self._p[self.last - 1] != c",":
            self.last -= 1
        if self.last <= self.fields + 1 or self.last == self.end or self._pack(self._p, self.last, self._size) < 0:
            return False
        by_fields = self._kind_of.get(self._p[self.at : self.time])
        self.kind = 0 if by_fields is None else by_fields.get(self._p[self.fields : self.last - 1], 0)
        return True

    cdef inline Py_ssize_t _pack(self, const uint8_t *p, Py_ssize_t at, Py_ssize_t size) noexcept:
        """Put the LAST at a position into two words; return the end of its line, -1 if there is no LAST or no end."""
        cdef uint64_t first = 0, word = 0
        cdef uint8_t byte
        cdef Py_ssize_t i
        for i in range(at, size):
            byte = p[i]
            if byte == c"\n":
                if i - at <= 8:
                    first, word = word, 0
                self._low, self._high = first, word
                return i
            if byte == c"," or byte == 0 or i - at >= _MAX_LAST:
                return -1
            if i - at == 8:
                first, word = word, 0
            word = word << 8 | byte
        return -1


cdef struct _FirstLine:
    int64_t time
    bint six_decimals
    int64_t head, number, tail


@cython.final
cdef class Samples:
    """Reads samples: a line HEAD SECONDS.DECIMALS: [NUMBER] TAIL, lines of frames, and a blank line or the next sample.

    A line of a frame begins with a tab. A sample is read when all of it is known, up to the first line of the next one.

    Args:
        heads: the text before the time, to the values to put into the columns.
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

    cdef readonly Py_ssize_t row, at
    cdef readonly int64_t line
    cdef readonly Py_ssize_t new_frame
    cdef readonly bint any_sample
    cdef readonly int64_t frame_lines, blank_lines
    cdef readonly bint six_decimals
    cdef dict _heads, _tails, _frames, _stacks
    cdef int64_t[:, ::1] _columns
    cdef const uint8_t *_p  # the data, while `read` runs
    cdef int64_t _line
    cdef bint _is_open
    cdef _FirstLine _first, _next
    cdef int64_t[::1] _stack
    cdef Py_ssize_t _depth, _seconds, _point
    cdef int _why

    def __init__(self, heads: dict, tails: dict, frames: dict, stacks: dict, max_frames: int, columns) -> None:
        if len(columns) != 6:
            raise ValueError("samples have 6 columns")
        if max_frames < 1:
            raise ValueError("no room for frames")
        self._heads, self._tails, self._frames, self._stacks = heads, tails, frames, stacks
        self._columns = columns
        #: The frames of the sample at hand, the innermost first.
        self._stack = np.zeros(max_frames, np.int64)

    def clear(self) -> None:
        """Start the columns again."""
        self.row = 0

    def stack(self) -> list:
        """Return the frames of the sample at which `read` ended with NEW_STACK, the innermost first."""
        return list(self._stack[: self._depth])

    def read(self, data: bytes, Py_ssize_t at, int64_t line) -> int:
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
        cdef Py_ssize_t end, size = len(data)
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

    cdef inline bint _read_line(self, Py_ssize_t at, Py_ssize_t end):
        """Read a line; return whether to go on after it. If not, `_why` has the reason."""
        if self._p[at] == c"\t":
            return self._read_frame(at, end)
        if at == end:
            return self._read_blank(at)
        return self._read_first(at, end)

    cdef inline bint _stop(self, int why) noexcept:
        self._why = why
        return False

    cdef bint _read_frame(self, Py_ssize_t at, Py_ssize_t end):
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

    cdef bint _read_blank(self, Py_ssize_t at):
        if not self._is_open:
            return self._stop(_ODD)
        if not self._complete():
            return self._stop(_NEW_STACK)
        self.blank_lines += 1
        self.at, self.line = at + 1, self._line + 1
        return True

    cdef bint _read_first(self, Py_ssize_t at, Py_ssize_t end):
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

    cdef bint _parse_first(self, Py_ssize_t at, Py_ssize_t end):
        """Put the content of a line into `_next`; return whether all of it is known."""
        cdef _FirstLine *found = &self._next
        cdef Py_ssize_t colon = self._find_time(at, end)
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

    cdef inline Py_ssize_t _find_time(self, Py_ssize_t at, Py_ssize_t end) noexcept:
        """Return the position of the colon after the first time of a line, -1 if there is none."""
        cdef const uint8_t *p = self._p
        cdef Py_ssize_t i
        for i in range(at, end):
            if p[i] == c":" and _is_blank(p[i + 1]) and self._is_time(at, i):
                return i
        return -1

    cdef inline bint _is_time(self, Py_ssize_t at, Py_ssize_t colon) noexcept:
        """Return whether SECONDS.DECIMALS, after a blank or a line start, precede a colon; note where."""
        cdef const uint8_t *p = self._p
        cdef Py_ssize_t point = _before_digits(p, at, colon) - 1
        if point <= at or p[point] != c"." or (colon - point != 7 and colon - point != 10):
            return False
        self._point = point
        self._seconds = _before_digits(p, at, point)
        return self._seconds < point and (self._seconds == at or _is_blank(p[self._seconds - 1]))

    cdef inline Py_ssize_t _after_number(self, Py_ssize_t at, Py_ssize_t end) noexcept:
        """Read the number, 1 if there is none; return the position after it and the blanks around it."""
        cdef const uint8_t *p = self._p
        at = _after_blanks(p, at, end)
        cdef Py_ssize_t after = _after_digits(p, at, min(end, at + _MAX_DIGITS))
        if after > at and _is_blank(p[after]):
            self._next.number = _with_digits(0, p, at, after)
            return _after_blanks(p, after, end)
        self._next.number = 1
        return at

    # -- the sample at hand -----------------------------------------------------------------------------------------

    cdef int _begin(self):
        """Start a sample with the line that was parsed last."""
        self._first = self._next
        self._is_open = True
        self._depth = 0
        cdef int64_t frame = self._first.tail >> 32
        if frame:
            self._stack[0] = frame
            self._depth = 1
        return 0

    cdef bint _complete(self):
        """Put the sample at hand, which ends before this line, into the columns; not if its stack is not known."""
        cdef _FirstLine *first = &self._first
        cdef int64_t stack = self._find_stack()
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

    cdef int64_t _find_stack(self):
        """Return the number of the stack, -1 if it is not known."""
        cdef int64_t stack = -1
        cdef Py_ssize_t i = self._depth
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
