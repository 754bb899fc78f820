# The args of a trace, which are in several buffers. Needs _bytes.pxi.

import numpy as np


@cython.final
cdef class _Parts:
    """The args of a trace, in parts."""

    cdef list _parts  # keep the bytes where they are
    cdef const int64_t[::1] _at
    cdef const uint8_t **_addresses
    cdef Py_ssize_t _part

    def __cinit__(self, parts):
        cdef const uint8_t[::1] view
        cdef Py_ssize_t number
        self._parts = [memoryview(part).cast("B") for part in parts]
        self._at = np.cumsum([0, *map(len, self._parts)], dtype=np.int64)
        self._addresses = <const uint8_t **>PyMem_Calloc(len(self._parts) + 1, sizeof(const uint8_t *))
        if self._addresses == NULL:
            raise MemoryError
        for number in range(len(self._parts)):
            view = self._parts[number]
            self._addresses[number] = &view[0]

    def __dealloc__(self):
        PyMem_Free(self._addresses)

    cdef const uint8_t *find(self, int64_t at, Py_ssize_t size) noexcept:
        """Return a pointer to `size` bytes of args at `at`; NULL if no part holds all of them."""
        cdef Py_ssize_t low = 0, high = self._at.shape[0] - 1, middle
        if high < 1 or at < 0 or size <= 0 or at >= self._at[high]:
            return NULL
        if not self._at[self._part] <= at < self._at[self._part + 1]:
            while high - low > 1:
                middle = (low + high) // 2
                if self._at[middle] <= at:
                    low = middle
                else:
                    high = middle
            self._part = low
        if size > self._at[self._part + 1] - at:
            return NULL
        return self._addresses[self._part] + (at - self._at[self._part])
