# cython: wraparound=False, initializedcheck=False
"""Rows of a trace to lines of Chrome JSON.

A line is put together from pieces that are JSON already (names, categories, what tells process and thread), from times
and numbers, and from args, which are copied. Rows that need more than that are left to the caller, who gets the place
where their lines belong: rows of other kinds, negative times, and args with escapes (`\\u`, a backslash before the
final quote), exponents of three digits or bytes that are not UTF-8.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.string import strlen

#: Kinds of rows. `name`, `category` and `task` are numbers of pieces, -1 for no category; `number` is the duration of a
#: slice in ns, the id of an arrow, or the value of a whole counter. A counter has in `name` what stands before its time
#: and in `category` what stands before its value.
SLICE, START, END, INSTANT, PROCESS_INSTANT, INTEGER, DOUBLE, OTHER = range(8)

_SLICE = cython.declare(cython.int, 0)
_START = cython.declare(cython.int, 1)
_END = cython.declare(cython.int, 2)
_INSTANT = cython.declare(cython.int, 3)
_INTEGER = cython.declare(cython.int, 5)
_DOUBLE = cython.declare(cython.int, 6)
#: Longer than all that stands in a line beside pieces and args.
_FRAME = cython.declare(cython.Py_ssize_t, 192)
_MAX_DOUBLE = cython.declare(cython.Py_ssize_t, 32)
_MAX = cython.declare(cython.longlong, 2**63 - 1)
#: Instead of a position in the args: the caller must write them.
_LEFT = cython.declare(cython.Py_ssize_t, -1)


@cython.final
@cython.cclass
class LineWriter:
    """Writes the lines of one trace, block after block.

    Args:
        pieces, piece_ends: piece n is what stands from piece_ends[n] to piece_ends[n + 1].
        parts: buffers of bytes, in which the args are.

    Raises:
        IndexError: a piece outside of the pieces.
    """

    _pieces: cython.const_uchar[::1]
    _piece_ends: cython.const_longlong[::1]
    _parts: list

    # The rows that are being written.
    _kind: cython.const_uchar[::1]
    _ts: cython.const_longlong[::1]
    _number: cython.const_longlong[::1]
    _value: cython.const_double[::1]
    _task: cython.const_int[::1]
    _name: cython.const_int[::1]
    _category: cython.const_int[::1]
    _args_at: cython.const_longlong[::1]
    _args_len: cython.const_int[::1]
    _part: cython.const_int[::1]

    # What is written, and the part in which the last args were, -1 for none.
    _out: cython.p_uchar
    _at: cython.Py_ssize_t
    _room: cython.Py_ssize_t
    _known_part: cython.int
    _known: cython.const_uchar[::1]

    def __init__(self, pieces: cython.const_uchar[::1], piece_ends: cython.const_longlong[::1], parts: list) -> None:
        end: cython.longlong
        before: cython.longlong = 0
        for end in piece_ends:
            if not before <= end <= pieces.shape[0]:
                raise IndexError("a piece outside of the pieces")
            before = end
        if pieces.shape[0] == 0:
            raise IndexError("no pieces")
        self._pieces = pieces
        self._piece_ends = piece_ends
        self._parts = parts
        self._known_part = -1
        self._known = pieces

    def write(
        self,
        kind: cython.const_uchar[::1],
        ts: cython.const_longlong[::1],
        number: cython.const_longlong[::1],
        value: cython.const_double[::1],
        task: cython.const_int[::1],
        name: cython.const_int[::1],
        category: cython.const_int[::1],
        args_at: cython.const_longlong[::1],
        args_len: cython.const_int[::1],
        part: cython.const_int[::1],
        out: cython.uchar[::1],
        ends: cython.longlong[::1],
    ) -> int:
        """Write the lines of all rows, each with a comma and a line break before it.

        Args:
            kind, ts, number, value, task, name, category: the rows; ts in ns.
            args_at, args_len, part: where args are in which of the parts; length 0 for none.
            out: where the lines go.
            ends: is filled with the end of each line; of a row that is left out, with -1 - the place where it belongs.

        Returns:
            How many bytes of `out` are filled.

        Raises:
            IndexError: columns of different lengths, or a piece, part or args outside of what is there.
            OverflowError: `out` is too short.
        """
        self._kind, self._ts, self._number, self._value = kind, ts, number, value
        self._task, self._name, self._category = task, name, category
        self._args_at, self._args_len, self._part = args_at, args_len, part
        if self._shortest() < kind.shape[0] or ends.shape[0] < kind.shape[0]:
            raise IndexError("columns of different lengths")
        if out.shape[0] == 0:
            raise OverflowError("no room")
        self._out = cython.address(out[0]) if cython.compiled else out
        self._at, self._room = 0, out.shape[0]
        row: cython.Py_ssize_t
        begin: cython.Py_ssize_t
        for row in range(kind.shape[0]):
            begin = self._at
            if self._line(row):
                ends[row] = self._at
            else:
                ends[row] = -1 - begin
                self._at = begin
        return self._at

    @cython.cfunc
    def _shortest(self) -> cython.Py_ssize_t:
        """The length of the shortest column."""
        return min(
            self._ts.shape[0],
            self._number.shape[0],
            self._value.shape[0],
            self._task.shape[0],
            self._name.shape[0],
            self._category.shape[0],
            self._args_at.shape[0],
            self._args_len.shape[0],
            self._part.shape[0],
        )

    # -- lines; each method says whether it wrote all, or leaves the row to the caller ------------------------

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _line(self, row: cython.Py_ssize_t) -> cython.int:
        kind: cython.int = self._kind[row]
        if kind > _DOUBLE or self._ts[row] < 0 or self._args_len[row] < 0:
            return False
        self._check_pieces(row)
        self._check_room(row)
        if kind == _SLICE:
            return self._slice(row)
        if kind == _START or kind == _END:
            return self._arrow_end(row)
        if kind == _INTEGER or kind == _DOUBLE:
            return self._counter(row)
        return self._instant(row)

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _slice(self, row: cython.Py_ssize_t) -> cython.int:
        if self._number[row] < 0:
            return False
        self._text(b',\n{"ph":"X","name":')
        self._named(row)
        self._text(b',"dur":')
        self._micros(self._number[row])
        return self._finish(row)

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _instant(self, row: cython.Py_ssize_t) -> cython.int:
        self._text(b',\n{"ph":"i","name":')
        self._named(row)
        if self._kind[row] == _INSTANT:
            self._text(b',"s":"t"')
        else:
            self._text(b',"s":"p"')
        return self._finish(row)

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _arrow_end(self, row: cython.Py_ssize_t) -> cython.bint:
        if self._number[row] < 0:
            return False
        if self._kind[row] == _START:
            self._text(b',\n{"ph":"s","id":')
        else:
            self._text(b',\n{"ph":"f","bp":"e","id":')
        self._integer(self._number[row])
        self._text(b',"name":')
        self._named(row)
        self._byte(ord("}"))
        return True

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _counter(self, row: cython.Py_ssize_t) -> cython.int:
        is_integer: cython.bint = self._kind[row] == _INTEGER
        if is_integer and self._number[row] < -_MAX:
            return False
        self._text(b",\n")
        self._piece(self._name[row])
        self._micros(self._ts[row])
        self._piece(self._category[row])
        if is_integer:
            self._integer(self._number[row])
        else:
            self._double(self._value[row])
        self._text(b"}}")
        return True

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _named(self, row: cython.Py_ssize_t) -> cython.void:
        """What all but counters have, from the name on."""
        self._piece(self._name[row])
        if self._category[row] >= 0:
            self._text(b',"cat":')
            self._piece(self._category[row])
        self._piece(self._task[row])
        self._text(b',"ts":')
        self._micros(self._ts[row])

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _finish(self, row: cython.Py_ssize_t) -> cython.int:
        """The args, if there are any, and the end of the line."""
        if self._args_len[row]:
            self._text(b',"args":')
            if not self._args(row):
                return False
        self._byte(ord("}"))
        return True

    # -- checks -----------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _check_pieces(self, row: cython.Py_ssize_t) -> cython.int:
        count: cython.Py_ssize_t = self._piece_ends.shape[0] - 1
        if self._category[row] >= count or not 0 <= self._name[row] < count or not 0 <= self._task[row] < count:
            raise IndexError("no such piece")
        return 0

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _check_room(self, row: cython.Py_ssize_t) -> cython.int:
        size: cython.Py_ssize_t = self._size_of(self._name[row]) + self._size_of(self._task[row])
        size += self._size_of(self._category[row]) + self._args_len[row]
        if size + _FRAME > self._room - self._at:
            raise OverflowError("no room")
        return 0

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _size_of(self, piece: cython.Py_ssize_t) -> cython.Py_ssize_t:
        return self._piece_ends[piece + 1] - self._piece_ends[piece] if piece >= 0 else 0

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _check_args(self, row: cython.Py_ssize_t) -> cython.int:
        """Make the part known in which the args of a row are."""
        part: cython.int = self._part[row]
        if part < 0 or part >= len(self._parts):
            raise IndexError("args outside of the parts")
        if part != self._known_part:
            self._known = self._parts[part]
            self._known_part = part
        if self._args_at[row] < 0 or self._args_at[row] + self._args_len[row] > self._known.shape[0]:
            raise IndexError("args outside of their part")
        return 0

    # -- args -------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _args(self, row: cython.Py_ssize_t) -> cython.int:
        """Copy args without line breaks and what surrounds them, unless they are left to the caller."""
        self._check_args(row)
        p: cython.p_const_uchar = cython.address(self._known[0]) if cython.compiled else self._known
        i: cython.Py_ssize_t = self._args_at[row]
        end: cython.Py_ssize_t = i + self._args_len[row]
        while i < end and _is_space(p[i]):
            i += 1
        while end > i and _is_space(p[end - 1]):
            end -= 1
        while 0 <= i < end:
            i = self._copy_plain(p, i, end)
            if i < end:
                i = self._copy_other(p, i, end)
        return i >= 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _copy_plain(self, p: cython.p_const_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Copy up to what needs a look."""
        out: cython.p_uchar = self._out
        at: cython.Py_ssize_t = self._at
        while i < end and not _needs_look(p[i]):
            out[at] = p[i]
            at += 1
            i += 1
        self._at = at
        return i

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _copy_other(self, p: cython.p_const_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Copy what needs a look, unless args with it are left to the caller."""
        c: cython.uchar = p[i]
        if _is_space(c):
            return self._copy_space(p, i, end)
        if c >= 0x80:
            return self._copy_character(p, i, end)
        if c == ord("\\"):
            if _is_odd_escape(p, i + 1, end):
                return _LEFT
        elif _is_digit(self._out[self._at - 1]) and _is_odd_exponent(p, i + 1, end):  # before all args is a colon
            return _LEFT
        self._byte(c)
        return i + 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _copy_space(self, p: cython.p_const_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Copy white space, unless there is a line break in it, which cannot be in a text."""
        stop: cython.Py_ssize_t = i
        is_break: cython.bint = False
        while stop < end and _is_space(p[stop]):
            is_break = is_break or p[stop] == ord("\n") or p[stop] == ord("\r")
            stop += 1
        if not is_break:
            self._copy(p, i, stop)
        return stop

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _copy_character(
        self, p: cython.p_const_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        size: cython.Py_ssize_t = _character_size(p, i, end)
        if size == 0:
            return _LEFT
        self._copy(p, i, i + size)
        return i + size

    # -- bytes ------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _byte(self, c: cython.uchar) -> cython.void:
        self._out[self._at] = c
        self._at += 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _copy(self, p: cython.p_const_uchar, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
        out: cython.p_uchar = self._out
        at: cython.Py_ssize_t = self._at
        i: cython.Py_ssize_t
        for i in range(end - begin):
            out[at + i] = p[begin + i]
        self._at = at + (end - begin)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _text(self, text: cython.p_const_char) -> cython.void:
        out: cython.p_uchar = self._out
        at: cython.Py_ssize_t = self._at
        size: cython.Py_ssize_t = strlen(text) if cython.compiled else len(text)
        i: cython.Py_ssize_t
        for i in range(size):
            out[at + i] = text[i]
        self._at = at + size

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _piece(self, piece: cython.Py_ssize_t) -> cython.void:
        p: cython.p_const_uchar = cython.address(self._pieces[0]) if cython.compiled else self._pieces
        if piece >= 0:
            self._copy(p, self._piece_ends[piece], self._piece_ends[piece + 1])

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    @cython.cdivision(True)
    def _integer(self, number: cython.longlong) -> cython.void:
        """A number above -2**63 in decimal digits."""
        if number < 0:
            self._byte(ord("-"))
            number = -number
        digits: cython.int = 1
        rest: cython.longlong = number // 10
        while rest > 0:
            digits += 1
            rest = rest // 10
        last: cython.Py_ssize_t = self._at + digits - 1
        i: cython.int
        for i in range(digits):
            self._out[last - i] = ord("0") + number % 10
            number = number // 10
        self._at = last + 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    @cython.cdivision(True)
    def _micros(self, ns: cython.longlong) -> cython.void:
        """Microseconds with the decimals that are needed, of ns that are not negative."""
        self._integer(ns // 1000)
        rest: cython.int = ns % 1000
        if rest:
            self._byte(ord("."))
            self._byte(ord("0") + rest // 100)
            if rest % 100:
                self._byte(ord("0") + rest // 10 % 10)
                if rest % 10:
                    self._byte(ord("0") + rest % 10)

    @cython.cfunc
    @cython.exceptval(-1)
    def _double(self, value: cython.double) -> cython.int:
        text: bytes = repr(float(value)).encode("ascii")
        self._copy(text, 0, min(len(text), _MAX_DOUBLE))
        return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _needs_look(c: cython.uchar) -> cython.bint:
    """Whether a byte of args may be more than a byte to copy."""
    if c > ord("\\"):  # most are
        return c == ord("e") or c >= 0x80
    return c == ord("\\") or c == ord("E") or _is_space(c)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_space(c: cython.uchar) -> cython.bint:
    return c == ord(" ") or ord("\t") <= c <= ord("\r")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_digit(c: cython.uchar) -> cython.bint:
    return ord("0") <= c <= ord("9")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_odd_escape(p: cython.p_const_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether the escape here, without its backslash, is a character by number, none, or a backslash and a quote."""
    if i >= end:
        return False
    if p[i] == ord("\\"):
        return i + 1 < end and p[i + 1] == ord('"')
    return p[i] == ord("u") or _is_space(p[i])


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_odd_exponent(p: cython.p_const_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether the exponent here, without its e, may be too large, or go on behind white space."""
    if i < end and p[i] == ord("+"):
        i += 1
    first: cython.Py_ssize_t = i
    while i < end and _is_digit(p[i]):
        i += 1
    return i - first > 2 or (i < end and _is_space(p[i]))


@cython.cfunc
@cython.exceptval(check=False)
def _character_size(p: cython.p_const_uchar, i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size of the character beyond ASCII that begins here, 0 if it is not UTF-8."""
    first: cython.uchar = p[i]
    size: cython.Py_ssize_t = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    k: cython.Py_ssize_t
    if first < 0xC2 or first > 0xF4 or i + size > end or not _is_second(first, p[i + 1]):
        return 0
    for k in range(i + 2, i + size):
        if p[k] & 0xC0 != 0x80:
            return 0
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_second(first: cython.uchar, c: cython.uchar) -> cython.bint:
    """Whether a character of UTF-8 may go on with this byte: not if it were too long, a surrogate or too large."""
    low: cython.uchar = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
    high: cython.uchar = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
    return low <= c <= high
