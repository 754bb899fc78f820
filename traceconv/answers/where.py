"""Select slices by a condition such as `name~conv and dur>1ms and args.device=1`.

`docs/answers.md` describes the language.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.operations import key_of, keyed
from traceconv.answers.slice_tables import SliceTable
from traceconv.errors import UsageError
from traceconv.io.user_pattern import UserPattern, user_pattern
from traceconv.model.args import ABSENT, arg_values, as_text
from traceconv.model.columns import I32, I64, chunks, distinct_values
from traceconv.model.numbers import number_of, parse_duration
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

    of: Condition


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


@dataclass
class _Parser:
    """Recursive descent: or, and, not, comparison."""

    text: str
    tokens: list[_Token] = field(default_factory=list)
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
        return absent_args(table, condition.of)
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
        return ~holds(table, condition.of)
    if isinstance(condition, Joined):
        masks = [holds(table, part) for part in condition.parts]
        both: Mask = np.all(masks, axis=0) if condition.word == "and" else np.any(masks, axis=0)
        return both
    sign = condition.sign
    if sign in ("!=", "!~"):
        return ~holds(table, Comparison(condition.field, sign[-1], condition.operand))
    return _compared(table, condition)


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
            _accepted(comparison, [source.name for source in one.sources])[inputs_of(one, "slices")]
            for one in (trace, by_stated_inputs(trace))
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
