"""Readings of the clocks of this machine: the tool, its file, and what a merge makes of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from tests import HANG_S
from tests.golden import ROOT
from tests.test_cli import process, refusal, run
from traceconv import api
from traceconv.align import align
from traceconv.align.constraints import parse_constraints
from traceconv.check.chrome_text import load_schema
from traceconv.cli import clock_commands
from traceconv.cli.clock_commands import Clock, clocks, take_readings
from traceconv.families.clock_anchor import BAD_READING
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Run, Zero
from traceconv.model.layout import lay_out
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

SCHEMA = load_schema("anchor.schema.json")
MS, S = 10**6, 10**9
GOLDEN = ROOT / "clock-anchor"
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the clocks of Linux")


def content(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    jsonschema.validate(found, SCHEMA)
    return found


def recorded(
    tmp_path: Path, *command: str, **options: Any
) -> tuple[dict[str, Any], subprocess.CompletedProcess[bytes]]:
    path = tmp_path / "anchor.json"
    result = process("anchor", "-o", path, "--", *command, **options)
    return content(path), result


# -- readings ---------------------------------------------------------------------------------------------------------


class Fake:
    """Two clocks that a machine reads in a way that the test knows."""

    def __init__(self, steps: Sequence[int], ahead: int) -> None:
        self.now, self._steps, self._ahead, self._read = 0, steps, ahead, 0

    def _tick(self) -> None:
        self.now += self._steps[self._read % len(self._steps)]
        self._read += 1

    def one(self) -> int:
        self._tick()
        return self.now

    def other(self) -> int:
        self._tick()
        return self.now + self._ahead


def test_the_narrowest_reading_is_kept_and_its_bound_holds() -> None:
    """Each try takes another time; in the best one, 7 ns pass before the middle reading and 4 ns after it."""
    fake = Fake([50, 100, 30, 60, 7, 4, 80, 500, 90], 10**9)
    pair = take_readings([Clock("a", fake.one, 1), Clock("b", fake.other, 1)], tries=6)[0]
    assert abs(pair["other_ns"] - pair["ns"] - 10**9) <= pair["within_ns"]
    assert pair["within_ns"] == 6 + 1 + 1


def test_steps_of_the_clocks_are_part_of_the_bound() -> None:
    fake = Fake([10], 0)
    pair = take_readings([Clock("a", fake.one, 100), Clock("b", fake.other, 15_000)], tries=3)[0]
    assert pair["within_ns"] == 10 + 100 + 15_000


def test_a_clock_that_goes_back_is_not_taken_for_a_good_reading() -> None:
    times = iter([1000, 500, 2000, 2100])
    pair = take_readings([Clock("a", lambda: next(times), 1), Clock("b", lambda: 7, 1)], tries=2)[0]
    assert (pair["ns"], pair["within_ns"]) == (2050, 52)


@needs_linux
def test_all_clocks_of_this_machine() -> None:
    known = {clock.name for clock in clocks()}
    assert {"CLOCK_MONOTONIC", "CLOCK_REALTIME", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "perf_counter"} <= known
    readings = take_readings(clocks())
    assert {reading["clock"] for reading in readings} == {"CLOCK_MONOTONIC"}
    by_name = {reading["other"]: reading for reading in readings}
    for name, reading in by_name.items():
        assert reading["within_ns"] > 0, name
    same = by_name["perf_counter"]
    assert abs(same["other_ns"] - same["ns"]) <= same["within_ns"]
    wall = by_name["CLOCK_REALTIME"]
    apart = time.time_ns() - time.monotonic_ns()
    assert abs(wall["other_ns"] - wall["ns"] - apart) < 60_000 * MS


def test_without_the_clocks_of_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_commands.sys, "platform", "other")
    found = clocks()
    assert [clock.name for clock in found] == ["monotonic", "time", "perf_counter"]
    assert all(clock.implementation for clock in found)


# -- the command ------------------------------------------------------------------------------------------------------


@needs_linux
def test_around_a_command(tmp_path: Path) -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(int(sys.stdin.read()))"
    before = time.monotonic_ns()
    found, result = recorded(tmp_path, sys.executable, "-c", script, "-x", "--output", "y", input=b"7")
    after = time.monotonic_ns()
    assert result.returncode == 7
    assert result.stdout == b"out\n"
    assert result.stderr.startswith(b"err\n")
    assert b"anchor.json: 6 clocks, read to within" in result.stderr
    command = found["command"]
    assert command["argv"] == [sys.executable, "-c", script, "-x", "--output", "y"]
    assert command["exit_code"] == 7
    assert before < command["start_ns"] < command["end_ns"] < after
    times = [reading["ns"] for reading in found["readings"]]
    assert times == sorted(times)
    assert sum(time_ns < command["start_ns"] for time_ns in times) == len(times) // 2
    assert found["host"] == os.uname().nodename


def test_the_environment_is_not_recorded(tmp_path: Path) -> None:
    secret = "no-business-of-anybody"
    found, _ = recorded(tmp_path, sys.executable, "-c", "", env=os.environ | {"SOME_TOKEN": secret})
    assert secret not in json.dumps(found)


@pytest.mark.parametrize(("script", "status"), [("kill -9 $$", 137), ("exit 3", 3), ("true", 0)])
def test_the_exit_code_is_handed_on(script: str, status: int, tmp_path: Path) -> None:
    found, result = recorded(tmp_path, "sh", "-c", script)
    assert (result.returncode, found["command"]["exit_code"]) == (status, status)


def test_what_cannot_be_run_leaves_no_file(tmp_path: Path) -> None:
    output = tmp_path / "anchor.json"
    result = process("anchor", "-o", output, "--", "no-such-program-at-all")
    assert (result.returncode, output.exists()) == (127, False)
    assert b"error: no-such-program-at-all: no such program\nhint: " in result.stderr
    result = process("anchor", "-o", output, "--", tmp_path)
    assert (result.returncode, output.exists()) == (126, False)
    assert b"is not executable\nhint: a script needs chmod +x" in result.stderr


@needs_linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_handed_on(number: signal.Signals, tmp_path: Path) -> None:
    """The command says when it is ready, and with which signal it was ended; it gets it once."""
    script = (
        "import signal, sys, time\n"
        "got = []\n"
        f"signal.signal({int(number)}, lambda *_: got.append(1))\n"
        "print('ready', flush=True)\n"
        f"end = time.monotonic() + {HANG_S}\n"
        "while not got and time.monotonic() < end: time.sleep(0.01)\n"
        "time.sleep(0.1)\n"
        "sys.exit(40 + len(got))\n"
    )
    path = tmp_path / "anchor.json"
    command = [sys.executable, "-m", "traceconv", "anchor", "-o", str(path), "--", sys.executable, "-c", script]
    pipe = subprocess.PIPE
    # What a shell runs in the background ignores SIGINT, and so would all that it starts.
    heed = partial(signal.signal, number, signal.SIG_DFL)
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True, preexec_fn=heed) as ours:
        assert ours.stdout is not None
        assert ours.stdout.readline() == b"ready\n"
        ours.send_signal(number)
        assert ours.wait(timeout=HANG_S) == 41
    assert content(path)["command"]["exit_code"] == 41


def test_the_target_is_checked_before_the_command_runs(tmp_path: Path) -> None:
    path = tmp_path / "anchor.json"
    path.write_text("mine")
    mark = tmp_path / "ran"
    result = process("anchor", "-o", path, "--", "touch", mark)
    assert result.returncode == 2
    assert b"exists" in result.stderr
    assert not mark.exists()
    assert path.read_text() == "mine"
    assert process("anchor", "-o", "-", "--", "touch", mark).returncode == 2
    assert process("anchor", "-f", "-q", "-o", path, "--", "touch", mark).stderr == b""
    assert mark.exists()
    assert content(path)["command"]["exit_code"] == 0


def test_the_usual_name(tmp_path: Path) -> None:
    result = process("anchor", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"")
    (path,) = tmp_path.iterdir()
    assert path.name.startswith(time.strftime("anchor-%Y-"))
    assert "command" not in content(path)


# -- as an input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["alone", "around-command", "clock-set", "killed", "not-found", "windows"])
def test_goldens_follow_the_schema(case: str) -> None:
    found = json.loads((GOLDEN / case / "input.json").read_text())
    if case == "clock-set":  # one of its bounds is wrong on purpose
        with pytest.raises(jsonschema.ValidationError, match="less than the minimum"):
            jsonschema.validate(found, SCHEMA)
    else:
        jsonschema.validate(found, SCHEMA)


def read_golden(case: str) -> Trace:
    return api.read(GOLDEN / case / "input.json")


def one_event(name: str, clock: ClockDomain, ts: int, *snapshots: ClockSnapshot) -> Trace:
    out = Builder(SourceInfo(name, "viztracer"), clock)
    out.slice(out.tracks.add("t"), ts, 10, "event")
    for snapshot in snapshots:
        out.clocks.snapshot(snapshot)
    return lay_out(out.finish())


@pytest.mark.parametrize("name", ["CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME"])
@pytest.mark.parametrize("case", ["alone", "around-command"])
def test_it_relates_recordings_of_its_machine(name: str, case: str) -> None:
    anchored = read_golden(case)
    host = anchored.clocks[0].machine
    zero = Zero.BOOT if name == "CLOCK_MONOTONIC" else Zero.UNKNOWN
    domain = ClockDomain(name, zero, Run.MONOTONIC, 1, host)
    given = json.loads((GOLDEN / case / "input.json").read_text())["readings"]
    wall = next(reading for reading in given if reading["other"] == "CLOCK_REALTIME")
    there = next((reading for reading in given if reading["other"] == name), {"other_ns": wall["ns"], "ns": wall["ns"]})
    ts = there["other_ns"]
    found = align([one_event("a", domain, ts), anchored, one_event("b", REALTIME, wall["other_ns"])])
    truth = wall["other_ns"] + there["ns"] - wall["ns"]
    assert abs(found.maps[0][0].at(ts) - truth) <= 300
    bound = found.receipt[0].bound_ns
    assert bound is not None
    assert bound < 5000
    assert found.receipt[0].verdict == "ok"
    elsewhere = one_event("a", replace(domain, machine="elsewhere"), ts)
    with pytest.raises(Exception, match="have no common clock"):
        align([elsewhere, anchored, one_event("b", REALTIME, wall["other_ns"])])


def test_readings_before_and_after_give_the_drift(tmp_path: Path) -> None:
    """Two files of one machine, 100 s apart, in which one clock gains 20 ppm on the other."""
    paths = []
    for number, moved in ((0, 0), (1, 2 * MS)):
        pair = {"clock": "CLOCK_MONOTONIC", "other": "CLOCK_MONOTONIC_RAW", "within_ns": 50}
        at = 10**12 + number * 100 * S
        readings = [pair | {"ns": at, "other_ns": at - 5 + moved}]
        paths.append(tmp_path / f"{number}.json")
        clocks_of_file = {"CLOCK_MONOTONIC": {"resolution_ns": 1}, "CLOCK_MONOTONIC_RAW": {"resolution_ns": 1}}
        content_of_file = {"traceconv-anchor": 1, "host": "h", "clocks": clocks_of_file, "readings": readings}
        paths[-1].write_text(json.dumps(content_of_file))
    raw = ClockDomain("CLOCK_MONOTONIC_RAW", Zero.UNKNOWN, Run.MONOTONIC, 1, "h")
    mono = ClockDomain("CLOCK_MONOTONIC", Zero.BOOT, Run.MONOTONIC, 1, "h")
    middle = 10**12 + 50 * S
    traces = [one_event("a", mono, middle), one_event("b", raw, middle), *map(api.read, paths)]
    found = align(traces)
    assert found.clock == mono
    (way,) = found.maps[1].values()
    assert abs(way.at(middle - 5 + MS) - middle) <= 2
    assert way.bound_ns is not None
    assert way.bound_ns < 250


def test_a_clock_that_was_set_is_not_related_too_well() -> None:
    found = read_golden("clock-set")
    assert {entry.code for entry in found.sources[0].diagnostics} == {BAD_READING}
    wall = [snap for snap in found.snapshots if snap.other.name == "CLOCK_REALTIME"]
    alignment = align([found])
    (way,) = alignment.maps[0].values()
    assert way.bound_ns is not None
    for snap in wall:  # whenever the clock was set, the truth is one of the two
        assert abs(way.at(snap.ts) - snap.other_ts) <= way.bound_ns
    (warning,) = alignment.receipt[0].warnings
    assert "CLOCK_MONOTONIC and CLOCK_REALTIME moved apart by 3.000000003 s between" in warning
    assert "the readings in input.json," in warning


@pytest.mark.parametrize("resolution", [1, 1000])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("later", [60 * S, 0])
def test_the_order_of_files_that_contradict_each_other_does_not_matter(
    resolution: int, turned: bool, later: int
) -> None:
    """The wall clock was set ahead by 0.3 s between two files of one machine, which print it in their own ways."""
    clock = ClockDomain("CLOCK_MONOTONIC", Zero.BOOT, Run.MONOTONIC, 1, "vm")
    printed = replace(clock, resolution_ns=resolution)
    wall = 1_795_000_000 * S
    first = ClockSnapshot(clock, 100 * S, REALTIME, wall, 1000, "readings")
    second = ClockSnapshot(printed, 100 * S + later, REALTIME, wall + later + 300 * MS, 1000, "readings")
    if turned:
        second = ClockSnapshot(REALTIME, second.other_ts, printed, second.ts, 1000, "readings")
    events = one_event("p.txt", clock, 100 * S + later // 2)
    files = [one_event("before.json", clock, 100 * S, first), one_event("after.json", printed, second.ts, second)]
    if turned:
        files[1] = one_event("after.json", printed, second.other_ts, second)
    there, back = align([events, *files]), align([events, *reversed(files)])
    (way,), (again,) = there.maps[0].values(), back.maps[0].values()
    assert (way.offset_ns, way.drift, way.bound_ns) == (again.offset_ns, again.drift, again.bound_ns)
    assert way.bound_ns is not None
    for truth in (wall - 100 * S, wall - 100 * S + 300 * MS):
        assert abs(way.at(100 * S + later // 2) - (truth + 100 * S + later // 2)) <= way.bound_ns
    for line in (*there.receipt, *back.receipt):
        (warning,) = [one for one in line.warnings if "moved apart by 300 ms" in one]
        assert "before.json" in warning
        assert "after.json" in warning


def test_a_file_that_the_user_puts_on_a_clock_that_was_set_says_so() -> None:
    clock = ClockDomain("CLOCK_MONOTONIC", Zero.BOOT, Run.MONOTONIC, 1, "vm")
    wall = 1_795_000_000 * S
    first = ClockSnapshot(clock, 100 * S, REALTIME, wall, 1000, "readings")
    second = ClockSnapshot(clock, 160 * S, REALTIME, wall + 60 * S + 300 * MS, 1000, "readings")
    private = ClockDomain("private", Zero.UNKNOWN, Run.MONOTONIC)
    traces = [
        one_event("p.txt", private, 130 * S),
        one_event("before.json", clock, 100 * S, first),
        one_event("after.json", clock, 160 * S, second),
        one_event("wall.json", REALTIME, wall + 30 * S),
    ]
    found = align(
        traces, constraints=parse_constraints([trace.sources[0].name for trace in traces], clocks=["p.txt=monotonic"])
    )
    warned = [any("moved apart" in one for one in line.warnings) for line in found.receipt]
    assert warned == [True, True, True, False]


def test_merge_takes_an_input_that_gives_clocks_only(tmp_path: Path) -> None:
    perf = ROOT / "perf-data" / "call_chains" / "input.data"
    mxnet = next((ROOT / "mxnet").glob("*/input.json"))
    alone = GOLDEN / "alone" / "input.json"
    for inputs in ((alone, perf, mxnet), (mxnet, alone), (alone,)):
        result = run("merge", *inputs, "-o", tmp_path / "out.pftrace", "-f")
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("said", [-(10**30), 0, 10**30])
def test_a_resolution_that_no_clock_has_is_limited(said: int, tmp_path: Path) -> None:
    content = json.loads((ROOT / "clock-anchor" / "alone" / "input.json").read_text())
    for about in content["clocks"].values():
        about["resolution_ns"] = said
    path = tmp_path / "anchor.json"
    path.write_text(json.dumps(content))
    trace = api.read(path)
    assert {clock.resolution_ns for clock in trace.clocks} == {1 if said <= 0 else LIMIT_NS}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"traceconv-anchor": 2, "host": "h", "clocks": {}, "readings": []}', "version 2 of the format, expected 1"),
        ('{"traceconv-anchor": 1, "host": "h", "clocks": {}, "readings": []}', "no readings"),
        ('{"traceconv-anchor": 1, "host": "h", "clocks": {}}', "missing required field `readings`"),
        ('{"traceconv-anchor": 1, "host": "h", "clocks": {}, "readings": [{"ns": 1.5}]}', "expected the object"),
    ],
)
def test_files_that_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "anchor.json"
    path.write_text(text)
    error = refusal(run("convert", path, "-o", tmp_path / "out.json"))
    assert error.exit_code == 1
    assert message in error.message


def test_how_mentions_it() -> None:
    assert "traceconv anchor -o anchor.json -- COMMAND" in run("how", "perf-data").stdout
    for name in ("onnxruntime", "pytorch-kineto", "mxnet"):
        recipe = run("how", name).stdout
        assert re.search(r"^perf record -k CLOCK_MONOTONIC .* run\.py$", recipe, re.M)
        assert re.search(r"^traceconv report .* --section layers$", recipe, re.M)
        for words in ("-X perf", "--call-graph dwarf", "<not supported>"):
            assert words in recipe
    assert "PAPIMetricCollector" in run("how", "tvm-profile").stdout
    assert run("how", "clock-anchor").stdout.count("traceconv anchor -o") == 1


# -- traceconv clocks -------------------------------------------------------------------------------------------------


def test_clocks_says_that_an_option_gives_the_zero() -> None:
    alone = GOLDEN / "alone" / "input.json"
    result = run("clocks", alone, "--offset", "input.json=5s")
    assert "given by an option" in result.stdout, result.output
    assert "given by an option" not in run("clocks", alone).stdout


def test_clocks_says_what_relates_files() -> None:
    kineto = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
    onednn = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
    result = run("clocks", kineto, onednn, GOLDEN / "alone" / "input.json")
    assert result.exit_code == 0, result.output
    assert "PyTorch profiler time  stated by the file" in result.stdout
    assert "(CLOCK_BOOTTIME)" in result.stdout
    assert "and input.log: related by baseTimeNanoseconds" in result.stdout


def test_clocks_says_what_would_relate_files() -> None:
    untimed = ROOT / "onednn-verbose" / "v1-no-ts" / "input.log"
    kineto = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
    result = run("clocks", kineto, untimed)
    assert result.exit_code == 0, result.output
    assert "input.json and input.log: not related" in result.stdout
    assert "ONEDNN_VERBOSE_TIMESTAMP=1" in result.stdout
    assert "--anchor 'input.json:NAME#1.start=input.log:NAME#1.start'" in result.stdout
    placed = run("clocks", kineto, untimed, "--anchor", "input.json:aten::conv2d#1.start=input.log@0s")
    assert "input.json and input.log: related by --anchor (assumed), within ±2 ns" in placed.stdout
