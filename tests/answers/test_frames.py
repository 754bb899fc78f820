"""Data frames and exported tables, against the trace in memory."""

from __future__ import annotations

import csv
import gc
import json
import os
import random
import re
import shutil
import sys
import weakref
import xml.etree.ElementTree as ElementTree
from contextlib import nullcontext
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import traceconv
from tests import commands, kernels
from tests.golden import ROOT, Case
from tests.shapes import every_shape
from traceconv.answers import frames as frames_module
from traceconv.answers.frames import Frames
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.summaries import overview
from traceconv.api import read
from traceconv.cli import cli
from traceconv.database import table_files
from traceconv.errors import OutputError, UsageError
from traceconv.model.args import ABSENT, Args, arg_values
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.layout import lay_out
from traceconv.model.numbers import format_short, number_or_text
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import TABLES, Trace, take
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of
from traceconv.model.track_table import Track

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
RANKS = [ROOT / "pytorch-kineto" / f"nccl-rank{rank}" / "input.json" for rank in (0, 1)]
CUDA = ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"
TABLE_NAMES = (
    "recordings",
    "clocks",
    "tracks",
    "slices",
    "instants",
    "counters",
    "flows",
    "samples",
    "logs",
    "problems",
    "kernels",
    "launches",
    "steps",
    "collectives",
)
LAYERS = ROOT.parent / "tests" / "data" / "layers"
EMPTY = {name: frame.to_arrow().schema for name, frame in traceconv.frames([CUDA]).items()}


def _input_on(track: Track, table: str, ts: int) -> int:
    return [source for since, source in track.inputs_over_time(table) if since <= ts][-1]


@every_shape
def test_the_tables_are_those_of_the_trace(case: Case, tmp_path: Path) -> None:
    trace = case.merged(case.traces(tmp_path))
    frames = Frames(trace)
    assert tuple(frames) == TABLE_NAMES
    start = (trace.span() or (0, 0))[0]
    for name, frame in frames.items():
        table = frame.to_arrow()
        table.validate(full=True)
        assert table.schema.equals(EMPTY[name]), "the columns are those of any other trace"
        for column in table.columns:
            assert not (pa.types.is_integer(column.type) and column.null_count)
        if name in TABLES:
            rows = getattr(trace, name)
            assert table["origin"].to_pylist() == rows.origin.tolist()
            for column in {"name", "category", "text", "source"} & set(rows.__slots__):
                assert table[column].to_pylist() == [trace.strings[number] for number in getattr(rows, column)]
            if hasattr(rows, "ts"):
                assert table["start_ns"].to_pylist() == (rows.ts - start).tolist()
                assert table["input"].to_pylist() == [
                    trace.sources[_input_on(trace.tracks[track], name, ts)].name
                    for track, ts in zip(rows.track, rows.ts.tolist(), strict=True)
                ]
            if hasattr(rows, "args_at"):
                texts = [bytes(trace.args.view(*at)) for at in zip(rows.args_at, rows.args_len, strict=True)]
                assert table["args"].to_pylist() == [text.decode() if text else None for text in texts]
    slices = frames.slices.to_arrow()
    assert slices["duration_ns"].to_pylist() == trace.slices.dur.tolist()


def test_where_an_event_is_and_what_is_in_it() -> None:
    table = traceconv.frames([CUDA], args=("stream", "correlation", "nothing")).slices.to_pandas()
    kernel = table[table.name == "sgemm_128x128"].iloc[0]
    assert (kernel.process, kernel.pid, kernel.track_name, kernel["rank"]) == ("", -1, "stream 7", 3)
    assert kernel["args.stream"] == 7
    assert table["args.nothing"].isna().all()
    step = table[table.name == "aten::mm"].iloc[0]
    assert table.iloc[step.parent]["name"] == "ProfilerStep#2"
    assert (step.depth, step.pid, step.tid) == (1, 1, 1)
    assert json.loads(step.args)["External id"] == 5


def test_the_tables_are_named() -> None:
    path = Path(__file__).parents[2] / "golden" / "pytorch-kineto" / "torch-convnet-process" / "input.json"
    assert repr(traceconv.frames([path])).startswith("<Frames: recordings, clocks, tracks, slices, ")


def test_lanes_are_one_track() -> None:
    out = _builder()
    thread = out.tracks.thread(out.tracks.process("p", pid=1), 2, "t")
    for start in range(3):
        out.slice(thread, start, 10, "overlapping")
    frames = Frames(lay_out(out.finish()))
    slices = frames.slices.to_pandas()
    assert len(slices) == 3
    assert set(slices.track_name) == {"t"}
    assert set(slices.tid) == {2}
    assert slices.track.nunique() == 1
    assert list(frames.tracks.to_pandas().name) == ["p", "t"]


def _builder() -> Builder:
    return Builder(SourceInfo("<b>.json", "test"), ClockDomain("test", Zero.UNKNOWN, Run.MONOTONIC))


def test_all_packages_see_the_same(tmp_path: Path) -> None:
    frame = traceconv.frames([KINETO, ONEDNN]).slices
    arrow, pandas, polars = frame.to_arrow(), frame.to_pandas(), frame.to_polars()
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    for name in ("start_ns", "name", "self_ns", "pid"):
        assert arrow[name].to_pylist() == pandas[name].tolist() == polars[name].to_list()
    assert pandas.start_ns.dtype == np.int64
    assert pa.table(frame).equals(arrow), "Arrow's C interface"
    assert pa.RecordBatchReader.from_stream(frame).read_all().num_rows == arrow.num_rows
    html = frame._repr_html_()
    assert html.count("<tr>") == 51
    assert f"<p>{arrow.num_rows - 50} more rows</p>" in html


def test_columns_are_shared_where_they_can_be() -> None:
    trace = traceconv.read(CUDA)
    column = Frames(trace).slices.to_arrow()["duration_ns"].chunk(0)
    assert column.buffers()[1].address == trace.slices.dur.ctypes.data


def test_integers_beside_unknown_values_stay_exact_in_pandas() -> None:
    values = [2**53 + 1, ABSENT]
    column = frames_module._typed(pa, values)
    assert column.type == pa.int64()
    assert column.to_pandas(integer_object_nulls=True).tolist() == [2**53 + 1, None]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([2**53 + 1, 2.5], pa.string()),
        ([2**63], pa.float64()),
        ([2**63 + 1], pa.string()),
        ([10**400], pa.string()),
        ([10**400, 1.5], pa.string()),
        ([True, 1], pa.string()),
        (["a", 1], pa.string()),
        ([[1, 2]], pa.string()),
        ([ABSENT], pa.string()),
        ([None], pa.string()),
    ],
)
def test_types_of_args(values: list[object], expected: pa.DataType) -> None:
    assert frames_module._typed(pa, values).type == expected


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("keys", [["Ev Idx", "no such"], ["Input Dims", "Input type"], ["no such"], ['a "b', "Ev Idx"]])
def test_equal_args_are_decoded_once(keys: list[str], compiled: bool) -> None:
    trace = traceconv.read(KINETO)
    slices = trace.slices
    with nullcontext() if compiled else kernels.without():
        numbers, values = arg_values(trace.args, slices.args_at, slices.args_len, keys)
    for number, at, length in zip(numbers, slices.args_at, slices.args_len, strict=True):
        whole = json.loads(bytes(trace.args.view(at, length))) if length else {}
        assert values[number] == tuple(whole.get(key, ABSENT) for key in keys)
    if keys[0] == "Input Dims":
        assert len(values) == len(set(map(repr, values))) < len(np.unique(slices.args_at)) / 2


def test_absent_values_are_apart_from_others() -> None:
    objects = [b'{"a":1}', b'{"b":1}', b'{"a":"1,","b":2}', b'{"a":1,"b":","}', b"{}", b'{"a":1}', b""]
    at, length = np.cumsum([0, *map(len, objects[:-1])]), np.array(list(map(len, objects)), np.int32)
    numbers, values = arg_values(Args([b"".join(objects)]), at, length, ["a", "b"])
    expected = [(1, ABSENT), (ABSENT, 1), ("1,", 2), (1, ","), (ABSENT, ABSENT), (1, ABSENT), (ABSENT, ABSENT)]
    assert [values[number] for number in numbers.tolist()] == expected
    assert numbers[0] == numbers[5]


@pytest.mark.parametrize("together", [1, 200, 1 << 24])
def test_args_of_any_form_have_the_same_values_with_and_without_the_kernel(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceconv.model.args._DECODED", together)
    random_ = random.Random(5)
    keys = ["a", "b", "key of a", "", "é", 'q"', "\\"]
    values = [
        0,
        -1,
        1.5,
        10**400,
        True,
        None,
        "a",
        '"',
        "\\",
        "},{",
        "é\n",
        [],
        [[1, 2], []],
        [{"a": 1}],
        {"b": {"a": 3}},
    ]

    def text() -> bytes:
        pairs = [(random_.choice(keys), random_.choice(values)) for _ in range(random_.randrange(5))]  # also twice
        spaces = [random_.choice(["", "", "", "", " ", "\n"]) for _ in range(4)]
        members = (
            f"{json.dumps(key)}{spaces[0]}:{spaces[1]}{json.dumps(value, ensure_ascii=False)}{spaces[2]}"
            for key, value in pairs
        )
        return f"{{{spaces[3]}{','.join(members)}}}".encode() if random_.random() < 0.9 else b""

    objects = [text() for _ in range(3000)]
    at, length = np.cumsum([0, *map(len, objects[:-1])]), np.array(list(map(len, objects)), np.int32)
    args, wanted = Args([b"".join(objects)]), ["b", "", "a", "é"]
    expected = [json.loads(written or b"{}", parse_int=number_or_text) for written in objects]
    for way in (nullcontext(), kernels.without()):
        with way:
            for chosen in (wanted, [*wanted, "key of a", *map(str, range(5))], [*wanted, 'q"']):
                numbers, found = arg_values(args, at, length, chosen)
                for number, members in zip(numbers.tolist(), expected, strict=True):
                    assert found[number] == tuple(members.get(key, ABSENT) for key in chosen)


def test_hostile_names() -> None:
    out = _builder()
    names = ["a\0b", "<script>alert(1)</script>", "=1+1", "x" * 1_000_000, '"', "é\n"]
    thread = out.tracks.thread(out.tracks.process("p", pid=1), 2, "t")
    for start, name in enumerate(names):
        out.slice(thread, start * 10, 5, name)
    frame = Frames(lay_out(out.finish())).slices
    assert frame.to_polars()["name"].to_list() == frame.to_pandas().name.tolist() == names
    assert "<script>" not in frame._repr_html_()


def test_args_in_several_parts() -> None:
    args = Args([b'{"a":1}{"b":2}', b"", b'{"c":3}'])
    at, length = np.array([14, 0, 21, 7, 0, 0]), np.array([7, 7, 0, 7, 0, 7])
    assert bytes(args.joined(at, length)) == b'{"c":3}{"a":1}{"b":2}{"a":1}'
    long = b'{"d":"%s"}' % (b"x" * 1000)
    several = Args([b'{"a":1}' + long, long])
    at, length = np.array([7, 0, 7 + len(long)]), np.array([len(long), 7, len(long)])
    assert bytes(several.joined(at, length)) == long + b'{"a":1}' + long
    assert bytes(Args().joined(np.array([0]), np.array([0]))) == b""


@pytest.mark.parametrize("key", ['a"b', "a\\b", "a\nb", "é", "args.a"])
def test_hostile_keys_of_args(key: str) -> None:
    trace = _with_args({key: 1}, {key: "x"}, {}, {key: None})
    column = Frames(trace, args=[key]).slices.to_arrow()[f"args.{key}"]
    assert column.to_pylist() == ["1", "x", None, None]
    (operations,) = traceconv.report(trace, traceconv.Questions(["operations"], by=[f"arg:{key}"]))
    assert {row[0] for row in operations.rows} == {"1", "x", "", "null"}


@pytest.mark.parametrize("number", ["1e400", "-" + "9" * 5000, "9" * 400])
def test_numbers_that_are_too_large_are_texts(number: str, tmp_path: Path) -> None:
    begin, end = '{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2,"args":{"n":', ',"k":7}}]}'
    (tmp_path / "a.json").write_text(begin + number + end)
    slices = traceconv.frames([tmp_path / "a.json"], args=["n", "k"]).slices.to_arrow()
    assert slices["args.n"].to_pylist() == [number]
    assert slices["args.k"].to_pylist() == [7]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are texts")
def test_names_that_are_no_text(tmp_path: Path) -> None:
    names = [os.fsdecode(b"a\xfe.json"), os.fsdecode(b"a\xff.json")]
    for name in names:
        (tmp_path / name).write_bytes(CUDA.read_bytes())
    policy = traceconv.Policy(on_ambiguous="separate")
    frames = traceconv.frames([tmp_path / name for name in names], policy=policy)
    shown = frames.recordings.to_arrow()["input"].to_pylist()
    assert shown == ["a\N{REPLACEMENT CHARACTER}.json"] * 2
    assert set(frames.slices.to_pandas().input) == set(frames.slices.to_polars()["input"]) == set(shown)
    with pytest.raises(UsageError, match="must have names"):
        traceconv.frames([CUDA], args=[os.fsdecode(b"\xff")])


def _with_args(*args: dict[str, object]) -> Trace:
    out = _builder()
    thread = out.tracks.thread(out.tracks.process("p", pid=1), 2, "t")
    for start, values in enumerate(args):
        out.slice(thread, start * 10, 5, "name", args=values)
    return lay_out(out.finish())


def test_sections_are_frames_too() -> None:
    (operations,) = traceconv.report([CUDA], traceconv.Questions(sections=["operations"]))
    assert operations.to_pandas().to_dict("records")[0]["self_ns"] == operations.records()[0]["self_ns"]
    assert operations.to_polars().columns == [column.name for column in operations.columns]
    trace = traceconv.read(CUDA)
    whole = {section.name: section for section in traceconv.report(trace)}
    assert next(iter(whole)) == "summary"
    assert whole["operations"].records() == operations.records()


def test_notebooks_show_sections_with_their_notes_and_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (operations,) = traceconv.report([CUDA], traceconv.Questions(sections=["operations"]))
    operations.notes.append("<script>")
    operations.rows *= 20
    html = operations._repr_html_()
    assert html.startswith("<h4>operations</h4><table>")
    assert "cudaLaunchKernel" in html
    assert html.count("<tr>") == 51
    assert f"<p>{len(operations.rows) - 50} more rows</p>" in html
    assert all(f"<p>{escape(note)}</p>" in html for note in operations.notes)
    assert "<script>" not in html
    with pytest.raises(UsageError, match="pyarrow is not installed"):
        operations.to_arrow()


def test_notebooks_show_a_report_with_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    report = traceconv.report([CUDA])
    html = report._repr_html_()
    assert html.startswith("<h4>summary</h4><ul><li>")
    assert [section.name for section in report if section.rows] == re.findall("<h4>(.*?)</h4>", html)
    (kernels,) = (section for section in report if section.name == "kernels")
    total = format_short(kernels.records()[0]["total_ns"])
    assert f"<td>{total}</td>" in html


def test_a_trace_shows_a_strip_of_its_time_and_its_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    trace = traceconv.read(CUDA)
    picture = trace.show()
    summary, unanswered = traceconv.report(trace, traceconv.Questions(["summary"]))
    assert repr(picture).splitlines() == [*summary.sentences, *unanswered.sentences]
    html = picture._repr_html_()
    assert html.index("<svg") < html.index(f"<li>{escape(summary.sentences[0])}</li>")
    drawing = ElementTree.fromstring(f"<div>{html}</div>")
    lanes = [row[0].text for row in drawing.iter("tr")]
    assert lanes[-1] == "GPU 1 (NVIDIA A100-SXM4-80GB), rank 3"
    assert len(lanes) == len(list(drawing.iter("svg")))


def test_a_trace_without_times_shows_its_summary_alone() -> None:
    html = traceconv.read(ROOT / "nvprof-text" / "summary" / "input.log").show()._repr_html_()
    assert "<svg" not in html
    assert "No slices are recorded" in html


def test_a_trace_that_the_library_did_not_return_says_what_shows_it() -> None:
    with pytest.raises(traceconv.UsageError, match=r"not returned by traceconv.read or merge") as caught:
        replace(traceconv.read(CUDA), picture_of=None).show()
    assert caught.value.hint == "traceconv.report(trace) shows its tables"


def test_an_export_says_what_was_lost(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(KINETO.read_bytes()[:60_000])
    assert traceconv.frames([KINETO]).losses == []
    (loss,) = traceconv.frames([cut]).losses
    assert loss.startswith("cut.json: lost: the file ends inside an event")
    result = CliRunner().invoke(cli, ["export", str(cut), "-o", str(tmp_path / "out.csv")])
    assert result.exit_code == 0
    assert result.stderr.startswith(loss)
    quiet = CliRunner().invoke(cli, ["export", str(cut), "-o", str(tmp_path / "quiet.csv"), "--quiet"])
    assert not quiet.output


def test_an_export_says_the_warnings_of_the_alignment(tmp_path: Path) -> None:
    """The two ranks do not name their host."""
    (warning,) = traceconv.frames(RANKS).warnings
    assert warning.startswith(f"warning: {RANKS[0]}: it states no name that identifies its host, so its clock")
    assert warning.endswith(f"--same-machine; likewise {RANKS[1]}")
    command = ["export", *map(str, RANKS), "-o", str(tmp_path / "out.csv")]
    assert "--same-machine; likewise " in CliRunner().invoke(cli, command).stderr
    assert not CliRunner().invoke(cli, [*command, "--force", "--quiet"]).output
    assert traceconv.frames(RANKS, constraints=traceconv.Constraints(same_machine=True)).warnings == []
    told = CliRunner().invoke(cli, [*command, "--force", "--verbose"]).stderr
    assert "On one time axis: " in told
    assert told.count("it states no name that identifies its host") == 1


def test_an_export_names_args_that_no_event_has(tmp_path: Path) -> None:
    command = ["export", str(KINETO), "--arg", "Ev Idx", "--arg", "nope", "-o", str(tmp_path / "a.arrow")]
    said = CliRunner().invoke(cli, command).stderr
    assert "--arg nope: no event here has it, so its columns are empty\n" in said
    assert said.count("--arg") == 1


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_an_export_holds_what_the_frames_hold(ending: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"one.{ending}", tmp_path / f"two.{ending}"
    for folder in (first, second):
        result = CliRunner().invoke(cli, ["export", str(KINETO), str(ONEDNN), "-o", str(folder), "--arg", "Ev Idx"])
        assert result.exit_code == 0, result.output
    assert sorted(path.name for path in first.iterdir()) == sorted(f"{name}.{ending}" for name in TABLE_NAMES)
    frames = traceconv.frames([KINETO, ONEDNN], args=["Ev Idx"])
    for name, frame in frames.items():
        path = first / f"{name}.{ending}"
        assert path.read_bytes() == (second / path.name).read_bytes()
        expected = frame.to_arrow()
        if ending == "parquet":
            assert pyarrow.parquet.read_table(path).equals(expected)
            assert pyarrow.parquet.read_schema(path).metadata[b"traceconv.schema"] == b"1"
        elif ending == "arrow":
            assert pa.ipc.open_file(path).read_all().equals(expected, check_metadata=True)
        else:
            with path.open(newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
            assert header == expected.column_names
            values = [column.to_pylist() for column in expected.columns]
            assert rows == [[_in_csv(value) for value in row] for row in zip(*values, strict=True)]


def _in_csv(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return np.format_float_positional(value, trim="-")
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_csv_is_written_some_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = traceconv.read(CUDA)
    traceconv.export(trace, tmp_path / "whole.csv")
    monkeypatch.setattr(table_files, "_ROW_GROUP", 3)
    traceconv.export(trace, tmp_path / "parts.csv")
    for path in (tmp_path / "whole.csv").iterdir():
        assert path.read_bytes() == (tmp_path / "parts.csv" / path.name).read_bytes()


def test_an_export_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run.parquet"
    traceconv.export([CUDA], folder)
    with pytest.raises(UsageError, match="the folder exists"):
        traceconv.export([CUDA], folder)
    (folder / "slices.parquet").write_bytes(b"old")
    traceconv.export([CUDA], traceconv.Output(folder, force=True))
    assert pyarrow.parquet.read_table(folder / "slices.parquet").num_rows == 17
    (folder / "mine.txt").write_text("keep me")
    with pytest.raises(OutputError, match=r"holds other files, such as mine\.txt"):
        traceconv.export([CUDA], traceconv.Output(folder, force=True))
    assert (folder / "mine.txt").read_text() == "keep me"

    rename = os.rename

    def interrupted(source: Path, target: str) -> None:
        if Path(source).name == "new":
            raise KeyboardInterrupt
        rename(source, target)

    (folder / "mine.txt").unlink()
    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        traceconv.export([CUDA], traceconv.Output(folder, force=True))
    assert len(list(folder.iterdir())) == len(TABLE_NAMES)
    monkeypatch.setattr(os, "rename", rename)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(frames_module._BUILDERS, "problems", full)
    with pytest.raises(OutputError, match="No space left"):
        traceconv.export([CUDA], tmp_path / "other.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.parquet"]


def test_wrong_calls_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="not of a kind of table"):
        traceconv.export([CUDA], tmp_path / "run.xlsx")
    with pytest.raises(UsageError, match="each given once"):
        traceconv.export([CUDA], tmp_path / "run.csv", args=["a", "a"])
    with pytest.raises(OutputError, match="is not a folder"):
        traceconv.export([CUDA], traceconv.Output(CUDA, to="csv", force=True))
    with pytest.raises(AttributeError, match="there is no table 'slice'; tables: recordings"):
        _ = traceconv.frames([CUDA]).slice
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pyarrow is not installed") as caught:
        traceconv.export([CUDA], tmp_path / "run.csv")
    assert caught.value.hint == "pip install 'traceconv[arrow]'"


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    kineto = Path("golden/pytorch-kineto/cuda-streams/input.json").resolve()
    result = commands.run("export", kineto, "-o", tmp_path / "run.csv")
    assert result.stderr == f"{tmp_path / 'run.csv'}: 14 tables\n"


def test_the_tables_of_a_trace_convert(tmp_path: Path) -> None:
    result = traceconv.merge(
        [KINETO, ONEDNN], tmp_path / "both.pftrace", constraints=traceconv.Constraints(same_machine=True)
    )
    for trace in (result.trace, traceconv.read(CUDA)):
        frames = traceconv.frames(trace)
        for name in TABLES:
            expected = frames[name].to_arrow()
            assert getattr(trace, name).to_arrow().equals(expected)
            assert pa.table(getattr(trace, name)).equals(expected)
        assert len(trace.slices.to_pandas()) == len(trace.slices.to_polars()) == len(trace.slices.ts)
        assert trace.slices._repr_html_() == frames.slices._repr_html_()
    assert len(traceconv.read(CUDA).slices.to_arrow()) == len(trace.slices.ts)  # the trace lives as long as its columns


def test_the_columns_of_a_changed_trace_are_its_own() -> None:
    trace = traceconv.read(CUDA)
    changed = trace.with_tables(slices=replace(trace.slices, dur=trace.slices.dur + 1))
    sums = [int(one.slices.to_pandas().duration_ns.sum()) for one in (trace, changed)]
    assert sums[1] - sums[0] == len(trace.slices.ts)
    assert np.shares_memory(trace.slices.ts, changed.slices.ts)


def test_columns_without_a_trace_say_that_they_cannot_convert() -> None:
    slices = take(traceconv.read(CUDA).slices, np.arange(2))
    with pytest.raises(traceconv.UsageError, match="belong to no trace"):
        slices.to_arrow()
    assert slices._repr_html_() is None


def test_columns_of_a_trace_that_the_library_did_not_return_say_what_converts() -> None:
    trace = replace(traceconv.read(CUDA), table_of=None)
    with pytest.raises(traceconv.UsageError, match=r"not returned by traceconv.read or merge") as caught:
        trace.slices.to_arrow()
    assert caught.value.hint == "traceconv.frames(trace).slices has them"
    assert traceconv.frames(trace).slices.to_arrow().equals(traceconv.read(CUDA).slices.to_arrow())


def test_the_trace_of_frames_converts() -> None:
    frames = traceconv.frames([KINETO, ONEDNN], constraints=traceconv.Constraints(same_machine=True))
    assert frames.trace.slices.to_arrow().equals(frames.slices.to_arrow())


def test_a_trace_is_freed_without_the_garbage_collector() -> None:
    trace = traceconv.read(CUDA)
    assert trace.slices.to_arrow()
    watched = weakref.ref(trace)
    gc.disable()
    try:
        del trace
        assert watched() is None
    finally:
        gc.enable()


def test_events_on_a_thread_of_several_inputs_are_of_their_own_input() -> None:
    """A profile without samples, and samples of its threads: both record the same threads."""
    paths = [LAYERS / "profile.json", LAYERS / "perf.data.gz"]
    trace = traceconv.merge(paths, constraints=traceconv.Constraints(same_machine=True)).trace
    assert trace is not None
    shared = [track for track in trace.tracks if track.carries]
    assert {(name, trace.sources[number].name) for track in shared for name, number, _ in track.carries} >= {
        ("samples", "perf.data.gz")
    }
    assert {trace.sources[number].name for number in inputs_of(trace, "samples").tolist()} == {"perf.data.gz"}
    assert {trace.sources[number].name for number in inputs_of(trace, "slices").tolist()} == {"profile.json"}
    alone = [traceconv.read(path) for path in paths]
    rows = overview(trace, ()).records()
    for row, own in zip(rows, alone, strict=True):
        span = own.span()
        assert span is not None
        assert abs(row["span_ns"] - (span[1] - span[0])) < 1_000_000, "the drift of a clock changes it a little"
        assert row["slices"] == len(own.slices.ts)


def _cycle(path: Path, begin: int, steps: tuple[int, ...], name: str = "ProfilerStep#", **header: object) -> Path:
    """Write a profile of a cycle of a schedule, as Kineto writes it; all are of one thread. Times are in µs."""
    events = [
        {"ph": "X", "name": f"{name}{step}", "cat": "user_annotation", "pid": 7, "tid": 7, "ts": ts, "dur": 10}
        for step, ts in zip(steps, range(begin, begin + 20 * len(steps), 20), strict=True)
    ]
    base = {"schemaVersion": 1, "deviceProperties": [], "host_name": "h", "baseTimeNanoseconds": 1790857026000000000}
    path.write_text(json.dumps(base | header | {"traceEvents": events}))
    return path


@pytest.mark.parametrize("in_time", [True, False])
def test_slices_of_two_recordings_of_one_thread_are_of_their_own_input(tmp_path: Path, in_time: bool) -> None:
    paths = [_cycle(tmp_path / "a.json", 0, (1, 2)), _cycle(tmp_path / "b.json", 10_000, (5, 6, 7))]
    files = paths if in_time else paths[::-1]
    trace = traceconv.merge(files).trace
    assert trace is not None
    assert len({*trace.slices.track.tolist()}) == 1, "they share the thread"
    of_slices = [trace.sources[number].name for number in inputs_of(trace, "slices").tolist()]
    assert of_slices == ["a.json"] * 2 + ["b.json"] * 3
    [section] = traceconv.report(files, traceconv.Questions(sections=("overview",)))
    first, later = (2, 2, 30_000), (1, 3, 50_000)  # the later one has events on the thread of the first one
    assert {row["input"]: (row["tracks"], row["slices"], row["span_ns"]) for row in section.records()} == {
        "a.json": first if in_time else (1, 2, 30_000),
        "b.json": later if in_time else (2, 3, 50_000),
    }
    [chosen, *_] = traceconv.report(files, traceconv.Questions(sections=("steps",), where="input=b.json"))
    assert [row["step"] for row in chosen.records()] == ["ProfilerStep#5", "ProfilerStep#6", "ProfilerStep#7"]
    table = SliceTable(trace)
    for number, source in enumerate(trace.sources):
        rows = table.rows_of(number)
        assert [of_slices[row] for row in rows.tolist()] == [source.name] * len(rows)
        assert table.of_source(number).nonzero()[0].tolist() == rows.tolist()
    [steps, *_] = traceconv.report(files, traceconv.Questions(sections=("steps",)))
    until_next = [row["interval_ns"] for row in steps.records()]
    assert until_next == [20_000, None, 20_000, 20_000, None], "time between recordings is no time of a step"


def test_an_output_says_which_slices_of_one_thread_are_of_which_input(tmp_path: Path) -> None:
    """Two recordings of one thread, one after the other: also in an output that was made of that output."""
    paths = [_cycle(tmp_path / "a.json", 0, (1, 2)), _cycle(tmp_path / "b.json", 10_000, (5, 6, 7))]
    traceconv.merge(paths, tmp_path / "ab.pftrace")
    traceconv.convert(tmp_path / "ab.pftrace", tmp_path / "again.pftrace")
    asked = traceconv.Questions(sections=("overview", "steps"), step_name="ProfilerStep.*")
    until_next = [row["interval_ns"] for row in traceconv.report(paths, asked)[0].records()]
    assert until_next == [20_000, None, 20_000, 20_000, None]
    for name in ("ab.pftrace", "again.pftrace"):
        trace = by_stated_inputs(read(tmp_path / name))
        of_slices = [trace.sources[number].name for number in inputs_of(trace, "slices").tolist()]
        assert of_slices == ["a.json"] * 2 + ["b.json"] * 3
        steps, *_, overview = traceconv.report([tmp_path / name], asked)
        made_of = "a.json (pytorch-kineto): 2 slices; b.json (pytorch-kineto): 3 slices"
        assert f"{name}: made of {made_of}" in overview.notes
        assert [(row["slices"], row["span_ns"]) for row in overview.records()] == [(5, 10_050_000)]
        assert [row["interval_ns"] for row in steps.records()] == until_next
        for where, count in (("input=b.json", 3), ("input!=b.json", 2), (f"input={name}", 5), ("input~json", 5)):
            of_input, *_ = traceconv.report([tmp_path / name], traceconv.Questions(["steps"], where=where))
            assert len(of_input.rows) == count


def test_positions_without_times_stay_marked_in_a_merge(tmp_path: Path) -> None:
    """Beside an input with times, and in the output, the analysis of DeepSparse and a table of VTune have none."""
    analysis = shutil.copy(ROOT / "deepsparse" / "v180-analysis" / "input.json", tmp_path / "analysis.json")
    table = shutil.copy(ROOT / "vtune" / "hotspots" / "input.csv", tmp_path / "vtune.csv")
    placed = traceconv.Input(analysis, offset_ns=1790857026 * 10**9)
    merged = traceconv.merge([_cycle(tmp_path / "a.json", 0, (1, 2)), placed, table], tmp_path / "m.pftrace")
    assert merged.trace is not None
    asked = traceconv.Questions(sections=("overview", "operations", "steps"))
    for what in (merged.trace, [tmp_path / "m.pftrace"]):
        by_name = {section.name: section for section in traceconv.report(what, asked)}
        overview, operations, steps = (by_name[name] for name in ("overview", "operations", "steps"))
        spans = {row["input"]: (row["start_ns"], row["span_ns"]) for row in overview.records()}
        if len(spans) > 1:
            assert spans == {"a.json": (0, 30_000), "analysis.json": (None, None), "vtune.csv": (None, None)}
        else:
            assert spans == {"m.pftrace": (0, 30_000)}
        assert any(note.startswith("some positions are synthetic") for note in operations.notes)
        starts = {row["step"]: row["start_ns"] for row in steps.records()}
        assert starts == {"ProfilerStep#1": 0, "ProfilerStep#2": 20_000} | {f"iteration {n}": None for n in range(5)}


@pytest.mark.parametrize("in_time", [True, False])
def test_a_shared_thread_is_divided_by_the_same_inputs_in_by_and_where(tmp_path: Path, in_time: bool) -> None:
    of_rank = {"backend": "nccl", "rank": 3, "world_size": 4}
    ranked = _cycle(tmp_path / "a.json", 0, (1, 2), "run ", distributedInfo=of_rank)
    files = [ranked, _cycle(tmp_path / "b.json", 10_000, (5, 6, 7), "run ")][:: 1 if in_time else -1]
    trace = traceconv.merge(files).trace
    assert trace is not None
    assert len({*trace.slices.track.tolist()}) == 1, "they share the thread"

    def counts(by: str, where: str | None = None) -> dict[object, object]:
        asked = traceconv.Questions(sections=("operations",), by=(by,), where=where)
        [section] = traceconv.report(files, asked)
        return {row[by]: row["count"] for row in section.records()}

    assert counts("input") == {"a.json": 2, "b.json": 3}
    assert counts("rank") == {"3": 2, "": 3}
    assert counts("name", "rank=3") == {"run N": 2}
    assert counts("rank", "input=b.json") == {"": 3}

    traceconv.merge(files, tmp_path / "ab.pftrace")
    files = [tmp_path / "ab.pftrace"]
    assert counts("input") == {"a.json": 2, "b.json": 3}


def test_a_merged_trace_says_how_its_inputs_were_placed(tmp_path: Path) -> None:
    paths = [_cycle(tmp_path / "a.json", 0, (1, 2)), _cycle(tmp_path / "b.json", 10_000, (5, 6, 7))]
    asked = traceconv.Questions(sections=("overview",))
    trace = traceconv.merge(paths).trace
    assert trace is not None
    of_files, of_trace = ([(one.rows, one.notes) for one in traceconv.report(what, asked)] for what in (paths, trace))
    assert of_trace == of_files
    own = traceconv.merge(paths, tmp_path / "own.pftrace")
    assert own.trace is not None
    [section] = traceconv.report(own.trace.with_tables(receipt=()), asked)
    assert {row["method"] for row in section.records()} == {"not known"}


def test_the_time_of_steps_that_were_not_recorded_is_no_time_of_a_step(tmp_path: Path) -> None:
    files = [_cycle(tmp_path / "a.json", 0, (1, 2, 5, 6, 1))]

    def until_next(step_name: str) -> list[int | None]:
        [steps, *_] = traceconv.report(files, traceconv.Questions(sections=("steps",), step_name=step_name))
        return [row["interval_ns"] for row in steps.records()]

    assert until_next("") == [20_000, None, 20_000, 20_000, None]
    assert until_next("ProfilerStep.*") == [20_000, 20_000, 20_000, 20_000, None], "numbers may be those of anything"
