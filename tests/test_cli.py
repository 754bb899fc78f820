"""The command line, through click's runner and as a real process."""

from __future__ import annotations

import copy
import gzip
import json
import os
import pickle
import pkgutil
import pty
import re
import shlex
import signal
import subprocess
import sys
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import traceconv
from tests import HANG_S
from tests.golden import ROOT
from tests.make_ranks import write_ranks
from traceconv import cli, opening, reading
from traceconv.errors import TraceconvError
from traceconv.families.identification import ALIASES
from traceconv.families.perf.data import SWITCHES_TWICE
from traceconv.families.perf.stat import UNSUPPORTED_EVENTS
from traceconv.families.registry import formats_called, names
from traceconv.io.shown import Counted, quantity
from traceconv.model import diagnostics
from traceconv.model.diagnostics import JOINED_ENDS, LOG_ENTRIES

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
UNTIMED = ROOT / "onednn-verbose" / "v1-no-ts" / "input.log"


def run(*arguments: object) -> Result:
    """One command in this process; our own errors stay exceptions of the result."""
    return CliRunner().invoke(cli.cli, [str(argument) for argument in arguments])


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """One command as a user runs it."""
    command = [sys.executable, "-m", "traceconv", *map(str, arguments)]
    return subprocess.run(command, **({"capture_output": True, "timeout": HANG_S, "check": False} | options))


def refusal(result: Result) -> TraceconvError:
    assert isinstance(result.exception, TraceconvError), result.output
    return result.exception


# -- open ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("encoding", "as_it_is"), [("utf-8", True), ("utf-8-sig", False), ("utf-16", False)])
def test_open_converts_json_that_viewers_refuse(
    encoding: str, as_it_is: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, served = tmp_path / "given.json", list[bytes]()

    def serve(file: Path, **_: object) -> bool:
        served.append(file.read_bytes())
        return True

    given.write_text('[{"ph":"X","name":"f","ts":5,"dur":1,"pid":1,"tid":1}]', encoding)
    monkeypatch.setattr(opening, "serve", serve)
    result = run("open", "--no-browser", given)
    assert result.exit_code == 0, result.output
    assert (served == [given.read_bytes()]) is as_it_is
    checked = tmp_path / "served"
    checked.write_bytes(served[0])
    assert run("check", checked).exit_code == 0


# -- merge and convert --------------------------------------------------------------------------------------------


def test_merge_writes_one_trace_and_prints_the_receipt(tmp_path: Path) -> None:
    output = tmp_path / "out.pftrace"
    result = run("merge", KINETO, ONEDNN, "-o", output)
    assert result.exit_code == 0, result.output
    assert output.read_bytes()[:1] == b"\x0a"
    assert "baseTimeNanoseconds of the file" in result.stderr
    assert "On one time axis: CLOCK_REALTIME" in result.stderr
    assert result.stdout == ""


def test_merge_refuses_unrelated_clocks_and_writes_nothing(tmp_path: Path) -> None:
    output = tmp_path / "out.pftrace"
    error = refusal(run("merge", KINETO, UNTIMED, "-o", output))
    assert "input.json" in error.message
    assert "input.log" in error.message
    assert "CLOCK_REALTIME" in error.message
    assert "no clock" in error.message
    assert "--offset input.log=" in error.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        ("input.log=5", "is not a time with a unit"),
        ("input.log=5ms~", "is not a time with a unit"),
        ("input.log=5ms~-1us", "is less than 0"),
        ("input.log", "expected FILE=TIME"),
        ("other.log=5ms", "is not one of the inputs"),
        ("input.log=1e30s", "out of range"),
    ],
)
def test_wrong_offsets_are_usage_errors(offset: str, message: str, tmp_path: Path) -> None:
    error = refusal(run("merge", KINETO, ONEDNN, "--offset", offset, "-o", tmp_path / "out.json"))
    assert message in error.message
    assert error.exit_code == 2


def test_an_offset_moves_the_file(tmp_path: Path) -> None:
    plain, moved = tmp_path / "plain.json", tmp_path / "moved.json"
    assert run("merge", KINETO, ONEDNN, "-o", plain, "-q").exit_code == 0
    assert run("merge", KINETO, ONEDNN, "--offset", f"{ONEDNN}=+1.5ms", "-o", moved, "-q").exit_code == 0
    starts = []
    for path in (plain, moved):
        content = json.loads(path.read_text(), parse_float=Decimal)
        first = next(event["ts"] for event in content["traceEvents"] if event.get("cat") == "exec")
        starts.append(content["baseTimeNanoseconds"] + first * 1000)
    assert starts[1] - starts[0] == 1_500_000


def test_convert_by_suffix_to_and_gzip(tmp_path: Path) -> None:
    assert run("convert", ONEDNN, "-o", tmp_path / "a.json").exit_code == 0
    assert run("convert", ONEDNN, "-o", tmp_path / "a.json.gz").exit_code == 0
    assert run("convert", ONEDNN, "-o", tmp_path / "a.out", "--to", "chrome-json").exit_code == 0
    plain = (tmp_path / "a.json").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == plain
    assert (tmp_path / "a.out").read_bytes() == plain


def test_unknown_output_suffix(tmp_path: Path) -> None:
    error = refusal(run("convert", ONEDNN, "-o", tmp_path / "a.xyz"))
    assert error.exit_code == 2
    assert ".pftrace" in error.hint


def test_an_existing_output_is_kept_unless_forced(tmp_path: Path) -> None:
    output = tmp_path / "a.json"
    output.write_text("mine")
    assert "exists" in refusal(run("convert", ONEDNN, "-o", output)).message
    assert output.read_text() == "mine"
    assert run("convert", ONEDNN, "-o", output, "--force").exit_code == 0
    assert output.read_text() != "mine"


def test_an_input_is_never_replaced(tmp_path: Path) -> None:
    copy = tmp_path / "a.json"
    copy.write_bytes(KINETO.read_bytes())
    error = refusal(run("convert", copy, "-o", copy, "--force"))
    assert "would replace an input" in error.message
    assert copy.read_bytes() == KINETO.read_bytes()


def test_strict_fails_on_losses(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(KINETO.read_bytes()[:-3000])
    assert run("convert", cut, "-o", tmp_path / "a.pftrace").exit_code == 0
    error = refusal(run("convert", cut, "-o", tmp_path / "b.pftrace", "--strict"))
    assert "chrome.cut" in error.message
    assert not (tmp_path / "b.pftrace").exists()


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("pytorch-kineto/cuda-streams", "absent: a flow has only one end"),
        ("pytorch-kineto/quotes", "repaired: 4 x invalid JSON (quotes"),
        ("chrome-trace/begin-end", "absent: an end has no start"),
    ],
)
def test_strict_takes_what_is_absent_or_repaired(tmp_path: Path, case: str, said: str) -> None:
    (path,) = (ROOT / case).glob("input.*")
    result = run("convert", path, "-o", tmp_path / "out.pftrace", "--strict")
    assert result.exit_code == 0, result.output
    assert said in result.stderr


def test_importer_options_reach_the_importer(tmp_path: Path) -> None:
    output = tmp_path / "a.json"
    assert run("convert", ONEDNN, "-O", "pid=4711", "-o", output).exit_code == 0
    assert '"pid":4711' in output.read_text()


@pytest.mark.parametrize("option", ["nonsense=1", "pid=many", "pid"])
def test_wrong_importer_options(option: str, tmp_path: Path) -> None:
    assert refusal(run("convert", ONEDNN, "-O", option, "-o", tmp_path / "a.json")).exit_code == 2


def test_all_bad_inputs_are_named(tmp_path: Path) -> None:
    error = refusal(run("merge", tmp_path / "no.json", tmp_path / "neither.log", "-o", tmp_path / "a.json"))
    assert "no.json" in error.message
    empty = tmp_path / "empty.json"
    empty.touch()
    other = tmp_path / "other.bin"
    other.write_bytes(bytes(range(256)))
    result = process("merge", empty, other, "-o", tmp_path / "a.json")
    assert result.returncode == 1
    assert b"empty.json: the file is empty" in result.stderr
    assert b"other.bin: no known format" in result.stderr


# -- the other commands ---------------------------------------------------------------------------------------------


def test_identify_says_all_and_fails_for_one(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("nothing that is known\n")
    result = run("identify", KINETO, other, ONEDNN)
    assert result.exit_code == 1
    assert re.search(r"input\.json: pytorch-kineto \(.+\)", result.stdout)
    assert re.search(r"input\.log: onednn-verbose \(.+\)", result.stdout)
    assert "no known format" in result.stderr


def test_info_shows_clock_balance_and_counts() -> None:
    result = run("info", ONEDNN)
    assert result.exit_code == 0
    for words in ("onednn-verbose", "CLOCK_REALTIME", "written", "slices"):
        assert words in result.stdout


def test_host_and_place_in_the_job_are_shown(tmp_path: Path) -> None:
    kineto = ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"
    assert "  host      node7\n  job       rank 3 of 8\n" in run("info", kineto).output
    result = run("convert", kineto, "-o", tmp_path / "out.json")
    assert "input.json (pytorch-kineto, rank 3 of 8 on node7): " in result.stderr
    (line,) = json.loads((tmp_path / "out.json").read_text())["metadata"]["alignment"]
    assert (line["host"], line["rank"], line["world_size"]) == ("node7", 3, 8)


def test_formats_lists_and_details() -> None:
    listed = run("formats").stdout
    assert {line.split()[0] for line in listed.splitlines()} >= {"chrome-trace", "onednn-verbose", "pytorch-kineto"}
    details = run("formats", "onednn-verbose").stdout
    assert "ONEDNN_VERBOSE_TIMESTAMP=1" in details
    assert "pid" in details
    assert refusal(run("formats", "nonsense")).exit_code == 2


def test_check_tells_good_from_bad(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.pftrace", tmp_path / "bad.json"
    assert run("convert", ONEDNN, "-o", good).exit_code == 0
    bad.write_text('{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1}]}')
    assert run("check", good).exit_code == 0
    result = run("check", good, bad)
    assert result.exit_code == 1
    assert "good.pftrace: pftrace, ok" in result.stdout
    (tmp_path / "one.json").write_text('[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]')
    assert run("check", tmp_path / "one.json").stdout.endswith("chrome-json, ok: 1 event, 1 instant\n")
    assert "bad.json: chrome-json, not ok" in result.stdout


@pytest.mark.parametrize(
    ("file", "what"),
    [
        (ONEDNN, "onednn-verbose (oneDNN verbose log"),
        (ROOT / "openvino" / "json-average" / "input.json", "openvino (OpenVINO performance counters"),
        (ROOT / "onnxruntime" / "v1.12-quotes" / "input.json", "onnxruntime (ONNX Runtime profile)"),
    ],
)
@pytest.mark.parametrize("before", [b"", b"\n"])  # packets begin with a line feed, too
def test_check_says_what_is_no_trace_but_can_become_one(before: bytes, file: Path, what: str, tmp_path: Path) -> None:
    named = tmp_path / "a b.txt"
    named.write_bytes(before + file.read_bytes())
    result = run("check", named)
    assert result.exit_code == 1
    first, *_, last = result.stdout.splitlines()
    assert first == f"{named}: not ok: not a trace that viewers can read"
    assert last.startswith(f"  hint: it is {what}")
    assert last.endswith(f": traceconv convert '{named}' -o trace.pftrace")


def test_check_proposes_no_conversion_that_would_fail(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("# Samples: 12  of event 'cpu-clock'\n")
    result = run("check", path)
    hint = result.stdout.splitlines()[-1]
    assert hint.startswith("  hint: it begins like perf-report (Linux perf report text): no table found")
    assert run("convert", path, "-o", tmp_path / "out.pftrace").exit_code == 1
    (found,) = json.loads(run("check", "--json", path).stdout)["files"]
    assert "recording_of" not in found


def test_check_knows_nothing_of_what_no_format_is(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("nothing to see here")
    assert "hint" not in run("check", path).stdout
    assert "hint" not in CliRunner().invoke(cli.cli, ["check", "-"], input=ONEDNN.read_bytes()).stdout
    path.write_text('{"traceEvents":[]}')  # a trace, which is empty
    assert run("check", path).stdout.startswith(f"{path}: chrome-json, ok: nothing in it")
    assert "hint" not in run("check", path).stdout


# -- as a process ---------------------------------------------------------------------------------------------------


def test_pipes() -> None:
    result = process("convert", "-", "--to", "chrome-json", "-q", input=ONEDNN.read_bytes())
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(b"{")
    assert result.stderr == b""


def test_errors_are_one_line_and_a_hint() -> None:
    result = process("convert", "no-such-file.json", "-o", "out.pftrace")
    assert result.returncode == 1
    first, second = result.stderr.decode().splitlines()
    assert first == "error: no-such-file.json: No such file or directory"
    assert second.startswith("hint: ")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("convert", "https://example.org/a.json"), "download the file first"),
        (("merge", "s3://bucket/a.json", "-o", "out.pftrace"), "download the file first"),
        (("convert", "file:///absent/a.json"), "name the path alone"),
        (("convert", "absent.json"), "check the spelling"),
        (("compar", "a.json", "b.json"), "did you mean"),
        (("sql", "a.json"), "traceconv query FILE"),
        (("report", KINETO, "--section", "kernel"), "did you mean --section kernels?"),
        (("report", KINETO, "--section", "operators"), "did you mean --section operations?"),
        (("report", KINETO, "--section", "stepz"), "did you mean --section steps?"),
    ],
)
def test_a_hint_for_what_is_not_there(arguments: tuple[str, ...], hint: str) -> None:
    result = process(*arguments)
    assert result.returncode in (1, 2)
    assert hint in result.stderr.decode().splitlines()[-1]


def test_wrong_calls_exit_with_2() -> None:
    assert process("merge").returncode == 2
    assert process("nonsense").returncode == 2
    assert process("convert", KINETO, "--nonsense").returncode == 2


def on_a_terminal(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """One command whose standard output is a terminal, and standard error a pipe."""
    terminal, ours = pty.openpty()
    try:
        command = [sys.executable, "-m", "traceconv", *map(str, arguments)]
        return subprocess.run(command, stdout=ours, stderr=subprocess.PIPE, timeout=HANG_S, check=False, cwd=cwd)
    finally:
        os.close(ours)
        os.close(terminal)


@pytest.mark.parametrize("columns", ["-3", "0", "1", "wide"])
def test_any_width_of_a_terminal_is_possible(columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    result = on_a_terminal("formats", "perf-data", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")


def test_binary_is_not_written_to_a_terminal(tmp_path: Path) -> None:
    result = on_a_terminal("convert", ONEDNN, "-o", "-", cwd=tmp_path)
    assert result.returncode == 2
    assert b"standard output is a terminal" in result.stderr


def test_the_output_is_named_after_the_first_input(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    log, profile = tmp_path / "runs" / "log.txt", tmp_path / "runs" / "profile.json.gz"
    log.write_bytes(ONEDNN.read_bytes())
    profile.write_bytes(gzip.compress(KINETO.read_bytes()))
    for arguments, name in (
        (("convert", "runs/log.txt"), "runs/log.pftrace"),
        (("convert", "runs/profile.json.gz", "--to", "json"), "runs/profile.json"),
        (("convert", "runs/profile.json", "--to", "json"), "runs/profile-converted.json"),
        (("merge", "runs/log.txt", profile), "runs/log-merged.pftrace"),
    ):
        result = on_a_terminal(*arguments, cwd=tmp_path)
        assert result.stderr.decode().splitlines()[-1].startswith(f"wrote {name}: "), result.stderr
        assert (tmp_path / name).exists()
    again = on_a_terminal("convert", "runs/log.txt", cwd=tmp_path)
    assert again.returncode == 2
    assert again.stderr.startswith(b"error: runs/log.pftrace: the file exists")
    assert on_a_terminal("convert", "runs/log.txt", "-f", "-q", cwd=tmp_path).stderr == b""
    piped = process("convert", "runs/log.txt", "-q", cwd=tmp_path)
    assert piped.stdout == (tmp_path / "runs" / "log.pftrace").read_bytes()


def test_quiet_and_verbose_contradict_each_other() -> None:
    assert refusal(run("align", KINETO, ONEDNN, "-q", "-v")).exit_code == 2
    assert run("align", KINETO, ONEDNN, "-q").output == ""


@pytest.mark.parametrize("name", ["kineto", "pytorch", "torch", "Pytorch-Kineto"])
def test_formats_have_aliases_and_families(name: str, tmp_path: Path) -> None:
    assert "input.json (pytorch-kineto)" in run("convert", KINETO, "--from", name, "-o", tmp_path / "a.json").stderr
    assert refusal(run("convert", ONEDNN, "--from", "torch", "-o", tmp_path / "b.json")).message.endswith(
        "is not of the formats pytorch-kineto, pytorch-table"
    )


def test_every_alias_leads_somewhere() -> None:
    for name in (*ALIASES, "perf", "tvm", "nsight"):
        assert set(formats_called(name)) <= set(names()), name
        assert name not in names(), "it would hide a format"
    assert run("how", "tvm").stdout.splitlines()[-1].endswith("costs inside the machine: traceconv how tvm-profile")
    shown = run("how", "perf").stdout
    assert "perf record" in shown
    assert "perf is also perf-header" in shown
    assert len(run("formats", "perf").stdout.splitlines()) == 6


def test_output_formats_have_aliases(tmp_path: Path) -> None:
    for name in ("json", "chrome", "Chrome-JSON"):
        assert run("convert", ONEDNN, "--to", name, "-f", "-o", tmp_path / "a").exit_code == 0
        assert (tmp_path / "a").read_bytes()[:1] == b"{"
    assert refusal(run("convert", ONEDNN, "--to", "jsn", "-o", tmp_path / "b")).hint == "did you mean json?"


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    command = f"{sys.executable} -m traceconv convert {KINETO} --to chrome-json -q | head -c 10"
    result = subprocess.run(["bash", "-c", command], capture_output=True, timeout=HANG_S, check=False)
    assert result.stdout.startswith(b"{")
    assert b"Traceback" not in result.stderr


SHORT = ["--help", "--version", "formats", "how perf", "report --help", "identify {}", "info {}", "report {}"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("command", SHORT)
def test_a_full_standard_output_is_one_line(command: str) -> None:
    with open("/dev/full", "wb") as full:
        result = process(*command.format(ONEDNN).split(), capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 1
    assert result.stderr == b"error: standard output: No space left on device\n"


@pytest.mark.skipif(os.name != "posix", reason="closes a standard stream by sh")
@pytest.mark.parametrize("command", SHORT)
def test_a_closed_standard_output_is_one_line(command: str) -> None:
    script = f"exec {sys.executable} -m traceconv {command.format(ONEDNN)} >&-"
    result = subprocess.run(["sh", "-c", script], capture_output=True, timeout=HANG_S, check=False)
    assert result.returncode == 1
    assert result.stderr == b"error: standard output: Bad file descriptor\n"


@pytest.mark.parametrize("command", SHORT)
def test_a_closed_pipe_ends_the_command_as_it_does_others(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        result = process(*command.format(ONEDNN).split(), capture_output=False, stdout=closed, stderr=subprocess.PIPE)
    assert (result.returncode, result.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_is_one_line() -> None:
    result = process("convert", ONEDNN, "--to", "perfetto", "-o", "/dev/full", "-q")
    assert result.returncode == 1
    assert result.stderr.startswith(b"error: /dev/full: No space left on device")


def _main_that(step: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, where writing the trace does something else."""
    code = (
        "import os, signal, sys; from traceconv import api; from traceconv.cli import main\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # the tests may run under nohup
        f"def write(writer, trace, sink):\n  sink.write(b'half a trace'); sink.flush(); {step}\n"
        "api._write_all = write; main()"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    done = _main_that(f"os.kill(os.getpid(), signal.{name})", "convert", KINETO, "-o", tmp_path / "out.pftrace")
    assert done.returncode == -getattr(signal, name)  # whoever sent it sees that it was heard
    assert (done.stderr, list(tmp_path.iterdir())) == ("", [])


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    code = "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); from traceconv.cli import main\n"
    code += "try: main()\nfinally: print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    command = [sys.executable, "-c", code, "-V"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.stdout.splitlines()[-1] == "True"


def test_too_little_memory_is_one_line(tmp_path: Path) -> None:
    done = _main_that("raise MemoryError", "convert", KINETO, "-o", tmp_path / "out.pftrace")
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    assert done.stderr.splitlines() == [
        "error: not enough memory",
        "hint: convert and merge take less with --memory SIZE, such as 500M",
    ]


def test_help_is_light_and_has_examples() -> None:
    code = (
        "import sys; from traceconv.cli import cli; cli.main(['--help'], standalone_mode=False); "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'google.protobuf', 'perfetto', 'msgspec')))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=HANG_S, check=False)
    assert result.returncode == 0
    assert b"the other way" in result.stdout


def test_works_where_protobuf_is_not_installed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['google'] = sys.modules['perfetto'] = None; from traceconv.cli import cli; "
        "cli.main(['convert', sys.argv[1], '-o', sys.argv[2]], standalone_mode=False); cli.main(['check', sys.argv[2]])"
    )
    command = [sys.executable, "-c", code, str(KINETO), str(tmp_path / "out.pftrace")]
    result = subprocess.run(command, capture_output=True, timeout=HANG_S, check=False, text=True)
    assert result.returncode == 0, result.stderr
    assert "pftrace, ok" in result.stdout


def test_options_are_explained_where_docstrings_are_left_out() -> None:
    command = [sys.executable, "-OO", "-m", "traceconv", "formats", "mxnet"]
    result = subprocess.run(command, capture_output=True, timeout=HANG_S, check=False, text=True)
    assert "option    pid (default: not given): the number that the process had" in result.stdout


@pytest.mark.parametrize("name", cli._COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"traceconv {name} " in result.stdout.replace(f"Usage: cli {name}", "")
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_version() -> None:
    about = rb"The kernel is (compiled\.|compiled but not used, .*|not compiled, .*)"
    assert re.fullmatch(rb"traceconv, version \d+\.\d+\.\d+\S*\n" + about + rb"\n", process("--version").stdout)


# -- several inputs of one name, options for one of them --------------------------------------------------------------


def test_inputs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "log.txt")
        paths[-1].write_bytes((ONEDNN if name == "one" else UNTIMED).read_bytes())
    error = refusal(run("merge", *paths, "-o", tmp_path / "out.json"))
    assert str(paths[0]) in error.message
    offset = re.search(r"--offset (\S+/two/log.txt=)TIME", error.hint)
    assert offset is not None
    result = run("merge", *paths, "--offset", f"{offset[1]}+5ms", "-o", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    assert str(paths[1]) in result.stderr


def test_an_option_that_fits_two_inputs_needs_a_file(tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_bytes(ONEDNN.read_bytes())
    error = refusal(run("merge", ONEDNN, other, "-O", "pid=7", "-o", tmp_path / "out.json"))
    assert "fits input.log and other.log" in error.message
    assert "-O input.log:pid=7" in error.hint
    assert run("merge", ONEDNN, other, "-O", "other.log:pid=7", "-o", tmp_path / "out.json").exit_code == 0
    assert '"pid":7' in (tmp_path / "out.json").read_text()


@pytest.mark.parametrize("option", ["--offset", "--from"])
def test_what_is_said_twice_is_refused(option: str, tmp_path: Path) -> None:
    values = [f"input.log={value}" for value in ("1ms", "2ms")]
    error = refusal(run("merge", KINETO, ONEDNN, option, values[0], option, values[1], "-o", tmp_path / "a.json"))
    assert "twice" in error.message


def test_brackets_in_file_names_are_printed(tmp_path: Path) -> None:
    path = tmp_path / "log[rank0].log"
    path.write_bytes(ONEDNN.read_bytes())
    assert "log[rank0].log (onednn-verbose)" in run("convert", path, "-o", tmp_path / "a.json").stderr


def test_a_repeated_exact_start_is_not_shared_between_profiles(tmp_path: Path) -> None:
    profile = ROOT / "onnxruntime" / "v1.31-one-thread" / "input.json"
    other = tmp_path / "other.json"
    other.write_bytes(profile.read_bytes())
    error = refusal(run("merge", profile, other, "-O", "start_ns=1795245452966338432", "-o", tmp_path / "a.pftrace"))
    assert error.exit_code == 2


def test_a_recording_and_its_gzip_are_named_as_one(tmp_path: Path) -> None:
    """By content, also where there are too few events to tell it by them."""
    plain, packed, other = tmp_path / "a.json", tmp_path / "b.json.gz", tmp_path / "c.json"
    event = '[{"ph":"X","name":"f","ts":5,"dur":1,"pid":1,"tid":1}]'
    plain.write_text(event)
    packed.write_bytes(gzip.compress(event.encode()))
    other.write_text(event + "\n")
    result = run("merge", plain, packed, other, "--on-ambiguous", "separate", "-o", tmp_path / "out.json")
    assert "warning: b.json.gz: its events are those of a.json: the same recording is drawn twice" in result.stderr
    assert "c.json: its events" not in result.stderr


def test_what_is_said_of_several_inputs_is_said_once(tmp_path: Path) -> None:
    result = run("align", *write_ranks(tmp_path, 6, 1))
    assert result.stderr.count("it states no name that identifies its host") == 1
    lines = result.stderr.splitlines()
    (at,) = (
        number
        for number, line in enumerate(lines)
        if line.startswith("warning: rank0.json: it states no name that identifies its host")
    )
    assert lines[at + 1] == "  likewise rank1.json, rank2.json, rank3.json and 2 more"
    two = run("align", *write_ranks(tmp_path, 2, 1)).stderr.splitlines()
    assert "  likewise rank1.json" in two


@pytest.mark.parametrize(("count", "pairs"), [(16, 120), (17, 16)])
def test_clocks_of_many_inputs_are_compared_with_the_first(count: int, pairs: int, tmp_path: Path) -> None:
    paths = write_ranks(tmp_path, count, 1)
    assert len(json.loads(run("clocks", "--json", *paths).stdout)["pairs"]) == pairs
    text = run("clocks", *paths).stdout
    assert ("of many inputs, only pairs with rank0.json are listed" in text) == (count > 16)


# -- what the user says about clocks ----------------------------------------------------------------------------------


def test_an_anchor_places_a_file_without_times(tmp_path: Path) -> None:
    anchor = "input.json:aten::conv2d#1.start=input.log@0s~5us"
    result = run("merge", KINETO, UNTIMED, "--anchor", anchor, "-o", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    assert re.search(r"--anchor, then baseTimeNanoseconds .*assumed", result.stderr)


def test_unrelated_and_contradicting_clocks_have_exit_codes_of_their_own(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    assert process("merge", KINETO, UNTIMED, "-o", output).returncode == 3
    wrong = "input.json:aten::conv2d#1.start=input.log@0s"
    assert process("merge", KINETO, ONEDNN, "--anchor", wrong, "-o", output).returncode == 4
    assert process("merge", KINETO, ONEDNN, "--clock", "input.log=monotonic", "-o", output).returncode == 4
    assert process("merge", KINETO, ONEDNN, "--anchor", "nonsense", "-o", output).returncode == 2
    assert not output.exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--drift", "input.log=12"),
        ("--clock", "input.log=tsc"),
        ("--tz", "input.log=CEST"),
        ("--date", "input.log=today"),
        ("--tz", "input.log=+02:00"),
        ("--map", "convolution"),
        ("--date", "input.json=2018-10-26"),
    ],
)
def test_wrong_info_are_usage_errors(option: str, value: str, tmp_path: Path) -> None:
    error = refusal(run("merge", KINETO, ONEDNN, option, value, "-o", tmp_path / "out.json"))
    assert option in error.message
    assert error.exit_code == 2


def test_the_zone_reaches_the_importer(tmp_path: Path) -> None:
    profile = tmp_path / "onnxruntime_profile__2026-11-21_07-04-12_966.json"
    profile.write_bytes((ROOT / "onnxruntime" / "v1.31-one-thread" / "input.json").read_bytes())
    spans = []
    for more in ([], ["--tz", f"{profile.name}=+02:00"]):
        output = tmp_path / f"{len(more)}.json"
        result = run("merge", profile, *more, "-o", output)
        assert result.exit_code == 0, result.output
        spans.append(json.loads(output.read_text())["baseTimeNanoseconds"])
    assert spans[0] - spans[1] == 2 * 3600 * 10**9
    converted = tmp_path / "converted.json"
    assert run("convert", profile, "--tz", "+02:00", "-o", converted).exit_code == 0
    assert json.loads(converted.read_text())["baseTimeNanoseconds"] == spans[1]
    assert "expected FILE=+HH:MM" in refusal(run("align", profile, KINETO, "--tz", "+02:00")).message
    error = refusal(run("merge", profile, *more, "-O", "utc_offset=+01:00", "-o", output, "-f"))
    assert "contradict" in error.message
    plain = tmp_path / "profile.json"
    plain.write_bytes(profile.read_bytes())
    error = refusal(run("merge", plain, "--tz", "profile.json=+02:00", "-o", tmp_path / "x.json"))
    assert "--tz does not give profile.json (onnxruntime) times since 1970" in error.message


@pytest.mark.parametrize(
    ("value", "hint"),
    [("+25:00", "no zone is more than 14 hours from UTC"), ("Europe/Berlin", "zone names are not supported")],
)
def test_the_hint_says_what_is_wrong_with_a_zone(value: str, hint: str) -> None:
    assert hint in refusal(run("align", KINETO, ONEDNN, "--tz", f"input.log={value}")).hint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("merge", "-o", "taken.json"), "taken.json: the file exists"),
        (("merge", "-o", "new.json", "--report", "taken.html"), "taken.html: the file exists"),
        (("merge", "-o", "new.json", "--report", "new.txt"), "ends in neither .json nor .html"),
        (("merge", "-o", "new.json", "--trim", "1ms..5xs"), "of '1ms..5xs'"),
        (("convert", "-o", "taken.json"), "taken.json: the file exists"),
        (("align", "--report", "taken.html"), "taken.html: the file exists"),
        (("report", "-o", "taken.html"), "taken.html: the file exists"),
        (("report", "-f", "-o", "runs.zip"), "no format has the ending .zip"),
        (("report", "--where", "nosuch=1"), "nosuch"),
        (("report", "--sort", "nosuch"), "nosuch"),
        (("export", "-o", "runs.parquet"), "runs.parquet: the folder exists"),
        (("export", "-o", "runs.pdf"), "runs.pdf: the ending"),
        (("merge", "taken.json", "-f", "-o", "taken.json"), "taken.json: the output would replace an input"),
        (("report", "taken.html", "-f", "-o", "taken.html"), "taken.html: the output would replace an input"),
        (("align", "absent.json"), "absent.json: No such file"),
    ],
)
def test_what_is_wrong_is_said_before_archives_are_unpacked(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("taken.json", "taken.html", "runs.zip"):
        Path(name).write_text("kept")
    Path("runs.parquet").mkdir()
    Path("runs.parquet", "other").write_text("kept")

    def unpacked(*_: object, **__: object) -> None:
        raise AssertionError("an archive was unpacked")

    monkeypatch.setattr(reading, "files_of", unpacked)
    command, *others = arguments
    refused = refusal(run(command, "runs.zip", *others))
    assert message in f"{refused.message} {refused.hint}"


def test_a_zone_that_is_not_used_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "utc.log"
    log.write_text("".join(f"2026-11-21T12:00:{second:02}Z step\n" for second in range(5)))
    error = refusal(run("align", KINETO, log, "--tz", "utc.log=+02:00"))
    assert (error.exit_code, error.hint) == (2, "leave --tz +02:00 out")
    profile = tmp_path / "onnxruntime_profile__2026-11-21_07-04-12_966.json"
    profile.write_bytes((ROOT / "onnxruntime" / "v1.31-one-thread" / "input.json").read_bytes())
    started = ("-O", "start_ns=1795245452966000000", "--tz", f"{profile.name}=+02:00")
    assert "start_ns says when it began" in refusal(run("align", profile, *started)).message


def test_times_of_day_get_a_day(tmp_path: Path) -> None:
    log = tmp_path / "d.log"
    log.write_text("".join(f"12:00:{second:02}.500 step\n" for second in range(1, 40)))
    output = tmp_path / "out.json"
    result = run("merge", log, "--tz", "d.log=+02:00", "--date", "d.log=2026-11-21", "-o", output)
    assert result.exit_code == 0, result.output
    assert json.loads(output.read_text())["baseTimeNanoseconds"] == 1795255201500000000
    error = refusal(run("merge", log, "--date", "d.log=2026-11-21", "-o", tmp_path / "x.json"))
    assert "--tz is needed, too" in error.hint


def test_the_report_is_written_also_of_a_refusal(tmp_path: Path) -> None:
    report, output = tmp_path / "align.json", tmp_path / "out.json"
    assert run("merge", KINETO, ONEDNN, "--report", report, "-o", output).exit_code == 0
    assert [one["file"] for one in json.loads(report.read_text())["inputs"]] == ["input.json", "input.log"]
    refused = tmp_path / "refused.html"
    refusal(run("merge", KINETO, UNTIMED, "--report", refused, "-o", tmp_path / "no.json"))
    assert "have no common clock" in refused.read_text()
    assert not (tmp_path / "no.json").exists()
    assert "has the same name" in refusal(run("merge", KINETO, ONEDNN, "--report", output, "-o", output, "-f")).message


def test_nothing_is_written_where_the_merge_fails_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "damaged.json"
    damaged.write_text('[{"ph":"X","name":"f","ts":5,"dur":1,"pid":1,"tid":1},{"ph":"X","name":"f","ts":6')
    report, output = tmp_path / "report.json", tmp_path / "out.json"
    failed = run("merge", KINETO, damaged, "--offset", "damaged.json=0", "--strict", "--report", report, "-o", output)
    assert failed.exit_code == 1
    monkeypatch.chdir(tmp_path)
    os.symlink(tmp_path, "linked")
    for beside in ("./out.json", str(output), "linked/out.json"):
        refused = refusal(run("merge", KINETO, ONEDNN, "--report", beside, "-o", "out.json"))
        assert "the output has the same name" in refused.message
    twice = refusal(run("align", KINETO, ONEDNN, "--report", "report.json", "--report", "./report.json"))
    assert "is given twice" in twice.message
    assert {path.name for path in tmp_path.iterdir()} == {"damaged.json", "linked"}


def test_several_reports_of_one_alignment(tmp_path: Path) -> None:
    page, data = tmp_path / "align.html", tmp_path / "align.json"
    assert run("align", KINETO, ONEDNN, "--report", page, "--report", data).exit_code == 0
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(data.read_text())["verdict"] == "ok"
    twice = refusal(run("align", KINETO, ONEDNN, "--report", page, "--report", page, "-f"))
    assert "is given twice" in twice.message


def test_a_file_without_events_is_in_the_table(tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    for command in (("align",), ("merge", "-o", tmp_path / "out.json")):
        result = run(*command, KINETO, empty)
        assert result.exit_code == 0, result.output
        assert re.search(r"^empty\.json +nothing to place: it holds no events", result.stderr, re.MULTILINE)


def test_what_events_say_is_told_in_plain_words() -> None:
    result = run("align", KINETO, ONEDNN, "--offset", "input.log=+1.5ms")
    *_, said = result.stderr.splitlines()
    assert said.startswith("input.json and input.log: the same events in both: not used (ambiguous): the traces fit")
    assert re.search(r"nearly as well at \d+ offsets \d+ µs away or more$", said)
    twice = run("align", KINETO, KINETO).stderr.splitlines()[-1]
    assert twice.endswith("input.json (2): the same recording, given twice: ok: all 619 events are equal, to the ns")


def test_two_files_that_do_not_overlap_are_one_warning(tmp_path: Path) -> None:
    logs = [tmp_path / f"{hour}.log" for hour in (10, 12)]
    for log in logs:
        log.write_text("".join(f"2026-11-21T{log.stem}:00:{second:02}Z step\n" for second in range(9)))
    warnings = [line for line in run("merge", *logs, "-o", tmp_path / "x.json").stderr.splitlines() if "warn" in line]
    assert len(warnings) == 1
    assert "10.log: it does not overlap in time with any other input, and is 1 h 59 min away from 12.log" in warnings[0]


def test_one_of_something() -> None:
    assert [quantity(count, LOG_ENTRIES) for count in (0, 1, 2)] == ["0 log entries", "1 log entry", "2 log entries"]
    assert quantity(1, JOINED_ENDS) == "1 end joined to its start"
    assert quantity(1, SWITCHES_TWICE) == "1 context switch that sched:sched_switch has, too"
    assert quantity(1, UNSUPPORTED_EVENTS) == "1 event not supported, kept as an arg"
    for copied in (pickle.loads(pickle.dumps(JOINED_ENDS)), copy.deepcopy(JOINED_ENDS)):
        assert (copied, quantity(1, copied)) == (JOINED_ENDS, quantity(1, JOINED_ENDS))


def test_what_is_counted_has_words_for_one_and_for_several() -> None:
    words: dict[str, set[int]] = {}
    for module in pkgutil.walk_packages(traceconv.__path__, "traceconv."):
        if not module.name.endswith("__main__"):
            for value in vars(import_module(module.name)).values():
                if isinstance(value, Counted):
                    words.setdefault(value, set()).add(id(value))
                    assert value.single != value or value is diagnostics.METADATA
    assert len(words) > 80
    assert not [word for word, objects in words.items() if len(objects) > 1], "declare it once"


def test_clocks_takes_what_merge_takes(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('[{"ph":"X","name":"f","ts":5,"dur":1,"pid":1,"tid":1}]')
    shown = run("clocks", KINETO, other).stdout
    assert "input.json and other.json: not related" in shown
    assert "--offset other.json=TIME" in shown
    shown = run("clocks", KINETO, other, "--offset", "other.json=+1795242185s").stdout
    assert re.search(
        r"^input\.json and other\.json: related by .*, then --offset \(assumed\), within ±1\.00002 s$", shown, re.M
    )
    assert run("clocks", KINETO, other, "--same-machine").exit_code == 0


def test_no_advice_that_was_followed_already() -> None:
    """--same-run is given, and the events do not tell all the same."""
    hint = refusal(run("align", KINETO, UNTIMED, "--same-run")).hint
    assert "--same-run" not in hint
    assert f"`traceconv clocks {KINETO} {UNTIMED}` lists what would help" in hint


def test_commands_in_hints_can_be_pasted(tmp_path: Path) -> None:
    other = tmp_path / "a b" / "other.json"
    other.parent.mkdir()
    other.write_text('[{"ph":"X","name":"f","ts":5,"dur":1,"pid":1,"tid":1}]')
    hint = refusal(run("align", KINETO, other)).hint
    (command,) = re.findall(r"`traceconv (clocks [^`]*)`", hint)
    shown = run(*shlex.split(command)).stdout
    (command,) = re.findall(r"traceconv (align .*) \(if it refuses", shown)
    assert refusal(run(*shlex.split(command))).hint == hint


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------

INTERRUPTED_AT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
sys.argv = ["traceconv", *{arguments!r}]
from traceconv.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "module",
    ["click", "traceconv.cli", "traceconv.api", "numpy", "msgspec", "traceconv.families", "traceconv.writers"],
)
def test_ctrl_c_while_modules_are_imported_is_one_line(module: str, tmp_path: Path) -> None:
    code = INTERRUPTED_AT.format(module=module, arguments=["convert", str(ONEDNN), "-o", str(tmp_path / "a.json")])
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=HANG_S, check=False, text=True)
    assert (result.returncode, result.stdout, result.stderr.split()) == (130, "", ["interrupted"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("conver", "x"), "did you mean convert?"),
        (("xyzzy",), "traceconv --help lists the commands"),
        ((KINETO,), f"to convert it: traceconv convert {KINETO} -o out.pftrace"),
        (("formats", "onedn"), "did you mean onednn-verbose?"),
        (("how", "kinetto"), "did you mean kineto?"),
    ],
)
def test_a_wrong_word_gets_a_suggestion(arguments: tuple[object, ...], hint: str) -> None:
    error = refusal(run(*arguments))
    assert (error.exit_code, error.hint) == (2, hint)


@pytest.mark.parametrize(
    ("arguments", "what", "command"),
    [
        (["merge"], "missing argument 'FILES...'", "traceconv merge"),
        (["merge", "a.json", "--nope"], "no such option", "traceconv merge"),  # the rest is click's, by version
        (["report", "a.json", "--section", "nope"], "invalid value for '--section': 'nope' is not", "traceconv report"),
        (["convert", "a.json", "b.json"], "got unexpected extra argument (b.json)", "traceconv convert"),
    ],
)
def test_wrong_options_have_the_form_of_all_errors(arguments: list[str], what: str, command: str) -> None:
    code = "from traceconv.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    error, hint = ended.stderr.splitlines()
    assert error.startswith(f"error: {what}")
    assert hint == f"hint: {command} --help lists arguments and options"


def _as_of_users() -> dict[str, str]:
    """The environment without the variable by which tests see tracebacks."""
    return {name: value for name, value in os.environ.items() if name != "TRACECONV_DEBUG"}


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("ImportError('numpy.so: failed to map segment\\nand advice')", "numpy.so: failed to map segment"),
        ("MemoryError()", "not enough memory"),
        ("SystemError('error return without exception set')", "error return without exception set"),
    ],
)
def test_a_library_that_cannot_be_loaded_is_one_line(failure: str, reason: str) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))\n"
    code = (limit if "SystemError" in failure else "") + (
        "import sys\nfrom traceconv.__main__ import main\nclass Finder:\n  def find_spec(self, name, *_):\n"
        f"    if name == 'numpy': raise {failure}\nsys.meta_path.insert(0, Finder())\nmain()"
    )
    command = [sys.executable, "-c", code, "convert", str(ONEDNN), "-o", os.devnull, "--to", "perfetto"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False, env=_as_of_users())
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert lines[0] in (f"error: a library cannot be loaded: {reason}", f"error: {reason}")
    assert len(lines) <= 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
@pytest.mark.parametrize("limit_mb", [20, 40, 60, 80, 90, 100])
def test_little_memory_is_no_traceback(limit_mb: int) -> None:
    script = f"ulimit -v {limit_mb << 10}; exec {sys.executable} -m traceconv report {ONEDNN}"
    result = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, timeout=HANG_S, check=False, env=_as_of_users()
    )
    said = result.stderr
    assert "Traceback" not in said
    assert "OpenBLAS" not in said
    assert result.returncode == 0 or f"limited to {limit_mb} MB" in said or len(said.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no /dev/zero here")
def test_a_device_that_never_ends_is_refused() -> None:
    for command in (["info", "/dev/zero"], ["identify", "/dev/zero"], ["check", "/dev/zero"]):
        result = process(*command)
        assert (result.returncode, result.stderr.splitlines()[0]) == (
            1,
            b"error: /dev/zero: is a device, expected a file or a pipe",
        )
