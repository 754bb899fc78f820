# cython: wraparound=False, initializedcheck=False, cdivision=True
"""Columns into Perfetto packets: the plain events; what is unusual goes back to the caller, one event at a time.

Plain are begins, ends, instants and counter values whose args are JSON as profilers write it: no escapes in texts, no
key twice, no deep nesting. The bytes are those of writers/perfetto_proto.py and writers/_annotations.py, which say
what they mean, and the numbers of interned texts are given in the same order, so that both ways can be mixed.

Bytes are read and written through pointers. Each read is checked against the end of the args first, and room for
the most that may be written is made before writing. Where it is not compiled, a "pointer" is a memoryview.
"""

from __future__ import annotations

import os
import struct
from array import array

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcmp, memcpy, memmove

#: Kinds of entries, as in writers/_order.py.
_END = cython.declare(cython.int, 0)
_BEGIN = cython.declare(cython.int, 1)
_INSTANT = cython.declare(cython.int, 2)
_COUNTER = cython.declare(cython.int, 3)

_MASK = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_FACTOR = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
#: Differs from run to run, so that nobody can prepare texts that fall into the same slot; it changes no output.
_SEED = cython.declare(cython.ulonglong, int.from_bytes(os.urandom(8), "little"))

_PLACES = cython.declare(cython.Py_ssize_t, 1 << 18)
_MAX_MEMO_BYTES = cython.declare(cython.longlong, 16 << 20)
#: Larger args go back to the caller: room is made for eight times of them.
_MAX_PLAIN_BYTES = cython.declare(cython.Py_ssize_t, 1 << 19)
#: Larger buffers are given back once their bytes are taken.
_KEPT_BYTES = cython.declare(cython.Py_ssize_t, 8 << 20)
_FIRST_BYTES = cython.declare(cython.Py_ssize_t, 1 << 16)
_MAX_PLAIN_DEPTH = cython.declare(cython.int, 24)
_MAX_OPEN_KEYS = cython.declare(cython.int, 256)

#: What a place in the args may be instead of a place: unusual, so that the caller must do it; or an exception.
_UNUSUAL = cython.declare(cython.Py_ssize_t, -1)

_MAX_DIGITS = cython.declare(cython.int, 19)  # so many always fit into 64 bits
_EXACT = cython.declare(cython.ulonglong, 1 << 53)  # doubles hold all integers up to here
_EXACT_POWER = cython.declare(cython.int, 22)  # and all powers of ten up to this one
_INT64_END = cython.declare(cython.ulonglong, 1 << 63)


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
    return a[at : at + size] == b[bt : bt + size]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _hash(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.ulonglong:
    end: cython.Py_ssize_t = at + size
    value: cython.ulonglong = _SEED
    word: cython.ulonglong = 0
    while end - at >= 8:
        if cython.compiled:
            memcpy(cython.address(word), p + at, 8)
        else:
            word = int.from_bytes(p[at : at + 8], "little")
        value = ((value ^ word) * _FACTOR) & _MASK
        value ^= value >> 32
        at += 8
    word = 0
    while at < end:
        word = word << 8 | p[at]
        at += 1
    value = ((value ^ word ^ size) * _FACTOR) & _MASK
    return value ^ value >> 29


@cython.final
@cython.cclass
class _Buffer:
    """Bytes that grow at the end. Whoever writes through `p` makes room first."""

    view: cython.uchar[::1]
    p: cython.p_uchar
    used: cython.Py_ssize_t
    size: cython.Py_ssize_t

    def __init__(self, size: cython.Py_ssize_t) -> None:
        self.used = 0
        self._resize(size)

    @cython.cfunc
    def _resize(self, size: cython.Py_ssize_t) -> cython.int:
        new: cython.uchar[::1] = memoryview(bytearray(size))
        if self.used:
            new[: self.used] = self.view[: self.used]
        self.view = new
        self.size = size
        if cython.compiled:
            self.p = cython.address(new[0])
        else:
            self.p = new
        return 0

    @cython.cfunc
    @cython.inline
    def room(self, more: cython.Py_ssize_t) -> cython.int:
        """Make room for so many bytes more."""
        if self.size - self.used < more:
            self._resize(2 * self.size + more)
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def byte(self, value: cython.int) -> cython.void:
        self.p[self.used] = value
        self.used += 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def varint(self, value: cython.ulonglong) -> cython.void:
        p: cython.p_uchar = self.p
        at: cython.Py_ssize_t = self.used
        while value > 0x7F:
            p[at] = (value & 0x7F) | 0x80
            value >>= 7
            at += 1
        p[at] = value
        self.used = at + 1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def double(self, value: cython.double) -> cython.void:
        if cython.compiled:
            memcpy(self.p + self.used, cython.address(value), 8)
        else:
            struct.pack_into("<d", self.p, self.used, value)
        self.used += 8

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def bytes(self, p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.void:
        if cython.compiled:
            memcpy(self.p + self.used, p + at, size)
        else:
            self.p[self.used : self.used + size] = p[at : at + size]
        self.used += size

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def close(self, at: cython.Py_ssize_t) -> cython.void:
        """Fill in the length of a field whose contents end here; one byte was left for it at `at`."""
        size: cython.Py_ssize_t = self.used - at - 1
        if size < 0x80:
            self.p[at] = size
            return
        more: cython.Py_ssize_t = _width(size) - 1
        if cython.compiled:
            memmove(self.p + at + 1 + more, self.p + at + 1, size)
        else:
            self.p[at + 1 + more : at + 1 + more + size] = self.p[at + 1 : at + 1 + size].tobytes()
        self.used = at
        self.varint(size)
        self.used += size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _width(value: cython.ulonglong) -> cython.int:
    """The bytes of a varint."""
    width: cython.int = 1
    while value > 0x7F:
        value >>= 7
        width += 1
    return width


@cython.final
@cython.cclass
class _Table:
    """Byte strings and their numbers, from 1 on in the order in which they came; the latest can be taken out again.

    Open addressing with linear steps. The latest entry never stands in the way of an earlier one, so taking it out
    is emptying its slot.
    """

    pool: _Buffer
    slots: cython.int[::1]
    hashes: cython.ulonglong[::1]
    ends: cython.longlong[::1]
    count: cython.int

    def __init__(self) -> None:
        self.pool = _Buffer(1 << 12)
        self.slots = memoryview(array("i", bytes(4 << 9)))
        self.hashes = memoryview(array("Q", bytes(8 << 8)))
        self.ends = memoryview(array("q", bytes(8 << 8)))
        self.count = 0

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def size_of(self, number: cython.int) -> cython.Py_ssize_t:
        return self.ends[number] - self.ends[number - 1]

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def find(
        self, p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, hashed: cython.ulonglong
    ) -> cython.int:
        """The number of a byte string, 0 if it has none."""
        mask: cython.ulonglong = self.slots.shape[0] - 1
        slot: cython.ulonglong = hashed & mask
        number: cython.int = self.slots[slot]
        while number:
            if (
                self.hashes[number] == hashed
                and self.size_of(number) == size
                and _same(self.pool.p, self.ends[number - 1], p, at, size)
            ):
                return number
            slot = (slot + 1) & mask
            number = self.slots[slot]
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    def add(
        self, p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, hashed: cython.ulonglong
    ) -> cython.int:
        """Give a number to a byte string that has none."""
        if self.count + 2 > self.hashes.shape[0]:
            self._grow()
        self.pool.room(size)
        self.pool.bytes(p, at, size)
        self.count += 1
        self.hashes[self.count] = hashed
        self.ends[self.count] = self.pool.used
        self._place(self.count)
        return self.count

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _place(self, number: cython.int) -> cython.void:
        mask: cython.ulonglong = self.slots.shape[0] - 1
        slot: cython.ulonglong = self.hashes[number] & mask
        while self.slots[slot]:
            slot = (slot + 1) & mask
        self.slots[slot] = number

    @cython.cfunc
    def _grow(self) -> cython.int:
        """Twice as much; the slots stay at most half full."""
        old: cython.Py_ssize_t = self.hashes.shape[0]
        hashes: cython.ulonglong[::1] = memoryview(array("Q", bytes(16 * old)))
        ends: cython.longlong[::1] = memoryview(array("q", bytes(16 * old)))
        hashes[:old] = self.hashes
        ends[:old] = self.ends
        self.hashes = hashes
        self.ends = ends
        self.slots = memoryview(array("i", bytes(4 * 4 * old)))
        number: cython.int
        for number in range(1, self.count + 1):
            self._place(number)
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def cut(self, count: cython.int) -> cython.void:
        """Keep the first `count` only."""
        mask: cython.ulonglong = self.slots.shape[0] - 1
        slot: cython.ulonglong
        while self.count > count:
            slot = self.hashes[self.count] & mask
            while self.slots[slot] != self.count:
                slot = (slot + 1) & mask
            self.slots[slot] = 0
            self.count -= 1
        self.pool.used = self.ends[count]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _blank(p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Behind the white space."""
    while at < end and p[at] <= 32 and (p[at] == 32 or p[at] == 10 or p[at] == 13 or p[at] == 9):
        at += 1
    return at


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _text_end(p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The closing quote of a text that begins behind the quote before `at`, if it is a plain text."""
    while at < end and p[at] != 34:
        if p[at] < 32 or p[at] == 92:
            return _UNUSUAL
        at += 1
    return at if at < end else _UNUSUAL


@cython.cfunc
@cython.exceptval(check=False)
def _nested_end(p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Behind an object or array, going by its brackets only."""
    depth: cython.Py_ssize_t = 0
    byte: cython.int
    while at < end:
        byte = p[at]
        at += 1
        if byte == 34:
            at = _text_end(p, at, end)
            if at < 0:
                return _UNUSUAL
            at += 1
        elif byte == 91 or byte == 123:
            depth += 1
        elif byte == 93 or byte == 125:
            depth -= 1
            if depth == 0:
                return at
    return _UNUSUAL


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_digit(p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    return at < end and 48 <= p[at] <= 57


@cython.cfunc
@cython.exceptval(check=False)
def _is_plain(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
    """Whether JSON can hold a text as it is, without escapes."""
    i: cython.Py_ssize_t
    for i in range(at, at + size):  # noqa: SIM110 a loop compiles to a loop
        if p[i] < 32 or p[i] == 34 or p[i] == 92:
            return False
    return True


@cython.cfunc
def _is_utf8(p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
    i: cython.Py_ssize_t
    for i in range(at, at + size):
        if p[i] >= 0x80:
            break
    else:
        return True
    try:
        bytes(p[at : at + size]).decode()
    except UnicodeDecodeError:
        return False
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _slot_of(args_at: cython.longlong) -> cython.Py_ssize_t:
    mixed: cython.ulonglong = (cython.cast(cython.ulonglong, args_at) * _FACTOR) & _MASK
    return (mixed >> 32) & (_PLACES - 1)


@cython.final
@cython.cclass
class Encoder:
    """The packets of one file. Columns are those of ir/trace.py; all numbers in them must be in range.

    Args:
        head: what stands in each packet between its time and the length of its event.
        tracks, tracks_at: the bytes that name a track within an event, one after the other, and where each begins,
            with the end of the last one.
        ends, ends_at: likewise what stands behind the time in the packet that ends a slice.
        has_text: by string, 0 for the empty one.
        flows, flows_at: likewise by slice its flow fields; without flows both are empty.
        slices, instants: track, name, category, args_at, args_len.
        counters: track, integer, is_integer, value.
        parts, parts_at: the args, and where each part begins, with the end of the last one.
        shift: what is added to all times, which makes them at least 0.
        shared: whether many events have the same args, at the same place.
        max_keys, max_texts_per_key, max_text_bytes, text_overhead: the limits of writers/_annotations.py.
    """

    out: _Buffer
    interned: _Buffer
    _args_out: _Buffer

    _keys: _Table
    _texts: _Table
    _memo: _Table
    _memo_out: _Buffer
    _memo_ends: cython.longlong[::1]
    _next_key: cython.int[::1]
    _is_plain_key: cython.uchar[::1]
    _last_memo: cython.int[::1]
    _texts_of_key: cython.int[::1]
    _event_of_key: cython.longlong[::1]
    _owners: cython.int[::1]
    _open_keys: cython.int[::1]
    _open: cython.int
    _text_bytes: cython.longlong
    _events: cython.longlong
    _left_inline: cython.longlong
    _tens: cython.double[::1]

    _head: cython.const_uchar[::1]
    _tracks: cython.const_uchar[::1]
    _tracks_at: cython.const_longlong[::1]
    _ends: cython.const_uchar[::1]
    _ends_at: cython.const_longlong[::1]
    _has_text: cython.const_uchar[::1]
    _flows: cython.const_uchar[::1]
    _flows_at: cython.const_longlong[::1]
    _s_track: cython.const_int[::1]
    _s_name: cython.const_int[::1]
    _s_category: cython.const_int[::1]
    _s_args_at: cython.const_longlong[::1]
    _s_args_len: cython.const_int[::1]
    _i_track: cython.const_int[::1]
    _i_name: cython.const_int[::1]
    _i_category: cython.const_int[::1]
    _i_args_at: cython.const_longlong[::1]
    _i_args_len: cython.const_int[::1]
    _c_track: cython.const_int[::1]
    _c_integer: cython.const_longlong[::1]
    _c_is_integer: cython.const_uchar[::1]
    _c_value: cython.const_double[::1]
    _parts: list
    _parts_at: cython.const_longlong[::1]
    _addresses: cython.ulonglong[::1]
    _part: cython.Py_ssize_t
    _max_keys: cython.int
    _max_texts_per_key: cython.int
    _max_text_bytes: cython.longlong
    _text_overhead: cython.longlong
    _shift: cython.longlong
    _stamp_width: cython.int
    _shared: cython.bint
    _places: cython.longlong[::1]
    _places_out: _Buffer

    def __init__(
        self,
        *,
        head,
        tracks,
        tracks_at,
        ends,
        ends_at,
        has_text,
        flows,
        flows_at,
        slices,
        instants,
        counters,
        parts,
        parts_at,
        shift,
        shared,
        max_keys,
        max_texts_per_key,
        max_text_bytes,
        text_overhead,
    ) -> None:
        self._max_keys, self._max_texts_per_key = max_keys, max_texts_per_key
        self._max_text_bytes, self._text_overhead = max_text_bytes, text_overhead
        self.out, self.interned, self._args_out = _Buffer(1 << 20), _Buffer(1 << 16), _Buffer(1 << 12)
        self._keys, self._texts, self._memo = _Table(), _Table(), _Table()
        self._memo_out = _Buffer(1 << 12)
        self._memo_ends = memoryview(array("q", bytes(8 << 8)))
        for_keys: cython.Py_ssize_t = max_keys + 1
        self._next_key = memoryview(array("i", bytes(4 * for_keys)))
        self._is_plain_key = memoryview(bytearray(for_keys))
        self._last_memo = memoryview(array("i", bytes(4 * for_keys)))
        self._texts_of_key = memoryview(array("i", bytes(4 * for_keys)))
        self._event_of_key = memoryview(array("q", bytes(8 * for_keys)))
        self._owners = memoryview(array("i", bytes(4 << 8)))
        self._open_keys = memoryview(array("i", bytes(4 * _MAX_OPEN_KEYS)))
        self._tens = memoryview(array("d", [10.0**power for power in range(_EXACT_POWER + 1)]))
        self._open, self._text_bytes, self._events, self._left_inline = 0, 0, 0, 0
        self._head = memoryview(head)
        self._tracks, self._tracks_at = memoryview(tracks), memoryview(tracks_at)
        self._ends, self._ends_at = memoryview(ends), memoryview(ends_at)
        self._has_text = memoryview(has_text)
        self._flows, self._flows_at = memoryview(flows), memoryview(flows_at)
        self._s_track, self._s_name, self._s_category, self._s_args_at, self._s_args_len = map(memoryview, slices)
        self._i_track, self._i_name, self._i_category, self._i_args_at, self._i_args_len = map(memoryview, instants)
        self._c_track, self._c_integer, self._c_is_integer, self._c_value = map(memoryview, counters)
        self._shift, self._stamp_width, self._part = shift, 1, 0
        self._parts_at = memoryview(parts_at)
        self._parts = [memoryview(part).cast("B") for part in parts]
        self._note_addresses()
        # By the place of args, in a slot that later ones may take over: place and length of them, and of what they
        # became.
        self._shared = shared
        self._places = memoryview(array("q", bytes(8 * 4 * _PLACES if shared else 0)))
        self._places_out = _Buffer(1 << 12)

    @cython.cfunc
    def _note_addresses(self) -> cython.int:
        """Where each part lies; `_parts` keeps it there."""
        view: cython.const_uchar[::1]
        self._addresses = memoryview(array("Q", bytes(8 * (len(self._parts) + 1))))
        number: cython.Py_ssize_t
        for number in range(len(self._parts)):
            if cython.compiled:
                view = self._parts[number]
                self._addresses[number] = cython.cast(cython.size_t, cython.address(view[0]))
        return 0

    # -- for the caller's own encoding --------------------------------------------------------------------------

    def name(self, key: bytes) -> int:
        """The number of the name of an annotation, 0 if there are too many names."""
        view: cython.const_uchar[::1] = memoryview(key) if key else memoryview(b"\0")
        if cython.compiled:
            return self._key(cython.address(view[0]), 0, len(key))
        return self._key(view, 0, len(key))

    def text(self, value: bytes, key: cython.int) -> int:
        """The number of a text that stands under a key, 0 if it is to stand in the event itself."""
        view: cython.const_uchar[::1] = memoryview(value) if value else memoryview(b"\0")
        if key < 0 or key > self._max_keys:
            raise ValueError("no number of a key")
        if cython.compiled:
            return self._text_number(cython.address(view[0]), 0, len(value), key)
        return self._text_number(view, 0, len(value), key)

    def append(self, packets: bytes) -> None:
        """Put packets behind those encoded so far."""
        self.out.room(len(packets))
        self._put(packets)

    @cython.cfunc
    def _put(self, given: bytes) -> cython.int:
        """Bytes of the caller; there is room for them."""
        view: cython.const_uchar[::1] = memoryview(given) if given else memoryview(b"\0")
        if cython.compiled:
            self.out.bytes(cython.address(view[0]), 0, len(given))
        else:
            self.out.bytes(view, 0, len(given))
        return 0

    def take(self) -> memoryview:
        """The packets since the last call; they stay there until the next ones are encoded."""
        packets = memoryview(self.out.view)[: self.out.used]
        self.out.used = 0
        if self.out.size > _KEPT_BYTES:
            self.out = _Buffer(_FIRST_BYTES)
        return packets

    def take_interned(self) -> bytes:
        """The fields of InternedData that the packets encoded since the last call rely on."""
        fields = bytes(self.interned.view[: self.interned.used])
        self.interned.used = 0
        if self.interned.size > _KEPT_BYTES:
            self.interned = _Buffer(_FIRST_BYTES)
        return fields

    # -- events -----------------------------------------------------------------------------------------------

    def encode(self, kinds, times, rows, start: cython.Py_ssize_t, annotations: bytes | None = None) -> int:
        """Append the packets of entries of the file, from the one at `start` on.

        Args:
            kinds, times, rows: the columns of the entries.
            annotations: of the first entry, where the caller had to encode them.

        Returns:
            The place of the first entry that is left to the caller, or the number of entries. Of a begin or instant,
            only the annotations are left to it.
        """
        kind_of: cython.const_uchar[::1] = memoryview(kinds)
        time_of: cython.const_longlong[::1] = memoryview(times)
        row_of: cython.const_longlong[::1] = memoryview(rows)
        count: cython.Py_ssize_t = kind_of.shape[0]
        at: cython.Py_ssize_t
        row: cython.longlong
        time: cython.longlong
        kind: cython.int
        done: cython.int
        for at in range(start, count):
            kind, row = kind_of[at], row_of[at]
            time = time_of[at] + self._shift
            if row < 0 or time < 0:
                raise ValueError("a row or time below 0")
            if kind == _END:
                self._end_packet(time, self._s_track[row])
            elif kind == _BEGIN:
                done = self._named(1, time, row, annotations)
                if not done:
                    return at
            elif kind == _INSTANT:
                done = self._named(3, time, row, annotations)
                if not done:
                    return at
            elif kind == _COUNTER:
                self._counter_packet(time, row)
            else:
                return at
            annotations = None
        return count

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _width_of_time(self, time: cython.ulonglong) -> cython.int:
        """Times come in order, so that nearly all have the same width."""
        if time >> 7 * (self._stamp_width - 1) == 0 or (self._stamp_width < 9 and time >> 7 * self._stamp_width != 0):
            self._stamp_width = _width(time)
        return self._stamp_width

    @cython.cfunc
    @cython.inline
    def _end_packet(self, time: cython.longlong, track: cython.Py_ssize_t) -> cython.int:
        first: cython.Py_ssize_t = self._ends_at[track]
        size: cython.Py_ssize_t = self._ends_at[track + 1] - first
        out: _Buffer = self.out
        out.room(32 + size)
        out.byte(0x0A)
        out.varint(1 + self._width_of_time(time) + size)
        out.byte(0x40)
        out.varint(time)
        if size:
            if cython.compiled:
                out.bytes(cython.address(self._ends[first]), 0, size)
            else:
                out.bytes(self._ends, first, size)
        return 0

    @cython.cfunc
    def _named(
        self, type: cython.int, time: cython.longlong, row: cython.Py_ssize_t, annotations: bytes | None
    ) -> cython.int:
        """The packet of a slice's begin or an instant; 0 if its args are unusual."""
        track: cython.Py_ssize_t
        name: cython.int
        category: cython.int
        args_at: cython.longlong
        args_len: cython.Py_ssize_t
        if type == 1:
            track, name, category = self._s_track[row], self._s_name[row], self._s_category[row]
            args_at, args_len = self._s_args_at[row], self._s_args_len[row]
        else:
            track, name, category = self._i_track[row], self._i_name[row], self._i_category[row]
            args_at, args_len = self._i_args_at[row], self._i_args_len[row]
        args: _Buffer = self._args_out
        args.used = 0
        given: cython.Py_ssize_t = 0
        if annotations is not None:
            given = len(annotations)
        elif args_len and not self._found_again(args_at, args_len) and not self._args(args_at, args_len):
            return 0
        flow_first: cython.Py_ssize_t = 0
        flow_size: cython.Py_ssize_t = 0
        if type == 1 and self._flows_at.shape[0]:
            flow_first = self._flows_at[row]
            flow_size = self._flows_at[row + 1] - flow_first
        track_first: cython.Py_ssize_t = self._tracks_at[track]
        track_size: cython.Py_ssize_t = self._tracks_at[track + 1] - track_first
        size: cython.Py_ssize_t = 2 + track_size + flow_size + args.used + given
        if self._has_text[category]:
            size += 1 + _width(category + 1)
        if self._has_text[name]:
            size += 1 + _width(name + 1)
        self._event_head(time, size, type, track_first, track_size)
        out: _Buffer = self.out
        if self._has_text[category]:
            out.byte(0x18)
            out.varint(category + 1)
        if self._has_text[name]:
            out.byte(0x50)
            out.varint(name + 1)
        if flow_size:
            if cython.compiled:
                out.bytes(cython.address(self._flows[flow_first]), 0, flow_size)
            else:
                out.bytes(self._flows, flow_first, flow_size)
        if given:
            self._put(annotations)
        else:
            out.bytes(args.p, 0, args.used)
        return 1

    @cython.cfunc
    @cython.inline
    def _event_head(
        self,
        time: cython.longlong,
        size: cython.Py_ssize_t,
        type: cython.int,
        track_first: cython.Py_ssize_t,
        track_size: cython.Py_ssize_t,
    ) -> cython.int:
        """A packet up to the track of its event, which has `size` bytes; there is room for the rest of it."""
        out: _Buffer = self.out
        head_size: cython.Py_ssize_t = self._head.shape[0]
        out.room(64 + head_size + size)
        out.byte(0x0A)
        out.varint(1 + self._width_of_time(time) + head_size + _width(size) + size)
        out.byte(0x40)
        out.varint(time)
        if cython.compiled:
            out.bytes(cython.address(self._head[0]), 0, head_size)
        else:
            out.bytes(self._head, 0, head_size)
        out.varint(size)
        out.byte(0x48)
        out.byte(type)
        if track_size:
            if cython.compiled:
                out.bytes(cython.address(self._tracks[track_first]), 0, track_size)
            else:
                out.bytes(self._tracks, track_first, track_size)
        return 0

    @cython.cfunc
    def _counter_packet(self, time: cython.longlong, row: cython.Py_ssize_t) -> cython.int:
        track: cython.Py_ssize_t = self._c_track[row]
        first: cython.Py_ssize_t = self._tracks_at[track]
        track_size: cython.Py_ssize_t = self._tracks_at[track + 1] - first
        out: _Buffer = self.out
        integer: cython.ulonglong
        if self._c_is_integer[row]:
            integer = self._c_integer[row] & _MASK
            self._event_head(time, 2 + track_size + 2 + _width(integer), 4, first, track_size)
            out.byte(0xF0)
            out.byte(0x01)
            out.varint(integer)
        else:
            self._event_head(time, 2 + track_size + 2 + 8, 4, first, track_size)
            out.byte(0xE1)
            out.byte(0x02)
            out.double(self._c_value[row])
        return 0

    # -- args -------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _found_again(self, args_at: cython.longlong, args_len: cython.Py_ssize_t) -> cython.bint:
        """Take the annotations of args that an event before had, if they are still there."""
        if not self._shared:
            return False
        slot: cython.Py_ssize_t = 4 * _slot_of(args_at)
        if self._places[slot] != args_at or self._places[slot + 1] != args_len:
            return False
        size: cython.Py_ssize_t = self._places[slot + 3]
        self._args_out.room(size)
        self._args_out.bytes(self._places_out.p, self._places[slot + 2], size)
        return True

    @cython.cfunc
    @cython.boundscheck(False)
    def _keep(self, args_at: cython.longlong, args_len: cython.Py_ssize_t) -> cython.int:
        """Keep the annotations at hand for the next event with the same args."""
        kept: _Buffer = self._places_out
        size: cython.Py_ssize_t = self._args_out.used
        slot: cython.Py_ssize_t = 4 * _slot_of(args_at)
        if kept.used + size > _MAX_MEMO_BYTES:
            return 0
        self._places[slot], self._places[slot + 1] = args_at, args_len
        self._places[slot + 2], self._places[slot + 3] = kept.used, size
        kept.room(size)
        kept.bytes(self._args_out.p, 0, size)
        return 0

    @cython.cfunc
    def _args(self, args_at: cython.longlong, size: cython.Py_ssize_t) -> cython.bint:
        """The annotations of one JSON object; False, and nothing done, if it is unusual."""
        if size > _MAX_PLAIN_BYTES or not self._find_part(args_at, size):
            return False
        first: cython.Py_ssize_t = args_at - self._parts_at[self._part]
        keys: cython.int = self._keys.count
        texts: cython.int = self._texts.count
        memos: cython.int = self._memo.count
        interned: cython.Py_ssize_t = self.interned.used
        inline: cython.longlong = self._left_inline
        self._events += 1
        self._args_out.used = 0
        # No byte of JSON becomes more than five of annotations: "-1," makes 13, the most for its size.
        self._args_out.room(64 + 8 * size)
        done: cython.bint
        if cython.compiled:
            done = self._object(cython.cast(cython.p_const_uchar, self._addresses[self._part]), first, first + size)
        else:
            done = self._object(self._parts[self._part], first, first + size)
        if not done:
            self._take_back(keys, texts, memos)
            self.interned.used = interned
            self._args_out.used = 0
        elif self._shared and inline == self._left_inline:  # see _remembered
            self._keep(args_at, size)
        return done

    @cython.cfunc
    def _find_part(self, args_at: cython.longlong, size: cython.Py_ssize_t) -> cython.bint:
        """Whether a part holds all of it; `_part` is that part then."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = self._parts_at.shape[0] - 1
        middle: cython.Py_ssize_t
        if high < 1 or args_at < 0 or size <= 0 or args_at >= self._parts_at[high]:
            return False
        if not self._parts_at[self._part] <= args_at < self._parts_at[self._part + 1]:
            while high - low > 1:
                middle = (low + high) // 2
                if self._parts_at[middle] <= args_at:
                    low = middle
                else:
                    high = middle
            self._part = low
        return size <= self._parts_at[self._part + 1] - args_at

    @cython.cfunc
    @cython.boundscheck(False)
    def _take_back(self, keys: cython.int, texts: cython.int, memos: cython.int) -> cython.int:
        """Forget what came in since the tables had these sizes."""
        number: cython.int
        for number in range(texts + 1, self._texts.count + 1):
            self._texts_of_key[self._owners[number]] -= 1
            self._text_bytes -= self._texts.size_of(number) + self._text_overhead
        for number in range(keys + 1, self._keys.count + 1):
            self._event_of_key[number] = 0
            self._next_key[number] = 0
        if self._keys.count > keys:
            for number in range(keys + 1):
                if self._next_key[number] > keys:
                    self._next_key[number] = 0
        self._keys.cut(keys)
        self._texts.cut(texts)
        self._memo.cut(memos)
        self._memo_out.used = self._memo_ends[memos]
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    def _object(self, p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """All members as annotations of an event."""
        out: _Buffer = self._args_out
        key: cython.int = 0
        before: cython.int
        mark: cython.Py_ssize_t
        at = _blank(p, at, end)
        if at >= end or p[at] != 123:
            return False
        at = _blank(p, at + 1, end)
        if at < end and p[at] == 125:
            return _blank(p, at + 1, end) == end
        while True:
            if at >= end or p[at] != 34:
                return False
            before = key
            at = self._member_key(p, at + 1, end, before)
            if at < 0:
                return False
            key = self._next_key[before]
            if self._event_of_key[key] == self._events:
                return False  # twice: the last one counts
            self._event_of_key[key] = self._events
            out.byte(0x22)
            mark = out.used
            out.byte(0)
            out.byte(0x08)
            out.varint(key)
            at = self._value(p, at, end, key, 0)
            if at < 0:
                return False
            out.close(mark)
            at = _blank(p, at, end)
            if at >= end:
                return False
            if p[at] == 125:
                return _blank(p, at + 1, end) == end
            if p[at] != 44:
                return False
            at = _blank(p, at + 1, end)

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-2, check=False)
    def _member_key(
        self, p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, before: cython.int
    ) -> cython.Py_ssize_t:
        """The value behind a key that begins at `at`; `_next_key[before]` is its number then.

        Most keys follow the key that they followed the last time. Only plain keys are compared as they are: one with
        a quote, which only the caller can name, would match where the key in the JSON has ended before.
        """
        keys: _Table = self._keys
        guess: cython.int = self._next_key[before]
        size: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        if 0 < guess <= keys.count and self._is_plain_key[guess]:
            size = keys.size_of(guess)
            if end - at > size and p[at + size] == 34 and _same(keys.pool.p, keys.ends[guess - 1], p, at, size):
                return self._behind_colon(p, at + size + 1, end)
        stop = _text_end(p, at, end)
        if stop < 0:
            return _UNUSUAL
        guess = self._key(p, at, stop - at)
        if guess <= 0:
            return _UNUSUAL
        self._next_key[before] = guess
        return self._behind_colon(p, stop + 1, end)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _behind_colon(
        self, p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The value whose key ends before `at`."""
        at = _blank(p, at, end)
        if at >= end or p[at] != 58:
            return _UNUSUAL
        return _blank(p, at + 1, end)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _value(
        self,
        p: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        key: cython.int,
        depth: cython.int,
    ) -> cython.Py_ssize_t:
        """The value fields of a DebugAnnotation; the place behind the value, or that it is unusual."""
        out: _Buffer = self._args_out
        if at >= end:
            return _UNUSUAL
        first: cython.int = p[at]
        if first == 45 or 48 <= first <= 57:
            return self._number(p, at, end)
        if first == 34:
            return self._text(p, at + 1, end, key)
        if first == 91 or first == 123:
            if depth == 0:
                return self._remembered(p, at, end, key)
            return self._nested(p, at, end, key, depth)
        if first == 116 and end - at >= 4 and p[at + 1] == 114 and p[at + 2] == 117 and p[at + 3] == 101:
            out.byte(0x10)
            out.byte(1)
            return at + 4
        if first == 110 and end - at >= 4 and p[at + 1] == 117 and p[at + 2] == 108 and p[at + 3] == 108:
            self._inline_text(p, at, 4)
            return at + 4
        if (
            first == 102
            and end - at >= 5
            and p[at + 1] == 97
            and p[at + 2] == 108
            and p[at + 3] == 115
            and p[at + 4] == 101
        ):
            out.byte(0x10)
            out.byte(0)
            return at + 5
        return _UNUSUAL

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _inline_text(self, p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.void:
        out: _Buffer = self._args_out
        out.byte(0x32)
        out.varint(size)
        out.bytes(p, at, size)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _number(self, p: cython.p_const_uchar, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        out: _Buffer = self._args_out
        at: cython.Py_ssize_t = start
        negative: cython.bint = p[at] == 45
        value: cython.ulonglong = 0
        digits: cython.int = 0
        if negative:
            at += 1
        if not _is_digit(p, at, end):
            return _UNUSUAL
        if p[at] == 48:
            at += 1
            if _is_digit(p, at, end):
                return _UNUSUAL
        while _is_digit(p, at, end):
            if digits < _MAX_DIGITS:
                value = value * 10 + (p[at] - 48)
            if digits <= _MAX_DIGITS:
                digits += 1
            at += 1
        if at < end and (p[at] == 46 or p[at] == 101 or p[at] == 69):
            return self._double(p, start, at, end, value, digits)
        if digits > _MAX_DIGITS or value > _INT64_END or (value == _INT64_END and not negative):
            self._inline_text(p, start, at - start)
            return at
        out.byte(0x20)
        out.varint((0 - value) & _MASK if negative else value)
        return at

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-2, check=False)
    def _double(
        self,
        p: cython.p_const_uchar,
        start: cython.Py_ssize_t,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        value: cython.ulonglong,
        digits: cython.int,
    ) -> cython.Py_ssize_t:
        """A number with a fraction or exponent at `at`; before that were so many digits, of this value if they fit."""
        out: _Buffer = self._args_out
        power: cython.int = 0
        exponent: cython.int = 0
        is_small: cython.bint
        if p[at] == 46:
            at += 1
            if not _is_digit(p, at, end):
                return _UNUSUAL
            while _is_digit(p, at, end):
                if digits < _MAX_DIGITS:
                    value = value * 10 + (p[at] - 48)
                    power -= 1
                    if value:
                        digits += 1
                elif digits == _MAX_DIGITS:
                    digits += 1
                at += 1
        if at < end and (p[at] == 101 or p[at] == 69):
            at += 1
            is_small = at < end and p[at] == 45
            if at < end and (p[at] == 45 or p[at] == 43):
                at += 1
            if not _is_digit(p, at, end):
                return _UNUSUAL
            while _is_digit(p, at, end):
                if exponent < 10000:
                    exponent = exponent * 10 + (p[at] - 48)
                at += 1
            power = power - exponent if is_small else power + exponent
        number: cython.double
        if digits <= _MAX_DIGITS and value <= _EXACT and -_EXACT_POWER <= power <= _EXACT_POWER:
            # Both are exact, so their product or quotient is rounded once.
            number = self._tens[0] * value
            number = number / self._tens[-power] if power < 0 else number * self._tens[power]
            if p[start] == 45:
                number = -number
        else:
            number = float(bytes(p[start:at]))
            if number - number != 0:
                self._inline_text(p, start, at - start)
                return at
        out.byte(0x29)
        out.double(number)
        return at

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _text(
        self, p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, key: cython.int
    ) -> cython.Py_ssize_t:
        out: _Buffer = self._args_out
        stop: cython.Py_ssize_t = _text_end(p, at, end)
        if stop < 0:
            return _UNUSUAL
        number: cython.int = self._text_number(p, at, stop - at, key)
        if number > 0:
            out.byte(0x88)
            out.byte(0x01)
            out.varint(number)
        elif number < 0:
            return _UNUSUAL
        else:
            self._left_inline += 1
            self._inline_text(p, at, stop - at)
        return stop + 1

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-2, check=False)
    def _remembered(
        self, p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, key: cython.int
    ) -> cython.Py_ssize_t:
        """An object or array, which is often one that was there before."""
        out: _Buffer = self._args_out
        memo: _Table = self._memo
        number: cython.int = self._last_memo[key]
        size: cython.Py_ssize_t
        if 0 < number <= memo.count:
            size = memo.size_of(number)
            # Its brackets are balanced, so what begins like it also ends there.
            if end - at >= size and _same(memo.pool.p, memo.ends[number - 1], p, at, size):
                self._copy_remembered(number)
                return at + size
        stop: cython.Py_ssize_t = _nested_end(p, at, end)
        if stop < 0:
            return _UNUSUAL
        hashed: cython.ulonglong = _hash(p, at, stop - at)
        number = memo.find(p, at, stop - at, hashed)
        if number:
            self._last_memo[key] = number
            self._copy_remembered(number)
            return stop
        mark: cython.Py_ssize_t = out.used
        inline: cython.longlong = self._left_inline
        if self._nested(p, at, end, key, 0) != stop:
            return _UNUSUAL
        # A text that was left inline may be interned when it comes again under another key.
        if inline == self._left_inline and memo.pool.used + self._memo_out.used < _MAX_MEMO_BYTES:
            self._last_memo[key] = self._remember(p, at, stop - at, hashed, mark)
        return stop

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _copy_remembered(self, number: cython.int) -> cython.void:
        first: cython.Py_ssize_t = self._memo_ends[number - 1]
        self._args_out.bytes(self._memo_out.p, first, self._memo_ends[number] - first)

    @cython.cfunc
    def _remember(
        self,
        p: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        size: cython.Py_ssize_t,
        hashed: cython.ulonglong,
        mark: cython.Py_ssize_t,
    ) -> cython.int:
        number: cython.int = self._memo.add(p, at, size, hashed)
        old: cython.Py_ssize_t = self._memo_ends.shape[0]
        ends: cython.longlong[::1]
        if number >= old:
            ends = memoryview(array("q", bytes(16 * old)))
            ends[:old] = self._memo_ends
            self._memo_ends = ends
        self._memo_out.room(self._args_out.used - mark)
        self._memo_out.bytes(self._args_out.p, mark, self._args_out.used - mark)
        self._memo_ends[number] = self._memo_out.used
        return number

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _nested(
        self,
        p: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        key: cython.int,
        depth: cython.int,
    ) -> cython.Py_ssize_t:
        """The entries of an object or the items of an array."""
        out: _Buffer = self._args_out
        opening: cython.int = p[at]
        closing: cython.int = opening + 2
        is_object: cython.bint = opening == 123
        first_key: cython.int = self._open
        mark: cython.Py_ssize_t
        if depth >= _MAX_PLAIN_DEPTH:
            return _UNUSUAL
        at = _blank(p, at + 1, end)
        if at < end and p[at] == closing:
            out.byte(0x32)
            out.byte(2)
            out.byte(opening)
            out.byte(closing)
            return at + 1
        while True:
            out.byte(0x5A if is_object else 0x62)
            mark = out.used
            out.byte(0)
            if is_object:
                if at >= end or p[at] != 34:
                    break
                at = self._nested_key(p, at + 1, end, first_key)
                if at < 0:
                    break
                key = self._open_keys[self._open - 1]
            at = self._value(p, at, end, key, depth + 1)
            if at < 0:
                break
            out.close(mark)
            at = _blank(p, at, end)
            if at >= end:
                break
            if p[at] == closing:
                self._open = first_key
                return at + 1
            if p[at] != 44:
                break
            at = _blank(p, at + 1, end)
        self._open = first_key
        return _UNUSUAL

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.exceptval(-2, check=False)
    def _nested_key(
        self, p: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, first: cython.int
    ) -> cython.Py_ssize_t:
        """The value behind a key of a nested object, whose number is put behind those of the same object."""
        out: _Buffer = self._args_out
        stop: cython.Py_ssize_t = _text_end(p, at, end)
        other: cython.int
        if stop < 0 or self._open >= _MAX_OPEN_KEYS:
            return _UNUSUAL
        key: cython.int = self._key(p, at, stop - at)
        if key <= 0:
            return _UNUSUAL
        for other in range(first, self._open):
            if self._open_keys[other] == key:
                return _UNUSUAL
        self._open_keys[self._open] = key
        self._open += 1
        out.byte(0x08)
        out.varint(key)
        return self._behind_colon(p, stop + 1, end)

    # -- interning --------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _key(self, p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
        """The number of a key: 0 if there are too many, -1 if it is no text."""
        hashed: cython.ulonglong = _hash(p, at, size)
        number: cython.int = self._keys.find(p, at, size, hashed)
        if number:
            return number
        if not _is_utf8(p, at, size):
            return -1
        if self._keys.count >= self._max_keys:
            return 0
        number = self._keys.add(p, at, size, hashed)
        self._is_plain_key[number] = _is_plain(p, at, size)
        self.interned.room(32 + size)
        self.interned.byte(0x1A)
        self._intern(p, at, size, number)
        return number

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _text_number(
        self, p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, key: cython.int
    ) -> cython.int:
        """The number of a text: 0 if it stays in the event, -1 if it is no text."""
        hashed: cython.ulonglong = _hash(p, at, size)
        number: cython.int = self._texts.find(p, at, size, hashed)
        if number:
            return number
        if not _is_utf8(p, at, size):
            return -1
        bytes_after: cython.longlong = self._text_bytes + size + self._text_overhead
        if key == 0 or self._texts_of_key[key] >= self._max_texts_per_key or bytes_after > self._max_text_bytes:
            return 0
        number = self._texts.add(p, at, size, hashed)
        self._text_bytes = bytes_after
        self._texts_of_key[key] += 1
        self._own(number, key)
        self.interned.room(32 + size)
        self.interned.byte(0xEA)
        self.interned.byte(0x01)
        self._intern(p, at, size, number)
        return number

    @cython.cfunc
    def _own(self, number: cython.int, key: cython.int) -> cython.int:
        """Note which key brought a text."""
        old: cython.Py_ssize_t = self._owners.shape[0]
        owners: cython.int[::1]
        if number >= old:
            owners = memoryview(array("i", bytes(8 * old)))
            owners[:old] = self._owners
            self._owners = owners
        self._owners[number] = key
        return 0

    @cython.cfunc
    def _intern(
        self, p: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, number: cython.int
    ) -> cython.int:
        out: _Buffer = self.interned
        out.varint(1 + _width(number) + 1 + _width(size) + size)
        out.byte(0x08)
        out.varint(number)
        out.byte(0x12)
        out.varint(size)
        out.bytes(p, at, size)
        return 0
