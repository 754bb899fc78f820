# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Rows of a trace to lines of Chrome JSON.

A line is put together from chunks that are JSON already (names, categories, keys of process and thread), from times
and numbers, and from args, which are copied. Rows that need more than that are left to the caller, who gets the place
where their lines belong: rows of other kinds, negative times, and args with escapes (`\\u`, a backslash before the
final quote), exponents of three digits or bytes that are not UTF-8.
"""

from libc.string cimport strlen

include "traceconv/families/common/_bytes.pxi"
include "traceconv/families/common/_parts.pxi"

#: Kinds of rows. `name`, `category` and `task` are numbers of chunks, -1 for no category; `number` is the duration of a
#: slice in ns, the id of a flow, or the value of a whole counter. A counter has in `name` the text before its time
#: and in `category` the text before its value.
SLICE, START, END, INSTANT, PROCESS_INSTANT, INTEGER, DOUBLE, OTHER = range(8)

cdef enum:
    _SLICE
    _START
    _END
    _INSTANT
    _PROCESS_INSTANT
    _INTEGER
    _DOUBLE

cdef enum:
    #: Longer than all that stands in a line beside chunks and args.
    _FRAME = 192
    #: Instead of a position in the args: the caller must write them.
    _LEFT = -1

cdef int64_t _MAX = 2**63 - 1


@cython.final
cdef class _Columns:
    """The rows of a block."""

    cdef const uint8_t[::1] kind
    cdef const int64_t[::1] ts, number, args_at
    cdef const double[::1] value
    cdef const int32_t[::1] task, name, category, args_len

    def __cinit__(self, rows):
        self.kind, self.ts, self.number, self.value = rows.kind, rows.ts, rows.number, rows.value
        self.task, self.name, self.category = rows.task, rows.name, rows.category
        self.args_at, self.args_len = rows.args_at, rows.args_len
        if {len(column) for column in vars(rows).values()} != {len(self.kind)}:
            raise IndexError("columns of different lengths")


@cython.final
cdef class LineWriter:
    """Writes the lines of one trace, block after block.

    Args:
        chunks, chunk_ends: chunk n goes from chunk_ends[n] to chunk_ends[n + 1].
        parts: buffers of bytes, in which the args are.

    Raises:
        IndexError: a chunk outside of the chunks.
    """

    cdef const uint8_t[::1] _chunks
    cdef const int64_t[::1] _chunk_ends
    cdef _Parts _parts
    cdef _Columns _rows  # that are being written
    cdef _Buffer _out

    def __init__(self, const uint8_t[::1] chunks, const int64_t[::1] chunk_ends, parts: list) -> None:
        cdef int64_t end, before = 0
        for end in chunk_ends:
            if not before <= end <= chunks.shape[0]:
                raise IndexError("a chunk outside of the chunks")
            before = end
        self._chunks, self._chunk_ends, self._parts, self._out = chunks, chunk_ends, _Parts(parts), _Buffer(1 << 16)

    def write(self, rows, int64_t[::1] ends) -> memoryview:
        """Return the lines of all rows, each after a comma and a line break; valid until the next call.

        Args:
            rows: the columns of a block, by name: kind, ts (ns), number, value, task, name, category; args_at, args_len
                (0 for none).
            ends: is filled with the end of each line; of a row that is left out, with -1 - the place where it belongs.

        Raises:
            IndexError: columns of different lengths, or a chunk or args outside of what is there.
        """
        cdef Py_ssize_t row, begin
        self._rows = _Columns(rows)
        if ends.shape[0] != self._rows.kind.shape[0]:
            raise IndexError("columns of different lengths")
        self._out.used = 0
        for row in range(ends.shape[0]):
            begin = self._out.used
            if self._line(row):
                ends[row] = self._out.used
            else:
                ends[row] = -1 - begin
                self._out.used = begin
        return self._out.view()

    # -- lines; each method says whether it wrote all, or leaves the row to the caller ------------------------

    cdef int _line(self, Py_ssize_t row) except? -1:
        cdef int kind = self._rows.kind[row]
        if kind > _DOUBLE or self._rows.ts[row] < 0 or self._rows.args_len[row] < 0:
            return False
        self._check(row)
        if kind == _SLICE:
            return self._slice(row)
        if kind == _START or kind == _END:
            return self._flow_end(row)
        if kind == _INTEGER or kind == _DOUBLE:
            return self._counter(row)
        return self._instant(row)

    cdef int _slice(self, Py_ssize_t row) except? -1:
        if self._rows.number[row] < 0:
            return False
        self._text(b',\n{"ph":"X","name":')
        self._named(row)
        self._text(b',"dur":')
        self._micros(self._rows.number[row])
        return self._finish(row)

    cdef int _instant(self, Py_ssize_t row) except? -1:
        self._text(b',\n{"ph":"i","name":')
        self._named(row)
        if self._rows.kind[row] == _INSTANT:
            self._text(b',"s":"t"')
        else:
            self._text(b',"s":"p"')
        return self._finish(row)

    cdef bint _flow_end(self, Py_ssize_t row) noexcept:
        if self._rows.number[row] < 0:
            return False
        if self._rows.kind[row] == _START:
            self._text(b',\n{"ph":"s","id":')
        else:
            self._text(b',\n{"ph":"f","bp":"e","id":')
        self._integer(self._rows.number[row])
        self._text(b',"name":')
        self._named(row)
        self._out.byte(c"}")
        return True

    cdef int _counter(self, Py_ssize_t row) except? -1:
        cdef bint is_integer = self._rows.kind[row] == _INTEGER
        if is_integer and self._rows.number[row] < -_MAX:
            return False
        self._text(b",\n")
        self._chunk(self._rows.name[row])
        self._micros(self._rows.ts[row])
        self._chunk(self._rows.category[row])
        if is_integer:
            self._integer(self._rows.number[row])
        else:
            self._double(self._rows.value[row])
        self._text(b"}}")
        return True

    cdef inline void _named(self, Py_ssize_t row) noexcept:
        """Write the members from the name on, which all rows but counters have."""
        self._chunk(self._rows.name[row])
        if self._rows.category[row] >= 0:
            self._text(b',"cat":')
            self._chunk(self._rows.category[row])
        self._chunk(self._rows.task[row])
        self._text(b',"ts":')
        self._micros(self._rows.ts[row])

    cdef inline int _finish(self, Py_ssize_t row) except? -1:
        """Write the args, if there are any, and the end of the line."""
        if self._rows.args_len[row]:
            self._text(b',"args":')
            if not self._args(row):
                return False
        self._out.byte(c"}")
        return True

    cdef inline int _check(self, Py_ssize_t row) except -1:
        """Raise if chunks are out of range, and make room for the line."""
        cdef _Columns rows = self._rows
        cdef Py_ssize_t count = self._chunk_ends.shape[0] - 1
        if rows.category[row] >= count or not 0 <= rows.name[row] < count or not 0 <= rows.task[row] < count:
            raise IndexError("no such chunk")
        cdef Py_ssize_t size = self._size_of(rows.name[row]) + self._size_of(rows.task[row])
        return self._out.room(size + self._size_of(rows.category[row]) + rows.args_len[row] + _FRAME)

    cdef inline Py_ssize_t _size_of(self, Py_ssize_t chunk) noexcept:
        return self._chunk_ends[chunk + 1] - self._chunk_ends[chunk] if chunk >= 0 else 0

    # -- args -------------------------------------------------------------------------------------------------

    cdef int _args(self, Py_ssize_t row) except? -1:
        """Copy args without line breaks and the brackets around them, unless they are left to the caller."""
        cdef const uint8_t *p = self._parts.find(self._rows.args_at[row], self._rows.args_len[row])
        cdef Py_ssize_t begin, i = 0, end = self._rows.args_len[row]
        if p == NULL:
            raise IndexError("args outside of the parts")
        while i < end and _is_blank(p[i]):
            i += 1
        while end > i and _is_blank(p[end - 1]):
            end -= 1
        while 0 <= i < end:
            begin = i
            while i < end and not _needs_look(p[i]):
                i += 1
            self._out.bytes(p + begin, i - begin)
            if i < end:
                i = self._copy_other(p, i, end)
        return i >= 0

    cdef inline Py_ssize_t _copy_other(self, const uint8_t *p, Py_ssize_t i, Py_ssize_t end) noexcept:
        """Copy what needs a look, unless args with it are left to the caller."""
        cdef uint8_t c = p[i]
        if _is_blank(c):
            return self._copy_space(p, i, end)
        if c >= 0x80:
            return self._copy_character(p, i, end)
        if c == c"\\":
            if _is_odd_escape(p, i + 1, end):
                return _LEFT
        elif _is_digit(self._out.p[self._out.used - 1]) and _is_odd_exponent(p, i + 1, end):
            return _LEFT  # (the byte before all args is a colon)
        self._out.byte(c)
        return i + 1

    cdef inline Py_ssize_t _copy_space(self, const uint8_t *p, Py_ssize_t i, Py_ssize_t end) noexcept:
        """Copy white space, unless there is a line break in it, which cannot be in a text."""
        cdef Py_ssize_t stop = i
        cdef bint is_break = False
        while stop < end and _is_blank(p[stop]):
            is_break = is_break or p[stop] == c"\n" or p[stop] == c"\r"
            stop += 1
        if not is_break:
            self._out.bytes(p + i, stop - i)
        return stop

    cdef inline Py_ssize_t _copy_character(self, const uint8_t *p, Py_ssize_t i, Py_ssize_t end) noexcept:
        cdef Py_ssize_t size = _character_size(p, i, end)
        if size == 0:
            return _LEFT
        self._out.bytes(p + i, size)
        return i + size

    # -- bytes ------------------------------------------------------------------------------------------------

    cdef inline void _text(self, const char *text) noexcept:
        self._out.bytes(<const uint8_t *>text, strlen(text))

    cdef inline void _chunk(self, Py_ssize_t chunk) noexcept:
        if chunk >= 0:
            self._out.bytes(&self._chunks[0] + self._chunk_ends[chunk], self._size_of(chunk))

    cdef inline void _integer(self, int64_t number) noexcept:
        """Write a number above -2**63 in decimal digits."""
        if number < 0:
            self._out.byte(c"-")
        self._out.used += _put_digits(self._out.p + self._out.used, -number if number < 0 else number)

    cdef inline void _micros(self, int64_t ns) noexcept:
        """Write ns, which are not negative, as microseconds with as many decimals as needed."""
        cdef int rest = ns % 1000
        self._integer(ns // 1000)
        if rest:
            self._out.byte(c".")
            self._out.byte(c"0" + rest // 100)
            if rest % 100:
                self._out.byte(c"0" + rest // 10 % 10)
                if rest % 10:
                    self._out.byte(c"0" + rest % 10)

    cdef int _double(self, double value) except -1:
        cdef bytes text = repr(value).encode("ascii")
        self._out.bytes(text, len(text))
        return 0


cdef inline bint _needs_look(uint8_t c) noexcept:
    """Return whether a byte of args may need more than copying."""
    if c > c"\\":  # most are
        return c == c"e" or c >= 0x80
    return c == c"\\" or c == c"E" or _is_blank(c)


cdef inline bint _is_blank(uint8_t c) noexcept:
    return c == c" " or c"\t" <= c <= c"\r"


cdef inline bint _is_odd_escape(const uint8_t *p, Py_ssize_t i, Py_ssize_t end) noexcept:
    """Return whether the escape at `i`, after its backslash, is \\u, invalid, or a backslash before a quote."""
    if i >= end:
        return False
    if p[i] == c"\\":
        return i + 1 < end and p[i + 1] == c'"'
    return p[i] == c"u" or _is_blank(p[i])


cdef inline bint _is_odd_exponent(const uint8_t *p, Py_ssize_t i, Py_ssize_t end) noexcept:
    """Return whether the exponent at `i`, after its e, may be too large, or is continued after white space."""
    if i < end and p[i] == c"+":
        i += 1
    cdef Py_ssize_t first = i
    while i < end and _is_digit(p[i]):
        i += 1
    return i - first > 2 or (i < end and _is_blank(p[i]))


cdef Py_ssize_t _character_size(const uint8_t *p, Py_ssize_t i, Py_ssize_t end) noexcept:
    """Return the size of the character beyond ASCII at `i`, in bytes; 0 if it is not UTF-8."""
    cdef uint8_t first = p[i]
    cdef Py_ssize_t size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    cdef Py_ssize_t k
    if first < 0xC2 or first > 0xF4 or i + size > end or not _is_second(first, p[i + 1]):
        return 0
    for k in range(i + 2, i + size):
        if p[k] & 0xC0 != 0x80:
            return 0
    return size


cdef inline bint _is_second(uint8_t first, uint8_t c) noexcept:
    """Return whether `c` may follow `first` in UTF-8: no overlong form, no surrogate, at most U+10FFFF."""
    cdef uint8_t low = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
    cdef uint8_t high = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
    return low <= c <= high
