# cython: wraparound=False, initializedcheck=False, cdivision=True
"""Rows of SQLite tables whose columns hold integers, out of the pages of the file into columns.

The format is that of sqlite.org/fileformat2.html, "B-tree Pages" and "Record Format". What is not plain, such as a row
that goes on in another page or a text where an integer is wanted, is left to SQLite.
"""

from __future__ import annotations

from array import array

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

#: Stands for NULL; a row that holds this number is not plain.
NULL = -(1 << 63)

_NULL = cython.declare(cython.longlong, NULL)
_LEAF = cython.declare(cython.int, 13)
_LEAF_HEADER = cython.declare(cython.Py_ssize_t, 8)
_MIN_USABLE = cython.declare(cython.Py_ssize_t, 512)
#: A record may be this much smaller than the usable bytes of a page: a larger one goes on in another page.
_BESIDE_RECORD = cython.declare(cython.Py_ssize_t, 35)
_MAX_VARINT = cython.declare(cython.Py_ssize_t, 8)  # a ninth byte would hold 8 bits

# Serial types of a record: 0 is NULL, 1 to 6 are integers in so many bytes as `_value_bytes` says, those from 12 on
# texts and blobs.
_TYPE_NULL = cython.declare(cython.longlong, 0)
_TYPE_DOUBLE = cython.declare(cython.longlong, 7)
_TYPE_ZERO = cython.declare(cython.longlong, 8)
_TYPE_ONE = cython.declare(cython.longlong, 9)
_TYPE_BLOB = cython.declare(cython.longlong, 12)

_MAX_INT_DIGITS = cython.declare(cython.Py_ssize_t, 19)  # of 64 bits
_HALF = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_FACTOR = cython.declare(cython.ulonglong, 0x9E3779B1)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _two_bytes(p: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    return p[at] * 256 + p[at + 1]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _value_bytes(type: cython.longlong) -> cython.Py_ssize_t:
    """How many bytes a number of a serial type has, or NULL."""
    if type >= _TYPE_ZERO:
        return 0
    if type >= 6:
        return 8
    return 6 if type == 5 else cython.cast(cython.Py_ssize_t, type)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _integer(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.longlong:
    """A signed integer of some bytes, the most significant one first."""
    value: cython.longlong = p[at]
    i: cython.Py_ssize_t
    if value >= 128:
        value -= 256
    for i in range(at + 1, at + size):
        value = value * 256 + p[i]
    return value


@cython.final
@cython.cclass
class Rows:
    """Reads rows of leaf pages of a table into columns, page after page.

    Args:
        page_bytes: the size of a page.
        usable: how many of its bytes are used.
        slots: for each column of the table, where to put it among `columns`, -1 for nowhere.
        key: the column that is the row id, -1 for none.
        columns: the row id, then what `slots` says.

    Attributes:
        count: how many rows the columns hold; the caller takes them and calls `clear`.

    Raises:
        ValueError: a slot outside of the columns.
    """

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _page_bytes: cython.Py_ssize_t
    _usable: cython.Py_ssize_t
    _slots: cython.const_int[::1]
    _key: cython.Py_ssize_t
    _columns: cython.longlong[:, ::1]
    _p: cython.p_const_uchar  # the pages, while `read` runs
    _before: cython.longlong
    _row: cython.Py_ssize_t
    _row_id: cython.longlong
    _number: cython.longlong

    def __init__(self, page_bytes: int, usable: int, slots, key: int, columns) -> None:
        if len(columns) < 1 or max(slots, default=-1) >= len(columns):
            raise ValueError("no such column")
        self._page_bytes, self._usable = page_bytes, usable
        self._slots, self._key, self._columns = slots, key, columns
        self.count = 0
        #: Of the last row of the pages read: ids must grow, so that the order is that of SQLite.
        self._before = 0

    def clear(self) -> None:
        """Begin the columns anew."""
        self.count = 0

    def read(self, data: bytes, at: cython.Py_ssize_t) -> int:
        """Read pages up to one that is not plain or does not fit in.

        Args:
            data: whole pages.
            at: where to begin.

        Returns:
            Where the first page begins that was not read.

        Raises:
            ValueError: `at` is negative.
        """
        if at < 0:
            raise ValueError("a place before the first")
        if not _MIN_USABLE <= self._usable <= self._page_bytes:
            return at
        self._p = data
        while len(data) - at >= self._page_bytes and self._page(at):
            at += self._page_bytes
        return at

    @cython.cfunc
    @cython.exceptval(check=False)
    def _page(self, begin: cython.Py_ssize_t) -> cython.bint:
        """Read a page, if all of it is plain and fits in."""
        cells: cython.Py_ssize_t = _two_bytes(self._p, begin + 3)
        cells_end: cython.Py_ssize_t = begin + _LEAF_HEADER + 2 * cells
        pointer: cython.Py_ssize_t
        cell: cython.Py_ssize_t
        if self._p[begin] != _LEAF or cells_end - begin > self._usable or cells > self._columns.shape[1] - self.count:
            return False
        self._row = self.count
        self._row_id = self._before
        for pointer in range(begin + _LEAF_HEADER, cells_end, 2):
            cell = begin + _two_bytes(self._p, pointer)
            if cell < cells_end or not self._cell(cell, begin + self._usable):
                return False
            self._row += 1
        self.count = self._row
        self._before = self._row_id
        return True

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _cell(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Read a row: the size of its record, its id, its record."""
        size: cython.longlong
        at = self._varint(at, end)
        if at < 0:
            return False
        size = self._number
        at = self._varint(at, end)
        if at < 0 or self._number <= self._row_id or size > self._usable - _BESIDE_RECORD or size > end - at:
            return False
        self._row_id = self._number
        self._columns[0, self._row] = self._row_id
        return self._record(at, at + cython.cast(cython.Py_ssize_t, size))

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _record(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Read a record: its header, which has its own size and the types of the values, and the values."""
        at: cython.Py_ssize_t = self._varint(begin, end)
        if at < 0 or self._number > end - begin:
            return False
        header_end: cython.Py_ssize_t = begin + cython.cast(cython.Py_ssize_t, self._number)
        value: cython.Py_ssize_t = header_end
        column: cython.Py_ssize_t
        for column in range(self._slots.shape[0]):
            at = self._varint(at, header_end)
            if at < 0:
                return False
            value = self._value(column, self._number, value, end)
            if value < 0:
                return False
        return at == header_end and value == end

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _value(
        self, column: cython.Py_ssize_t, type: cython.longlong, at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Put the value of a column where it is wanted; where the next one begins, -1 if this one is not plain."""
        slot: cython.Py_ssize_t = self._slots[column]
        if type >= _TYPE_BLOB:
            type = (type - _TYPE_BLOB) // 2
            return -1 if slot >= 0 or type > end - at else at + cython.cast(cython.Py_ssize_t, type)
        if type > _TYPE_ONE or (type == _TYPE_DOUBLE and slot >= 0) or (column == self._key and type != _TYPE_NULL):
            return -1
        size: cython.Py_ssize_t = _value_bytes(type)
        if size > end - at:
            return -1
        if slot >= 0:
            number: cython.longlong
            if size:
                number = _integer(self._p, at, size)
                if number == _NULL:
                    return -1
            elif column == self._key:  # the record has NULL in its place
                number = self._row_id
            else:
                number = _NULL if type == _TYPE_NULL else type - _TYPE_ZERO
            self._columns[slot, self._row] = number
        return at + size

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _varint(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read a number of up to 8 bytes; where it ends, -1 if it does not end before `end`."""
        if at < end and self._p[at] < 128:  # as nearly all are
            self._number = self._p[at]
            return at + 1
        return self._long_varint(at, end)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _long_varint(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        p: cython.p_const_uchar = self._p
        number: cython.longlong = 0
        last: cython.Py_ssize_t = min(end, at + _MAX_VARINT)
        while at < last:
            number = number * 128 + (p[at] & 127)
            if p[at] < 128:
                self._number = number
                return at + 1
            at += 1
        return -1


@cython.final
@cython.cclass
class _Groups:
    """Rows by what some columns hold: open addressing with linear steps, at least half of the slots are free."""

    slots: cython.int[::1]  # a row + 1, 0 for none
    _mask: cython.ulonglong
    _columns: cython.const_longlong[:, ::1]
    _chosen: cython.const_int[::1]

    def __init__(self, columns, chosen, count: int) -> None:
        slots = 16
        while slots < 2 * count:
            slots *= 2
        self.slots = memoryview(array("i", bytes(4 * slots)))
        self._mask = slots - 1
        self._columns, self._chosen = columns, chosen

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def find(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The slot of a row that holds the same, or one for this row."""
        slot: cython.ulonglong = self._hash(row) & self._mask
        while self.slots[slot] and not self._same(row, self.slots[slot] - 1):
            slot = (slot + 1) & self._mask
        return slot

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _hash(self, row: cython.Py_ssize_t) -> cython.ulonglong:
        hashed: cython.ulonglong = 0
        value: cython.longlong
        i: cython.Py_ssize_t
        for i in range(self._chosen.shape[0]):
            value = cython.cast(cython.longlong, self._columns[self._chosen[i], row])
            hashed = (hashed ^ ((value ^ (value >> 32)) & _HALF)) * _FACTOR
            hashed = (hashed >> 32) ^ (hashed & _HALF)
        return hashed

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _same(self, row: cython.Py_ssize_t, other: cython.Py_ssize_t) -> cython.bint:
        i: cython.Py_ssize_t
        for i in range(self._chosen.shape[0]):
            if self._columns[self._chosen[i], row] != self._columns[self._chosen[i], other]:
                return False
        return True


@cython.cfunc
def _check_columns(columns: cython.const_longlong[:, ::1], chosen: cython.const_int[::1]) -> cython.int:
    i: cython.Py_ssize_t
    for i in range(chosen.shape[0]):
        if not 0 <= chosen[i] < columns.shape[0]:
            raise ValueError("no such column")
    return 0


@cython.boundscheck(False)
def groups(
    columns: cython.const_longlong[:, ::1],
    chosen: cython.const_int[::1],
    count: cython.Py_ssize_t,
    found: cython.int[::1],
) -> list:
    """Number the rows by what the chosen columns hold: rows that hold the same get the same number.

    Args:
        columns: the columns.
        chosen: some of them.
        count: how many rows to look at.
        found: their numbers; the first row has 0, the next one that differs 1.

    Returns:
        The first row of each number.

    Raises:
        ValueError: there are fewer rows, or no such columns.
    """
    row: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    first: list = []
    if count > columns.shape[1] or count > found.shape[0]:
        raise ValueError("more rows than there are")
    _check_columns(columns, chosen)
    table: _Groups = _Groups(columns, chosen, count)
    for row in range(count):
        slot = table.find(row)
        if table.slots[slot] == 0:
            table.slots[slot] = row + 1
            found[row] = len(first)
            first.append(row)
        else:
            found[row] = found[table.slots[slot] - 1]
    return first


@cython.final
@cython.cclass
class _Text:
    """Bytes of which so many are made at most."""

    used: cython.Py_ssize_t
    _made: bytearray
    _p: cython.p_uchar

    def __init__(self, size: int) -> None:
        self._made = bytearray(size)
        self._p = self._made
        self.used = 0

    def made(self) -> bytes:
        """What was written."""
        return bytes(memoryview(self._made)[: self.used])

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def append(self, text: bytes) -> cython.void:
        size: cython.Py_ssize_t = len(text)
        if cython.compiled:
            memcpy(self._p + self.used, cython.cast(cython.p_const_uchar, text), size)
        else:
            self._p[self.used : self.used + size] = text
        self.used += size

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def append_number(self, value: cython.longlong) -> cython.void:
        """Write a number that is not negative."""
        p: cython.p_uchar = self._p
        rest: cython.longlong = value // 10
        at: cython.Py_ssize_t = self.used
        while rest:
            rest //= 10
            at += 1
        self.used = at + 1
        p[at] = ord("0") + value % 10
        while value >= 10:
            value //= 10
            at -= 1
            p[at] = ord("0") + value % 10


@cython.boundscheck(False)
def objects(
    columns: cython.const_longlong[:, ::1],
    chosen: cython.const_int[::1],
    heads: list,
    ends: list,
    end_of: cython.const_int[::1],
    count: cython.Py_ssize_t,
    lengths: cython.longlong[::1],
) -> bytes:
    """JSON objects of the same members, one for each row: numbers of its own and an end of its group.

    Args:
        columns: the columns, none of whose numbers is below 0.
        chosen: those whose numbers stand in the objects.
        heads: what stands before each of the numbers.
        ends: what may stand behind the last one.
        end_of: which of them does.
        count: how many rows there are.
        lengths: gets the length of each object.

    Returns:
        All objects, one behind the other.

    Raises:
        ValueError: a number below 0; columns of different lengths; no such column or end.
    """
    row: cython.Py_ssize_t
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t
    value: cython.longlong
    if len(heads) != chosen.shape[0] or count > min(end_of.shape[0], lengths.shape[0], columns.shape[1]):
        raise ValueError("the columns differ in length")
    _check_columns(columns, chosen)
    text: _Text = _Text(_most_bytes(heads, ends, end_of, count))
    for row in range(count):
        start = text.used
        for i in range(chosen.shape[0]):
            value = cython.cast(cython.longlong, columns[chosen[i], row])
            if value < 0:
                raise ValueError("a number below 0")
            text.append(heads[i])
            text.append_number(value)
        text.append(ends[end_of[row]])
        lengths[row] = text.used - start
    return text.made()


@cython.cfunc
@cython.boundscheck(False)
def _most_bytes(heads: list, ends: list, end_of: cython.const_int[::1], count: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How many bytes the objects have at most."""
    row: cython.Py_ssize_t
    end: bytes
    total: cython.Py_ssize_t = count * sum([len(head) + _MAX_INT_DIGITS for head in heads])
    for row in range(count):
        if not 0 <= end_of[row] < len(ends):
            raise ValueError("no such end")
        end = ends[end_of[row]]
        total += len(end)
    return total
