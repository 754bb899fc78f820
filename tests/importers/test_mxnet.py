"""The MXNet importer, beyond what the golden cases show."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from traceconv.families.mxnet.profile_json import Mxnet, operator_name
from traceconv.families.registry import Certainty, configure, identify
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import Run, Zero
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, TrackKind

GOLDEN = Path(__file__).parents[2] / "golden" / "mxnet"
CASES = sorted(path.name for path in GOLDEN.iterdir())


def read(path: Path, **options: str) -> Trace:
    out = Builder(SourceInfo(path.name, Mxnet.name), Mxnet.clock)
    configure(Mxnet, options).read(Source(path), out)
    return out.finish()


def written(tmp_path: Path, *events: dict[str, object]) -> Path:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"traceEvents": list(events)}))
    return path


def pair(name: str, start: int, end: int, phases: str = "BE", **more: object) -> list[dict[str, object]]:
    base = {"name": name, "cat": "operator", "pid": 0, "tid": 7, **more}
    return [{**base, "ph": phases[0], "ts": start}, {**base, "ph": phases[1], "ts": end}]


def path_of(trace: Trace, track: int) -> str:
    """The names of a track and of those above it, but for the process."""
    names: list[str] = []
    while track != NO_TRACK and trace.tracks[track].kind is not TrackKind.PROCESS:
        names.insert(0, trace.tracks[track].name)
        track = trace.tracks[track].parent
    return "/".join(names)


def slices(trace: Trace) -> list[tuple[str, str, int, int]]:
    table = trace.slices
    rows = zip(table.track.tolist(), table.name.tolist(), table.ts.tolist(), table.dur.tolist(), strict=True)
    return [(path_of(trace, track), trace.strings[name], ts, dur) for track, name, ts, dur in rows]


@pytest.mark.parametrize("case", CASES)
def test_identified(case: str) -> None:
    importer, match = identify(Source(GOLDEN / case / "input.json"))
    assert importer.name == "mxnet"
    assert match.certainty is Certainty.YES


@pytest.mark.parametrize("case", CASES)
def test_every_record_is_counted(case: str) -> None:
    """The number of records by an independent count: the text of the key that each of them has."""
    path = GOLDEN / case / "input.json"
    trace = read(path)
    balance = trace.sources[0].balance
    assert balance.even
    cut_before_phase = case == "killed-in-name"
    assert balance.read == len(re.findall(rb'"ph"', path.read_bytes())) + cut_before_phase


@pytest.mark.parametrize("case", ["infer-1.6", "mxnet-dnnl-process"])
def test_adjacent_pairs_of_real_files(case: str) -> None:
    """Each device slice of the trace is a B directly followed by its E in the file, and nothing else is."""
    path = GOLDEN / case / "input.json"
    events = json.loads(path.read_bytes())["traceEvents"]
    expected = [
        (begin["name"], begin["ts"] * 1000, (end["ts"] - begin["ts"]) * 1000)
        for begin, end in itertools.pairwise(events)
        if begin["ph"] == "B"
    ]
    found = [row[1:] for row in slices(read(path)) if row[0].startswith("cpu/0/")]
    assert found == expected
    assert len(found) > 30


def test_quotes_in_a_domain() -> None:
    trace = read(GOLDEN / "user-objects-quotes" / "input.json")
    tracks = {path_of(trace, index) for index in range(len(trace.tracks))}
    assert 'MXNet user/my domain "q"' in tracks
    assert "MXNet user/event" in tracks


def test_everything_is_of_one_process(tmp_path: Path) -> None:
    """The pids in the file are devices and categories of one process, which has a pid only if the user says so."""
    frame = pair("f", 5, 9, "be", cat="mine", id=1)
    path = written(tmp_path, *pair("dot", 10, 20), *pair("dot", 30, 40, pid=1), *frame)
    for pid, options in ((None, {}), (42, {"pid": "42"})):
        tracks = read(path, **options).tracks
        tops = [track for track in tracks if track.parent == NO_TRACK]
        assert [(track.kind, track.name, track.pid) for track in tops] == [(TrackKind.PROCESS, "MXNet", pid)]


def test_one_thread_has_one_number_everywhere(tmp_path: Path) -> None:
    events = [*pair("a", 1, 2), *pair("b", 3, 4, tid=2**64 - 1), *pair("c", 5, 6, tid=2**64 - 1, pid=1)]
    trace = read(written(tmp_path, *events))
    assert [row[0] for row in slices(trace)] == ["device 0/thread 1", "device 0/thread 2", "device 1/thread 2"]
    assert str(2**64 - 1) in trace.tracks[trace.slices.track[2]].description


@pytest.mark.parametrize(("late", "kept"), [(0, 1), (2, 1), (3, 2), (-2, 1), (-3, 2)])
def test_copies_begin_within_two_microseconds(tmp_path: Path, late: int, kept: int) -> None:
    events = [*pair("dot", 100, 200), *pair("dot", 100 + late, 190, "be", pid=3060606181218273969, id=7)]
    trace = read(written(tmp_path, *events))
    assert len(trace.slices.ts) == kept
    assert trace.sources[0].balance.merged["copies of operators dropped"] == (2 if kept == 1 else 0)


def test_each_operator_takes_one_copy(tmp_path: Path) -> None:
    copy = pair("dot", 100, 200, "be", pid=3060606181218273969, id=7)
    trace = read(written(tmp_path, *pair("dot", 100, 200), *copy, *copy))
    assert [row[0] for row in slices(trace)] == ["device 0/thread 1", "MXNet operators/thread 1"]


def test_clock_by_size(tmp_path: Path) -> None:
    epoch = read(written(tmp_path, *pair("dot", 10**15, 10**15 + 5))).clocks[0]
    boot = read(written(tmp_path, *pair("dot", 10**13, 10**13 + 5))).clocks[0]
    old = read(written(tmp_path, *pair("dot", 10, 15, cat="category"))).clocks[0]
    assert (epoch.zero, epoch.run, epoch.resolution_ns) == (Zero.UNIX_EPOCH, Run.WALL, 1000)
    assert (boot.zero, boot.run) == (Zero.BOOT, Run.MONOTONIC)
    assert old.zero is Zero.RUN_START


@pytest.mark.parametrize(
    ("text", "name", "args"),
    [
        ("dot", "dot", {}),
        ("[a,b]", "[a,b]", {"operators": ["a", "b"]}),
        ("[a,", "[a,", {"operators": ["a"], "operators_cut": True}),
        ("dot in: [(1,2)", "dot", {"attributes": "in: [(1,2)"}),
        ("dotin: [(1,2)", "dotin: [(1,2)", {}),
        ("in: [(1,2)]", "in: [(1,2)]", {}),
        ("a[0]", "a[0]", {}),
    ],
)
def test_operator_names(text: str, name: str, args: dict[str, object]) -> None:
    assert operator_name(text) == (name, args)


def test_other_chrome_traces_are_not_claimed() -> None:
    other = b'{\n    "traceEvents": [\n        {"name": "dot", "cat": "cpu_op", "ph": "X", "ts": 1, "dur": 2}]}'
    assert Mxnet().sniff(Head(other, True, "profile.json")).certainty is Certainty.NO
