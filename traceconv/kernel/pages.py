# cython: wraparound=False, initializedcheck=False
"""Rows of SQLite tables whose columns hold integers, out of the pages of the file into columns.

The format is that of sqlite.org/fileformat2.html, "B-tree Pages" and "Record Format". What is not plain, such as a row
that goes on in another page or a text where an integer is wanted, is left to SQLite.
"""

from __future__ import annotations

from array import array

import cython

#: Stands for NULL; a row that holds this number is not plain.
NULL = -(1 << 63)


@cython.cfunc
@cython.inline
@cython.boundscheck(False)
def _after_varint(view: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where a number of up to 8 bytes ends, -1 if it does not end before `end`."""
    last: cython.Py_ssize_t = min(end, at + 8)
    while at < last:
        if view[at] < 128:
            return at + 1
        at += 1
    return -1


@cython.cfunc
@cython.inline
@cython.boundscheck(False)
def _varint(view: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """The number that lies there, whole."""
    value: cython.longlong = 0
    while at < end:
        value = value * 128 + (view[at] & 127)
        at += 1
    return value


@cython.boundscheck(False)
def rows(
    data: bytes,
    page_bytes: cython.Py_ssize_t,
    usable: cython.Py_ssize_t,
    slots: cython.const_int[::1],
    key: cython.Py_ssize_t,
    before: cython.longlong,
    row: cython.Py_ssize_t,
    columns: cython.longlong[:, ::1],
) -> tuple:
    """The rows of some leaf pages of a table, up to a page that is not plain or does not fit in.

    Args:
        data: the pages.
        page_bytes: the size of a page.
        usable: how many of its bytes are used.
        slots: for each column of the table, where to put it among `columns`, -1 for nowhere.
        key: the column that is the row id, -1 for none.
        before: the row id must be larger.
        row: where to go on in the columns.
        columns: the row id, then what `slots` says.

    Returns:
        The number of pages read, the next row, and the last row id.
    """
    view: cython.p_const_uchar = data
    pages: cython.Py_ssize_t = len(data) // page_bytes if 512 <= usable <= page_bytes else 0
    wanted: cython.Py_ssize_t = slots.shape[0]
    room: cython.Py_ssize_t = columns.shape[1]
    height: cython.Py_ssize_t = columns.shape[0]
    page: cython.Py_ssize_t
    base: cython.Py_ssize_t
    end: cython.Py_ssize_t
    cells: cython.Py_ssize_t
    cell: cython.Py_ssize_t
    at: cython.Py_ssize_t
    after: cython.Py_ssize_t
    body: cython.Py_ssize_t
    body_end: cython.Py_ssize_t
    header_end: cython.Py_ssize_t
    column: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    size: cython.Py_ssize_t
    number: cython.longlong
    row_id: cython.longlong
    kind: cython.longlong
    value: cython.longlong
    null: cython.longlong = NULL
    here: cython.Py_ssize_t
    for column in range(wanted):
        if slots[column] >= height:
            return 0, row, before
    for page in range(pages):
        base = page * page_bytes
        end = base + usable
        cells = view[base + 3] * 256 + view[base + 4]
        if view[base] != 13 or 8 + 2 * cells > usable or row + cells > room:
            return page, row, before
        here = row
        number = before
        for cell in range(cells):
            at = base + 8 + 2 * cell
            at = base + view[at] * 256 + view[at + 1]
            if at < base + 8 + 2 * cells:
                return page, row, before
            after = _after_varint(view, at, end)
            if after < 0:
                return page, row, before
            kind = _varint(view, at, after)  # the size of the record
            at = after
            after = _after_varint(view, at, end)
            if after < 0:
                return page, row, before
            row_id = _varint(view, at, after)
            if row_id <= number or kind > usable - 35 or kind > end - after:
                return page, row, before
            number = row_id
            columns[0, here] = row_id
            body_end = after + cython.cast(cython.Py_ssize_t, kind)
            at = after
            after = _after_varint(view, at, body_end)
            if after < 0:
                return page, row, before
            kind = _varint(view, at, after)  # the size of the record's header, this number included
            if kind > body_end - at:
                return page, row, before
            header_end = at + cython.cast(cython.Py_ssize_t, kind)
            at = after
            body = header_end
            for column in range(wanted):
                if at >= header_end:
                    return page, row, before
                kind = view[at]
                if kind < 128:
                    at += 1
                else:
                    after = _after_varint(view, at, header_end)
                    if after < 0:
                        return page, row, before
                    kind = _varint(view, at, after)
                    at = after
                slot = slots[column]
                if kind >= 12:
                    kind = (kind - 12) // 2
                    if slot >= 0 or kind > body_end - body:
                        return page, row, before
                    body += cython.cast(cython.Py_ssize_t, kind)
                    continue
                if kind >= 10 or (kind == 7 and slot >= 0) or (column == key and kind != 0):
                    return page, row, before
                size = 0
                if kind == 5:
                    size = 6
                elif kind == 6 or kind == 7:
                    size = 8
                elif kind < 5:
                    size = cython.cast(cython.Py_ssize_t, kind)
                if size > body_end - body:
                    return page, row, before
                if slot >= 0:
                    if column == key:
                        value = row_id
                    elif size:
                        value = view[body]
                        if value >= 128:
                            value -= 256
                        for after in range(body + 1, body + size):
                            value = value * 256 + view[after]
                        if value == null:
                            return page, row, before
                    elif kind == 0:
                        value = null
                    else:
                        value = kind - 8
                    columns[slot, here] = value
                body += size
            if at != header_end or body != body_end:
                return page, row, before
            here += 1
        row = here
        before = number
    return pages, row, before


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
    """
    first: list = []
    slots: cython.Py_ssize_t = 16
    height: cython.Py_ssize_t = columns.shape[0]
    row: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    i: cython.Py_ssize_t
    other: cython.Py_ssize_t
    hashed: cython.ulonglong
    part: cython.ulonglong
    low: cython.ulonglong = 0xFFFFFFFF
    factor: cython.ulonglong = 0x9E3779B1
    value: cython.longlong
    many: cython.Py_ssize_t = chosen.shape[0]
    numbers: cython.int = 0
    if count > columns.shape[1] or count > found.shape[0]:
        raise ValueError("more rows than there are")
    for i in range(many):
        if not 0 <= chosen[i] < height:
            raise ValueError("no such column")
    while slots < 2 * count:
        slots *= 2
    table: cython.int[::1] = memoryview(array("i", bytes(4 * slots)))  # a row + 1, 0 for none
    for row in range(count):
        hashed = 0
        for i in range(many):
            value = cython.cast(cython.longlong, columns[chosen[i], row])
            part = (value ^ (value >> 32)) & low
            hashed = (hashed ^ part) * factor
            hashed = (hashed >> 32) ^ (hashed & low)
        slot = cython.cast(cython.Py_ssize_t, hashed & cython.cast(cython.ulonglong, slots - 1))
        while True:
            if table[slot] == 0:
                table[slot] = row + 1
                found[row] = numbers
                numbers += 1
                first.append(row)
                break
            other = table[slot] - 1
            i = 0
            while i < many and columns[chosen[i], row] == columns[chosen[i], other]:
                i += 1
            if i == many:
                found[row] = found[other]
                break
            slot = (slot + 1) & (slots - 1)
    return first


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
    """
    row: cython.Py_ssize_t
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    many: cython.Py_ssize_t = chosen.shape[0]
    total: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    digits: cython.Py_ssize_t
    value: cython.longlong
    rest: cython.longlong
    piece: bytes
    view: cython.p_const_uchar
    if len(heads) != many or count > end_of.shape[0] or count > lengths.shape[0] or count > columns.shape[1]:
        raise ValueError("the columns differ in length")
    for i in range(many):
        if not 0 <= chosen[i] < columns.shape[0]:
            raise ValueError("no such column")
        piece = heads[i]
        total += count * (len(piece) + 19)
    for row in range(count):
        if not 0 <= end_of[row] < len(ends):
            raise ValueError("no such end")
        piece = ends[end_of[row]]
        total += len(piece)
    made = bytearray(total)
    target: cython.uchar[::1] = memoryview(made)
    for row in range(count):
        start = at
        for i in range(many):
            piece = heads[i]
            view = piece
            for k in range(len(piece)):
                target[at] = view[k]
                at += 1
            value = cython.cast(cython.longlong, columns[chosen[i], row])
            if value < 0:
                raise ValueError("a number below 0")
            digits = 1
            rest = value
            while rest >= 10:
                rest //= 10
                digits += 1
            k = at + digits
            while k > at:
                k -= 1
                target[k] = 48 + value % 10
                value //= 10
            at += digits
        piece = ends[end_of[row]]
        view = piece
        for k in range(len(piece)):
            target[at] = view[k]
            at += 1
        lengths[row] = at - start
    return bytes(memoryview(made)[:at])
