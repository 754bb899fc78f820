# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""The events of a Chrome trace, from the bytes of the file to columns.

One pass reads whole events and checks that they are JSON as strictly as a parser. What nearly all events of big files
look like becomes a row of numbers; any other event is left to the caller, who gets its place in the bytes. A plain
event has the phase X, B, E, i, I, R, C, s, t, f, b, e, n, S or F, no field but ph, name, cat, pid, tid, ts, dur, args, id, s and bp,
none of them twice, texts without control characters, numbers without exponents.

`data` must be UTF-8, and followed by a zero byte, as the content of every `bytes` object is in memory: no rule of JSON
accepts one, so each loop ends there at the latest.
"""

include "traceconv/families/common/_bytes.pxi"
include "traceconv/families/common/_json.pxi"

#: The rows of the fields that `Scanner.scan` fills, each with a number for every event: phase (0: left to the caller),
#: where the event begins and ends, ts and dur in ns, numbers of stand, name and category, where id and args are and
#: their lengths, whether `bp` is "e".
FIELDS = ("phase", "start", "end", "ts", "dur", "stand", "name", "category", "id_at", "id_len", "args_at", "args_len",
          "is_enclosing")

cdef enum:
    _MAX_DEPTH = 60
    _MAX_DIGITS = 19  # of ns: so many fit without a sign, and are compared with the limit

cdef uint64_t _MOST_NS = 4611686018427387000  # LIMIT_NS

cdef enum:
    _PHASE_ROW, _START_ROW, _END_ROW, _TS_ROW, _DUR_ROW, _STAND_ROW, _NAME_ROW, _CATEGORY_ROW
    _ID_AT_ROW, _ID_LEN_ROW, _ARGS_AT_ROW, _ARGS_LEN_ROW, _IS_ENCLOSING_ROW

#: The fields that a plain event may have; first those whose values are kept as they stand in the file.
cdef enum:
    _NAME, _CATEGORY, _PID, _TID, _ID
    _TS, _DUR, _PHASE, _SCOPE, _BINDING, _ARGS, _OTHER

cdef enum:
    _KEPT = _ID + 1


cdef struct _Stand:
    int32_t pid, tid, category, kind


#: The rows of what `Scanner.values` finds, each with a number for every value: its event, series, the number itself (an
#: integer, or the bits of a double), whether it is an integer, where its key is in the args and its length.
VALUES = ("event", "series", "value", "is_integer", "key_at", "key_len")

cdef enum:
    _EVENT_ROW, _SERIES_ROW, _VALUE_ROW, _IS_INTEGER_ROW, _KEY_AT_ROW, _KEY_LEN_ROW
    _MOST_OF_EVENT = 64
    _EXACT_DIGITS = 15  # of so many digits any number is a double, and so is its product with 10**22
    _EXACT_POWER = 22

cdef double[_EXACT_POWER + 1] _TENS
cdef int _power
_TENS[0] = 1.0
for _power in range(_EXACT_POWER):
    _TENS[_power + 1] = _TENS[_power] * 10.0


cdef struct _Series:
    int64_t stand, name, key


cdef union _Bits:
    double number
    int64_t bits


@cython.final
cdef class Scanner:
    """Reads the events of one trace, call after call.

    Args:
        fields: FIELDS rows, each with as many numbers as events may be read by one call.
        exponent: the unit of ts and dur as a power of ten of ns, at most 9.

    Raises:
        ValueError: fields or an exponent other than that.

    Attributes:
        texts: names, categories, pids and tids as they stand in the file, with their escapes, strings without their
            quotes for the first two and with them for the others.
        stands: where events stand, see `stand`.
        series: of counters: stand, name and key of a value together.
        stopped: whether the last call ended because of something that is not JSON, or is cut off, or nested deeply.
    """

    cdef readonly _Table texts, stands, series
    cdef readonly bint stopped
    cdef readonly Py_ssize_t args_size
    cdef int64_t[:, ::1] _fields
    cdef int _exponent
    cdef uint8_t *_out
    cdef Py_ssize_t _size  # of what is in `_out`
    cdef Py_ssize_t _uncopied

    # The event that is being read: the fields that were there, as bits, and where those are that are kept.
    cdef int _seen
    cdef bint _is_odd
    cdef int _phase
    cdef bint _is_enclosing
    cdef int64_t _ts, _dur
    cdef int64_t _ns  # the last number that was read
    cdef Py_ssize_t[_KEPT] _at, _len

    def __init__(self, int64_t[:, ::1] fields, int exponent) -> None:
        if not 0 <= exponent <= 9:
            raise ValueError("the exponent is not from 0 to 9")
        self.texts, self.stands, self.series = _Table(), _Table(), _Table()
        self._fields, self._exponent = fields, exponent
        if self._fields.shape[0] != len(FIELDS):
            raise ValueError("each field needs one row")

    def stand(self, int number) -> tuple[int, int, int, int]:
        """Return the numbers of the texts pid, tid and category of a point, and its kind.

        It is `f` or `s` for flows, `C` for counters, `b` for async events, whose id takes the place of the tid.
        """
        if not 0 <= number < self.stands.count:
            raise IndexError("no such stand")
        cdef _Stand stand
        memcpy(&stand, self.stands.text(number + 1), sizeof(_Stand))
        return stand.pid, stand.tid, stand.category, stand.kind

    def text(self, int number) -> bytes:
        """Return a name, category, pid or tid by its number."""
        if not 0 <= number < self.texts.count:
            raise IndexError("no such text")
        return self.texts.text(number + 1)[: self.texts.size_of(number + 1)]

    def scan(self, data: bytes, Py_ssize_t start, uint8_t[::1] args) -> tuple[int, int]:
        """Read events from a position on: until one that is not whole, a bracket, or the fields are full.

        Args:
            data: part of the file.
            start: where an event, a comma or white space stands.
            args: takes the args of the plain events one after the other without white space; as long as the rest of
                the data. `args_size` says how much of it was used.

        Returns:
            How many events were read, and the position behind the last one.

        Raises:
            ValueError: `args` is too short, or `start` outside of the data.
        """
        if not 0 <= start <= len(data):
            raise ValueError("the start is outside of the data")
        if args.shape[0] < len(data) - start or args.shape[0] == 0:
            raise ValueError("the space for args is shorter than the data")
        cdef const uint8_t *p = data
        self._out = &args[0]
        self._size = 0
        self.stopped = False
        cdef Py_ssize_t i = start, end, count = 0
        while count < self._fields.shape[1]:
            while p[i] == c"," or _is_space(p[i]):
                i += 1
            if p[i] != c"{" or not _is_event(p, i):
                break
            end = self._event(p, i, count)
            if end < 0:
                self.stopped = True
                break
            i = end
            count += 1
        self.args_size = self._size
        return count, i

    def values(
        self,
        const uint8_t[::1] args,
        const int64_t[::1] at,
        const int64_t[::1] length,
        const int64_t[::1] stand,
        const int64_t[::1] name,
        int64_t[:, ::1] found,
        uint8_t[::1] is_left,
    ) -> int:
        """Read the values of plain counters, and number their series from 0.

        An event is left to the caller if not all its values are numbers that are read here exactly, without escapes in
        keys, and of different series.

        Args:
            args: the args of all events, without white space.
            at, length: where those of each counter are.
            stand, name: numbers of each counter, as `scan` gives them.
            found: takes VALUES, a column for each value; a fifth of the bytes of args is enough.
            is_left: takes 1 for each counter that is left.

        Returns:
            How many values were found.

        Raises:
            ValueError: columns of different lengths, args outside of the bytes, or no space for the values.
        """
        cdef Py_ssize_t row, count = 0, number
        if found.shape[0] != len(VALUES) or not (
            at.shape[0] == length.shape[0] == stand.shape[0] == name.shape[0] == is_left.shape[0]
        ):
            raise ValueError("columns of different lengths")
        for row in range(at.shape[0]):
            if at[row] < 0 or length[row] < 2 or at[row] > args.shape[0] - length[row]:
                raise ValueError("args outside of the bytes")
            number = self._values_of(&args[0], at[row], at[row] + length[row], row, stand[row], name[row], found, count)
            is_left[row] = number == 0
            count += number
        return count

    cdef Py_ssize_t _values_of(
        self,
        const uint8_t *p,
        Py_ssize_t i,
        Py_ssize_t end,
        Py_ssize_t row,
        int64_t stand,
        int64_t name,
        int64_t[:, ::1] found,
        Py_ssize_t count,
    ) except -1:
        """Read the values of a counter behind `count` others; return how many they are, 0 if it is left."""
        cdef Py_ssize_t key, size, number = 0, other
        cdef _Series series
        cdef _Bits bits
        cdef bint is_integer
        while p[i] != c"}":
            key = i + 2  # behind a bracket or a comma, and a quote
            if key >= end or p[i + 1] != c'"' or number == _MOST_OF_EVENT:
                return 0
            i = _run_end(p, key)
            if p[i] != c'"':
                return 0
            size = i - key
            i = self._number(p, i + 2, &bits, &is_integer)
            if i < 0 or (p[i] != c"," and p[i] != c"}"):
                return 0
            series.stand, series.name, series.key = stand, name, self.texts.number(p + key, size)
            if count + number >= found.shape[1]:
                raise ValueError("no space for the values")
            found[_SERIES_ROW, count + number] = self.series.number(<const uint8_t *>&series, sizeof(_Series)) - 1
            for other in range(number):
                if found[_SERIES_ROW, count + other] == found[_SERIES_ROW, count + number]:
                    return 0
            found[_EVENT_ROW, count + number] = row
            found[_VALUE_ROW, count + number] = bits.bits
            found[_IS_INTEGER_ROW, count + number] = is_integer
            found[_KEY_AT_ROW, count + number] = key
            found[_KEY_LEN_ROW, count + number] = size
            number += 1
        return number

    cdef inline Py_ssize_t _number(self, const uint8_t *p, Py_ssize_t i, _Bits *bits, bint *is_integer) noexcept:
        """Read a number exactly; return the position behind it, -1 if there is none, or none of few digits."""
        cdef bint is_negative = p[i] == c"-"
        cdef Py_ssize_t first
        cdef int64_t value = 0
        cdef int digits = 0, power = 0, exponent = 0
        if is_negative:
            i += 1
        if not _is_digit(p[i]):
            return _NONE
        first = i
        while _is_digit(p[i]):
            if i - first >= _EXACT_DIGITS:
                return _NONE
            value = 10 * value + (p[i] - c"0")
            i += 1
        digits = <int>(i - first)
        is_integer[0] = p[i] != c"." and not _is_exponent(p[i])
        if is_integer[0]:
            bits.bits = -value if is_negative else value
            return i
        if p[i] == c".":
            i += 1
            while _is_digit(p[i]):
                if digits >= _EXACT_DIGITS:
                    return _NONE
                value = 10 * value + (p[i] - c"0")
                digits += 1
                power -= 1
                i += 1
        if _is_exponent(p[i]):
            i += 1
            first = p[i] == c"-"
            if p[i] == c"-" or p[i] == c"+":
                i += 1
            while _is_digit(p[i]):
                exponent = min(10 * exponent + (p[i] - c"0"), 1000)
                i += 1
            power += -exponent if first else exponent
        if not -_EXACT_POWER <= power <= _EXACT_POWER:
            return _NONE
        bits.number = <double>value / _TENS[-power] if power < 0 else <double>value * _TENS[power]
        if is_negative:
            bits.number = -bits.number
        return i

    # -- one event ---------------------------------------------------------------------------------------------

    cdef Py_ssize_t _event(self, const uint8_t *p, Py_ssize_t begin, Py_ssize_t row) except -2:
        """Read the event at this position; return the position after it, or -1 if it is incomplete or not JSON."""
        cdef Py_ssize_t args_at = self._size
        self._forget(begin)
        cdef Py_ssize_t end = self._members(p, begin + 1)
        cdef bint is_plain = end >= 0 and not self._is_odd and _is_plain_phase(self._phase, self._seen)
        if is_plain:
            self._fill(row, args_at)
            self._number_texts(p, row)
        else:
            self._size = args_at
        if end >= 0:
            self._fields[_START_ROW, row] = begin
            self._fields[_END_ROW, row] = end
            self._fields[_PHASE_ROW, row] = self._phase if is_plain else 0
        return end

    cdef inline void _forget(self, Py_ssize_t begin) noexcept:
        """Start an event of which nothing is known yet."""
        cdef int field
        self._is_odd = False
        self._seen = self._phase = 0
        self._is_enclosing = False
        self._ts = self._dur = 0
        for field in range(_KEPT):
            self._at[field] = begin
            self._len[field] = 0

    cdef inline void _fill(self, Py_ssize_t row, Py_ssize_t args_at) noexcept:
        """Fill in the fields of a plain event."""
        self._fields[_TS_ROW, row] = self._ts
        self._fields[_DUR_ROW, row] = self._dur
        self._fields[_ID_AT_ROW, row] = self._at[_ID]
        self._fields[_ID_LEN_ROW, row] = self._len[_ID]
        self._fields[_ARGS_AT_ROW, row] = args_at
        self._fields[_ARGS_LEN_ROW, row] = self._size - args_at

    cdef int _number_texts(self, const uint8_t *p, Py_ssize_t row) except -1:
        """Number the texts of a plain event, from 0."""
        cdef int name = self._number_of(p, _NAME)
        cdef int category = self._number_of(p, _CATEGORY)
        cdef _Stand here
        cdef bint is_async = _is_async(self._phase)
        here.pid, here.tid = self._number_of(p, _PID) - 1, self._number_of(p, _ID if is_async else _TID) - 1
        here.category = category - 1
        here.kind = 0
        if self._phase == c"C" or self._phase == c"f":
            here.kind = self._phase
        elif _is_flow(self._phase):
            here.kind = c"s"
        elif is_async:
            here.kind = c"b"
        self._fields[_NAME_ROW, row] = name - 1
        self._fields[_CATEGORY_ROW, row] = category - 1
        self._fields[_STAND_ROW, row] = self.stands.number(<const uint8_t *>&here, sizeof(_Stand)) - 1
        self._fields[_IS_ENCLOSING_ROW, row] = self._is_enclosing
        return 0

    cdef inline int _number_of(self, const uint8_t *p, int field) except -1:
        return self.texts.number(p + self._at[field], self._len[field])

    # -- members of events -------------------------------------------------------------------------------------
    #
    # Each method says the position behind what it reads, or -1 if that is not what it reads.

    cdef Py_ssize_t _members(self, const uint8_t *p, Py_ssize_t i) noexcept:
        """Read the members of an event, and the bracket that ends it."""
        i = _behind_space(p, i)
        if p[i] == c"}":
            return i + 1
        while True:
            i = self._member(p, i)
            if i < 0:
                return _NONE
            i = _behind_space(p, i)
            if p[i] == c"}":
                return i + 1
            if p[i] != c",":
                return _NONE
            i = _behind_space(p, i + 1)

    cdef inline Py_ssize_t _member(self, const uint8_t *p, Py_ssize_t key) noexcept:
        """Read a key and its value; an event that is not plain must be JSON, too."""
        if p[key] != c'"':
            return _NONE
        cdef Py_ssize_t end = _string_end(p, key + 1)
        if end < 0:
            return _NONE
        cdef Py_ssize_t i = _behind_space(p, end + 1)
        if p[i] != c":":
            return _NONE
        i = _behind_space(p, i + 1)
        cdef int field = _field(p, key + 1, end - key - 1)
        if field == _OTHER or _has(self._seen, field):
            return self._odd(p, i)
        self._seen |= 1 << field
        end = self._value(p, i, field)
        return end if end >= 0 else self._odd(p, i)

    cdef inline Py_ssize_t _value(self, const uint8_t *p, Py_ssize_t i, int field) noexcept:
        """Read the value of a field."""
        if field == _TS or field == _DUR:
            return self._time(p, i, field)
        if field == _ARGS:
            return self._args(p, i)
        if p[i] == c'"':
            return self._text(p, i, field)
        if field == _PID or field == _TID or field == _ID:
            return self._keep(field, i, _integer_end(p, i))
        return _NONE

    cdef inline Py_ssize_t _text(self, const uint8_t *p, Py_ssize_t i, int field) noexcept:
        cdef Py_ssize_t end = _plain_end(p, i + 1)
        if end < 0:
            return _NONE
        if field == _NAME or field == _CATEGORY:
            self._keep(field, i + 1, end)
        elif field < _KEPT:
            self._keep(field, i, end + 1)
        elif end != i + 2 or not self._letter(field, p[i + 1]):
            return _NONE
        return end + 1

    cdef inline Py_ssize_t _keep(self, int field, Py_ssize_t start, Py_ssize_t end) noexcept:
        if end >= 0:
            self._at[field] = start
            self._len[field] = end - start
        return end

    cdef inline bint _letter(self, int field, uint8_t letter) noexcept:
        """Take a text of one letter; return whether plain events have it there."""
        if field == _PHASE:
            self._phase = letter
            return True
        if field == _BINDING and letter == c"e":
            self._is_enclosing = True
            return True
        return field == _SCOPE and letter == c"t"

    cdef inline Py_ssize_t _time(self, const uint8_t *p, Py_ssize_t i, int field) noexcept:
        cdef Py_ssize_t end = self._nanoseconds(p, i)
        if end < 0:
            return _NONE
        if field == _TS:
            self._ts = self._ns
            return end
        self._dur = self._ns
        return end if self._ns >= 0 else _NONE

    cdef Py_ssize_t _nanoseconds(self, const uint8_t *p, Py_ssize_t i) noexcept:
        """Read a number without exponent that fits, into `_ns`."""
        cdef bint is_negative = p[i] == c"-"
        if is_negative:
            i += 1
        if not _begins_number(p, i):
            return _NONE
        cdef Py_ssize_t first = i
        cdef uint64_t value = 0  # wraps around only where there are too many digits
        while _is_digit(p[i]):
            value = value * 10 + (p[i] - c"0")
            i += 1
        if i - first > _MAX_DIGITS - self._exponent:
            return _NONE
        i = self._decimals(p, i, value)
        if i < 0 or _is_exponent(p[i]):
            return _NONE
        if is_negative:
            self._ns = -self._ns
        return i

    cdef inline Py_ssize_t _decimals(self, const uint8_t *p, Py_ssize_t i, uint64_t value) noexcept:
        """Read the decimals, if any, behind a whole number, and keep both in ns, rounded half up, if in range."""
        cdef int missing = self._exponent
        if p[i] == c".":
            i += 1
            if not _is_digit(p[i]):
                return _NONE
            while missing > 0 and _is_digit(p[i]):
                value = value * 10 + (p[i] - c"0")
                missing -= 1
                i += 1
            if missing == 0 and c"5" <= p[i] <= c"9":
                value += 1
            i = _digits_end(p, i)
        while missing > 0:
            value = value * 10
            missing -= 1
        if value > _MOST_NS:
            return _NONE
        self._ns = value
        return i

    # -- any JSON ----------------------------------------------------------------------------------------------
    #
    # What is passed over is copied up to the next white space in one go, from `_uncopied` on.

    cdef inline Py_ssize_t _args(self, const uint8_t *p, Py_ssize_t i) noexcept:
        """Copy an object without white space, or nothing.

        It never takes more than it reads, and what is read again was not copied, so the space is enough.
        """
        cdef Py_ssize_t before = self._size
        if p[i] != c"{":
            return _NONE
        self._uncopied = i
        i = self._nested(p, i, 0)
        if i < 0:
            self._size = before
            return _NONE
        self._copy(p, i)
        return i

    cdef Py_ssize_t _odd(self, const uint8_t *p, Py_ssize_t i) noexcept:
        """Skip a value that no plain event has."""
        cdef Py_ssize_t before = self._size
        self._is_odd = True
        self._uncopied = i
        i = self._nested(p, i, 0) if _is_opening(p[i]) else _scalar_end(p, i)
        self._size = before
        return i

    cdef Py_ssize_t _nested(self, const uint8_t *p, Py_ssize_t i, int depth) noexcept:
        """Skip an object or an array."""
        cdef bint is_object = p[i] == c"{"
        cdef uint8_t closing = c"}" if is_object else c"]"
        if depth >= _MAX_DEPTH:
            return _NONE
        i = self._behind_gap(p, i + 1)
        if p[i] == closing:
            return i + 1
        while True:
            if is_object:
                i = self._key(p, i)
                if i < 0:
                    return _NONE
            i = self._nested(p, i, depth + 1) if _is_opening(p[i]) else _scalar_end(p, i)
            if i < 0:
                return _NONE
            i = self._behind_gap(p, i)
            if p[i] == closing:
                return i + 1
            if p[i] != c",":
                return _NONE
            i = self._behind_gap(p, i + 1)

    cdef inline Py_ssize_t _key(self, const uint8_t *p, Py_ssize_t i) noexcept:
        """Skip a key and the bytes up to its value."""
        if p[i] != c'"':
            return _NONE
        i = _behind_string(p, i)
        if i < 0:
            return _NONE
        i = self._behind_gap(p, i)
        return self._behind_gap(p, i + 1) if p[i] == c":" else _NONE

    cdef inline Py_ssize_t _behind_gap(self, const uint8_t *p, Py_ssize_t i) noexcept:
        """Skip white space, which is not copied."""
        if _is_space(p[i]):
            self._copy(p, i)
            i = _behind_space(p, i + 1)
            self._uncopied = i
        return i

    cdef inline void _copy(self, const uint8_t *p, Py_ssize_t end) noexcept:
        """Copy the bytes up to this position."""
        memcpy(self._out + self._size, p + self._uncopied, end - self._uncopied)
        self._size += end - self._uncopied


cdef inline bint _is_event(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return whether an object is an event, not a whole document: its first key is not traceEvents."""
    i = _behind_space(p, i + 1)
    return not (p[i] == c'"' and _stands(p, i + 1, b"traceEvents", 11) and p[i + 12] == c'"')


cdef inline int _field(const uint8_t *p, Py_ssize_t key, Py_ssize_t size) noexcept:
    """Return the field of an event that a key names."""
    if size == 2:
        if _stands(p, key, b"ts", 2):
            return _TS
        if _stands(p, key, b"ph", 2):
            return _PHASE
        if _stands(p, key, b"id", 2):
            return _ID
        if _stands(p, key, b"bp", 2):
            return _BINDING
    elif size == 3:
        if _stands(p, key, b"pid", 3):
            return _PID
        if _stands(p, key, b"tid", 3):
            return _TID
        if _stands(p, key, b"dur", 3):
            return _DUR
        if _stands(p, key, b"cat", 3):
            return _CATEGORY
    elif size == 4:
        if _stands(p, key, b"name", 4):
            return _NAME
        if _stands(p, key, b"args", 4):
            return _ARGS
    elif size == 1 and p[key] == c"s":
        return _SCOPE
    return _OTHER


cdef inline bint _has(int seen, int field) noexcept:
    return (seen >> field) & 1


cdef inline bint _is_flow(int phase) noexcept:
    return phase == c"s" or phase == c"t" or phase == c"f"


cdef inline bint _is_async(int phase) noexcept:
    """Return whether an event belongs to an id, not to a thread."""
    return phase == c"b" or phase == c"e" or phase == c"n" or phase == c"S" or phase == c"F"


cdef inline bint _is_plain_phase(int phase, int seen) noexcept:
    """Return whether an event of this phase with these fields is plain."""
    cdef bint is_slice = phase == c"X"
    cdef bint is_mark = phase == c"B" or phase == c"E"
    cdef bint is_instant = phase == c"i" or phase == c"I" or phase == c"R"
    cdef bint is_flow = _is_flow(phase)
    cdef bint is_async = _is_async(phase)
    cdef bint is_counter = phase == c"C"
    if not (is_slice or is_mark or is_instant or is_flow or is_async or is_counter) or not _has(seen, _TS):
        return False
    if is_counter and not _has(seen, _ARGS):
        return False
    if _has(seen, _DUR) != is_slice or _has(seen, _ID) != (is_flow or is_async) or (_has(seen, _ARGS) and is_flow):
        return False
    return (is_instant or not _has(seen, _SCOPE)) and (is_flow or not _has(seen, _BINDING))


cdef inline Py_ssize_t _plain_end(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return the position of the closing quote; -1 if the text has control characters or does not end."""
    while True:
        i = _run_end(p, i)
        if p[i] == c'"':
            return i
        if p[i] != c"\\" or _is_control(p, i + 1):
            return _NONE
        i = _escape_end(p, i + 1)
        if i < 0:
            return _NONE


cdef inline bint _is_control(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return whether the escape at `i`, after its backslash, may be that of a control character."""
    if p[i] == c"u":
        return _stands(p, i + 1, b"000", 3) or _stands(p, i + 1, b"001", 3)
    return p[i] != c'"' and p[i] != c"\\" and p[i] != c"/"


cdef inline Py_ssize_t _integer_end(const uint8_t *p, Py_ssize_t i) noexcept:
    """Return the position after a number without fraction and exponent; -1 if there is none at `i`."""
    if p[i] == c"-":
        i += 1
    if not _begins_number(p, i):
        return _NONE
    i = _digits_end(p, i)
    return _NONE if p[i] == c"." or _is_exponent(p[i]) else i
