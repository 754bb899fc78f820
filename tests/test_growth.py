"""Texts that stand in the input once and are used by many events: what is made of them is counted while it is made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.golden import ROOT
from tests.kernels import without
from tests.make_perfetto import Packets
from traceconv.api import Output, convert, export, merge, read, write
from traceconv.errors import InputError, OutputError
from traceconv.families.chrome import writer as chrome_writer
from traceconv.families.chrome.writer import ChromeJson
from traceconv.io import limits
from traceconv.io.limits import Limits
from traceconv.writers import Sink

MB = 1 << 20
LONG = "n" * 20_000
EVENTS = 400
FEW = Limits(ratio=10)

pytestmark = pytest.mark.parametrize("kernels", [nullcontext, without], ids=["kernel", "python"])


@pytest.fixture(autouse=True)
def little_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FREE_BYTES", MB)


def interned(change: Callable[[Any], Any] = lambda event: None, events: int = EVENTS) -> bytes:
    """A trace whose events may use long texts, each of which is in it once."""
    packets = Packets()
    packets.descriptor(5, "work")
    data = packets.add(sequence_flags=1).interned_data
    data.event_names.add(iid=1, name=LONG)
    data.event_names.add(iid=2, name="short")
    data.event_categories.add(iid=1, name=LONG)
    data.debug_annotation_names.add(iid=1, name="key")
    data.debug_annotation_string_values.add(iid=1, str=LONG.encode())
    data.function_names.add(iid=1, str=LONG.encode())
    data.frames.add(iid=1, function_name_id=1)
    data.callstacks.add(iid=1, frame_ids=[1] * 3)
    for ts in range(events):
        event = packets.event(ts, "INSTANT", name_iid=2)
        change(event)
    return packets.bytes()


def long_name(event: Any) -> None:
    event.name_iid = 1


def long_arg(event: Any) -> None:
    event.debug_annotations.add(name_iid=1, string_value_iid=1)


def long_args_of_other_names(event: Any) -> None:
    for number in range(200):
        event.debug_annotations.add(name=f"{number}", string_value_iid=1)


def long_categories(event: Any) -> None:
    event.category_iids.extend([1] * 200)


def long_stacks(event: Any) -> None:
    event.callstack_iid = 1


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_a_long_name_of_many_events_does_not_fill_the_disk(kernels: Any, ending: str, tmp_path: Path) -> None:
    path, output = tmp_path / "a.pftrace", tmp_path / f"out.{ending}"
    path.write_bytes(interned(long_name))
    with kernels():
        with pytest.raises(OutputError, match="the output takes more than") as error:
            convert(path, output, limits=FEW)
        assert error.value.hint.endswith("--max-ratio 0 writes it without this limit")
        assert list(tmp_path.iterdir()) == [path]
        assert "a .pftrace holds each name once" in error.value.hint
        convert(path, tmp_path / "out.pftrace", limits=FEW)
        assert (tmp_path / "out.pftrace").stat().st_size < 2 * path.stat().st_size
        with pytest.raises(OutputError):
            write(read(path, limits=FEW), output)
        convert(path, Output(output), limits=Limits(ratio=0))
        assert len(read(output, limits=Limits(ratio=0)).instants.ts) == EVENTS


def test_tables_in_csv_do_not_fill_the_disk(kernels: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.pftrace"
    path.write_bytes(interned(long_name))
    with kernels():
        with pytest.raises(OutputError, match="the output takes more than") as error:
            export([path], tmp_path / "out.csv", limits=FEW)
        assert error.value.hint == "a .parquet holds each text once; --max-ratio 0 writes it without this limit"
        assert list(tmp_path.iterdir()) == [path]
        export([path], tmp_path / "out.parquet", limits=FEW)
        export([path], tmp_path / "out.csv", limits=Limits(ratio=0))
    assert (tmp_path / "out.csv" / "instants.csv").read_text().count(LONG) == EVENTS


def test_tables_of_a_database_do_not_fill_memory(kernels: Any, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path, output = tmp_path / "a.pftrace", tmp_path / "out.duckdb"
    path.write_bytes(interned(long_name))
    with kernels():
        with pytest.raises(OutputError, match="the output takes more than") as error:
            export([path], output, limits=FEW)
        assert error.value.hint == "a .parquet holds each text once; --max-ratio 0 writes it without this limit"
        assert list(tmp_path.iterdir()) == [path]
        export([path], output, limits=Limits(ratio=0))
    with duckdb.connect(str(output), read_only=True) as connection:
        assert connection.execute("select distinct name, count(*) over () from instants").fetchall() == [(LONG, EVENTS)]


def test_answers_that_repeat_a_text_are_refused(kernels: Any, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    path = tmp_path / "a.pftrace"
    path.write_bytes(interned(long_name))
    with kernels():
        trace = read(path, limits=FEW)
    with pytest.raises(OutputError, match="the output takes more than") as error:
        trace.sql("select name from instants")
    assert error.value.hint == "ask for fewer rows, or a part of the text; --max-ratio 0 writes it without this limit"
    assert trace.sql("select left(name, 9) as part from instants").to_arrow().num_rows == EVENTS
    assert read(path, limits=Limits(ratio=0)).sql("select name from instants").to_arrow().num_rows == EVENTS


@pytest.mark.parametrize("change", [long_arg, long_args_of_other_names, long_categories, long_stacks])
def test_texts_that_events_repeat_count_while_they_are_read(
    kernels: Any, change: Callable[[Any], Any], tmp_path: Path
) -> None:
    path = tmp_path / "a.pftrace"
    path.write_bytes(interned(change))
    with kernels():
        with pytest.raises(InputError, match=r"(repeat texts|hold args) of more than .* over 10 times") as error:
            read(path, limits=FEW)
        assert error.value.hint == "--max-ratio 0 reads it without this limit"
        path.write_bytes(interned(change, events=2))
        assert len(read(path, limits=Limits(ratio=0)).instants.ts) == 2


def test_paths_of_tracks_count(kernels: Any, tmp_path: Path) -> None:
    path, packets = tmp_path / "a.pftrace", Packets()
    packets.descriptor(5, LONG)
    for number in range(EVENTS):
        packets.descriptor(10 + number, f"{number}", parent_uuid=5)
        packets.event(number, "INSTANT", 10 + number, name="i")
    path.write_bytes(packets.bytes())
    with kernels():
        with pytest.raises(InputError, match="have tracks whose paths take"):
            read(path, limits=FEW)
        assert len(read(path, limits=Limits(ratio=0)).tracks) == EVENTS + 1


@pytest.mark.parametrize(
    "case", ["perfetto/sdk", "perfetto/perf-samples", "pytorch-kineto/torch-convnet-process", "perf-script/stacks"]
)
def test_the_size_of_the_parts_changes_no_byte(
    kernels: Any, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events with names, categories, args, flows, samples, stack frames and log entries."""
    (path,) = (ROOT / case).glob("input.*")
    trace, whole, parts = merge([path]).trace, list[bytes](), list[bytes]()
    for many in (whole, parts):
        monkeypatch.setattr(Sink, "write", lambda self, data, many=many: many.append(bytes(data)))
        with kernels():
            ChromeJson().write(trace, BytesIO())
        monkeypatch.setattr(chrome_writer, "_PART_BYTES", 10)
    assert b"".join(parts) == b"".join(whole)
    assert len(parts) > len(whole)


def test_what_is_written_at_once_is_bounded(kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, parts = tmp_path / "a.pftrace", list[int]()
    path.write_bytes(interned(long_name))
    trace = read(path, limits=Limits(ratio=0))
    monkeypatch.setattr(chrome_writer, "_PART_BYTES", 100_000)
    monkeypatch.setattr(Sink, "write", lambda self, data: parts.append(len(data)))
    with kernels():
        ChromeJson().write(trace, BytesIO())
    assert sum(parts) > EVENTS * len(LONG)
    assert max(parts) < 200_000
