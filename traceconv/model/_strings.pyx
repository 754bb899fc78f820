# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Texts without an object for each, in one buffer with an index to find their numbers; integers in JSON objects."""

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


cdef enum:
    _MOST_KEYS = 8
    _MOST_DIGITS = 18
    _LEFT = -1


def first_integers(
    const uint8_t[::1] data, const int64_t[::1] at, const int32_t[::1] length, tuple keys not None, int64_t[::1] found
) -> None:
    """Put into `found`, for each JSON object, the first positive integer among the values of keys; 0 without one.

    -1 is put where that is left to Python: for numbers that are no integers of 18 digits or less, and escapes in keys.

    Args:
        data: the bytes with the objects.
        at, length: where each object starts, and how many bytes it has; 0 for none.
        keys: at most 8, as bytes, the most important first.

    Raises:
        ValueError: an object outside of the bytes, columns of different lengths, or too many keys.
    """
    cdef const uint8_t *texts[_MOST_KEYS]
    cdef Py_ssize_t sizes[_MOST_KEYS]
    cdef Py_ssize_t row, number, count = len(keys)
    if count > _MOST_KEYS or length.shape[0] != at.shape[0] or found.shape[0] != at.shape[0]:
        raise ValueError("too many keys, or columns of different lengths")
    for number in range(count):
        texts[number] = <bytes>keys[number]
        sizes[number] = len(<bytes>keys[number])
    for row in range(at.shape[0]):
        if length[row] <= 0:
            found[row] = 0
            continue
        if at[row] < 0 or at[row] > data.shape[0] - length[row]:
            raise ValueError("an object outside of the bytes")
        found[row] = _first_integer(&data[at[row]], length[row], texts, sizes, count)


cdef int64_t _first_integer(
    const uint8_t *p, Py_ssize_t size, const uint8_t **texts, Py_ssize_t *sizes, Py_ssize_t count
) noexcept:
    """Return the integer of one object as `first_integers` does."""
    cdef int64_t values[_MOST_KEYS]
    cdef Py_ssize_t i = 1, start, number, key
    for number in range(count):
        values[number] = 0
    if p[0] != c"{":
        return _LEFT
    while i < size and p[i] != c"}":
        if p[i] != c'"':
            return _LEFT
        start = i + 1
        i = start
        while i < size and p[i] != c'"' and p[i] != c"\\":
            i += 1
        if i + 2 >= size or p[i] != c'"' or p[i + 1] != c":":
            return _LEFT
        key = -1
        for number in range(count):
            if sizes[number] == i - start and memcmp(p + start, texts[number], i - start) == 0:
                key = number
        i += 2
        start = i
        if p[i] == c'"' or p[i] == c"{" or p[i] == c"[":
            i = _value_end(p, i, size)
            if key >= 0:
                values[key] = 0
        else:
            while i < size and p[i] != c"," and p[i] != c"}":
                i += 1
            if key >= 0:
                values[key] = _integer(p + start, i - start)
                if values[key] < 0:
                    return _LEFT
        if i >= size or (p[i] != c"," and p[i] != c"}"):
            return _LEFT
        i += p[i] == c","
    for number in range(count):
        if values[number]:
            return values[number]
    return 0


cdef inline int64_t _integer(const uint8_t *p, Py_ssize_t size) noexcept:
    """Return an integer of few digits; 0 for a word, -1 for another number."""
    cdef int64_t value = 0
    cdef Py_ssize_t i
    if size and (p[0] == c"t" or p[0] == c"f" or p[0] == c"n"):
        return 0
    if not 0 < size <= _MOST_DIGITS:
        return _LEFT
    for i in range(size):
        if not _is_digit(p[i]):
            return _LEFT
        value = 10 * value + (p[i] - c"0")
    return value


cdef inline Py_ssize_t _value_end(const uint8_t *p, Py_ssize_t i, Py_ssize_t size) noexcept:
    """Return the position after a string, an object or an array that starts at `i`; `size` if it does not end."""
    cdef Py_ssize_t depth = 0
    cdef bint quoted = False
    while i < size:
        if quoted:
            if p[i] == c"\\":
                i += 1
            elif p[i] == c'"':
                quoted = False
        elif p[i] == c'"':
            quoted = True
        elif p[i] == c"{" or p[i] == c"[":
            depth += 1
        elif p[i] == c"}" or p[i] == c"]":
            depth -= 1
        i += 1
        if not quoted and depth == 0:
            return i
    return size
