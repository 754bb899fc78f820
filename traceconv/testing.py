"""Checks for importers, ours and those of other packages, to be called from tests. docs/add-a-format.md shows how.

They raise AssertionError with what is wrong.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import random
import re
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory

from traceconv.errors import ImporterFailed, TraceconvError
from traceconv.families.importer import Certainty, Importer, Match
from traceconv.families.registry import option_help, option_texts
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.clocks import ClockDomain
from traceconv.model.diagnostics import ProblemKind
from traceconv.model.dump import dump, dump_problem
from traceconv.model.trace import Trace
from traceconv.reading import Recognised, read_recognised

_NOISE = (b"", b"\n", b"\0" * 1000, b"{", b"[]", b'{"a": 1}', b"\xff\xfe\0", b"Lorem ipsum dolor sit amet.\n" * 50)
_CUTS = 20


def check_importer(cls: type[Importer], *inputs: str | os.PathLike[str]) -> None:
    """Check what an importer says of itself, and that it claims and reads its inputs, whole and damaged.

    Args:
        cls: the importer.
        inputs: files of its format; of each, something is read and nothing lost.
    """
    check_description(cls)
    for data in _NOISE:
        assert _answer(cls, data).certainty is Certainty.NO, f"it claims {data[:20]!r}"
    for path in inputs:
        assert _answer(cls, Source(path).head().data).certainty > Certainty.NO, f"it does not claim {path}"
        trace = read_with(cls, path)
        source = trace.sources[0]
        assert any(trace.counts().values()), f"it reads nothing of {path}"
        lost = [entry.message() for entry in source.diagnostics if entry.code.kind is ProblemKind.LOST]
        assert not lost, f"{path}: {lost[0]}"
        for what in (source.balance.unit, *source.balance.kept, *source.balance.merged):
            assert isinstance(what, Counted), f"{what!r} has no word for one: use traceconv.model.diagnostics"
        _check_damaged(cls, Path(path))


def _answer(cls: type[Importer], data: bytes) -> Match:
    match = cls().sniff(Head(data, True, "x"))
    assert isinstance(match, Match), f"sniff answers {match!r}"
    assert match.reason, "sniff gives no reason"
    assert "\n" not in match.reason, f"more than one line: {match.reason!r}"
    return match


def _check_damaged(cls: type[Importer], path: Path) -> None:
    """Check that with any part of an input missing, what is left is read, or refused by one of our errors."""
    rng, data = random.Random(0), path.read_bytes()
    with TemporaryDirectory() as folder:
        chunk = Path(folder) / path.name
        for _ in range(_CUTS):
            begin, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
            chunk.write_bytes(data[:begin] + data[end:])
            _answer(cls, Source(chunk).head().data)
            with suppress(TraceconvError):
                read_with(cls, chunk)


def check_description(cls: type[Importer]) -> None:
    """Check what an importer says of itself, for users: info, options and their help."""
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cls.name), f"the name {cls.name!r} is not of the form a-b-c"
    for fact in (cls.title, cls.versions, cls.line_up, *cls.record.splitlines()):
        assert fact == fact.strip(), f"white space around {fact!r}"
        assert len(fact) > 10, f"too short: {fact!r}"
        assert "\n" not in fact, f"more than one line: {fact!r}"
    assert cls.becomes, "becomes is empty"
    assert all(len(pair) == 2 and all(pair) for pair in cls.becomes), "becomes holds pairs of texts"
    assert all(sentence.endswith(".") for sentence in cls.lost), "lost holds sentences"
    assert cls.url.startswith("https://"), f"no address of a page: {cls.url!r}"
    assert isinstance(cls.clock, ClockDomain), "clock is not a ClockDomain"
    assert not cls.clock.owner, "a clock of a format has no owner"
    assert not cls.clock.machine, "a clock of a format has no machine"
    for name in unknown_attributes(cls):
        meant = get_close_matches(name, Importer.__annotations__, 1)
        assert not meant, f"importers have no attribute {name!r}: is {meant[0]} meant?"
    for option in dataclasses.fields(cls):  # type: ignore[arg-type]
        assert option.type in ("bool", "int", "str", "int | None"), f"option {option.name} is of {option.type}"
        assert option.default is not dataclasses.MISSING, f"option {option.name} has no default"
        assert option_help(cls, option.name), f"no help on option {option.name}: use traceconv.families.importer.option"


def unknown_attributes(cls: type[Importer]) -> list[str]:
    """Return the public attributes of an importer, or of the classes that it inherits from, that traceconv ignores."""
    known = {*_public(Importer), *(option.name for option in dataclasses.fields(cls))}  # type: ignore[arg-type]
    return sorted(_public(cls) - known)


def _public(cls: type) -> set[str]:
    names = (name for base in cls.__mro__ for name in (*vars(base), *inspect.get_annotations(base)))
    return {name for name in names if not name.startswith("_")}


def check_golden(
    cls: type[Importer],
    source: str | os.PathLike[str],
    expected: str | os.PathLike[str],
    *,
    options: Mapping[str, str | int | bool] | None = None,
    update: bool = False,
) -> None:
    """Check that an input is read as a file says that was written before, and looked through.

    Args:
        cls: the importer.
        source: the input.
        expected: the file that `update` writes.
        options: of the importer.
    """
    text = as_text(read_with(cls, source, options))
    if update:
        Path(expected).write_text(text, encoding="utf-8")
    assert Path(expected).read_text(encoding="utf-8") == text, f"{source} is read otherwise than {expected} says"


def read_with(
    cls: type[Importer], source: str | os.PathLike[str], options: Mapping[str, str | int | bool] | None = None
) -> Trace:
    """Return the trace of an input by an importer, which need not be installed."""
    try:
        return read_recognised(Recognised(Source(source), cls, ""), option_texts(options))
    except ImporterFailed as failure:
        raise failure.__cause__ or failure from None


def as_text(trace: Trace) -> str:
    """Return a trace in words, one thing a line, with what is to be said of its inputs."""
    said = [dump_problem(entry) for source in trace.sources for entry in source.diagnostics]
    return dump(trace) + "".join(f"{line}\n" for line in said)
