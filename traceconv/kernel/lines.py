"""Lines of texts that say the same again and again: what was read once is found by its bytes, times are read as digits.

Each function reads whole lines of `data` from `at` on until a line that it does not know, and tells where that line
begins. What lines mean, the importers say: they read such a line, and put what it holds into the dicts.
"""

from __future__ import annotations

import cython

#: Why `samples` has stopped: at the end of the data, at a line that is not plain, at a frame or stack not known yet.
END, ODD, NEW_FRAME, NEW_STACK = 0, 1, 2, 3


@cython.boundscheck(False)
@cython.wraparound(False)
def timed(
    data: bytes,
    at: cython.Py_ssize_t,
    number: cython.longlong,
    known: dict,
    row: cython.Py_ssize_t,
    ts: cython.longlong[::1],
    what: cython.longlong[::1],
    origin: cython.longlong[::1],
) -> tuple:
    """Lines of comma separated fields: MARKER,[vN,]MILLISECONDS,FIELDS,LAST.

    The milliseconds count from 1970: 13 digits (from 2001 on) that are less than 4e12 (2096), so that in ns they are,
    with any duration added, far below 2**62; and 1 to 6 decimals.

    Args:
        data: whole lines.
        at: where to begin.
        number: the number of the line there.
        known: by marker (with its comma), then by the bytes of FIELDS, then by those of LAST: what to put into `what`.
        row: where to go on in the columns.
        ts: the times, in ns.
        what: what the dict says about the line.
        origin: the numbers of the lines.

    Returns:
        The next row; where the first line begins that was not read, and its number; where its FIELDS, its LAST and
        its line end are, if it is of that form, else 0; and the dict by LAST, if there is one for its fields.

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
    k: cython.Py_ssize_t
    marker: cython.Py_ssize_t = 0
    marker_len: cython.Py_ssize_t = 0
    same: cython.bint
    by_fields: dict = {}
    by_last: dict
    if at < 0 or row < 0:
        raise ValueError("a place before the first")
    while row < room and at < size:
        i = at
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
        i += 1
        fields = i
        while i < size and view[i] != newline:
            i += 1
        if i >= size:
            break
        last = i
        while last > fields and view[last - 1] != comma:
            last -= 1
        if last <= fields + 1 or last == i:
            break
        # Nearly all lines have the marker of the line before.
        same = start - at == marker_len
        k = 0
        while same and k < marker_len:
            same = view[at + k] == view[marker + k]
            k += 1
        if not same:
            by_fields = known.get(view[at:start])
            if by_fields is None:
                return row, at, number, fields, last, i, None
            marker, marker_len = at, start - at
        by_last = by_fields.get(view[fields : last - 1])
        if by_last is None:
            return row, at, number, fields, last, i, None
        found = by_last.get(view[last:i])
        if found is None:
            return row, at, number, fields, last, i, by_last
        ts[row] = value
        what[row] = found
        origin[row] = number
        row += 1
        number += 1
        at = i + 1
    return row, at, number, 0, 0, 0, None


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
