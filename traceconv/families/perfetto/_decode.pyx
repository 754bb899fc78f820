# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Packets of a Perfetto trace, from the bytes of the file to columns.

One pass cuts packets and reads those that hold nothing but a plain track event: begin, end, instant, state or counter,
with one name and at most one category, interned or not, flow ids and debug annotations of the usual types. Every other packet
is left to the caller, in its place, and so is what ids stand for: an id that is met first is asked for, and the packet
is read again when it is known.
"""

import numpy as np

include "traceconv/families/common/_bytes.pxi"
include "traceconv/families/perfetto/_wire.pxi"

#: Why `Packets.run` ended: it needs more bytes or found no packet; the next packet is for the caller; the columns are
#: full; an id is asked for.
MORE, ODD, FULL, NEED = range(4)
#: What is asked for: the number of the name or category of an id, the JSON of the key or text of an id, the number of
#: the track of a uuid, of the default track or of the series of counter values of a sequence, the number of a text
#: that stands in the packet.
NAME, CATEGORY, KEY, TEXT, TRACK, DEFAULT_TRACK, SERIES, STRING = range(8)
#: The rows of `Packets.fields`: kind as in the file (SLICE_KIND for an instant with flow ids), track, ts, clock, name
#: (of a counter the place of its value), category (of a counter its series), number of the packet, end of the args.
FIELDS = 8
SLICE_KIND = 6

cdef enum:
    _MORE
    _ODD
    _FULL
    _NEED

cdef enum:
    _NAME
    _CATEGORY
    _KEY
    _TEXT
    _TRACK
    _DEFAULT_TRACK
    _SERIES
    _STRING

cdef enum:
    #: More bytes of texts that stand in packets than this are forgotten; a longer one is left to the caller.
    _MAX_STRINGS = 1 << 25
    _MAX_STRING = 1 << 16

cdef uint64_t _HALF = 2**63
cdef uint64_t _MAX_ID = 2**32 - 1
cdef uint64_t _MAX_PACKET = 2**28 - 1

cdef enum:
    #: What a track event has, as bits; args and flows may stand there several times.
    _HAS_ARGS = 1
    _HAS_TYPE = 2
    _HAS_TRACK = 4
    _HAS_NAME = 8
    _HAS_CATEGORY = 16
    _HAS_INTEGER = 32
    _HAS_DOUBLE = 64
    _HAS_NAME_TEXT = 128
    _HAS_CATEGORY_TEXT = 256
    #: The values of TrackEvent.type.
    _BEGIN = 1
    _END = 2
    _INSTANT = 3
    _COUNTER = 4
    _STATE = 5
    _SLICE = 6
    #: Fields of DebugAnnotation with their wire types: name_iid, name; bool_value, uint_value, int_value, double_value,
    #: string_value, string_value_iid, legacy_json_value; dict_entries, array_values.
    _KEY_IID = 1 << 3
    _KEY_TEXT = 10 << 3 | 2
    _BOOL = 2 << 3
    _UNSIGNED = 3 << 3
    _SIGNED = 4 << 3
    _DOUBLE = 5 << 3 | 1
    _TEXT_VALUE = 6 << 3 | 2
    _TEXT_IID = 17 << 3
    _JSON_VALUE = 9 << 3 | 2
    _DICT = 11 << 3 | 2
    _ITEM = 12 << 3 | 2
    _MAX_DEPTH = 32


cdef inline bint _is_value(uint64_t tag) noexcept:
    """Return whether a field of an annotation is its value, other than an entry or item."""
    return (
        tag == _BOOL or tag == _UNSIGNED or tag == _SIGNED or tag == _DOUBLE or tag == _TEXT_VALUE or tag == _TEXT_IID
    )


@cython.final
cdef class _Ids:
    """The meanings of ids: a number, or JSON.

    Attributes:
        need, slot, key: what is asked for, of which sequence, by which id; of a text its place and length.
        strings: the texts that stood in packets, each with its number plus 1.
    """

    cdef _Numbers known
    cdef _Table texts, strings
    cdef int need, slot
    cdef uint64_t key

    def __cinit__(self):
        self.forget()

    cdef int forget(self) except -1:
        self.known, self.texts, self.strings = _Numbers(), _Table(), _Table()
        return 0

    cdef int string(self, const uint8_t *p, Py_ssize_t at, Py_ssize_t size) except -2:
        """Return the number of a text that stands in a packet; -1 if the caller has to give it first."""
        if self.strings.pool.used > _MAX_STRINGS:
            self.strings = _Table()
        cdef int64_t number = self.strings.entries[self.strings.number(p + at, size)].value
        return number - 1 if number else self.ask(size, _STRING, at)

    cdef int answer_string(self, const uint8_t *p, Py_ssize_t size, int number) except -1:
        self.strings.entries[self.strings.number(p, size)].value = number + 1
        return 0

    cdef inline int get(self, int slot, int need, uint64_t key) noexcept:
        """Return a number, not negative; -1 if the caller has to give it first."""
        cdef int number = self.known.get(key, slot, need)
        return number if number >= 0 else self.ask(slot, need, key)

    cdef int ask(self, int slot, int need, uint64_t key) noexcept:
        self.slot, self.need, self.key = slot, need, key
        return -1

    cdef int answer(self, int number) except -1:
        return self.known.set(self.key, self.slot, self.need, number)


@cython.final
cdef class _ArgsWriter:
    """Writes annotations as JSON. Its methods tell 0, or why the packet is not read.

    Args:
        room: how many bytes of args fit in.
        json_of_double: gives the JSON of a finite double, given its bits.

    Attributes:
        args: the JSON objects.
        used: how much of it is filled.
    """

    cdef object args
    cdef Py_ssize_t used
    cdef uint8_t[::1] _out
    cdef Py_ssize_t _room
    cdef _Ids _ids
    cdef object _double
    # What the annotation holds: the field that is its key, and the one that is its value.
    cdef _Field _key_field, _value_field

    def __cinit__(self, Py_ssize_t room, json_of_double, _Ids ids):
        self.args = np.zeros(room, np.uint8)
        self._out, self._room, self._double, self._ids = self.args, room, json_of_double, ids

    cdef int write(self, const uint8_t *p, Py_ssize_t i, Py_ssize_t end, int slot) except? -2:
        """Write the annotations of an event, whose fields are known to be complete, as a JSON object."""
        return self._several(p, i, end, slot, 34, 0)

    cdef int _several(
        self, const uint8_t *p, Py_ssize_t i, Py_ssize_t end, int slot, uint64_t tag, int depth
    ) except? -2:
        """Write all annotations with a tag as the members of an object or, if they are items, of an array."""
        cdef bint is_array = tag == _ITEM, first = True
        cdef _Field field = _Field(0, 0, 0)
        cdef int status
        if not self._fits(2):
            return _FULL
        self._put(c"[" if is_array else c"{")
        while i < end:
            i = _read_field(p, i, end, &field)
            if field.tag != tag:
                continue
            if not self._fits(2):
                return _FULL
            if not first:
                self._put(c",")
            first = False
            status = self._annotation(p, field.at, i, slot, depth, is_array)
            if status:
                return status
        if not self._fits(1):
            return _FULL
        self._put(c"]" if is_array else c"}")
        return 0

    cdef int _annotation(
        self, const uint8_t *p, Py_ssize_t begin, Py_ssize_t end, int slot, int depth, bint is_item
    ) except? -2:
        """Write one annotation: key and value, or the value of an item of an array."""
        cdef int status
        if depth > _MAX_DEPTH or not self._annotation_fields(p, begin, end):
            return _ODD
        if self._value_field.tag == 0 or (self._key_field.tag == 0) != is_item:
            return _ODD
        cdef _Field value = self._value_field
        if not is_item:
            if self._key_field.tag == _KEY_IID:
                status = self._chunk(slot, _KEY, self._key_field.value)
            else:
                status = self._plain(p, &self._key_field)
            if status:
                return status
            if not self._fits(1):
                return _FULL
            self._put(c":")
        if value.tag == _TEXT_IID:
            return self._chunk(slot, _TEXT, value.value)
        if value.tag == _TEXT_VALUE:
            return self._plain(p, &value)
        if value.tag == _JSON_VALUE:
            return self._literal(p + value.at, <Py_ssize_t>value.value)
        if value.tag == _DICT or value.tag == _ITEM:
            return self._several(p, begin, end, slot, value.tag, depth + 1)
        return self._scalar(value.tag, value.value)

    cdef bint _annotation_fields(self, const uint8_t *p, Py_ssize_t i, Py_ssize_t end) noexcept:
        """Read the fields of an annotation, of entries and items only the kind; return whether it is plain."""
        cdef _Field field = _Field(0, 0, 0)
        self._key_field.tag = self._value_field.tag = 0
        while i < end:
            i = _read_field(p, i, end, &field)
            if i < 0:
                return False
            if field.tag == _KEY_IID or field.tag == _KEY_TEXT:
                if self._key_field.tag:
                    return False
                self._key_field = field
            elif field.tag == _DICT or field.tag == _ITEM:
                if self._value_field.tag and self._value_field.tag != field.tag:
                    return False
                self._value_field = field
            elif field.tag == _JSON_VALUE and self._value_field.tag == _TEXT_VALUE:  # the same value
                self._value_field = field
            elif _is_value(field.tag) and not self._value_field.tag:
                self._value_field = field
            else:
                return False
        return True

    cdef int _scalar(self, uint64_t tag, uint64_t value) except? -2:
        """Write a bool, integer or double."""
        cdef bytes text
        if not self._fits(32):
            return _FULL
        if tag == _BOOL:
            return self._bytes(b"true", 4) if value else self._bytes(b"false", 5)
        if tag == _DOUBLE:
            if value >> 52 & 2047 == 2047:
                return _ODD
            text = self._double(value)
            return self._bytes(text, len(text)) if len(text) <= 32 else _ODD
        if tag == _SIGNED and value >= _HALF:
            self._put(c"-")
            value = 0 - value
        self.used += _put_digits(&self._out[self.used], value)
        return 0

    cdef inline int _bytes(self, const uint8_t *text, Py_ssize_t size) noexcept:
        """Append bytes; there must be room for them."""
        memcpy(&self._out[self.used], text, size)
        self.used += size
        return 0

    cdef int _chunk(self, int slot, int need, uint64_t iid) noexcept:
        """Write the JSON of an interned text."""
        if iid > _MAX_ID:
            return _ODD
        cdef int number = self._ids.get(slot, need, iid)
        if number < 0:
            return _NEED
        cdef Py_ssize_t size = self._ids.texts.size_of(number)
        return self._bytes(self._ids.texts.text(number), size) if self._fits(size) else _FULL

    cdef int _plain(self, const uint8_t *p, _Field *text) noexcept:
        """Write a text of printable ASCII that needs no escapes."""
        cdef Py_ssize_t i, end = text.at + <Py_ssize_t>text.value
        if not self._fits(end - text.at + 2):
            return _FULL
        self._put(c'"')
        for i in range(text.at, end):
            if p[i] < c" " or p[i] > c"~" or p[i] == c'"' or p[i] == c"\\":
                return _ODD
            self._put(p[i])
        self._put(c'"')
        return 0

    cdef int _literal(self, const uint8_t *text, Py_ssize_t size) noexcept:
        """Write JSON that is null, or an empty object or array."""
        if not (
            (size == 4 and memcmp(text, <const char *>b"null", 4) == 0)
            or (size == 2 and (memcmp(text, <const char *>b"[]", 2) == 0 or memcmp(text, <const char *>b"{}", 2) == 0))
        ):
            return _ODD
        return self._bytes(text, size) if self._fits(size) else _FULL

    cdef inline bint _fits(self, Py_ssize_t size) noexcept:
        return size <= self._room - self.used

    cdef inline void _put(self, uint8_t byte) noexcept:
        """Append a byte; there must be room for it."""
        self._out[self.used] = byte
        self.used += 1


@cython.final
cdef class Packets:
    """Reads packets into columns, call after call.

    Args:
        rows: how many events fit in.
        room: how many bytes of args.
        json_of_double: gives the JSON of a finite double, given its bits.

    Attributes:
        fields, flows, values, kinds: the columns: events (see FIELDS), flows (event, id as a signed number, whether it
            ends there), and the values of counters (kind 1: an integer, 0: the bits of a double).
        args: JSON objects one after the other.
        count, flow_count, value_count, args_size: how much of these is filled; the caller takes it and calls `clear`.
        at: where reading goes on.
        begin, end: the packet for which `run` ended.
        number: how many packets were read, which the caller counts, too.
        need, slot, key: what is asked for, of which sequence, by which id; of a text its length and its place in `data`.
    """

    cdef readonly object fields, flows, values, kinds
    cdef readonly Py_ssize_t count, flow_count, value_count, args_size, at, begin, end
    cdef public int64_t number
    cdef int64_t[:, ::1] _fields, _flows
    cdef int64_t[::1] _values
    cdef uint8_t[::1] _kinds
    cdef _Numbers _sequences
    cdef _Ids _ids
    cdef _ArgsWriter _args
    cdef int64_t[:, ::1] _slots  # their clocks, and whether they began
    cdef int _slot_count
    # The event that is read: what it has, as bits, and the values of these.
    cdef int _has
    cdef uint64_t _type, _uuid, _name_iid, _category_iid, _counted
    cdef Py_ssize_t _flow_end
    cdef _Field _name, _category  # texts

    def __init__(self, Py_ssize_t rows, Py_ssize_t room, json_of_double) -> None:
        self.fields, self.flows = np.zeros((FIELDS, rows), np.int64), np.zeros((3, rows), np.int64)
        self.values, self.kinds = np.zeros(rows, np.int64), np.zeros(rows, np.uint8)
        self._fields, self._flows, self._values, self._kinds = self.fields, self.flows, self.values, self.kinds
        self._sequences, self._ids = _Numbers(), _Ids()
        self._args = _ArgsWriter(room, json_of_double, self._ids)
        self._slots = np.zeros((2, 16), np.int64)

    @property
    def args(self):
        return self._args.args

    @property
    def need(self) -> int:
        return self._ids.need

    @property
    def slot(self) -> int:
        return self._ids.slot

    @property
    def key(self) -> int:
        return self._ids.key

    def clear(self) -> None:
        """Start the columns again."""
        self.count = self.flow_count = self.value_count = self.args_size = 0

    def forget(self) -> None:
        """Forget what all ids stand for."""
        self._ids.forget()

    def ids(self) -> int:
        """Return the number of known ids."""
        return self._ids.known.count

    def add_slot(self, int64_t clock, bint cleared) -> int:
        """Return a new number for a state of a sequence: its clock, and whether it was cleared."""
        if self._slot_count == self._slots.shape[1]:
            self._slots = np.concatenate((self._slots, np.zeros_like(self._slots)), axis=1)
        self._slots[0, self._slot_count], self._slots[1, self._slot_count] = clock, cleared
        self._slot_count += 1
        return self._slot_count - 1

    def set_sequence(self, uint64_t sequence, int slot) -> None:
        """Set the slot that holds the state of a sequence; -1 for a sequence that the caller reads itself."""
        if slot >= self._slot_count:
            raise IndexError("no such slot")
        self._sequences.set(sequence, 0, 0, slot)

    def answer(self, int number) -> None:
        """Tell the number that was asked for."""
        self._ids.answer(number)

    def answer_text(self, text: bytes) -> None:
        """Tell the JSON that was asked for."""
        self._ids.answer(self._ids.texts.number(text, len(text)))

    def answer_string(self, text: bytes, int number) -> None:
        """Tell the number of a text that was asked for."""
        self._ids.answer_string(text, len(text), number)

    def run(self, data: bytes, Py_ssize_t at) -> int:
        """Read packets from a position on, up to one that is incomplete or not plain.

        Args:
            data: part of the file.
            at: where a packet begins, with its frame.

        Returns:
            MORE, ODD, FULL or NEED.
        """
        cdef const uint8_t *p = data
        cdef Py_ssize_t i, size = len(data)
        cdef uint64_t length
        cdef int status
        if at < 0 or at > size:
            raise IndexError("no such place")
        while True:
            self.at = at
            if at >= size or p[at] != 10:
                return _MORE
            i = _read_varint(p, at + 1, min(size, at + 6), &length)
            if i < 0 or length > _MAX_PACKET or length > <uint64_t>(size - i):
                return _MORE
            self.begin, self.end = i, i + <Py_ssize_t>length
            if self.count >= self._fields.shape[1]:
                return _FULL
            self._args.used = self.args_size
            status = self._packet(p, self.begin, self.end)
            if status == _FULL and self.count == 0:
                return _ODD  # more than the columns hold
            if status:
                return status
            at = self.end

    cdef int _packet(self, const uint8_t *p, Py_ssize_t i, Py_ssize_t end) except? -2:
        cdef int bit, seen = 0, slot
        cdef uint64_t ts = 0, sequence = 0, flags = 0
        cdef Py_ssize_t event = 0, event_end = 0
        cdef _Field field = _Field(0, 0, 0)
        while i < end:
            i = _read_field(p, i, end, &field)
            if i < 0:
                return _ODD
            bit = 0
            if field.tag == 64:  # timestamp
                bit = 1
                ts = field.value
            elif field.tag == 80:  # sequence
                bit = 2
                sequence = field.value
            elif field.tag == 104:  # flags
                bit = 4
                flags = field.value
            elif field.tag == 90:  # track event
                bit = 8
                event, event_end = field.at, i
            elif field.tag != 24 and field.tag != 632:  # the uid and pid of the writer
                return _ODD
            if seen & bit:
                return _ODD
            seen |= bit
        if seen & 9 != 9 or ts >= _HALF or sequence > _MAX_ID or flags & 1:
            return _ODD
        slot = self._sequences.get(sequence, 0, 0)
        if slot < 0 or (flags & 2 and not self._slots[1, slot]):
            return _ODD
        return self._event(p, event, event_end, slot, ts)

    cdef int _event(self, const uint8_t *p, Py_ssize_t begin, Py_ssize_t end, int slot, uint64_t ts) except? -2:
        """Read one track event into the columns."""
        cdef Py_ssize_t row = self.count
        cdef int status = self._event_fields(p, begin, end)
        if status:
            return status
        if not self._is_plain_event():
            return _ODD
        if not self._names(p, row, slot):
            return _NEED
        if self._has & _HAS_ARGS:
            status = self._args.write(p, begin, end, slot)
            if status:
                return status
        self._fields[0, row] = _SLICE if self._type == _INSTANT and self._flow_end != self.flow_count else self._type
        self._fields[2, row] = ts
        self._fields[3, row] = self._slots[0, slot]
        self.number += 1
        self._fields[6, row] = self.number
        self._fields[7, row] = self.args_size = self._args.used
        self.flow_count = self._flow_end
        self.count += 1
        return 0

    cdef int _event_fields(self, const uint8_t *p, Py_ssize_t i, Py_ssize_t end) noexcept:
        """Read the fields of a track event; skip the args, and note flows after those that count."""
        cdef int bit, has = 0
        cdef _Field field = _Field(0, 0, 0)
        self._name_iid = 0
        self._flow_end = self.flow_count
        while i < end:
            i = _read_field(p, i, end, &field)
            if i < 0:
                return _ODD
            bit = 0
            if field.tag == 34:  # debug_annotations
                has |= _HAS_ARGS
            elif field.tag == 72:  # type
                bit = _HAS_TYPE
                self._type = field.value
            elif field.tag == 88:  # track_uuid
                bit = _HAS_TRACK
                self._uuid = field.value
            elif field.tag == 80:  # name_iid
                bit = _HAS_NAME
                self._name_iid = field.value
            elif field.tag == 24:  # category_iids
                bit = _HAS_CATEGORY
                self._category_iid = field.value
            elif field.tag == 186:  # name
                bit = _HAS_NAME_TEXT
                self._name = field
            elif field.tag == 178:  # categories
                bit = _HAS_CATEGORY_TEXT
                self._category = field
            elif field.tag == 240:  # counter_value
                bit = _HAS_INTEGER
                self._counted = field.value
            elif field.tag == 353:  # double_counter_value
                bit = _HAS_DOUBLE
                self._counted = field.value
            elif field.tag in (376, 377, 384, 385):  # flow_ids, terminating_flow_ids
                if not self._flow(field.value, field.tag >= 384):
                    return _FULL
            else:
                return _ODD
            if has & bit:
                return _ODD
            has |= bit
        self._has = has
        return 0

    cdef bint _flow(self, uint64_t id, bint ends) noexcept:
        """Note the id of a flow; return whether there is room."""
        if self._flow_end >= self._flows.shape[1]:
            return False
        self._flows[0, self._flow_end] = self.count
        self._flows[1, self._flow_end] = <int64_t>id
        self._flows[2, self._flow_end] = ends
        self._flow_end += 1
        return True

    cdef bint _is_plain_event(self) noexcept:
        """Return whether the event has all that its type needs, and nothing of another type."""
        cdef int values = self._has & (_HAS_INTEGER | _HAS_DOUBLE)
        if not self._has & _HAS_TYPE or self._name_iid > _MAX_ID:
            return False
        if self._has & _HAS_CATEGORY and self._category_iid > _MAX_ID:
            return False
        if self._has & _HAS_NAME_TEXT and (self._name_iid or self._name.value > _MAX_STRING):
            return False
        if self._has & _HAS_CATEGORY_TEXT and (self._has & _HAS_CATEGORY or self._category.value > _MAX_STRING):
            return False
        if self._type == _COUNTER:
            if values != _HAS_INTEGER and values != _HAS_DOUBLE:
                return False
            return self._flow_end == self.flow_count and not self._has & _HAS_ARGS
        if self._type == _END and self._flow_end != self.flow_count:  # the caller counts them
            return False
        return _BEGIN <= self._type <= _STATE and not values

    cdef bint _names(self, const uint8_t *p, Py_ssize_t row, int slot) except -1:
        """Put name, category and track into the columns, or value and series; return whether all are known."""
        cdef int name = 0, category = 0, track
        if self._name_iid:
            name = self._ids.get(slot, _NAME, self._name_iid)
        elif self._has & _HAS_NAME_TEXT:
            name = self._ids.string(p, self._name.at, self._name.value)
        if name >= 0 and self._has & _HAS_CATEGORY:
            category = self._ids.get(slot, _CATEGORY, self._category_iid)
        elif name >= 0 and self._has & _HAS_CATEGORY_TEXT:
            category = self._ids.string(p, self._category.at, self._category.value)
        if name < 0 or category < 0:
            return False
        if self._has & _HAS_TRACK:
            track = self._ids.get(0, _TRACK, self._uuid)
        else:
            track = self._ids.get(slot, _DEFAULT_TRACK, 0)
        if track >= 0 and self._type == _COUNTER:
            name, category = self.value_count, self._ids.get(slot, _SERIES, 0)
        if track < 0 or category < 0:
            return False
        self._fields[1, row], self._fields[4, row], self._fields[5, row] = track, name, category
        if self._type == _COUNTER:
            self._kinds[self.value_count] = self._has & _HAS_INTEGER != 0
            self._values[self.value_count] = <int64_t>self._counted
            self.value_count += 1
        return True
