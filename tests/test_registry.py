"""Who reads an input: the rules between importers, and options given as text."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.golden import ROOT
from traceconv import cli
from traceconv.errors import AmbiguousFormat, InputError, UnrecognizedFormat, UsageError
from traceconv.families import registry
from traceconv.families.importer import Importer, Match
from traceconv.families.index import FORMATS
from traceconv.families.registry import Certainty, answers, configure, identify, importer_class, importers
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.testing import check_description, unknown_attributes

#: Made after wprof's JSON_SCHEMA.md: a header, a stack, events whose `ts` is their end.
WPROF = (
    b'{"version": "3.1","dur": 1.000000000,"timer_freq_hz": 997,"stacks": ["timer"],"stack_cnt": 1,"pmus": []}\n'
    b'{"id": 0,"frames": ["[U] main+0x1a"]}\n'
    + b"".join(
        b'{"ts": 0.5001234%02d,"t": "hardirq","task": {"tid": 7,"pid": 7,"comm": "app"},"dur": 0.000011568,'
        b'"start_ts": 0.500111888,"cpu": 3,"irq": 193,"action": "nvme1q30"}\n' % n
        for n in range(20)
    )
)

YES, MAYBE, NO = Certainty.YES, Certainty.MAYBE, Certainty.NO


def an_importer(its_name: str, certainty: Certainty = NO) -> type[Any]:
    @dataclass(frozen=True)
    class Made(Importer):
        """An importer of a test."""

        flag: bool = False
        count: int = 3
        process: int | None = None
        unit: str = "us"

        name = its_name
        title = url = versions = record = line_up = "of a test"
        becomes = lost = ()
        clock = REALTIME

        def sniff(self, head: Head) -> Match:
            return Match(certainty, f"because of {its_name}")

        def read(self, source: Source, out: Builder) -> None:
            raise NotImplementedError

    return Made


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_importers_have_no_attributes_that_nothing_reads(name: str) -> None:
    assert unknown_attributes(importer_class(name)) == []


@pytest.mark.parametrize(("typo", "meant"), [("skip", "skips"), ("only_name", "only_named"), ("mark", "marks")])
def test_a_misspelled_attribute_is_found(typo: str, meant: str) -> None:
    cls = type("Misspelled", (importer_class("tensorrt"),), {typo: ()})
    assert unknown_attributes(cls) == [typo]
    with pytest.raises(AssertionError, match=f"no attribute '{typo}': is {meant} meant"):
        check_description(cls)


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Register nothing but importers that give these answers; they are called a, b, c, ..."""

    def register(*answers: Certainty) -> None:
        found = {name: an_importer(name, answer) for name, answer in zip("abcdef", answers, strict=False)}
        monkeypatch.setattr(registry, "FORMATS", {})
        monkeypatch.setattr(registry, "plugins", lambda: found)

    return register


@pytest.fixture
def source(tmp_path: Path) -> Source:
    path = tmp_path / "input"
    path.write_bytes(b"x")
    return Source(path)


@pytest.mark.parametrize("order", list(itertools.permutations([YES, MAYBE, MAYBE, NO])))
def test_one_yes_wins(order: tuple[Certainty, ...], only: Callable[..., None], source: Source) -> None:
    only(*order)
    cls, match = identify(source)
    assert cls.name == "abcd"[order.index(YES)]
    assert match == Match.yes(f"because of {cls.name}")


@pytest.mark.parametrize("order", list(itertools.permutations([MAYBE, NO, NO])))
def test_one_maybe_wins_without_a_yes(order: Any, only: Callable[..., None], source: Source) -> None:
    only(*order)
    assert identify(source)[0].name == "abc"[order.index(MAYBE)]


@pytest.mark.parametrize("answers", [(YES, YES, MAYBE), (YES, NO, YES), (MAYBE, MAYBE, NO)])
def test_two_equal_claims_are_ambiguous(answers: Any, only: Callable[..., None], source: Source) -> None:
    only(*answers)
    with pytest.raises(AmbiguousFormat) as error:
        identify(source)
    for name, answer in zip("abc", answers, strict=True):
        assert (f"{name}: because of {name}" in error.value.message) == (answer is max(answers))
    assert "--from" in error.value.hint


def test_nobody_claims_it(only: Callable[..., None], source: Source) -> None:
    only(NO, NO)
    with pytest.raises(UnrecognizedFormat, match="no known format; it begins with 'x'") as error:
        identify(source)
    assert "--from" in error.value.hint
    assert {name: match.reason for name, match in registry.answers(source).items()} == {
        "a": "because of a",
        "b": "because of b",
    }


@pytest.mark.parametrize(
    ("head", "what", "hint"),
    [
        (b"NVIDIA Tegra Profiler Report 36398880.\n", ".nsys-rep", "nsys export"),
        (b"U3w[END]NVIDIA Nsight Systems Stream 2023.4.4.54", ".qdstrm", "QdstrmImporter"),
        (b"Start (ns),Duration (ns),CorrId,Name\n1,900000,7,kernel\n", "nsys stats", "nsys export --type=sqlite"),
        (b"\nProcessing [x.sqlite]...\n Time (%)  Total Time (ns)  Instances\n", "nsys stats", "nsys export"),
        (b"\nProcessing [x.sqlite]...\nTime (%),Total Time (ns),Instances\n", "nsys stats", "nsys export"),
        (b"NVR\0\x02\0\0\0", ".ncu-rep", "ncu --import"),
        (
            b"[7] python@127.0.0.1\n  kernel (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
            b"    Section: Occupancy\n    ----------- ----------- ------------\n"
            b"    Metric Name Metric Unit Metric Value\n",
            "printed for people",
            "--csv",
        ),
        (
            b"[I] Throughput: 97 qps\n[I] === Profile (309 iterations ) ===\n[I]   Layer   Time (ms)\n",
            "trtexec of TensorRT printed for people",
            "--exportProfile=profile.json",
        ),
        (
            b"# started on Sat Nov 21 11:18:18 2026\n\n#           time \n     0.050133990 \n",
            "--metric-only",
            "without",
        ),
        (b" time,GHz,insn per cycle,\n     0.020118745,1.25,0.75,\n", "--metric-only", "how perf-stat"),
        (b"insn per cycle,GHz,\n0.62,1.2,\n", "--metric-only", "how perf-stat"),
        (b'{}\n{"metric-value" : ""}{"metric-value" : ""}\n', "--metric-only", "how perf-stat"),
        (b'{}\n{"interval" : 0.023954230}\n', "--metric-only", "how perf-stat"),
        (b'{"interval" : 0.023954230, "GHz" : "1.25", "insn per cycle" : "0.75"}\n', "--metric-only", "how perf-stat"),
        (
            b"Performance counter statistics:\n\n#      count  event_name   # count / runtime\n"
            b"  1,234,567  cpu-cycles   # 0.930426 GHz\nTotal test time: 0.022808 seconds.\n",
            "simpleperf stat",
            "formats perf-script",
        ),
        (b'"Sample_Timestamp","Exec_Mask","Dispatch_Id"\n5861,15,1\n', "rocprofv3", "how rocprof"),
        (
            b"ROCPROFV3 KERNEL_DISPATCH SUMMARY:\n\n| NAME | DOMAIN | CALLS | DURATION (nsec) |\n|---|---|---|---|\n",
            "printed for people",
            "how rocprof",
        ),
        (WPROF, "wprof", "Perfetto"),
    ],
)
def test_a_file_that_no_importer_reads(tmp_path: Path, head: bytes, what: str, hint: str) -> None:
    path = tmp_path / "input"
    path.write_bytes(head)
    with pytest.raises(UnrecognizedFormat) as error:
        identify(Source(path))
    assert what in error.value.reason
    assert hint in error.value.hint
    command = error.value.hint.partition(": traceconv ")[2]
    assert not command or CliRunner().invoke(cli.cli, command.split()).exit_code == 0


@pytest.mark.parametrize(
    ("tables", "what", "hint"),
    [
        (("HIP", "COPY", "OPS", "KERN"), "first rocprof", "results.json"),
        (("KERN",), "first rocprof", "results.csv"),
        (("rocpd_string_0", "rocpd_info_node_0", "rocpd_kernel_dispatch_0"), "rocpd", "rocpd convert"),
        (("KERNELS", "x_rocpd_info_node"), "", "--from"),
    ],
)
def test_a_database_that_no_importer_reads(tmp_path: Path, tables: tuple[str, ...], what: str, hint: str) -> None:
    path = tmp_path / "results.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        for name in tables:
            database.execute(f'CREATE TABLE {name} ("BeginNs" INTEGER, "EndNs" INTEGER, "Name" TEXT)')
    with pytest.raises(UnrecognizedFormat) as error:
        identify(Source(path))
    assert what in error.value.reason
    assert hint in error.value.hint


@pytest.mark.parametrize("case", ["v1-trace", "v1-kernels", "v1-counters", "two-processes", "sdk"])
def test_what_the_hints_for_databases_of_rocprof_name_is_read(case: str) -> None:
    (file,) = (ROOT / "rocprof" / case).glob("input.*")
    assert identify(Source(file))[0].name == "rocprof"


def test_a_session_of_the_visual_profiler_is_known_by_its_ending(tmp_path: Path) -> None:
    for name, reason in (("run.nvvp", "cannot read a session"), ("run.xml", "no known format")):
        path = tmp_path / name
        path.write_text('<?xml version="1.0" encoding="UTF-8"?>\n<session/>\n')
        with pytest.raises(UnrecognizedFormat, match=reason):
            identify(Source(path))


def test_a_known_file_that_none_reads_is_read_as_a_log_only_if_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(WPROF)
    assert identify(Source(path), ("timed-log",))[0].name == "timed-log"


@pytest.mark.parametrize(
    "phrase", ["=== Profile (10 iterations ) ===", "Performance counter statistics:", "ROCPROFV3 SUMMARY:"]
)
def test_a_log_that_quotes_such_a_file_is_read(tmp_path: Path, phrase: str) -> None:
    path = tmp_path / "run.log"
    lines = [f"2026-11-21T10:00:{second:02}.250Z worker: {phrase if second == 4 else 'step'}\n" for second in range(30)]
    for text in (lines, [f"{phrase}\n", *lines]):
        path.write_text("".join(text))
        assert identify(Source(path))[0].name == "timed-log"


def test_an_empty_file(only: Callable[..., None], tmp_path: Path) -> None:
    only(NO)
    path = tmp_path / "input"
    path.touch()
    with pytest.raises(UnrecognizedFormat, match="the file is empty"):
        identify(Source(path))


def test_importers_come_in_alphabetical_order(only: Callable[..., None]) -> None:
    assert list(importers()) == sorted(FORMATS)
    only(NO, NO)
    assert list(importers()) == ["a", "b"]


def test_importers_by_name(only: Callable[..., None]) -> None:
    only(NO, NO)
    assert importer_class("b").name == "b"
    with pytest.raises(UsageError, match="unknown format 'c'") as error:
        importer_class("c")
    assert error.value.hint == "known formats: a, b"


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("flag", "true", True),
        ("flag", "False", False),
        ("count", "-5", -5),
        ("process", "42", 42),
        ("unit", "", ""),
        ("unit", "true", "true"),
    ],
)
def test_options(option: str, text: str, value: object) -> None:
    cls = an_importer("a")
    made = configure(cls, {option: text})
    assert getattr(made, option) == value
    assert type(getattr(made, option)) is type(value)
    assert made == cls(**{option: value})


def test_defaults() -> None:
    cls = an_importer("a")
    assert configure(cls, {}) == cls()


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("flag", "yes", "option flag of a is true or false, not 'yes'"),
        ("flag", "1", "option flag of a is true or false, not '1'"),
        ("count", "1.5", "option count of a is a whole number, not '1.5'"),
        ("process", "", "option process of a is a whole number, not ''"),
        ("absent", "1", "a has no option 'absent'"),
        ("name", "x", "a has no option 'name'"),
    ],
)
def test_wrong_options(option: str, text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        configure(an_importer("a"), {option: text})
    assert error.value.message == message
    if "no option" in message:
        assert error.value.hint == "its options: flag, count, process, unit"


def test_the_order_of_certainty() -> None:
    assert NO < MAYBE < YES
    assert (Match.yes("r").certainty, Match.maybe("r").certainty, Match.no("r").certainty) == (YES, MAYBE, NO)


def test_an_importer_that_fails_does_not_keep_others_from_a_file(
    only: Callable[..., None], source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(YES, YES)
    broken = registry.importers()["a"]

    def fail(self: Any, head: Head) -> Match:
        raise ValueError("not a\nnumber")

    monkeypatch.setattr(broken, "sniff", fail)
    with pytest.warns(registry.SniffWarning, match=r"a could not look at it \(ValueError: 'not a\\nnumber'\)"):
        cls, _ = identify(source)
    assert cls.name == "b"
    with pytest.raises(registry.SniffWarning):  # as any warning in these tests: not hidden
        identify(source)


def test_a_family_is_meant() -> None:
    with pytest.raises(UsageError) as error:
        registry.formats_called("perff")
    assert error.value.hint.startswith("did you mean perf")
    assert "perf," in error.value.hint


def test_an_archive_that_is_damaged_is_no_fault_of_an_importer(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"")[:10] + b"damaged" * 9)
    with pytest.raises(InputError, match="nothing of it can be unpacked"):
        answers(Source(path))
