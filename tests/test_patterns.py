"""No regular expression of the product is quadratic in the length of a line, which may have 16 MB.

Each pattern runs over lines of 32 KB: of blanks, digits, letters and signs, and of what it repeats itself, behind the
shortest text that leads there and before a byte that it does not expect. A linear one needs milliseconds of CPU time,
a quadratic one seconds; the limit between them is CPU time of this process, so that other load does not count.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import traceconv
from traceconv.families.logs import log_times

SIZE = 1 << 15
LIMIT_S = 1.0
MODULES = sorted(one.name for one in pkgutil.walk_packages(traceconv.__path__, "traceconv."))
#: The methods of patterns, and the one that does the same work.
METHODS = {one: one for one in ("match", "fullmatch", "search", "findall")}
METHODS |= dict.fromkeys(("sub", "subn", "finditer", "split"), "findall")
#: What a pattern runs over is shorter: a line that is passed on only below this length, the end of a file, its name.
BOUNDED = {
    "traceconv.families.furiosa_table:_PANDAS": 1000,
    "traceconv.families.chrome.document:_LAST_FUNCTION": 4096,
    "traceconv.families.vtune.external:_HOST": 4096,
    "traceconv.families.perf.samples:_LATE_FRAME": 4096,
}
#: The methods of patterns that are called under another name.
USED = {
    "traceconv.families.chrome.event:_ENDS_KEY": {"match"},
    "traceconv.families.chrome.event:_ENDS_ELEMENT": {"match"},
    "traceconv.families.chrome.event:_ENDS_MEMBER": {"match"},
    "traceconv.families.nvprof.console:_CORRELATION": {"fullmatch"},
    "traceconv.families.nvprof.console:_LAUNCH": {"fullmatch"},
    "traceconv.io.log_collectors:_WRITERS": {"match"},
    "traceconv.families.pytorch.table:_MEMORY": {"fullmatch"},
    "traceconv.families.pytorch.table:_TIME": {"fullmatch"},
    "traceconv.families.pytorch.table:_PERCENT": {"fullmatch"},
}
PIECES = [" ", "\t", "1", "a", "A", "_", ".", ",", ":", "-", "/", "(", "[", '"', "\\", "=", "#", "|", "é"]
PIECES += ["a ", " 1", "1,", "a.", '" ', "  a", "a:", "1.1 ", "\n"]


@cache
def methods(module: str) -> dict[str, set[str]]:
    """The methods of patterns that a module calls, by the name of what it calls them on."""
    file = importlib.import_module(module).__file__ or ""
    tree = ast.parse(Path(file).read_text("utf-8")) if file.endswith(".py") else ast.parse("")
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            value = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            name = value.id if isinstance(value, ast.Name) else getattr(value, "attr", "")
            used.setdefault(name, set()).add(METHODS[node.attr])
    return used


def used_by(module: str, key: str) -> set[str]:
    """The methods that are called on a global of a module; all of them if that cannot be seen."""
    if f"{module}:{key}" in USED:
        return USED[f"{module}:{key}"]
    modules = [module] if key.startswith("_") else MODULES
    return set().union(*(methods(one).get(key, set()) for one in modules)) or set(METHODS.values())


def patterns_in(value: Any, seen: set[int], depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """All patterns that can be reached from a value."""
    if isinstance(value, re.Pattern):
        yield value
    elif id(value) not in seen and depth < 6 and not isinstance(value, str | bytes | int | float):
        seen.add(id(value))
        parts: Any = ()
        if isinstance(value, dict):
            parts = [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            parts = value
        elif str(getattr(type(value), "__module__", "")).startswith("traceconv") or (
            isinstance(value, type) and value.__module__.startswith("traceconv")
        ):
            names = [*fields_of(value), *getattr(value, "__dict__", ())]
            parts = [getattr(value, name, None) for name in names if not name.startswith("__")]
        elif getattr(value, "__name__", "") in ("search", "match", "fullmatch") and hasattr(value, "__self__"):
            parts = (value.__self__,)
        for part in parts:
            yield from patterns_in(part, seen, depth + 1)


def fields_of(value: Any) -> tuple[str, ...]:
    """The names of the fields of a struct; those of other objects are in their dict."""
    names = getattr(type(value), "__struct_fields__", ())
    return names if isinstance(names, tuple) else ()


@cache
def all_patterns() -> dict[re.Pattern[Any], tuple[str, set[str]]]:
    """Each pattern with its place, and the methods that are called on it."""
    found: dict[re.Pattern[Any], tuple[str, set[str]]] = {}
    for name in MODULES:
        for key, value in vars(importlib.import_module(name)).items():
            for pattern in patterns_in(value, set()):
                place, before = found.get(pattern, (f"{name}:{key}", set()))
                found[pattern] = place, before | used_by(name, key)
    return found


def shortest(part: Any) -> str:
    """A short text that a part of a pattern matches, without regard to what is around it."""
    text = ""
    for op, value in part:
        name = str(op)
        if name == "LITERAL":
            text += chr(value)
        elif name in ("IN", "ANY", "NOT_LITERAL", "CATEGORY"):
            text += one_of(op, value)
        elif name == "SUBPATTERN":
            text += shortest(value[-1])
        elif name == "ATOMIC_GROUP":
            text += shortest(value)
        elif name == "BRANCH":
            text += shortest(value[1][0])
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            text += shortest(value[2]) * min(value[0], 70)
        elif name == "GROUPREF_EXISTS":
            text += shortest(value[1])
    return text


def one_of(op: Any, value: Any) -> str:
    """A character of a class."""
    pattern = _parser.SubPattern(_parser.State(), [(op, value)])
    for char in "a1 A.,:-_/()[]{}\"'=#|+*%@<>~\t\n;!?&^$\\":
        if matches_char(pattern, char):
            return char
    return "a"


def matches_char(pattern: Any, char: str) -> bool:
    op, value = pattern[0]
    if str(op) == "ANY":
        return char != "\n"
    if str(op) == "NOT_LITERAL":
        return ord(char) != value
    found, negated = False, False
    for kind, item in value if str(op) == "IN" else [(op, value)]:
        if str(kind) == "NEGATE":
            negated = True
        elif str(kind) == "LITERAL":
            found |= ord(char) == item
        elif str(kind) == "RANGE":
            found |= item[0] <= ord(char) <= item[1]
        elif str(kind) == "CATEGORY":
            letter = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[str(item).rsplit("_", 1)[-1]]
            found |= (re.fullmatch(letter, char) is None) == ("NOT" in str(item))
    return found != negated


def pumped(part: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """For each repetition in a pattern the shortest text before it, and what it repeats."""
    for at, (op, value) in enumerate(part):
        here = before + shortest(part[:at])
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            if value[1] > 64:
                yield here, shortest(value[2]) or "a"
                others = {one for one in " \t1a.-" if inside(value[2], one)}
                yield from ((here, one) for one in others)
            yield from pumped(value[2], here)
        elif name == "SUBPATTERN":
            yield from pumped(value[-1], here)
        elif name == "ATOMIC_GROUP":
            yield from pumped(value, here)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from pumped(branch, here)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from pumped(value[1], here)


def inside(part: Any, char: str) -> bool:
    """Whether what is repeated is one class, with the character in it."""
    return len(part) == 1 and str(part[0][0]) in ("IN", "ANY", "NOT_LITERAL", "CATEGORY") and matches_char(part, char)


def lines_for(pattern: re.Pattern[Any], size: int) -> Iterator[str]:
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    seen = set()
    for before, piece in [*(("", piece) for piece in PIECES), *pumped(parsed)]:
        if (before[-200:], piece) not in seen and len(seen) < 150:
            seen.add((before[-200:], piece))
            body = piece * (size // len(piece))
            yield before[-200:] + body + "\x00"
            if before:
                yield (before[-200:] + piece * 3) * (size // (len(before[-200:]) + 3 * len(piece))) + "\x00"


class TooSlow(Exception):
    """The limit is over."""


def stop(*_: Any) -> None:
    raise TooSlow


def slowest(pattern: re.Pattern[Any], used: set[str], size: int = SIZE) -> str:
    """The first line on which a pattern takes too long, shortened; "" if there is none."""
    for line in lines_for(pattern, size):
        text: Any = line if isinstance(pattern.pattern, str) else line.encode("utf-8", "replace")
        for name in sorted(used):
            signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
            try:
                getattr(pattern, name)(text)
            except TooSlow:
                return f"{name} of {line[:60]!r}..."
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the limit is a timer of POSIX")
@pytest.mark.parametrize("place", [*BOUNDED, *USED])
def test_what_is_said_of_a_pattern_is_of_one_that_there_is(place: str) -> None:
    module, _, name = place.partition(":")
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("part", range(16))
def test_each_pattern_is_linear_in_its_line(part: int) -> None:
    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        some = sorted(all_patterns().items(), key=lambda one: one[1][0])[part::16]
        assert len(some) > 20
        slow = [
            f"{place} {pattern.pattern[:80]!r}: {found}"
            for pattern, (place, used) in some
            if (found := slowest(pattern, used, BOUNDED.get(place, SIZE)))
        ]
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert not slow, "\n".join(slow)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the limit is a timer of POSIX")
def test_gaps_in_patterns_of_users_are_not_tried_together() -> None:
    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        forms = ["%{skip} " * count + "%{ms} ms" for count in range(1, 9)]
        forms += ["%{thread} " + form for form in forms] + [f"{form} %{{skip}}x" for form in forms]
        slow = [
            f"{form}: {found}"
            for form in forms
            if (found := slowest(log_times.compile_form(form).pattern, {"search"}, 2 * log_times.REACH))
        ]
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert not slow, "\n".join(slow)
