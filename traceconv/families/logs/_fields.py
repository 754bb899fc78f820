"""Parse the fields beside the time in a log line (level, thread, process, source), and durations in its text.

2024-01-02 03:04:05,678 - package.module - INFO - step 3 took 6.4 ms
2024-01-02 03:04:05.678901: W tensorflow/core/x.cc:77] text
[2024-01-02 03:04:05.678] [MainThread] [warning] text
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from traceconv.model.diagnostics import noted
from traceconv.model.times import LIMIT_NS, parse_ns
from traceconv.model.trace import Level

AMBIGUOUS_DURATION = noted(
    "timed_log.ambiguous_duration",
    "a duration such as 1,234 ms has a comma that may be decimal or not: no slice was drawn for it",
)
BAD_DURATION = noted(
    "timed_log.duration_out_of_range", "a duration is not a number or beyond 146 years: no slice was drawn for it"
)

_LEVELS = {
    Level.VERBOSE: "TRACE VERBOSE FINE FINEST V T",
    Level.DEBUG: "DEBUG DIAGNOSE DBG D",
    Level.INFO: "INFO NOTICE INF I",
    Level.WARNING: "WARNING WARN WRN W",
    Level.ERROR: "ERROR ERR SEVERE E",
    Level.FATAL: "CRITICAL CRIT FATAL ALERT EMERG PANIC F C A",
}
_LEVEL_OF = {word: level for level, words in _LEVELS.items() for word in words.split()}
_WORDS = "|".join(sorted((word for word in _LEVEL_OF if len(word) > 1), key=len, reverse=True))
_EXTENSIONS = "py|pyx|cc|cpp|cxx|c|h|hpp|cu|cuh|rs|go|java|kt|js|ts|rb|swift|m"
#: Possessive: what follows may begin with the same characters, and is not to be tried from each of them.
_SEPARATORS = r"[\s:|,;-]*+"

#: In the order in which they are tried.
_FIELDS = (
    # INFO | [INFO] | [info] | level=info
    rf"[\[(<]?(?P<level>{_WORDS})[\])>]?(?=$|[\s:|,;\]-])",
    rf"[\[(<](?P<level>(?i:{_WORDS}))[\])>]",
    r"(?:level|lvl|severity)=\"?(?P<level>\w+)\"?",
    # [MainThread] | (rank 3) | [rank0]: | [tid 77] | [77:78] | thread=77 | [0x7f5a271fab80]
    r"[\[(](?P<thread>main|MainThread|ThreadPoolExecutor-\d+_\d+|Thread-\d+[^\])]{0,60}|"
    r"(?i:rank|worker|thread|tid)[ =:#-]?\d+|0x[0-9a-fA-F]+)[\])]",
    r"(?:thread|tid)=\"?(?P<thread>[\w.-]+)\"?",
    r"\[(?:pid[ =:]?)?(?P<pid>\d{1,9}):(?:tid[ =:]?)?(?P<thread>\d{1,9})\]",
    r"\[?pid[ =:](?P<pid>\d{1,9})\]?",
    r"\[(?P<thread>\d{1,9})\]",
    # W tensorflow/core/x.cc:77] | file.py:77
    rf"(?P<level>[VDIWEFC])(?= [\w./]+\.(?:{_EXTENSIONS}):\d)",
    rf"[\[(]?(?P<source>[\w./\\@+-]+\.(?:{_EXTENSIONS}):\d+)(?:[\])]:?|:|(?=\s|$))",
    # package.module - INFO | package.module INFO
    rf"(?P<source>[A-Za-z_][\w.$/-]*)(?=\s*(?:[-:|]\s*)?[\[(<]?(?:{_WORDS})[\])>]?(?:[\s:|,;-]|$))",
    # [package.module]: | package.module: | root:
    r"\[(?P<source>[A-Za-z_]\w*(?:[./][\w./-]+)?)\](?=:?\s)",
    r"(?P<source>root|__main__|[A-Za-z_]\w*(?:\.\w+)+)(?=\s?(?::|\||-\s))",
)
_GROUP = re.compile(r"\(\?P<(\w+)>")
_LEADING = re.compile(r"[\s:|,;\])>]+(?:-\s+)?|\s*-\s+")

_UNITS = {
    "ns": (1, 0),
    "us": (1, 3),
    "usec": (1, 3),
    "ms": (1, 6),
    "msec": (1, 6),
    "s": (1, 9),
    "sec": (1, 9),
    "secs": (1, 9),
    "min": (60, 9),
    "mins": (60, 9),
    "h": (3600, 9),
}
_UNITS |= {
    word + plural: _UNITS[unit]
    for unit, word in {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}.items()
    for plural in ("", "s")
}
_UNITS |= {"µs": (1, 3), "μs": (1, 3), "minute": (60, 9), "minutes": (60, 9), "hour": (3600, 9), "hours": (3600, 9)}
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_AMOUNT = rf"(?P<number>\d[\d.,]{{0,40}}+(?:[eE][+-]?\d{{1,3}})?+)\s?(?P<unit>{_UNIT})(?![\w/])"
_AMOUNTS = re.compile(_AMOUNT)
# took 6.4 ms | in 3.2 s | elapsed: 5 ms | elapsed time = 5ms | duration=5 ms | took 1 min 3 s
_DURATION = re.compile(
    rf"\b(?P<word>took|taken|in|elapsed|duration)(?:[ _]time)?[ =:]*(?P<amounts>{_AMOUNT}"
    rf"(?:(?:,? and|,)? ?\d[\d.,]*\s?(?:{_UNIT})(?![\w/]))*)",
    re.IGNORECASE,
)
#: "retry in 5 s" is about the future.
_FUTURE = re.compile(
    r"(?:retry|retrying|again|expires?|expiring|starts?|starting|timeout|sleeping|reconnect(?:ing)?|scheduled) *$", re.I
)
_NAME_ENDS = " \t:,;=-|([{'\"."


class Fields(msgspec.Struct):
    """The fields of a line beside its time and text.

    Attributes:
        args: the fields without a column of their own.
    """

    level: Level = Level.INFO
    thread: str = ""
    pid: str = ""
    source: str = ""
    args: dict[str, str] = msgspec.field(default_factory=dict)

    def take(self, fields: dict[str, str]) -> None:
        """Take over named groups."""
        for name in ("thread", "pid", "source"):
            if fields.get(name):
                setattr(self, name, fields[name].strip())
        if "level" in fields:
            self.level = level_of(fields["level"])


class Duration(NamedTuple):
    """A duration in a text: the name of the operation, and its duration in ns."""

    name: str
    ns: int


def level_of(word: str) -> Level:
    """Return the level of a word or letter; INFO for others."""
    return _LEVEL_OF.get(word.upper(), Level.INFO)


@lru_cache(maxsize=64)
def _any_field(known: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of any field but those known; groups are numbered, as alternatives share names."""
    numbered = [
        _GROUP.sub(rf"(?P<\1_{number}>", pattern)
        for number, pattern in enumerate(_FIELDS)
        if not known.intersection(_GROUP.findall(pattern))
    ]
    return re.compile(f"{_SEPARATORS}(?:{'|'.join(numbered) or '(?!)'})")


def read_fields(text: str, fields: Fields) -> str:
    """Read the fields at the start of a text, each once; return the rest of the text."""
    known: frozenset[str] = frozenset()
    position = 0
    while match := _any_field(known).match(text, position):
        groups = {name.partition("_")[0]: value for name, value in match.groupdict().items() if value is not None}
        fields.take(groups)
        known = known.union(groups)
        position = match.end()
    leading = _LEADING.match(text, position)
    return text[leading.end() if leading else position :]


def durations(text: str) -> tuple[list[Duration], list[str]]:
    """Return the durations in a text, and the texts of ambiguous or invalid numbers."""
    durations_read: list[Duration] = []
    unclear: list[str] = []
    start = 0
    matches = list(_DURATION.finditer(text))
    for match, following in zip_longest(matches, matches[1:]):
        before = text[start : match.start()]
        if match["word"].lower() == "in" and _FUTURE.search(before):
            continue
        start = match.end()
        name = before.strip(_NAME_ENDS)
        if not name:
            behind = text[match.end() : following.start() if following else None]
            if following is None or behind.rstrip().endswith((",", ";")):  # else it is the name of the next one
                name, start = behind.strip(_NAME_ENDS), match.end() + len(behind)
        try:
            durations_read.append(
                Duration(name or match["word"], sum(_amount_ns(one) for one in _AMOUNTS.finditer(match["amounts"])))
            )
        except ValueError:
            unclear.append(match[0])
    return durations_read, unclear


def _amount_ns(match: re.Match[str]) -> int:
    """Return the ns of a match. Raises ValueError for an ambiguous or invalid number."""
    number = match["number"].rstrip(".,")
    if "," in number:
        whole, *groups = number.split(",")
        thousands = all(re.fullmatch(r"\d{3}(\.\d+)?", group) for group in groups) and whole != "0"
        if thousands and "." not in number and len(groups) == 1:
            raise ValueError(f"{number} has a comma that may be decimal")
        number = number.replace(",", "" if thousands else ".")
    factor, exponent = _UNITS[match["unit"].lower()]
    ns = parse_ns(number.encode(), exponent, factor)
    if ns > LIMIT_NS // 4:
        raise ValueError(f"{number} is out of range")
    return ns
