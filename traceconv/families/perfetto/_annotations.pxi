# The args of events, from JSON to annotations. Needs _bytes.pxi, _json.pxi and _wire.pxi.

cdef enum:
    #: Instead of a place in the args: unusual, so that the caller must do it.
    _UNUSUAL = -1
    _MAX_MEMO_BYTES = 16 << 20
    #: Larger args go back to the caller: room is made for eight times of them.
    _MAX_PLAIN_BYTES = 1 << 19
    _MAX_PLAIN_DEPTH = 24
    _MAX_OPEN_KEYS = 256
    _MAX_INLINE_KEYS = 16  # of one event
    _MAX_DIGITS = 19  # so many always fit into 64 bits
    _EXACT_POWER = 22  # doubles hold all powers of ten up to this one

from libc.stdint cimport uint32_t

cdef uint64_t _EXACT = 1 << 53  # and all integers up to here
cdef uint64_t _INT64_END = 1 << 63


cdef inline Py_ssize_t _plain_end(const uint8_t *p, Py_ssize_t at) noexcept:
    """Return the position of the closing quote of a text without escapes that starts at `at`."""
    at = _run_end(p, at)
    return at if p[at] == c'"' else _UNUSUAL


cdef inline uint32_t _hex(const uint8_t *p) noexcept:
    """Return the number of four hexadecimal digits."""
    cdef uint32_t number = 0
    cdef int i
    for i in range(4):
        number = number << 4 | (p[i] - c"0" if _is_digit(p[i]) else _lower(p[i]) - c"a" + 10)
    return number


cdef void _unescape(_Buffer out, const uint8_t *p, Py_ssize_t at, Py_ssize_t end) noexcept:
    """Append the text of a valid JSON string, which is never longer."""
    cdef Py_ssize_t stop
    cdef uint32_t code
    while at < end:
        stop = _run_end(p, at)
        out.bytes(p + at, stop - at)
        at = stop
        if at == end:
            return
        code = p[at + 1]
        at += 2
        if code == c"b":
            code = 8
        elif code == c"f":
            code = 12
        elif code == c"n":
            code = 10
        elif code == c"r":
            code = 13
        elif code == c"t":
            code = 9
        elif code == c"u":
            code = _hex(p + at)
            at += 4
            if 0xD800 <= code < 0xDC00:
                code = 0x10000 + ((code - 0xD800) << 10) + (_hex(p + at + 2) - 0xDC00)
                at += 6
        if code < 0x80:
            out.byte(code)
        elif code < 0x800:
            out.byte(0xC0 | code >> 6)
            out.byte(0x80 | code & 0x3F)
        elif code < 0x10000:
            out.byte(0xE0 | code >> 12)
            out.byte(0x80 | code >> 6 & 0x3F)
            out.byte(0x80 | code & 0x3F)
        else:
            out.byte(0xF0 | code >> 18)
            out.byte(0x80 | code >> 12 & 0x3F)
            out.byte(0x80 | code >> 6 & 0x3F)
            out.byte(0x80 | code & 0x3F)


cdef Py_ssize_t _nested_end(const uint8_t *p, Py_ssize_t at) noexcept:
    """Return the position after an object or array, found by its brackets only."""
    cdef Py_ssize_t depth = 0
    cdef int byte
    while p[at]:
        byte = p[at]
        at += 1
        if byte == c'"':
            at = _string_end(p, at) + 1
            if at == 0:
                return _UNUSUAL
        elif byte == c"[" or byte == c"{":
            depth += 1
        elif byte == c"]" or byte == c"}":
            depth -= 1
            if depth == 0:
                return at
    return _UNUSUAL


cdef inline Py_ssize_t _behind_colon(const uint8_t *p, Py_ssize_t at) noexcept:
    """Return the position of the value whose key ends before `at`."""
    at = _behind_space(p, at)
    return _behind_space(p, at + 1) if p[at] == c":" else _UNUSUAL


cdef int _put_interned(_Buffer out, int field, const uint8_t *p, Py_ssize_t size, uint64_t number) except -1:
    """Append a text and its number to a field of InternedData."""
    out.room(32 + size)
    _put_varint(out, field << 3 | 2)
    _put_varint(out, 1 + _width(number) + 1 + _width(size) + size)
    _put_integer(out, 0x08, number)
    _put_text(out, 0x12, p, size)
    return 0


cdef bint _is_plain(const uint8_t *p, Py_ssize_t size) noexcept:
    """Return whether JSON can hold a text without escapes."""
    cdef Py_ssize_t i
    for i in range(size):
        if p[i] < c" " or p[i] == c'"' or p[i] == c"\\":
            return False
    return True


cdef bint _is_utf8(const uint8_t *p, Py_ssize_t size):
    cdef Py_ssize_t i
    for i in range(size):
        if p[i] >= 0x80:
            break
    else:
        return True
    try:
        p[:size].decode()
    except UnicodeDecodeError:
        return False
    return True


@cython.final
cdef class _Interned:
    """Keys and texts of args, and the fields of InternedData that state their numbers.

    Args:
        limits: those of writer.py.
    """

    cdef _Table keys, texts
    cdef _Buffer fields
    cdef int max_keys
    cdef int _max_texts_per_key
    cdef int64_t _max_text_bytes, _text_overhead, _text_bytes
    cdef int32_t[::1] _texts_of_key

    def __cinit__(self, limits):
        self.keys, self.texts, self.fields = _Table(), _Table(), _Buffer(_FIRST_BYTES)
        self.max_keys, self._max_texts_per_key = limits.max_keys, limits.max_texts_per_key
        self._max_text_bytes, self._text_overhead = limits.max_text_bytes, limits.text_overhead
        self._texts_of_key = np.zeros(self.max_keys + 1, np.int32)

    cdef int key(self, const uint8_t *p, Py_ssize_t size) except -2:
        """Return the number of a key: 0 if there are too many, -1 if it is not text."""
        cdef uint64_t hashed = _hash(p, size)
        cdef int number = self.keys.find(p, size, hashed)
        if number:
            return number
        if not _is_utf8(p, size):
            return -1
        if self.keys.count >= self.max_keys:
            return 0
        number = self.keys.add(p, size, hashed)
        self.keys.entries[number].value = _is_plain(p, size)
        _put_interned(self.fields, 3, p, size, number)
        return number

    cdef int text(self, const uint8_t *p, Py_ssize_t size, int key) except -2:
        """Return the number of a text: 0 if it stays in the event, -1 if it is not text."""
        cdef uint64_t hashed = _hash(p, size)
        cdef int number = self.texts.find(p, size, hashed)
        if number:
            return number
        if not _is_utf8(p, size):
            return -1
        cdef int64_t bytes_after = self._text_bytes + size + self._text_overhead
        if key == 0 or self._texts_of_key[key] >= self._max_texts_per_key or bytes_after > self._max_text_bytes:
            return 0
        number = self.texts.add(p, size, hashed)
        self.texts.entries[number].value = key
        self._text_bytes = bytes_after
        self._texts_of_key[key] += 1
        _put_interned(self.fields, 29, p, size, number)
        return number

    cdef void cut(self, int keys, int texts, Py_ssize_t fields) noexcept:
        """Drop all that was added after these sizes."""
        cdef int number
        for number in range(texts + 1, self.texts.count + 1):
            self._texts_of_key[self.texts.entries[number].value] -= 1
            self._text_bytes -= self.texts.size_of(number) + self._text_overhead
        self.keys.cut(keys)
        self.texts.cut(texts)
        self.fields.used = fields


@cython.final
cdef class _Memo:
    """A cache from byte strings to results, limited in bytes. The value of an entry is the end of its result."""

    cdef _Table known
    cdef _Buffer _results

    def __cinit__(self):
        self.known, self._results = _Table(), _Buffer(1 << 12)

    cdef inline int put(self, _Buffer out, int number) except -1:
        """Append the result with this number."""
        cdef int64_t first = self.known.entries[number - 1].value
        cdef int64_t size = self.known.entries[number].value - first
        out.room(size)
        out.bytes(self._results.p + first, size)
        return 0

    cdef int add(
        self, const uint8_t *p, Py_ssize_t size, uint64_t hashed, const uint8_t *result, Py_ssize_t result_size
    ) except -1:
        """Keep the result for a new byte string; return its number, or 0."""
        if self.known.pool.used + size + self._results.used + result_size > _MAX_MEMO_BYTES:
            return 0
        cdef int number = self.known.add(p, size, hashed)
        self._results.room(result_size)
        self._results.bytes(result, result_size)
        self.known.entries[number].value = self._results.used
        return number

    cdef void cut(self, int count) noexcept:
        """Keep the first `count` only."""
        self.known.cut(count)
        self._results.used = self.known.entries[count].value


@cython.final
cdef class _Annotator:
    """Turns the args of one event after the other into annotations.

    Attributes:
        out: the annotations of the last one.
        left_inline: how many texts were not interned so far. One of them may be interned when it comes again under
            another key, so a message that holds one is not kept.
    """

    cdef _Buffer out
    cdef int64_t left_inline
    cdef _Interned _interned
    cdef _Memo _memo
    cdef _Buffer _json
    cdef Py_ssize_t _end
    # By key: the one that followed it last, what its value was last, and the last event that had it.
    cdef int32_t[::1] _next_key, _last_memo
    cdef int64_t[::1] _event_of_key
    cdef int64_t _events
    cdef int[_MAX_OPEN_KEYS] _open_keys
    cdef int _open
    # Where the keys of the event are that have no number, and their sizes.
    cdef Py_ssize_t[_MAX_INLINE_KEYS] _inline_at, _inline_size
    cdef int _inline, _key
    cdef _Buffer _unescaped
    cdef double[_EXACT_POWER + 1] _tens

    def __cinit__(self, _Interned interned):
        self.out, self._json, self._unescaped = _Buffer(1 << 12), _Buffer(1 << 12), _Buffer(1 << 12)
        self._interned, self._memo = interned, _Memo()
        self._next_key, self._last_memo = np.zeros((2, interned.max_keys + 1), np.int32)
        self._event_of_key = np.zeros(interned.max_keys + 1, np.int64)
        cdef int power
        for power in range(_EXACT_POWER + 1):
            self._tens[power] = 10.0**power

    cdef bint annotate(self, const uint8_t *args, Py_ssize_t size) except -1:
        """Write the annotations of a JSON object. Return False, and write nothing, if it is unusual."""
        cdef int keys = self._interned.keys.count, texts = self._interned.texts.count, memos = self._memo.known.count
        cdef Py_ssize_t fields = self._interned.fields.used
        self.out.used = 0
        if size > _MAX_PLAIN_BYTES:
            return False
        self._events += 1
        self._inline = 0
        # No byte of JSON becomes more than five of annotations: "-1," makes 13, the most for its size.
        self.out.room(64 + 8 * size)
        self._json.used = 0
        self._json.room(size + 1)
        self._json.bytes(args, size)
        self._json.byte(0)
        self._end = size
        if self._object(self._json.p):
            return True
        self.out.used = 0
        if self._interned.keys.count > keys:
            self._forget_keys(keys)
        self._interned.cut(keys, texts, fields)
        self._memo.cut(memos)
        return False

    cdef void _forget_keys(self, int keys) noexcept:
        """Forget the keys above this number; those before may have led to them."""
        cdef int number
        for number in range(self._interned.keys.count + 1):
            if number > keys:
                self._event_of_key[number] = 0
            if number > keys or self._next_key[number] > keys:
                self._next_key[number] = 0

    cdef bint _object(self, const uint8_t *p) except -1:
        """Write all members as annotations of an event."""
        cdef int key = 0, before
        cdef Py_ssize_t mark, at = _behind_space(p, 0)
        if p[at] != c"{":
            return False
        at = _behind_space(p, at + 1)
        if p[at] == c"}":
            return _behind_space(p, at + 1) == self._end
        while p[at] == c'"':
            before = key
            at = self._member_key(p, at + 1, before)
            if at < 0:
                return False
            key = self._key
            if key and self._event_of_key[key] == self._events:
                return False  # twice: the last one counts
            self._event_of_key[key] = self._events
            self.out.byte(0x22)
            mark = self.out.used
            self.out.byte(0)
            if key:
                _put_integer(self.out, 0x08, key)
            else:
                _put_text(self.out, 0x52, p + self._inline_at[self._inline - 1], self._inline_size[self._inline - 1])
            at = self._value(p, at, key, 0)
            if at < 0:
                return False
            _close(self.out, mark)
            at = _behind_space(p, at)
            if p[at] == c"}":
                return _behind_space(p, at + 1) == self._end
            if p[at] != c",":
                return False
            at = _behind_space(p, at + 1)
        return False

    cdef Py_ssize_t _member_key(self, const uint8_t *p, Py_ssize_t at, int before) except -2:
        """Return the position of the value after the key at `at`; `_key` is then its number, 0 for the last inline one.

        Most keys follow the key that they followed the last time. Only plain keys are compared as they are: one with
        a quote, which only the caller can name, would match where the key in the JSON has ended before.
        """
        cdef _Table keys = self._interned.keys
        cdef int guess = self._next_key[before]
        cdef Py_ssize_t size, stop
        if guess and keys.entries[guess].value:
            size = keys.size_of(guess)
            if self._end - at > size and p[at + size] == c'"' and memcmp(keys.text(guess), p + at, size) == 0:
                self._key = guess
                return _behind_colon(p, at + size + 1)
        stop = _plain_end(p, at)
        if stop < 0:
            return _UNUSUAL
        self._key = self._interned.key(p + at, stop - at)
        if self._key < 0 or (self._key == 0 and not self._add_inline(p, at, stop - at)):
            return _UNUSUAL
        if self._key:
            self._next_key[before] = self._key
        return _behind_colon(p, stop + 1)

    cdef bint _add_inline(self, const uint8_t *p, Py_ssize_t at, Py_ssize_t size) noexcept:
        """Note a key without a number; return False if the event has it already, or too many of them."""
        cdef int other
        if self._inline == _MAX_INLINE_KEYS:
            return False
        for other in range(self._inline):
            if self._inline_size[other] == size and memcmp(p + self._inline_at[other], p + at, size) == 0:
                return False
        self._inline_at[self._inline], self._inline_size[self._inline] = at, size
        self._inline += 1
        return True

    cdef Py_ssize_t _value(self, const uint8_t *p, Py_ssize_t at, int key, int depth) except -2:
        """Write the value fields of a DebugAnnotation; return the position after the value, or that it is unusual."""
        cdef uint8_t first = p[at]
        if first == c"-" or _is_digit(first):
            return self._number(p, at)
        if first == c'"':
            return self._text(p, at + 1, key)
        if _is_opening(first):
            return self._nested(p, at, key, depth) if depth else self._remembered(p, at, key)
        cdef Py_ssize_t end = _word_end(p, at)
        if end < 0:
            return _UNUSUAL
        if first == c"n":
            _put_shown(self.out, p + at, 4)
        else:
            _put_integer(self.out, 0x10, first == c"t")
        return end

    cdef Py_ssize_t _number(self, const uint8_t *p, Py_ssize_t start) except -2:
        cdef Py_ssize_t at = start
        cdef bint negative = p[at] == c"-"
        cdef uint64_t value = 0
        cdef int digits = 0
        at += negative
        if not _begins_number(p, at):
            return _UNUSUAL
        if p[at] == c"0":
            at += 1
        while _is_digit(p[at]):
            if digits < _MAX_DIGITS:
                value = value * 10 + (p[at] - c"0")
            digits += digits <= _MAX_DIGITS
            at += 1
        if p[at] == c"." or _is_exponent(p[at]):
            return self._double(p, start, at, value, digits)
        if digits > _MAX_DIGITS or value > _INT64_END or (value == _INT64_END and not negative):
            _put_shown(self.out, p + start, at - start)
        else:
            _put_integer(self.out, 0x20, 0 - value if negative else value)
        return at

    cdef Py_ssize_t _double(
        self, const uint8_t *p, Py_ssize_t start, Py_ssize_t at, uint64_t value, int digits
    ) except -2:
        """Write the number whose fraction or exponent is at `at`, after `digits` digits of this value, if they fit."""
        cdef Py_ssize_t end = _number_end(p, start)
        cdef int power = 0, exponent = 0
        cdef bint is_small
        cdef double number
        if end < 0:
            return _UNUSUAL
        if p[at] == c".":
            at += 1
            while _is_digit(p[at]):
                if digits < _MAX_DIGITS:
                    value = value * 10 + (p[at] - c"0")
                    power -= 1
                    digits += value != 0
                elif digits == _MAX_DIGITS:
                    digits += 1
                at += 1
        if at < end:
            is_small = p[at + 1] == c"-"
            for at in range(at + 1 + (is_small or p[at + 1] == c"+"), end):
                if exponent < 10000:
                    exponent = exponent * 10 + (p[at] - c"0")
            power = power - exponent if is_small else power + exponent
        if digits <= _MAX_DIGITS and value <= _EXACT and -_EXACT_POWER <= power <= _EXACT_POWER:
            # Both are exact, so their product or quotient is rounded once.
            number = <double>value / self._tens[-power] if power < 0 else <double>value * self._tens[power]
            if p[start] == c"-":
                number = -number
        else:
            number = float(p[start:end])
            if number - number != 0:
                _put_shown(self.out, p + start, end - start)
                return end
        self.out.byte(0x29)
        _put_double(self.out, number)
        return end

    cdef Py_ssize_t _text(self, const uint8_t *p, Py_ssize_t at, int key) except -2:
        cdef Py_ssize_t stop = _run_end(p, at), size = stop - at
        cdef const uint8_t *text = p + at
        if p[stop] != c'"':
            stop = _string_end(p, stop)
            if stop < 0:
                return _UNUSUAL
            self._unescaped.used = 0
            self._unescaped.room(stop - at)
            _unescape(self._unescaped, p, at, stop)
            text, size = self._unescaped.p, self._unescaped.used
        cdef int number = self._interned.text(text, size, key)
        if number < 0:
            return _UNUSUAL
        if number:
            self.out.byte(0x88)
            _put_integer(self.out, 0x01, number)
        else:
            self.left_inline += 1
            _put_text(self.out, 0x32, text, size)
        return stop + 1

    cdef Py_ssize_t _remembered(self, const uint8_t *p, Py_ssize_t at, int key) except -2:
        """Write an object or array, from the cache if it occurred before."""
        cdef _Table known = self._memo.known
        cdef int number = self._last_memo[key]
        cdef Py_ssize_t size, mark
        cdef int64_t inline
        cdef uint64_t hashed
        if 0 < number <= known.count:
            size = known.size_of(number)
            # Its brackets are balanced, so what begins like it also ends there.
            if self._end - at >= size and memcmp(known.text(number), p + at, size) == 0:
                self._memo.put(self.out, number)
                return at + size
        size = _nested_end(p, at) - at
        if size < 0:
            return _UNUSUAL
        hashed = _hash(p + at, size)
        number = known.find(p + at, size, hashed)
        if number:
            self._memo.put(self.out, number)
        else:
            mark, inline = self.out.used, self.left_inline
            if self._nested(p, at, key, 0) != at + size:
                return _UNUSUAL
            if inline == self.left_inline:
                number = self._memo.add(p + at, size, hashed, self.out.p + mark, self.out.used - mark)
        self._last_memo[key] = number
        return at + size

    cdef Py_ssize_t _nested(self, const uint8_t *p, Py_ssize_t at, int key, int depth) except -2:
        """Write the entries of an object or the items of an array."""
        cdef uint8_t opening = p[at], closing = opening + 2
        cdef bint is_object = opening == c"{"
        cdef int first_key = self._open
        cdef Py_ssize_t mark
        if depth >= _MAX_PLAIN_DEPTH:
            return _UNUSUAL
        at = _behind_space(p, at + 1)
        if p[at] == closing:
            _put_shown(self.out, b"{}" if is_object else b"[]", 2)
            return at + 1
        while True:
            self.out.byte(0x5A if is_object else 0x62)
            mark = self.out.used
            self.out.byte(0)
            if is_object:
                at = self._nested_key(p, at, first_key)
                if at < 0:
                    break
                key = self._open_keys[self._open - 1]
            at = self._value(p, at, key, depth + 1)
            if at < 0:
                break
            _close(self.out, mark)
            at = _behind_space(p, at)
            if p[at] == closing:
                self._open = first_key
                return at + 1
            if p[at] != c",":
                break
            at = _behind_space(p, at + 1)
        self._open = first_key
        return _UNUSUAL

    cdef Py_ssize_t _nested_key(self, const uint8_t *p, Py_ssize_t at, int first) except -2:
        """Return the position of the value after a key of a nested object; append the number of the key."""
        cdef Py_ssize_t stop = _plain_end(p, at + 1) if p[at] == c'"' else _UNUSUAL
        cdef int other, key
        if stop < 0 or self._open >= _MAX_OPEN_KEYS:
            return _UNUSUAL
        key = self._interned.key(p + at + 1, stop - at - 1)
        if key <= 0:
            return _UNUSUAL
        for other in range(first, self._open):
            if self._open_keys[other] == key:
                return _UNUSUAL
        self._open_keys[self._open] = key
        self._open += 1
        _put_integer(self.out, 0x08, key)
        return _behind_colon(p, stop + 1)
