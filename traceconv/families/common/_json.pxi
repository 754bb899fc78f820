# JSON, byte by byte: where a chunk of it ends. No rule of JSON accepts a zero byte, so whoever calls puts one behind
# the data, and each loop ends there at the latest. Each function tells the position behind what it is about, -1 where
# no such thing stands. Needs _bytes.pxi.

cdef enum:
    _NONE = -1


cdef inline bint _stands(const uint8_t *p, Py_ssize_t i, const uint8_t *text, Py_ssize_t size) noexcept:
    """Return whether this text is at `i`."""
    cdef Py_ssize_t j
    for j in range(size):
        if p[i + j] != text[j]:
            return False
    return True


cdef inline bint _is_space(uint8_t c) noexcept:
    return c == c" " or c == c"\n" or c == c"\r" or c == c"\t"


cdef inline Py_ssize_t _behind_space(const uint8_t *p, Py_ssize_t i) noexcept:
    while _is_space(p[i]):
        i += 1
    return i


cdef inline Py_ssize_t _string_end(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return the position of the closing quote; -1 if there is none, or an escape is invalid or half a pair."""
    while True:
        i = _run_end(p, i)
        if p[i] == c'"':
            return i
        if p[i] != c"\\":
            return _NONE
        i = _escape_end(p, i + 1)
        if i < 0:
            return _NONE


cdef inline bint _is_opening(uint8_t c) noexcept:
    return c == c"{" or c == c"["


cdef inline Py_ssize_t _scalar_end(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return the position after a string, number or word; -1 if there is none at `i`."""
    if p[i] == c'"':
        return _behind_string(p, i)
    return _number_end(p, i) if p[i] == c"-" or _is_digit(p[i]) else _word_end(p, i)


cdef inline Py_ssize_t _behind_string(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return the position after the string at `i`; -1 if there is none."""
    cdef Py_ssize_t end = _string_end(p, i + 1)
    return end + 1 if end >= 0 else _NONE


cdef inline Py_ssize_t _run_end(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return the position of the next quote, backslash or control character."""
    while p[i] >= c" " and p[i] != c'"' and p[i] != c"\\":
        i += 1
    return i


cdef Py_ssize_t _escape_end(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return the position after an escape, or a surrogate pair of two, that starts before `i`; -1 if invalid."""
    if p[i] != c"u":
        return i + 1 if _is_short_escape(p[i]) else _NONE
    if not _is_hex(p, i + 1):
        return _NONE
    if _lower(p[i + 1]) != c"d" or p[i + 2] < c"8":  # no surrogate
        return i + 5
    if p[i + 2] > c"9" and _lower(p[i + 2]) > c"b":  # a low surrogate comes first
        return _NONE
    if p[i + 5] != c"\\" or p[i + 6] != c"u" or not _is_hex(p, i + 7):
        return _NONE
    return i + 11 if _lower(p[i + 7]) == c"d" and _lower(p[i + 8]) >= c"c" else _NONE


cdef inline bint _is_short_escape(uint8_t c) noexcept:
    if c == c'"' or c == c"\\" or c == c"/":
        return True
    return c == c"b" or c == c"f" or c == c"n" or c == c"r" or c == c"t"


cdef inline uint8_t _lower(uint8_t c) noexcept:
    """Return a letter in lower case, a digit unchanged."""
    return c | 0x20


cdef inline bint _is_hex(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return whether four hexadecimal digits are at `i`."""
    cdef Py_ssize_t j
    for j in range(i, i + 4):
        if not (_is_digit(p[j]) or c"a" <= _lower(p[j]) <= c"f"):
            return False
    return True


cdef inline bint _begins_number(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return whether the digits at `i` may start a number: several may not start with a zero."""
    return _is_digit(p[i]) and not (p[i] == c"0" and _is_digit(p[i + 1]))


cdef inline bint _is_exponent(uint8_t c) noexcept:
    return c == c"e" or c == c"E"


cdef inline Py_ssize_t _digits_end(const uint8_t *p, Py_ssize_t i) noexcept:
    while _is_digit(p[i]):
        i += 1
    return i


cdef inline Py_ssize_t _number_end(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return the position after a number; -1 if there is none at `i`."""
    if p[i] == c"-":
        i += 1
    if not _begins_number(p, i):
        return _NONE
    i = _digits_end(p, i)
    if p[i] == c".":
        if not _is_digit(p[i + 1]):
            return _NONE
        i = _digits_end(p, i + 1)
    if _is_exponent(p[i]):
        i += 1
        if p[i] == c"+" or p[i] == c"-":
            i += 1
        if not _is_digit(p[i]):
            return _NONE
        i = _digits_end(p, i)
    return i


cdef inline Py_ssize_t _word_end(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return the position after true, false or null; -1 if there is none at `i`."""
    if _stands(p, i, b"true", 4) or _stands(p, i, b"null", 4):
        return i + 4
    return i + 5 if _stands(p, i, b"false", 5) else _NONE
