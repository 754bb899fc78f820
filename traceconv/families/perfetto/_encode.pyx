# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Columns into Perfetto packets: the plain events; what is unusual goes back to the caller, one event at a time.

Plain are begins, ends, instants, counter values and log entries whose args are JSON as profilers write it: no escapes
in keys, no key twice, no deep nesting. The bytes are those of writer.py, which say what they mean, and the
numbers of interned texts are given in the same order, so that both ways can be mixed.

Room for the most that may be written is made before writing.
"""

import numpy as np

include "traceconv/families/common/_bytes.pxi"
include "traceconv/families/common/_json.pxi"
include "traceconv/families/common/_parts.pxi"
include "traceconv/families/perfetto/_wire.pxi"

cdef enum:
    _FIRST_BYTES = 1 << 16
    #: Larger buffers are given back once their bytes are taken.
    _KEPT_BYTES = 8 << 20

include "traceconv/families/perfetto/_annotations.pxi"

#: Kinds of entries, as in model/order.py.
cdef enum:
    _END
    _BEGIN
    _INSTANT
    _COUNTER
    _SAMPLE
    _LOG


@cython.final
cdef class _Chunks:
    """Chunks of bytes in a row, the start of each, and the end of the last one; there may be none."""

    cdef const uint8_t[::1] _bytes
    cdef const int64_t[::1] at

    def __cinit__(self, chunks):
        self._bytes, self.at = chunks

    @cython.boundscheck(True)
    cdef inline Py_ssize_t size_of(self, Py_ssize_t number) except -1:
        return self.at[number + 1] - self.at[number]

    @cython.boundscheck(True)
    cdef inline int put(self, _Buffer out, Py_ssize_t number, Py_ssize_t size) except -1:
        """Append a chunk of a size that was asked for."""
        if size:
            out.bytes(&self._bytes[self.at[number]], size)
        return 0


@cython.final
cdef class _Named:
    """The columns of slices or instants."""

    cdef const int32_t[::1] track, name, category, args_len
    cdef const int64_t[::1] args_at

    def __cinit__(self, table):
        self.track, self.name, self.category, self.args_len, self.args_at = map(
            np.ascontiguousarray, (table.track, table.name, table.category, table.args_len, table.args_at)
        )


@cython.final
cdef class _Logs:
    """The columns of log entries."""

    cdef const int32_t[::1] track, level, text, source, args_len
    cdef const int64_t[::1] args_at

    def __cinit__(self, table):
        self.track, self.level, self.text, self.source, self.args_len, self.args_at = map(
            np.ascontiguousarray, (table.track, table.level, table.text, table.source, table.args_len, table.args_at)
        )


@cython.final
cdef class Encoder:
    """The packets of one file.

    Args:
        trace: whose slices, instants, counters, logs and args are encoded; all numbers in them must be in range.
        head: the bytes in each packet between its time and the length of its event.
        chunks: the bytes that name a track within an event; the bytes after the time in the packet that ends a slice
            of a track; the flow fields of a slice: each all in one, and where each starts, with the end of the last
            one. Without flows there is nothing of the last ones.
        has_text: by string, 0 for the empty one.
        shift: what is added to all times, which makes them at least 0.
        shared: whether many events have the same args, at the same place.
        limits: those of writer.py.
    """

    cdef _Buffer _out
    cdef _Interned _interned
    cdef _Annotator _annotator
    cdef _Memo _places  # by place and length of args
    cdef _Chunks _tracks, _ends, _flows
    cdef _Named _slices, _instants
    cdef _Logs _logs
    cdef _Parts _args
    cdef bytes _head
    cdef const uint8_t[::1] _has_text, _is_integer
    cdef const int32_t[::1] _counter_track
    cdef const int64_t[::1] _integer
    cdef const double[::1] _value
    cdef int64_t _shift
    cdef int _stamp_width
    cdef bint _shared

    def __init__(self, trace, head: bytes, chunks, has_text, *, int64_t shift, bint shared, limits) -> None:
        self._out, self._interned, self._places = _Buffer(1 << 20), _Interned(limits), _Memo()
        self._annotator = _Annotator(self._interned)
        self._tracks, self._ends, self._flows = map(_Chunks, chunks)
        self._slices, self._instants = _Named(trace.slices), _Named(trace.instants)
        self._logs = _Logs(trace.logs)
        self._args = _Parts(trace.args.parts)
        counters = trace.counters
        self._counter_track, self._integer, self._is_integer, self._value = map(
            np.ascontiguousarray, (counters.track, counters.integer, counters.is_integer.view(np.uint8), counters.value)
        )
        self._head, self._has_text, self._shift, self._shared, self._stamp_width = head, has_text, shift, shared, 1

    # -- for the caller's own encoding --------------------------------------------------------------------------

    def name(self, key: bytes) -> int:
        """Return the number of the name of an annotation, 0 if there are too many names."""
        return self._interned.key(key, len(key))

    def text(self, value: bytes, int key) -> int:
        """Return the number of a text under a key, 0 if the event has to hold the text itself."""
        if key < 0 or key > self._interned.max_keys:
            raise ValueError("no number of a key")
        return self._interned.text(value, len(value), key)

    def append(self, packets: bytes) -> None:
        """Append packets to those encoded so far."""
        self._out.room(len(packets))
        self._out.bytes(packets, len(packets))

    def take(self) -> memoryview:
        """Return the packets since the last call; valid until the next ones are encoded."""
        packets = self._out.view()
        self._out.used = 0
        if self._out.size > _KEPT_BYTES:
            self._out = _Buffer(_FIRST_BYTES)
        return packets

    def take_interned(self) -> bytes:
        """Return the fields of InternedData that the packets encoded since the last call rely on."""
        fields = bytes(self._interned.fields.view())
        self._interned.fields.used = 0
        if self._interned.fields.size > _KEPT_BYTES:
            self._interned.fields = _Buffer(_FIRST_BYTES)
        return fields

    # -- events -----------------------------------------------------------------------------------------------

    @cython.boundscheck(True)
    def interned(self, int field, list strings not None, list texts not None) -> memoryview:
        """Return texts with the numbers of their strings plus 1, for a field of InternedData."""
        cdef _Buffer out = _Buffer(_FIRST_BYTES)
        cdef bytes text
        for string, text in zip(strings, texts):
            _put_interned(out, field, text, len(text), string + 1)
        return out.view()

    def encode(
        self,
        const uint8_t[::1] kinds,
        const int64_t[::1] times,
        const int64_t[::1] rows,
        Py_ssize_t start,
        annotations: bytes | None = None,
    ) -> int:
        """Append the packets of entries of the file, from the one at `start` on.

        Args:
            kinds, times, rows: the columns of the entries.
            annotations: of the first entry, where the caller had to encode them.

        Returns:
            The place of the first entry that is left to the caller, or the number of entries. Of a start, an instant or
            a log entry, only the annotations are left to it.
        """
        cdef Py_ssize_t at
        cdef int64_t row, time
        for at in range(start, kinds.shape[0]):
            row, time = rows[at], times[at] + self._shift
            if row < 0 or time < 0:
                raise ValueError("a row or time below 0")
            if kinds[at] == _END:
                self._end_packet(time, self._slices.track[row])
            elif kinds[at] == _BEGIN or kinds[at] == _INSTANT:
                if not self._named(kinds[at] == _BEGIN, time, row, annotations):
                    return at
            elif kinds[at] == _COUNTER:
                self._counter_packet(time, row)
            elif kinds[at] == _LOG:
                if not self._log_packet(time, row, annotations):
                    return at
            else:
                return at
            annotations = None
        return kinds.shape[0]

    cdef inline int _width_of_time(self, uint64_t time) noexcept:
        """Return the width of a time as a varint. Times are in order, so nearly all have the same width."""
        if time >> 7 * (self._stamp_width - 1) == 0 or (self._stamp_width < 9 and time >> 7 * self._stamp_width != 0):
            self._stamp_width = _width(time)
        return self._stamp_width

    cdef inline int _end_packet(self, int64_t time, Py_ssize_t track) except -1:
        cdef Py_ssize_t size = self._ends.size_of(track)
        self._out.room(32 + size)
        _put_integer(self._out, 0x0A, 1 + self._width_of_time(time) + size)
        _put_integer(self._out, 0x40, time)
        return self._ends.put(self._out, track, size)

    @cython.boundscheck(True)
    cdef bint _named(self, bint begins, int64_t time, Py_ssize_t row, bytes annotations) except -1:
        """Append the packet of the start of a slice, or of an instant. Return False if its args are unusual."""
        cdef _Named rows = self._slices if begins else self._instants
        cdef int name = rows.name[row], category = rows.category[row]
        cdef const uint8_t *args = annotations if annotations is not None else b""
        cdef Py_ssize_t args_size = len(annotations) if annotations is not None else 0, flow_size = 0
        if annotations is None and rows.args_len[row]:
            if not self._annotate(rows.args_at[row], rows.args_len[row]):
                return False
            args, args_size = self._annotator.out.p, self._annotator.out.used
        if begins and self._flows.at.shape[0]:
            flow_size = self._flows.size_of(row)
        cdef Py_ssize_t size = flow_size + args_size
        if self._has_text[category]:
            size += 1 + _width(category + 1)
        if self._has_text[name]:
            size += 1 + _width(name + 1)
        self._event_head(1 if begins else 3, time, rows.track[row], size)
        if self._has_text[category]:
            _put_integer(self._out, 0x18, category + 1)
        if self._has_text[name]:
            _put_integer(self._out, 0x50, name + 1)
        self._flows.put(self._out, row, flow_size)
        self._out.bytes(args, args_size)
        return True

    @cython.boundscheck(True)
    cdef bint _log_packet(self, int64_t time, Py_ssize_t row, bytes annotations) except -1:
        """Append the packet of a log entry: an instant named by its text. Return False if its args are unusual."""
        cdef _Logs rows = self._logs
        cdef int text = rows.text[row], source = rows.source[row]
        cdef uint64_t level = <uint64_t><int64_t>rows.level[row]
        cdef const uint8_t *args = annotations if annotations is not None else b""
        cdef Py_ssize_t args_size = len(annotations) if annotations is not None else 0
        if annotations is None and rows.args_len[row]:
            if not self._annotate(rows.args_at[row], rows.args_len[row]):
                return False
            args, args_size = self._annotator.out.p, self._annotator.out.used
        cdef Py_ssize_t message = 1 + _width(level), name = 0
        if self._has_text[text]:
            name = 1 + _width(text + 1)
            message += name
        if self._has_text[source]:
            message += 1 + _width(source + 1)
        self._event_head(3, time, rows.track[row], name + 2 + _width(message) + message + args_size)
        if name:
            _put_integer(self._out, 0x50, text + 1)
        self._out.byte(0xAA)
        _put_integer(self._out, 0x01, message)
        if name:
            _put_integer(self._out, 0x10, text + 1)
        if self._has_text[source]:
            _put_integer(self._out, 0x08, source + 1)
        _put_integer(self._out, 0x18, level)
        self._out.bytes(args, args_size)
        return True

    cdef inline int _event_head(self, int type, int64_t time, Py_ssize_t track, Py_ssize_t size) except -1:
        """Write a packet up to the track of its event; `size` bytes follow, for which there must be room."""
        cdef Py_ssize_t head_size = len(self._head), track_size = self._tracks.size_of(track)
        size += 2 + track_size
        self._out.room(64 + head_size + size)
        _put_integer(self._out, 0x0A, 1 + self._width_of_time(time) + head_size + _width(size) + size)
        _put_integer(self._out, 0x40, time)
        self._out.bytes(self._head, head_size)
        _put_varint(self._out, size)
        self._out.byte(0x48)
        self._out.byte(type)
        return self._tracks.put(self._out, track, track_size)

    @cython.boundscheck(True)
    cdef int _counter_packet(self, int64_t time, Py_ssize_t row) except -1:
        cdef uint64_t integer = self._integer[row]
        if self._is_integer[row]:
            self._event_head(4, time, self._counter_track[row], 2 + _width(integer))
            self._out.byte(0xF0)
            _put_integer(self._out, 0x01, integer)
        else:
            self._event_head(4, time, self._counter_track[row], 2 + 8)
            self._out.byte(0xE1)
            self._out.byte(0x02)
            _put_double(self._out, self._value[row])
        return 0

    cdef bint _annotate(self, int64_t at, Py_ssize_t size) except -1:
        """Make the annotations of some args, or reuse earlier ones. Return False if the args are unusual."""
        cdef const uint8_t *args = self._args.find(at, size)
        cdef int64_t[2] place = [at, size]
        cdef int64_t inline = self._annotator.left_inline
        cdef uint64_t hashed = 0
        cdef int number
        if args == NULL:
            return False
        if self._shared:
            hashed = _hash(<const uint8_t *>place, sizeof(place))
            number = self._places.known.find(<const uint8_t *>place, sizeof(place), hashed)
            if number:
                self._annotator.out.used = 0
                self._places.put(self._annotator.out, number)
                return True
        if not self._annotator.annotate(args, size):
            return False
        if self._shared and inline == self._annotator.left_inline:
            self._places.add(
                <const uint8_t *>place, sizeof(place), hashed, self._annotator.out.p, self._annotator.out.used
            )
        return True
