"""Databases and partitioned folders of tables, read by DuckDB, polars, pandas and pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import traceconv
from tests import commands
from tests.golden import ROOT, Case
from tests.shapes import chosen
from traceconv.answers.frames import Frames
from traceconv.database.question import ask
from traceconv.database.table_files import Partition, write_tables
from traceconv.database.views import VIEWS
from traceconv.errors import OutputError, UsageError

RANKS = [ROOT / "pytorch-kineto" / f"nccl-rank{rank}" / "input.json" for rank in (0, 1)]
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
#: Cases that hold most shapes: they are chosen first.
several_shapes = pytest.mark.parametrize("case", [Case(ROOT / name) for name in list(chosen())[:8]], ids=str)


def _asked(database: Path, question: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(question).fetchall()


@several_shapes
def test_a_database_holds_what_queries_see(case: Case, tmp_path: Path) -> None:
    frames = Frames(case.merged(case.traces(tmp_path)))
    path = tmp_path / "run.duckdb"
    write_tables(frames, str(path), None, None, force=False)
    with duckdb.connect(str(path), read_only=True) as connection:
        for view in VIEWS:
            expected = ask(frames, f"select * from {view.name}")
            written = connection.sql(f"select * from {view.name}").to_arrow_table()
            assert written.column_names == expected.column_names
            assert written.to_pylist() == expected.to_pylist()
        properties = dict(connection.execute("from properties").fetchall())
    metadata = frames.slices.to_arrow().schema.metadata
    assert properties == {key.decode(): value.decode() for key, value in metadata.items()}


@several_shapes
@pytest.mark.parametrize("partition", Partition)
def test_parts_hold_what_the_tables_hold(case: Case, partition: Partition, tmp_path: Path) -> None:
    """Put together, with the times moved to one axis, they are the tables."""
    frames = Frames(case.merged(case.traces(tmp_path)))
    folder = tmp_path / "run.parquet"
    write_tables(frames, str(folder), None, partition, force=False)
    add_ns = {row["input"]: row["add_ns"] for row in frames.recordings.to_arrow().to_pylist()}
    for name, frame in frames.items():
        expected = frame.to_arrow()
        if (folder / f"{name}.parquet").exists():
            assert pyarrow.parquet.read_table(folder / f"{name}.parquet").equals(expected)
            continue
        if not expected.num_rows:
            assert not (folder / name).exists()
            continue
        parts = pl.read_parquet(folder / name, hive_partitioning=True).to_dicts()
        for row in parts:
            row["start_ns"] = row.pop("clock_ns") + add_ns[row["input"]]
        rows = expected.to_pylist()
        for number, row in enumerate(rows):
            row |= {"slice": number} if name == "slices" else {}
        assert sorted(map(_comparable, parts)) == sorted(map(_comparable, rows))


def _comparable(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


def test_parts_by_rank_are_read_by_all(tmp_path: Path) -> None:
    folder = tmp_path / "job.parquet"
    result = commands.run("export", *RANKS, ONEDNN, "--by", "rank", "-o", folder, "--same-machine")
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in (folder / "slices").iterdir()) == ["rank=-1", "rank=0", "rank=1"]
    table = traceconv.frames([*RANKS, ONEDNN], constraints=traceconv.Constraints(same_machine=True)).slices.to_pandas()
    counts = table.groupby("rank").size().to_dict()
    by_polars = pl.read_parquet(folder / "slices", hive_partitioning=True).group_by("rank").len().rows()
    assert dict(by_polars) == counts
    assert pd.read_parquet(folder / "slices").groupby("rank", observed=True).size().to_dict() == counts
    question = f"""
        select rank, count(*), min(clock_ns + add_ns) from '{folder}/slices/*/*.parquet'
        join (select input, add_ns from '{folder}/recordings.parquet') using (input) group by rank
    """
    with duckdb.connect() as connection:
        rows = connection.execute(question).fetchall()
    starts = table.groupby("rank").start_ns.min().to_dict()
    assert {rank: (count, start) for rank, count, start in rows} == {
        rank: (count, starts[rank]) for rank, count in counts.items()
    }


def test_parts_of_inputs_with_long_names_are_read_by_all(tmp_path: Path) -> None:
    """A file may have a name of 85 Chinese characters: quoted, it would be a name of 765 bytes."""
    path = tmp_path / f"{'推理服务性能' * 12} 100%=a.log"
    path.write_bytes(ONEDNN.read_bytes())
    folder = tmp_path / "run.parquet"
    result = commands.run("export", path, "--by", "input", "-o", folder)
    assert result.returncode == 0, result.stderr
    assert pl.read_parquet(folder / "slices", hive_partitioning=True)["input"].unique().to_list() == [path.name]
    assert pd.read_parquet(folder / "slices")["input"].unique().tolist() == [path.name]
    with duckdb.connect() as connection:
        rows = connection.execute(f"select distinct input from '{folder}/slices/*/*.parquet'").fetchall()
    assert rows == [(path.name,)]


def test_a_database_replaces_only_what_it_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.duckdb"
    assert commands.run("export", KINETO, "-o", path).stderr == f"{path}: 14 tables\n"
    (count,) = _asked(path, "select count(*) from slices")
    refused = commands.run("export", ONEDNN, "-o", path)
    assert (refused.returncode, "the file exists" in refused.stderr) == (2, True)
    assert _asked(path, "select count(*) from slices") == [count]
    assert commands.run("export", ONEDNN, "-o", path, "--force", "-q").returncode == 0
    assert _asked(path, "select distinct format from recordings") == [("onednn-verbose",)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.duckdb"]

    def full(*_: object) -> None:
        raise duckdb.IOException("IO Error: Could not write all bytes to file: No space left on device")

    monkeypatch.setattr("traceconv.database.table_files.add_view", full)
    with pytest.raises(OutputError, match="No space left"):
        traceconv.export([KINETO], tmp_path / "other.duckdb")
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.duckdb"]


def test_args_are_columns_of_parts_and_no_columns_of_databases(tmp_path: Path) -> None:
    traceconv.export([KINETO], tmp_path / "run.parquet", by="input", args=["Ev Idx"])
    (part,) = (tmp_path / "run.parquet" / "slices").glob("*/*.parquet")
    schema = pyarrow.parquet.read_schema(part)
    assert schema.field("args.Ev Idx").type == pa.int64()
    assert schema.metadata[b"traceconv.version"]
    wrong = commands.run("export", KINETO, "--arg", "Ev Idx", "-o", tmp_path / "run.duckdb")
    assert (wrong.returncode, "args->>" in wrong.stderr) == (2, True)


def test_wrong_calls_are_one_line(tmp_path: Path) -> None:
    for words, output in (
        ("a database is one file", "run.duckdb"),
        ("--arg and --by are for tables", "run.folded"),
    ):
        wrong = commands.run("export", KINETO, "--by", "rank", "-o", tmp_path / output)
        assert (wrong.returncode, words in wrong.stderr) == (2, True)
    with pytest.raises(UsageError, match="tables are divided by rank or input"):
        traceconv.export([KINETO], tmp_path / "run.parquet", by="name")
    assert not list(tmp_path.iterdir())


def test_parts_are_replaced_and_other_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "run.parquet"
    traceconv.export(RANKS, folder, by="rank")
    traceconv.export(RANKS, traceconv.Output(folder, force=True), by="rank")
    other = folder / "slices" / "rank=0" / "mine.txt"
    other.write_text("keep me")
    with pytest.raises(OutputError, match=r"holds other files, such as slices/rank=0/mine\.txt"):
        traceconv.export(RANKS, traceconv.Output(folder, force=True), by="rank")
    assert other.read_text() == "keep me"
