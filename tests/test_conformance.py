"""What every importer owes, whatever its format; a new one is checked as soon as it is registered."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.golden import ROOT, Case, by_format, cases
from tests.together import together
from traceconv.answers.selection import OUTSIDE
from traceconv.api import read
from traceconv.errors import TraceconvError, UnrecognizedFormat, UsageError
from traceconv.families.chrome.document import ChromeTrace
from traceconv.families.importer import Importer, Match
from traceconv.families.index import FORMATS
from traceconv.families.registry import Certainty, configure, identify, importers
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import DECLARED, ProblemKind
from traceconv.model.layout import EMPTY_TRACKS, lay_out, validate
from traceconv.model.source_info import SourceInfo
from traceconv.testing import check_description

IMPORTERS = importers()
CASES = [case for case in cases() if case.format != "merge"]

every_importer = pytest.mark.parametrize("cls", IMPORTERS.values(), ids=list(IMPORTERS))


def refused(case: Case) -> bool:
    return (case.folder / "expect.diag").read_text(encoding="utf-8").startswith("error: ")


# -- what it says about itself ----------------------------------------------------------------------------------------


@every_importer
def test_names_agree(cls: type[Importer]) -> None:
    assert f"{cls.__module__}:{cls.__name__}" == f"traceconv.families.{FORMATS[cls.name][0]}"
    assert IMPORTERS[cls.name] is cls
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cls.name)


@every_importer
def test_info_are_there(cls: type[Importer]) -> None:
    check_description(cls)


def test_what_is_skipped_by_design_is_said() -> None:
    """Each code of that kind stands in `formats NAME`, but for those that all formats share."""
    said = {code.name for cls in IMPORTERS.values() for code in cls.skips}
    declared = {name for name, code in DECLARED.items() if code.kind is ProblemKind.SKIPPED}
    tests = {name for name in declared if name.startswith("test.")}
    assert said == declared - tests - {EMPTY_TRACKS.name, OUTSIDE.name}


def test_codes_of_conversions_have_a_kind() -> None:
    importlib.import_module("traceconv.api")
    without = {name for name, code in DECLARED.items() if code.kind is None}
    assert all(name.startswith(("check.", "check-")) for name in without)


def test_what_tables_belong_to_exists() -> None:
    """The names that importers give to `belongs_to` are names of formats."""
    folder = Path(inspect.getfile(ChromeTrace)).parent.parent
    named = {
        name
        for path in folder.rglob("*.py")
        for call in re.findall(r"belongs_to\(\(([^)]*)\)", path.read_text(encoding="utf-8"))
        for name in re.findall(r'"([^"]+)"', call)
    }
    assert len(named) > 5
    assert named <= set(importers())


def test_what_can_write_a_log_exists() -> None:
    """The names that importers give to `runs_in` are names of formats."""
    runtimes = read(ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log").sources[0].runs_in
    assert len(runtimes) > 3
    assert set(runtimes) <= set(importers())


@every_importer
def test_the_module_shows_the_format(cls: type[Importer]) -> None:
    text = importlib.import_module(cls.__module__).__doc__ or ""
    assert re.search(r"^    \S", text, re.MULTILINE), "no indented sample of the format"


def options(cls: type[Importer]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)  # type: ignore[arg-type]


@every_importer
def test_options_cannot_be_changed(cls: type[Importer]) -> None:
    for option in options(cls):
        assert option.default is None or isinstance(option.default, bool | int | str), option.name
        with pytest.raises(AttributeError, match="cannot assign"):
            setattr(cls(), option.name, option.default)


@every_importer
def test_options_given_as_text(cls: type[Importer]) -> None:
    for option in options(cls):
        if isinstance(option.default, bool):
            assert getattr(configure(cls, {option.name: "TRUE"}), option.name) is True
        elif option.type != "str":
            assert getattr(configure(cls, {option.name: "7"}), option.name) == 7
        if option.type != "str":
            with pytest.raises(UsageError, match=option.name):
                configure(cls, {option.name: "x"})


@every_importer
def test_it_has_golden_cases(cls: type[Importer]) -> None:
    assert any(case.format == cls.name for case in CASES)


def test_golden_cases_have_an_importer() -> None:
    assert {case.format for case in CASES} <= IMPORTERS.keys()


# -- sniffing ---------------------------------------------------------------------------------------------------------


def heads() -> list[Head]:
    """What any importer may get to see: nothing, noise, and chunks of all formats."""
    rng = random.Random(20)
    data = [b"", b"\x00", b"\n", b"{", b"[", b"[]", b"{}", b"\xef\xbb\xbf", b"\xff\xfe\x00", b"null", b'"', b"-1e999"]
    data += [rng.randbytes(rng.choice([1, 10, 1000, 65536])) for _ in range(20)]
    data += [bytes(rng.choices(b'{}[]",:0123456789 \nabcXBE', k=500)) for _ in range(20)]
    for case in CASES:
        head = Source(case.input).head().data
        data += [head, head[: rng.randrange(len(head) + 1)], head[rng.randrange(len(head) + 1) :], head[::-1]]
    return [Head(chunk, rng.random() < 0.5, rng.choice(["x.json", "", "a.log"])) for chunk in data]


#: What chunks of a line may become, where it was cut, mixed with another or written by somebody else.
_ODD = [b"", b"x", b" x", b"-", b"-1", b"9" * 40, b"1e999", b"nan", b"0x1f", b"1.5.5", b"\xff", b'"', b"{", b"<", b","]
_CHUNKS = re.compile(rb"\d+|[A-Za-z_]+|[^\w\s]|\s+")


def odd_lines(lines: list[bytes], rng: random.Random) -> bytes:
    """Some lines of a head, each with one or two of its chunks gone, doubled, moved or replaced."""
    odd = []
    for line in rng.choices(lines, k=rng.randrange(1, 5)):
        chunks = _CHUNKS.findall(line[:1000]) or [b""]
        for _ in range(rng.randrange(1, 3)):
            at, other = rng.randrange(len(chunks)), rng.randrange(len(chunks))
            chunks[at] = rng.choice([chunks[other], chunks[at] + rng.choice(_ODD), rng.choice(_ODD)])
        odd.append(b"".join(chunks))
    return b"\n".join(odd)


@every_importer
def test_no_importer_fails_on_odd_lines(cls: type[Importer]) -> None:
    """Nobody looks at lines as closely as their own importer; tests.test_index shows others' lines to each."""
    for case in CASES:
        if case.format == cls.name:
            rng = random.Random(case.name)
            lines = Source(case.input).head().data.split(b"\n")[:30]
            for _ in range(100):
                assert isinstance(cls().sniff(Head(odd_lines(lines, rng), rng.random() < 0.5, "x")), Match), case.name


@every_importer
def test_nobody_claims_noise(cls: type[Importer]) -> None:
    rng = random.Random(3)
    for data in (b"", b"\n", bytes(1000), rng.randbytes(5000), b"Lorem ipsum dolor sit amet.\n" * 50):
        assert cls().sniff(Head(data, True, "")).certainty is Certainty.NO


@by_format(CASES)
def test_one_importer_claims_a_golden_input(cases: list[Case], tmp_path: Path) -> None:
    """The name of the format, whatever the file is called: claimed by it alone; nobody else is as sure."""
    with together() as each:
        for case in cases:
            unknown = tmp_path / "unknown"
            unknown.write_bytes(case.input.read_bytes())
            with each(case.name):
                check_claim(case, Source(case.input), Source(unknown))


def check_claim(case: Case, *sources: Source) -> None:
    for source in sources:
        try:
            assert identify(source)[0].name == case.format
        except UnrecognizedFormat:
            assert refused(case)  # what is refused anyway need not be known
            return
        sure = [name for name, other in IMPORTERS.items() if other().sniff(source.head()).certainty is Certainty.YES]
        assert sure in ([case.format], [])


def read_as(path: Path, cls: type[Importer]) -> None:
    """Read as `api.read` does; pass if the input is refused by an error that names it."""
    source = Source(path)
    out = Builder(SourceInfo(source.name, cls.name), cls.clock)
    try:
        configure(cls, {}).read(source, out)
    except TraceconvError as error:
        refusal = error.message
    else:
        validate(lay_out(out.finish()))
        return
    assert refusal.startswith(str(path)), refusal


@every_importer
def test_inputs_of_other_formats_are_read_or_refused(cls: type[Importer]) -> None:
    """`--from` names the wrong format: an error or a trace, but nothing else. A quarter of them read a case."""
    for case in CASES[list(IMPORTERS).index(cls.name) % 4 :: 4]:
        if case.format != cls.name:
            read_as(case.input, cls)
