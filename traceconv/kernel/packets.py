"""Packets of a Perfetto trace, from the bytes of the file to columns.

One pass cuts packets and reads those that hold nothing but a plain track event: begin, end, instant, state or counter,
with interned name, at most one interned category, flow ids and debug annotations of the usual types. Every other packet
is left to the caller, in its place, and so is what ids stand for: an id that is met first is asked for, and the packet
is read again when it is known.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import cython
import numpy as np

#: Why `Packets.run` ended: it needs more bytes or found no packet; the next packet is for the caller; the columns are
#: full; an id is asked for.
MORE, ODD, FULL, NEED = range(4)
#: What is asked for: the number of the name or category of an id, the JSON of the key or text of an id, the number of
#: the track of a uuid, of the default track or of the series of counter values of a sequence.
NAME, CATEGORY, KEY, TEXT, TRACK, DEFAULT_TRACK, SERIES = range(7)
#: The rows of `Packets.fields`: kind as in the file (SLICE_KIND for an instant with flow ids), track, ts, clock, name
#: (of a counter the place of its value), category (of a counter its series), number of the packet, end of the args.
FIELDS = 8
SLICE_KIND = 6

_ODD = cython.declare(cython.int, ODD)
_FULL = cython.declare(cython.int, FULL)
_NEED = cython.declare(cython.int, NEED)
_NAME = cython.declare(cython.int, NAME)
_CATEGORY = cython.declare(cython.int, CATEGORY)
_KEY = cython.declare(cython.int, KEY)
_TEXT = cython.declare(cython.int, TEXT)
_TRACK = cython.declare(cython.int, TRACK)
_DEFAULT_TRACK = cython.declare(cython.int, DEFAULT_TRACK)
_SERIES = cython.declare(cython.int, SERIES)
_ALL = cython.declare(cython.ulonglong, 2**64 - 1)
_HALF = cython.declare(cython.ulonglong, 2**63)
_IDS = cython.declare(cython.ulonglong, 2**32)
_MIXER = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
#: Differs from run to run, so that nobody can prepare ids that fall into the same place; it changes no output.
_SEED = cython.declare(cython.ulonglong, int.from_bytes(os.urandom(8), "little"))
_MAX_PACKET = cython.declare(cython.ulonglong, 2**28 - 1)
#: What a track event has, as bits; args and flows may stand there several times.
_HAS_ARGS = cython.declare(cython.int, 1)
_HAS_TYPE = cython.declare(cython.int, 2)
_HAS_TRACK = cython.declare(cython.int, 4)
_HAS_NAME = cython.declare(cython.int, 8)
_HAS_CATEGORY = cython.declare(cython.int, 16)
_HAS_INTEGER = cython.declare(cython.int, 32)
_HAS_DOUBLE = cython.declare(cython.int, 64)
#: The values of TrackEvent.type.
_BEGIN = cython.declare(cython.ulonglong, 1)
_END = cython.declare(cython.ulonglong, 2)
_INSTANT = cython.declare(cython.ulonglong, 3)
_COUNTER = cython.declare(cython.ulonglong, 4)
_STATE = cython.declare(cython.ulonglong, 5)
_SLICE = cython.declare(cython.ulonglong, SLICE_KIND)
#: Fields of DebugAnnotation with their wire types: name_iid, name; bool_value, uint_value, int_value, double_value,
#: string_value, string_value_iid; dict_entries, array_values.
_KEY_IID = cython.declare(cython.ulonglong, 1 << 3)
_KEY_TEXT = cython.declare(cython.ulonglong, 10 << 3 | 2)
_BOOL = cython.declare(cython.ulonglong, 2 << 3)
_UNSIGNED = cython.declare(cython.ulonglong, 3 << 3)
_SIGNED = cython.declare(cython.ulonglong, 4 << 3)
_DOUBLE = cython.declare(cython.ulonglong, 5 << 3 | 1)
_TEXT_VALUE = cython.declare(cython.ulonglong, 6 << 3 | 2)
_TEXT_IID = cython.declare(cython.ulonglong, 17 << 3)
_ENTRY = cython.declare(cython.ulonglong, 11 << 3 | 2)
_ITEM = cython.declare(cython.ulonglong, 12 << 3 | 2)
_MAX_DEPTH = cython.declare(cython.int, 32)
#: A slot that no sequence has.
NO_SLOT = 1 << 28
_FIRST_ROOM = 1 << 10


@cython.final
@cython.cclass
class Numbers:
    """Numbers, not negative, for keys of 64 bits."""

    _keys: cython.ulonglong[::1]
    _numbers: cython.int[::1]
    _mask: cython.ulonglong
    _count: cython.Py_ssize_t

    def __init__(self) -> None:
        self._keys = np.zeros(_FIRST_ROOM, np.uint64)
        self._numbers = np.full(_FIRST_ROOM, -1, np.int32)
        self._mask = _FIRST_ROOM - 1
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, key: cython.ulonglong, number: cython.int) -> None:
        """Set the number of a key."""
        place: cython.ulonglong = self._place(key)
        if self._numbers[place] < 0:
            self._count += 1
        self._keys[place] = key
        self._numbers[place] = number
        if 2 * self._count > self._numbers.shape[0]:
            self._spread()

    def _spread(self) -> None:
        """Twice the places, so that half of them stay free."""
        keys, numbers = np.asarray(self._keys), np.asarray(self._numbers)
        room = 2 * len(numbers)
        self._keys = np.zeros(room, np.uint64)
        self._numbers = np.full(room, -1, np.int32)
        self._mask = room - 1
        place: cython.ulonglong
        for key, number in zip(keys.tolist(), numbers.tolist(), strict=True):
            if number >= 0:
                place = self._place(key)
                self._keys[place] = key
                self._numbers[place] = number

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(check=False)
    def _place(self, key: cython.ulonglong) -> cython.ulonglong:
        mixed: cython.ulonglong = ((key ^ _SEED) * _MIXER) & _ALL
        mixed = ((mixed ^ (mixed >> 32)) * _MIXER) & _ALL
        place: cython.ulonglong = (mixed >> 32) & self._mask
        while self._numbers[place] >= 0 and self._keys[place] != key:
            place = (place + 1) & self._mask
        return place

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(check=False)
    def get(self, key: cython.ulonglong) -> cython.int:
        number: cython.int = self._numbers[self._place(key)]
        return number if cython.compiled else int(number)


@cython.final
@cython.cclass
class Packets:
    """Reads packets into columns, call after call.

    Args:
        rows: how many events fit in.
        room: how many bytes of args.
        double: gives the JSON of a finite double, given its bits.

    Attributes:
        fields, flows, values, kinds: the columns: events (see FIELDS), flows (event, id as a signed number, whether it
            ends there), and the values of counters (kind 1: an integer, 0: the bits of a double).
        args: JSON objects one after the other.
        count, flow_count, value_count, args_size: how much of these is filled; the caller takes it and calls `clear`.
        at: where reading goes on.
        begin, end: the packet for which `run` ended.
        number: how many packets were read, which the caller counts, too.
        need, slot, key: what is asked for, of which sequence, by which id.
    """

    fields = cython.declare(object, visibility="readonly")
    flows = cython.declare(object, visibility="readonly")
    values = cython.declare(object, visibility="readonly")
    kinds = cython.declare(object, visibility="readonly")
    args = cython.declare(object, visibility="readonly")
    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    flow_count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    value_count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    args_size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    at = cython.declare(cython.Py_ssize_t, visibility="readonly")
    begin = cython.declare(cython.Py_ssize_t, visibility="readonly")
    end = cython.declare(cython.Py_ssize_t, visibility="readonly")
    number = cython.declare(cython.longlong, visibility="public")
    need = cython.declare(cython.int, visibility="readonly")
    slot = cython.declare(cython.int, visibility="readonly")
    key = cython.declare(cython.ulonglong, visibility="readonly")
    _double: object
    _fields: cython.longlong[:, ::1]
    _flows: cython.longlong[:, ::1]
    _values: cython.longlong[::1]
    _kinds: cython.uchar[::1]
    _args: cython.uchar[::1]
    _tracks: Numbers
    _sequences: Numbers
    _ids: Numbers
    _slots: cython.longlong[:, ::1]
    _slot_count: cython.int
    _pool: cython.uchar[::1]
    _pieces: cython.longlong[::1]
    _piece_count: cython.int
    _value: cython.ulonglong
    _used: cython.Py_ssize_t
    _has: cython.int
    _type: cython.ulonglong
    _uuid: cython.ulonglong
    _name_iid: cython.ulonglong
    _category_iid: cython.ulonglong
    _counted: cython.ulonglong
    _flow_end: cython.Py_ssize_t
    _key_tag: cython.ulonglong
    _key_iid: cython.ulonglong
    _key_at: cython.Py_ssize_t
    _key_end: cython.Py_ssize_t
    _value_tag: cython.ulonglong
    _number_or_size: cython.ulonglong
    _text_at: cython.Py_ssize_t

    def __init__(self, rows: int, room: int, double: Callable[[int], bytes]) -> None:
        self._double = double
        self.fields, self.flows = np.zeros((FIELDS, rows), np.int64), np.zeros((3, rows), np.int64)
        self.values, self.kinds = np.zeros(rows, np.int64), np.zeros(rows, np.uint8)
        self.args = np.zeros(room, np.uint8)
        self._fields, self._flows, self._args = self.fields, self.flows, self.args
        self._values, self._kinds = self.values, self.kinds
        self._tracks, self._sequences = Numbers(), Numbers()
        self._slots = np.zeros((4, _FIRST_ROOM), np.int64)
        self._slot_count = 0
        self.at = self.begin = self.end = 0
        self.number = 0
        self.forget()
        self.clear()

    def clear(self) -> None:
        """Begin the columns anew."""
        self.count = self.flow_count = self.value_count = self.args_size = 0

    def forget(self) -> None:
        """Forget what all ids of sequences stand for."""
        self._ids = Numbers()
        self._pool = np.zeros(1 << 16, np.uint8)
        self._pieces = np.zeros(_FIRST_ROOM, np.int64)
        self._piece_count = 0

    def ids(self) -> int:
        """How many ids are known."""
        return len(self._ids)

    def new_slot(self) -> int:
        """A number for the state of a sequence."""
        if self._slot_count == self._slots.shape[1]:
            self._slots = np.concatenate((self._slots, np.zeros_like(self._slots)), axis=1)
        self._slot_count += 1
        return self._slot_count - 1

    def set_slot(self, slot: cython.int, clock: int, cleared: bool) -> None:
        """Set the clock of a sequence, and whether its state began; its default track and series are asked for anew."""
        self._slots[0, slot], self._slots[1, slot] = clock, cleared
        self._slots[2, slot] = self._slots[3, slot] = -1

    def set_sequence(self, sequence: int, slot: int) -> None:
        """Say which slot holds the state of a sequence; a large one for a sequence that the caller reads itself."""
        self._sequences.put(sequence, slot)

    def answer(self, number: cython.int) -> None:
        """Tell the number that was asked for."""
        if self.need == _TRACK:
            self._tracks.put(self.key, number)
        elif self.need == _DEFAULT_TRACK:
            self._slots[2, self.slot] = number
        elif self.need == _SERIES:
            self._slots[3, self.slot] = number
        else:
            self._ids.put(_id_key(self.slot, self.need, self.key), number)

    def answer_text(self, text: bytes) -> None:
        """Tell the JSON that was asked for."""
        begin: cython.longlong = self._pieces[self._piece_count]
        if begin + len(text) > self._pool.shape[0]:
            self._pool = np.resize(self._pool, 2 * (begin + len(text)))
        if self._piece_count + 2 > self._pieces.shape[0]:
            self._pieces = np.resize(self._pieces, 2 * self._pieces.shape[0])
        i: cython.Py_ssize_t
        for i in range(len(text)):
            self._pool[begin + i] = text[i]
        self._pieces[self._piece_count + 1] = begin + len(text)
        self._ids.put(_id_key(self.slot, self.need, self.key), self._piece_count)
        self._piece_count += 1

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def run(self, data: bytes, at: cython.Py_ssize_t) -> int:
        """Read packets from a place on, until one that is not whole or not plain.

        Args:
            data: part of the file.
            at: where a packet begins, with its frame.

        Returns:
            MORE, ODD, FULL or NEED.
        """
        p: cython.pointer(cython.const_uchar) = data
        size: cython.Py_ssize_t = len(data)
        i: cython.Py_ssize_t
        status: cython.int
        if at < 0 or at > size:
            raise IndexError("no such place")
        while True:
            self.at = at
            if at >= size or p[at] != 10:
                return MORE
            i = self._varint(p, at + 1, size if size - at < 6 else at + 6)
            if i < 0 or self._value > _MAX_PACKET or self._value > cython.cast(cython.ulonglong, size - i):
                return MORE
            self.begin = i
            self.end = i + cython.cast(cython.Py_ssize_t, self._value)
            if self.count >= self._fields.shape[1]:
                return FULL
            self._used = self.args_size
            status = self._packet(p, self.begin, self.end)
            if status == _FULL and self.count == 0:
                return ODD  # more than the columns hold
            if status:
                return status
            at = self.end

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-2, check=True)
    def _packet(
        self, p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.int:
        seen: cython.int = 0
        bit: cython.int
        tag: cython.ulonglong
        ts: cython.ulonglong = 0
        sequence: cython.ulonglong = 0
        flags: cython.ulonglong = 0
        event: cython.Py_ssize_t = 0
        event_end: cython.Py_ssize_t = 0
        slot: cython.int
        while i < end:
            i = self._varint(p, i, end)
            if i < 0:
                return _ODD
            tag = self._value
            i = self._varint(p, i, end)
            if i < 0:
                return _ODD
            bit = 0
            if tag == 64:  # timestamp
                bit = 1
                ts = self._value
            elif tag == 80:  # sequence
                bit = 2
                sequence = self._value
            elif tag == 104:  # flags
                bit = 4
                flags = self._value
            elif tag == 90:  # track event
                bit = 8
                if self._value > cython.cast(cython.ulonglong, end - i):
                    return _ODD
                event = i
                i += cython.cast(cython.Py_ssize_t, self._value)
                event_end = i
            elif tag != 24 and tag != 632:  # the uid and pid of the writer
                return _ODD
            if seen & bit:
                return _ODD
            seen |= bit
        if seen & 9 != 9 or ts >= _HALF or sequence >= _IDS or flags & 1:
            return _ODD
        slot = self._sequences.get(sequence)
        if slot < 0 or slot >= self._slot_count:
            return _ODD
        if flags & 2 and not self._slots[1, slot]:
            return _ODD
        return self._event(p, event, event_end, slot, ts)

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-2, check=True)
    def _event(
        self,
        p: cython.pointer(cython.const_uchar),
        begin: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        slot: cython.int,
        ts: cython.ulonglong,
    ) -> cython.int:
        """One track event into the columns."""
        row: cython.Py_ssize_t = self.count
        status: cython.int = self._event_fields(p, begin, end)
        if status:
            return status
        if not self._is_plain_event():
            return _ODD
        status = self._names(row, slot)
        if status:
            return status
        status = self._track(row, slot)
        if status:
            return status
        if self._type == _COUNTER:
            status = self._counter(row, slot)
            if status:
                return status
        if self._has & _HAS_ARGS:
            status = self._annotations(p, begin, end, slot)
            if status:
                return status
        self._fields[0, row] = _SLICE if self._type == _INSTANT and self._flow_end != self.flow_count else self._type
        self._fields[2, row] = ts
        self._fields[3, row] = self._slots[0, slot]
        self.number += 1
        self._fields[6, row] = self.number
        self._fields[7, row] = self._used
        self.args_size = self._used
        self.flow_count = self._flow_end
        self.count += 1
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(check=False)
    def _event_fields(
        self, p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.int:
        """What a track event holds; args are passed over, flows are noted behind those that count."""
        has: cython.int = 0
        bit: cython.int
        tag: cython.ulonglong
        self._name_iid = 0
        self._flow_end = self.flow_count
        while i < end:
            i = self._varint(p, i, end)
            if i < 0:
                return _ODD
            tag = self._value
            i = self._fixed(p, i, end) if tag & 7 == 1 else self._varint(p, i, end)
            if i < 0:
                return _ODD
            bit = 0
            if tag == 34:  # debug_annotations
                if self._value > cython.cast(cython.ulonglong, end - i):
                    return _ODD
                i += cython.cast(cython.Py_ssize_t, self._value)
                has |= _HAS_ARGS
            elif tag == 72:  # type
                bit = _HAS_TYPE
                self._type = self._value
            elif tag == 88:  # track_uuid
                bit = _HAS_TRACK
                self._uuid = self._value
            elif tag == 80:  # name_iid
                bit = _HAS_NAME
                self._name_iid = self._value
            elif tag == 24:  # category_iids
                bit = _HAS_CATEGORY
                self._category_iid = self._value
            elif tag == 240:  # counter_value
                bit = _HAS_INTEGER
                self._counted = self._value
            elif tag == 353:  # double_counter_value
                bit = _HAS_DOUBLE
                self._counted = self._value
            elif tag == 376 or tag == 377 or tag == 384 or tag == 385:  # flow_ids, terminating_flow_ids
                if not self._flow(tag >= 384):
                    return _FULL
            else:
                return _ODD
            if has & bit:
                return _ODD
            has |= bit
        self._has = has
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(check=False)
    def _flow(self, ends: cython.bint) -> cython.bint:
        """Note the id of a flow; whether there is room."""
        if self._flow_end >= self._flows.shape[1]:
            return False
        self._flows[0, self._flow_end] = self.count
        self._flows[1, self._flow_end] = _signed(self._value)
        self._flows[2, self._flow_end] = ends
        self._flow_end += 1
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_plain_event(self) -> cython.bint:
        """Whether the event has what its type needs, and nothing that belongs to another one."""
        values: cython.int = self._has & (_HAS_INTEGER | _HAS_DOUBLE)
        if not self._has & _HAS_TYPE:
            return False
        if self._type == _COUNTER:
            is_one: cython.bint = values == _HAS_INTEGER or values == _HAS_DOUBLE
            return is_one and self._flow_end == self.flow_count and not self._has & _HAS_ARGS
        if self._type == _END and self._flow_end != self.flow_count:  # the caller counts them
            return False
        return _BEGIN <= self._type <= _STATE and not values

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(check=False)
    def _names(self, row: cython.Py_ssize_t, slot: cython.int) -> cython.int:
        """The numbers of name and category into the columns, 0 for none."""
        name: cython.int = 0
        category: cython.int = 0
        if self._name_iid:
            name = self._number(slot, _NAME, self._name_iid)
            if name < 0:
                return _NEED if name == -1 else _ODD
        if self._has & _HAS_CATEGORY:
            category = self._number(slot, _CATEGORY, self._category_iid)
            if category < 0:
                return _NEED if category == -1 else _ODD
        self._fields[4, row] = name
        self._fields[5, row] = category
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(check=False)
    def _track(self, row: cython.Py_ssize_t, slot: cython.int) -> cython.int:
        """The number of the track into the columns: the one that the event names, or the default of its sequence."""
        track: cython.int
        if self._has & _HAS_TRACK:
            track = self._tracks.get(self._uuid)
            if track < 0:
                return self._ask(slot, _TRACK, self._uuid)
        else:
            track = self._slots[2, slot]
            if track < 0:
                return self._ask(slot, _DEFAULT_TRACK, 0)
        self._fields[1, row] = track
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(check=False)
    def _counter(self, row: cython.Py_ssize_t, slot: cython.int) -> cython.int:
        """The value of a counter, and where it is instead of a name and a category."""
        if self._slots[3, slot] < 0:
            return self._ask(slot, _SERIES, 0)
        self._fields[4, row] = self.value_count
        self._fields[5, row] = self._slots[3, slot]
        self._kinds[self.value_count] = self._has & _HAS_INTEGER != 0
        self._values[self.value_count] = _signed(self._counted)
        self.value_count += 1
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _ask(self, slot: cython.int, need: cython.int, key: cython.ulonglong) -> cython.int:
        self.slot, self.need, self.key = slot, need, key
        return _NEED

    @cython.cfunc
    @cython.exceptval(check=False)
    def _number(self, slot: cython.int, need: cython.int, iid: cython.ulonglong) -> cython.int:
        """The number of an id; -1 if it is asked for, -2 if it is too large."""
        if iid >= _IDS:
            return -2
        number: cython.int = self._ids.get(_id_key(slot, need, iid))
        if number < 0:
            self._ask(slot, need, iid)
        return number

    # -- args -------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-2, check=True)
    def _annotations(
        self,
        p: cython.pointer(cython.const_uchar),
        i: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        slot: cython.int,
    ) -> cython.int:
        """The annotations of an event, whose fields are known to be whole, as a JSON object."""
        first: cython.bint = True
        inner: cython.Py_ssize_t
        status: cython.int
        if not self._fits(2):
            return _FULL
        self._put(ord("{"))
        while i < end:
            i = self._varint(p, i, end)
            if self._value & 7 == 1:
                i += 8
                continue
            if self._value != 34:
                i = self._varint(p, i, end)
                continue
            i = self._varint(p, i, end)
            inner = i
            i += cython.cast(cython.Py_ssize_t, self._value)
            if not self._fits(2):
                return _FULL
            if not first:
                self._put(ord(","))
            first = False
            status = self._annotation(p, inner, i, slot, 0, False)
            if status:
                return status
        if not self._fits(1):
            return _FULL
        self._put(ord("}"))
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-2, check=True)
    def _annotation(
        self,
        p: cython.pointer(cython.const_uchar),
        begin: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        slot: cython.int,
        depth: cython.int,
        is_item: cython.bint,
    ) -> cython.int:
        """One annotation: key and value, or the value of an item of an array."""
        status: cython.int
        if depth > _MAX_DEPTH or not self._annotation_fields(p, begin, end):
            return _ODD
        if self._value_tag == 0 or (self._key_tag == 0) != is_item:
            return _ODD
        if not is_item:
            status = self._key(p, slot)
            if status:
                return status
        if self._value_tag == _TEXT_IID:
            return self._piece(slot, _TEXT, self._number_or_size)
        if self._value_tag == _TEXT_VALUE:
            return self._plain(p, self._text_at, self._text_at + cython.cast(cython.Py_ssize_t, self._number_or_size))
        if self._value_tag == _ENTRY or self._value_tag == _ITEM:
            return self._nested(p, begin, end, slot, depth)
        return self._scalar(self._value_tag, self._number_or_size)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _annotation_fields(
        self, p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        """What an annotation holds, entries and items only by their kind; whether it is plain."""
        tag: cython.ulonglong
        start: cython.Py_ssize_t
        self._key_tag = self._value_tag = 0
        while i < end:
            i = self._varint(p, i, end)
            if i < 0:
                return False
            tag = self._value
            i = self._fixed(p, i, end) if tag & 7 == 1 else self._varint(p, i, end)
            if i < 0:
                return False
            start = i
            if tag & 7 == 2:
                if self._value > cython.cast(cython.ulonglong, end - i):
                    return False
                i += cython.cast(cython.Py_ssize_t, self._value)
            if tag == _KEY_IID or tag == _KEY_TEXT:
                if self._key_tag:
                    return False
                self._key_tag, self._key_iid, self._key_at, self._key_end = tag, self._value, start, i
            elif tag == _ENTRY or tag == _ITEM:
                if self._value_tag and self._value_tag != tag:
                    return False
                self._value_tag = tag
            elif _is_value(tag):
                if self._value_tag:
                    return False
                self._value_tag, self._number_or_size, self._text_at = tag, self._value, start
            else:
                return False
        return True

    @cython.cfunc
    @cython.exceptval(-2, check=True)
    def _key(self, p: cython.pointer(cython.const_uchar), slot: cython.int) -> cython.int:
        """The key of the annotation, and the colon behind it."""
        status: cython.int
        if self._key_tag == _KEY_IID:
            status = self._piece(slot, _KEY, self._key_iid)
        else:
            status = self._plain(p, self._key_at, self._key_end)
        if status:
            return status
        if not self._fits(1):
            return _FULL
        self._put(ord(":"))
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-2, check=True)
    def _nested(
        self,
        p: cython.pointer(cython.const_uchar),
        i: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        slot: cython.int,
        depth: cython.int,
    ) -> cython.int:
        """The entries of an object or the items of an array, in an annotation whose fields are known to be whole."""
        wanted: cython.ulonglong = self._value_tag
        tag: cython.ulonglong
        start: cython.Py_ssize_t
        status: cython.int
        first: cython.bint = True
        if not self._fits(1):
            return _FULL
        self._put(ord("{") if wanted == _ENTRY else ord("["))
        while i < end:
            i = self._varint(p, i, end)
            tag = self._value
            i = self._varint(p, i, end)
            if tag & 7 != 2:
                continue
            start = i
            i += cython.cast(cython.Py_ssize_t, self._value)
            if tag != wanted:
                continue
            if not self._fits(1):
                return _FULL
            if not first:
                self._put(ord(","))
            first = False
            status = self._annotation(p, start, i, slot, depth + 1, wanted == _ITEM)
            if status:
                return status
        if not self._fits(1):
            return _FULL
        self._put(ord("}") if wanted == _ENTRY else ord("]"))
        return 0

    @cython.cfunc
    @cython.exceptval(-2, check=True)
    def _scalar(self, tag: cython.ulonglong, value: cython.ulonglong) -> cython.int:
        """A bool, integer or double."""
        if not self._fits(32):
            return _FULL
        if tag == _BOOL:
            return self._bytes(b"true", 4) if value else self._bytes(b"false", 5)
        if tag == _DOUBLE:
            if value >> 52 & 2047 == 2047:
                return _ODD
            text: bytes = self._double(value)
            return self._bytes(text, len(text)) if len(text) <= 32 else _ODD
        if tag == _SIGNED and value >= _HALF:
            self._put(ord("-"))
            value = (_ALL - value) + 1
        digits: cython.int = 1
        rest: cython.ulonglong = value // 10
        i: cython.Py_ssize_t
        while rest:
            digits += 1
            rest //= 10
        i = self._used + digits
        self._used = i
        while digits:
            i -= 1
            digits -= 1
            self._args[i] = ord("0") + value % 10
            value //= 10
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(check=False)
    def _bytes(self, text: cython.pointer(cython.const_uchar), size: cython.Py_ssize_t) -> cython.int:
        """Bytes for which there is room."""
        i: cython.Py_ssize_t
        for i in range(size):
            self._args[self._used + i] = text[i]
        self._used += size
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-2, check=True)
    def _piece(self, slot: cython.int, need: cython.int, iid: cython.ulonglong) -> cython.int:
        """The JSON of an interned text."""
        number: cython.int = self._number(slot, need, iid)
        if number < 0:
            return _NEED if number == -1 else _ODD
        begin: cython.Py_ssize_t = self._pieces[number]
        size: cython.Py_ssize_t = self._pieces[number + 1] - begin
        if not self._fits(size):
            return _FULL
        i: cython.Py_ssize_t
        for i in range(size):
            self._args[self._used + i] = self._pool[begin + i]
        self._used += size
        return 0

    @cython.cfunc
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(-2, check=True)
    def _plain(self, p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """A text of printable ASCII that needs no escapes."""
        if not self._fits(end - i + 2):
            return _FULL
        self._put(ord('"'))
        while i < end:
            if p[i] < ord(" ") or p[i] > ord("~") or p[i] == ord('"') or p[i] == ord("\\"):
                return _ODD
            self._put(p[i])
            i += 1
        self._put(ord('"'))
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _fits(self, size: cython.Py_ssize_t) -> cython.bint:
        return size <= self._args.shape[0] - self._used

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.exceptval(check=False)
    def _put(self, byte: cython.uchar) -> cython.void:
        """A byte for which there is room."""
        self._args[self._used] = byte
        self._used += 1

    # -- the wire format --------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _varint(
        self, p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Read a varint into `_value`; the position behind it, or -1."""
        if i < end and p[i] < 128:
            self._value = p[i]
            return i + 1
        value: cython.ulonglong = 0
        part: cython.ulonglong
        shift: cython.int = 0
        while i < end and shift < 70:
            part = p[i] & 127
            value |= part << shift
            i += 1
            if p[i - 1] < 128:
                self._value = value & _ALL
                return i
            shift += 7
        return -1

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _fixed(
        self, p: cython.pointer(cython.const_uchar), i: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Read 64 bits into `_value`; the position behind them, or -1."""
        value: cython.ulonglong = 0
        part: cython.ulonglong
        k: cython.int
        if end - i < 8:
            return -1
        for k in range(8):
            part = p[i + k]
            value |= part << (8 * k)
        self._value = value
        return i + 8


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_value(tag: cython.ulonglong) -> cython.bint:
    """Whether a field of an annotation is its value, other than an entry or item."""
    return (
        tag == _BOOL or tag == _UNSIGNED or tag == _SIGNED or tag == _DOUBLE or tag == _TEXT_VALUE or tag == _TEXT_IID
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _id_key(slot: cython.int, need: cython.int, iid: cython.ulonglong) -> cython.ulonglong:
    high: cython.ulonglong = slot
    table: cython.ulonglong = need
    return high << 34 | table << 32 | iid


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _signed(value: cython.ulonglong) -> cython.longlong:
    if value < _HALF:
        return value
    left: cython.longlong = _ALL - value
    return -left - 1
