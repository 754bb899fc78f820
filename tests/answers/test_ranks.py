"""Who came last to a collective and who waited: against brute force, simulated ranks, and recordings."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceconv
from tests import commands
from tests.align.test_hosts import SECOND
from tests.align.test_ranks import BASE, GLOO, GROUP, MS, SIZES, US, Json, by, kernel
from tests.benchmarks.ranks import Scene, judged, write_job
from tests.golden import ROOT
from traceconv import Constraints, Questions
from traceconv.align.collectives import Occurrences
from traceconv.answers import late_ranks
from traceconv.answers.collective_waits import waits
from traceconv.answers.render import page
from traceconv.answers.section import Section
from traceconv.io.shown import shown_ranks

NOT_KNOWN = (
    "who waits for whom is not known: no two ranks recorded collectives of a known group in which all wait for all"
)
#: A wall clock that is 9 ms ahead, when the others are at `BASE`.
AHEAD = BASE + 9 * MS
SCHEMA = json.loads((ROOT.parent / "schemas" / "report.schema.json").read_text(encoding="utf-8"))


def tables(*paths: Path, **more: Any) -> dict[str, Section]:
    sections = traceconv.report(paths, traceconv.Questions(sections=("ranks",)), **more)
    return {section.name: section for section in sections}


def write(
    folder: Path, ranks: dict[int, list[Json]], world: int | None = 2, hosts: str = "node7", base: int = BASE
) -> list[Path]:
    """Ranks of a job, as Kineto writes them; the times of the events in ns."""
    paths = []
    for rank, events in ranks.items():
        info = {"backend": "nccl", "rank": rank} | ({} if world is None else {"world_size": world})
        top = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": info, "host_name": hosts}
        paths.append(folder / f"rank{rank}.json")
        paths[-1].write_text(json.dumps({**top, "baseTimeNanoseconds": base, "traceEvents": events}))
    return paths


def collective(start: int, duration: int, seq: int, members: str = "[0, 1]") -> Json:
    return kernel(start, duration, **SIZES, **{**GROUP, "Process_Group_Ranks": members}, Seq=seq)


# -- against brute force ----------------------------------------------------------------------------------------------

records = st.tuples(
    *(st.integers(0, 60), st.integers(0, 40), st.integers(0, 5), st.sampled_from([0, 0, 0, 1, -1])),
)


@given(st.lists(st.lists(records, min_size=2, max_size=5), max_size=6))
def test_waits_are_those_of_brute_force(job: list[list[tuple[int, int, int, int]]]) -> None:
    rows = [(number, rank, *one) for number, members in enumerate(job) for rank, one in enumerate(members)]
    columns = [np.array([row[at] for row in rows], np.int64) for at in range(6)]
    number, rank, start, duration, bound, clock = columns
    nothing = number * 0
    seen = Occurrences(number, rank, number, rank, start, start + duration, bound, *[nothing] * 8)
    found = waits(seen, clock)
    assert found.collective.tolist() == number.tolist()
    for at, members in enumerate(job):
        mine = found.wait[number == at].tolist()
        transfer = min(duration for _, duration, _, _ in members)
        assert found.transfer[at] == transfer
        comparable = len({clock for *_, clock in members}) == 1 and members[0][3] >= 0
        assert found.comparable[at] == comparable
        for rank_, (start_, duration_, bound_, _) in enumerate(members):
            others = [one for other, one in enumerate(members) if other != rank_]
            most = max(0, *(other[0] + other[2] - start_ + bound_ for other in others)) if comparable else 10**9
            assert mine[rank_] == min(duration_ - transfer, most)
        last = [
            rank_
            for rank_, one in enumerate(members)
            if all(one[0] - other[0] > one[2] + other[2] for number_, other in enumerate(members) if number_ != rank_)
        ]
        assert len(last) <= 1
        assert bool(found.beyond[at]) == bool(last)
        named = int(rank[found.last[at]])
        assert members[named][0] == max(one[0] for one in members)
        if last:
            assert named == last[0]
            assert mine[named] == 0 or not comparable
        assert found.lead[at] == members[named][0] - max(
            one[0] for number_, one in enumerate(members) if number_ != named
        )
        assert found.total[at] == sum(mine)
    assert (found.wait + found.late == duration - found.transfer[found.collective]).all()


def test_ranks_are_shown_as_runs() -> None:
    assert shown_ranks([3, 0, 1, 2, 8]) == "0-3, 8"
    assert shown_ranks(range(0, 64, 8)) == "0, 8, 16, 24, 32, 40, 48, 56"
    assert shown_ranks(range(0, 72, 8)).endswith(", 56, ... (9 ranks)")
    assert shown_ranks([]) == ""


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_who_came_last_and_who_waited(tmp_path: Path) -> None:
    paths = write(
        tmp_path,
        {
            0: [collective(0, 500 * US, 1), collective(MS, 130 * US, 2), collective(3 * MS, 100 * US, 3)],
            1: [collective(400 * US, 100 * US, 1), collective(MS + 30 * US, 100 * US, 2)],
        },
    )
    found = tables(*paths)
    first, second = found["collectives"].records()
    assert (first["collective"], first["seq"], first["group"]) == ("all_reduce", 1, "0-1")
    assert (first["last"], first["last_rank"], first["lead_ns"]) == ("1 by 400 µs", 1, 400 * US)
    assert (first["transfer_ns"], first["longest_wait_ns"], first["longest_wait_rank"]) == (100 * US, 400 * US, 0)
    assert (second["last"], second["last_rank"]) == ("not known (within the bound)", None)
    assert (second["lead_ns"], second["longest_wait_ns"]) == (30 * US, 30 * US)
    assert second["bound_ns"] >= second["lead_ns"]
    zero, one = found["ranks"].records()
    assert (zero["collectives"], zero["unmatched"], zero["last"], zero["suffered_ns"]) == (2, 1, 0, 430 * US)
    assert (one["collectives"], one["unmatched"], one["last"], one["caused_ns"]) == (2, 0, 1, 400 * US)
    assert one["caused_share"] == 400 / 430
    assert zero["step_p50_ns"] is None
    assert "alone: 1 record of collectives without a certain partner in another rank" in found["ranks"].notes
    assert "1 of 2: who came last is not known (within the bound)" in found["collectives"].notes


def test_a_rank_that_leaves_late_does_not_wait(tmp_path: Path) -> None:
    """It came last, and its record ends late: nobody made it wait."""
    found = tables(
        *write(tmp_path, {0: [collective(0, 500 * US, 1)], 1: [collective(400 * US, 900 * US, 1)]}),
    )
    (row,) = found["collectives"].records()
    assert (row["last_rank"], row["transfer_ns"], row["waits_ns"]) == (1, 500 * US, 0)
    assert [one["left_late_ns"] for one in found["ranks"].records()] == [0, 400 * US]


def test_a_missing_rank_may_be_the_last(tmp_path: Path) -> None:
    events = {rank: [collective(rank * MS, (3 - rank) * MS, 1, "[0, 1, 2]")] for rank in (0, 1)}
    found = tables(*write(tmp_path, events, world=3))
    (row,) = found["collectives"].records()
    assert (row["last"], row["last_rank"], row["missing"]) == ("not known (1 rank missing)", None, "2")
    assert "no recording of rank 2 of 3" in found["ranks"].notes
    assert [one["caused_ns"] for one in found["ranks"].records()] == [None, None]


def test_ranks_of_a_host_are_one_row_whatever_their_times_count_from(tmp_path: Path) -> None:
    paths = write(tmp_path, {rank: [collective(0, MS, 1)] for rank in (0, 1)})
    late = {rank: [collective(SECOND, MS, 1)] for rank in (1,)}
    paths[1:] = write(tmp_path, late, base=BASE - SECOND)
    (row,) = tables(*paths)["hosts"].records()
    assert (row["host"], row["ranks"], row["moved_ns"], row["bound_ns"]) == ("node7", "0-1", 0, 21_000)


def test_hosts_whose_clocks_are_not_related_name_nobody(tmp_path: Path) -> None:
    paths = write(tmp_path, {0: [collective(n * MS, 500 * US, n) for n in range(3)]})
    paths += write(tmp_path, {1: [collective(n * MS + 400 * US, 100 * US, n) for n in range(3)]}, hosts="node8")
    found = tables(*paths)
    rows = found["collectives"].records()
    assert [(row["last"], row["lead_ns"], row["last_rank"]) for row in rows] == [
        ("not known (no bound)", None, None)
    ] * 3
    assert [(row["longest_wait_ns"], row["longest_wait_rank"]) for row in rows] == [(400 * US, 0)] * 3
    assert [row["caused_ns"] for row in found["ranks"].records()] == [None, None]
    assert [row["bound_ns"] for row in found["hosts"].records()] == [21_000, None]
    assert any("not known (clocks of hosts may differ)" in note for note in found["hosts"].notes)


def test_ranks_of_one_host_beside_another_one_are_comparable(tmp_path: Path) -> None:
    events = {rank: [collective(rank * MS, (3 - rank) * MS, 1, "[1, 2]")] for rank in (1, 2)}
    paths = write(tmp_path, {0: [collective(0, MS, 1, "[0, 3]")]}, world=4)
    paths += write(tmp_path, events, world=4, hosts="node8")
    (row,) = tables(*paths)["collectives"].records()
    assert (row["last_rank"], row["lead_ns"]) == (2, MS)


@pytest.mark.parametrize("seq", [{}, {"Seq": 7}])
def test_collectives_in_which_not_all_wait_are_counted_in_a_note(seq: Json, tmp_path: Path) -> None:
    """Their groups are known: this is not the reason."""

    def events(*names: tuple[str, str]) -> list[Json]:
        args = ({**SIZES, **GROUP, **seq, **by(*name)} for name in names)
        return [kernel(n * MS, MS // 2, **one) for n, one in enumerate(args)]

    parts = ("all_to_allv", "SendRecv")
    only = write(tmp_path, {rank: events(("broadcast", "Broadcast_RING_LL"), parts) for rank in (0, 1)})
    why = "not counted, since not every rank is known to wait for all others: "
    found = tables(*only)
    assert found["ranks"].notes[1:] == [NOT_KNOWN]
    counts = f"{why}2 records of all_to_allv, 2 records of broadcast"
    assert found["collectives"].notes[1:] == [counts]
    unanswered = dict(traceconv.report(only, Questions(["summary"]))[1].rows)
    assert unanswered["Which rank did the others wait for?"] == (
        f"No records of different ranks are certain to be of one collective; {counts}."
    )
    both = events(("allreduce", "AllReduce_Sum"), parts, ("send", "SendRecv"), ("new", "Generic_1"))
    notes = tables(*write(tmp_path, {0: both, 1: both}))["ranks"].notes
    assert f"{why}2 records of all_to_allv, 2 records of new, 2 records of send" in notes
    assert NOT_KNOWN not in notes


def test_collectives_that_state_nothing_beside_others_are_of_no_known_group(tmp_path: Path) -> None:
    both = [collective(0, MS, 1), kernel(2 * MS, MS)]
    paths = write(tmp_path, {0: both, 1: both})
    notes = tables(*paths)["ranks"].notes
    unanswered = dict(traceconv.report(paths, Questions(["summary"]))[1].rows)
    why = "1 of 1: who came last is not known (within the bound)."
    assert unanswered["Which rank did the others wait for?"] == why
    assert "not matched: 2 records of collectives without their group" in notes


@pytest.mark.parametrize(("shorter", "said"), [(10, True), (9, True), (8, False), (0, False)])
def test_durations_tell_who_came_last_where_clocks_do_not(shorter: int, said: bool, tmp_path: Path) -> None:
    """The starts of all differ by less than the bound, and rank 1 takes less time than the others or as much."""
    ranks = {
        rank: [collective(2 * n * MS, (90 if rank and n < shorter else 100) * US, n) for n in range(10)]
        for rank in (0, 1)
    }
    notes = tables(*write(tmp_path, ranks))["collectives"].notes
    assert notes[0] == "10 of 10: who came last is not known (within the bound)"
    note = f"rank 1 took the least time in {shorter} of these 10: it came last, if all leave at one time"
    assert notes[1:] == [note] * said


def test_one_rank_alone_is_said(tmp_path: Path) -> None:
    (section,) = tables(GLOO[0]).values()
    assert not section.rows
    assert section.notes == ["who waits for whom is not known: one input alone states the rank that it recorded"]
    (section,) = tables(ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log").values()
    assert section.notes == ["who waits for whom is not known: no input states the rank that it recorded"]


def test_inputs_of_one_rank_are_said_to_be_so(tmp_path: Path) -> None:
    (section,) = tables(GLOO[0], shutil.copy(GLOO[0], tmp_path / "again.json")).values()
    said = "who waits for whom is not known: 2 inputs state the rank that they recorded, and all of them rank 0"
    assert section.notes[0] == said


def test_ranks_without_collectives_have_steps_and_no_zeros(tmp_path: Path) -> None:
    def step(start: int, duration: int) -> Json:
        name = {"name": f"ProfilerStep#{start // MS}", "cat": "user_annotation"}
        return {"ph": "X", "pid": 1, "tid": 1, "ts": start / 1000, "dur": duration / 1000, **name}

    events = {rank: [step(n * MS, (rank + 1 + n % 3) * 100 * US) for n in range(3)] for rank in (0, 1)}
    found = tables(*write(tmp_path, events, world=None))
    zero, one = found["ranks"].records()
    assert (zero["step_p50_ns"], one["step_p50_ns"], one["step_max_ns"]) == (200 * US, 300 * US, 400 * US)
    assert {row[key] for row in (zero, one) for key in ("collectives", "last", "caused_ns", "suffered_share")} == {None}
    notes = found["ranks"].notes
    assert NOT_KNOWN in notes
    assert found["collectives"].notes == ["no communication is recorded"]
    assert "no input states how many ranks the job has: whether some are missing is not known" in notes
    assert not found["collectives"].rows


def test_a_host_that_was_moved_by_hours_shows_what_its_bound_leaves_certain(tmp_path: Path) -> None:
    """An hour alone would hide the ms that decide who came last."""
    paths = write(tmp_path, {rank: [collective(MS, MS, 1)] for rank in (0, 1)})
    offset = Constraints(offsets={1: -3_600_002_000_000})
    found = {one.name: one for one in traceconv.report(paths, Questions(["ranks"]), constraints=offset)}["hosts"]
    at, moved = found.place("moved_ns"), [row["moved_ns"] for row in found.records()]
    assert moved[1] - moved[0] == -3_600_002_000_000
    assert [found.shown(row, at) for row in found.rows] == ["0 ns", "-1 h 2 ms"]
    assert "-1 h 2 ms" in page([found], 0)


# -- recordings, and all ways to print --------------------------------------------------------------------------------


def test_two_ranks_of_gloo() -> None:
    """Rank 1 sleeps more, as the recorded program says; both are on one machine."""
    found = tables(*GLOO)
    rows = found["collectives"].records()
    assert len(rows) == 98
    assert {row["ranks"] for row in rows} == {2}
    zero, one = found["ranks"].records()
    named = [row for row in rows if row["last_rank"] is not None]
    assert (zero["last"] + one["last"], zero["collectives"]) == (len(named), 98)
    by_rank: defaultdict[int, int] = defaultdict(int)
    for row in named:
        by_rank[row["last_rank"]] += row["waits_ns"]
        assert row["lead_ns"] > row["bound_ns"]
        assert row["longest_wait_rank"] != row["last_rank"] or not row["waits_ns"]
    assert [row["caused_ns"] for row in (zero, one)] == [by_rank[0], by_rank[1]]
    assert zero["suffered_ns"] + one["suffered_ns"] == sum(row["waits_ns"] for row in rows)
    (host,) = found["hosts"].records()
    assert (host["host"], host["ranks"], host["moved_ns"], host["drift_ppm"], host["bound_ns"], host["verdict"]) == (
        *("vm", "0-1", 0, 0.0, 20_001, "ok"),
    )


def printed(*arguments: object) -> str:
    done = commands.run("report", *GLOO, *arguments)
    done.check_returncode()
    return done.stdout


@pytest.mark.slow
def test_all_ways_to_print() -> None:
    text = printed("--section", "ranks", "--top", 3)
    assert max(len(line) for line in text.splitlines() if line.startswith("   ")) <= 80  # of the tables
    document = json.loads(printed("--section", "ranks", "--top", 0, "--format", "json"))
    jsonschema.validate(document, SCHEMA)
    assert document.keys() == {"schema_version", "ranks", "late_causes", "collectives", "hosts", "notes"}
    found = tables(*GLOO)
    assert {name: section.records() for name, section in found.items()}.items() <= document.items()
    parts = [
        list(csv.DictReader(io.StringIO(part)))
        for part in printed("--section", "ranks", "--top", 0, "--format", "csv").split("\n\n")
    ]
    assert [len(part) for part in parts] == [2, 22, 98, 1]
    assert parts[2][0]["last_rank"] == "1"
    assert "| rank | matched | alone |" in printed("--section", "ranks", "--format", "markdown")
    page = printed("--section", "ranks", "--format", "html")
    assert "Who makes the others wait" in page
    assert "Transfer and waiting" in page


@pytest.mark.parametrize("to", ["to_arrow", "to_pandas", "to_polars"])
def test_tables_as_frames(to: str) -> None:
    for section in tables(*GLOO).values():
        frame = getattr(section, to)()
        assert len(frame) == len(section.rows)


# -- simulated jobs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_last_that_is_named_is_the_last(seed: int, tmp_path: Path) -> None:
    """Clocks of one host are off by up to their bounds; skews are of their size."""
    scene = Scene(ranks=2 + 3 * (seed % 3), collectives=60, skew_ns=(60 * US, MS)[seed % 2], clock_ns=20 * US)
    found = judged(write_job(tmp_path, scene, seed))
    assert found.collectives == 60
    assert found.named > 0
    assert found.right >= 0.95 * found.named


def test_clocks_of_hosts_are_those_that_their_collectives_tell(tmp_path: Path) -> None:
    """The wall clocks differ by far more than the skew: taken as they are, they would name the wrong rank."""
    found = judged(write_job(tmp_path, Scene(4, 40, skew_ns=MS, clock_ns=0, hosts=4, host_ns=5 * MS), 1))
    assert found.collectives == 40
    assert found.right == found.named


SKEWED = Path(__file__).parents[1] / "data" / "hosts" / "gpu_skew"


@pytest.mark.parametrize("seed", range(3))
def test_how_far_devices_are_from_their_hosts_does_not_matter_among_them(seed: int, tmp_path: Path) -> None:
    scene = Scene(8, 100, skew_ns=3 * MS, clock_ns=20 * US, hosts=8, host_ns=5 * MS)
    found = []
    for number, one in enumerate((scene, replace(scene, device_ns=500 * US))):
        folder = tmp_path / str(number)
        folder.mkdir()
        found.append(judged(write_job(folder, one, seed)))
        assert found[-1].right == found[-1].named > 0
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(3))
def test_devices_of_one_host_that_disagree_name_no_wrong_rank(seed: int, tmp_path: Path) -> None:
    """Each host has two devices that are up to 1 ms apart; the bounds of the hosts do not contain that."""
    scene = Scene(8, 200, skew_ns=3 * MS, clock_ns=20 * US, hosts=4, host_ns=5 * MS, device_ns=500 * US)
    found = judged(write_job(tmp_path, scene, seed))
    assert found.right == found.named > 0


def test_a_device_that_is_behind_hides_nobody() -> None:
    """Its host is placed within 561 µs, since the clock of the device is 394 µs behind; the devices agree."""
    found = tables(*(SKEWED / f"rank{rank}.json.gz" for rank in (0, 1)))
    rows = found["collectives"].records()
    named = [row for row in rows if row["last_rank"] is not None]
    assert {row["bound_ns"] for row in rows} == {217_083}
    assert len(named) == sum(row["lead_ns"] > 217_083 for row in rows) == 91
    assert [row["bound_ns"] for row in found["hosts"].records()] == [20_001, 560_983]


def test_devices_of_one_host_whose_clocks_differ_name_nobody(tmp_path: Path) -> None:
    """One of the devices of a host is 400 µs ahead, so its rank seems late; the host is placed by the other one."""
    times = [n * 10 * MS for n in range(20)]
    pair = [collective(at + 5 * MS, 10 * US, n, "[0, 1]") for n, at in enumerate(times)]
    every = [[collective(at + off, 500 * US, n, "[0, 1, 2]") for n, at in enumerate(times)] for off in (0, 400 * US)]
    paths = write(tmp_path, {0: pair + every[0]}, 3, "node7")
    paths += write(tmp_path, {1: pair + every[0], 2: every[1]}, 3, "node8")
    found = tables(*paths)
    rows = [row for row in found["collectives"].records() if row["group"] == "0-2"]
    assert {(row["last_rank"], row["lead_ns"]) for row in rows} == {(None, 400 * US)}
    assert {row["bound_ns"] < 400 * US for row in found["hosts"].records()} == {True}
    assert all(row["bound_ns"] > 900 * US for row in rows)


@pytest.mark.parametrize("name", ["out.pftrace", "out.json"])
def test_outputs_state_the_bounds_between_devices(name: str, tmp_path: Path) -> None:
    paths = [SKEWED / f"rank{rank}.json.gz" for rank in (0, 1)]
    result = traceconv.merge(paths, tmp_path / name)
    assert [line.device_bound_ns for line in result.receipt] == [20_000, 197_083]
    assert result.receipt[1].bound_text == "±560.983 µs; ±197.083 µs between devices"
    metadata = traceconv.read(tmp_path / name).metadata
    lines = metadata.get("metadata", metadata)["alignment"]
    assert [line["device_bound_ns"] for line in lines] == [20_000, 197_083]


def test_how_far_each_host_was_moved(tmp_path: Path) -> None:
    """Against its own wall clock, which is 9 ms ahead; its files count from different times."""
    paths = []
    for rank, host, base, zero in ((0, "node7", BASE, 0), (1, "node8", AHEAD, 0), (2, "node8", AHEAD, SECOND)):
        events = [collective(zero + n * MS, 500 * US, n, "[0, 1, 2]") for n in range(20)]
        paths += write(tmp_path, {rank: events}, 3, host, base - zero)
    first, second = tables(*paths)["hosts"].records()
    assert (first["host"], first["ranks"], first["moved_ns"]) == ("node7", "0", 0)
    assert (second["host"], second["ranks"], second["verdict"]) == ("node8", "1-2", "ok")
    assert abs(second["moved_ns"] + 9 * MS) <= second["bound_ns"] < MS


def test_clocks_of_hosts_that_only_seem_to_agree_name_nobody(tmp_path: Path) -> None:
    found = judged(write_job(tmp_path, Scene(4, 7, skew_ns=MS, clock_ns=0, hosts=4, host_ns=5 * MS), 1))
    assert (found.collectives, found.named) == (7, 0)


def test_others_are_the_mean_of_each_collective() -> None:
    """Of two groups of different size: 200 beside 100, and 20 beside 10, 10 and 10."""
    rank, late = [0, 1, 0, 1, 2, 3], [1, 0, 1, 0, 0, 0]
    columns = ([0, 0, 1, 1, 1, 1], rank, [0] * 6, [300] * 6, rank, late)
    before = late_ranks._Before(*(np.array(column, np.int64) for column in columns))
    section = Section("late_causes", late_ranks._LATE)
    interval, length = np.arange(6), np.array([200, 100, 20, 10, 10, 10], np.int64)
    late_ranks._add_rows(section, before, interval, np.full(6, 1, np.int64), length, ["mm"])
    (row,) = section.records()
    assert (row["rank"], row["name"], row["kind"]) == (0, "mm", "host")
    assert (row["time_ns"], row["others_ns"], row["extra_ns"], row["collectives"]) == (220, 110, 110, 2)


@pytest.mark.parametrize("thread", [1, 3])
def test_what_a_late_rank_ran_on_other_threads_than_its_collectives(thread: int, tmp_path: Path) -> None:
    """A thread of gloo waits longer than any operator runs; the profiler lasts as long as all."""

    def slice_at(at: int, dur: int, name: str, tid: int, cat: str) -> Json:
        return {"ph": "X", "cat": cat, "name": name, "pid": 5, "tid": tid, "ts": at, "dur": dur}

    ranks = {
        rank: [
            slice_at(0, 2500, "PyTorch Profiler (0)", 9, "Trace"),
            slice_at(0, 600, "aten::mm", 1, "cpu_op"),
            slice_at(700, 100, "gloo:all_reduce", 2, "user_annotation"),
            slice_at(900, 100 + 400 * rank, "aten::add", thread, "cpu_op"),
            slice_at(1100 + 400 * rank, 1000 - 400 * rank, "gloo:all_reduce", 2, "user_annotation"),
        ]
        for rank in range(2)
    }
    sections = traceconv.report(write(tmp_path, ranks))
    assert " it ran aten::add 400 µs longer than they." in sections[0].records()[-1]["text"]
    (row, *others) = next(one for one in sections if one.name == "late_causes").records()
    assert (row["rank"], row["name"], row["time_ns"], row["others_ns"]) == (1, "aten::add", 500 * US, 100 * US)
    assert {row["extra_ns"] for row in others} == {0}
