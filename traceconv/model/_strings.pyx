# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Texts without an object for each: their UTF-8 in one buffer, their ends, and an index to find their numbers."""

from cpython.unicode cimport PyUnicode_DecodeUTF8

include "traceconv/families/common/_bytes.pxi"


@cython.final
cdef class Texts:
    """Texts and their numbers, from 0 on in the order in which they came. There are at most 2^31 of them.

    Open addressing with linear steps; at most three quarters of the slots are taken.
    """

    cdef _Buffer _pool
    cdef int64_t *_ends
    cdef int32_t *_slots  # numbers plus 1; 0 where the slot is free
    cdef uint64_t _mask
    cdef Py_ssize_t _count, _room

    def __cinit__(self):
        self._pool = _Buffer(1 << 12)
        self._more_room()
        self._resize(_FIRST_ENTRIES)

    def __dealloc__(self):
        PyMem_Free(self._ends)
        PyMem_Free(self._slots)

    def __len__(self) -> int:
        return self._count

    def number(self, bytes text not None, bint add) -> int:
        """Return the number of a text. One that has none gets one with `add`, otherwise -1 is returned."""
        cdef Py_ssize_t size = len(text)
        cdef const uint8_t *p = text
        cdef uint64_t slot = _hash(p, size) & self._mask
        cdef int32_t number = self._slots[slot]
        while number:
            if self._size(number - 1) == size and memcmp(self._text(number - 1), p, size) == 0:
                return number - 1
            slot = (slot + 1) & self._mask
            number = self._slots[slot]
        if not add:
            return -1
        if self._count == self._room:
            self._more_room()
        self._pool.room(size)
        self._pool.bytes(p, size)
        self._ends[self._count] = self._pool.used
        self._count += 1
        self._slots[slot] = self._count
        if 4 * self._count > 3 * <Py_ssize_t>self._mask:
            self._resize(2 * (self._mask + 1))
        return self._count - 1

    def text(self, Py_ssize_t number) -> str:
        """Return a text; its surrogates are encoded as other characters are.

        Raises:
            IndexError: no text has this number.
        """
        if not 0 <= number < self._count:
            raise IndexError("no such text")
        return PyUnicode_DecodeUTF8(<const char *>self._text(number), self._size(number), "surrogatepass")

    cdef inline const uint8_t *_text(self, Py_ssize_t number) noexcept:
        return self._pool.p + (self._ends[number - 1] if number else 0)

    cdef inline Py_ssize_t _size(self, Py_ssize_t number) noexcept:
        return self._ends[number] - (self._ends[number - 1] if number else 0)

    cdef int _more_room(self) except -1:
        cdef Py_ssize_t room = self._room + self._room // 4 + _FIRST_ENTRIES
        if room > 0x7FFFFFFF:
            raise MemoryError
        cdef int64_t *ends = <int64_t *>PyMem_Realloc(self._ends, room * sizeof(int64_t))
        if ends == NULL:
            raise MemoryError
        self._ends, self._room = ends, room
        return 0

    cdef int _resize(self, uint64_t size) except -1:
        """Set the number of slots, and place all numbers anew."""
        PyMem_Free(self._slots)
        self._slots = <int32_t *>PyMem_Calloc(size, sizeof(int32_t))
        if self._slots == NULL:
            raise MemoryError
        self._mask = size - 1
        cdef Py_ssize_t number
        cdef uint64_t slot
        for number in range(self._count):
            slot = _hash(self._text(number), self._size(number)) & self._mask
            while self._slots[slot]:
                slot = (slot + 1) & self._mask
            self._slots[slot] = number + 1
        return 0
