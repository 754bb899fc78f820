"""Collectives of several ranks: which are one, which cannot have happened as drawn, and what follows of that.

The pair of gloo is a recording of two ranks on one machine; its host and its base time are edited here. The traces with
kernels of NCCL are written by hand.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from tests import GROWTH_S
from tests.golden import ROOT
from traceconv import cli
from traceconv.align import Policy, align
from traceconv.align.causality import believed, causality
from traceconv.align.checks import Causality, Rule
from traceconv.align.collective_matching import Matched, match_collectives
from traceconv.align.collectives import Occurrences
from traceconv.align.report import SCHEMA, page
from traceconv.api import read
from traceconv.check.chrome_text import load_schema
from traceconv.errors import InconsistentClocks, TraceconvError, UnverifiedAlignment
from traceconv.model.clocks import Verdict
from traceconv.model.trace import Trace

US, MS, S = 10**3, 10**6, 10**9
BASE = 1_790_857_026_000_000_000
GLOO = [ROOT / "pytorch-kineto" / f"gloo-rank{rank}" / "input.json" for rank in (0, 1)]
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
WAITS = ("gloo:all_reduce", "gloo:all_gather", "gloo:barrier")
Json = dict[str, Any]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.cli, [str(argument) for argument in arguments])


def refusal(result: Result) -> TraceconvError:
    assert isinstance(result.exception, TraceconvError)
    return result.exception


def options_of(hint: str) -> list[str]:
    """The options that a hint says to type so that all is possible, as words."""
    said = re.match(r"with ((--offset \S+ )+)all these collectives are possible; ", hint)
    assert said, hint
    return said[1].split()


def gloo(folder: Path, ahead: int, host: str = "vm") -> list[Path]:
    """The two ranks, the second on a host whose clock is ahead."""
    paths = [folder / f"rank{rank}.json" for rank in (0, 1)]
    for path, source in zip(paths, GLOO, strict=True):
        path.write_text(source.read_text())
    text = paths[1].read_text()
    assert text.count('"host_name": "vm"') == text.count(f'"baseTimeNanoseconds": {BASE}') == 1
    text = text.replace('"host_name": "vm"', f'"host_name": "{host}"')
    paths[1].write_text(text.replace(f'Nanoseconds": {BASE}', f'Nanoseconds": {BASE + ahead}'))
    return paths


def alignment_of(output: Path) -> list[Json]:
    found: list[Json] = json.loads(output.read_text())["metadata"]["alignment"]
    return found


# -- two ranks of gloo ------------------------------------------------------------------------------------------------


def test_ranks_of_one_host_are_as_they_were(tmp_path: Path) -> None:
    result = run("merge", *gloo(tmp_path, 0), "-o", tmp_path / "out.json", "--strict")
    assert result.exit_code == 0
    assert "98 collectives of ranks 0 and 1 checked: all are possible with these offsets" in result.stderr
    assert [line["verdict"] for line in alignment_of(tmp_path / "out.json")] == ["ok", "ok"]


@pytest.mark.parametrize("ahead", [0, 3_700_000, -3 * MS, 15 * US, 200 * MS])
@pytest.mark.parametrize("strict", [[], ["--strict"]])
def test_two_hosts_are_placed_by_their_collectives(ahead: int, strict: list[str], tmp_path: Path) -> None:
    """Recorded on one machine, so that the truth is known to 20 us; the collectives leave 146 us open."""
    result = run("merge", *gloo(tmp_path, ahead, "node8"), "-o", tmp_path / "out.json", *strict)
    assert result.exit_code == 0
    first, second = alignment_of(tmp_path / "out.json")
    assert (first["verdict"], first["bound_ns"]) == ("ok", 20 * US + 1)
    assert second["verdict"] == "ok"
    assert abs(second["offset_ns"] - BASE) < 73 * US
    assert 73 * US < second["bound_ns"] < 220 * US
    assert "then 98 collectives of 1 group; its wall clock and that of vm are" in second["method"]
    assert "all are possible with these offsets" in result.stderr


@pytest.mark.parametrize("host", ["vm", "node8"])
@pytest.mark.parametrize(
    ("lacks", "count", "alone"),
    [(range(30), 68, 30), (range(80, 98), 80, 18), ([40], 18, 159), ([], 98, 0)],
)
def test_what_places_hosts_is_checked(host: str, lacks: Sequence[int], count: int, alone: int, tmp_path: Path) -> None:
    """Also where the second rank lacks its first ones, or one in between: then those of another kind tell."""
    paths = gloo(tmp_path, 3_700_000 * (host == "node8"), host)
    document = json.loads(paths[1].read_text())
    its = sorted((one for one in document["traceEvents"] if one["name"] in WAITS), key=lambda one: one["ts"])
    lost = [id(its[number]) for number in lacks]
    document["traceEvents"] = [one for one in document["traceEvents"] if id(one) not in lost]
    paths[1].write_text(json.dumps(document))
    traces = [read(path) for path in paths]
    if host == "node8" and count == 18:  # too few that scatter, of kinds for which nobody waits long
        with pytest.raises(UnverifiedAlignment, match="not certain which records are one collective"):
            align(traces)
        return
    alignment = align(traces)
    (check,) = (check for check in causality(traces, alignment).checks if check.rule is Rule.COLLECTIVE)
    assert (check.checked, check.after.count, check.alone) == (count, 0, alone)
    second = alignment.receipt[1]
    assert (second.verdict, f"{count} collectives of 1 group" in second.method) == (Verdict.OK, host == "node8")


@pytest.mark.parametrize("strict", [[], ["--strict"]])
@pytest.mark.parametrize(
    ("host", "ahead", "error", "code"),
    [
        ("node8", 400 * MS, UnverifiedAlignment, 3),  # more than half of what was recorded: it may be another part
        ("node8", -400 * MS, UnverifiedAlignment, 3),
        ("vm", 3_700_000, InconsistentClocks, 4),
        ("vm", -3 * MS, InconsistentClocks, 4),
    ],
)
def test_collectives_that_cannot_have_happened_are_refused(
    host: str, ahead: int, error: type[TraceconvError], code: int, strict: list[str], tmp_path: Path
) -> None:
    result = run("merge", *gloo(tmp_path, ahead, host), "-o", tmp_path / "out.json", *strict)
    found = refusal(result)
    assert type(found) is error
    assert found.exit_code == code
    assert not (tmp_path / "out.json").exists()
    assert "of 98 collectives are impossible, by up to" in found.message
    assert "'gloo:" in found.message
    assert found.message.startswith("rank1.json: ")
    assert "rank0.json" in found.message.partition(" collectives are impossible")[0]
    again = run("merge", *gloo(tmp_path, ahead, host), "-o", tmp_path / "out.json", *options_of(found.hint))
    assert again.exit_code == 0
    assert "all are possible with these offsets" in again.stderr
    moved = alignment_of(tmp_path / "out.json")[1]["offset_ns"]
    assert abs(moved - BASE) < 400 * US  # the truth; their collectives leave it open by some hundred us


@pytest.mark.parametrize("ahead", [{1: 7 * MS, 2: -8 * MS}, {0: 7 * MS}, {1: 3600 * S, 2: 3600 * S}, {2: -8 * MS}])
def test_the_hint_names_all_offsets(ahead: dict[int, int], tmp_path: Path) -> None:
    """Several of three clocks are wrong: one hint is enough. Clocks that agree with most others stay."""
    of = {**SIZES, **GROUP, "Process_Group_Ranks": "[0, 1, 2]"}
    ranks = {rank: steps(20, lambda n: of | {"Seq": n}) for rank in range(3)}
    job(tmp_path, ranks, world=3, ahead=ahead)
    paths = [tmp_path / f"rank{rank}.json" for rank in range(3)]
    options = options_of(refusal(run("merge", *paths, "-o", tmp_path / "out.json")).hint)
    assert len(options) == 2 * (1 if len(set(ahead.values()) | {0}) == 2 else 2)
    result = run("merge", *paths, "-o", tmp_path / "out.json", *options)
    assert result.exit_code == 0
    assert "all are possible with these offsets" in result.stderr


def test_the_hint_names_all_files_of_a_host(tmp_path: Path) -> None:
    """The wall clocks of two of three hosts are hours off; the ranks of each host agree."""
    whole = {**SIZES, **GROUP, "Process_Group_Ranks": "[0, 1, 2, 3, 4]"}
    ranks = {rank: steps(20, lambda n: whole | {"Seq": n}) for rank in range(5)}
    job(tmp_path, ranks, world=5, ahead={2: 3600 * S, 3: 3600 * S, 4: -7200 * S})
    paths = [tmp_path / f"rank{rank}.json" for rank in range(5)]
    for path, host in zip(paths, ("node7", "node7", "node8", "node8", "node9"), strict=True):
        path.write_text(path.read_text().replace("node7", host))
    options = options_of(refusal(run("merge", *paths, "-o", tmp_path / "out.json")).hint)
    told = [option.partition("~")[0] for option in options[1::2]]
    assert told == ["rank2.json=-3600s", "rank3.json=-3600s", "rank4.json=+7200s"]
    result = run("merge", *paths, "-o", tmp_path / "out.json", *options)
    assert result.exit_code == 0
    assert "all are possible with these offsets" in result.stderr


def test_no_offset_is_named_if_some_remain_impossible(tmp_path: Path) -> None:
    """The numbers of the second rank are wrong: no offset makes all possible, but its wall clock is an hour off."""
    paths = gloo(tmp_path, 3600 * S, "node8")
    for path, wrong in zip(paths, (0, 1), strict=True):
        document = json.loads(path.read_text())
        its = sorted((one for one in document["traceEvents"] if one["name"] in WAITS), key=lambda one: one["ts"])
        for number, event in enumerate(its):
            event["args"]["Seq"] = number ^ wrong  # in the second file, each two are exchanged
        path.write_text(json.dumps(document))
    assert "--offset" not in refusal(run("merge", *paths, "-o", tmp_path / "out.json")).hint


@pytest.mark.parametrize(
    ("host", "beyond", "code"),
    [("node8", 25 * US, 0), ("vm", 25 * US, 0), ("vm", 35 * US, 0), ("vm", 45 * US, 4)],
)
def test_bounds_of_one_host_and_of_two(host: str, beyond: int, code: int, tmp_path: Path) -> None:
    """The recordings leave 73 us; beyond that, 20 us each are left to clocks of one host. Two hosts are placed."""
    paths = gloo(tmp_path, 72_771 + beyond, host)
    result = run("merge", *paths, "-o", tmp_path / "out.json")
    assert (refusal(result).exit_code if result.exception else result.exit_code) == code


def test_the_user_goes_on(tmp_path: Path) -> None:
    paths = gloo(tmp_path, 400 * MS, "node8")
    result = run("merge", *paths, "-o", tmp_path / "out.json", "--offset", "rank1.json=0ns")
    assert result.exit_code == 0
    assert "98 are impossible with these offsets, by up to 400 ms (rank 0 left 'gloo:" in result.stderr
    second = alignment_of(tmp_path / "out.json")[1]
    assert second["verdict"] == "assumed"
    (said,) = [text for text in second["warnings"] if "collectives are impossible" in text]
    assert said.startswith("by its clock and that of rank0.json, ")
    assert f"warning: rank1.json: {said}" in result.stderr.splitlines()
    result = run("merge", *paths, "-fo", tmp_path / "out.json", "--on-ambiguous", "best")
    assert result.exit_code == 0
    assert [line["verdict"] for line in alignment_of(tmp_path / "out.json")] == ["ok", "unverified"]
    result = run("merge", *paths, "-fo", tmp_path / "out.json", "--same-machine")
    assert type(refusal(result)) is InconsistentClocks
    result = run("merge", *gloo(tmp_path, 3_700_000), "-fo", tmp_path / "out.json", "--on-ambiguous", "best")
    assert result.exit_code == 0
    assert [line["verdict"] for line in alignment_of(tmp_path / "out.json")] == ["inconsistent", "inconsistent"]


@pytest.mark.parametrize(("host", "error"), [("vm", InconsistentClocks), ("node8", UnverifiedAlignment)])
def test_what_is_contradicted_is_not_put_beside(host: str, error: type[TraceconvError], tmp_path: Path) -> None:
    """Which of the two is wrong nobody knows; `separate` is for what nothing places."""
    paths = gloo(tmp_path, 400 * MS, host)
    result = run("merge", *paths, "-o", tmp_path / "out.json", "--on-ambiguous", "separate")
    assert type(refusal(result)) is error


@pytest.mark.parametrize(("ahead", "within"), [(3_700_000, 80 * US), (-200_000, 400 * US)])
def test_the_interval_holds_the_truth(ahead: int, within: int, tmp_path: Path) -> None:
    """What collectives leave open of two clocks; they have the instant inside at which all were there."""
    traces = [read(path) for path in gloo(tmp_path, ahead, "node8")]
    found = match_collectives(traces, align(traces, policy=Policy(estimate=False)))
    one, other = (found.occurrences.where(found.occurrences.rank == rank) for rank in (0, 1))
    least, most = int(np.max(one.start - other.end)), int(np.min(one.end - other.start))
    assert least <= -ahead <= most
    assert most - least < 2 * within


def test_that_clocks_of_hosts_may_differ_is_said_everywhere(tmp_path: Path) -> None:
    """Without collectives, nothing relates the wall clocks of two hosts."""
    paths = gloo(tmp_path, 0, "node8")
    for path in paths:
        path.write_text(path.read_text().replace("gloo:", "other:"))
    pages = tmp_path / "page.html"
    # The table of the receipt folds, so the first word is on another line.
    assumed, unknown = "assumption that the wall clocks of the hosts agree", "not known (clocks of hosts may differ)"
    receipt = run("align", *paths, "--report", pages).stderr
    for text in (receipt, pages.read_text(), run("clocks", *paths).stdout):
        in_one_line = " ".join(text.split())
        assert unknown in in_one_line
        assert assumed in in_one_line


def test_clocks_says_of_which_hosts_they_are(tmp_path: Path) -> None:
    """And relates them as a merge does."""
    text = run("clocks", *gloo(tmp_path, 0, "node8")).stdout
    assert "98 collectives of 1 group" in text
    assert "clocks of hosts may differ" not in text
    assert ["vm" in text.splitlines()[1], "node8" in text.splitlines()[2]] == [True, True]
    assert "within ±40 µs" in run("clocks", *gloo(tmp_path, 0)).stdout


def test_reports_have_it(tmp_path: Path) -> None:
    report = tmp_path / "align.json"
    result = run("align", *gloo(tmp_path, 0, "node8"), "--report", report)
    assert result.exit_code == 0
    found = json.loads(report.read_text())
    jsonschema.Draft202012Validator(load_schema(SCHEMA)).validate(found)
    assert found["verdict"] == "ok"
    assert [one["host"] for one in found["inputs"]] == ["vm", "node8"]
    assert [one["rank"] for one in found["inputs"]] == [0, 1]
    (check,) = (check for check in found["causality"] if check["rule"] == Rule.COLLECTIVE)
    assert (check["checked"], check["after"]["violations"]) == (98, 0)


@pytest.mark.parametrize(("host", "verdict"), [("vm", "inconsistent"), ("node8", "unverified")])
def test_a_refusal_has_its_report(host: str, verdict: str, tmp_path: Path) -> None:
    report = tmp_path / "align.json"
    assert run("merge", *gloo(tmp_path, 400 * MS, host), "-o", tmp_path / "out.json", "--report", report).exception
    found = json.loads(report.read_text())
    jsonschema.Draft202012Validator(load_schema(SCHEMA)).validate(found)
    assert found["verdict"] == verdict
    assert "collectives are impossible" in found["refusal"]["message"]
    assert ("The events do not confirm" in page(found)) == (verdict == "unverified")


# -- kernels of NCCL, as each version of torch writes them (written by hand) ------------------------------------------


def kernel(at: int, dur: int, name: str = ALL_REDUCE, stream: int = 20, **args: Any) -> Json:
    """A kernel; args as keywords with `_` for spaces."""
    own = {key.replace("_", " "): value for key, value in args.items()}
    start = {"ts": at / 1000, "dur": dur / 1000}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, **start, "args": {"device": 0} | own}


def job(
    folder: Path, ranks: dict[int, list[Json]], world: int = 2, ahead: dict[int, int] | None = None, **more: Any
) -> list[Trace]:
    """Ranks of a job on one host, each with a clock that is ahead of the truth."""
    traces = []
    for rank, events in ranks.items():
        info = {"backend": "nccl", "rank": rank, "world_size": world, **more}
        top = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": info, "host_name": "node7"}
        base = BASE + (ahead or {}).get(rank, 0)
        path = folder / f"rank{rank}.json"
        path.write_text(json.dumps({**top, "baseTimeNanoseconds": base, "traceEvents": events}))
        traces.append(read(path))
    return traces


def matched(traces: list[Trace]) -> Matched:
    return match_collectives(traces, align(traces))


def checked(traces: list[Trace]) -> Causality:
    return causality(traces, align(traces))


def steps(count: int, of: Callable[[int], Json], late: int = 0) -> list[Json]:
    """A kernel a millisecond, of uneven lengths; a rank that enters late leaves with the others."""
    lengths = np.random.default_rng(1).integers(100 * US, 500 * US, count).tolist()
    starts = np.random.default_rng(2).integers(0, 200 * US, count).tolist()
    return [kernel(n * MS + starts[n] + late, lengths[n] - late, **of(n)) for n in range(count)]


def by(collective: str, kernel_name: str) -> Json:
    return {"Collective_name": collective, "name": f"ncclDevKernel_{kernel_name}(x)"}


SIZES = {"Collective_name": "allreduce", "In_msg_nelems": 1024, "Out_msg_nelems": 1024, "dtype": "Float"}
GROUP = {"Process_Group_Name": "0", "Process_Group_Description": "default_pg", "Process_Group_Ranks": "[0, 1]"}
EQUAL_PARTS = {"In_split_size": "[]", "Out_split_size": "[]"}
VERSIONS: dict[str, Callable[[int], Json]] = {
    "torch 2.1: no args": lambda n: {"name": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"},
    "torch 2.2: sizes": lambda n: {**SIZES, "Group_size": 2},
    "May 2024: the group": lambda n: {**SIZES, "Group_size": 2, **GROUP},
    "2026: numbers": lambda n: {**SIZES, "Group_size": 2, **GROUP, "Seq": n + 7},
    "RCCL, only the args tell": lambda n: {**SIZES, **GROUP, "name": "ncclDevKernel_Generic_1(x)", "Seq": n},
    "MTIA": lambda n: {**SIZES, **GROUP, "name": "hccl::all_reduce", "Seq": n},
    "all_to_all by SendRecv": lambda n: {**SIZES, **GROUP, **by("all_to_all", "SendRecv")},
    "torch 2.11: all_to_all": lambda n: {**SIZES, **GROUP, **EQUAL_PARTS, **by("all_to_allv", "SendRecv")},
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ahead", [0, 30 * US, 450 * US, -450 * US])
def test_kernels_of_all_versions(version: str, ahead: int, tmp_path: Path) -> None:
    ranks = {0: steps(20, VERSIONS[version]), 1: steps(20, VERSIONS[version], late=50 * US)}
    found = checked(job(tmp_path, ranks, ahead={1: ahead}))
    (check,) = found.checks
    assert (check.checked, check.alone) == (20, 0)
    assert bool(check.after.count) == (abs(ahead) > 40 * US)


NOT_MEANT: dict[str, Callable[[int], Json]] = {
    "broadcast": lambda n: {**SIZES, **GROUP, **by("broadcast", "Broadcast_RING_LL")},
    "reduce": lambda n: {**SIZES, **GROUP, **by("reduce", "Reduce_Sum_f32_RING_LL")},
    "send and recv": lambda n: {**SIZES, **GROUP, **by("send", "SendRecv")},
    "all_to_allv": lambda n: {**SIZES, **GROUP, **by("all_to_allv", "SendRecv")},
    "other kernels": lambda n: {"name": "ampere_sgemm_128x64_tn"},
    "a group of one": lambda n: {**SIZES, **GROUP, "Process_Group_Ranks": "[0]", "Group_size": 1},
    "a group that is not known": lambda n: {**SIZES, "Group_size": 4},
    "a group without this rank": lambda n: {**SIZES, **GROUP, "Process_Group_Ranks": "[2, 3]"},
}


@pytest.mark.parametrize("case", NOT_MEANT)
def test_what_does_not_wait_for_all_is_no_collective(case: str, tmp_path: Path) -> None:
    ranks = {rank: steps(20, NOT_MEANT[case]) for rank in (0, 1)}
    assert not checked(job(tmp_path, ranks, world=8, ahead={1: 2 * MS})).checks


@pytest.mark.parametrize("category", ["cpu_op", "user_annotation", "gpu_user_annotation"])
def test_calls_of_the_host_are_no_collectives(category: str, tmp_path: Path) -> None:
    events = [
        one | {"cat": category, "name": name}
        for name in ("record_param_comms", "nccl:all_reduce", "c10d::allreduce_")
        for one in steps(20, VERSIONS["2026: numbers"])
    ]
    assert not checked(job(tmp_path, {0: events, 1: events}, ahead={1: 2 * MS})).checks


def test_without_a_group_the_world_must_be_the_only_one(tmp_path: Path) -> None:
    of = VERSIONS["torch 2.1: no args"]
    ranks = {rank: steps(20, of) for rank in (0, 1)}
    assert not checked(job(tmp_path, ranks, world=8)).checks
    assert not checked(job(tmp_path, ranks, world=8, pg_count=3)).checks
    (check,) = checked(job(tmp_path, ranks, world=8, pg_count=1)).checks
    assert check.checked == 20


def test_lists_of_ranks_that_were_cut_are_those_of_the_job(tmp_path: Path) -> None:
    cut = {**SIZES, **GROUP, "Process_Group_Name": "3", "Process_Group_Ranks": "[0, 1, 2, ...]", "Group_size": 4}
    ranks = {rank: steps(20, lambda n: cut | {"Seq": n}) for rank in (0, 1)}
    listed = [{"pg_name": "3", "ranks": [0, 1, 4, 5]}, {"pg_name": "0", "ranks": [], "pg_size": 8}]
    (check,) = checked(job(tmp_path, ranks, world=8, pg_config=listed)).checks
    assert check.checked == 20
    assert not checked(job(tmp_path, ranks, world=8)).checks
    (check,) = checked(job(tmp_path, ranks, world=4)).checks  # its size says that it is the world
    assert check.checked == 20


def test_names_of_groups_are_those_of_the_process(tmp_path: Path) -> None:
    """'1' of rank 0 and '1' of rank 4 are two groups; '1' of rank 0 and '2' of rank 1 may be one."""

    def of(name: str, members: str) -> Callable[[int], Json]:
        return lambda n: {**SIZES, **GROUP, "Process_Group_Name": name, "Process_Group_Ranks": members, "Seq": n}

    ranks = {
        0: steps(20, of("1", "[0, 1]")),
        1: steps(20, of("2", "[0, 1]")),
        4: steps(20, of("1", "[4, 5]")),
        5: steps(20, of("1", "[4, 5]")),
    }
    found = matched(job(tmp_path, ranks, world=8, ahead={4: 5 * MS, 5: 5 * MS}))
    assert (found.occurrences.count, found.alone) == (40, 0)
    assert not found.occurrences.impossible().count


def test_two_groups_of_the_same_ranks_are_two(tmp_path: Path) -> None:
    """Each group has its own numbers; the second one begins later."""

    def of(name: str, first: int) -> Callable[[int], Json]:
        return lambda n: {**SIZES, **GROUP, "Process_Group_Name": name, "Seq": n + first}

    def both(one: str, other: str) -> list[Json]:
        later = [event | {"ts": event["ts"] + 600} for event in steps(20, of(other, 5))]
        return steps(20, of(one, 0)) + later

    listed = {"pg_config": [{"pg_name": name, "ranks": [0, 1]} for name in ("10", "0")]}
    found = matched(job(tmp_path, {0: both("0", "10"), 1: both("0", "10")}, **listed))
    assert (found.occurrences.count, found.alone) == (40, 0)
    assert not found.occurrences.impossible().count
    for other in (both("0", "9"), steps(20, of("0", 0))):  # which of the two it is cannot be told
        found = matched(job(tmp_path, {0: both("0", "10"), 1: other}))
        assert (found.occurrences.count, found.alone) == (0, 40 + len(other))


def test_a_recording_may_lack_what_some_groups_of_the_same_ranks_did(tmp_path: Path) -> None:
    """Which group it is tells its place among all that are declared, not among those that are seen."""

    def of(name: str) -> Callable[[int], Json]:
        return lambda n: {**SIZES, **GROUP, "Process_Group_Name": name, "Seq": n}

    def then(name: str) -> list[Json]:
        return [event | {"ts": event["ts"] + 600} for event in steps(20, of(name))]

    ranks = {0: steps(20, of("1")) + then("2"), 1: steps(20, of("1")) + [e | {"ts": e["ts"] + 250} for e in then("3")]}
    listed = [{"pg_name": name, "ranks": [0, 1]} for name in "0123"]
    found = matched(job(tmp_path, ranks, pg_config=listed))
    assert (found.occurrences.count, found.alone) == (20, 40)
    (check,) = checked(job(tmp_path, ranks, pg_config=listed)).checks
    assert not check.after.count
    found = matched(job(tmp_path, ranks, pg_config=listed[:2]))  # "2" and "3" are not listed
    assert (found.occurrences.count, found.alone) == (20, 40)


def test_numbers_tell_where_recordings_begin(tmp_path: Path) -> None:
    ranks = {0: steps(20, VERSIONS["2026: numbers"])[3:], 1: steps(20, VERSIONS["2026: numbers"])[:-2]}
    found = matched(job(tmp_path, ranks))
    assert (found.occurrences.count, found.alone) == (15, 5)
    assert not found.occurrences.impossible().count


def test_without_numbers_all_must_have_done_the_same(tmp_path: Path) -> None:
    of = VERSIONS["May 2024: the group"]
    for other in (steps(20, of)[:-1], steps(20, lambda n: of(n) | ({"In_msg_nelems": 7} if n == 4 else {}))):
        found = checked(job(tmp_path, {0: steps(20, of), 1: other}, ahead={1: 5 * MS + 600 * US}))
        (check,) = found.checks
        assert (check.checked, check.after.count) == (0, 0)
        said = check.as_json()
        assert (said["verdict"], said["ranks"], said["unmatched"]) == (None, [0, 1], check.alone)
        alone = f"none of {check.alone} records of collectives of ranks 0 and 1"
        why = f"  {alone} was checked: none has a certain partner on another rank"
        assert found.describe() == ["causality: nothing was checked", why]


@pytest.mark.parametrize("odd", range(4))
def test_one_odd_rank_does_not_keep_the_others_from_being_checked(odd: int, tmp_path: Path) -> None:
    """Whichever it is: its clock was set half-way, and without numbers its order may be another one."""
    of = VERSIONS["May 2024: the group"]
    whole = {"Process_Group_Ranks": "[0, 1, 2, 3]", "Group_size": 4}
    every = steps(40, lambda n: of(n) | whole)
    ranks = {
        rank: [event | {"ts": event["ts"] + 5000 * (rank == odd and n >= 20)} for n, event in enumerate(every)]
        for rank in range(4)
    }
    found = matched(job(tmp_path, ranks, world=4))
    assert (found.occurrences.count, found.alone) == (40, 40)
    assert not found.occurrences.impossible().count
    (check,) = checked(job(tmp_path, ranks, world=4)).checks
    (said,) = check.contradictions
    assert odd in said.inputs
    assert (check.after.count, said.verdict) == (0, Verdict.UNVERIFIED)


def test_recordings_that_begin_with_different_steps_are_no_contradiction(tmp_path: Path) -> None:
    """Periodic work without numbers, as often on each rank, but the second rank was recorded from its third step on.

    The clocks of one host tell which are one, if a single shift lets them be.
    """
    of = VERSIONS["May 2024: the group"]
    every = steps(40, of)
    for others, alone in ((every[2:22], 4), (every[2:20], 2), (every[:3] + every[2:20], 41)):
        found = checked(job(tmp_path, {0: every[:20], 1: others}))
        (check,) = found.checks
        assert (check.checked, check.after.count, check.alone) == (0 if alone == 41 else 18, 0, alone)
        assert not check.contradictions
    # Numbers tell that the clock is wrong.
    sure = steps(40, VERSIONS["2026: numbers"])
    (check,) = checked(job(tmp_path, {0: sure[:20], 1: sure[:20]}, ahead={1: 2 * MS})).checks
    assert check.after.count == 20


def test_records_that_two_ranks_lack_are_no_contradiction(tmp_path: Path) -> None:
    """As many and alike, but each lacks another one: in between the nth of one rank is not the nth of the other one."""
    every = steps(20, VERSIONS["May 2024: the group"])
    (check,) = checked(job(tmp_path, {0: every[:5] + every[6:], 1: every[:12] + every[13:]})).checks
    assert (check.checked, check.after.count, check.alone) == (0, 0, 38)
    (found,) = check.contradictions  # it may also be that a clock was set, and set back
    assert (found.verdict, found.inputs) == (Verdict.ASSUMED, (0, 1))
    assert "no offset makes all of them possible" in str(found.text)


def set_meanwhile(count: int, by: int, at: int) -> list[Json]:
    """What a rank whose clock is set ahead by some ns writes, each without a number."""
    every = steps(count, VERSIONS["May 2024: the group"])
    return every[:at] + [event | {"ts": event["ts"] + by / 1000} for event in every[at:]]


@pytest.mark.parametrize("host", ["node7", "node8"])
@pytest.mark.parametrize("by", [5 * MS, -750 * US, 3_700_000, 70 * MS])
@pytest.mark.parametrize("at", [4, 20, 36])
def test_a_clock_that_was_set_meanwhile(host: str, by: int, at: int, tmp_path: Path) -> None:
    """Also where no numbers tell for certain which collectives are one: what is drawn after it is wrong."""
    one, other = set_meanwhile(40, 0, 0), set_meanwhile(40, by, at)
    job(tmp_path, {0: one, 1: other})
    paths = [tmp_path / f"rank{rank}.json" for rank in (0, 1)]
    paths[1].write_text(paths[1].read_text().replace("node7", host))
    found = refusal(run("merge", *paths, "-o", tmp_path / "out.json"))
    assert type(found) is UnverifiedAlignment
    assert found.exit_code == 3
    said = re.search(r"one clock was set in between, by about ([\d.]+) (ms|µs), or records are missing", found.message)
    assert said
    assert abs(float(said[1]) * {"ms": MS, "µs": US}[said[2]] - abs(by)) < 200 * US
    assert " possible" not in found.hint
    for option in (["--offset", "rank1.json=0ns"], ["--on-ambiguous", "best"]):
        assert (option[1] in found.hint) == ("--offset" not in option)  # the clock was set: no offset is right
        assert run("merge", *paths, *option, "-fo", tmp_path / "out.json").exit_code == 0
        second = alignment_of(tmp_path / "out.json")[1]
        assert second["verdict"] == ("assumed" if "--offset" in option else "unverified")
        assert any("one clock was set in between" in text for text in second["warnings"])
    report = tmp_path / "align.json"
    assert run("align", *paths, "--report", report).exception
    document = json.loads(report.read_text())
    jsonschema.Draft202012Validator(load_schema(SCHEMA)).validate(document)
    assert document["causality"][0]["verdict"] == "unverified"


@pytest.mark.parametrize("at", [4, 20, 36])
def test_a_clock_that_was_set_back_mixes_the_order(at: int, tmp_path: Path) -> None:
    """By more than from one collective to the next: which one is the nth is not known then, but not all is well."""
    (check,) = checked(job(tmp_path, {0: set_meanwhile(40, 0, 0), 1: set_meanwhile(40, -5 * MS, at)})).checks
    assert [one.verdict for one in check.contradictions] == [Verdict.ASSUMED]


def test_a_single_odd_record_is_no_clock_that_was_set(tmp_path: Path) -> None:
    """The last record of a rank may be of another collective; it is not taken for a step of the clock."""
    (check,) = checked(job(tmp_path, {0: set_meanwhile(40, 0, 0), 1: set_meanwhile(40, 5 * MS, 39)})).checks
    assert [one.verdict for one in check.contradictions] == [Verdict.ASSUMED]


def test_collectives_without_args_beside_others_may_be_of_any_group(tmp_path: Path) -> None:
    """Coalesced calls, and replays of CUDA graphs."""
    of = VERSIONS["2026: numbers"]
    bare = [kernel(n * MS + 700 * US, 100 * US) for n in range(5)]
    found = matched(job(tmp_path, {0: steps(20, of) + bare, 1: steps(20, of)}))
    assert (found.occurrences.count, found.alone) == (20, 0)


def test_several_recordings_of_a_rank_are_one_after_the_other(tmp_path: Path) -> None:
    """Each cycle of the profiler writes a file; the first of one rank does not match the second of the other."""
    of = VERSIONS["May 2024: the group"]
    every = steps(40, of)
    folders = [tmp_path / name for name in ("first", "second")]
    traces = []
    for folder, part in zip(folders, (every[:20], every[20:]), strict=True):
        folder.mkdir()
        traces += job(folder, {0: part, 1: part})
    found = matched(traces)
    assert (found.occurrences.count, found.alone) == (40, 0)
    assert not found.occurrences.impossible().count


def test_jobs_of_different_sizes_are_two(tmp_path: Path) -> None:
    of = VERSIONS["2026: numbers"]
    traces = job(tmp_path, {0: steps(20, of), 1: steps(20, of)}, ahead={1: 5 * MS})
    traces[1].sources[0].world_size = 4
    (check,) = checked(traces).checks
    assert (check.checked, check.alone) == (0, 40)


def test_the_worst_of_many_ranks_is_named(tmp_path: Path) -> None:
    whole = {**SIZES, **GROUP, "Process_Group_Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}
    ranks = {rank: steps(20, lambda n: whole | {"Seq": n}) for rank in range(8)}
    (check,) = checked(job(tmp_path, ranks, world=8, ahead={5: 3 * MS})).checks
    assert check.checked == check.after.count == 20
    assert "before rank 5 entered it" in str(check.describe())
    assert str(check.describe()).startswith(
        "20 collectives of 8 ranks checked: 20 are impossible with these offsets, by up to"
    )


@pytest.mark.parametrize("late", range(4))
def test_the_rank_that_contradicts_all_others_is_blamed(late: int, tmp_path: Path) -> None:
    whole = {**SIZES, **GROUP, "Process_Group_Ranks": "[0, 1, 2, 3]"}
    ranks = {rank: steps(20, lambda n: whole | {"Seq": n}) for rank in range(4)}
    traces = job(tmp_path, ranks, world=4, ahead={late: 3 * MS})
    (check,) = checked(traces).checks
    (found,) = check.contradictions
    assert found.inputs[-1] == late
    assert f"--offset {traces[late].sources[0].name}=-" in str(found.hint)


def test_a_host_beside_another_one_is_checked_by_itself(tmp_path: Path) -> None:
    """Two ranks of the second host contradict each other: that is certain, however the hosts agree."""
    whole = {**SIZES, **GROUP, "Process_Group_Ranks": "[0, 1, 2, 3]"}
    ranks = {rank: steps(20, lambda n: whole | {"Seq": n}) for rank in range(4)}
    traces = job(tmp_path, ranks, world=4, ahead={2: MS, 3: 8 * MS})
    for trace in traces[2:]:
        snapshot = trace.snapshots[0]
        trace.clocks[0] = replace(trace.clocks[0], machine="node8")
        trace.snapshots[0] = snapshot.between(trace.clocks[0], snapshot.other)
    (check,) = checked(traces).checks
    found = [(str(one.verdict), one.inputs) for one in check.contradictions]
    assert found == [("inconsistent", (2, 3)), ("unverified", (2, 3))]
    assert check.after.count == 20


def test_a_rank_whose_clock_was_set_is_told_before_its_host_is_doubted(tmp_path: Path) -> None:
    """Its host is not placed, since its ranks contradict each other: that is what is wrong, not the wall clock."""
    whole = {**SIZES, **GROUP, "Process_Group_Ranks": "[0, 1, 2, 3, 4]"}
    every = steps(40, lambda n: whole | {"In_msg_nelems": n})
    late = [event | {"ts": event["ts"] + 5000 * (n >= 20)} for n, event in enumerate(every)]
    ranks = dict.fromkeys(range(4), every) | {4: late}
    traces = job(tmp_path, ranks, world=5, ahead={3: 3 * MS, 4: 3 * MS})
    for trace in traces[3:]:
        snapshot = trace.snapshots[0]
        trace.clocks[0] = replace(trace.clocks[0], machine="node8")
        trace.snapshots[0] = snapshot.between(trace.clocks[0], snapshot.other)
    alignment = align(traces)
    with pytest.raises(UnverifiedAlignment, match=r"rank4\.json: .* one clock was set in between, by about 5 ms"):
        believed(alignment, causality(traces, alignment))


def test_many_collectives_of_many_ranks_are_quick(tmp_path: Path) -> None:
    """Linear in the collectives: 16 ranks with 2000 each."""
    whole = {**SIZES, **GROUP, "Process_Group_Ranks": str(list(range(16)))}
    events = steps(2000, lambda n: whole | {"Seq": n})
    traces = job(tmp_path, dict.fromkeys(range(16), events), world=16)
    alignment = align(traces)
    begin = time.process_time()
    (check,) = causality(traces, alignment).checks
    assert check.checked == 2000
    assert time.process_time() - begin < GROWTH_S


ODD = [None, "", "x", "7", 7.5, -1, 2**70, True, [], [0, "x"], [[0]], {"a": 1}, "[0, 1", "[0, 1, ...]", "9" * 5000]


@pytest.mark.parametrize(
    "member", ["Seq", "Process_Group_Ranks", "Process_Group_Name", "Group_size", "Collective_name"]
)
def test_odd_args_are_no_error(member: str, tmp_path: Path) -> None:
    whole = {**SIZES, **GROUP, "Group_size": 2}
    odd = [kernel(n * MS, 300 * US, **whole | {"Seq": n, member: value}) for n, value in enumerate(ODD)]
    rest = steps(5, lambda n: whole | {"Seq": 100 + n})
    listed = [{"pg_name": GROUP["Process_Group_Name"], "ranks": [0, 1]}]  # of groups that are not, only one can be told
    traces = job(tmp_path, {0: odd + rest, 1: odd + rest}, pg_config=listed)
    (check,) = checked(traces).checks
    assert check.checked >= 5
    assert not check.after.count


# -- simulated jobs ---------------------------------------------------------------------------------------------------


def simulated(seed: int, apart: int) -> Occurrences:
    """Collectives of four ranks whose clocks are up to some ns apart; each rank has some of them, in any order."""
    rng = np.random.default_rng(seed)
    count, ranks = 60, 4
    entered = np.arange(count)[:, None] * MS + rng.integers(0, 600 * US, (count, ranks))
    done = entered.max(axis=1) + rng.integers(20 * US, 300 * US, count)
    left = done[:, None] + rng.integers(0, 9 * US, (count, ranks))
    clocks = rng.integers(-apart, apart + 1, ranks)
    seen = rng.random((count, ranks)) < 0.8
    number, rank = np.nonzero(seen)
    bounds = rng.choice([0, 5 * US, 20 * US], ranks)[rank]
    nothing = [number * 0] * 8
    return Occurrences(number, rank, number, rank, (entered + clocks)[seen], (left + clocks)[seen], bounds, *nothing)


@pytest.mark.parametrize("seed", range(20))
def test_what_happened_can_have_happened(seed: int) -> None:
    """Clocks that are wrong by no more than they say never make a right collective impossible."""
    seen = simulated(seed, apart=0)
    wrong_by = np.random.default_rng(seed).integers(-1000, 1001, 4)[seen.rank] * seen.bound // 1000
    assert not replace(seen, start=seen.start + wrong_by, end=seen.end + wrong_by).impossible().count


@pytest.mark.parametrize("seed", range(20))
def test_the_first_that_leaves_and_the_last_that_enters_stand_for_all_pairs(seed: int) -> None:
    seen = simulated(seed, apart=400 * US)
    gaps: dict[int, int] = {}
    for i, j in product(range(len(seen.number)), repeat=2):
        if seen.number[i] == seen.number[j]:
            gap = int(seen.start[j] - seen.bound[j] - seen.end[i] - seen.bound[i])
            gaps[int(seen.number[i])] = max(gap, gaps.get(int(seen.number[i]), gap))
    found = seen.impossible()
    assert found.count == sum(gap > 0 for gap in gaps.values()) > 0
    beyond = seen.start - seen.bound, seen.end + seen.bound
    assert sorted(gap for gap in gaps.values() if gap > 0) == sorted(
        (beyond[0][found.late] - beyond[1][found.early]).tolist()
    )
    assert found.worst_ns == max(seen.start[found.late] - seen.end[found.early])
