# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Texts without an object for each, in one buffer with an index to find their numbers; members of JSON objects."""

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
        return self._number(text, len(text), add)

    def numbers(self, list texts not None) -> list[int]:
        """Return the number of each text. One that has none gets one."""
        cdef bytes text
        return [self._number(text, len(text), True) for text in texts]

    cdef Py_ssize_t _number(self, const uint8_t *p, Py_ssize_t size, bint add) except -2:
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

    def number_members(
        self, const uint8_t[::1] data, const int64_t[::1] at, const int32_t[::1] length, tuple keys not None,
        int64_t[::1] numbers,
    ) -> None:
        """Put into `numbers`, for each JSON object, the number of the text of an object that has only these members.

        -1 is put where that is left to Python: for spaces between tokens, and escapes in keys.

        Args:
            data, at, length, keys: as for `first_integers`.

        Raises:
            ValueError: as from `first_integers`.
        """
        cdef _Keys wanted = _Keys(keys)
        cdef _Buffer written = _Buffer(1 << 12)
        cdef Py_ssize_t row, key
        _check(data, at, length, numbers)
        for row in range(at.shape[0]):
            if not wanted.find(&data[at[row]] if length[row] > 0 else NULL, length[row]):
                numbers[row] = _LEFT
                continue
            written.used = 0
            written.room(wanted.most + max(length[row], 0))
            written.byte(c"{")
            for key in range(wanted.count):
                if wanted.value[key] != NULL:
                    if written.used > 1:
                        written.byte(c",")
                    written.byte(c'"')
                    written.bytes(wanted.text[key], wanted.size[key])
                    written.byte(c'"')
                    written.byte(c":")
                    written.bytes(wanted.value[key], wanted.value_size[key])
            written.byte(c"}")
            numbers[row] = self._number(written.p, written.used, True)

    def joined(self) -> memoryview:
        """Return all texts, each with a comma behind it."""
        cdef _Buffer written = _Buffer(self._pool.used + self._count)
        cdef Py_ssize_t number
        for number in range(self._count):
            written.bytes(self._text(number), self._size(number))
            written.byte(c",")
        return written.view()

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
        cdef int32_t *slots = <int32_t *>PyMem_Calloc(size, sizeof(int32_t))
        if slots == NULL:
            raise MemoryError
        PyMem_Free(self._slots)
        self._slots, self._mask = slots, size - 1
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


@cython.final
cdef class _Keys:
    """The values of some keys in one JSON object after the other.

    Attributes:
        value: where the value of each key starts; NULL without one.
        most: the bytes of the keys as members, without their values.
    """

    cdef object _kept
    cdef const uint8_t *text[_MOST_KEYS]
    cdef Py_ssize_t size[_MOST_KEYS]
    cdef const uint8_t *value[_MOST_KEYS]
    cdef Py_ssize_t value_size[_MOST_KEYS]
    cdef Py_ssize_t count, most

    def __cinit__(self, tuple keys not None):
        cdef Py_ssize_t number
        if len(keys) > _MOST_KEYS:
            raise ValueError("too many keys")
        self._kept, self.count, self.most = keys, len(keys), 2
        for number in range(self.count):
            self.text[number] = <bytes>keys[number]
            self.size[number] = len(<bytes>keys[number])
            self.most += self.size[number] + 4

    cdef bint find(self, const uint8_t *p, Py_ssize_t size) noexcept:
        """Find the values in an object, the last one of each key; return False for what is left to Python."""
        cdef Py_ssize_t i = 1, start, number, key
        for number in range(self.count):
            self.value[number] = NULL
        if size <= 0:
            return True
        if p[0] != c"{":
            return False
        while i < size and p[i] != c"}":
            if p[i] != c'"':
                return False
            start = i + 1
            i = start
            while i < size and p[i] != c'"' and p[i] != c"\\":
                i += 1
            if i + 2 >= size or p[i] != c'"' or p[i + 1] != c":":
                return False
            key = -1
            for number in range(self.count):
                if self.size[number] == i - start and memcmp(p + start, self.text[number], i - start) == 0:
                    key = number
            i += 2
            start = i
            if p[i] == c'"' or p[i] == c"{" or p[i] == c"[":
                i = _value_end(p, i, size)
            else:
                while i < size and (_is_digit(p[i]) or _is_of_bare(p[i])):
                    i += 1
            if i == start or i >= size or (p[i] != c"," and p[i] != c"}"):
                return False
            if key >= 0:
                self.value[key], self.value_size[key] = p + start, i - start
            i += p[i] == c","
        return True


cdef int _check(
    const uint8_t[::1] data, const int64_t[::1] at, const int32_t[::1] length, const int64_t[::1] found
) except -1:
    """Raise ValueError for columns of different lengths, and for an object outside of the bytes."""
    cdef Py_ssize_t row
    if length.shape[0] != at.shape[0] or found.shape[0] != at.shape[0]:
        raise ValueError("columns of different lengths")
    for row in range(at.shape[0]):
        if length[row] > 0 and (at[row] < 0 or at[row] > data.shape[0] - length[row]):
            raise ValueError("an object outside of the bytes")
    return 0


def first_integers(
    const uint8_t[::1] data, const int64_t[::1] at, const int32_t[::1] length, tuple keys not None, bytes unless,
    int64_t[::1] found,
) -> None:
    """Put into `found`, for each JSON object, the first positive integer among the values of keys; 0 without one.

    -1 is put where that is left to Python: for numbers that are no integers of 18 digits or less, and escapes in keys.

    Args:
        data: the bytes with the objects.
        at, length: where each object starts, and how many bytes it has; 0 for none.
        keys: as bytes, the most important first.
        unless: another key; an object where its value is a positive integer counts as without one. None for no key.

    Raises:
        ValueError: an object outside of the bytes, columns of different lengths, or more than 8 keys.
    """
    cdef _Keys wanted = _Keys(keys if unless is None else (*keys, unless))
    cdef Py_ssize_t row, number, count = len(keys)
    cdef int64_t value, first
    _check(data, at, length, found)
    for row in range(at.shape[0]):
        first = 0 if wanted.find(&data[at[row]] if length[row] > 0 else NULL, length[row]) else _LEFT
        for number in range(wanted.count):
            if first != _LEFT and wanted.value[number] != NULL:
                value = _integer(wanted.value[number], wanted.value_size[number])
                if value < 0 or (number == count and value):
                    first = value if value < 0 else 0
                elif not first:
                    first = value
        found[row] = first


cdef inline bint _is_of_bare(uint8_t c) noexcept:
    """Return whether a number or a word may have this character, besides digits."""
    return c"a" <= c <= c"z" or c == c"-" or c == c"+" or c == c"." or c == c"E"


cdef inline int64_t _integer(const uint8_t *p, Py_ssize_t size) noexcept:
    """Return an integer of few digits; 0 for what is no number, -1 for another number."""
    cdef int64_t value = 0
    cdef Py_ssize_t i
    if size and (p[0] > c"9" or p[0] == c'"'):  # a word, a string, an object or an array
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
