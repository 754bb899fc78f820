# cython: wraparound=False, initializedcheck=False
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
from array import array

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.libc.string import memcmp, memcpy

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

#: The fields that a plain event may have; first those whose values are kept as they stand in the file.
_NAME = cython.declare(cython.int, 0)
_CATEGORY = cython.declare(cython.int, 1)
_PID = cython.declare(cython.int, 2)
_TID = cython.declare(cython.int, 3)
_ID = cython.declare(cython.int, 4)
_KEPT = cython.declare(cython.int, 5)
_TS = cython.declare(cython.int, 5)
_DUR = cython.declare(cython.int, 6)
_PHASE = cython.declare(cython.int, 7)
_SCOPE = cython.declare(cython.int, 8)
_BINDING = cython.declare(cython.int, 9)
_ARGS = cython.declare(cython.int, 10)
_OTHER = cython.declare(cython.int, 11)

#: What is said instead of a position: here is no such thing.
_NONE = cython.declare(cython.Py_ssize_t, -1)

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
def _hash(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.uint:
    end: cython.Py_ssize_t = at + size
    state: cython.ulonglong = _SEED ^ size
    word: cython.ulonglong = 0
    while end - at >= 8:
        if cython.compiled:
            memcpy(cython.address(word), p + at, 8)
        else:
            word = int.from_bytes(p[at : at + 8], "little")
        state = ((state ^ word) * _FACTOR) & _ALL
        state ^= state >> 32
        at += 8
    word = 0
    while at < end:
        word = word << 8 | p[at]
        at += 1
    return (((state ^ word) * _FACTOR) & _ALL) >> 32  # the upper half depends on all bits


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _same(
    a: cython.p_const_uchar,
    at: cython.Py_ssize_t,
    b: cython.p_const_uchar,
    bt: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.bint:
    if cython.compiled:
        return memcmp(a + at, b + bt, size) == 0
    return bytes(a[at : at + size]) == bytes(b[bt : bt + size])


@cython.final
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
    @cython.exceptval(-1)
    def get(self, p: cython.p_const_uchar, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
        hashed: cython.uint = _hash(p, start, size)
        place: cython.uint = self._first_place(hashed)
        number: cython.int
        while self._slots[place] != 0:
            number = cython.cast(cython.int, self._slots[place]) - 1
            if self._hashes[number] == hashed and self._is(number, p, start, size):
                return number
            place = (place + 1) & self._mask
        return self._add(p, start, size, hashed, place)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _first_place(self, hashed: cython.uint) -> cython.uint:
        return (hashed ^ (hashed >> 15)) & self._mask

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _is(
        self, number: cython.int, p: cython.p_const_uchar, start: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.bint:
        at: cython.longlong = self._starts[number]
        if self._starts[number + 1] - at != size:
            return False
        pool: cython.p_const_uchar = cython.address(self._pool[0]) if cython.compiled else self._pool
        return _same(pool, at, p, start, size)

    @cython.cfunc
    @cython.exceptval(-1)
    def _add(
        self,
        p: cython.p_const_uchar,
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
            place = self._first_place(hashed)
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


@cython.final
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
    _out: cython.p_uchar
    _size: cython.Py_ssize_t  # of what is in `_out`
    _uncopied: cython.Py_ssize_t

    # The event that is being read: the fields that were there, as bits, and where those are that are kept.
    _seen: cython.int
    _is_odd: cython.bint
    _phase: cython.int
    _flags: cython.int
    _ts: cython.longlong
    _dur: cython.longlong
    _ns: cython.longlong  # the last number that was read
    _at: cython.longlong[::1]
    _len: cython.longlong[::1]

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
        self._at = memoryview(array("q", bytes(8 * _KEPT)))
        self._len = memoryview(array("q", bytes(8 * _KEPT)))
        self.stopped = False
        self.args_size = 0

    def stand(self, number: int) -> tuple[int, int, int, int]:
        """The pid, tid and category (numbers of texts) of what stands there, and whether these are ends of flows."""
        pid, tid, category, role = np.frombuffer(self.stands.text(number), np.int32).tolist()
        return pid, tid, category, role

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
        p: cython.p_const_uchar
        if cython.compiled:
            p = data
            self._out = cython.address(args[0])
        else:
            p = data + b"\0"
            self._out = args
        self._size = 0
        self.stopped = False
        i: cython.Py_ssize_t = start
        end: cython.Py_ssize_t
        count: cython.Py_ssize_t = 0
        is_separated: cython.bint = True
        while count < self._fields.shape[1]:
            while p[i] == ord(",") or _is_space(p[i]):
                is_separated |= p[i] == ord(",")
                i += 1
            if p[i] != ord("{") or not (is_separated or _is_event(p, i)):
                break
            is_separated = False
            end = self._event(p, i, count)
            if end < 0:
                self.stopped = True
                break
            i = end
            count += 1
        self.args_size = self._size
        return count, i

    # -- one event ---------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-2)
    def _event(self, p: cython.p_const_uchar, begin: cython.Py_ssize_t, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read the event that begins here; the position behind it, or -1 when it is not whole or no JSON."""
        args_at: cython.Py_ssize_t = self._size
        self._forget(begin)
        end: cython.Py_ssize_t = self._members(p, begin + 1)
        is_plain: cython.bint = end >= 0 and not self._is_odd and _is_plain_phase(self._phase, self._seen)
        if is_plain:
            self._fill(row, args_at)
            self._number_texts(p, row)
        else:
            self._size = args_at
        if end >= 0:
            self._put_place(row, begin, end, self._phase if is_plain else 0)
        return end

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _forget(self, begin: cython.Py_ssize_t) -> cython.void:
        """Begin with an event of which nothing is known yet."""
        field: cython.int
        self._seen = 0
        self._is_odd = False
        self._phase = 0
        self._flags = 0
        self._ts = 0
        self._dur = 0
        for field in range(_KEPT):
            self._at[field] = begin
            self._len[field] = 0

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _put_place(
        self, row: cython.Py_ssize_t, begin: cython.Py_ssize_t, end: cython.Py_ssize_t, phase: cython.int
    ) -> cython.void:
        self._fields[_START_ROW, row] = begin
        self._fields[_END_ROW, row] = end
        self._fields[_PHASE_ROW, row] = phase

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _fill(self, row: cython.Py_ssize_t, args_at: cython.Py_ssize_t) -> cython.void:
        """Fill in what a plain event says of itself."""
        self._fields[_TS_ROW, row] = self._ts
        self._fields[_DUR_ROW, row] = self._dur
        self._fields[_ID_AT_ROW, row] = self._at[_ID]
        self._fields[_ID_LEN_ROW, row] = self._len[_ID]
        self._fields[_ARGS_AT_ROW, row] = args_at
        self._fields[_ARGS_LEN_ROW, row] = self._size - args_at

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _number_texts(self, p: cython.p_const_uchar, row: cython.Py_ssize_t) -> cython.int:
        """Give the texts of a plain event their numbers."""
        name: cython.int = self._number_of(p, _NAME)
        category: cython.int = self._number_of(p, _CATEGORY)
        self._stand[0] = self._number_of(p, _PID)
        self._stand[1] = self._number_of(p, _TID)
        self._stand[2] = category
        self._stand[3] = self._phase == ord("f")
        self._fields[_NAME_ROW, row] = name
        self._fields[_CATEGORY_ROW, row] = category
        self._fields[_STAND_ROW, row] = self._stand_number()
        if not _is_flow(self._phase):
            if self.texts.declare(name):
                self._flags |= _FRESH
            if self._phase != ord("E") and self.texts.declare(category):  # that of an end says nothing
                self._flags |= _FRESH
        self._fields[_FLAGS_ROW, row] = self._flags
        return 0

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _number_of(self, p: cython.p_const_uchar, field: cython.int) -> cython.int:
        return self.texts.get(p, self._at[field], self._len[field])

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(-1)
    def _stand_number(self) -> cython.int:
        """The number of `_stand`, which makes an event fresh if it is a new one."""
        known: cython.int = self.stands._count
        p: cython.p_const_uchar
        if cython.compiled:  # noqa: SIM108 a pointer or an object
            p = cython.address(self._stand_bytes[0])
        else:
            p = bytes(self._stand_bytes)
        number: cython.int = self.stands.get(p, 0, self._stand_bytes.shape[0])
        if number == known:
            self._flags |= _FRESH
        return number

    # -- members of events -------------------------------------------------------------------------------------
    #
    # Each method says the position behind what it reads, or -1 if that is not what it reads.

    @cython.cfunc
    @cython.exceptval(check=False)
    def _members(self, p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read the members of an event, and the bracket that ends it."""
        i = _behind_space(p, i)
        if p[i] == ord("}"):
            return i + 1
        while True:
            i = self._member(p, i)
            if i < 0:
                return _NONE
            i = _behind_space(p, i)
            if p[i] == ord("}"):
                return i + 1
            if p[i] != ord(","):
                return _NONE
            i = _behind_space(p, i + 1)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _member(self, p: cython.p_const_uchar, key: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read a key and its value, in whatever way: an event that is not plain must be JSON, too."""
        if p[key] != ord('"'):
            return _NONE
        end: cython.Py_ssize_t = _string_end(p, key + 1)
        if end < 0:
            return _NONE
        i: cython.Py_ssize_t = _behind_space(p, end + 1)
        if p[i] != ord(":"):
            return _NONE
        i = _behind_space(p, i + 1)
        field: cython.int = _field(p, key + 1, end - key - 1)
        if field == _OTHER or _has(self._seen, field):
            return self._odd(p, i)
        self._seen |= 1 << field
        end = self._value(p, i, field)
        return end if end >= 0 else self._odd(p, i)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _value(self, p: cython.p_const_uchar, i: cython.Py_ssize_t, field: cython.int) -> cython.Py_ssize_t:
        """Read the value of a field."""
        if field == _TS or field == _DUR:
            return self._time(p, i, field)
        if field == _ARGS:
            return self._args(p, i)
        if p[i] == ord('"'):
            return self._text(p, i, field)
        if field == _PID or field == _TID or field == _ID:
            return self._keep(field, i, _integer_end(p, i))
        return _NONE

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _text(self, p: cython.p_const_uchar, i: cython.Py_ssize_t, field: cython.int) -> cython.Py_ssize_t:
        end: cython.Py_ssize_t = _plain_end(p, i + 1)
        if end < 0:
            return _NONE
        if field == _NAME or field == _CATEGORY:
            self._keep(field, i + 1, end)
        elif field < _KEPT:
            self._keep(field, i, end + 1)
        elif end != i + 2 or not self._letter(field, p[i + 1]):
            return _NONE
        return end + 1

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _keep(self, field: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        if end >= 0:
            self._at[field] = start
            self._len[field] = end - start
        return end

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _letter(self, field: cython.int, letter: cython.uchar) -> cython.bint:
        """Take a text of one letter; whether it is one that plain events have there."""
        if field == _PHASE:
            self._phase = letter
            return True
        if field == _BINDING and letter == ord("e"):
            self._flags |= _ENCLOSING
            return True
        return field == _SCOPE and letter == ord("t")

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _time(self, p: cython.p_const_uchar, i: cython.Py_ssize_t, field: cython.int) -> cython.Py_ssize_t:
        end: cython.Py_ssize_t = self._nanoseconds(p, i)
        if end < 0:
            return _NONE
        if field == _TS:
            self._ts = self._ns
            return end
        self._dur = self._ns
        return end if self._ns >= 0 else _NONE

    @cython.cfunc
    @cython.exceptval(check=False)
    def _nanoseconds(self, p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read a number without exponent that fits, into `_ns`."""
        is_negative: cython.bint = p[i] == ord("-")
        if is_negative:
            i += 1
        if not _begins_number(p, i):
            return _NONE
        first: cython.Py_ssize_t = i
        value: cython.ulonglong = 0  # wraps around only where there are too many digits
        while _is_digit(p[i]):
            value = value * 10 + (p[i] - ord("0"))
            i += 1
        if i - first > _MAX_DIGITS - self._exponent:
            return _NONE
        self._ns = value
        i = self._decimals(p, i)
        if i < 0 or _is_exponent(p[i]):
            return _NONE
        if is_negative:
            self._ns = -self._ns
        return i

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _decimals(self, p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read the decimals, if any, of the number in `_ns`, and turn that into ns, rounded half up."""
        value: cython.longlong = self._ns
        missing: cython.int = self._exponent
        if p[i] == ord("."):
            i += 1
            if not _is_digit(p[i]):
                return _NONE
            while missing > 0 and _is_digit(p[i]):
                value = value * 10 + (p[i] - ord("0"))
                missing -= 1
                i += 1
            if missing == 0 and ord("5") <= p[i] <= ord("9"):
                value += 1
            i = _digits_end(p, i)
        while missing > 0:
            value = value * 10
            missing -= 1
        self._ns = value
        return i

    # -- any JSON ----------------------------------------------------------------------------------------------
    #
    # What is passed over is copied up to the next white space in one go, from `_uncopied` on.

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _args(self, p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Copy an object without white space, or nothing.

        It never takes more than it reads, and what is read again was not copied, so the space is enough.
        """
        before: cython.Py_ssize_t = self._size
        if p[i] != ord("{"):
            return _NONE
        self._uncopied = i
        i = self._nested(p, i, 0)
        if i < 0:
            self._size = before
            return _NONE
        self._copy(p, i)
        return i

    @cython.cfunc
    @cython.exceptval(check=False)
    def _odd(self, p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Pass over a value that no plain event has."""
        before: cython.Py_ssize_t = self._size
        self._is_odd = True
        self._uncopied = i
        i = self._nested(p, i, 0) if _is_opening(p[i]) else _scalar_end(p, i)
        self._size = before
        return i

    @cython.cfunc
    @cython.exceptval(check=False)
    def _nested(self, p: cython.p_const_uchar, i: cython.Py_ssize_t, depth: cython.int) -> cython.Py_ssize_t:
        """Pass over an object or an array."""
        is_object: cython.bint = p[i] == ord("{")
        closing: cython.uchar = ord("}") if is_object else ord("]")
        if depth >= _MAX_DEPTH:
            return _NONE
        i = self._behind_gap(p, i + 1)
        if p[i] == closing:
            return i + 1
        while True:
            if is_object:
                i = self._key(p, i)
                if i < 0:
                    return _NONE
            i = self._nested(p, i, depth + 1) if _is_opening(p[i]) else _scalar_end(p, i)
            if i < 0:
                return _NONE
            i = self._behind_gap(p, i)
            if p[i] == closing:
                return i + 1
            if p[i] != ord(","):
                return _NONE
            i = self._behind_gap(p, i + 1)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _key(self, p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Pass over a key and what is between it and its value."""
        if p[i] != ord('"'):
            return _NONE
        i = _behind_string(p, i)
        if i < 0:
            return _NONE
        i = self._behind_gap(p, i)
        return self._behind_gap(p, i + 1) if p[i] == ord(":") else _NONE

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _behind_gap(self, p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Pass over white space, if any, which is not copied."""
        if _is_space(p[i]):
            self._copy(p, i)
            i = _behind_space(p, i + 1)
            self._uncopied = i
        return i

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _copy(self, p: cython.p_const_uchar, end: cython.Py_ssize_t) -> cython.void:
        """Copy up to here."""
        out: cython.p_uchar = self._out
        n: cython.Py_ssize_t = self._size
        i: cython.Py_ssize_t
        for i in range(self._uncopied, end):
            out[n] = p[i]
            n += 1
        self._size = n


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_event(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.bint:
    """Whether an object is an event and not the document of another writer: its first key is not traceEvents."""
    i = _behind_space(p, i + 1)
    return not (p[i] == ord('"') and _stands(p, i + 1, b"traceEvents", 11) and p[i + 12] == ord('"'))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _field(p: cython.p_const_uchar, key: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
    """Which field of an event a key is."""
    if size == 2:
        if _stands(p, key, b"ts", 2):
            return _TS
        if _stands(p, key, b"ph", 2):
            return _PHASE
        if _stands(p, key, b"id", 2):
            return _ID
        if _stands(p, key, b"bp", 2):
            return _BINDING
    elif size == 3:
        if _stands(p, key, b"pid", 3):
            return _PID
        if _stands(p, key, b"tid", 3):
            return _TID
        if _stands(p, key, b"dur", 3):
            return _DUR
        if _stands(p, key, b"cat", 3):
            return _CATEGORY
    elif size == 4:
        if _stands(p, key, b"name", 4):
            return _NAME
        if _stands(p, key, b"args", 4):
            return _ARGS
    elif size == 1 and p[key] == ord("s"):
        return _SCOPE
    return _OTHER


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _stands(
    p: cython.p_const_uchar, i: cython.Py_ssize_t, text: cython.p_const_uchar, size: cython.Py_ssize_t
) -> cython.bint:
    """Whether this text stands here."""
    j: cython.Py_ssize_t
    for j in range(size):  # noqa: SIM110 a loop compiles to a loop
        if p[i + j] != text[j]:
            return False
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _has(seen: cython.int, field: cython.int) -> cython.bint:
    return (seen >> field) & 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_flow(phase: cython.int) -> cython.bint:
    return phase == ord("s") or phase == ord("t") or phase == ord("f")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_plain_phase(phase: cython.int, seen: cython.int) -> cython.bint:
    """Whether an event of this phase with these fields needs no closer look."""
    is_slice: cython.bint = phase == ord("X")
    is_mark: cython.bint = phase == ord("B") or phase == ord("E")
    is_instant: cython.bint = phase == ord("i") or phase == ord("I") or phase == ord("R")
    is_flow: cython.bint = _is_flow(phase)
    if not (is_slice or is_mark or is_instant or is_flow) or not _has(seen, _TS):
        return False
    if _has(seen, _DUR) != is_slice or _has(seen, _ID) != is_flow or (_has(seen, _ARGS) and is_flow):
        return False
    return (is_instant or not _has(seen, _SCOPE)) and (is_flow or not _has(seen, _BINDING))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_space(c: cython.uchar) -> cython.bint:
    return c == ord(" ") or c == ord("\n") or c == ord("\r") or c == ord("\t")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _behind_space(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while _is_space(p[i]):
        i += 1
    return i


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _plain_end(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The quote that ends a text without control characters; -1 when it is another one, or does not end."""
    while True:
        i = _run_end(p, i)
        if p[i] == ord('"'):
            return i
        if p[i] != ord("\\") or _is_control(p, i + 1):
            return _NONE
        i = _escape_end(p, i + 1)
        if i < 0:
            return _NONE


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_control(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.bint:
    """Whether the escape here, without its backslash, can be that of a control character."""
    if p[i] == ord("u"):
        return _stands(p, i + 1, b"000", 3) or _stands(p, i + 1, b"001", 3)
    return p[i] != ord('"') and p[i] != ord("\\") and p[i] != ord("/")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _string_end(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The quote that ends a string; -1 if there is none, or an escape that is none or half of a pair."""
    while True:
        i = _run_end(p, i)
        if p[i] == ord('"'):
            return i
        if p[i] != ord("\\"):
            return _NONE
        i = _escape_end(p, i + 1)
        if i < 0:
            return _NONE


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_opening(c: cython.uchar) -> cython.bint:
    return c == ord("{") or c == ord("[")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _scalar_end(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind a string, number or word; -1 when none stands here."""
    if p[i] == ord('"'):
        return _behind_string(p, i)
    return _number_end(p, i) if p[i] == ord("-") or _is_digit(p[i]) else _word_end(p, i)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _behind_string(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind the string here; -1 if it is none."""
    end: cython.Py_ssize_t = _string_end(p, i + 1)
    return end + 1 if end >= 0 else _NONE


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _run_end(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the next quote, backslash or control character is."""
    while p[i] >= ord(" ") and p[i] != ord('"') and p[i] != ord("\\"):
        i += 1
    return i


@cython.cfunc
@cython.exceptval(check=False)
def _escape_end(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind the escape, or the two of a pair, whose first backslash stands before; -1 if it is none."""
    if p[i] != ord("u"):
        return i + 1 if _is_short_escape(p[i]) else _NONE
    if not _is_hex(p, i + 1):
        return _NONE
    if _lower(p[i + 1]) != ord("d") or p[i + 2] < ord("8"):  # no surrogate
        return i + 5
    if p[i + 2] > ord("9") and _lower(p[i + 2]) > ord("b"):  # a low surrogate comes first
        return _NONE
    if p[i + 5] != ord("\\") or p[i + 6] != ord("u") or not _is_hex(p, i + 7):
        return _NONE
    return i + 11 if _lower(p[i + 7]) == ord("d") and _lower(p[i + 8]) >= ord("c") else _NONE


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_short_escape(c: cython.uchar) -> cython.bint:
    if c == ord('"') or c == ord("\\") or c == ord("/"):
        return True
    return c == ord("b") or c == ord("f") or c == ord("n") or c == ord("r") or c == ord("t")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _lower(c: cython.uchar) -> cython.uchar:
    """A letter as a lower-case one; a digit as it is."""
    return c | 0x20


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_hex(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.bint:
    """Whether four hexadecimal digits stand here."""
    j: cython.Py_ssize_t
    for j in range(i, i + 4):  # noqa: SIM110 a loop compiles to a loop
        if not (_is_digit(p[j]) or ord("a") <= _lower(p[j]) <= ord("f")):
            return False
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_digit(c: cython.uchar) -> cython.bint:
    return ord("0") <= c <= ord("9")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _begins_number(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.bint:
    """Whether digits stand here that a number may begin with: several do not begin with a zero."""
    return _is_digit(p[i]) and not (p[i] == ord("0") and _is_digit(p[i + 1]))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_exponent(c: cython.uchar) -> cython.bint:
    return c == ord("e") or c == ord("E")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _digits_end(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while _is_digit(p[i]):
        i += 1
    return i


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _integer_end(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind a number without fraction and exponent; -1 when none stands here."""
    if p[i] == ord("-"):
        i += 1
    if not _begins_number(p, i):
        return _NONE
    i = _digits_end(p, i)
    return _NONE if p[i] == ord(".") or _is_exponent(p[i]) else i


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _number_end(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind a number; -1 when none stands here."""
    if p[i] == ord("-"):
        i += 1
    if not _begins_number(p, i):
        return _NONE
    i = _digits_end(p, i)
    if p[i] == ord("."):
        if not _is_digit(p[i + 1]):
            return _NONE
        i = _digits_end(p, i + 1)
    if _is_exponent(p[i]):
        i += 1
        if p[i] == ord("+") or p[i] == ord("-"):
            i += 1
        if not _is_digit(p[i]):
            return _NONE
        i = _digits_end(p, i)
    return i


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _word_end(p: cython.p_const_uchar, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position behind true, false or null; -1 when none stands here."""
    if _stands(p, i, b"true", 4) or _stands(p, i, b"null", 4):
        return i + 4
    return i + 5 if _stands(p, i, b"false", 5) else _NONE
