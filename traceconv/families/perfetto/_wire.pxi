# Protobuf's wire format: what _wire.py writes and wire_reader.py reads, through pointers. Needs _bytes.pxi.


cdef inline int _width(uint64_t value) noexcept:
    """Return the number of bytes of a varint."""
    cdef int width = 1
    while value > 0x7F:
        value >>= 7
        width += 1
    return width


cdef inline void _put_varint(_Buffer out, uint64_t value) noexcept:
    cdef uint8_t *p = out.p + out.used
    while value > 0x7F:
        p[0] = (value & 0x7F) | 0x80
        value >>= 7
        p += 1
    p[0] = value
    out.used = p + 1 - out.p


cdef inline void _put_integer(_Buffer out, int tag, uint64_t value) noexcept:
    """Append a varint after a tag of one byte."""
    out.byte(tag)
    _put_varint(out, value)


cdef inline void _put_text(_Buffer out, int tag, const uint8_t *p, Py_ssize_t size) noexcept:
    """Append bytes and their length after a tag of one byte."""
    _put_integer(out, tag, size)
    out.bytes(p, size)


cdef inline void _put_shown(_Buffer out, const uint8_t *p, Py_ssize_t size) noexcept:
    """Append the value of an annotation as text, then as JSON: `writer._shown`."""
    _put_text(out, 0x32, p, size)
    _put_text(out, 0x4A, p, size)


cdef inline void _put_double(_Buffer out, double value) noexcept:
    out.bytes(<const uint8_t *>&value, 8)


cdef inline void _close(_Buffer out, Py_ssize_t at) noexcept:
    """Fill in the length of a field whose contents end here; one byte was left for it at `at`."""
    cdef Py_ssize_t size = out.used - at - 1
    if size < 0x80:
        out.p[at] = size
        return
    memmove(out.p + at + _width(size), out.p + at + 1, size)
    out.used = at
    _put_varint(out, size)
    out.used += size


cdef inline Py_ssize_t _read_varint(const uint8_t *p, Py_ssize_t i, Py_ssize_t end, uint64_t *value) noexcept:
    """Read a varint; return the position after it, or -1."""
    if i < end and p[i] < 128:
        value[0] = p[i]
        return i + 1
    cdef uint64_t found = 0
    cdef int shift = 0
    while i < end and shift < 70:
        found |= <uint64_t>(p[i] & 127) << shift
        i += 1
        if p[i - 1] < 128:
            value[0] = found
            return i
        shift += 7
    return -1


cdef struct _Field:
    uint64_t tag, value  # the value is the length of bytes
    Py_ssize_t at  # where bytes begin


cdef inline Py_ssize_t _read_field(const uint8_t *p, Py_ssize_t i, Py_ssize_t end, _Field *field) noexcept:
    """Read a field; return the position after it, or -1, also for fields of 32 bits, since none of them is needed."""
    i = _read_varint(p, i, end, &field.tag)
    if i < 0:
        return -1
    cdef int kind = field.tag & 7
    if kind == 1:
        if end - i < 8:
            return -1
        memcpy(&field.value, p + i, 8)
        return i + 8
    if kind != 0 and kind != 2:
        return -1
    i = _read_varint(p, i, end, &field.value)
    if i < 0 or kind == 0:
        return i
    field.at = i
    return i + <Py_ssize_t>field.value if field.value <= <uint64_t>(end - i) else -1
