"""The benchmark works on tiny inputs; what it measures is not judged here, but that it measures and says so is."""

from __future__ import annotations

import itertools
import json
import pkgutil
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import traceconv
from tests import HANG_S
from tests.benchmarks import __main__ as command
from tests.benchmarks import frame, layers, lines, many, memory, record, start
from tests.benchmarks import phases as sampler
from tests.benchmarks.frame import (
    ROOT,
    Contestant,
    Cost,
    Measured,
    NotMeasured,
    Race,
    Work,
    Wrong,
    at_most,
    compete,
    faster,
    measure,
    memory_for_input,
    memory_share,
)
from tests.benchmarks.generate import generate
from traceconv.api import read

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="wait4 is of POSIX")

_BUSY = "import time\nwhile time.process_time() < 0.5: pass"
_LARGE = "b = bytearray(200_000_000); b[::4096] = bytes(len(b[::4096]))"


def _python(code: str) -> Contestant:
    return Contestant([sys.executable, "-S", "-c", code])


def _costs(**runs: tuple[float, int]) -> Measured:
    race = Race({"absent": Contestant(["absent"], needs="absent")}, "", {"input_bytes": 1e9})
    return Measured(race, {name: [Cost(cpu, 0.0, peak)] for name, (cpu, peak) in runs.items()})


def test_a_run_costs_its_own_time_and_memory() -> None:
    ballast = bytearray(300_000_000)
    ballast[::4096] = bytes(len(ballast[::4096]))  # of this process, which is not the contestant's
    idle, busy, large = measure(_python("pass")), measure(_python(_BUSY)), measure(_python(_LARGE))
    assert busy.cpu_s >= 0.5
    assert idle.cpu_s < busy.cpu_s
    assert idle.peak_bytes < 60e6
    assert 200e6 < large.peak_bytes < 260e6


def test_what_hangs_runs_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    run_once = frame._run

    def run(contestant: Contestant, limit_s: int) -> tuple[Cost, int, str]:
        found = run_once(contestant, limit_s)
        ended.append(found[1])
        return found

    monkeypatch.setattr(frame, "_run", run)
    hanging = _python("import time; time.sleep(600)")
    with pytest.raises(Wrong, match=r"it ran for 1 s"):
        measure(hanging, limit_s=1)
    assert ended == [-signal.SIGALRM] * 2
    # However busy the machine is, the second run ends before the limit.
    runs = iter([(Cost(0, 0, 0), -signal.SIGALRM, ""), (Cost(1, 2, 3), 0, "")])
    monkeypatch.setattr(frame, "_run", lambda contestant, limit_s: next(runs))
    assert measure(hanging) == Cost(1, 2, 3)


def test_a_failure_is_told(tmp_path: Path) -> None:
    with pytest.raises(Wrong, match=r"(?s)exit code 3.*what it said"):
        measure(_python("import sys; print('what it said', file=sys.stderr); sys.exit(3)"))
    with pytest.raises(Wrong, match="exit code 127"):
        measure(Contestant([str(tmp_path / "nothing")]))


def test_an_output_is_of_the_last_run(tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.write_text("old")
    measure(Contestant([sys.executable, "-c", "print('new')"], output, output))
    assert output.read_text() == "new\n"
    measure(Contestant([sys.executable, "-c", "pass"], output))
    assert not output.exists()


def test_what_is_not_installed_does_not_run() -> None:
    absent = Contestant(["nothing"], needs="nothing_that_is_installed")
    race = Race(
        {"absent": absent, "there": Contestant(_python("pass").command, needs="json")}, "", absent={"awk": "no awk"}
    )
    measured = compete(race, 1)
    assert list(measured.runs) == ["there"]
    with pytest.raises(NotMeasured, match="nothing_that_is_installed is not installed"):
        measured.cpu("absent")
    with pytest.raises(NotMeasured, match="no awk"):
        measured.cpu("awk")


def test_contestants_run_in_turns_and_slow_ones_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = f"open({str(log)!r}, 'a').write("
    runs = compete(
        Race({"a": _python(f"{code}'a')"), "b": Contestant(_python(f"{code}'b')").command, slow=True)}, ""), 3
    ).runs
    assert log.read_text() == "abaa"
    assert [len(costs) for costs in runs.values()] == [3, 1]


def test_goals_compare() -> None:
    costs = _costs(ours=(2.0, 300_000_000), peer=(4.0, 600_000_000))
    assert at_most(1, "ours", "peer").judge(costs).off == 0.5
    assert at_most(1, "peer", "ours").judge(costs).off == 2
    assert faster(1, "ours", "peer").judge(costs).off == 0.5
    assert faster(12, "ours", "peer").judge(costs).off == 6
    assert memory_share(1 / 3, "ours", "peer").judge(costs).off == 1.5
    assert memory_for_input(0.2, 100e6, "ours").judge(costs).off == 1
    with pytest.raises(NotMeasured, match="absent is not installed"):
        faster(1, "ours", "absent").judge(costs)


@pytest.mark.parametrize(("limit", "code", "verdict"), [(1e9, 0, "reached"), (1e-9, 1, "missed")])
def test_the_small_version_fails_when_far_off(
    limit: float, code: int, verdict: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    race = Race({"idle": _python("pass"), "busy": _python(_BUSY)}, "nothing")
    goal = at_most(limit, "busy", "idle")
    work = Work("nothing", "Nothing", [goal], 10, 5, lambda folder, events: race)
    absent = Work("none", "None", [goal], 10, 0, lambda folder, events: race)
    monkeypatch.setattr(command, "WORKS", (work, absent))
    before = record.Row("Nothing", goal.text, "reached before", 0.5)
    monkeypatch.setattr(record, "load", lambda: {"nothing": record.Result([before])})
    with pytest.raises(SystemExit) as ended:
        command.main(["--small", "--repeats", "1"])
    assert ended.value.code == code
    told = capsys.readouterr()
    judged, absent_row, blank, summary, skipped = told.out.splitlines()[-5:]
    assert (judged.split("|")[-2].strip(), absent_row.split("|")[-2].strip(), blank) == (verdict, "not measured", "")
    assert summary == (
        f"2 figures: {1 - code} reach their goal, 0 miss it by no more than is tolerated, {code} far off, 1 not judged"
    )
    assert skipped.startswith("not judged, since it was not measured (")
    assert skipped.endswith(f"None: {goal.text}")
    assert bool(told.err) == bool(code)
    with pytest.raises(SystemExit) as ended:
        command.main(["--repeats", "1"])
    assert ended.value.code == 0  # only the small version judges


def test_work_that_is_wrong_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    def verify() -> list[str]:
        raise Wrong("a slice is lost")

    race = Race({"a": _python("pass")}, "", verify=verify)
    monkeypatch.setattr(command, "WORKS", (Work("w", "W", [at_most(1, "a", "a")], 1, 1, lambda folder, events: race),))
    with pytest.raises(SystemExit, match="w: a slice is lost"):
        command.main(["--repeats", "1"])


@pytest.mark.slow
@pytest.mark.usefixtures("trace_processor")
@pytest.mark.parametrize("work", [work.name for work in command.WORKS])
def test_each_work_on_tiny_inputs(work: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = "1" if work == "start" else "2000"  # its events are runs
    with pytest.raises(SystemExit) as ended:
        command.main([work, "--events", events, "--repeats", "1", "--json", str(tmp_path / "rows.json")])
    assert ended.value.code == 0
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    (goals,) = [one.goals for one in command.WORKS if one.name == work]
    assert [row["goal"] for row in rows] == [goal.text for goal in goals]
    for row in rows:
        assert row["off"] is None or row["off"] > 0
        assert row["reached"]
    shown = capsys.readouterr().out
    assert all(goal.text in shown for goal in goals)


@pytest.mark.parametrize("pretty", [True, False])
def test_what_is_generated_is_counted(pretty: bool, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    told = generate(path, 3000, pretty=pretty, rank=1)
    document = json.loads(path.read_text(encoding="utf-8"))
    phases = [event["ph"] for event in document["traceEvents"]]
    assert document["distributedInfo"]["rank"] == 1
    assert (told.events, told.slices, told.flows) == (3000, phases.count("X"), phases.count("s"))
    assert phases.count("s") == phases.count("f")
    assert told.bytes == path.stat().st_size


def test_phases_are_of_modules_that_are_there() -> None:
    found = {one.name for one in pkgutil.walk_packages(traceconv.__path__, "traceconv.")}
    assert sampler.PHASES.keys() <= found
    assert sampler.phase_of("traceconv.families.perfetto.writer", "write") == "encoding"
    assert sampler.phase_of("traceconv.families.perfetto.reader", "read") == "reading"
    assert sampler.phase_of("traceconv.families.perfetto.reader", "sort_events") == "ordering"


def test_phases_add_up_to_the_whole(tmp_path: Path) -> None:
    source, output = tmp_path / "trace.json", tmp_path / "trace.pftrace"
    generate(source, 40_000)
    command_line = [sys.executable, "-m", "tests.benchmarks.phases", "convert", str(source), "-o", str(output)]
    told = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=True).stdout
    first, second = ([line.split() for line in part.splitlines()] for part in told.strip().split("\n\n"))
    phases = {" ".join(words[3:]): float(words[0]) for words in first}
    # Which of the short ones the timer meets depends on the machine.
    assert {"start-up"} <= phases.keys() <= {"start-up", "everything else", *sampler.PHASES.values()}
    functions = {words[-1]: float(words[0]) for words in second}
    assert any(name.startswith("traceconv.families.") for name in functions)
    assert 0 < sum(functions.values()) <= sum(phases.values()) + 0.2
    assert output.stat().st_size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--events 0", "argument --events: not a number from 1 on: 0"),
        ("--events many", "argument --events: not a number from 1 on: many"),
        ("start --events 20 --record", "--record keeps figures of the whole size, with 3 runs or more"),
        ("start --repeats 1 --record", "--record keeps figures of the whole size, with 3 runs or more"),
        ("start --small --record", "--record keeps figures of the whole size, with 3 runs or more"),
    ],
)
def test_figures_that_mean_nothing_are_not_taken(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments.split())
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_another_size_is_not_judged() -> None:
    rows = [record.Row("work", "goal", "2.00 ×", 2.0), record.Row("work", "goal", "0.10 ×", 0.1)]
    assert [line.split("|")[-2].strip() for line in record.table(rows)[2:]] == ["missed", "reached"]
    assert [line.split("|")[-2].strip() for line in record.table(rows, with_verdict=False)[2:]] == ["another size"] * 2


def test_the_small_version_tolerates_what_is_recorded() -> None:
    def rows(off: float | None) -> list[record.Row]:
        return [record.Row("work", "goal", "figure", off)]

    missed, reached = ({"work": record.Result(rows(off))} for off in (3.0, 0.2))
    assert command.judge(rows(5.9), missed) == command.judge(rows(1.9), reached) == command.Judged(0, 1, [], [])
    assert command.judge(rows(0.9), missed) == command.Judged(1, 0, [], [])
    for off, recorded in ((6.1, missed), (2.1, reached)):
        judged = command.judge(rows(off), recorded)
        assert (judged.reached, judged.near, len(judged.far_off), judged.skipped) == (0, 0, 1, [])
    unrecorded = ["not judged, since no figure of it is recorded: work: goal"]
    for recorded in ({}, {"work": record.Result(rows(None))}):
        assert command.judge(rows(9.0), recorded) == command.Judged(0, 0, [], unrecorded)
    unmeasured = ["not judged, since it was not measured (figure): work: goal"]
    assert command.judge(rows(None), missed) == command.Judged(0, 0, [], unmeasured)


def test_the_documents_show_what_is_recorded() -> None:
    for path, text in record.documents().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: python -m tests.benchmarks --record"


def test_what_is_recorded_are_the_works_of_the_benchmark() -> None:
    recorded = record.load()
    assert list(recorded) == [work.name for work in command.WORKS]
    for work in command.WORKS:
        shown = [(row.work, row.goal) for row in recorded[work.name].rows]
        assert shown == [(work.title, goal.text) for goal in work.goals]


def test_what_is_not_measured_again_stays_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "RECORD", tmp_path / "recorded.json")
    monkeypatch.setattr(record, "documents", dict)
    measured = record.Result([record.Row("A", "goal", "1.00 ×", 1.0)], ("costs",), "header")
    unmeasured = record.Result([record.Row("A", "goal", "takes very long", None)])
    record.save({"a": measured, "b": unmeasured, "old": measured}, ["b", "a", "old"])
    record.save({"a": unmeasured}, ["b", "a"])
    assert record.load() == {"b": unmeasured, "a": measured}


# -- short lines ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", lines.ROWS)
def test_the_shortest_rows_of_a_format_are_data(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"input{lines.source_of(name).suffix}"
    options = {"time": "syslog"} if name.startswith("timed-log/") else {}
    written = []
    for rows in (0, 50):
        more = "".join(f"{lines.ROWS[name](number)}\n" for number in range(1, rows + 1))
        path.write_bytes(lines.head_of(name) + more.encode())
        written.append(read(path, format=name.partition("/")[0], options=options).sources[0].balance.written)
    assert written[1] == written[0] + 50


def test_the_cost_of_short_lines_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lines, "BYTES", 3000)
    monkeypatch.setattr(lines, "_FEW", 300)
    monkeypatch.setattr(lines, "_main_work", lambda folder: lines._Cost(5.0, 2000.0))
    lines.main(["vtune/timeline", "--kinds", "varied,rows"])
    head, _, columns, row = capsys.readouterr().out.splitlines()
    assert head == "main work: 5.00 ns a byte, 2000 ns an event"
    assert columns.split() == ["varied", "rows"]
    assert re.fullmatch(r"vtune/timeline( +\d+ \(\d+\.\d\), \d+ \(\d+\.\d\)){2}", row)


def test_the_memory_of_short_rows_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory.main(["vtune/timeline", "instants", "--size", "1"]) == 0
    said = capsys.readouterr()
    _, *rows = said.out.splitlines()
    assert [row.split()[0] for row in rows] == ["vtune/timeline", "instants"]
    assert all(len(row.split()) == 7 for row in rows)
    assert not said.err


@pytest.mark.parametrize(
    ("shape", "command"), list(zip(many.SHAPES, itertools.cycle(many.COMMANDS))), ids=list(many.SHAPES)
)
def test_what_very_many_tracks_and_clocks_cost_is_shown(
    shape: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Figures of so few mean nothing."""
    assert many.main([shape, "--count", "40", "--command", command]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [[shape, command]]


def test_memory_above_its_bound_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory, "BOUND", 1_000_000)
    assert memory.main(["instants", "--size", "1"]) == 1
    assert capsys.readouterr().err == "more than 1 MB above the input: instants\n"


def test_layers_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    layers.main(4_000)  # which of the two costs more is not judged here
    assert "2000 samples, 2000 slices, 79 rows\nCPU: reading " in capsys.readouterr().out


def test_the_steps_of_starting_run(tmp_path: Path) -> None:
    steps = start.steps(tmp_path)
    assert next(iter(steps)) == start.PYTHON
    for arguments in steps.values():
        subprocess.run(arguments, check=True, cwd=start.ROOT, capture_output=True)
    assert (tmp_path / "few.pftrace").stat().st_size > 0
