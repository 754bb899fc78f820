"""Rows of a trace to lines of Chrome JSON.

A line is put together from pieces that are JSON already (names, categories, what tells process and thread), from times
and numbers, and from args, which are copied. Rows that need more than that are left to the caller, who gets the place
where their lines belong: rows of other kinds, negative times, and args with escapes (`\\u`, a backslash before the
final quote), exponents of three digits or bytes that are not UTF-8.
"""

from __future__ import annotations

import cython

#: Kinds of rows. `name`, `category` and `task` are numbers of pieces, -1 for no category; `number` is the duration of a
#: slice in ns, the id of an arrow, or the value of a whole counter. A counter has in `name` what stands before its time
#: and in `category` what stands before its value.
SLICE, START, END, INSTANT, PROCESS_INSTANT, INTEGER, DOUBLE, OTHER = range(8)

_SLICE = cython.declare(cython.int, 0)
_START = cython.declare(cython.int, 1)
_END = cython.declare(cython.int, 2)
_INSTANT = cython.declare(cython.int, 3)
_PROCESS_INSTANT = cython.declare(cython.int, 4)
_INTEGER = cython.declare(cython.int, 5)
_DOUBLE = cython.declare(cython.int, 6)
#: Longer than all that stands in a line beside pieces and args.
_FRAME = cython.declare(cython.Py_ssize_t, 192)
_MAX = cython.declare(cython.longlong, 2**63 - 1)


@cython.boundscheck(False)
@cython.wraparound(False)
def write(
    pieces: cython.const_uchar[::1],
    piece_ends: cython.const_longlong[::1],
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
    parts: list,
    out: cython.uchar[::1],
    ends: cython.longlong[::1],
) -> int:
    """Write the lines of all rows, each with a comma and a line break before it.

    Args:
        pieces, piece_ends: piece n is what stands from piece_ends[n] to piece_ends[n + 1].
        kind, ts, number, value, task, name, category: the rows; ts in ns.
        args_at, args_len, part: where args are in which of the parts; length 0 for none.
        parts: buffers of bytes.
        out: where the lines go.
        ends: is filled with the end of each line; of a row that is left out, with -1 - the place where it belongs.

    Returns:
        How many bytes of `out` are filled.

    Raises:
        IndexError: columns of different lengths, or a piece, part or args outside of what is there.
        OverflowError: `out` is too short.
    """
    rows: cython.Py_ssize_t = kind.shape[0]
    if (
        ts.shape[0] < rows
        or number.shape[0] < rows
        or value.shape[0] < rows
        or task.shape[0] < rows
        or name.shape[0] < rows
        or category.shape[0] < rows
        or args_at.shape[0] < rows
        or args_len.shape[0] < rows
        or part.shape[0] < rows
        or ends.shape[0] < rows
    ):
        raise IndexError("columns of different lengths")
    if out.shape[0] == 0 or pieces.shape[0] == 0:
        raise OverflowError("no room")
    target: cython.pointer(cython.uchar)
    source: cython.pointer(cython.const_uchar)
    blob: cython.pointer(cython.const_uchar)
    if cython.compiled:
        target, blob = cython.address(out[0]), cython.address(pieces[0])
    else:
        target, blob = out, pieces
    source = blob
    view: cython.const_uchar[::1] = pieces
    room: cython.Py_ssize_t = out.shape[0]
    have: cython.Py_ssize_t = piece_ends.shape[0] - 1
    size: cython.Py_ssize_t = pieces.shape[0]
    at: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    args: cython.Py_ssize_t
    first: cython.Py_ssize_t
    last: cython.Py_ssize_t
    where: cython.int
    current: cython.int = -1
    what: cython.int
    a: cython.Py_ssize_t
    a_end: cython.Py_ssize_t
    b: cython.Py_ssize_t
    b_end: cython.Py_ssize_t
    c: cython.Py_ssize_t
    c_end: cython.Py_ssize_t
    for i in range(rows):
        begin = at
        what = kind[i]
        args = args_len[i] if what in (_SLICE, _INSTANT, _PROCESS_INSTANT) else 0
        if what > _DOUBLE or ts[i] < 0 or args < 0:
            ends[i] = -1 - begin
            continue
        if name[i] < 0 or name[i] >= have or category[i] >= have or task[i] < 0 or task[i] >= have:
            raise IndexError("no such piece")
        a, a_end = piece_ends[name[i]], piece_ends[name[i] + 1]
        b, b_end = 0, 0
        if category[i] >= 0:
            b, b_end = piece_ends[category[i]], piece_ends[category[i] + 1]
        c, c_end = piece_ends[task[i]], piece_ends[task[i] + 1]
        if (a < 0 or a > a_end or a_end > size) or (b < 0 or b > b_end or b_end > size):
            raise IndexError("a piece outside of the pieces")
        if c < 0 or c > c_end or c_end > size:
            raise IndexError("a piece outside of the pieces")
        if (a_end - a) + (b_end - b) + (c_end - c) + args + _FRAME > room - at:
            raise OverflowError("no room")
        if what == _SLICE:
            if number[i] < 0:
                ends[i] = -1 - begin
                continue
            at = _put(target, at, b',\n{"ph":"X","name":', 0, 19)
        elif what in (_START, _END):
            if number[i] < 0:
                ends[i] = -1 - begin
                continue
            if what == _START:
                at = _put(target, at, b',\n{"ph":"s","id":', 0, 17)
            else:
                at = _put(target, at, b',\n{"ph":"f","bp":"e","id":', 0, 26)
            at = _integer(target, at, number[i])
            at = _put(target, at, b',"name":', 0, 8)
        elif what in (_INTEGER, _DOUBLE):
            if what == _INTEGER and number[i] < -_MAX:
                ends[i] = -1 - begin
                continue
            at = _put(target, at, b",\n", 0, 2)
            at = _put(target, at, blob, a, a_end)
            at = _micros(target, at, ts[i])
            at = _put(target, at, blob, b, b_end)
            if what == _INTEGER:
                at = _integer(target, at, number[i])
            else:
                text: bytes = repr(float(value[i])).encode("ascii")
                at = _put(target, at, text, 0, min(len(text), 32))
            at = _put(target, at, b"}}", 0, 2)
            ends[i] = at
            continue
        else:
            at = _put(target, at, b',\n{"ph":"i","name":', 0, 19)
        at = _put(target, at, blob, a, a_end)
        if category[i] >= 0:
            at = _put(target, at, b',"cat":', 0, 7)
            at = _put(target, at, blob, b, b_end)
        at = _put(target, at, blob, c, c_end)
        at = _put(target, at, b',"ts":', 0, 6)
        at = _micros(target, at, ts[i])
        if what == _SLICE:
            at = _put(target, at, b',"dur":', 0, 7)
            at = _micros(target, at, number[i])
        elif what == _INSTANT:
            at = _put(target, at, b',"s":"t"', 0, 8)
        elif what == _PROCESS_INSTANT:
            at = _put(target, at, b',"s":"p"', 0, 8)
        if args > 0:
            where = part[i]
            if where < 0 or where >= len(parts):
                raise IndexError("args outside of the parts")
            if where != current:
                view = parts[where]
                if view.shape[0] == 0:
                    raise IndexError("args outside of their part")
                current = where
                source = cython.address(view[0]) if cython.compiled else view
            first = args_at[i]
            last = first + args
            if first < 0 or last > view.shape[0]:
                raise IndexError("args outside of their part")
            at = _put(target, at, b',"args":', 0, 8)
            at = _args(target, at, source, first, last)
            if at < 0:
                at = begin
                ends[i] = -1 - begin
                continue
        at = _put(target, at, b"}", 0, 1)
        ends[i] = at
    return at


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put(
    target: cython.pointer(cython.uchar),
    at: cython.Py_ssize_t,
    source: cython.pointer(cython.const_uchar),
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy bytes; where they end."""
    i: cython.Py_ssize_t
    for i in range(end - begin):
        target[at + i] = source[begin + i]
    return at + (end - begin)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.cdivision(True)
def _integer(target: cython.pointer(cython.uchar), at: cython.Py_ssize_t, number: cython.longlong) -> cython.Py_ssize_t:
    """A number above -2**63 in decimal digits; where they end."""
    if number < 0:
        target[at] = 45
        at += 1
        number = -number
    digits: cython.int = 1
    rest: cython.longlong = number // 10
    i: cython.int
    while rest > 0:
        digits += 1
        rest = rest // 10
    for i in range(digits):
        target[at + digits - 1 - i] = 48 + number % 10
        number = number // 10
    return at + digits


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.cdivision(True)
def _micros(target: cython.pointer(cython.uchar), at: cython.Py_ssize_t, ns: cython.longlong) -> cython.Py_ssize_t:
    """Microseconds with the decimals that are needed, of ns that are not negative."""
    at = _integer(target, at, ns // 1000)
    rest: cython.int = ns % 1000
    if rest:
        target[at] = 46
        target[at + 1] = 48 + rest // 100
        at += 2
        if rest % 100:
            target[at] = 48 + rest // 10 % 10
            at += 1
            if rest % 10:
                target[at] = 48 + rest % 10
                at += 1
    return at


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_space(byte: cython.uchar) -> cython.bint:
    return byte == 32 or (byte >= 9 and byte <= 13)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_digit(byte: cython.uchar) -> cython.bint:
    return byte >= 48 and byte <= 57


@cython.cfunc
@cython.exceptval(check=False)
def _args(
    target: cython.pointer(cython.uchar),
    at: cython.Py_ssize_t,
    p: cython.pointer(cython.const_uchar),
    i: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy args without line breaks and what surrounds them; where they end, or -1 if they are left to the caller."""
    c: cython.uchar
    j: cython.Py_ssize_t
    start: cython.Py_ssize_t = at
    breaks: cython.bint
    while i < end and _is_space(p[i]):
        i += 1
    while end > i and _is_space(p[end - 1]):
        end -= 1
    while i < end:
        c = p[i]
        if c > 92 and c < 128 and c != 101:  # the lower half of ASCII holds all that needs a look, but for e
            target[at] = c
            at += 1
            i += 1
            continue
        if _is_space(c):
            j = i
            breaks = False
            while j < end and _is_space(p[j]):
                breaks = breaks or p[j] == 10 or p[j] == 13
                j += 1
            if not breaks:
                at = _put(target, at, p, i, j)
            i = j
            continue
        if c == 92:
            if i + 1 < end and (p[i + 1] == 117 or _is_space(p[i + 1])):
                return -1
            if i + 2 < end and p[i + 1] == 92 and p[i + 2] == 34:
                return -1
        elif (c == 101 or c == 69) and at > start and _is_digit(target[at - 1]):
            j = i + 1
            if j < end and p[j] == 43:
                j += 1
            while j < end and j < i + 5 and _is_digit(p[j]):
                j += 1
            if j < end and _is_space(p[j]):
                return -1
            if j - i > 3 and _is_digit(p[i + 3]) and (p[i + 1] != 43 or j - i > 4):
                return -1
        elif c >= 128:
            j = i + _sequence(p, i, end)
            if j == i:
                return -1
            at = _put(target, at, p, i, j)
            i = j
            continue
        target[at] = c
        at += 1
        i += 1
    return at


@cython.cfunc
@cython.exceptval(check=False)
def _sequence(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """The length of the character beyond ASCII that begins here, 0 if it is not UTF-8."""
    c: cython.uchar = p[i]
    length: cython.int = 2 if c < 224 else 3 if c < 240 else 4
    low: cython.uchar = 128
    high: cython.uchar = 191
    k: cython.Py_ssize_t
    if c < 194 or c > 244 or i + length > end:
        return 0
    if c == 224:
        low = 160
    elif c == 237:
        high = 159
    elif c == 240:
        low = 144
    elif c == 244:
        high = 143
    if p[i + 1] < low or p[i + 1] > high:
        return 0
    for k in range(i + 2, i + length):
        if p[k] < 128 or p[k] > 191:
            return 0
    return length
