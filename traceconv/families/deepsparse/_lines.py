"""Parse the lines of a DeepSparse engine, without state and times.

    [nm_ort 7f5a271fab80 >DIAGNOSE< operator() /home/ubuntu/build/nyann/src/x/nm_execution_provider.cc:294] message
    [7f9d40413b80 >DIAGNOSE< get_elastic_profile src/lib/parallel/scheduler_profile.cpp:129] message

On a terminal, the brackets contain escape sequences (0.3.0). Threads are pthread handles, not ids of the operating
system.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from traceconv.families.common.ansi import plain as without_colours
from traceconv.model.trace import Level

_PREFIX = re.compile(
    rb"\[(?:(?P<module>[a-z_]+) )?(?P<thread>[0-9a-f]{6,16}) >"
    rb"(?P<level>FATAL|ERROR|WARN|INFO|DIAGNOSE|DEBUG_VERBOSE|DEBUG)<"
    rb" +(?P<function>\S+) (?P<file>\S+):(?P<line>\d+)\] ?"
)
# DeepSparse, Copyright 2021-present / Neuralmagic, Inc. version: 1.8.0 COMMUNITY | (e3778e93) (release) (optimized) ...
BANNER = re.compile(
    rb"(?:DeepSparse(?: Engine)?, Copyright|NeuralMagic WAND version).*?"
    rb"(?:version:? *(?P<version>\d[\w.+-]*)(?P<rest>.*))?$"
)
#: The lines of a crash report below its banner.
CRASH_BEGIN = re.compile(rb"Date: \d\d-\d\d-\d{4} @ ")
CRASH_LINE = re.compile(rb"\s*$|[A-Z][\w /,]*: |Assertion at |Backtrace:| *\d+# |Please email ")
GRAPH = re.compile(r"Printing GraphViewer (?P<name>.*):$")
NODE = re.compile(r"Node (?P<index>\d+): (?P<op>\S+) ?(?P<name>.*)$")

_LEVELS = {
    b"FATAL": Level.FATAL,
    b"ERROR": Level.ERROR,
    b"WARN": Level.WARNING,
    b"INFO": Level.INFO,
    b"DIAGNOSE": Level.DEBUG,
    b"DEBUG": Level.DEBUG,
    b"DEBUG_VERBOSE": Level.VERBOSE,
}
_ENTITIES = {b"&gt;": b">", b"&lt;": b"<", b"&quot;": b'"', b"&amp;": b"&"}
_GRAVE = re.compile(
    r"\W*(?:(?P<warning>warn(?:ing)?\b|\[W)|error\b|fatal\b|traceback\b|terminate called)", re.IGNORECASE
)


class Record(NamedTuple):
    """One message of the engine.

    Attributes:
        thread: the pthread handle in hex.
        args: module, function and file, if stated.
    """

    thread: str
    level: Level
    source: str
    text: str
    args: dict[str, Any]


def plain(line: bytes) -> bytes:
    """Return a line without line end, colours, and HTML entities of a pasted log."""
    line = without_colours(line.rstrip(b"\r\n"))
    if b"&gt;" in line and b"&lt; " in line:
        for entity, character in _ENTITIES.items():
            line = line.replace(entity, character)
    return line


def records(line: bytes) -> tuple[bytes, list[Record]]:
    """Return the text before the first prefix, and the messages of a line, which may hold those of two threads."""
    if b" >" not in line or b"< " not in line:
        return line, []
    prefixes = list(_PREFIX.finditer(line))
    if not prefixes:
        return line, []
    ends = [prefix.start() for prefix in prefixes[1:]] + [len(line)]
    records_read = [_record(prefix, line[prefix.end() : end]) for prefix, end in zip(prefixes, ends, strict=True)]
    return line[: prefixes[0].start()], records_read


def _record(prefix: re.Match[bytes], text: bytes) -> Record:
    file, number = text_of(prefix["file"]), prefix["line"].decode()
    args = {"function": text_of(prefix["function"]), "file": file}
    if prefix["module"]:
        args["module"] = prefix["module"].decode()
    source = f"{file.rpartition('/')[2]}:{number}"
    return Record(prefix["thread"].decode(), _LEVELS[prefix["level"]], source, text_of(text), args)


def text_of(data: bytes) -> str:
    """Return bytes of a log as text."""
    return data.decode("utf-8", "replace")


def level_of(text: str) -> Level:
    """Return the probable level of a line of the program."""
    grave = _GRAVE.match(text)
    if grave is None:
        return Level.INFO
    return Level.WARNING if grave["warning"] else Level.ERROR


def banner_info(match: re.Match[bytes]) -> dict[str, Any]:
    """Return version, commit and instruction sets of a banner."""
    info: dict[str, Any] = {}
    if match["version"]:
        info["version"] = match["version"].decode()
    rest = text_of(match["rest"] or b"")
    commit = re.search(r"\(([0-9a-f]{6,40})\)", rest)
    if commit:
        info["commit"] = commit[1]
    if "COMMUNITY" in rest:
        info["edition"] = "COMMUNITY"
    info |= dict(re.findall(r"(system|binary)=([\w.]+)", rest))
    return info


def starts_engine(line: bytes) -> bool:
    """Return whether a line, if followed by a banner, starts a process (1.x)."""
    return b"/deepsparse_engine.cpp:" in line
