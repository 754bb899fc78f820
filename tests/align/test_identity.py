"""Which processes and threads of several inputs are one: what is decided from data, and what is said of it."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from traceconv.align import Alignment, Policy, align
from traceconv.align.constraints import NO_CONSTRAINTS, ClockConstraint, ClockKind, Constraints, parse_clock
from traceconv.align.domains import Basis, Machine, machines_of
from traceconv.align.identity import By, Identity, Recording, Seen, Together, View, Why, identified
from traceconv.errors import InconsistentClocks, UsageError
from traceconv.model.builder import Builder
from traceconv.model.clocks import MONOTONIC, REALTIME, ClockDomain, ClockSnapshot, Verdict, machine_name
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

S = 10**9
VM = Machine("vm", "vm")
ASSUMED = Machine("vm")
ELSEWHERE = Machine("other", "other")
UNKNOWN = Machine("")
NOBODY = Machine("(nobody names one)")


def recording(file: str, machine: Machine = VM, **more: object) -> Recording:
    values = {"format": f"format of {file}", "real_ids": True, **more}
    return Recording(SourceInfo(file, **values), machine)  # type: ignore[arg-type]


def process(input: int, pid: int | None = 7, start: int = 0, *, tids: tuple[int, ...] = (), name: str = "") -> Seen:
    return Seen(input, 0, (start, start + S), pid, True, frozenset(tids), name)


def thread(input: int, tid: int = 9, start: int = 0) -> Seen:
    return Seen(input, 1, (start, start + S), tid, False)


def stray(input: int, start: int = 0, inside: tuple[int, int] | None = None) -> Seen:
    return Seen(input, 2, (start, start + S), None, False, name="log", inside=inside)


def pids(recordings: list[Recording], *seen: Seen) -> Together:
    return identified(View(recordings, list(seen)))


def joined_by(found: Together) -> list[Identity]:
    return [one for one in found.identities if isinstance(one.why, By)]


def apart_by(found: Together) -> list[Identity]:
    return [one for one in found.identities if isinstance(one.why, Why)]


def one(found: Together) -> list[tuple[By | Why, Basis | None, int, int]]:
    """What joins what, by inputs."""
    return [
        (join.why, join.basis, join.tracks[0].input, its.input) for join in joined_by(found) for its in join.tracks[1:]
    ]


def two(found: Together) -> list[tuple[By | Why, tuple[int, ...]]]:
    """What stays apart, by inputs."""
    return [(apart.why, tuple(seen.input for seen in apart.tracks)) for apart in apart_by(found)]


# -- processes ------------------------------------------------------------------------------------------------------


def test_a_process_of_one_machine_is_one() -> None:
    found = pids([recording("a.json"), recording("b.data")], process(0), process(1, start=3))
    assert one(found) == [(By.PID, Basis.HOST, 0, 1)]
    assert found.describe() == ["pid 7: one process in a.json and b.data: both are from host vm"]


@pytest.mark.parametrize(
    ("machines", "basis", "words"),
    [
        ((VM, ASSUMED), Basis.OTHERS, "assumed: b names no machine, all others are from host vm"),
        ((ASSUMED, VM), Basis.OTHERS, "assumed: a names no machine, all others are from host vm"),
        ((Machine("boot 1", "c1", "1"), Machine("boot 1", "c2", "1")), Basis.BOOT, "c1 and c2 are from one boot"),
        (
            (replace(VM, by_user=True), Machine("vm", "c", "", True)),
            Basis.USER,
            "--same-machine says that it is one machine",
        ),
        ((VM, ELSEWHERE), None, "they are from the hosts vm and other"),
        ((VM, UNKNOWN), None, ""),
        ((UNKNOWN, UNKNOWN), None, ""),
        ((NOBODY, NOBODY), None, ""),
    ],
)
def test_how_the_machine_is_known(machines: tuple[Machine, Machine], basis: Basis | None, words: str) -> None:
    found = pids([recording("a", machines[0]), recording("b", machines[1])], process(0), process(1))
    assert one(found) == ([(By.PID, basis, 0, 1)] if basis else [])
    assert [line.partition(" and b: ")[2] for line in found.describe()] == ([words] if words else [])


def test_a_pid_is_used_again_after_a_while() -> None:
    recordings = [recording("a"), recording("b")]
    assert one(pids(recordings, process(0), process(1, start=60 * S)))
    assert not one(pids(recordings, process(0), process(1, start=62 * S)))


@pytest.mark.parametrize("pid", [None, 0, -1])
def test_numbers_that_are_no_pid_of_a_process(pid: int | None) -> None:
    """0 is the idle task of each CPU, and what tools give to devices."""
    assert not joined_by(pids([recording("a"), recording("b")], process(0, pid), process(1, pid)))


def test_numbers_of_no_operating_system_count_by_the_word_of_the_user_only() -> None:
    invented = {"real_ids": False}
    assert not one(pids([recording("a"), recording("b", **invented)], process(0), process(1)))
    by_user = Machine("vm", "vm", "", True)
    found = pids([recording("a", by_user), recording("b", by_user, **invented)], process(0), process(1))
    assert one(found) == [(By.PID, Basis.HOST, 0, 1)]


def test_ranks_are_never_one() -> None:
    """Two ranks in containers of one host that count pids anew."""
    ranks = [recording("r0.json", rank=0), recording("r1.json", rank=1)]
    found = pids(ranks, process(0), process(1))
    assert (one(found), two(found)) == ([], [(Why.RANKS, (0, 1))])
    assert found.describe() == ["pid 7: not one process in r0.json and r1.json: they are of the ranks 0 and 1"]
    assert one(pids([ranks[0], recording("x", rank=0)], process(0), process(1)))


def test_equal_pids_of_several_machines_are_said_to_be_apart() -> None:
    recordings = [recording("a.json"), recording("b.json", ELSEWHERE), recording("c.json", Machine("third", "third"))]
    found = pids(recordings, process(0), process(1), process(2))
    assert (one(found), two(found)) == ([], [(Why.MACHINES, (0, 1, 2))])
    line = "pid 7: not one process in a.json, b.json and c.json: they are from the hosts vm, other and third"
    assert found.describe() == [line]
    assert [said["words"] for said in found.as_json()] == [line]
    boots = [recording("a", Machine("boot 1", "vm", "1")), recording("b", Machine("boot 2", "vm", "2"))]
    assert pids(boots, process(0), process(1)).describe() == [
        "pid 7: not one process in a and b: they are from different boots"
    ]
    assert not apart_by(pids(recordings, process(0), process(1, start=S)))  # not at one time, not to be taken for one
    assert not apart_by(pids(recordings, process(0), process(1, pid=8)))
    invented = [recordings[0], recording("b.json", ELSEWHERE, real_ids=False)]
    assert not apart_by(pids(invented, process(0), process(1)))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_can_be_of_two_ranks_is_of_none(order: tuple[int, ...]) -> None:
    known = [recording("r0", rank=0), recording("r1", rank=1), recording("perf", several_at_once=True)]
    found = pids([known[at] for at in order], *(process(at) for at in range(3)))
    assert not joined_by(found)
    perf = order.index(2)
    assert (Why.SEVERAL, (perf, *(at for at in range(3) if at != perf))) in two(found)
    assert any(line.startswith("pid 7 of perf stays apart: it may belong to pid 7 of r") for line in found.describe())


def test_a_rank_and_what_states_it_too_are_one_beside_another_rank() -> None:
    recordings = [recording("r0", rank=0), recording("r1", rank=1), recording("x0", rank=0)]
    assert one(pids(recordings, *(process(at) for at in range(3)))) == [(By.PID, Basis.HOST, 0, 2)]


def test_two_recordings_of_one_runtime_at_once_are_of_two_processes() -> None:
    same = [recording("a", format="kineto"), recording("b", format="kineto")]
    found = pids(same, process(0), process(1, start=S - 1))
    assert (one(found), two(found)) == ([], [(Why.TWICE, (0, 1))])
    assert found.describe() == [
        "pid 7: not one process in a and b: both are recordings of kineto at the same time",
    ]
    assert one(pids(same, process(0), process(1, start=S)))  # one after the other
    logs = [recording(file, format="kineto", several_at_once=True) for file in "ab"]
    assert one(pids(logs, process(0), process(1)))


def test_two_processes_of_one_pid_in_a_file_are_two() -> None:
    twice = [process(0), replace(process(0), track=5)]
    found = pids([recording("a"), recording("b")], *twice, process(1))
    assert (one(found), two(found)) == ([], [(Why.SEVERAL, (1, 0, 0))])
    later = [process(0), replace(process(0, start=100 * S), track=5)]
    found = pids([recording("a"), recording("b")], *later, process(1, start=99 * S))
    assert [join.tracks[0].track for join in joined_by(found)] == [5]


def test_equal_pids_that_nobody_says_are_of_one_machine() -> None:
    found = pids([recording("a", NOBODY), recording("b", NOBODY)], process(0), process(1))
    assert two(found) == [(Why.UNSAID, (1, 0))]
    assert found.describe() == []  # a diagnostic of the input says it
    (line,) = found.as_json()
    assert line["words"] == "pid 7: not one process in b and a: no input shows that they are from one machine"
    assert not apart_by(pids([recording("a", NOBODY), recording("b", NOBODY)], process(0), process(1, start=2 * S)))


# -- threads of unknown processes -----------------------------------------------------------------------------------


def tids(recordings: list[Recording], processes: list[Seen], threads: list[Seen]) -> Together:
    return identified(View(recordings, processes, threads))


def test_a_thread_is_of_the_process_that_has_its_number() -> None:
    recordings = [recording("a.json"), recording("perf.txt")]
    found = tids(recordings, [process(0, tids=(8, 9))], [thread(1, 9), thread(1, 8), thread(1, 11)])
    assert one(found) == [(By.TID, Basis.HOST, 0, 1)] * 2
    assert found.describe() == [
        "pid 7: one process in a.json and perf.txt (threads 9 and 8): both are from host vm",
        "thread 11 of perf.txt stays apart: no input names its process",
    ]


def test_the_main_thread_has_the_number_of_its_process() -> None:
    assert one(tids([recording("a"), recording("b")], [process(0, 7)], [thread(1, 7)]))


def test_a_thread_of_another_time_or_machine_is_another_one() -> None:
    processes = [process(0, tids=(9,))]
    assert not one(tids([recording("a"), recording("b")], processes, [thread(1, start=62 * S)]))
    assert not one(tids([recording("a"), recording("b", ELSEWHERE)], processes, [thread(1)]))
    assert not one(tids([recording("a", NOBODY), recording("b", NOBODY)], processes, [thread(1)]))
    assert not one(tids([recording("a"), recording("b", real_ids=False)], processes, [thread(1)]))


def test_a_thread_that_two_processes_have_is_of_none() -> None:
    recordings = [recording("r0", rank=0), recording("r1", rank=1), recording("perf")]
    found = tids(recordings, [process(0, tids=(9,)), process(1, tids=(9,))], [thread(2)])
    assert not joined_by(found)
    assert (Why.SEVERAL, (2, 0, 1)) in two(found)
    assert "thread 9 of perf stays apart: it may belong to pid 7 of r0 or pid 7 of r1" in found.describe()


def test_of_two_that_used_a_number_one_after_the_other_the_one_of_that_time_has_it() -> None:
    processes = [process(0, 7, tids=(9,)), process(0, 8, 30 * S, tids=(9,))]
    found = tids([recording("a"), recording("b")], processes, [thread(1, start=30 * S)])
    assert [join.tracks[0].number for join in joined_by(found)] == [8]


def test_threads_of_which_no_input_tells_the_process_are_one_by_their_number() -> None:
    found = tids([recording("perf.txt"), recording("b.log")], [], [thread(0), thread(1), thread(1, 10)])
    assert one(found) == [(By.TID, Basis.HOST, 0, 1)]
    assert found.describe() == ["thread 9: one thread in perf.txt and b.log: both are from host vm"]
    assert not joined_by(found)[0].tracks[0].is_process


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_thread_that_can_be_of_two_ranks_is_of_none(order: tuple[int, ...]) -> None:
    known = [recording("r0", rank=0), recording("r1", rank=1), recording("perf", several_at_once=True)]
    found = tids([known[at] for at in order], [], [thread(at) for at in range(3)])
    assert not joined_by(found)
    perf = order.index(2)
    assert (Why.SEVERAL, (perf, *(at for at in range(3) if at != perf))) in two(found)
    assert Why.RANKS in {why for why, _ in two(found)}


# -- what names no process ------------------------------------------------------------------------------------------


def strays(recordings: list[Recording], processes: list[Seen], *logs: Seen) -> Together:
    return identified(View(recordings, processes, [], list(logs)))


LOG = {"runs_in": ("kineto", "mxnet")}


@pytest.mark.parametrize(
    ("machines", "basis"),
    [((VM, ASSUMED), Basis.OTHERS), ((NOBODY, NOBODY), Basis.NOBODY), ((VM, VM), Basis.HOST), ((VM, UNKNOWN), None)],
)
def test_a_log_is_of_the_only_process_that_can_have_written_it(
    machines: tuple[Machine, Machine], basis: Basis | None
) -> None:
    recordings = [recording("a", machines[0], format="kineto"), recording("log", machines[1], **LOG)]
    found = strays(recordings, [process(0)], stray(1))
    assert one(found) == ([(By.WRITER, basis, 0, 1)] if basis else [])
    words = "pid 7: one process in a and log: only this process can have written the log; "
    assert [line.startswith(words) for line in found.describe()] == [True] * (basis is not None)


def test_a_process_of_another_runtime_time_or_number_has_not_written_it() -> None:
    log = recording("log", ASSUMED, **LOG)
    assert not joined_by(strays([recording("a", format="perf"), log], [process(0)], stray(1)))
    assert not joined_by(strays([recording("a", format="kineto"), log], [process(0)], stray(1, start=2 * S)))
    assert not joined_by(strays([recording("a", format="kineto"), recording("log", ASSUMED)], [process(0)], stray(1)))


def test_a_log_that_two_can_have_written_stays_apart() -> None:
    recordings = [recording("a", format="kineto"), recording("b", format="mxnet"), recording("log", ASSUMED, **LOG)]
    processes = [process(0), process(1, None, name="MXNet")]
    found = strays(recordings, processes, stray(2))
    assert (one(found), two(found)) == ([], [(Why.SEVERAL, (2, 0, 1))])
    assert found.describe() == ["log of log stays apart: it may belong to pid 7 of a or MXNet of b"]
    assert one(strays(recordings, [processes[0], process(1, None, 9 * S)], stray(2)))  # one of them, at that time


def test_a_process_that_two_files_show_is_one_that_can_have_written_it() -> None:
    recordings = [recording("a", format="kineto"), recording("b", format="mxnet"), recording("log", ASSUMED, **LOG)]
    assert one(strays(recordings, [process(0), process(1)], stray(2)))[1] == (By.WRITER, Basis.OTHERS, 0, 2)


def test_two_logs_at_once_cannot_both_be_of_one_process() -> None:
    recordings = [recording("a", format="kineto"), *(recording(name, ASSUMED, format="l", **LOG) for name in "xy")]
    found = strays(recordings, [process(0)], stray(1), stray(2))
    assert (one(found), two(found)) == ([], [(Why.TWICE, (1, 2))])
    longer = replace(process(0), span=(0, 5 * S))
    assert len(one(strays(recordings, [longer], stray(1), stray(2, start=S)))) == 2
    later = strays(recordings, [longer], stray(1, 2 * S), stray(2, start=S), stray(2, start=3 * S - 1))
    assert two(later) == [(Why.TWICE, (1, 2))]
    assert one(later) == [(By.WRITER, Basis.OTHERS, 0, 2)]
    inside = strays(recordings, [process(0)], stray(1, inside=(0, 0)), stray(2, 9 * S, inside=(0, 0)))
    assert two(inside) == [(Why.TWICE, (1, 2))]  # their times are those of the slices


def test_a_log_of_many_runs_costs_no_square() -> None:
    recordings = [recording("a", format="kineto"), recording("log", ASSUMED, **LOG)]
    runs = [replace(stray(1, start=number * S), track=number) for number in range(20_000)]
    found = strays(recordings, [replace(process(0), span=(0, 30_000 * S))], *runs)
    assert [len(join.tracks) - 1 for join in joined_by(found)] == [20_000]


def test_a_log_whose_calls_lie_in_slices_is_of_their_process() -> None:
    recordings = [recording("a", format="kineto"), recording("b", format="kineto"), recording("log", UNKNOWN, **LOG)]
    found = strays(recordings, [process(0), process(1, 8)], stray(2, 50 * S, inside=(1, 0)))
    assert one(found) == [(By.CALLS, None, 1, 2)]
    assert found.describe() == ["pid 8: one process in b and log: the calls of the log lie inside its slices"]


def test_what_a_report_says() -> None:
    recordings = [recording("a"), recording("b", ASSUMED), recording("c", rank=1), recording("d", rank=2)]
    found = pids(recordings, process(0), process(1), process(2, 8), process(3, 8))
    assert found.as_json() == [
        {
            "one": True,
            "files": ["a", "b"],
            "pids": [7],
            "tids": [],
            "by": "pid",
            "machine": "assumed: not named, and all others agree",
            "assumed": True,
            "words": "pid 7: one process in a and b: assumed: b names no machine, all others are from host vm",
        },
        {
            "one": False,
            "files": ["c", "d"],
            "pids": [8],
            "tids": [],
            "by": "different ranks",
            "machine": None,
            "assumed": False,
            "words": "pid 8: not one process in c and d: they are of the ranks 1 and 2",
        },
    ]


# -- machines -------------------------------------------------------------------------------------------------------


def trace(name: str, host: str = "", boot: str = "", domain: ClockDomain = REALTIME, at: int = 0) -> Trace:
    out = Builder(SourceInfo(name, f"format of {name}", real_ids=True, boot_id=boot), replace(domain, machine=host))
    out.slice(out.tracks.thread(out.tracks.process(pid=7), 8), at, 5, "x")
    return lay_out(out.finish())


def keys(*traces: Trace, constraints: Constraints = NO_CONSTRAINTS, same_machine: bool = False) -> list[str]:
    """For each input a letter for its machine, "" where nothing says which."""
    found = machines_of(traces, traces, replace(constraints, same_machine=same_machine), {})
    letters: dict[str, str] = {"": ""}
    return [letters.setdefault(machine.key, "ABCDEF"[len(letters) - 1]) for machine in found]


@pytest.mark.parametrize("name", ["", "localhost", "LocalHost", "localhost.localdomain", "(none)"])
def test_names_of_hosts_without_a_name_are_no_identity(name: str) -> None:
    assert machine_name(name) == ""
    assert not joined_by(align([trace("a", name), trace("b", name)]).together)
    assert not replace(MONOTONIC, machine=name).shared


def test_a_name_that_names_no_machine_is_refused_where_the_user_says_it() -> None:
    with pytest.raises(UsageError, match="localhost does not name one machine"):
        parse_clock("monotonic@localhost")


def test_which_machine_inputs_are_of() -> None:
    assert keys(trace("a", "vm"), trace("b", "vm"), trace("c", "x")) == ["A", "A", "B"]
    assert keys(trace("a", "vm"), trace("b")) == ["A", "A"]  # assumed
    assert keys(trace("a", "vm"), trace("b"), trace("c", "x")) == ["A", "", "B"]
    assert keys(trace("a"), trace("b")) == ["A", "A"]  # nobody names one
    by_user = Constraints(clocks={0: ClockConstraint(ClockKind.MONOTONIC, "x")})
    assert keys(trace("a"), trace("b", "vm"), constraints=by_user) == ["A", "B"]


def test_boot_ids_win_over_names() -> None:
    assert keys(trace("a", "c1", "1"), trace("b", "c2", "1")) == ["A", "A"]
    assert keys(trace("a", "vm", "1"), trace("b", "vm", "2")) == ["A", "B"]
    assert keys(trace("a", "vm", "1"), trace("b", "vm")) == ["A", "A"]
    assert keys(trace("a", "vm", "1"), trace("b", "vm", "2"), trace("c", "vm")) == ["A", "B", "C"]
    assert keys(trace("a", "c1", "1"), trace("b", "c2", "1"), trace("c", "c2")) == ["A", "A", "A"]


def joined(*traces: Trace, same_machine: bool = False) -> bool:
    return bool(joined_by(align(traces, constraints=Constraints(same_machine=same_machine)).together))


def test_containers_with_names_of_their_own_need_a_word() -> None:
    traces = [trace("a", "c1"), trace("b", "c2")]
    assert not joined(*traces)
    assert joined(*traces, same_machine=True)
    assert joined(trace("a", "c1", "1"), trace("b", "c2", "1"))
    with pytest.raises(InconsistentClocks, match=r"^--same-machine: a and b are of two boots$"):
        align([trace("a", "vm", "1"), trace("b", "vm", "2")], constraints=Constraints(same_machine=True))


def test_a_clock_since_boot_is_one_in_all_containers_of_a_boot() -> None:
    """By equal boot ids, since files say so; by the word of the user, which is assumed."""
    by_boot = align([trace("a", "c1", "1", MONOTONIC, 5 * S), trace("b", "c2", "1", MONOTONIC, 5 * S)])
    assert [line.verdict for line in by_boot.receipt] == ["ok", "ok"]
    by_user = align(
        [trace("a", "c1", "", MONOTONIC, 5 * S), trace("b", "c2", "", MONOTONIC, 5 * S)],
        constraints=Constraints(same_machine=True),
    )
    assert sorted(line.verdict for line in by_user.receipt) == ["assumed", "ok"]


def test_files_that_count_the_same_clock_by_word_of_the_user_are_of_one_machine() -> None:
    private = ClockDomain("p", MONOTONIC.zero, MONOTONIC.run)
    constraints = Constraints(clocks={0: ClockConstraint(ClockKind.MONOTONIC), 1: ClockConstraint(ClockKind.MONOTONIC)})
    found = align([trace("a", domain=private), trace("b", domain=private)], constraints=constraints)
    assert one(found.together) == [(By.PID, Basis.USER, 0, 1)]


def test_times_that_are_a_guess_tell_nothing() -> None:
    """An input that is only put beside the others has no times to compare."""
    apart = [trace("a", "vm"), trace("b", "vm", domain=ClockDomain("p", MONOTONIC.zero, MONOTONIC.run).owned_by("b"))]
    assert not joined_by(align(apart, policy=Policy(on_ambiguous="separate")).together)
    assert joined_by(align(apart, constraints=Constraints(offsets={1: 0})).together)


def test_times_that_events_contradict_tell_nothing_either() -> None:
    found, late = align([trace("a", "vm"), trace("b", "vm"), trace("c", "vm")]), "late"
    assert one(found.together) == [(By.PID, Basis.HOST, 0, 1), (By.PID, Basis.HOST, 0, 2)]
    assert one(found.doubted([2], Verdict.INCONSISTENT, late).together) == [(By.PID, Basis.HOST, 0, 1)]
    assert not one(found.doubted([0, 2], Verdict.INCONSISTENT, late).together)
    assert found.doubted([2], Verdict.ASSUMED, late).together == found.together


def test_inputs_alone_have_nothing_in_common() -> None:
    assert align([trace("a")]).together == Together()
    assert Alignment(REALTIME, [], []).together == Together()


def test_snapshots_name_machines_too() -> None:
    named = trace("a")
    named.snapshots.append(ClockSnapshot(named.clocks[0], 0, replace(REALTIME, machine="vm"), 0, 0, "header"))
    assert keys(named, trace("b", "vm")) == ["A", "A"]
