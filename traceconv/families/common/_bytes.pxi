# Bytes that grow and numbers for byte strings: what the compiled modules have in common. Each includes what it needs.

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memmove, memset

import os

cdef enum:
    _FIRST_ENTRIES = 256

cdef uint64_t _FACTOR = 0x9E3779B97F4A7C15
#: Differs from run to run, so that nobody can prepare texts that fall into the same slot; it changes no output.
cdef uint64_t _SEED = int.from_bytes(os.urandom(8), "little")


cdef inline bint _is_digit(uint8_t c) noexcept:
    return c"0" <= c <= c"9"


cdef inline int _put_digits(uint8_t *p, uint64_t number) noexcept:
    """Write a number in decimal digits; return how many."""
    cdef int digits = 1, i
    cdef uint64_t rest = number // 10
    while rest:
        digits += 1
        rest //= 10
    for i in range(digits - 1, -1, -1):
        p[i] = c"0" + number % 10
        number //= 10
    return digits


cdef inline uint64_t _hash(const uint8_t *p, Py_ssize_t size) noexcept:
    cdef Py_ssize_t at = 0
    cdef uint64_t value = _SEED ^ size
    cdef uint64_t word
    while size - at >= 8:
        memcpy(&word, p + at, 8)
        value = (value ^ word) * _FACTOR
        value ^= value >> 32
        at += 8
    word = 0
    while at < size:
        word = word << 8 | p[at]
        at += 1
    value = (value ^ word) * _FACTOR
    return value ^ value >> 29


@cython.final
cdef class _Buffer:
    """Bytes that grow at the end. Make room before you write."""

    cdef object _bytes
    cdef uint8_t *p
    cdef Py_ssize_t used, size

    def __cinit__(self, Py_ssize_t size):
        self._resize(size)

    cdef int _resize(self, Py_ssize_t size) except -1:
        bytes_before, before = self._bytes, self.p
        self._bytes = PyByteArray_FromStringAndSize(NULL, size)
        self.p = <uint8_t *>PyByteArray_AS_STRING(self._bytes)
        self.size = size
        if self.used:
            memcpy(self.p, before, self.used)
        return 0

    cdef object view(self):
        """Return the bytes written so far; valid until more is written."""
        return memoryview(self._bytes)[: self.used]

    cdef inline int room(self, Py_ssize_t more) except -1:
        """Make room for `more` more bytes."""
        if self.size - self.used < more:
            self._resize(max(2 * self.size, self.used + more))
        return 0

    cdef inline void byte(self, int value) noexcept:
        self.p[self.used] = value
        self.used += 1

    cdef inline void bytes(self, const uint8_t *p, Py_ssize_t size) noexcept:
        memcpy(self.p + self.used, p, size)
        self.used += size


cdef struct _Entry:
    uint64_t hashed
    int64_t end  # of its bytes in the pool
    int64_t value  # what the user of the table notes with it, 0 at first


@cython.final
cdef class _Table:
    """Byte strings, numbered from 1 in the order of arrival; the latest ones can be removed again.

    Open addressing with linear steps; at most half of the slots are taken. The latest entry never stands in the way of
    an earlier one, so taking it out is emptying its slot.

    Attributes:
        entries: by number; the one of number 0 is a bound.
    """

    cdef _Buffer pool
    cdef _Entry *entries
    cdef int32_t *_slots
    cdef uint64_t _mask
    cdef int count, _room

    def __cinit__(self):
        self.pool = _Buffer(1 << 12)
        self._grow()
        self.entries[0] = _Entry(0, 0, 0)

    def __dealloc__(self):
        PyMem_Free(self.entries)
        PyMem_Free(self._slots)

    def __len__(self) -> int:
        return self.count

    cdef inline const uint8_t *text(self, int number) noexcept:
        return self.pool.p + self.entries[number - 1].end

    cdef inline Py_ssize_t size_of(self, int number) noexcept:
        return self.entries[number].end - self.entries[number - 1].end

    cdef inline int number(self, const uint8_t *p, Py_ssize_t size) except -1:
        """Return the number of a byte string, a new one if it has none."""
        cdef uint64_t hashed = _hash(p, size)
        cdef int number = self.find(p, size, hashed)
        return number if number else self.add(p, size, hashed)

    cdef inline int find(self, const uint8_t *p, Py_ssize_t size, uint64_t hashed) noexcept:
        """Return the number of a byte string with this hash, 0 if it has none."""
        cdef uint64_t slot = hashed & self._mask
        cdef int number = self._slots[slot]
        while number:
            if (
                self.entries[number].hashed == hashed
                and self.size_of(number) == size
                and memcmp(self.text(number), p, size) == 0
            ):
                return number
            slot = (slot + 1) & self._mask
            number = self._slots[slot]
        return 0

    cdef int add(self, const uint8_t *p, Py_ssize_t size, uint64_t hashed) except -1:
        """Give a number to a byte string that has none."""
        if self.count + 2 > self._room:
            self._grow()
        self.pool.room(size)
        self.pool.bytes(p, size)
        self.count += 1
        self.entries[self.count] = _Entry(hashed, self.pool.used, 0)
        self._place(self.count)
        return self.count

    cdef void _place(self, int number) noexcept:
        cdef uint64_t slot = self.entries[number].hashed & self._mask
        while self._slots[slot]:
            slot = (slot + 1) & self._mask
        self._slots[slot] = number

    cdef int _grow(self) except -1:
        """Double the capacity."""
        cdef int room = 2 * self._room if self._room else _FIRST_ENTRIES
        cdef _Entry *entries = <_Entry *>PyMem_Realloc(self.entries, room * sizeof(_Entry))
        if entries == NULL:
            raise MemoryError
        self.entries, self._room = entries, room
        cdef int32_t *slots = <int32_t *>PyMem_Calloc(2 * room, sizeof(int32_t))
        if slots == NULL:
            raise MemoryError
        PyMem_Free(self._slots)
        self._slots, self._mask = slots, 2 * room - 1
        cdef int number
        for number in range(1, self.count + 1):
            self._place(number)
        return 0

    cdef void cut(self, int count) noexcept:
        """Keep the first `count` only."""
        cdef uint64_t slot
        while self.count > count:
            slot = self.entries[self.count].hashed & self._mask
            while self._slots[slot] != self.count:
                slot = (slot + 1) & self._mask
            self._slots[slot] = 0
            self.count -= 1
        self.pool.used = self.entries[count].end


cdef struct _Place:
    uint64_t low, high
    int32_t kind
    int32_t number  # plus 1; 0 where the place is free


@cython.final
cdef class _Numbers:
    """Maps two words and a kind to a number, not negative. Looking them up in a _Table takes 1.35 times as long."""

    cdef _Place *_places
    cdef uint64_t _mask
    cdef Py_ssize_t count

    def __cinit__(self):
        self._resize(1 << 10)

    def __dealloc__(self):
        PyMem_Free(self._places)

    cdef int _resize(self, uint64_t room) except -1:
        cdef _Place *places = <_Place *>PyMem_Calloc(room, sizeof(_Place))
        if places == NULL:
            raise MemoryError
        self._places, self._mask = places, room - 1
        return 0

    cdef inline _Place *_find(self, uint64_t low, uint64_t high, int32_t kind) noexcept:
        """Return the entry of a key, or the free one where it belongs."""
        cdef uint64_t mixed = (low ^ _SEED) * _FACTOR
        mixed ^= mixed >> 32
        mixed = (mixed ^ high ^ (<uint64_t>kind << 40)) * _FACTOR
        cdef uint64_t at = (mixed ^ mixed >> 29) & self._mask
        cdef _Place *place = &self._places[at]
        while place.number and (place.low != low or place.high != high or place.kind != kind):
            at = (at + 1) & self._mask
            place = &self._places[at]
        return place

    cdef inline int get(self, uint64_t low, uint64_t high, int32_t kind) noexcept:
        """Return the number, -1 if there is none."""
        return self._find(low, high, kind).number - 1

    cdef int set(self, uint64_t low, uint64_t high, int32_t kind, int32_t number) except -1:
        """Set the number."""
        cdef _Place *place = self._find(low, high, kind)
        self.count += place.number == 0
        place[0] = _Place(low, high, kind, number + 1)
        if 2 * self.count > <Py_ssize_t>self._mask:
            self._grow()
        return 0

    cdef int _grow(self) except -1:
        """Double the entries, so that half of them stay free."""
        cdef _Place *before = self._places
        cdef uint64_t at, room = self._mask + 1
        self._resize(2 * room)
        for at in range(room):
            if before[at].number:
                self._find(before[at].low, before[at].high, before[at].kind)[0] = before[at]
        PyMem_Free(before)
        return 0
