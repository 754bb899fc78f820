"""`--json` of the commands: what it prints follows its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner

from tests.golden import ROOT
from traceconv import cli
from traceconv.check.chrome_text import load_schema
from traceconv.errors import AlignmentError
from traceconv.families.registry import names
from traceconv.model.numbers import format_time

KINETO = ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
INPUTS = sorted(next(folder.glob("*/input.*")) for folder in ROOT.iterdir() if folder.name not in ("align", "merge"))


def printed(*arguments: object, exit_code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(cli.cli, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    jsonschema.Draft202012Validator(load_schema("commands.schema.json")).validate(found)
    assert found.pop("schema_version") == 1
    return found


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(load_schema("commands.schema.json"))


def test_identify(tmp_path: Path) -> None:
    strange = tmp_path / "strange\x1b.txt"
    strange.write_text("nothing that is known\n")
    found = printed("identify", "--json", KINETO, strange, exit_code=1)["files"]
    assert found[0]["format"] == "pytorch-kineto"
    assert set(found[1]) == {"file", "error", "hint"}
    for one in printed("identify", "--json", "--all", KINETO, strange, exit_code=1)["files"]:
        assert sorted(answer["format"] for answer in one["answers"]) == names()


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.parent.parent.name)
def test_info_of_each_format(path: Path) -> None:
    result = CliRunner().invoke(cli.cli, ["info", "--json", str(path)])
    (one,) = printed("info", "--json", path, exit_code=result.exit_code)["files"]
    if result.exit_code:
        assert one["error"]
        return
    text = CliRunner().invoke(cli.cli, ["info", str(path)]).stdout
    assert f"{path}: {one['format']}\n" in text
    balance = one["balance"]
    kinds = (balance[kind].values() for kind in ("kept", "merged", "skipped"))
    assert balance["read"] == balance["written"] + sum(map(sum, kinds))
    if "start_ns" in one:
        start, end = one["start_ns"], one["end_ns"]
        assert f"  span      {format_time(end - start)}, first event at {start} ns of " in text


def test_reasons_are_sorted_whatever_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text('[{"ph":"Q","ts":1,"name":"a"},{},{"ph":"X","ts":1,"dur":1,"name":"a","pid":1,"tid":1}]')
    (file,) = printed("info", "--json", path)["files"]
    reasons = [*file["balance"]["skipped"]]
    assert reasons == sorted(reasons)
    assert reasons == ["skipped (chrome.empty_event)", "skipped (chrome.unknown_phase)"]


def test_rows_of_totals_are_at_no_time(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    rows = "Kernel_Name,Agent_Id,Start_Timestamp,End_Timestamp\ngemm,4,5000,5090\nName,Calls\ngemm,1\n"
    path.write_text(rows)
    (one,) = printed("info", "--json", path)["files"]
    assert (one["start_ns"], one["end_ns"], len(one["clocks"])) == (5000, 5090, 2)


def test_info_of_a_rank() -> None:
    (one,) = printed("info", "--json", KINETO)["files"]
    assert (one["host"], one["rank"], one["world_size"]) == ("node7", 3, 8)


def test_formats() -> None:
    assert [one["name"] for one in printed("formats", "--json")["formats"]] == names()
    (one,) = printed("formats", "--json", "onednn-verbose")["formats"]
    assert one["options"]["pid"]["help"]


def test_clocks() -> None:
    found = printed("clocks", "--json", KINETO, ONEDNN)
    assert [one["file"] for one in found["clocks"]] == ["input.json", "input.log"]
    assert found["pairs"][0]["clock_map"]["verdict"] == "ok"
    untimed = ROOT / "onednn-verbose" / "v1-no-ts" / "input.log"
    (pair,) = printed("clocks", "--json", KINETO, untimed)["pairs"]
    assert pair["clock_map"] is None
    assert pair["advice"]


def test_align_prints_what_its_report_says(tmp_path: Path) -> None:
    """Also if it refuses; then the error goes to standard error."""
    untimed = ROOT / "onednn-verbose" / "v1-no-ts" / "input.log"
    for other, exit_code in ((ONEDNN, 0), (untimed, 3)):
        report = tmp_path / f"{exit_code}.json"
        arguments = ["align", str(KINETO), str(other), "--json", "--report", str(report)]
        result = CliRunner().invoke(cli.cli, arguments)
        assert isinstance(result.exception, AlignmentError) == bool(exit_code), result.output
        assert result.stdout == report.read_text(encoding="utf-8")
        found = json.loads(result.stdout)
        jsonschema.Draft202012Validator(load_schema("alignment.schema.json")).validate(found)
        assert result.stderr == ""


#: These write files, print advice, or leave standard output to the trace.
WITHOUT_TABLES = {"anchor", "convert", "demo", "export", "how", "merge", "open"}


def test_every_command_that_prints_tables_prints_json() -> None:
    for name in cli._COMMANDS:
        command = cli.cli.get_command(click.Context(cli.cli), name)
        assert command is not None
        options = {option for param in command.params for option in param.opts}
        assert ("--json" in options) is (name not in WITHOUT_TABLES), name
        assert "--format" not in options or "--json" in options, name


@pytest.mark.parametrize("command", [("report", KINETO), ("diff", KINETO, KINETO)], ids=lambda command: command[0])
def test_json_is_the_format_json(command: tuple[object, ...]) -> None:
    outputs = [
        CliRunner().invoke(cli.cli, [*map(str, command), *form]).stdout for form in (["--json"], ["--format", "json"])
    ]
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["schema_version"]


def test_check(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1}]}')
    found = printed("check", "--json", bad, ONEDNN, tmp_path / "absent", exit_code=1)["files"]
    assert [one.get("ok") for one in found] == [False, False, None]
    assert found[0]["problems"][0]["code"].startswith("check-json.")
    assert found[1]["recording_of"] == "onednn-verbose"
    assert found[2]["error"].endswith("No such file or directory")
