"""The events of a Chrome trace, from the bytes of the file to columns.

One pass reads whole events and checks that they are JSON as strictly as a parser. What nearly all events of big files
look like becomes a row of numbers; any other event is left to the caller, who gets its place in the bytes. A plain
event has the phase X, B, E, i, I, R, s, t or f, no field but ph, name, cat, pid, tid, ts, dur, args, id, s and bp,
none of them twice, texts without control characters, numbers without exponents.

`data` must be UTF-8, and followed by a zero byte, as the content of every `bytes` object is in memory: no rule of JSON
accepts one, so each loop ends there at the latest.
"""

from __future__ import annotations

import os

import cython
import numpy as np

#: The rows of the fields that `Scanner.scan` fills, each with a number for every event: phase (0: left to the caller),
#: where the event begins and ends, ts and dur in ns, numbers of stand, name and category, where id and args are and
#: their lengths, flags.
FIELDS = ("phase", "start", "end", "ts", "dur", "stand", "name", "category", "id_at", "id_len", "args_at", "args_len")
FIELDS += ("flags",)
#: Flags: the first plain event with this name, category or stand; `bp` is "e".
FRESH, ENCLOSING = 1, 2

_PHASE_ROW = cython.declare(cython.Py_ssize_t, 0)
_START_ROW = cython.declare(cython.Py_ssize_t, 1)
_END_ROW = cython.declare(cython.Py_ssize_t, 2)
_TS_ROW = cython.declare(cython.Py_ssize_t, 3)
_DUR_ROW = cython.declare(cython.Py_ssize_t, 4)
_STAND_ROW = cython.declare(cython.Py_ssize_t, 5)
_NAME_ROW = cython.declare(cython.Py_ssize_t, 6)
_CATEGORY_ROW = cython.declare(cython.Py_ssize_t, 7)
_ID_AT_ROW = cython.declare(cython.Py_ssize_t, 8)
_ID_LEN_ROW = cython.declare(cython.Py_ssize_t, 9)
_ARGS_AT_ROW = cython.declare(cython.Py_ssize_t, 10)
_ARGS_LEN_ROW = cython.declare(cython.Py_ssize_t, 11)
_FLAGS_ROW = cython.declare(cython.Py_ssize_t, 12)
_FRESH = cython.declare(cython.int, 1)
_ENCLOSING = cython.declare(cython.int, 2)
_LOW_32 = cython.declare(cython.uint, 0xFFFFFFFF)
_MAX_DEPTH = cython.declare(cython.int, 60)
_MAX_DIGITS = cython.declare(cython.int, 18)
_FIRST_SLOTS = 1 << 12
_ALL = cython.declare(cython.ulonglong, 2**64 - 1)
_FACTOR = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
#: Differs from run to run, so that nobody can prepare texts that fall into the same slot; it changes no output.
_SEED = cython.declare(cython.ulonglong, int.from_bytes(os.urandom(8), "little"))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _mixed(state: cython.ulonglong, more: cython.uint) -> cython.ulonglong:
    """The state of a hash after one number more."""
    state = ((state ^ more) * _FACTOR) & _ALL
    return state ^ (state >> 32)


@cython.cclass
class Texts:
    """Numbers for byte strings, in the order in which they are met."""

    _slots: cython.int[::1]
    _hashes: cython.uint[::1]
    _starts: cython.longlong[::1]
    _declared: cython.uchar[::1]
    _pool: cython.uchar[::1]
    _count: cython.int
    _mask: cython.uint

    def __init__(self) -> None:
        self._slots = np.zeros(_FIRST_SLOTS, np.int32)
        self._mask = _FIRST_SLOTS - 1
        self._hashes = np.zeros(_FIRST_SLOTS, np.uint32)
        self._starts = np.zeros(_FIRST_SLOTS + 1, np.int64)
        self._declared = np.zeros(_FIRST_SLOTS, np.uint8)
        self._pool = np.zeros(1 << 16, np.uint8)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def text(self, number: int) -> bytes:
        """The byte string of a number."""
        return bytes(self._pool[self._starts[number] : self._starts[number + 1]])

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-1)
    def get(
        self, p: cython.pointer(cython.const_uchar), start: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.int:
        state: cython.ulonglong = _SEED
        i: cython.Py_ssize_t
        at: cython.longlong
        for i in range(start, start + size):
            state = _mixed(state, p[i])
        hashed: cython.uint = state & _LOW_32
        place: cython.uint = (hashed ^ (hashed >> 15)) & self._mask
        number: cython.int
        while self._slots[place] != 0:
            number = cython.cast(cython.int, self._slots[place]) - 1
            at = self._starts[number]
            if self._hashes[number] == hashed and self._starts[number + 1] - at == size:
                i = 0
                while i < size and self._pool[at + i] == p[start + i]:
                    i += 1
                if i == size:
                    return number
            place = (place + 1) & self._mask
        return self._add(p, start, size, hashed, place)

    @cython.cfunc
    @cython.exceptval(-1)
    def _add(
        self,
        p: cython.pointer(cython.const_uchar),
        start: cython.Py_ssize_t,
        size: cython.Py_ssize_t,
        hashed: cython.uint,
        place: cython.uint,
    ) -> cython.int:
        number: cython.int = self._count
        at: cython.longlong = self._starts[number]
        i: cython.Py_ssize_t
        if at + size > self._pool.shape[0]:
            self._pool = _grown(self._pool, at + size)
        for i in range(size):
            self._pool[at + i] = p[start + i]
        self._slots[place] = number + 1
        self._hashes[number] = hashed
        self._starts[number + 1] = at + size
        self._count = number + 1
        if 2 * self._count > self._slots.shape[0]:
            self._spread()
        return number

    @cython.cfunc
    @cython.exceptval(-1)
    def _spread(self) -> cython.int:
        """Twice the slots, so that half of them stay free."""
        size: cython.int = 2 * self._slots.shape[0]
        self._hashes = _grown(self._hashes, size)
        self._starts = _grown(self._starts, size + 1)
        self._declared = _grown(self._declared, size)
        self._slots = np.zeros(size, np.int32)
        self._mask = size - 1
        number: cython.int
        hashed: cython.uint
        place: cython.uint
        for number in range(self._count):
            hashed = self._hashes[number]
            place = (hashed ^ (hashed >> 15)) & self._mask
            while self._slots[place] != 0:
                place = (place + 1) & self._mask
            self._slots[place] = number + 1
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def declare(self, number: cython.int) -> cython.bint:
        """Whether this is asked for the first time."""
        if self._declared[number]:
            return False
        self._declared[number] = 1
        return True


def _grown(old: object, size: int) -> object:
    """A larger array that begins with what the old one holds."""
    before = np.asarray(old)
    new = np.zeros(max(size, 2 * len(before)), before.dtype)
    new[: len(before)] = before
    return new


@cython.cclass
class Scanner:
    """Reads the events of one trace, call after call.

    Args:
        fields: FIELDS rows, each with as many numbers as events may be read by one call.
        exponent: the unit of ts and dur as a power of ten of ns, at most 9.

    Raises:
        ValueError: fields or an exponent other than that.

    Attributes:
        texts: names, categories, pids and tids as they stand in the file, with their escapes, strings without their
            quotes for the first two and with them for the others.
        stands: where events stand, see `stand`.
        stopped: whether the last call ended because of something that is not JSON, or is cut off, or nested deeply.
    """

    texts = cython.declare(Texts, visibility="readonly")
    stands = cython.declare(Texts, visibility="readonly")
    stopped = cython.declare(cython.bint, visibility="readonly")
    args_size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _stand: cython.int[::1]
    _stand_bytes: cython.uchar[::1]
    _fields: cython.longlong[:, ::1]
    _exponent: cython.int
    _no_text: cython.int
    _size: cython.Py_ssize_t
    _value: cython.longlong
    _is_plain: cython.bint

    def __init__(self, fields: object, exponent: int) -> None:
        if len(np.asarray(fields)) != len(FIELDS):
            raise ValueError("each field needs one row")
        if not 0 <= exponent <= 9:
            raise ValueError("the exponent is not from 0 to 9")
        self.texts = Texts()
        self.stands = Texts()
        stand = np.zeros(4, np.int32)
        self._stand, self._stand_bytes = stand, stand.view(np.uint8)
        self._fields = fields
        self._exponent = exponent
        self.stopped = False
        self.args_size = 0

    def stand(self, number: int) -> tuple[int, int, int, int]:
        """The pid, tid and category (numbers of texts) of what stands there, and whether these are ends of flows."""
        pid, tid, category, role = np.frombuffer(self.stands.text(number), np.int32).tolist()
        return pid, tid, category, role

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def scan(self, data: bytes, start: cython.Py_ssize_t, args: cython.uchar[::1]) -> tuple[int, int]:
        """Read events from a position on: until one that is not whole, a bracket, or the fields are full.

        Args:
            data: part of the file.
            start: where an event, a comma or white space stands.
            args: takes the args of the plain events one after the other without white space; as long as the rest of
                the data. `args_size` says how much of it was used.

        Returns:
            How many events were read, and the position behind the last one.

        Raises:
            ValueError: `args` is too short, or `start` outside of the data.
        """
        if not 0 <= start <= len(data):
            raise ValueError("the start is outside of the data")
        if args.shape[0] < len(data) - start or args.shape[0] == 0:
            raise ValueError("the space for args is shorter than the data")
        p: cython.pointer(cython.const_uchar)
        out: cython.pointer(cython.uchar)
        if cython.compiled:
            p = data
            out = cython.address(args[0])
        else:
            p = data + b"\0"
            out = args
        i: cython.Py_ssize_t = start
        end: cython.Py_ssize_t
        count: cython.Py_ssize_t = 0
        self._size = 0
        self.stopped = False
        while count < self._fields.shape[1]:
            while p[i] == 44 or p[i] == 32 or p[i] == 10 or p[i] == 13 or p[i] == 9:
                i += 1
            if p[i] != 123:
                break
            end = self._event(p, i, out, count)
            if end < 0:
                self.stopped = True
                break
            i = end
            count += 1
        self.args_size = self._size
        return count, i

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-2)
    def _event(
        self,
        p: cython.pointer(cython.const_uchar),
        begin: cython.Py_ssize_t,
        out: cython.pointer(cython.uchar),
        row: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Read the event that begins here; the position behind it, or -1 when it is not whole or no JSON."""
        i: cython.Py_ssize_t = begin + 1
        key: cython.Py_ssize_t
        size: cython.Py_ssize_t
        value: cython.Py_ssize_t
        is_odd: cython.bint = False
        is_first: cython.bint = True
        seen: cython.int = 0
        field: cython.int
        phase: cython.int = 0
        flags: cython.int = 0
        ts: cython.longlong = 0
        dur: cython.longlong = 0
        name: cython.Py_ssize_t = begin
        name_size: cython.Py_ssize_t = 0
        category: cython.Py_ssize_t = begin
        category_size: cython.Py_ssize_t = 0
        pid: cython.Py_ssize_t = begin
        pid_size: cython.Py_ssize_t = 0
        tid: cython.Py_ssize_t = begin
        tid_size: cython.Py_ssize_t = 0
        identity: cython.Py_ssize_t = begin
        identity_size: cython.Py_ssize_t = 0
        args_at: cython.Py_ssize_t = self._size
        args_size: cython.Py_ssize_t = 0
        before: cython.Py_ssize_t = self._size
        while True:
            i = _behind_space(p, i)
            if is_first and p[i] == 125:
                i += 1
                break
            is_first = False
            if p[i] != 34:
                self._size = before
                return -1
            key = i + 1
            i = _plain_end(p, key)
            if i < 0:
                is_odd = True
                i = _string_end(p, key)
                if i < 0:
                    self._size = before
                    return -1
            size = i - key
            i = _behind_space(p, i + 1)
            if p[i] != 58:
                self._size = before
                return -1
            i = _behind_space(p, i + 1)
            field = _field(p, key, size)
            if field == 0 or seen & field:
                is_odd = True
                field = 0
            seen |= field
            value = i
            if field == _TS or field == _DUR:
                i = self._time(p, i)
                if i >= 0:
                    if not self._is_plain:
                        is_odd = True
                    elif field == _TS:
                        ts = self._value
                    else:
                        dur = self._value
                        is_odd = is_odd or dur < 0
                else:
                    i = self._skip(p, value, out)
                    is_odd = True
            elif field == _ARGS and p[i] == 123:
                self._size = args_at
                i = self._copy(p, i, out)
                args_size = self._size - args_at
            elif p[i] == 34 and field != 0:
                i = _plain_end(p, value + 1)
                if i < 0:
                    is_odd = True
                    i = _string_end(p, value + 1)
                elif field == _NAME:
                    name, name_size = value + 1, i - value - 1
                elif field == _CAT:
                    category, category_size = value + 1, i - value - 1
                elif field == _PID:
                    pid, pid_size = value, i + 1 - value
                elif field == _TID:
                    tid, tid_size = value, i + 1 - value
                elif field == _ID:
                    identity, identity_size = value, i + 1 - value
                elif field == _PH and i == value + 2:
                    phase = p[value + 1]
                elif field == _S and i == value + 2 and p[value + 1] == 116:
                    pass
                elif field == _BP and i == value + 2 and p[value + 1] == 101:
                    flags |= _ENCLOSING
                else:
                    is_odd = True
                if i >= 0:
                    i += 1
            elif field == _PID or field == _TID or field == _ID:
                i = _whole_end(p, value)
                if i < 0:
                    is_odd = True
                    i = self._skip(p, value, out)
                elif field == _PID:
                    pid, pid_size = value, i - value
                elif field == _TID:
                    tid, tid_size = value, i - value
                else:
                    identity, identity_size = value, i - value
            else:
                is_odd = True
                i = self._skip(p, value, out)
            if i < 0:
                self._size = before
                return -1
            i = _behind_space(p, i)
            if p[i] == 44:
                i += 1
            elif p[i] == 125:
                i += 1
                break
            else:
                self._size = before
                return -1
        if not is_odd:
            is_odd = not _is_plain_phase(phase, seen)
        self._fields[_START_ROW, row] = begin
        self._fields[_END_ROW, row] = i
        if is_odd:
            self._size = before
            self._fields[_PHASE_ROW, row] = 0
            return i
        self._fields[_PHASE_ROW, row] = phase
        self._fields[_TS_ROW, row] = ts
        self._fields[_DUR_ROW, row] = dur
        self._fields[_ID_AT_ROW, row] = identity
        self._fields[_ID_LEN_ROW, row] = identity_size
        self._fields[_ARGS_AT_ROW, row] = args_at
        self._fields[_ARGS_LEN_ROW, row] = args_size
        self._place(p, row, flags, phase, name, name_size, category, category_size, pid, pid_size, tid, tid_size)
        return i

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-1)
    def _place(
        self,
        p: cython.pointer(cython.const_uchar),
        row: cython.Py_ssize_t,
        flags: cython.int,
        phase: cython.int,
        name: cython.Py_ssize_t,
        name_size: cython.Py_ssize_t,
        category: cython.Py_ssize_t,
        category_size: cython.Py_ssize_t,
        pid: cython.Py_ssize_t,
        pid_size: cython.Py_ssize_t,
        tid: cython.Py_ssize_t,
        tid_size: cython.Py_ssize_t,
    ) -> cython.int:
        """Give the texts of an event their numbers."""
        name_number: cython.int = self.texts.get(p, name, name_size)
        category_number: cython.int = self.texts.get(p, category, category_size)
        is_flow: cython.bint = phase == 115 or phase == 116 or phase == 102
        known: cython.int = self.stands._count
        self._stand[0] = self.texts.get(p, pid, pid_size)
        self._stand[1] = self.texts.get(p, tid, tid_size)
        self._stand[2] = category_number
        self._stand[3] = phase == 102
        stand_bytes: cython.pointer(cython.const_uchar)
        if cython.compiled:  # noqa: SIM108 a pointer or an object
            stand_bytes = cython.address(self._stand_bytes[0])
        else:
            stand_bytes = bytes(self._stand_bytes)
        stand: cython.int = self.stands.get(stand_bytes, 0, self._stand_bytes.shape[0])
        if stand == known:
            flags |= _FRESH
        if not is_flow:
            if self.texts.declare(name_number):
                flags |= _FRESH
            if phase != 69 and self.texts.declare(category_number):  # that of an end says nothing
                flags |= _FRESH
        self._fields[_NAME_ROW, row] = name_number
        self._fields[_CATEGORY_ROW, row] = category_number
        self._fields[_STAND_ROW, row] = stand
        self._fields[_FLAGS_ROW, row] = flags
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _time(self, p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read a number as ns; the position behind it, or -1 when none stands here. Says whether it was plain."""
        is_negative: cython.bint = p[i] == 45
        value: cython.longlong = 0
        digits: cython.int = 0
        decimals: cython.int = 0
        goes_up: cython.bint = False
        if is_negative:
            i += 1
        if p[i] < 48 or p[i] > 57 or (p[i] == 48 and 48 <= p[i + 1] <= 57):
            return -1
        while 48 <= p[i] <= 57:
            if digits < _MAX_DIGITS - self._exponent:
                value = value * 10 + (p[i] - 48)
            digits += 1
            i += 1
        self._is_plain = digits <= _MAX_DIGITS - self._exponent
        if p[i] == 46:
            i += 1
            if p[i] < 48 or p[i] > 57:
                return -1
            while 48 <= p[i] <= 57:
                if decimals < self._exponent:
                    value = value * 10 + (p[i] - 48)
                    decimals += 1
                elif decimals == self._exponent:
                    goes_up = p[i] >= 53
                    decimals += 1
                i += 1
        if p[i] == 101 or p[i] == 69:
            return -1
        while decimals < self._exponent:
            value = value * 10
            decimals += 1
        if goes_up:
            value += 1
        self._value = -value if is_negative else value
        return i

    @cython.cfunc
    @cython.exceptval(check=False)
    def _skip(
        self, p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t, out: cython.pointer(cython.uchar)
    ) -> cython.Py_ssize_t:
        """The position behind the value here, -1 if it is no JSON."""
        before: cython.Py_ssize_t = self._size
        i = self._copy(p, i, out)
        self._size = before
        return i

    @cython.cfunc
    @cython.exceptval(check=False)
    def _copy(
        self, p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t, out: cython.pointer(cython.uchar)
    ) -> cython.Py_ssize_t:
        """Copy the value here without white space; the position behind it, -1 if it is no JSON or nested deeply.

        It never takes more than it reads, and every byte is read once, so the space is enough.
        """
        n: cython.Py_ssize_t = self._size
        end: cython.Py_ssize_t
        j: cython.Py_ssize_t
        depth: cython.int = 0
        objects: cython.ulonglong = 0  # a bit for each level: whether it is an object
        c: cython.uchar
        expects_key: cython.bint = False
        while True:
            while p[i] == 32 or p[i] == 10 or p[i] == 13 or p[i] == 9:
                i += 1
            c = p[i]
            if expects_key:
                if c != 34:
                    return -1
                end = _string_end(p, i + 1)
                if end < 0:
                    return -1
                for j in range(i, end + 1):
                    out[n] = p[j]
                    n += 1
                i = _behind_space(p, end + 1)
                if p[i] != 58:
                    return -1
                out[n] = 58
                n += 1
                i += 1
                expects_key = False
                continue
            if c == 34:
                end = _string_end(p, i + 1)
                if end < 0:
                    return -1
                for j in range(i, end + 1):
                    out[n] = p[j]
                    n += 1
                i = end + 1
            elif c == 123 or c == 91:
                if depth >= _MAX_DEPTH:
                    return -1
                depth += 1
                objects = (objects << 1) | (c == 123)
                out[n] = c
                n += 1
                i = _behind_space(p, i + 1)
                if p[i] != (125 if c == 123 else 93):
                    expects_key = c == 123
                    continue
                depth -= 1
                objects >>= 1
                out[n] = p[i]
                n += 1
                i += 1
            else:
                end = _number_end(p, i) if c == 45 or 48 <= c <= 57 else _word_end(p, i)
                if end < 0:
                    return -1
                for j in range(i, end):
                    out[n] = p[j]
                    n += 1
                i = end
            while True:
                if depth == 0:
                    self._size = n
                    return i
                i = _behind_space(p, i)
                c = p[i]
                if c == 44:
                    out[n] = c
                    n += 1
                    i += 1
                    expects_key = (objects & 1) != 0
                    break
                if c != (125 if objects & 1 else 93):
                    return -1
                out[n] = c
                n += 1
                i += 1
                depth -= 1
                objects >>= 1


_PH = cython.declare(cython.int, 1)
_NAME = cython.declare(cython.int, 2)
_CAT = cython.declare(cython.int, 4)
_TS = cython.declare(cython.int, 8)
_DUR = cython.declare(cython.int, 16)
_PID = cython.declare(cython.int, 32)
_TID = cython.declare(cython.int, 64)
_ARGS = cython.declare(cython.int, 128)
_ID = cython.declare(cython.int, 256)
_S = cython.declare(cython.int, 512)
_BP = cython.declare(cython.int, 1024)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _field(p: cython.pointer(cython.const_uchar), key: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
    """Which field of an event a key is, 0 for any other one."""
    a: cython.uchar = p[key]
    b: cython.uchar
    c: cython.uchar
    if size == 2:
        b = p[key + 1]
        if a == 116 and b == 115:
            return _TS
        if a == 112 and b == 104:
            return _PH
        if a == 105 and b == 100:
            return _ID
        if a == 98 and b == 112:
            return _BP
    elif size == 3:
        b = p[key + 1]
        c = p[key + 2]
        if a == 112 and b == 105 and c == 100:
            return _PID
        if a == 116 and b == 105 and c == 100:
            return _TID
        if a == 100 and b == 117 and c == 114:
            return _DUR
        if a == 99 and b == 97 and c == 116:
            return _CAT
    elif size == 4:
        b = p[key + 1]
        c = p[key + 2]
        if a == 110 and b == 97 and c == 109 and p[key + 3] == 101:
            return _NAME
        if a == 97 and b == 114 and c == 103 and p[key + 3] == 115:
            return _ARGS
    elif size == 1 and a == 115:
        return _S
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_plain_phase(phase: cython.int, seen: cython.int) -> cython.bint:
    """Whether an event of this phase with these fields needs no closer look."""
    if not seen & _TS:
        return False
    if phase == 88:  # X
        return (seen & (_DUR | _ID | _S | _BP)) == _DUR
    if phase == 115 or phase == 116 or phase == 102:  # s t f
        return (seen & (_DUR | _ID | _S | _ARGS)) == _ID
    if phase == 66 or phase == 69:  # B E
        return (seen & (_DUR | _ID | _S | _BP)) == 0
    if phase == 105 or phase == 73 or phase == 82:  # i I R
        return (seen & (_DUR | _ID | _BP)) == 0
    return False


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _behind_space(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while p[i] == 32 or p[i] == 10 or p[i] == 13 or p[i] == 9:
        i += 1
    return i


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _plain_end(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The quote that ends a text without control characters; -1 when it is another one, or does not end."""
    while True:
        while p[i] >= 32 and p[i] != 34 and p[i] != 92:
            i += 1
        if p[i] == 34:
            return i
        if p[i] != 92 or _is_control(p, i + 1):
            return -1
        i = _escape_end(p, i + 1)
        if i < 0:
            return -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_control(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.bint:
    """Whether the escape here, without its backslash, can be that of a control character."""
    if p[i] == 117:
        return p[i + 1] == 48 and p[i + 2] == 48 and (p[i + 3] == 48 or p[i + 3] == 49)
    return p[i] != 34 and p[i] != 92 and p[i] != 47


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _string_end(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The quote that ends a string; -1 if there is none, or an escape that is none or half of a pair."""
    while True:
        while p[i] >= 32 and p[i] != 34 and p[i] != 92:
            i += 1
        if p[i] == 34:
            return i
        if p[i] != 92:
            return -1
        i = _escape_end(p, i + 1)
        if i < 0:
            return -1


@cython.cfunc
@cython.exceptval(check=False)
def _escape_end(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind the escape, or the two of a pair, whose first backslash stands before; -1 if it is none."""
    c: cython.uchar = p[i]
    if c != 117:
        is_known: cython.bint = c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116
        return i + 1 if is_known else -1
    if not _is_hex(p, i + 1):
        return -1
    if p[i + 1] | 32 != 100 or p[i + 2] < 56:  # not D8 to DF
        return i + 5
    if not (p[i + 2] < 58 or p[i + 2] | 32 < 99):  # the second of a pair comes first
        return -1
    if p[i + 5] != 92 or p[i + 6] != 117 or not _is_hex(p, i + 7):
        return -1
    return i + 11 if p[i + 7] | 32 == 100 and p[i + 8] | 32 >= 99 else -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_hex(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.bint:
    """Whether four hexadecimal digits stand here."""
    j: cython.Py_ssize_t
    for j in range(i, i + 4):  # noqa: SIM110 a loop compiles to a loop
        if not (48 <= p[j] <= 57 or 97 <= p[j] <= 102 or 65 <= p[j] <= 70):
            return False
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _whole_end(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind a whole number; -1 when none stands here."""
    end: cython.Py_ssize_t = _number_end(p, i)
    j: cython.Py_ssize_t
    for j in range(i, end):
        if p[j] == 46 or p[j] == 101 or p[j] == 69:
            return -1
    return end


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _number_end(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind a number; -1 when none stands here."""
    if p[i] == 45:
        i += 1
    if p[i] < 48 or p[i] > 57 or (p[i] == 48 and 48 <= p[i + 1] <= 57):
        return -1
    while 48 <= p[i] <= 57:
        i += 1
    if p[i] == 46:
        i += 1
        if p[i] < 48 or p[i] > 57:
            return -1
        while 48 <= p[i] <= 57:
            i += 1
    if p[i] == 101 or p[i] == 69:
        i += 1
        if p[i] == 43 or p[i] == 45:
            i += 1
        if p[i] < 48 or p[i] > 57:
            return -1
        while 48 <= p[i] <= 57:
            i += 1
    return i


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _word_end(p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind true, false or null; -1 when none stands here."""
    if p[i] == 116 and p[i + 1] == 114 and p[i + 2] == 117 and p[i + 3] == 101:
        return i + 4
    if p[i] == 110 and p[i + 1] == 117 and p[i + 2] == 108 and p[i + 3] == 108:
        return i + 4
    if p[i] == 102 and p[i + 1] == 97 and p[i + 2] == 108 and p[i + 3] == 115 and p[i + 4] == 101:
        return i + 5
    return -1
