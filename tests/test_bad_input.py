"""Inputs that nobody should have, through the library: a message of one line that names the file, and nothing else."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
from pathlib import Path

import pytest

from tests.golden import ROOT, written
from tests.together import together
from traceconv.align import align
from traceconv.api import Output, convert, read
from traceconv.errors import (
    AmbiguousFormat,
    InputError,
    LostData,
    MalformedInput,
    OutputError,
    TraceconvError,
    UnrecognizedFormat,
    UsageError,
)
from traceconv.families.registry import importers
from traceconv.merging.traces import merge_traces
from traceconv.model.trace import Trace
from traceconv.reading import DAMAGED

ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"

RANDOM_BYTES = bytes((7 * at * at + 13 * at) % 251 for at in range(5000))


def refusal(path: Path, **how: str) -> TraceconvError:
    with pytest.raises(TraceconvError) as error:
        read(path, format=how.get("format"))
    assert type(error.value) is not TraceconvError
    assert error.value.message.startswith(f"{path}")
    assert "\n" not in error.value.message + error.value.hint
    return error.value


# -- not recognised ---------------------------------------------------------------------------------------------------

UNKNOWN = {
    "empty": b"",
    "one byte": b"\x00",
    "white space": b" \n\t\r\n",
    "zeros": bytes(10_000),
    "noise": RANDOM_BYTES,
    "prose": b"Lorem ipsum dolor sit amet.\n" * 100,
    "csv": b"a,b,c\n1,2,3\n",
    "number": b"9" * 400,
    "json text": b'"traceEvents"',
    "other json": b'{"a": {"b": [1, 2, 3]}}',
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "html": b"<!doctype html><title>404</title>",
    "elf": b"\x7fELF\x02\x01\x01" + bytes(100),
    "png": b"\x89PNG\r\n\x1a\n" + RANDOM_BYTES,
    "sqlite": b"SQLite format 3\x00" + bytes(100),
    "empty gzip": gzip.compress(b""),
    "utf-16 prose": "Lorem ipsum".encode("utf-16"),
    "latin-1": "naïve façade\n".encode("latin-1") * 10,
}


@pytest.mark.parametrize("data", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_no_profile(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(data)
    error = refusal(path)
    assert isinstance(error, UnrecognizedFormat)
    assert error.hint


@pytest.mark.parametrize("format", list(importers()))
def test_what_is_no_profile_with_the_format_named(format: str, tmp_path: Path) -> None:
    """Refused with a place, or a trace without anything in it."""
    path = tmp_path / "input"
    with together() as each:
        for name, data in UNKNOWN.items():
            with each(name):
                path.write_bytes(data)
                try:
                    counts = read(path, format=format).counts().values()
                except (MalformedInput, InputError) as error:  # the latter for what is not a database
                    message, hint = error.message, error.hint
                else:
                    assert sum(counts) == 0
                    continue
                assert message.startswith(f"{path}")
                assert hint


# -- cannot be read ---------------------------------------------------------------------------------------------------


def test_paths(tmp_path: Path) -> None:
    assert "no recording among the files" in refusal(tmp_path).message
    assert "No such file" in refusal(tmp_path / "absent").message
    assert isinstance(refusal(tmp_path / "absent", format="mxnet"), InputError)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert refusal(path).message == f"{path}: Permission denied"


def test_a_format_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown format 'nvprof2'") as error:
        read(KINETO, format="nvprof2")
    assert error.value.hint == "did you mean nvprof, xprof, nvprof-text?"
    with pytest.raises(UsageError) as error:
        read(KINETO, format="xyzzy")
    assert "onednn-verbose" in error.value.hint


# -- damaged ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("input", [ONEDNN, KINETO], ids=["onednn", "kineto"])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.999])
def test_a_file_that_ends_in_the_middle_of_a_line(input: Path, share: float, tmp_path: Path) -> None:
    data = input.read_bytes()
    cut = int(len(data) * share)
    while data[cut - 1 : cut + 1].strip() != data[cut - 1 : cut + 1]:
        cut -= 1
    path = tmp_path / "input"
    path.write_bytes(data[:cut])
    trace, whole = read(path), read(input)
    assert 0 < len(trace.slices.ts) <= len(whole.slices.ts)
    assert trace.sources[0].balance.even
    assert len(trace.sources[0].diagnostics) > 0, "a cut must be told"


def test_a_compressed_file_that_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "input.gz"
    path.write_bytes(gzip.compress(ONEDNN.read_bytes())[:-100])
    trace = read(path)
    assert 0 < len(trace.slices.ts) < len(read(ONEDNN).slices.ts)
    assert trace.sources[0].diagnostics.count(DAMAGED) == 1
    with pytest.raises(LostData):
        convert(path, Output(tmp_path / "out.json", strict=True))
    assert not (tmp_path / "out.json").exists()


def test_a_broken_archive(tmp_path: Path) -> None:
    path = tmp_path / "input.gz"
    data = bytearray(gzip.compress(ONEDNN.read_bytes()))
    data[-6] ^= 0xFF
    path.write_bytes(data)
    trace = read(path)
    assert trace.counts() == read(ONEDNN).counts()
    assert trace.sources[0].diagnostics.count(DAMAGED) == 1
    path.write_bytes(data[:12] + b"x" * 50)
    assert isinstance(refusal(path), InputError)


def test_encodings(tmp_path: Path) -> None:
    """Text that went through a Windows shell."""
    text = ONEDNN.read_text()
    expected = read(ONEDNN)
    for number, data in enumerate(
        [text.encode("utf-16"), text.encode("utf-8-sig"), text.replace("\n", "\r\n").encode()]
    ):
        path = tmp_path / str(number)
        path.write_bytes(data)
        trace = read(path)
        assert trace.slices.ts.tolist() == expected.slices.ts.tolist()
        assert trace.strings == expected.strings


# -- numbers ----------------------------------------------------------------------------------------------------------

NUMBERS = [
    *(
        "9" * 400,
        "-" + "9" * 400,
        "1e400",
        "1e-400",
        "18446744073709551616",
        "9223372036854775807",
        "-0",
        "0." + "1" * 400,
    ),
    *("4611686018427387.904", "-4611686018427387.904", "4611686018427387.905", "1E5", "NaN", "Infinity", "null", '"5"'),
    *("[]", "{}", "true", '""', "0x10", "1_000"),
]


def converted(path: Path) -> Trace:
    """As `traceconv convert` does, without the file: read, aligned, written in both forms."""
    trace = read(path)
    merged = merge_traces([trace], align([trace]))
    for output in ("perfetto", "chrome-json"):
        assert written(merged, output)
    return trace


@pytest.mark.parametrize(
    "event",
    [
        '{"ph":"X","name":"x","pid":1,"tid":2,"ts":NUMBER,"dur":5}',
        '{"ph":"X","name":"x","pid":1,"tid":2,"ts":5,"dur":NUMBER}',
        '{"ph":"X","name":"x","pid":1,"tid":2,"ts":NUMBER,"dur":NUMBER}',
        '{"ph":"B","name":"x","pid":1,"tid":2,"ts":-4611686018427387},{"ph":"E","pid":1,"tid":2,"ts":NUMBER}',
        '{"ph":"i","name":"x","pid":1,"tid":2,"ts":NUMBER}',
        '{"ph":"C","name":"x","pid":1,"ts":NUMBER,"args":{"v":1}}',
        '{"ph":"C","name":"x","pid":1,"ts":5,"args":{"v":NUMBER}}',
        '{"ph":"X","name":"x","pid":NUMBER,"tid":NUMBER,"ts":5,"dur":5}',
        '{"ph":"X","name":"x","pid":1,"tid":2,"ts":5,"dur":5,"args":{"v":NUMBER}}',
        '{"ph":"b","name":"x","cat":"c","id":NUMBER,"pid":1,"tid":2,"ts":5},'
        '{"ph":"e","name":"x","cat":"c","id":NUMBER,"pid":1,"tid":2,"ts":NUMBER}',
        '{"ph":"P","name":"x","pid":1,"tid":2,"ts":NUMBER,"sf":NUMBER,"weight":NUMBER}',
    ],
)
def test_odd_numbers_in_a_chrome_trace(event: str, tmp_path: Path) -> None:
    path = tmp_path / "input.json"
    other = '{"ph":"X","name":"other","pid":1,"tid":3,"ts":1,"dur":1}'
    with together() as each:
        for number in NUMBERS:
            with each(number):
                path.write_text(f'{{"traceEvents":[{other},{event.replace("NUMBER", number)}]}}')
                trace = converted(path)
                assert trace.sources[0].balance.even
                assert "other" in [trace.strings[name] for name in trace.slices.name]


def test_odd_numbers_in_a_log(tmp_path: Path) -> None:
    lines = ONEDNN.read_bytes().splitlines(keepends=True)
    index = next(i for i, line in reversed(list(enumerate(lines))) if b",exec," in line)
    fields = lines[index].rstrip().split(b",")
    places = [place for place, field in enumerate(fields) if field.replace(b".", b"").isdigit()]
    path = tmp_path / "input.log"
    with together() as each:
        for number, place in itertools.product(NUMBERS, places):
            with each((number, place)):
                changed = [*fields[:place], number.encode(), *fields[place + 1 :]]
                path.write_bytes(b"".join([*lines[:index], b",".join(changed) + b"\n", *lines[index + 1 :]]))
                assert converted(path).sources[0].balance.even


VALUES = ["1e999", '{"rank":1e999,"id":1e999}', '[{"id":1e999,"name":1e999}]', "9" * 400, "[" * 5000 + "]" * 5000]


#: The formats that read the events of any Chrome JSON; all others refuse it.
READ_ANY_EVENTS = {
    *("chrome-trace", "furiosa", "mxnet", "onnxruntime", "pytorch-kineto", "rocprof", "tensorflow-profiler"),
    *("tvm-execution-trace", "viztracer"),
}


@pytest.mark.parametrize("format", list(importers()))
def test_odd_numbers_beside_the_events(format: str, tmp_path: Path) -> None:
    """Each top-level value that any of the formats knows, as an object and as a list, with a number beyond doubles."""
    keys = ["distributedInfo", "deviceProperties", "otherData", "metadata", "baseTimeNanoseconds", "displayTimeUnit"]
    keys += ["stackFrames", "samples", "systemTraceEvents", "schemaVersion", "traceName", "host_name"]
    event = '{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":1,"dur":2}'
    count = 0
    for key in keys:
        for value in VALUES:
            path = tmp_path / "input.json"
            path.write_text(f'{{"{key}":{value},"traceEvents":[{event}]}}')
            with contextlib.suppress(MalformedInput, InputError):
                trace = read(path, format=format)
                assert trace.sources[0].balance.even
                count += 1
    expected = len(keys) * len(VALUES) if format in READ_ANY_EVENTS else 0
    assert count == expected, "an input with nothing of the format is not refused: raise source.malformed(...)"


@pytest.mark.parametrize("depth", [10, 1000, 100_000])
def test_deep_args(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "input.json"
    args = '{"a":' * depth + "1" + "}" * depth
    path.write_text(f'{{"traceEvents":[{{"ph":"X","name":"x","pid":1,"tid":2,"ts":5,"dur":5,"args":{args}}}]}}')
    trace = converted(path)
    assert trace.sources[0].balance.even
    assert len(trace.slices.ts) == 1 or trace.sources[0].diagnostics.lost


TEXTS = [
    "",
    "\\u0000",
    "\\ud800",
    "\\udc00\\ud800",
    "\\ud83d\\ude00",
    "\u2028",
    "[bold]",
    "%s",
    "\\n",
    "x" * 100_000,
    "\x7f",
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_odd_texts(text: str, tmp_path: Path) -> None:
    path = tmp_path / "input.json"
    event = f'"name":"{text}","cat":"{text}","pid":"{text}","tid":"{text}","args":{{"{text}":"{text}"}}'
    names = f'{{"ph":"M","name":"process_name","pid":"{text}","tid":0,"args":{{"name":"{text}"}}}}'
    counter = f'{{"ph":"C","name":"{text}","pid":1,"ts":3,"args":{{"{text}":1}}}}'
    path.write_text(f'{{"traceEvents":[{names},{counter},{{"ph":"X","ts":1,"dur":1,{event}}}]}}', encoding="utf-8")
    trace = converted(path)
    assert len(trace.slices.ts) == 1
    assert len(trace.counters.ts) == 1


# -- ambiguous --------------------------------------------------------------------------------------------------------


def test_ambiguity_is_an_error_of_its_own() -> None:
    assert not issubclass(AmbiguousFormat, UnrecognizedFormat)
    for cls in (AmbiguousFormat, InputError, MalformedInput, OutputError, UnrecognizedFormat, UsageError):
        assert issubclass(cls, TraceconvError)
    assert UsageError("x").exit_code == 2
    assert MalformedInput("a.json", "line 3", "found x", hint="h").message == "a.json:line 3: found x"


def test_messages_are_one_line() -> None:
    error = InputError("a\nb\x1b[31m\udcff", hint="c\r\nd")
    assert error.message == "a\\nb\\x1b[31m\\udcff"
    assert error.hint == "c\\r\\nd"
    assert str(error) == error.message
    json.dumps(error.message).encode()
