"""Select slices by a condition such as `name~conv and dur>1ms and args.device=1`, and by a window of time.

A window is `ProfilerStep#3`, `ProfilerStep#2..4` or `1.5ms..20ms`; a trace is cut or trimmed to it. `docs/answers.md`
describes both languages.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from traceconv.align.constraints import input_named, names_several
from traceconv.answers.operations import key_of, keyed
from traceconv.answers.owners import Owners
from traceconv.answers.section import Window, rounded
from traceconv.answers.slice_tables import Rows, SliceTable, Uncut, interval_counters
from traceconv.errors import UsageError
from traceconv.io.limits import UserPattern, user_pattern
from traceconv.io.shown import quantity
from traceconv.model.args import ABSENT, arg_values, as_text
from traceconv.model.columns import I32, I64, chunks, distinct_values
from traceconv.model.diagnostics import COUNTER_VALUES, FLOWS, INSTANTS, LOG_ENTRIES, SAMPLES, SLICES, skipped
from traceconv.model.layout import drop_unused_tracks
from traceconv.model.numbers import LIMIT_NS, format_option, format_time, is_digits, number_of, parse_duration, whole
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import TIMED, Counters, Flows, Slices, Trace, take
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

Mask = npt.NDArray[np.bool_]
Number = int | float
#: The value of a comparison, in the type of its field.
Operand = str | Number | UserPattern

_TRACKS = ("track", "thread", "process")
_TEXTS = ("name", "category", *_TRACKS, "input")
_TIMES = ("dur", "self", "start")
_NUMBERS = ("depth", "rank")
_ARG = "args."
FIELDS = (*_TEXTS, *_TIMES, *_NUMBERS)
_SIGNS = "a backslash before a sign stands for the sign"
_EQUAL, _MATCHES = ("=", "!="), ("~", "!~")
_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {"=": operator.eq, **_ORDER}
_OPERATORS = (*_EQUAL, *_MATCHES, *_ORDER)
_FIELDS_HINT = f"fields: {', '.join(FIELDS)}, args.KEY"
_OPERATORS_HINT = f"operators: {' '.join(_OPERATORS)}"
_QUOTE_HINT = "quote a text that has spaces, brackets or operators: name~'(conv|gemm)'"
_WORDS_HINT = f"conditions are joined by and, or; {_QUOTE_HINT}"
_DEEPEST = 50

_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>!=|!~|<=|>=|[=~<>])|(?P<bracket>[()])|(?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*')"""
    r"""|(?P<word>args\.(?:"(?:[^"]|"")*"|'(?:[^']|'')*')|[^\s()=~<>!"']+))"""
)
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?")


class Comparison(Struct, frozen=True):
    """A field, an operator and a value."""

    field: str
    sign: str
    operand: Operand


class Not(Struct, frozen=True):
    """The negation of a condition."""

    condition: Condition


class Joined(Struct, frozen=True):
    """Two or more conditions, joined by `and` or `or`."""

    word: str
    parts: tuple[Condition, ...]


Condition = Comparison | Not | Joined


class _Token(Struct, frozen=True):
    """A token: its kind (sign, bracket, quoted, word, or end), and its position."""

    kind: str
    text: str
    at: int


class _Parser(Struct):
    """Recursive descent: or, and, not, comparison."""

    text: str
    tokens: list[_Token] = []
    next: int = 0

    def __post_init__(self) -> None:
        at = 0
        while at < len(self.text.rstrip()):
            match = _TOKEN.match(self.text, at)
            if match is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                what = "a quote that does not end" if self.text[at] in "'\"" else f"unexpected {self.text[at]!r}"
                self.fail(what, _Token("", "", at), _QUOTE_HINT)
            kind = str(match.lastgroup)
            self.tokens.append(_Token(kind, match[kind], match.start(kind)))
            at = match.end()
        self.tokens.append(_Token("end", "", len(self.text)))

    def fail(self, problem: str, token: _Token, hint: str) -> NoReturn:
        """Raise UsageError at a token."""
        raise UsageError(f"--where: {problem}, at character {token.at + 1} of {self.text!r}", hint=hint)

    def take(self) -> _Token:
        """Return the next token and advance; the last one stays."""
        token = self.tokens[self.next]
        self.next += token.kind != "end"
        return token

    def took(self, *words: str) -> bool:
        """Advance if the next token is one of the words or brackets; return whether it is."""
        token = self.tokens[self.next]
        taken = token.kind in ("word", "bracket") and token.text in words
        self.next += taken
        return taken

    def whole(self) -> Condition:
        """Parse the whole text."""
        condition = self.joined("or", 0)
        if self.tokens[self.next].kind != "end":
            self.fail("expected and, or, or the end", self.tokens[self.next], _WORDS_HINT)
        return condition

    def joined(self, word: str, depth: int) -> Condition:
        """Parse conditions that are joined by `word`, "or" or "and"."""
        parts: list[Condition] = []
        while not parts or self.took(word):
            parts.append(self.joined("and", depth) if word == "or" else self.single(depth))
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def single(self, depth: int) -> Condition:
        """Parse a comparison, a condition behind `not`, or one in brackets."""
        if depth > _DEEPEST:
            self.fail(f"more than {_DEEPEST} levels", self.tokens[self.next], "fewer parentheses and not")
        if self.took("not"):
            return Not(self.single(depth + 1))
        if self.took("("):
            condition = self.joined("or", depth + 1)
            if not self.took(")"):
                self.fail("expected )", self.tokens[self.next], _WORDS_HINT)
            return condition
        return self.comparison()

    def comparison(self) -> Comparison:
        """Parse a comparison: a field, an operator and a value."""
        name = self.take()
        if name.kind != "word":
            self.fail("expected a field", name, _FIELDS_HINT)
        if name.text not in FIELDS and not (name.text.startswith(_ARG) and name.text != _ARG):
            self.fail(f"{name.text!r} is not a field", name, _FIELDS_HINT)
        sign = self.take()
        if sign.kind != "sign":
            self.fail(f"expected an operator behind {name.text}", sign, _OPERATORS_HINT)
        value = self.take()
        if value.kind not in ("word", "quoted"):
            self.fail("expected a value", value, _QUOTE_HINT)
        key = name.text.removeprefix(_ARG)
        shown = _ARG + _unquoted(key) if key != name.text else name.text
        return Comparison(shown, sign.text, self.operand(shown, sign, value))

    def operand(self, name: str, sign: _Token, value: _Token) -> Operand:
        """Convert a value to the type that the field and the operator need."""
        text = _unquoted(value.text) if value.kind == "quoted" else value.text
        if (name in (*_TIMES, *_NUMBERS) and sign.text in _MATCHES) or (name in _TEXTS and sign.text in _ORDER):
            signs = _EQUAL + (_MATCHES if name in _TEXTS else tuple(_ORDER))
            self.fail(f"{name} cannot be compared by {sign.text}", sign, f"operators for {name}: {' '.join(signs)}")
        if sign.text in _MATCHES:
            try:
                return user_pattern("--where", text)
            except ValueError as error:
                self.fail(f"not a regular expression: {error}", value, _SIGNS)
        if name in _TIMES:
            try:
                return parse_duration(text)
            except ValueError as error:
                self.fail(str(error), value, f"such as {name}>1ms")
        number = None if name in _TEXTS or value.kind == "quoted" else _number(text)
        if number is None and (name in _NUMBERS or sign.text in _ORDER):
            self.fail(f"{text!r} is not a number", value, f"{name}{sign.text} needs a number without quotes")
        return text if number is None else number


def _unquoted(text: str) -> str:
    """Return the content of a quoted text, in which a doubled quote is one; other texts unchanged."""
    return text[1:-1].replace(text[0] * 2, text[0]) if text[:1] in ("'", '"') else text


def _number(text: str) -> Number | None:
    match = _NUMBER.fullmatch(text)
    return None if match is None else number_of(text)


def parse(text: str) -> Condition:
    """Parse a condition.

    Raises:
        UsageError: the text is invalid; the message has the position.
    """
    return _Parser(text).whole()


def absent_args(table: SliceTable, condition: Condition) -> list[str]:
    """Return the args of a condition that no recorded slice has, as the condition names them."""
    if isinstance(condition, Not):
        return absent_args(table, condition.condition)
    if isinstance(condition, Joined):
        return list(dict.fromkeys(name for part in condition.parts for name in absent_args(table, part)))
    if not condition.field.startswith(_ARG):
        return []
    slices, recorded, key = table.trace.slices, table.recorded, condition.field.removeprefix(_ARG)
    for part in chunks(len(recorded)):
        rows = recorded[part]
        _, values = arg_values(table.trace.args, slices.args_at[rows], slices.args_len[rows], [key])
        if any(value is not ABSENT for (value,) in values):
            return []
    return [condition.field]


def holds(table: SliceTable, condition: Condition) -> Mask:
    """Return a mask of the slices that a condition holds for."""
    if isinstance(condition, Not):
        return ~holds(table, condition.condition)
    if isinstance(condition, Joined):
        masks = [holds(table, part) for part in condition.parts]
        joined: Mask = np.all(masks, axis=0) if condition.word == "and" else np.any(masks, axis=0)
        return joined
    sign = condition.sign
    if sign in ("!=", "!~"):
        return ~holds(table, Comparison(condition.field, sign[-1], condition.operand))
    return _compared(table, condition)


def places_of(table: SliceTable, condition: Condition) -> tuple[Mask, Mask]:
    """Return masks of the slices at whose place a condition can hold, and can fail, whatever else they have."""
    if isinstance(condition, Not):
        can_hold, can_fail = places_of(table, condition.condition)
        return can_fail, can_hold
    if isinstance(condition, Joined):
        hold, fail = zip(*(places_of(table, part) for part in condition.parts), strict=True)
        in_each, in_some = (fail, hold) if condition.word == "or" else (hold, fail)
        masks = np.all(in_each, axis=0), np.any(in_some, axis=0)
        return masks[::-1] if condition.word == "or" else masks
    if condition.field in (*_TRACKS, "input", "rank"):
        mask = holds(table, condition)
        return mask, ~mask
    everywhere = np.ones(len(table.trace.slices.ts), bool)
    return everywhere, everywhere


def _compared(table: SliceTable, comparison: Comparison) -> Mask:
    """Return a mask of the slices that a comparison with a positive operator holds for."""
    trace = table.trace
    slices = trace.slices
    if comparison.field in _TIMES:
        times = slices.dur if comparison.field == "dur" else slices.ts - table.start
        if comparison.field == "self":
            times = table.nesting.self_ns
        compared: Mask = _COMPARE[comparison.sign](times, comparison.operand)
        return compared if comparison.field == "start" else compared & table.timed
    if comparison.field.startswith(_ARG):
        result, keys = np.zeros(len(slices.ts), bool), [comparison.field.removeprefix(_ARG)]
        for rows in chunks(len(result)):  # the values are Python objects
            numbers, decoded = arg_values(trace.args, slices.args_at[rows], slices.args_len[rows], keys)
            result[rows] = _accepted(comparison, [value for (value,) in decoded])[numbers]
        return result
    if comparison.field == "depth":
        depths = np.arange(int(np.max(table.nesting.depth, initial=0)) + 1)
        return _accepted(comparison, depths.tolist())[table.nesting.depth]
    if comparison.field == "rank":
        ranks = [ABSENT if source.rank is None else source.rank for source in trace.sources]
        return _accepted(comparison, ranks)[inputs_of(trace, "slices")]
    if comparison.field == "input":
        masks = [
            _accepted(comparison, [source.name for source in variant.sources])[inputs_of(variant, "slices")]
            for variant in (trace, by_stated_inputs(trace))
        ]
        named: Mask = masks[0] | masks[1]
        return named
    of_field = _of_texts(comparison, *key_of(table, comparison.field))
    if comparison.field == "name":
        of_field |= _of_texts(comparison, *table.drawn_names)
    elif comparison.field in _TRACKS and len(trace.sources) > 1:  # a title may have the input before its path
        of_field |= _of_texts(comparison, *keyed(table, comparison.field, table.path))
    return of_field


def _of_texts(comparison: Comparison, codes: I32 | I64, texts: Sequence[str]) -> Mask:
    """Return a mask of the slices that a comparison of their texts holds for; `codes` are the numbers of these."""
    used = distinct_values(codes)
    mask = np.zeros(len(texts), bool)
    mask[used] = _accepted(comparison, [texts[code] for code in used.tolist()])
    held: Mask = mask[codes]
    return held


def _accepted(comparison: Comparison, values: Sequence[Any]) -> Mask:
    """Return a mask of the values that a comparison holds for; missing ones never match."""
    if isinstance(comparison.operand, UserPattern):
        there = np.fromiter((value is not ABSENT for value in values), bool, len(values))
        there[there] = comparison.operand.accepted([as_text(value) for value in values if value is not ABSENT])
        return there
    return np.fromiter((value is not ABSENT and _accepts(comparison, value) for value in values), bool, len(values))


def _accepts(comparison: Comparison, value: Any) -> bool:
    """Return whether a comparison without a pattern holds for a value: text, number, or other content of args."""
    operand = comparison.operand
    if isinstance(operand, int | float):
        value = _number(value) if isinstance(value, str) else value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return bool(is_number and _COMPARE[comparison.sign](value, operand))
    return bool(as_text(value) == operand)


# -- Parse the window of time of tables: `ProfilerStep#3`, `ProfilerStep#2..ProfilerStep#4` or `1.5ms..20ms` ---------

#: The option that states a window, for messages.
OPTION = "--between"
_HINT = "the name of a slice, or an interval: 'ProfilerStep#2..ProfilerStep#4', '1.5ms..20ms', '1.5ms..'"
_QUOTED = r""""(?:[^"]|"")*"|'(?:[^']|'')*'"""
#: The first end is as short as possible: `a..b..c` is from `a` to `b..c`.
_INTERVAL = re.compile(rf"\s*+(?P<first>{_QUOTED}|(?:.*?\S)??)\s*+\.\.\s*+(?P<last>{_QUOTED}|(?:.*\S)?)\s*+", re.DOTALL)
_NUMBERED = re.compile(r"(?P<name>.*)\[(?P<number>[0-9]{1,18})\]", re.DOTALL)
_BEFORE_NUMBER = re.compile(r"(.*[^0-9])[0-9]+", re.DOTALL)
_CLOCK_TIME = re.compile(r"[+-]?[0-9]{1,19}")
_LIKE_A_TIME = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*([a-zµ]{1,3})?")


class _End(Struct, frozen=True):
    """One end of an interval, or the name of a slice that is the window: its text, and its position in `whole`."""

    text: str
    at: int
    whole: str
    option: str

    def fail(self, problem: str, hint: str = _HINT) -> NoReturn:
        """Raise UsageError with the position."""
        raise UsageError(f"{self.option}: {problem}, at character {self.at + 1} of {self.whole!r}", hint=hint)

    def time(self, origin: int) -> int | None:
        """Return the time (ns on the clock of the trace) if the text is a time; None if it is a name."""
        if not _LIKE_A_TIME.fullmatch(self.text):
            return None
        try:
            time = whole(self.text) if _CLOCK_TIME.fullmatch(self.text) else origin + parse_duration(self.text)
        except ValueError as error:
            self.fail(str(error))
        if abs(time) > LIMIT_NS:
            self.fail(f"time out of range: {self.text!r}")
        return time

    def rows(self, table: SliceTable) -> Rows:
        """Return the rows of the slices with the name; the name may be quoted, and `NAME[2]` is the second one."""
        name = self.text
        if re.fullmatch(_QUOTED, name):
            name = name[1:-1].replace(name[0] * 2, name[0])
        rows = _of_name(table, name)
        if len(rows) or not (match := _NUMBERED.fullmatch(name)):
            return rows
        rows, number = _of_name(table, match["name"]), whole(match["number"])
        if len(rows) and not 1 <= number <= len(rows):
            name, last = match["name"], f"{match['name']}[{len(rows)}]"
            named = f"{name!r} is the name of {quantity(len(rows), SLICES)}"
            self.fail(f"{named}: {f'{name}[1]'!r} is the first, {last!r} the last")
        return rows[number - 1 : number] if len(rows) else rows

    def edge(self, table: SliceTable, side: int) -> int:
        """Return the start (side 0) or the end (side 1) of the only slice with the name, ns."""
        rows = self.rows(table)
        if not len(rows):
            near = table.near_names(self.text)
            hint = f"near it: {', '.join(map(repr, near))}" if near else _HINT
            self.fail(f"no slice is named {self.text!r}", hint)
        if len(rows) > 1:
            first, last = f"{self.text}[1]", f"{self.text}[{len(rows)}]"
            self.fail(
                f"{len(rows)} slices are named {self.text!r}",
                f"{first!r} is the first, {last!r} the last one, '{first}..{last}' from one to the other",
            )
        if side and not table.timed[rows[0]]:
            self.fail(
                f"the duration of {self.text!r} was not recorded", f"'{self.text}..' lasts until the end of the trace"
            )
        return int(table.ends(rows)[0] if side else table.trace.slices.ts[rows[0]])


def check_between(text: str, option: str = OPTION) -> None:
    """Raise UsageError, with the name of the option, if a window has invalid times."""
    for end in _ends(text, option):
        end.time(0)


def window_of(table: SliceTable, text: str, option: str = OPTION) -> Window:
    """Parse a window.

    Args:
        table: the table, whose recorded slices can be named.
        text: the name of a slice, or two ends with `..` between: each a name, a time with a unit from the start of the
            trace, an integer in ns on the clock of the trace, or nothing for the start or the end of the trace. Between
            names, the window goes from the start of the first slice to the end of the last one. The number of the last
            one is enough: `step 2..4`.
        option: the option, for messages.

    Returns:
        The window, as far as anything was recorded.

    Raises:
        UsageError: an end is invalid, only one of two times has a unit, a name has no slice or several, or the window
            is empty or outside of the recording.
    """
    whole = _End(text, 0, text, option)
    ends = [whole] if len(_of_name(table, text)) else _ends(text, option)
    if len(ends) == 1:
        start, end = whole.edge(table, 0), whole.edge(table, 1)
    else:
        span = table.trace.span() or (0, 0)
        ends[1] = _numbered(table, *ends)
        _refuse_one_unit(table, ends)
        start, end = (_instant(table, edge, side) if edge.text else span[side] for side, edge in enumerate(ends))
    if end <= start:
        first, last = (format_option(instant - table.start) for instant in (start, end))
        bare = [edge.text for edge in ends if _CLOCK_TIME.fullmatch(edge.text) and not len(edge.rows(table))]
        problem = f"nothing lies between {first} and {last} from the start"
        if bare:
            if all(edge.text in bare for edge in ends):
                problem = f"nothing lies between {ends[0].text} ns and {ends[-1].text} ns"
            whole.fail(problem, f"{bare[-1]} has no unit, so it is ns on the clock of the trace; from the start: 1.5ms")
        whole.fail(problem)
    if recorded := table.trace.span():
        # A window holds the times before its end: one that goes beyond the recording holds instants at the end of that.
        behind = recorded[1] + any(bool(np.any(events.ts == recorded[1])) for _, events in table.trace.timed_tables())
        if start >= behind or end <= recorded[0]:
            first, last, length = map(format_time, (start - table.start, end - table.start, recorded[1] - recorded[0]))
            whole.fail(f"nothing was recorded from {first} to {last} after the start: the recording lasts {length}")
        start, end = max(start, recorded[0]), min(end, behind)  # what was not recorded is no idle time
    return Window(text, start, end, table.start)


def _ends(text: str, option: str) -> list[_End]:
    """Return the two ends of an interval; the whole text if it is not an interval."""
    match = None if re.fullmatch(_QUOTED, text) else _INTERVAL.fullmatch(text)
    if match is None:
        return [_End(text, 0, text, option)]
    return [_End(match[name], match.start(name), text, option) for name in ("first", "last")]


def _numbered(table: SliceTable, first: _End, last: _End) -> _End:
    """Return the last end of an interval; of `step 2..4` it is `step 4`, if that is a slice or 4 ns lies before."""
    match = _BEFORE_NUMBER.fullmatch(first.text)
    if match and is_digits(last.text) and len(rows := first.rows(table)) and not len(last.rows(table)):
        named = structs.replace(last, text=match[1] + last.text)
        is_time = _CLOCK_TIME.fullmatch(last.text) and whole(last.text) > table.trace.slices.ts[rows[0]]
        if len(named.rows(table)) or not is_time:
            return named
    return last


def _refuse_one_unit(table: SliceTable, ends: Sequence[_End]) -> None:
    """Raise UsageError if one end is a time with a unit and the other is without: they count from different zeros."""
    times = [end for end in ends if _LIKE_A_TIME.fullmatch(end.text) and not len(end.rows(table))]
    bare = [end for end in times if _CLOCK_TIME.fullmatch(end.text)]
    if len(bare) == 1 and len(times) == 2:
        (other,) = (end for end in times if end is not bare[0])
        unit = other.text.lstrip("+-.0123456789eE").strip()
        bare[0].fail(
            f"{bare[0].text!r} has no unit, but {other.text!r} has one",
            f"times from the start of the trace need a unit: {bare[0].text}{unit}; "
            "without a unit, both are ns on the clock of the trace",
        )


def _instant(table: SliceTable, end: _End, side: int) -> int:
    """Return the time (ns) of an end of an interval; for a slice its start on side 0, its end on side 1."""
    time = None if len(end.rows(table)) else end.time(table.start)
    return end.edge(table, side) if time is None else time


def _of_name(table: SliceTable, name: str) -> Rows:
    """Return the rows of the recorded slices of a name, or of a name in a `.pftrace`, in order of time."""
    rows = table.recorded[table.named(re.escape(name))[table.recorded]]
    if not len(rows):
        names, texts = table.drawn_names
        numbers = [number for number, text in enumerate(texts) if text == name]
        rows = table.recorded[np.isin(names[table.recorded], numbers)]
    return rows[np.argsort(table.trace.slices.ts[rows], kind="stable")]


# -- Cut a trace to a window of time, for `layers` and `stacks` with `--between` -------------------------------------


def cut(table: SliceTable, window: Window) -> SliceTable:
    """Return the part of a trace in a window.

    Slices that cross its edges are cut; those that start before it lose their args, which are about the whole slice.
    Calls of primitives stay whole, and are kept if their middle is in the window. Counts of intervals are divided by
    time. The results for two adjacent windows add up to those of the joint window.
    """
    trace = table.trace
    slices, rows = _slices(table, window)
    return SliceTable(
        replace(
            trace,
            slices=slices,
            flows=flows_among(trace.flows, rows, len(trace.slices.ts)),
            counters=_counters(table, window),
            samples=take(trace.samples, np.flatnonzero(window.holds(trace.samples.ts))),
        ),
        uncut=Uncut(table, rows, window),
        step_name=table.step_name,
    )


def _slices(table: SliceTable, window: Window) -> tuple[Slices, Rows]:
    """Return the slices, and their rows in the trace."""
    trace, slices = table.trace, table.trace.slices
    owners = np.zeros(len(slices.ts), bool)
    owners[Owners(table).rows] = True
    whole = np.zeros(len(slices.ts), bool)
    for number, source in enumerate(trace.sources):
        of_input = table.of_source(number)
        if source.marks.primitives is not None and not np.any(of_input & owners):
            whole |= of_input & table.of_categories(source.marks.primitives.calls)
    starts, ends = np.maximum(slices.ts, window.start), np.minimum(slices.ts + slices.dur, window.end)
    inside = (starts < ends) | window.holds(slices.ts)
    rows = np.flatnonzero(np.where(whole, window.holds(slices.ts + slices.dur // 2), inside))
    starts, lasting = np.where(whole, slices.ts, starts)[rows], np.where(whole, slices.dur, ends - starts)[rows]
    chosen = take(slices, rows)
    begun_before = chosen.ts < starts
    return replace(chosen, ts=starts, dur=lasting, args_len=np.where(begun_before, np.int32(0), chosen.args_len)), rows


def flows_among(flows: Flows, rows: Rows, count: int) -> Flows:
    """Return the flows between kept slices, by their new rows."""
    new = np.full(count, -1, np.int64)
    new[rows] = np.arange(len(rows))
    left = take(flows, np.flatnonzero((new[flows.from_slice] >= 0) & (new[flows.to_slice] >= 0)))
    return replace(left, from_slice=new[left.from_slice], to_slice=new[left.to_slice])


def _counters(table: SliceTable, window: Window) -> Counters:
    """Return the counters, with counts of intervals cut to the window.

    Integer counts stay integers: the part up to a time is rounded half to even.
    """
    trace, counters = table.trace, table.trace.counters
    is_counted = np.isin(counters.track, interval_counters(trace))
    order = np.flatnonzero(is_counted)[np.lexsort((counters.ts[is_counted], counters.track[is_counted]))]
    values = take(counters, order)
    ends = np.append(values.ts[1:], values.ts[-1:])
    last = np.append(np.diff(values.track) != 0, True)[: len(ends)]
    ends = np.where(last, values.ts, ends)
    starts, until = (np.clip(edge, window.start, window.end) for edge in (values.ts, ends))
    lasting = np.maximum(ends - values.ts, 1)
    before, after = (edge - values.ts for edge in (starts, until))
    point = (ends == values.ts) & window.holds(values.ts)  # of unknown duration: the count belongs to its time
    integer = np.array(
        [
            value if is_point else rounded(value * stop, length) - rounded(value * begin, length)
            for value, begin, stop, length, is_point in zip(
                *(column.tolist() for column in (values.integer, before, after, lasting, point)), strict=True
            )
        ],
        np.int64,
    )
    value = np.where(point, values.value, values.value * ((after - before) / lasting))
    some = (until > starts) | point
    parts = replace(values, ts=starts, integer=integer, value=np.where(values.is_integer == 1, integer, value))
    kept = take(parts, np.flatnonzero(some))
    # A count lasts up to the next value: a zero ends the last one.
    closing = take(replace(parts, ts=until, integer=integer * 0, value=value * 0), np.flatnonzero(some & ~point))
    joined = Counters(
        *(np.append(getattr(kept, column.name), getattr(closing, column.name)) for column in fields(Counters))
    )
    return take(joined, np.lexsort((np.arange(len(joined.ts)) < len(kept.ts), joined.ts, joined.track)))


# -- Trim a trace to a window of time: `--trim` ----------------------------------------------------------------------

_TRIM_OPTION = "--trim"
OUTSIDE = skipped("trim.outside", "events outside of the time that --trim asks for")

Chosen = npt.NDArray[np.bool_]


def check_trim(text: str, files: Sequence[str]) -> None:
    """Raise UsageError if a window has invalid times and is not one of the files, or is the name of several files."""
    if text and _input(text, files) is None:
        check_between(text, _TRIM_OPTION)


def trimmed(trace: Trace, text: str) -> Trace:
    """Return the part of a trace in a window; its inputs count the rest as skipped by design.

    Slices that cross its edges stay whole, and the counter values that hold at its start are kept. Flows are kept if
    both of their slices are.

    Args:
        trace: a trace on one clock, as `merge` returns it. Its inputs count the events left out.
        text: a window in the form of `report --between`, or an input: from its first to its last time.

    Raises:
        UsageError: there is no such window, or it has no events.
    """
    window = _window(trace, text)
    slices, ends = trace.slices, trace.slices.ts + trace.slices.dur
    kept = {name: window.holds(table.ts) for name, table in trace.timed_tables()}
    kept["slices"] |= (slices.ts < window.start) & (ends > window.start)
    if not any(np.any(chosen) for chosen in kept.values()):
        first, last = (format_time(instant - window.origin) for instant in (window.start, window.end))
        raise UsageError(f"{_TRIM_OPTION} {text!r}: nothing was recorded from {first} to {last} after the start")
    kept["counters"] |= _holding(trace.counters, window)
    rows = np.flatnonzero(kept["slices"])
    flows = flows_among(trace.flows, rows, len(ends))
    of_flows = kept["slices"][trace.flows.from_slice] & kept["slices"][trace.flows.to_slice]
    _count(trace, kept | {"flows": of_flows})
    tables = {name: take(table, np.flatnonzero(kept[name])) for name, table in trace.timed_tables()}
    return drop_unused_tracks(trace.with_tables(**tables, flows=flows))


def _input(text: str, files: Sequence[str]) -> int | None:
    """Return the number of the input with a name, None without one. Raises UsageError if several have it."""
    try:
        return input_named(text, files, _TRIM_OPTION)
    except UsageError:
        if names_several(text, files):
            raise
        return None


def _window(trace: Trace, text: str) -> Window:
    table = SliceTable(trace)
    number = _input(text, [source.path or source.name for source in trace.sources])
    if number is None:
        return window_of(table, text, _TRIM_OPTION)
    starts, ends = [], []
    for name, events in trace.timed_tables():
        rows = np.flatnonzero(inputs_of(trace, name) == number)
        if len(rows):
            starts.append(int(np.min(events.ts[rows])))
            ends.append(int(np.max((events.ts + events.dur if name == "slices" else events.ts)[rows])))
    if not starts:
        raise UsageError(f"{_TRIM_OPTION} {text}: this input has no events")
    return Window(text, min(starts), max(ends) + 1, table.start)


def _holding(counters: Counters, window: Window) -> Chosen:
    """Return a mask of the counter values that hold at the start of the window: the last one before, by track."""
    before = np.flatnonzero(counters.ts < window.start)
    last = np.append(np.diff(counters.track[before]) != 0, True)[: len(before)]
    holding = np.zeros(len(counters.ts), bool)
    holding[before[last]] = True
    return holding


def _count(trace: Trace, kept: dict[str, Chosen]) -> None:
    """Count the rows that are left out of each input, and in its balance the events without any remaining row."""
    labels = dict(zip((*TIMED, "flows"), (SLICES, INSTANTS, COUNTER_VALUES, SAMPLES, LOG_ENTRIES, FLOWS), strict=True))
    sources = {name: inputs_of(trace, name) for name in kept}
    for number, source in enumerate(trace.sources):
        of_source = {name: sources[name] == number for name in kept}
        gone = {name: int(np.sum(mask & ~kept[name])) for name, mask in of_source.items()}
        if any(gone.values()):
            left_out = ", ".join(quantity(count, labels[name]) for name, count in gone.items() if count)
            without = _origins(trace, {name: mask & ~kept[name] for name, mask in of_source.items()})
            left = _origins(trace, {name: mask & kept[name] for name, mask in of_source.items()})
            _leave_out(source, left_out, sum(gone.values()), len(without - left))


def _origins(trace: Trace, chosen: dict[str, Chosen]) -> set[int]:
    """Return the origins of the chosen rows: the numbers of events in their input."""
    return {origin for name, rows in chosen.items() for origin in getattr(trace, name).origin[rows].tolist()}


def _leave_out(source: SourceInfo, left_out: str, rows: int, events: int) -> None:
    events = min(events, source.balance.written)
    source.problem(OUTSIDE, left_out, count=rows, skipped=events)
    source.balance.written -= events
    source.balance.skipped[OUTSIDE.skipped] += events
