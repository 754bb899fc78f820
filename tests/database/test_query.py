"""`traceconv query`: the views, what is locked, errors, and forms of output."""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import jsonschema
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import traceconv
from tests import commands
from tests.golden import ROOT, Case
from tests.shapes import every_shape
from traceconv.answers.frames import Frames
from traceconv.database import question
from traceconv.database.connection import add_view, connect, interruptible
from traceconv.database.question import ask
from traceconv.database.views import VIEWS, View
from traceconv.errors import UsageError
from traceconv.model.trace import needed

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
CUDA = ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"

DUCKDB = tuple(map(int, duckdb.__version__.split(".")[:2]))
#: A variable that no query may see.
secret = pa.table({"x": [1]})


@pytest.fixture(scope="module")
def frames() -> Frames:
    return traceconv.frames([CUDA])


def test_the_views_have_their_columns(frames: Frames) -> None:
    for view in VIEWS:
        table = ask(frames, f"from {view.name}")
        assert table.column_names == [column.name for column in view.columns]
        assert table.num_rows == frames[view.name].to_arrow().num_rows


@every_shape
def test_the_views_hold_what_the_frames_hold(case: Case, tmp_path: Path) -> None:
    frames = Frames(case.merged(case.traces(tmp_path)))
    counts = ", ".join(f"(select count(*) from {view.name}) {view.name}" for view in VIEWS)
    sums = "(select sum(dur) from slices) dur, (select sum(self_dur) from slices) self_dur, "
    integers = "(select count(integer) from counters) integers, (select max(slice) from slices) as last"
    answer = ask(frames, f"select {counts}, {sums} {integers}")
    slices = frames.slices.to_arrow().to_pandas()
    timed = slices[~slices.no_duration]
    known = len(timed) > 0
    expected: dict[str, int | None] = {view.name: frames[view.name].to_arrow().num_rows for view in VIEWS}
    expected |= {"dur": timed.duration_ns.sum() if known else None, "self_dur": timed.self_ns.sum() if known else None}
    expected["integers"] = int(frames.trace.counters.is_integer.sum())
    expected["last"] = len(slices) - 1 if len(slices) else None
    assert answer.to_pylist() == [expected]
    assert set(answer.schema.types) == {pa.int64()}


def test_what_is_not_known_is_null(frames: Frames) -> None:
    kernels = ask(frames, "select pid, tid, rank, parent from slices where name = 'sgemm_128x128'").to_pylist()
    assert kernels == [{"pid": None, "tid": None, "rank": 3, "parent": None}]


def test_args_are_there_where_they_are_asked_for(frames: Frames) -> None:
    """Also where only whole rows are named, so that the column cannot be seen in the query."""
    stream = "select args->>'$.stream' s from slices where name = 'sgemm_128x128'"
    assert ask(frames, stream).to_pylist() == [{"s": "7"}]
    for query in (
        "select s from slices s where args is null and 1 = 0",
        "select s from slices s limit 1",
        "select * from slices limit 1",
        "from slices limit 1",
        "select columns('a.*') from slices limit 1",
    ):
        assert "args" in str(ask(frames, query).schema)
    assert ask(frames, "select count(*) n from slices a natural join slices b").to_pylist()[0]["n"] > 0
    assert "args" in ask(frames, "describe slices")["column_name"].to_pylist()


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select name, count(*) n, sum(Dur) dur from slices group by all order by dur", {"ts", "dur", "name"}),
        ("select s.name from slices s", {"ts", "name"}),
        ("select count(*) from slices a join slices b using (slice)", {"ts", "slice"}),
        ("select count(*) from slices", {"ts"}),
    ],
)
def test_columns_are_not_built_for_questions_without_them(
    query: str, columns: set[str], frames: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[View] = []
    monkeypatch.setattr(question, "add_view", lambda *given: made.append(given[2]) or add_view(*given))
    ask(frames, query)
    (view,) = made
    assert {column.name for column in view.columns} == columns


@pytest.mark.parametrize(
    "query",
    [
        "select s from slices s",
        "select slices from slices",
        "select s from (select name, args from slices) s",
        "from slices",
        "select count(*) from slices natural join kernels",
        "select * exclude (args) from slices",
        "select columns('[dn].*') from slices",
        "select a.*, b.dur longer from slices a positional join slices b",
        "select x, y from slices as s(x, y) order by all",
        "with s(x, y, z) as (from slices) select x, z from s order by all",
        "select unnest(s) from (select slices s from slices limit 1)",
        "from (pivot slices on category in ('kernel') using sum(dur)) order by all",
        "from (unpivot slices on dur, self_dur) order by all",
        "summarize slices",
        "describe slices",
        "select count(distinct s.name) from slices s, lateral (select s.dur d) where d > 0",
        "select list(name order by ts) from slices group by track having max(dur) > 0 order by all",
        "select name, sum(dur) over (order by ts) from slices qualify row_number() over (order by ts) = 1",
        'select "NAME", Depth from slices order by 1, 2',
        "select struct_pack(a := name, b := args) from slices order by all",
        "select [x + 1 for x in list(dur)] from slices",
        "select to_json(s) from slices s order by all",
        "from slices select name where dur > 0 order by dur desc, name",
    ],
)
def test_answers_are_those_over_all_columns(query: str, frames: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ask(frames, query)
    monkeypatch.setattr(View, "named", lambda view, _: view)
    assert ask(frames, query).equals(found)


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) n from Main.Slices",
        'select count(*) n from "slices"',
        "with all_of as (from slices) select count(*) n from all_of",
        "select (select count(*) from slices) n",
        "select count(*) n from slices where exists (from tracks where tracks.track = slices.track);",
        "-- a comment\nselect count(*) n from slices",
        "select count(*) n from slices, (select count(*) from (describe slices))",
        "select count(*) n from (pivot slices on category in ('kernel') using count(*) group by slice)",
    ],
)
def test_a_view_is_made_for_each_way_to_name_it(query: str, frames: Frames) -> None:
    assert ask(frames, query)["n"].to_pylist() == [len(frames.trace.slices.ts)]


@pytest.mark.parametrize("query", ["describe slices", "show slices", 'show "Slices"', "describe from slices"])
def test_a_view_is_described(query: str, frames: Frames) -> None:
    view = next(view for view in VIEWS if view.name == "slices")
    assert ask(frames, query)["column_name"].to_pylist() == [column.name for column in view.columns]


#: What refuses queries: the lock, or else the parser, or names that nothing has.
REFUSED = {
    "file system operations are disabled": [
        "select * from '{folder}/a.csv'",
        "from read_csv('{folder}/a.csv')",
        "from read_text('{folder}/a.csv')",
        "from read_blob('/proc/self/environ')",
        "from read_json('{folder}/a.csv')",
        "from read_parquet('{folder}/a.parquet')",
        "from parquet_metadata('{folder}/a.parquet')",
        "from sniff_csv('{folder}/a.csv')",
        "from glob('{folder}/*')",
        "from read_parquet('https://example.org/a.parquet')",
    ],
    "file system operations are disabled|Table Function with name read_duckdb does not exist": [
        "from read_duckdb('{folder}/a.duckdb')",
    ],
    "one query is asked at a time": [
        "copy (select 1) to '{folder}/new'",
        "export database '{folder}/new'",
        "import database '{folder}'",
        "attach '{folder}/new' as other",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "reset lock_configuration",
        "set threads = 1",
        "pragma enable_profiling",
        "set profiling_output = '{folder}/new'",
        "create table a as select 1",
        "create secret (type s3)",
        "insert into slices values (1)",
        "drop view slices",
        "prepare a as select 1",
        "call pragma_version()",
        "select 1; select 2",
        "",
        "-- nothing",
    ],
    "Expected a single SELECT statement": ["from query('copy (select 1) to ''{folder}/new''')"],
    "it exists in the sqlite_scanner extension": ["from sqlite_scan('{folder}/a.csv', 'x')"],
    "no view is called": ["from secret", "from pd", "from frames"],
    "No function matches the given name": ["from arrow_scan(1, 2, 3)"],
    "Values were not provided for the following": ["select $question"],
}


@pytest.mark.parametrize(
    ("query", "refusal"), [(query, said) for said, several in REFUSED.items() for query in several]
)
def test_nothing_but_the_trace_can_be_reached(query: str, refusal: str, frames: Frames, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n", encoding="utf-8")
    pyarrow.parquet.write_table(secret, tmp_path / "a.parquet")
    question = query.format(folder=tmp_path)
    with pytest.raises(UsageError, match=refusal) as failed:
        ask(frames, question)
    assert "\n" not in failed.value.message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.parquet"]


@pytest.mark.parametrize(
    "call",
    [
        "enable_logging('QueryLog', storage = 'file', storage_config = {{'path': '{path}'}})",
        "enable_profiling(format := 'json', save_location := '{path}.json')",
    ],
)
@pytest.mark.parametrize("shown", ["*", "error(name)"])
def test_no_log_is_written(call: str, shown: str, frames: Frames, tmp_path: Path) -> None:
    """Also where DuckDB 1 takes it; a query that fails is run again."""
    is_locked = pytest.raises(UsageError, match="the configuration has been locked")
    with contextlib.suppress(UsageError) if DUCKDB < (2, 0) else is_locked:
        ask(frames, f"select {shown} from {call.format(path=tmp_path / 'new')} join slices on true")
    assert not list(tmp_path.iterdir())


def test_settings_are_locked(frames: Frames) -> None:
    settings = {
        "enable_external_access": "false",
        "lock_configuration": "true",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
        "python_scan_all_frames": "false",
        "allow_community_extensions": "false",
    }
    found = ask(frames, "select name, value from duckdb_settings()").to_pylist()
    assert settings.items() <= {row["name"]: str(row["value"]).lower() for row in found}.items()


def test_a_folder_can_be_allowed(frames: Frames, tmp_path: Path) -> None:
    allowed, other = tmp_path / "it's here", tmp_path / "it's here too"
    for folder in (allowed, other):
        folder.mkdir()
        pyarrow.parquet.write_table(secret, folder / "a.parquet")
    query = "from read_parquet('{}/a.parquet')"
    named = str(allowed).replace("'", "''")
    assert ask(frames, query.format(named), [str(allowed)]).to_pylist() == [{"x": 1}]
    for path in (str(other).replace("'", "''"), f"{named}/../it''s here too"):
        with pytest.raises(UsageError, match="file system operations are disabled"):
            ask(frames, query.format(path), [str(allowed)])
    with pytest.raises(UsageError, match="allow"):
        ask(frames, "select 1", "folder")


@pytest.mark.skipif(DUCKDB < (1, 5), reason="DuckDB 1.4 follows links out of a folder")
def test_a_link_in_an_allowed_folder_leads_nowhere_else(frames: Frames, tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    for folder in (allowed, other):
        folder.mkdir()
        (folder / "a.txt").write_text("x", encoding="utf-8")
    (allowed / "inside").symlink_to(allowed / "a.txt")
    (allowed / "file").symlink_to(other / "a.txt")
    (allowed / "folder").symlink_to(other)
    query = f"select content from read_text('{allowed}/{{}}')"
    assert ask(frames, query.format("inside"), [str(allowed)]).to_pylist() == [{"content": "x"}]
    for path in ("file", "folder/a.txt", "*"):
        with pytest.raises(UsageError, match="file system operations are disabled"):
            ask(frames, query.format(path), [str(allowed)])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selct 1", 'SQL:1:1: syntax error at or near "selct"'),
        ("select nme from slices", 'SQL:1:8: Referenced column "nme" not found'),
        ("select 'é',\n  nme from slices", 'SQL:2:3: Referenced column "nme" not found'),
        ("select 1\nfrom no_such_view", "SQL:2:6: no view is called no_such_view"),
        ("from slice", 'SQL:1:6: no view is called slice; did you mean "slices"?'),
        ("from query_table('Slices')", "SQL:1:6: Slices is a view, which a query has to name itself: FROM slices"),
        ("from query('from slices')", "SQL:1:6: slices is a view, which a query has to name itself: FROM slices"),
        (f"select {'+'.join('1' * 9000)}", "SQL: Max expression depth limit of 1000 exceeded"),
        ("select 'é\udcff'", "SQL:1:10: not UTF-8"),
        ("select cast(name as int) from slices", "SQL"),
        ("select error('as asked')", "SQL: as asked"),
        ("select 1 a, 2 a", "several columns of the result are called 'a'"),
        ("pivot slices on name using sum(dur)", "one query is asked at a time"),
        ("show tables", "SHOW, or DESCRIBE, without the name of a view"),
        ("show all tables", "SHOW, or DESCRIBE, without the name of a view"),
        ("describe", "SHOW, or DESCRIBE, without the name of a view"),
        ("select interval 1 hour as a, 2 as a", "several columns of the result are called 'a'"),
    ],
)
def test_a_wrong_query_says_where(query: str, message: str, frames: Frames) -> None:
    with pytest.raises(UsageError) as failed:
        ask(frames, query)
    assert failed.value.message.startswith(message)
    assert "\n" not in failed.value.message
    assert "{" not in failed.value.message
    assert failed.value.hint


def test_a_question_that_nests_deeply_has_an_answer_or_an_error() -> None:
    """How deep documents of JSON may be depends on the version of Python."""
    result = commands.run("query", CUDA, f"select {'+'.join('1' * 600)} as n", "--format", "csv", "-q")
    if result.returncode == 0:
        assert result.stdout == "n\n600\n"
    else:
        assert result.stderr.startswith("error: SQL: the question nests too deeply\nhint: ")


def test_json_has_numbers_as_numbers_and_follows_its_schema() -> None:
    query = """
        select 1 as "whole", 1.5 as "decimal", 3.0::decimal(5, 2) as "round", 2::hugeint ** 70 as "huge",
            'nan'::double as "not a number", null as "absent", true as "truth", date '2026-01-02' as "day",
            [1, 2] as "list", {'x': 1} as "struct", 'ab'::blob as "bytes",
            12345678901234567890.125::decimal(38, 3) as "long", 0.1::decimal(5, 2) as "short",
            '101'::bit as "bits", interval '2 days 3 hours' as "span", timetz '10:00:00+02' as "time of ""day"
    """
    found = json.loads(commands.run("query", CUDA, query, "--json").stdout)
    schema = json.loads((ROOT.parent / "schemas" / "query.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, schema)
    assert found["query"] == [
        {
            "whole": 1,
            "decimal": 1.5,
            "round": 3,
            "huge": 2.0**70,
            "not a number": "nan",
            "absent": None,
            "truth": True,
            "day": "2026-01-02",
            "list": "[1,2]",
            "struct": '{"x":1}',
            "bytes": "6162",
            "long": "12345678901234567890.125",
            "short": 0.1,
            "bits": "101",
            "span": "2 days 03:00:00",
            'time of "day': "10:00:00+02",
        }
    ]


#: Values that Python, JSON or tables lack, and how they are printed.
PRINTED = {
    "200000000000000000000000000000000000000::uhugeint": "200000000000000000000000000000000000000",
    "date '10000-01-01'": "10000-01-01",
    "'0044-03-15 (BC)'::date": "0044-03-15 (BC)",
    "'infinity'::timestamp": "infinity",
    "make_timestamp_ns(1764532113123456789)": "2025-11-30 19:48:33.123456789",
    "timestamp '2026-01-02 03:04:05'": "2026-01-02 03:04:05",
    "true": "true",
    "['1'::bignum]": '["1"]',
    "[timetz '10:00:00+02', null]": '["10:00:00+02",null]',
    "['nan'::double, 1]": '["nan",1.0]',
    "[interval 1 hour]": '["01:00:00"]',
    "[1.5, 2]": "[1.5,2]",
    "array_value(date '10000-01-01')": '["10000-01-01"]',
    "{'a \"b': {'c': '101'::bit}, 'd': 'ab'::blob}": '{"a \\"b":{"c":"101"},"d":"6162"}',
    "map {time '10:00:00': 2::uhugeint}": '[["10:00:00","2"]]',
    "union_value(a := interval 1 hour)": "01:00:00",
    "row(1, row(2, interval 1 hour))": '{"element1":1,"element2":{"element1":2,"element2":"01:00:00"}}',
    "[1::variant]": '["1"]',
    "null": "",
    "[null]": "[null]",
}


def test_values_that_others_lack_are_printed(tmp_path: Path) -> None:
    """Without pandas, which decodes some of them."""
    (tmp_path / "pandas.py").write_text("raise ImportError", encoding="utf-8")
    places = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    query = "select " + ", ".join(f"{value} as c{number}" for number, value in enumerate(PRINTED))
    command = [sys.executable, "-m", "traceconv", "query", CUDA, query, "--format", "csv", "-q"]
    environment = os.environ | {"PYTHONPATH": places}
    found = subprocess.run(command, capture_output=True, check=True, encoding="utf-8", env=environment).stdout
    _, row = csv.reader(io.StringIO(found))
    assert dict(zip(PRINTED, row, strict=True)) == PRINTED


@pytest.mark.skipif(DUCKDB < (1, 5), reason="DuckDB 1.4 gives Python no TIME_NS")
def test_nanoseconds_of_a_day_are_printed() -> None:
    result = commands.run("query", CUDA, "select '10:00:00.123456789'::time_ns as t", "--json", "-q")
    assert json.loads(result.stdout)["query"] == [{"t": "10:00:00.123456789"}]


@pytest.mark.parametrize("form", ["text", "csv", "json", "markdown"])
def test_all_types_are_printed(form: str) -> None:
    result = commands.run("query", CUDA, "from test_all_types()", "--format", form, "-q")
    assert result.returncode == 0, result.stderr
    assert "infinity" in result.stdout


def test_tables_keep_all_types_that_they_have(frames: Frames) -> None:
    query = """
        select 2::uhugeint as a, [interval 1 hour] as b, {'x': 1::bignum, 'y': 7} as c, map {'x': '1'::bit} as d,
            date 'infinity' as e, [date '2026-01-02'] as f, row(1) as g
    """
    table = ask(frames, query)
    assert table.schema.types[:4] == [
        pa.string(),
        pa.list_(pa.field("l", pa.string())),
        pa.struct({"x": pa.string(), "y": pa.int32()}),
        pa.map_(pa.string(), pa.string()),
    ]
    assert table.drop_columns(["e", "f", "g"]).to_pylist() == [
        {"a": "2", "b": ["01:00:00"], "c": {"x": "1", "y": 7}, "d": [("x", "1")]}
    ]
    assert table.schema.types[4] == pa.date32()
    assert pa.types.is_date(table.schema.types[5].value_type)
    assert table["g"].to_pylist() == [{"element1": 1}]
    every = ask(frames, "from test_all_types()").schema
    assert {name for name in every.names if every.field(name).type == pa.string()} <= {
        "uhugeint",
        "bignum",
        "bit",
        "interval",
        "time_tz",
        "varchar",
        "uuid",
    }


def test_a_trace_answers_for_all_packages() -> None:
    trace = traceconv.read(KINETO)
    query = "select name, count(*) n, sum(dur) ns from slices where category = 'cpu_op' group by name order by name"
    answer = trace.sql(query)
    arrow, pandas, polars = answer.to_arrow(), answer.to_pandas(), answer.to_polars()
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert repr(answer) == "<Frame query>"
    assert arrow["ns"].to_pylist() == pandas.ns.tolist() == polars["ns"].to_list()
    assert arrow.equals(traceconv.query([KINETO], query).to_arrow())
    merged = traceconv.query([KINETO, ONEDNN], "select count(distinct input) n from slices")
    assert merged.to_arrow()["n"].to_pylist() == [2]
    with pytest.raises(UsageError, match="was not returned by"):
        trace.with_tables(answer_to=None).sql("select 1")
    assert trace.sql("select date '10000-01-01' far")._repr_html_() is None


def test_forms_of_output(tmp_path: Path) -> None:
    query = "select name, dur, [1, dur] pair, dur / 2 half, null as nothing from slices order by ts limit 2"
    result = commands.run("query", CUDA, query)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["name", "dur", "pair", "half", "nothing"]
    as_json = commands.run("query", CUDA, query, "--json").stdout
    rows = json.loads(as_json)["query"]
    assert len(lines) == 2 + len(rows)
    assert list(rows[0]) == ["name", "dur", "pair", "half", "nothing"]
    assert commands.run("query", CUDA, query, "--format", "csv").stdout.count("\n") == 3
    assert "| name | dur |" in commands.run("query", CUDA, query, "--format", "markdown").stdout
    for ending in ("txt", "csv", "json", "parquet", "md"):
        path = tmp_path / f"answer.{ending}"
        written = commands.run("query", CUDA, query, "-o", path)
        assert written.stderr.endswith(f"wrote {path}: 2 rows\n")
        again = commands.run("query", CUDA, query, "-o", path)
        assert again.returncode == 2
        assert "exists" in again.stderr
    assert (tmp_path / "answer.json").read_text(encoding="utf-8") == as_json
    table = pyarrow.parquet.read_table(tmp_path / "answer.parquet")
    assert table["dur"].to_pylist() == [row["dur"] for row in rows]


def test_a_failed_query_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "answer.csv"
    result = commands.run("query", CUDA, "select error(name) from slices", "-o", path)
    assert result.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((CUDA, "select 1", "-o", "a.xlsx"), "no format has the ending .xlsx"),
        ((CUDA, "select 1", "--json", "--format", "csv"), "contradict"),
        ((CUDA, KINETO), "the last argument is the question, in SQL"),
        ((CUDA, "selct 1"), "SQL:1:1: syntax error"),
        (("absent.json", "selct 1"), "SQL:1:1: syntax error"),
        (("absent.json", "select 1"), "absent.json"),
        ((CUDA, "select 1", "--allow", "absent"), "absent"),
        ((CUDA,), "Missing argument"),
    ],
)
def test_wrong_calls(arguments: tuple[object, ...], message: str) -> None:
    result = commands.run("query", *arguments)
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert not result.stdout


def test_the_views_are_listed() -> None:
    result = commands.run("query", "--list")
    assert result.returncode == 0
    found = [tuple(line.split()[:2]) for line in result.stdout.splitlines()[2:]]
    assert found == [(view.name, column.name) for view in VIEWS for column in view.columns]
    listed = json.loads(commands.run("query", "--json", "--list").stdout)["views"]
    assert [(row["view"], row["column"]) for row in listed] == found


def test_a_list_is_of_no_files() -> None:
    result = commands.run("query", CUDA, "--list")
    assert result.returncode == 2
    assert "unexpected extra argument" in result.stderr


@pytest.mark.parametrize("module", ["duckdb", "pyarrow"])
def test_without_the_packages_the_hint_says_how_to_install_them(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    result = commands.run("query", CUDA, "select 1")
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        f"error: {module} is not installed",
        "hint: pip install 'traceconv[sql]'",
    ]
    importlib.import_module("traceconv.database.question")


@pytest.mark.parametrize("module", ["duckdb", "pyarrow"])
def test_a_package_that_cannot_be_loaded_is_not_taken_for_one_that_is_not_installed(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(name: str) -> None:
        raise ImportError("failed to map segment from shared object", name=name)

    monkeypatch.setattr("traceconv.model.trace.import_module", refused)
    with pytest.raises(ImportError, match="failed to map"):
        needed(module, "sql")


def test_memory_that_duckdb_does_not_get_is_no_fault_of_the_question() -> None:
    big = "set memory_limit = '1MB'; create table big as select repeat('a', 1000) || range as x from range(100000)"
    with pytest.raises(MemoryError), connect() as connection:
        connection.execute(big)


def test_a_signal_ends_a_query_of_duckdb() -> None:
    def stop(*_: object) -> None:
        raise TimeoutError

    long = "select count(*) from range(3000000) a, range(3000000) b where a.range < b.range"
    before = signal.signal(signal.SIGALRM, stop)
    try:
        with connect() as connection:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(TimeoutError):
                interruptible(connection, connection.sql(long).fetchall)
            assert connection.sql("select 7").fetchall() == [(7,)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


TEXTS = ["'abc'", "'abc'::blob", "to_json('a')", "['abc', null]", "['abc']::varchar[1]", "{'a': 'abc', 'b': 1}"]
TEXTS += ["row('abc', 1)", "map {'ab': 'c'}", "map {1: 'abc'}", "union_value(a := 'abc')", "[[{'a': ['abc']}], null]"]


@pytest.mark.parametrize("value", TEXTS)
def test_texts_in_any_value_count(value: str) -> None:
    with connect() as connection:
        found = connection.sql(f"select {value} as a, null::varchar as b, 7 as c from range(5)")
        assert question._answer_bytes(found) == 15


def test_types_that_parquet_lacks_are_refused(tmp_path: Path) -> None:
    result = commands.run("query", CUDA, "select union_value(a := 1) as h", "-o", tmp_path / "q.parquet")
    assert result.returncode == 2
    assert result.stderr.startswith("error: Parquet has no such type: ")
    assert result.stderr.endswith("hint: cast the column: column::varchar\n")
    assert not (tmp_path / "q.parquet").exists()
