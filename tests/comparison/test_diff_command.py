"""`traceconv diff`, as it is typed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import traceconv
from tests import HANG_S, commands
from tests.answers import test_sections
from tests.golden import ROOT
from traceconv.comparison.environment import environment
from traceconv.comparison.runs import Selection
from traceconv.recordings import Settings, opened

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
CUDA = ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"
ORT = ROOT / "onnxruntime" / "perf-counters-hw" / "input.json"
SCHEMA = json.loads((ROOT.parent / "schemas" / "diff.schema.json").read_text(encoding="utf-8"))


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return commands.run("diff", *arguments)


def _slower(path: Path, source: Path, share: float, name: str) -> Path:
    """Copy a profile of ONNX Runtime in which the slices of a name, and all that is around them, are longer."""
    events = json.loads(source.read_text())
    for event in events:
        if event.get("dur") and name in event["name"]:
            event["dur"] = round(event["dur"] * share)
    path.write_text(json.dumps(events))
    return path


def test_a_recording_beside_itself_has_not_changed() -> None:
    result = run(CUDA, CUDA)
    assert result.returncode == 0, result.stderr
    assert "No time changed. (diff_kernels)" in result.stdout
    assert "+0.0 %, unknown" in result.stdout


@pytest.mark.parametrize(
    ("option", "value", "notes"),
    [
        ("--rename", "Flatten=Flatten", []),
        (
            "--rename",
            "nobody=new",
            [
                f"--rename: nothing that is compared in {ORT} is called nobody",
                f"--rename: nothing that is compared in {ORT} is called new",
            ],
        ),
        ("--where", "name=nobody", [f"--where leaves no slice of {ORT}"]),
        ("--where", "name=Flatten", []),
    ],
)
def test_what_options_name_and_nothing_has_is_noted(option: str, value: str, notes: list[str]) -> None:
    found = json.loads(run(ORT, ORT, option, value, "--json").stdout)["notes"].get("summary", [])
    assert found == notes


def test_names_with_the_sign_of_renaming_are_renamed(tmp_path: Path) -> None:
    for name in ("conv<a=1>", "conv<b=1>"):
        test_sections.kineto(tmp_path / f"{name}.json", [test_sections.event(name, 0, 5)])
    files = [tmp_path / "conv<a=1>.json", tmp_path / "conv<b=1>.json"]
    found = json.loads(run(*files, "--rename", "conv<a=1>==conv<b=1>", "--json").stdout)
    assert [row["state"] for row in found["diff_operations"]] == ["", ""]
    for options, words in (
        (["--rename", "conv<a=1>=conv<b=1>"], "is not OLD=NEW\nhint: a name with = in it: OLD==NEW"),
        (["--rename", "a=b", "--rename", "a=c"], "'a' has two new names, 'b' and 'c'"),
    ):
        wrong = run(*files, *options)
        assert (wrong.returncode, words in wrong.stderr) == (2, True)


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """Also if the other run has no steps, so that another part of it is compared."""
    steps = [test_sections.event(f"ProfilerStep#{at}", 100 * at, 90, cat="user_annotation") for at in range(3)]
    test_sections.kineto(tmp_path / "a.json", [*steps, test_sections.event("mm", 0, 5)])
    test_sections.kineto(tmp_path / "b.json", [test_sections.event("mm", 0, 6)])
    for command in (("diff", "-", tmp_path / "b.json"), ("history", "-", tmp_path / "b.json")):
        found = subprocess.run(
            [sys.executable, "-m", "traceconv", *map(str, command), "--json"],
            input=(tmp_path / "a.json").read_bytes(),
            capture_output=True,
            timeout=HANG_S,
        )
        assert (found.returncode, found.stderr.decode()) == (0, "")


@pytest.mark.parametrize(("key", "is_unlike"), [("input", True), ("thread", True), ("name", False)])
def test_keys_that_no_two_runs_share_are_noted(tmp_path: Path, key: str, is_unlike: bool) -> None:
    for number in range(2):
        test_sections.kineto(tmp_path / f"{number}.json", [test_sections.event("A", 0, 5, pid=7 + number)])
    for command in ("diff", "history"):
        said = commands.run(command, tmp_path / "0.json", tmp_path / "1.json", "--by", key).stdout
        assert (f"--by {key}: it is another one in each run, so that no rows match" in said) == is_unlike


@pytest.mark.parametrize("command", ["diff", "history"])
def test_all_runs_are_read_as_the_format_that_is_named(command: str) -> None:
    result = commands.run(command, ORT, ORT, "--from", "chrome-trace")
    assert result.returncode == 0, result.stderr
    result = commands.run(command, ORT, ORT, "--from", "tvm-profile")
    assert result.returncode == 1
    assert "no report found" in result.stderr


@pytest.mark.parametrize("inputs", [(KINETO, CUDA), (ORT, KINETO), (CUDA, ORT)])
def test_json_follows_its_schema_and_adds_up(inputs: tuple[Path, Path]) -> None:
    result = run(*inputs, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    jsonschema.validate(document, SCHEMA)
    assert {row["run"] for row in document["diff_runs"]} == set(map(str, inputs))
    for name, rows in document.items():
        if name.startswith("diff_") and name not in ("diff_runs", "diff_environment") and len(rows) > 1:
            total, *parts = rows
            assert sum(row["contribution_ns"] for row in parts) == total["contribution_ns"]


@pytest.mark.parametrize("ending", ["html", "md", "csv", "txt", "json"])
def test_each_form_is_written(tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"diff.{ending}"
    result = run(KINETO, KINETO, "-o", output)
    assert result.returncode == 0, result.stderr
    assert "(total)" in output.read_text()


@pytest.mark.parametrize("form", ["json", "csv"])
def test_the_summary_is_never_cut(form: str) -> None:
    assert "no change can be told from noise" in run(ORT, ORT, "--top", "1", "--format", form).stdout


def test_options_take_several_runs(tmp_path: Path) -> None:
    before, after = [], tmp_path / "after"
    after.mkdir()
    for number in range(4):
        before.append(_slower(tmp_path / f"b{number}.json", ORT, 1 + number / 1000, "_kernel_time"))
        _slower(after / f"a{number}.json", ORT, 1.5 + number / 1000, "_kernel_time")
    result = run("--before", *before, "--after-runs", after, "--keep-warm-up", "--json")
    assert result.returncode == 0, result.stderr
    runs = json.loads(result.stdout)["diff_runs"]
    assert [row["side"] for row in runs] == ["before"] * 4 + ["after"] * 4
    assert [Path(row["run"]).name for row in runs[4:]] == ["a0.json", "a1.json", "a2.json", "a3.json"]
    same = run("--before", *before, "--after", *before, "--fail-above", "5%", "--strict", "--json")
    assert same.returncode == 0, same.stderr  # the steps of all runs take equal times


def test_the_gate_fails_for_slower_runs_alone(tmp_path: Path) -> None:
    sides: dict[str, list[Path]] = {}
    for side, share in (("before", 1.0), ("after", 1.5)):
        sides[side] = [
            _slower(tmp_path / f"{side}{number}.json", ORT, share + number / 10_000, "") for number in range(8)
        ]
    there = "--before", *sides["before"], "--after", *sides["after"]
    back = "--before", *sides["after"], "--after", *sides["before"]
    assert run(*there).returncode == 0
    failed = run(*there, "--fail-above", "5%")
    assert failed.returncode == 5
    assert failed.stderr.endswith("slower by more than 5 %: (total)\n")
    assert run(*there, "--fail-above", "60%").returncode == 0
    assert run(*back, "--fail-above", "5%", "--strict").returncode == 0
    assert run(sides["before"][0], sides["after"][0], "--fail-above", "5%").returncode == 0
    undecided = run(sides["before"][0], sides["after"][0], "--fail-above", "5%", "--strict")
    assert undecided.returncode == 6
    assert undecided.stderr.endswith("unclear or unknown: (total)\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--before: there is no run"),
        ([KINETO], "two runs are compared, not 1"),
        ([KINETO, CUDA, ORT], "two runs are compared, not 3"),
        (["--before", KINETO], "--after: there is no run"),
        ([KINETO, "--after", CUDA], "it is not said which side this run is of"),
        ([KINETO, CUDA, "--by", "colour"], "'colour' is not a key"),
        ([KINETO, CUDA, "--by", "kernel"], "'kernel' is not a key\nhint: the table diff_kernels"),
        ([KINETO, CUDA, "--fail-above", "much%"], "--fail-above: 'much%' is not a share in percent\nhint: 5%"),
        ([KINETO, CUDA, "--fail-above", "0.05"], "--fail-above: '0.05' is not a share in percent"),
        ([KINETO, CUDA, "--fail-on", "rows"], "--fail-on rows: nothing makes the command fail"),
        ([KINETO, CUDA, "--rename", "old"], "--rename: 'old' is not OLD=NEW"),
        ([KINETO, "/there/is/none.json"], "none.json: No such file"),
        ([KINETO, CUDA, "--where", "name~("], "--where"),
        ([KINETO, CUDA, "--where", ""], "--where: it is empty"),
    ],
)
def test_wrong_calls_have_one_line_and_a_hint(arguments: list[object], words: str) -> None:
    result = run(*arguments)
    assert result.returncode in (1, 2)
    assert words in "\n".join(result.stderr.splitlines()[:2])
    assert "Traceback" not in result.stderr


def test_a_folder_of_runs_that_is_empty_is_refused(tmp_path: Path) -> None:
    result = run("--before-runs", tmp_path, "--after", KINETO)
    assert result.returncode == 1
    assert f"{tmp_path}: there is no run in this folder" in result.stderr


def test_of_a_folder_of_runs_other_files_are_left_out(tmp_path: Path) -> None:
    shutil.copy(KINETO, tmp_path / "1.json")
    (tmp_path / "README.md").write_text("# Runs of Monday\n")
    result = run("--before-runs", tmp_path, "--after", KINETO, "--json")
    assert result.returncode == 0, result.stderr
    assert [row["run"] for row in json.loads(result.stdout)["diff_runs"]] == [f"{tmp_path}/1.json", str(KINETO)]
    assert result.stderr.splitlines()[:2] == [
        "1 file left out:",
        f"  {tmp_path}/README.md: no known format; it begins with '# Runs of Monday'",
    ]
    named = run("--before", tmp_path / "README.md", "--after", KINETO)
    assert (named.returncode, named.stdout) == (1, "")
    history = commands.run("history", tmp_path)
    assert history.returncode == 2
    assert history.stderr.splitlines()[-2] == "error: a history has two runs or more"
    (tmp_path / "1.json").unlink()
    result = run("--before-runs", tmp_path, "--after", KINETO)
    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == "error: no run in the folder is a recording"


def test_a_file_is_no_folder_of_runs() -> None:
    result = run("--before-runs", KINETO, "--after", KINETO)
    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == f"error: {KINETO}: not a folder of runs"


def test_a_folder_is_one_run_with_its_ranks(tmp_path: Path) -> None:
    for rank in (0, 1):
        shutil.copy(ROOT / "pytorch-kineto" / f"nccl-rank{rank}" / "input.json", tmp_path / f"rank{rank}.json")
    result = run(tmp_path, tmp_path, "--json")
    assert result.returncode == 0, result.stderr
    assert len(json.loads(result.stdout)["diff_runs"]) == 2
    by_rank = [tmp_path, tmp_path, "--by", "rank,name"]
    found = json.loads(run(*by_rank, "--json").stdout)
    assert "rank" not in found["diff_kernels"][0]
    assert {row["rank"] for row in found["diff_operations"]} >= {"(total)", "0", "1"}
    assert "(no name)" not in run(*by_rank).stdout


def _of_rank(path: Path, rank: int, base_ns: int) -> Path:
    document = {
        "schemaVersion": 1,
        "baseTimeNanoseconds": base_ns,
        "distributedInfo": {"rank": rank, "world_size": 4},
        "traceEvents": [test_sections.event("A", at, 5) for at in range(0, 30, 10)],
    }
    path.write_text(json.dumps(document))
    return path


def test_ranks_of_a_job_are_no_runs(tmp_path: Path) -> None:
    """They are refused as several runs of a side, and in a history; two of them can be compared."""
    first, second = (_of_rank(tmp_path / f"{rank}.json", rank, 17 * 10**17) for rank in (0, 3))
    later = _of_rank(tmp_path / "later.json", 3, 18 * 10**17)
    for result in (run("--before", first, second, "--after", later), commands.run("history", first, second)):
        assert result.returncode == 2
        assert (
            result.stderr.splitlines()[0]
            == f"error: {first} and {second} seem to be ranks 0 and 3 of one job, not runs"
        )
    assert run(first, second).returncode == 0
    assert run("--before", first, later, "--after", second).returncode == 0


@pytest.mark.parametrize(("rank", "later_ns"), [(None, 10**10), (1, 0)])
def test_runs_in_a_folder_that_counts_as_one_are_told_and_fail_a_gate(
    tmp_path: Path, rank: int | None, later_ns: int
) -> None:
    """Those that follow one another, or where two processes have one rank."""
    for number in range(2):
        document = {
            "schemaVersion": 1,
            "baseTimeNanoseconds": 17 * 10**17 + number * later_ns,
            "distributedInfo": {} if rank is None else {"rank": rank, "world_size": 2},
            "traceEvents": [test_sections.event("A", at, 5, pid=7 + number) for at in range(0, 30, 10)],
        }
        (tmp_path / f"{number}.json").write_text(json.dumps(document))
    (note,) = json.loads(run(tmp_path, tmp_path, "--json").stdout)["notes"]["summary"]
    assert "seem to be several runs, not the ranks of one" in note
    gate = run(tmp_path, tmp_path, "--fail-above", "5%")
    assert (gate.returncode, "seem to be several runs" in gate.stderr) == (2, True)
    assert run("--before-runs", tmp_path, "--after-runs", tmp_path, "--fail-above", "5%").returncode == 0


def test_conditions_leave_the_rest_in_one_row() -> None:
    result = run(KINETO, KINETO, "--where", "name~conv", "--json")
    assert result.returncode == 0, result.stderr
    names = {row["name"] for row in json.loads(result.stdout)["diff_operations"]}
    assert {"(total)", "(others)"} < names
    assert all("conv" in name for name in names if not name.startswith("("))


def test_a_condition_on_an_arg_that_is_absent_is_noted_and_parts_of_steps_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    test_sections.kineto(
        path,
        [test_sections.event(f"ProfilerStep#{at}", 1000 + 100 * at, 100, cat="user_annotation") for at in range(4)],
    )
    result = run(path, path, "--where", "args.colour=red")
    assert f"--where: no slice of {path} has args.colour" in result.stdout
    assert "diff_parts" in result.stdout


def test_what_files_state_about_their_recording_is_compared(tmp_path: Path) -> None:
    recorded = json.loads(CUDA.read_text(encoding="utf-8"))
    other = tmp_path / "other.json"
    other.write_text(json.dumps(recorded | {"with_stack": 1, "host_name": "node9"}), encoding="utf-8")
    document = json.loads(commands.run("compare", CUDA, other, "--json").stdout)
    jsonschema.validate(document, SCHEMA)
    stated = {row["property"]: row["after"] for row in document["diff_environment"]}
    assert stated == {"host": "node9", "with_stack": "1"}


@pytest.mark.parametrize(
    ("path", "stated"),
    [
        (ROOT / "onednn-verbose" / "all-ts" / "input.log", {"oneDNN": "3.12.0", "threads": "2"}),
        (ROOT / "tvm-profile" / "counters-and-locale" / "input.log", {"threads": "8", "executor": "Graph"}),
        (ROOT / "perf-data" / "big_endian" / "input.data", {"host": "bigiron"}),
    ],
)
def test_properties_of_formats_are_found(path: Path, stated: dict[str, str]) -> None:
    assert environment(traceconv.frames([path]).trace).items() >= stated.items()


def test_the_step_of_the_clock_is_that_of_the_file() -> None:
    selection = Selection(("name",), "", "", "", keep_first=False)
    run = selection.run(selection.slices("x", opened([ORT], Settings())))
    assert run.resolution_ns == 1000


def test_runs_without_operations_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text('{"traceEvents": [{"ph": "i", "name": "mark", "pid": 1, "tid": 1, "ts": 1}]}')
    result = run(CUDA, tmp_path / "empty.json")
    assert result.returncode == 2
    assert "empty.json: there is nothing to compare: it has no operation with a duration\n" in result.stderr
    window = run(CUDA, CUDA, "--between", "5s..6s")
    assert window.returncode == 2
    assert f"{CUDA}: --between: nothing was recorded from 5 s to 6 s after the start" in window.stderr
    idle = run(CUDA, CUDA, "--between", "98us..99us")
    assert "has no operation with a duration in the window\n" in idle.stderr


def test_strict_fails_where_nothing_can_be_decided() -> None:
    assert run(CUDA, CUDA, "--strict", "-q").returncode == 6


def test_what_was_lost_in_reading_is_told(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(CUDA.read_bytes()[:6000])
    assert "lost" in run(CUDA, cut).stdout
