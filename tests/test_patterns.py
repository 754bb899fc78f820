"""No regular expression of the product is quadratic in the length of a line, which may have 16 MB.

Compiled patterns, those in calls of `re`, and those of declarations run over lines of 16 KB: of blanks, digits, letters
and signs, and of what they repeat themselves, behind the shortest text that leads there and before a byte that they do
not expect. A linear one takes four times as long as for a quarter of the line, a quadratic one up to 16 times; that is
CPU time of this thread, measured again before it counts, and nothing is said of times below a floor.
"""

from __future__ import annotations

import ast
import gc
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from msgspec import Struct

import traceconv
from traceconv.families.logs import log_times
from traceconv.families.registry import importers
from traceconv.model import marks

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the limit is a timer of POSIX")

SIZE = 1 << 14
LIMIT_S = 1.0
#: Below this time growth is not told from what else the machine does.
FLOOR_S = 0.004
MOST_GROWTH = 6
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
#: The fields and constants of declarations that are found in a text; of others, all of a text is matched.
SEARCHED = {"COMMUNICATION", "EXCHANGES", "INPUT_DATA", "FormatMarks.exchanges", "LaunchMarks.communication"}
SEARCHED |= {"DeviceMarks.communication", "DeviceMarks.copies", "FormatMarks.launch_flows", "FormatMarks.receive_flows"}
SEARCHED |= {"LaunchMarks.to_host", "PrimitiveMarks.reference", "PrimitiveMarks.sizes"}
PIECES = [" ", "\t", "1", "a", "A", "_", ".", ",", ":", "-", "/", "(", "[", '"', "\\", "=", "#", "|", "é"]
PIECES += ["a ", " 1", "1,", "a.", '" ', "  a", "a:", "1.1 ", "\n"]


@cache
def tree(module: str) -> ast.AST:
    file = importlib.import_module(module).__file__ or ""
    return ast.parse(Path(file).read_text("utf-8") if file.endswith(".py") else "")


@cache
def methods(module: str) -> dict[str, set[str]]:
    """The methods of patterns that a module calls, by the name of what it calls them on."""
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            value = node.value.value if isinstance(node.value, ast.Subscript) else node.value
            name = value.id if isinstance(value, ast.Name) else getattr(value, "attr", "")
            used.setdefault(name, set()).add(METHODS[node.attr])
    return used


def inline(module: str) -> Iterator[tuple[re.Pattern[Any], str, set[str]]]:
    """The patterns in calls such as `re.search("...", text)`, with their place and method."""
    for node in ast.walk(tree(module)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in METHODS:
            continue
        if ast.unparse(node.func.value) == "re" and isinstance(node.args[0], ast.Constant):
            names = [ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Attribute)]
            flags = [getattr(re, name[3:]) for name in names if name.startswith("re.") and name[3:].isupper()]
            place = f"{module}:{node.lineno}"
            yield re.compile(node.args[0].value, sum(flags)), place, {METHODS[node.func.attr]}


def declared(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """The texts with repetitions in declarations of formats, with the name of their field."""
    if isinstance(value, str) and re.search("[*+]", value):
        yield value, field
    elif isinstance(value, tuple):
        for part in value:
            yield from declared(part, field)
    elif isinstance(value, Struct) and type(value).__module__ == marks.__name__:
        for name in value.__struct_fields__:
            yield from declared(getattr(value, name), f"{type(value).__name__}.{name}")


def marked() -> Iterator[tuple[re.Pattern[Any], str, set[str]]]:
    """The patterns of declarations, also of outputs that have all of them: found in a text if SEARCHED, else whole."""
    of_formats = [each.marks for each in importers().values()]
    of_all = [vars(marks), *({"": each} for each in of_formats), {"": marks.marks_of_output(of_formats)}]
    for name, value in ((name, value) for values in of_all for name, value in values.items()):
        for pattern, field in declared(value, name):
            yield re.compile(pattern), f"{marks.__name__}:{field}", {"search" if field in SEARCHED else "fullmatch"}


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
    for pattern, at, used in chain(marked(), *map(inline, MODULES)):
        place, before = found.get(pattern, (at, set()))
        found[pattern] = place, before | used
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


def lines_for(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """How the lines for a pattern begin, and what follows again and again."""
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    seen = set()
    for before, piece in [*(("", piece) for piece in PIECES), *pumped(parsed)]:
        if (before[-200:], piece) not in seen and len(seen) < 150:
            seen.add((before[-200:], piece))
            yield before[-200:], piece
            if before:
                yield "", before[-200:] + piece * 3


class TooSlow(Exception):
    """The limit is over."""


def stop(*_: Any) -> None:
    raise TooSlow


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """Raise TooSlow when the limit is over; collect no garbage, whose time grows with what all modules hold."""
    before = signal.signal(signal.SIGVTALRM, stop)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGVTALRM, before)


@dataclass(frozen=True)
class Run:
    """One method of a pattern on lines that begin with one text and go on with another, again and again."""

    pattern: re.Pattern[Any]
    method: str
    before: str
    piece: str

    def takes(self, size: int, times: int = 1) -> float:
        """The least CPU time for a line of a length, s; TooSlow from LIMIT_S on."""
        line = f"{self.before}{self.piece * (size // len(self.piece))}\x00"
        text: Any = line if isinstance(self.pattern.pattern, str) else line.encode("utf-8", "replace")
        run, found = getattr(self.pattern, self.method), []
        for _ in range(times):
            signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
            try:
                begin = time.thread_time()
                run(text)
                found.append(time.thread_time() - begin)
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return min(found)

    def is_slow(self, size: int, *, grows: bool) -> bool:
        """Whether a line takes longer than the limit, or more than MOST_GROWTH times as long as a quarter of it."""
        try:
            if self.takes(size) < FLOOR_S or not grows:
                return False
            return all(self.takes(long, 3) > MOST_GROWTH * self.takes(long // 4, 3) for long in (size, 4 * size, size))
        except TooSlow:
            return True


def slowest(pattern: re.Pattern[Any], used: set[str], bound: int = 0) -> str:
    """The first line on which a pattern takes too long, shortened; "" if there is none."""
    for before, piece in lines_for(pattern):
        for name in sorted(used):
            if Run(pattern, name, before, piece).is_slow(bound or SIZE, grows=not bound):
                return f"{name} of {(before + piece * 30)[:60]!r}..."
    return ""


@pytest.mark.parametrize("place", [*BOUNDED, *USED])
def test_what_is_said_of_a_pattern_is_of_one_that_there_is(place: str) -> None:
    module, _, name = place.partition(":")
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("part", range(16))
def test_each_pattern_is_linear_in_its_line(part: int) -> None:
    some = sorted(all_patterns().items(), key=lambda one: one[1][0])[part::16]
    assert len(some) > 20
    slow = [
        f"{place} {pattern.pattern[:80]!r}: {found}"
        for pattern, (place, used) in some
        if (found := slowest(pattern, used, BOUNDED.get(place, 0)))
    ]
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize(
    ("pattern", "slow"),
    [
        (r"\w*\Z", True),
        (r"(?<!\w)\w*\Z", False),
        (r"DataLoader\S*\.__next__", True),
        (r"(?:a|aa)+$", True),
        (r"a+b|c", True),
    ],
)
def test_slow_patterns_are_found(pattern: str, slow: bool) -> None:
    assert bool(slowest(re.compile(pattern), {"search"})) is slow


def test_gaps_in_patterns_of_users_are_not_tried_together() -> None:
    forms = ["%{skip} " * count + "%{ms} ms" for count in range(1, 9)]
    forms += ["%{thread} " + form for form in forms] + [f"{form} %{{skip}}x" for form in forms]
    slow = [
        f"{form}: {found}"
        for form in forms
        if (found := slowest(log_times.compile_form(form).pattern, {"search"}, 2 * log_times.REACH))
    ]
    assert not slow, "\n".join(slow)
