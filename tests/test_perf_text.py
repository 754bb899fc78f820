"""The text formats of Linux perf: figures against perf's own, chunks of lines, states of threads, clocks."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests import GROWTH_S
from tests.golden import ROOT, cases
from tests.kernels import using
from traceconv import kernel
from traceconv.api import identify, read
from traceconv.errors import InputError, MalformedInput, UnrecognizedFormat, UsageError
from traceconv.families.perf import samples as text
from traceconv.families.perf import script as perf_script
from traceconv.families.perf import stat
from traceconv.families.perf.header import PERF_CLOCK, Header
from traceconv.families.perf.samples import NO_STACK, PerfTracks, Task, state_name
from traceconv.families.registry import Certainty, importer_class
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import MONOTONIC
from traceconv.model.diagnostics import Severity
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import NO_CPU, Trace
from traceconv.model.track_table import TrackKind

DATA = Path(__file__).parent / "data" / "perf"
FORMATS = ("perf-script", "perf-stat", "perf-report", "perf-header")


def written(tmp_path: Path, content: str, name: str = "perf.txt") -> Path:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


def stack_of(trace: Trace, stack: int) -> list[tuple[str, str]]:
    """(symbol, file), innermost first."""
    found = []
    while stack >= 0:
        frame = trace.frames[stack]
        found.append((frame.name, frame.category))
        stack = frame.parent
    return found


def states(trace: Trace) -> list[tuple[str, int, int]]:
    """(name, start, length) of all slices, in order of time."""
    table = trace.slices
    rows = zip(table.name.tolist(), table.ts.tolist(), table.dur.tolist(), strict=True)
    return sorted(((trace.strings[name], ts, dur) for name, ts, dur in rows), key=lambda row: row[1])


def on_cpus(trace: Trace) -> list[tuple[int, int]]:
    """Time and CPU of all samples."""
    return list(zip(trace.samples.ts.tolist(), trace.samples.cpu.tolist(), strict=True))


# -- against perf's own figures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["", " 18764", " 18764/18770", " 18764 [003]"])
def test_events_without_frames_are_known(task: str, tmp_path: Path) -> None:
    """As perf script -F comm,pid,time,event and the like print them, with and without a header."""
    lines = [f"          python{task}  5421.66{number}121: cpu-clock: \n" for number in range(8)]
    path = tmp_path / "out.txt"
    path.write_text("".join(lines))
    assert identify(path)[0] == "perf-script"
    assert len(read(path).samples.ts) == 8
    path.write_text("# ========\n# captured on    : Mon Nov 23 10:00:00 2026\n#\n" + "".join(lines))
    assert len(read(path).samples.ts) == 8
    path.write_text("".join(lines[:7]) + "python: 12.345678: something: else\n")
    with pytest.raises(UnrecognizedFormat):
        read(path)


def test_samples_agree_with_perf_report() -> None:
    """The same perf.data, printed by perf script and summed by perf report: each row of the report."""
    script = read(DATA / "ort_rec.script.txt.gz")
    report = read(DATA / "ort_rec.report.txt.gz")
    (told,) = report.metadata["perf_report"]
    assert told == {"event": "cpu-clock", "samples": 268, "event_count": 268268268}
    assert script.metadata["perf_samples"] == {"cpu-clock": {"samples": 268, "event_count": 268268268}}
    assert len(script.samples.ts) == told["samples"]

    def place(symbol: str, file: str) -> tuple[str, str]:
        """The report names files without folders, and what has no symbol by its address."""
        unknown = symbol == "[unknown]" or symbol.startswith("0x")
        return ("[unknown]" if unknown else symbol), file if file.startswith("[") else file.rpartition("/")[2]

    ours: Counter[tuple[str, str]] = Counter()
    for stack, weight in zip(script.samples.stack.tolist(), script.samples.weight.tolist(), strict=True):
        ours[place(*stack_of(script, stack)[0])] += weight
    theirs: Counter[tuple[str, str]] = Counter()
    rows = report.instants
    for at, length, name, category in zip(
        rows.args_at.tolist(), rows.args_len.tolist(), rows.name.tolist(), rows.category.tolist(), strict=True
    ):
        percent = float(report.args.get(at, length).split(b'"overhead_percent":')[1].split(b",")[0])
        theirs[place(report.strings[name], report.strings[category])] += round(percent * 268 / 100)
    assert {key: weight // 1001001 for key, weight in ours.items()} == theirs


def test_intervals_sum_up_to_the_summary() -> None:
    """What perf stat --summary prints is the sum of the counts of the intervals, to the digit."""
    trace = read(DATA / "ort_stat_I50_summary_x.csv.gz")
    assert trace.sources[0].balance.written == 119
    sums: Counter[str] = Counter()
    table = trace.counters
    for track, value in zip(table.track.tolist(), table.value.tolist(), strict=True):
        sums[trace.tracks[track].name] += value
    rows = trace.slices
    (run,) = [i for i in range(len(rows.ts)) if trace.strings[rows.name[i]] == "summary"]
    assert (int(rows.ts[run]), int(rows.dur[run])) == (0, 828324931)
    args = trace.args.get(int(rows.args_at[run]), int(rows.args_len[run])).decode()
    for event, total in (("page-faults", 11838), ("context-switches", 236), ("cpu-migrations", 3)):
        assert sums[event] == total
        assert f'"{event}":{{"value":{total},' in args
    assert sums["task-clock"] == pytest.approx(654.85, abs=0.005 * 17 + 0.005)


def test_reference_time_lies_in_its_bound() -> None:
    """The pair of readings in the header, against 400 readings of both clocks by the program that was recorded.

    The program found CLOCK_REALTIME - CLOCK_MONOTONIC = 1795242185473426258 ns, good to 109 ns.
    """
    header = Header()
    for line in (ROOT / "perf-script/header_beside/beside/perf.header.txt").read_bytes().splitlines():
        header.add_line(line)
    assert header.reference is not None
    wall, monotonic = header.reference
    error = wall - monotonic - 1795242185473426258
    assert -5000 + 109 < error < 5000 - 109
    assert error < -1000  # more than the microsecond to which it is printed: the bound is needed


# -- lines of perf script ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "comm", "ids", "cpu", "time", "event"),
    [
        (b"my prog) [0  7/8 [000] 12.345678: 1 cycles: ", b"my prog) [0", (b"7", b"8"), b"000", b"12", b"cycles"),
        (b"     p 9570  27.636776460:  9 a/period=9/:  7f ld (x)", b"p", (b"9570", None), None, b"27", b"a/period=9/"),
        (b"18571 [001]  2674.579460: cpu-clock: ", None, (b"18571", None), b"001", b"2674", b"cpu-clock"),
        (b" 2674.579460: cpu-clock: ", None, (None, None), None, b"2674", b"cpu-clock"),
        (b"python  2674.579460: cycles:ppp: ", b"python", (None, None), None, b"2674", b"cycles:ppp"),
        (b"swapper -1/0 [003] U 1.000000001: a:b: x=1", b"swapper", (b"-1", b"0"), b"003", b"1", b"a:b"),
        (b"a 1 2026-11-21 07:07:40.052884 3.000000: 5 cycles: ", b"a", (b"1", None), None, b"3", b"cycles"),
        (b"1 2 3 4 [000] 5.000000: 1.000000: cycles: ", b"1 2 3", (b"4", None), b"000", b"5", b"1.000000"),
    ],
)
def test_event_line(line: bytes, comm: bytes, ids: tuple[bytes, bytes], cpu: bytes, time: bytes, event: bytes) -> None:
    match = text.EVENT.fullmatch(line.rstrip())
    assert match is not None
    assert (match[1], (match[2], match[3]), match[4], match[6], match[10]) == (comm, ids, cpu, time, event)


@pytest.mark.parametrize(
    ("line", "symbol", "file"),
    [
        (b"\t  8ab00 pthread_self@@GLIBC_2.34+0x0 (/lib/libc.so.6)", "pthread_self@@GLIBC_2.34", "/lib/libc.so.6"),
        (b"\t  1 foo(int) const (/a b/c (d)/e.so)", "foo(int) const", "/a b/c (d)/e.so"),
        (b"\t  1 f+0x1 (/a.so (deleted))", "f", "/a.so (deleted)"),
        (b"\t  1 f (memfd:x (deleted))", "f", "memfd:x (deleted)"),
        (b"\t  0 [unknown] ([unknown])", "[unknown]", "[unknown]"),
        (b"\t  1 f (/a.so+0x123)", "f", "/a.so"),
        (b"\t  1 f (inlined)", "f (inlined)", ""),
        (b"\t  1 operator()(int) const", "operator()(int) const", ""),
        (b"\t  8ab00", "0x8ab00", ""),
    ],
)  # fmt: skip
def test_frame(line: bytes, symbol: str, file: str) -> None:
    known = symbol not in ("[unknown]", "0x8ab00")
    assert text.frame_of(line) == (symbol, file, known)


@pytest.mark.parametrize(
    ("event", "expected"),
    [("sched:sched_switch", True), ("probe_libc:malloc", True), ("cycles:ppp", False), ("cycles:u", False),
     ("cpu-clock", False), ("cpu_core/cycles/P", False)],
)  # fmt: skip
def test_tracepoints_are_not_modifiers(event: str, expected: bool) -> None:
    assert text.is_tracepoint(event) is expected


def test_fields_of_tracepoints() -> None:
    assert text.fields_of("which: 0x00000002, who: 0x00067908") == {"which": "0x00000002", "who": "0x00067908"}
    assert text.fields_of("comm=my app pid=42 prio=-1") == {"comm": "my app", "pid": 42, "prio": -1}
    assert text.fields_of('(55d2) size=4096 name="a"') == {"address": "55d2", "size": 4096, "name": "a"}
    assert text.fields_of("0x10") == {"text": "0x10"}
    assert text.fields_of("") == {}


def test_both_forms_of_sched_switch() -> None:
    new = "prev_comm=a b prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=c=d next_pid=8 next_prio=0"
    old = "a b:7 [120] R+ ==> c=d:8 [0]"
    expected = (Task("a b", 7, 120), "R+", Task("c=d", 8, 0))
    assert text.switch_of(new) == text.switch_of(old) == expected
    assert text.switch_of("anything else") is None


def test_times_keep_all_their_digits(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "a 1 1795244861.861908089: 1 cycles:  ff f+0x1 (/x)\na 1 1795244861.861908: 1 cycles:  ff f+0x1 (/x)\n",
    )
    trace = read(path)
    assert trace.samples.ts.tolist() == [1795244861861908000, 1795244861861908089]
    assert trace.clocks[0].name == "CLOCK_REALTIME"
    assert trace.clocks[0].resolution_ns == 1000


def test_user_tells_the_clock(tmp_path: Path) -> None:
    path = written(tmp_path, "a 1 12.345678901: 1 cycles:  ff f+0x1 (/x)\n")
    assert read(path).clocks[0].name == PERF_CLOCK.name
    assert read(path, options={"clockid": "monotonic"}).clocks[0].name == "CLOCK_MONOTONIC"
    with pytest.raises(UsageError, match="monotonic_raw"):
        read(path, options={"clockid": "wall"})


def test_pid_by_word_of_the_user(tmp_path: Path) -> None:
    trace = read(written(tmp_path, "a 8 12.345678901: 1 cycles:  ff f+0x1 (/x)\n"), options={"pid": "7"})
    process = next(track for track in trace.tracks if track.kind is TrackKind.PROCESS)
    assert process.pid == 7


def test_a_header_that_the_user_names(tmp_path: Path) -> None:
    path = written(tmp_path, "a 8 12.345678901: 1 cycles:  ff f+0x1 (/x)\n")
    header = ROOT / "perf-header/monotonic/input.txt"
    trace = read(path, options={"header": str(header)})
    assert trace.clocks[0].name == "CLOCK_MONOTONIC"
    assert trace.clocks[0].machine == "vm"
    assert any("do not all lie" in note for note in trace.sources[0].notes)
    with pytest.raises(MalformedInput, match="no perf header found"):
        read(path, options={"header": str(path)})
    with pytest.raises(InputError):
        read(path, options={"header": str(tmp_path / "absent")})


def test_a_header_alone_holds_no_events(tmp_path: Path) -> None:
    path = written(
        tmp_path, "# ========\n# captured on    : today\n# ========\n#\na 8 12.345678: 1 cycles:  ff f (/x)\n"
    )
    with pytest.raises(MalformedInput, match="line 5: events follow the header"):
        read(path, format="perf-header")
    assert read(path).sources[0].format == "perf-script"


def test_damaged_numbers_of_perf_stat_are_read_or_left_out() -> None:
    for line in ("  263..1 msec a", "  263.4. msec a", "  " + "9" * 500 + " msec a  # " + "9" * 400 + " GHz"):
        row = stat.text_row(line)
        assert row is None or isinstance(row.value, int | float)
    assert stat.csv_row("9" * 60 + ".000000001,5,,a,1,100.00,,", ",") is None


def test_prose_with_tables_is_no_perf_stat(tmp_path: Path) -> None:
    """The table has a number and a percentage between two separators, which are those of the prose."""
    prose = (
        "# Readings\n\n| rank | step 12 14.50 ms | busy |\n|---|---|---|\n| 0 | 14 | 5.80 | 38.3 |\n\n"
        "took 8 12.25 ms\n"
        "- Collectives: 8 per rank (5 all-to-all), all on stream 84. Waiting because of it: rank 1 11.1 ms.\n"
        "8 per rank and of thread 15 12.25 ms\n"
    )
    with pytest.raises(UnrecognizedFormat, match="no known format"):
        identify(written(tmp_path, prose))


@pytest.mark.parametrize(
    "line",
    [
        "     0.050113410,CPU0,50.70,msec,task-clock,50700000,66.65,1.014,CPUs utilized",
        "50.70;;cycles;50700000;100.00;;",
        "0.050113410 S0-D0-C0 2 50.70 msec task-clock 50700000 66.65 1.014 CPUs utilized",
        "sh -c-42|50.70|Joules|power/energy-pkg/|50700000|66,65||",
        "<not counted>,,cpu/event=0x3c,umask=0x1/,0,0.00,,",
    ],
)
def test_one_line_with_separators_is_perf_stat(tmp_path: Path, line: str) -> None:
    assert identify(written(tmp_path, f"output of the program\n{line}\n")).format == "perf-stat"


# -- threads and their states ------------------------------------------------------------------------------------------


def tracks_of(*, pid: int | None = None) -> tuple[Builder, PerfTracks]:
    out = Builder(SourceInfo("x", "perf-script"), PERF_CLOCK)
    return out, PerfTracks(out, pid)


def test_a_process_that_becomes_known_later() -> None:
    """Threads drawn without a process go under it, whatever was declared in between; parents stay before children."""
    out, tracks = tracks_of()
    tracks.thread(1, 1, "init")
    early = tracks.thread(None, 8, "worker")
    late = tracks.thread(7, 7, "main")
    assert tracks.thread(7, 8) == early
    for at, thread in enumerate((early, late)):
        tracks.sample(thread, at, NO_STACK, "cycles", 1, at, None)
    tracks.finish()
    parents = {out.tracks[thread].parent for thread in (early, late)}
    assert len(parents) == 1
    process = parents.pop()
    assert process < early
    assert (out.tracks[process].pid, out.tracks[process].name) == (7, "main")
    lay_out(out.finish())


def test_a_name_that_changes() -> None:
    out, tracks = tracks_of()
    thread = tracks.thread(7, 7, "perf-exec")
    tracks.know(7, 7, "python")
    tracks.finish()
    assert out.tracks[thread].name == "python"
    assert "perf-exec" in out.tracks[thread].description


def test_states_of_switches_and_wakeups() -> None:
    out, tracks = tracks_of()
    a, b, idle = Task("a", 7, 120), Task("b", 8, 100), Task("swapper/0", 0, 120)
    tracks.switch(100, 0, a, "S", b, 1)
    tracks.wakeup(150, a, 2)
    tracks.switch(200, 0, b, "R+", a, 3)
    tracks.switch(300, 0, a, "D", idle, 4)
    tracks.finish()
    trace = lay_out(out.finish())
    assert states(trace) == [
        ("Sleeping", 100, 50),
        ("Running", 100, 100),
        ("Runnable", 150, 50),
        ("Running", 200, 100),
        ("Runnable (preempted)", 200, 100),
        ("Uninterruptible sleep", 300, 0),
    ]


def test_one_process_alone_hides_switch_ins() -> None:
    """Recorded without -a: its wait ends at its next sample, and that others run after it is not drawn for ever."""
    out, tracks = tracks_of()
    a, other = Task("a", 7), Task("other", 9)
    tracks.switch(100, 0, a, "S", other, 1)
    tracks.sample(tracks.thread(None, 7, "a"), 170, NO_STACK, "cycles", 1, 2, None)
    tracks.switch(200, 0, a, "S", other, 3)
    tracks.finish()
    trace = lay_out(out.finish())
    assert states(trace) == [("Sleeping", 100, 70), ("Running", 170, 30), ("Sleeping", 200, 0)]
    assert {entry.code.name for entry in trace.sources[0].diagnostics} >= {"perf.switch_in_unseen"}


@pytest.mark.parametrize(
    ("letters", "name"),
    [("R", "Runnable"), ("R+", "Runnable (preempted)"), ("D|K", "Uninterruptible sleep | Wakekill"),
     ("", "Not running"), ("?", "?")],
)  # fmt: skip
def test_names_of_states(letters: str, name: str) -> None:
    assert state_name(letters) == name


# -- lines of perf stat ------------------------------------------------------------------------------------------------


def shown(row: stat.Row | None) -> str:
    if row is None:
        return "-"
    parts = (row.end, row.place, row.cpus, repr(row.value), row.unit, row.event, row.cgroup)
    return " ".join("." if part in (None, "") else str(part) for part in parts)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("      660.96 msec task-clock      #    0.460 CPUs utilized", ". . . 660.96 msec task-clock ."),
        ("     1,234,567,890      instructions   (66.65%)", ". . . 1234567890 . instructions ."),
        ("     1 234 567      cycles", ". . . 1234567 . cycles ."),
        ("     1\u202f234\u202f567,50 msec cpu-clock", ". . . 1234567.5 msec cpu-clock ."),
        ("   <not supported>      cycles", ". . . '<not supported>' . cycles ."),
        ("     0.1001 34 x", "-"),
        ("     0.050113410 CPU0        1222      page-faults", "50113410 CPU0 . 1222 . page-faults ."),
        ("     0.050115689 S0-D0-C0           1        1001      faults", "50115689 S0-D0-C0 1 1001 . faults ."),
        (
            "     0.050142419     my sh-16578     <not counted> msec a",
            "50142419 my sh-16578 . '<not counted>' msec a .",
        ),
        ("     <not counted>      context-switches          /    ", ". . . '<not counted>' . context-switches /"),
    ],
)
def test_text_line(line: str, expected: str) -> None:
    assert shown(stat.text_row(line)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0.66,msec,task-clock,655069,100.00,0.003,CPUs utilized", ". . . 0.66 msec task-clock ."),
        ("     0.100133158;0,59;msec;task-clock;587307;100,00;0,006;x", "100133158 . . 0.59 msec task-clock ."),
        ("     0.123998301,S0-D0-C0,1,165,,faults,1838520,100.00,1.163,K/sec", "123998301 S0-D0-C0 1 165 . faults ."),
        ("S0-D0-C0,40.29,msec,task-clock,40284758,100.00,1.007,x", ". S0-D0-C0 . 40.29 msec task-clock ."),
        ("memfd:a,b-91-5215,5,,page-faults,1,100.00,,", ". memfd:a,b-91-5215 . 5 . page-faults ."),
        ("55,,page-faults,/,1872,100.00,25.284,K/sec", ". . . 55 . page-faults /"),
        ("5,,cpu/event=0x3c,umask=0x1/,4.03%,1872,66.65,,", ". . . 5 . cpu/event=0x3c,umask=0x1/ ."),
        ("1,,cut", "-"),
    ],
)
def test_line_with_separators(line: str, expected: str) -> None:
    assert shown(stat.csv_row(line, stat.find_separator(line) or ",")) == expected


def test_rows_keep_what_is_said() -> None:
    row = stat.csv_row("5,,cycles,4.03%,1872,66.65,1.5,GHz", ",")
    assert row is not None
    assert row.args() == {
        "value": 5,
        "variance_percent": 4.03,
        "run_time_ns": 1872,
        "running_percent": 66.65,
        "GHz": 1.5,
    }
    found = stat.json_row(
        b'{"interval" : 0.050091220, "cpu" : "0", "counters" : 2, "counter-value" : "50.178451", "unit" : "msec", '
        b'"event" : "task-clock", "event-runtime" : 50177805, "pcnt-running" : 100.00, "metric-value" : "none"}'
    )
    assert found is not None
    assert shown(found[0]) == "50091220 CPU0 2 50.178451 msec task-clock ."


def test_not_counted_is_not_zero(tmp_path: Path) -> None:
    path = written(tmp_path, "0.100000000,0,,a,5,100.00,,\n0.100000000,7,,b,5,100.00,,\n0.200000000,0,,a,5,100.00,,\n"
                             "0.200000000,<not counted>,,b,0,100.00,,\n")  # fmt: skip
    trace = read(path)
    names = {trace.tracks[track].name for track in trace.counters.track.tolist()}
    assert names == {"a", "b", "b running"}
    args = [
        trace.args.get(at, n)
        for at, n in zip(trace.slices.args_at.tolist(), trace.slices.args_len.tolist(), strict=True)
    ]
    assert b'"a":{"value":0,' in args[1]
    assert b'"b":{"value":"<not counted>"' in args[1]


# -- what all of them owe ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_of_others_is_claimed(name: str) -> None:
    importer = importer_class(name)()
    for case in cases():
        if case.format in ("merge", name) or not list(case.folder.glob("input.*")):
            continue
        try:
            head = Source(case.input).head()
        except InputError:
            continue
        if {name, case.format} == {"perf-header", "perf-script"}:
            continue  # a text may begin with its header, and a header may be followed by events
        assert importer.sniff(head).certainty is Certainty.NO, case.name


@pytest.mark.parametrize(
    "line",
    [b"a" + b" " * 200_000 + b"b", b"\t" + b"1" * 200_000, b" " * 200_000 + b"1",
     b"a 1 1.000000: c:  " + b"f " * 100_000, b"a 1 [0] 1.000000: sched:sched_switch: " + b"prev_comm=" * 20_000,
     b"1," * 100_000, b"0.100000000 " + b"1-1 " * 50_000],
)  # fmt: skip
def test_long_lines_take_linear_time(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"a 1 [000] 1.000000: 1 cycles:  ff f+0x1 (/x)\n" + line + b"\n")
    stat_path = tmp_path / "stat.txt"
    stat_path.write_bytes(b" Performance counter stats for 'x':\n  5      cycles\n" + line + b"\n")
    begin = time.process_time()
    read(path, format="perf-script")
    read(stat_path, format="perf-stat")
    assert time.process_time() - begin < GROWTH_S


def lost_lines(trace: Trace) -> int:
    """How many lines count as lost since nobody knows what they are."""
    return sum(entry.count for entry in trace.sources[0].diagnostics if entry.code is perf_script.OTHER_LINE)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("event", "frame"),
    [
        (
            "Gecko\t25122 [007] {seconds}.{micros}:\t\t{period} task-clock:u:",
            "{ip:16x}\t{symbol} (/lib/libc.so)",
        ),
        (
            "Gecko\t25122 [007] {seconds}.{micros:06}:\t\t{period} task-clock:u:",
            "{ip:16x}\t{symbol} (/lib/libc.so)",
        ),
        (
            "Gecko\t9/25122 [007] {seconds}.{micros:06}: {period} task-clock:u:",
            "\t{ip:16x} {symbol} (/lib/libc.so)",
        ),
    ],
    ids=["r17", "r21", "now"],
)
def test_all_that_simpleperf_prints_is_read(event: str, frame: str, compiled: bool, tmp_path: Path) -> None:
    """The three forms of report_sample.py: every sample at its time, with all of its frames."""
    content, expected = "", []
    for number, micros in enumerate([0, 7, 36, 512, 4096, 36601, 99999, 100000, 936601, 999999], 1):
        content += event.format(seconds=number, micros=micros, period=number) + "\n"
        for symbol, ip in (("Lock::unlock()", 0xB3CEA6C4), ("el0_svc_naked", 0xFFFFFFC0000815D4), ("f(int, char)", 7)):
            content += frame.format(ip=ip, symbol=symbol) + "\n"
        content += "\n"
        expected.append((number * 10**9 + micros * 1000, number))
    with using("lines", kernel.module("lines") if compiled else None):
        trace = read(written(tmp_path, content))
    assert sorted(zip(trace.samples.ts.tolist(), trace.samples.weight.tolist(), strict=True)) == expected
    names = {tuple(name for name, _ in stack_of(trace, stack)) for stack in trace.samples.stack.tolist()}
    assert names == {("Lock::unlock()", "el0_svc_naked", "f(int, char)")}
    assert trace.samples.cpu.tolist() == [7] * len(expected)
    assert not list(trace.sources[0].diagnostics)


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("output of the program", 1),
        (
            "Gecko 25122 [007] 115539.36601: 1000000 task-clock:u:",
            1,
        ),  # which digits are these?
        ("b3cea6c4 no indentation (/system/lib/libc.so)", 1),
        ("[ perf record: Woken up 2 times to write data ]", 0),
        ("Warning: Processed 12 events and lost 1 chunks!", 0),
    ],
)
def test_a_line_that_is_nothing_known_is_lost(line: str, lost: int, tmp_path: Path) -> None:
    content = f"app 10/11 [003] 1.000001: 1 cycles: \n\t 401000 main (/bin/app)\n\n{line}\n"
    assert lost_lines(read(written(tmp_path, content))) == lost


@pytest.mark.parametrize("compiled", [True, False])
def test_samples_know_their_cpu(compiled: bool, tmp_path: Path) -> None:
    """Made by hand: one thread goes from CPU to CPU; without a column for it, it is not known."""
    head, stack = "app 10/11 [{:03}] {}.000001: {} cycles: \n", "\t 401000 main (/bin/app)\n\n"
    rows = [(number, cpu) for number, cpu in enumerate([3, 1, 0, 255, 3, 3, 1] * 5, 1)]
    content = "".join(head.format(cpu, number, number) + stack for number, cpu in rows)
    bare = "".join(head.format(0, number, number).replace("[000] ", "") + stack for number, _ in rows)
    with using("lines", kernel.module("lines") if compiled else None):
        trace = read(written(tmp_path, content))
        assert on_cpus(trace) == [(number * 10**9 + 1000, cpu) for number, cpu in rows]
        assert trace.samples.weight.tolist() == [number for number, _ in rows]
        assert {cpu for _, cpu in on_cpus(read(written(tmp_path, bare)))} == {NO_CPU}


def test_a_sample_of_a_tracepoint_knows_its_cpu(tmp_path: Path) -> None:
    """Made by hand: an event with fields and one of the scheduler, each with a stack."""
    stack = "\t 401000 main (/bin/app)\n\n"
    switch = "prev_comm=app prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=b next_pid=12 next_prio=120"
    content = f"app 10/11 [002] 1.000001: syscalls:sys_enter_read: fd: 0x3\n{stack}"
    content += f"app 10/11 [005] 1.000002: sched:sched_switch: {switch}\n{stack}"
    assert [cpu for _, cpu in on_cpus(read(written(tmp_path, content)))] == [2, 5]


def test_lines_of_frames_are_kept_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by hand: with addresses that all differ, no line of a frame is like another one."""
    head = "python 10/11 [001] {}.000001: 1 cycles:u: \n"
    stack = "\t{:16x} f+0x{:x} (/lib/a.so)\n\t               7 main (/bin/a)\n\n"
    lines = [head.format(n) + stack.format(n, n) for n in range(1, 50)]
    path = written(tmp_path, "".join(lines))
    with using("lines", None):
        expected = read(path)
        monkeypatch.setattr(perf_script, "_MOST_KNOWN", 4)
        reader = perf_script._Reader(Builder(SourceInfo("a", "test"), MONOTONIC), None, delta=False)
        reader.read(Source(path))
        found = read(path)
    assert 0 < len(reader._frames) <= 4
    assert (found.frames, found.samples.stack.tolist()) == (expected.frames, expected.samples.stack.tolist())
    assert found.counts()["samples"] == 49


@pytest.mark.parametrize("name", FORMATS)
def test_cut_anywhere_it_is_read_or_refused(name: str, tmp_path: Path) -> None:
    """Whatever is left of a recording is read with an even balance, or refused in one line."""
    for case in cases():
        if case.format != name:
            continue
        content = case.input.read_bytes()
        for part in range(1, 8):
            path = tmp_path / "cut.txt"
            path.write_bytes(content[: len(content) * part // 8])
            try:
                trace = read(path, format=name)
            except MalformedInput:
                continue
            assert trace.sources[0].balance.even
            assert all(entry.code.severity < Severity.ERROR for entry in trace.sources[0].diagnostics)


def test_a_time_with_something_behind_it_begins_no_count(tmp_path: Path) -> None:
    """Made by hand: identification of any file failed on such a line."""
    odd, good = " 1.000000000 x,7,,cycles,100,100.00,,", "     2.000000000,7,,cycles,100,100.00,,"
    with pytest.raises(UnrecognizedFormat):
        identify(written(tmp_path, odd + "\n"))
    path = written(tmp_path, f"{odd}\n{good}\n")
    assert identify(path)[0] == "perf-stat"
    trace = read(path)
    assert {entry.code.name: entry.count for entry in trace.sources[0].diagnostics} == {"perf-stat.unreadable": 1}
    assert trace.counters.integer.tolist()[:1] == [7]


@pytest.mark.parametrize(
    ("line", "value", "unit", "metrics"),
    [
        ("      25235.652299      task-clock (msec)         #    0.997 CPUs utilized", 25235.652299, "msec", 0.997),
        (
            "    641,398.723351      task-clock (msec)         #   64.116 CPUs utilized   (100.00%)",
            641398.723351,
            "msec",
            64.116,
        ),
        ("      25235,652299      task-clock (msec)         #    0,997 CPUs utilized", 25235.652299, "msec", 0.997),
        ("    94,817,146,941      cycles                    #    3.757 GHz", 94817146941, "", 3.757),
    ],
)
def test_counts_of_older_perf(line: str, value: float, unit: str, metrics: float) -> None:
    """As in texts of perf 4 that people have published: six decimals of milliseconds, the unit behind the event."""
    row = stat.text_row(line)
    assert row is not None
    assert (row.value, row.unit, row.cgroup, list(row.metrics.values())) == (value, unit, "", [metrics])


def test_further_metrics_of_a_count_are_put_together_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one had all of them put together anew."""
    made = []
    args = stat.Row.args
    monkeypatch.setattr(stat.Row, "args", lambda row: (made.append(row), args(row))[1])
    path = tmp_path / "stat.csv"
    count = "1.000000000,5.00,msec,task-clock,5000000,100.00,0.5,CPUs utilized\n"
    path.write_text(count + "".join(f"1.000000000,,,,,,{n}.25,metric {n}\n" for n in range(200)))
    trace = read(path, format="perf-stat")
    assert trace.sources[0].balance.merged["further metrics of counts"] == 200
    assert len(made) < 5
    assert b'"metric 199":199.25' in trace.args.get(int(trace.slices.args_at[0]), int(trace.slices.args_len[0]))


@pytest.mark.parametrize(
    "line",
    [
        "python  1234 cycles:u:  7f0000001234 foo+0x10 (/usr/lib/libfoo.so)",
        "python 18571 cpu-clock: \n\t           8ab00 pthread_getspecific@@GLIBC_2.34\n\t               0 [unknown]\n",
        "my app 12/1234 [003]    250000 cpu-clock:ppp:  ffffffff81234567 do_syscall_64 ([kernel.kallsyms])",
    ],
)
def test_lines_without_times_are_known_and_refused_with_the_field_to_add(line: str, tmp_path: Path) -> None:
    path = tmp_path / "printed.txt"
    path.write_text(f"{line}\n" * 3)
    assert identify(path) == ("perf-script", "event lines of perf script without times")
    with pytest.raises(MalformedInput) as error:
        read(path)
    assert "-F +time" in error.value.hint


def test_source_lines_of_inlined_frames(tmp_path: Path) -> None:
    path = tmp_path / "perf.script.txt"
    path.write_text(
        "app 4021 [003] 12064.123456:     250000 cycles:u: \n"
        "\t    55e4b4a0f6ee helper\n  app.c:45 (inlined)\n"
        "\t    55e4b4a0f6ee main+0x5e (/usr/bin/app)\n  app.c:12\n\n"
    )
    trace = read(path)
    frames = {frame.name for frame in trace.frames}
    assert frames == {"main (app.c:12)", "helper (app.c:45)"}
    assert not list(trace.sources[0].diagnostics)


BRANCHES = "0x401136/0x401140/P/-/-/0  0x401150(/usr/bin/app)/0x401120(/usr/bin/app)/M/-/-/7/ "


@pytest.mark.parametrize(
    ("rest", "frame"),
    [
        (f"401136 main+0x10 (/usr/bin/app) {BRANCHES}", ("main", "/usr/bin/app")),
        (f"401136 f(int)+0x10 (/a (deleted)) {BRANCHES}", ("f(int)", "/a (deleted)")),
        (f"401136 main+0x10 {BRANCHES}", ("main", "")),
        ("401136 f(int) (/bin/app)f(int)+0x1(/bin/app)/g+0x2(/bin/app)/P/-/-/0/COND/- ", ("f(int)", "/bin/app")),
        ("401136 main (/bin/app) ABI:2    AX:0x1    BX:0x2 ", ("main", "/bin/app")),
        ("401136 [unknown] ([vdso]) ilen: 3 insn: 48 89 e5", ("[unknown]", "[vdso]")),
        (BRANCHES, ("[unknown]", "[unknown]")),
        ("ABI:2    AX:0x1 ", ("[unknown]", "[unknown]")),
    ],
)
def test_columns_behind_a_frame_are_no_part_of_it(rest: str, frame: tuple[str, str], tmp_path: Path) -> None:
    """As perf 6.1 prints branches, registers and instructions: behind the frame on a line, or below the frames."""
    lines = f"app  7 [000]  8120.114205: 1001 cycles:u:  {rest}\n" * 2
    path = written(tmp_path, lines)
    assert identify(path)[0] == "perf-script"
    trace = read(path)
    assert [stack_of(trace, stack) for stack in trace.samples.stack.tolist()] == [[frame]] * 2
    assert [one.code.name for one in trace.sources[0].diagnostics] == ["perf-script.more_columns"]


def test_tracepoints_of_old_perf_have_no_system(tmp_path: Path) -> None:
    lines = [f"app  4021 [000]  8120.11430{n}: sys_enter: NR {n} (1, 55dd01f0, 2)\n" for n in range(8)]
    path = written(tmp_path, "".join(lines))
    assert identify(path)[0] == "perf-script"
    trace = read(path)
    assert (len(trace.instants.ts), len(trace.samples.ts)) == (8, 0)
    path = written(tmp_path, "".join(lines[:7]) + "worker 7 [000] 8120.114309: 12 bytes: sent\n", "log.txt")
    with pytest.raises(UnrecognizedFormat):
        read(path)


def test_decimal_commas_in_json(tmp_path: Path) -> None:
    """Made by hand after what perf 6.1 prints where the locale has decimal commas."""
    line = (
        b'{"counter-value" : "2,250000", "unit" : "msec", "event" : "cpu/event=1,umask=0x2/", "variance" : 5,64, '
        b'"event-runtime" : 2250000, "pcnt-running" : 50,00, '
        b'"metric-value" : 0,002250, "metric-unit" : "CPUs utilized"}'
    )
    row, more = stat.json_row(line) or (None, True)
    assert row is not None
    assert not more
    assert (row.value, row.variance, row.run_time_ns, row.running) == (2.25, 5.64, 2250000, 50.0)
    assert (row.event, row.metrics) == ("cpu/event=1,umask=0x2/", {"CPUs utilized": 0.00225})
    grouped = stat.json_row(b'{"counter-value" : "1,800", "event" : "cycles"}')
    assert grouped is not None
    assert not grouped[0].counted


@pytest.mark.parametrize("zone", ["", "+02:00"])
def test_a_time_of_day_that_is_none_is_not_used(zone: str, tmp_path: Path) -> None:
    """Made by hand: the first event states the hour 40, the next one is right."""
    path = tmp_path / "perf.txt"
    times = ["2026-11-21 40:07:40.060948871  2674.500000000", "2026-11-21 07:07:41.060948871  2675.500000000"]
    path.write_text("".join(f"python 1 [001] {time}:  1 cycles:  ff f+0x1 (/x)\n" for time in times))
    trace = read(path, format="perf-script", options={"utc_offset": zone, "clockid": "monotonic"})
    assert len(trace.samples.ts) == 2
    if zone:
        (snapshot,) = trace.snapshots
        assert snapshot.other_ts - snapshot.ts == 1795237661060948871 - 2675500000000
    else:
        assert trace.metadata["perf_local_time_of_first_event"] == "2026-11-21 07:07:41.060948871"


def test_a_zone_is_refused_where_counts_have_no_times(tmp_path: Path) -> None:
    """No note asks for a zone that would change nothing."""
    path = tmp_path / "stat.csv"
    path.write_text("# started on Mon Jan  5 09:00:00 2026\n\n2.25,msec,task-clock,2250000,100.00,,\n")
    assert not [note for note in read(path).sources[0].notes if "--tz" in note]
    with pytest.raises(UsageError, match="totals, which have no times"):
        read(path, options={"utc_offset": "+02:00"})
