"""The DeepSparse importer: the grammar of lines, invented and stamped positions, phases, reports."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from traceconv.errors import MalformedInput
from traceconv.families.common.ansi import plain
from traceconv.families.deepsparse.analysis import DeepSparse
from traceconv.families.registry import Certainty
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import Run, Zero
from traceconv.model.dump import dump
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Level, Trace

GOLDEN = Path(__file__).parents[2] / "golden" / "deepsparse"
BANNER = "DeepSparse, Copyright 2021-present / Neuralmagic, Inc. version: 0.9.1 (68df72e1) (release) (system=avx512)\n"


def message(text: str, thread: str = "7f5a271fab80", level: str = "DIAGNOSE") -> str:
    return f"[nm_ort {thread} >{level}< operator() /b/nm_execution_provider.cc:294] {text}\n"


def call(ms: str, thread: str = "7f5a271fab80") -> str:
    return message(f"ORT NM EP compute_func: {ms} ms", thread)


def read_file(path: Path) -> Trace:
    builder = Builder(SourceInfo(path.name, DeepSparse.name), DeepSparse.clock)
    DeepSparse().read(Source(path), builder)
    return builder.finish()


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_text(text: str) -> Trace:
        path = tmp_path / "run.log"
        path.write_bytes(text.encode())
        return read_file(path)

    return read_text


def slices(trace: Trace, category: str) -> list[dict[str, Any]]:
    table = trace.slices
    found = [
        {
            "ts": int(table.ts[i]),
            "end": int(table.ts[i] + table.dur[i]),
            "name": trace.strings[table.name[i]],
            "track": trace.tracks[table.track[i]].name,
            "args": json.loads(trace.args.get(int(table.args_at[i]), int(table.args_len[i])) or b"{}"),
            "line": int(table.origin[i]),
        }
        for i in range(len(table.ts))
        if trace.strings[table.category[i]] == category
    ]
    return sorted(found, key=lambda row: row["line"])


def instants(trace: Trace, category: str) -> list[dict[str, Any]]:
    table = trace.instants
    return [
        json.loads(trace.args.get(int(table.args_at[i]), int(table.args_len[i])) or b"{}")
        for i in range(len(table.ts))
        if trace.strings[table.category[i]] == category
    ]


def problems(trace: Trace) -> dict[str, int]:
    return {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}


LOGS = sorted(path.parent.name for path in GOLDEN.glob("*/input.log"))


@pytest.mark.parametrize("name", LOGS)
def test_calls_and_their_total_are_those_of_the_text(name: str) -> None:
    """Counted by eye of another program: a plain search for the number before "ms"."""
    text = plain((GOLDEN / name / "input.log").read_bytes()).decode()
    wanted = []
    for part in text.split("compute_func: ")[1:]:
        number, _, rest = part.partition(" ms")
        if rest and number.replace(".", "", 1).isdigit():
            whole, _, decimals = number.partition(".")
            wanted.append(int(whole) * 10**6 + int(decimals.ljust(6, "0")))
    trace = read_file(GOLDEN / name / "input.log")
    calls = slices(trace, "compute_func")
    assert sorted(one["end"] - one["ts"] for one in calls) == sorted(wanted)
    engines = trace.metadata["deepsparse_engines"]
    assert sum(engine["compute_func_total_ns"] for engine in engines) == sum(wanted)
    assert sum(engine["compute_func_calls"] for engine in engines) == len(wanted)


@pytest.mark.parametrize("name", [name for name in LOGS if not name.startswith("stamped")])
def test_synthetic_positions_keep_the_order(name: str) -> None:
    """Lines are in order, calls of one thread do not overlap, and every track says that positions are invented."""
    trace = read_file(GOLDEN / name / "input.log")
    order = trace.logs.origin.argsort(kind="stable")
    assert all(a <= b for a, b in pairwise(trace.logs.ts[order].tolist()))
    calls = slices(trace, "compute_func")
    for track in {one["track"] for one in calls}:
        own = [one for one in calls if one["track"] == track]
        assert all(a["end"] <= b["ts"] for a, b in pairwise(own))
    assert all(a["end"] <= b["end"] for a, b in pairwise(calls))
    assert trace.clocks[0].run is Run.NONE
    for track in trace.tracks:
        assert "no timestamps" in track.description
        assert track.name.endswith("(synthetic)") or track.name.startswith("DeepSparse")


def test_calls_of_several_threads_overlap(read: Any) -> None:
    trace = read(BANNER + message("loaded") + call("5", "aaaaaa") + call("4", "bbbbbb") + call("3", "aaaaaa"))
    one, other, third = slices(trace, "compute_func")
    assert one["ts"] == 2000
    assert other["ts"] < one["end"] < other["end"]
    assert third["ts"] == one["end"]


def test_stamped_lines_are_on_the_wall_clock(read: Any) -> None:
    text = "2024-01-02T03:04:05.000100+01:00 " + call("0.05") + "2024-01-02T03:04:05.000300+01:00 " + call("0.1")
    trace = read(text)
    base = 1704161045 * 10**9
    assert [(one["ts"] - base, one["end"] - base) for one in slices(trace, "compute_func")] == [
        (50_000, 100_000),
        (200_000, 300_000),
    ]
    assert trace.clocks[0].zero is Zero.UNIX_EPOCH
    assert trace.clocks[0].resolution_ns == 1000
    assert not any("synthetic" in track.name for track in trace.tracks)


def test_late_stamps_do_not_make_calls_of_a_thread_overlap(read: Any) -> None:
    """Three lines arrive at once: the calls were made one after the other."""
    stamp = "2024-01-02T03:04:05.000000Z "
    trace = read(stamp + call("0.3") + stamp + call("0.2", "aaaaaa") + stamp + call("0.1") + stamp + call("0.05"))
    base = 1704164645 * 10**9
    assert [(one["line"], one["ts"] - base, one["end"] - base) for one in slices(trace, "compute_func")] == [
        (1, -450_000, -150_000),
        (2, -200_000, 0),
        (3, -150_000, -50_000),
        (4, -50_000, 0),
    ]


#: Begin and end of eight requests by the clock of the program that made them, ns since 1970: measured independently.
REQUESTS = [
    (1795245462486349463, 1795245462488129452),
    (1795245462493405830, 1795245462494136461),
    (1795245462499400047, 1795245462500522754),
    (1795245462505775684, 1795245462506863080),
    (1795245462512111293, 1795245462513173633),
    (1795245462518424354, 1795245462519281668),
    (1795245462524454902, 1795245462525175724),
    (1795245462530360605, 1795245462531063811),
]
#: How late a line was read from the terminal at most.
ARRIVAL_NS = 100_000


def test_stamped_calls_lie_inside_the_requests_that_made_them() -> None:
    calls = slices(read_file(GOLDEN / "stamped-arrivals" / "input.log"), "compute_func")
    assert len(calls) == 2 * len(REQUESTS)
    for (begin, end), first, second in zip(REQUESTS, calls[::2], calls[1::2], strict=True):
        assert begin < first["ts"] < first["end"] <= second["ts"]
        assert second["end"] < end + ARRIVAL_NS


def test_local_stamps_have_a_clock_of_their_own(read: Any) -> None:
    trace = read("2024-01-02 03:04:05.000 " + call("0.05") + "2024-01-02 03:04:05.300 " + call("0.1"))
    assert trace.clocks[0].zero is Zero.UNKNOWN
    assert trace.clocks[0].run is Run.WALL


def test_a_few_stamps_are_no_clock(read: Any) -> None:
    trace = read("2024-01-02T03:04:05Z " + call("1") + call("1") * 3)
    assert trace.clocks[0].run is Run.NONE


def test_the_graph_says_what_runs_where() -> None:
    trace = read_file(GOLDEN / "v030-sr" / "input.log")
    nodes = slices(trace, "node")
    assert [one["args"].get("subgraph") for one in nodes] == ["NM_Subgraph_1"] * 7 + [None] * 3
    assert [one["args"].get("runs_in") for one in nodes] == [None] * 7 + ["ONNX Runtime"] * 3
    assert nodes[7]["args"]["unsupported"] == "const shape greater than 5D"
    (supported,) = instants(trace, "supported")
    assert supported["supported_percent"] == 70 == 100 * 7 / len(nodes)
    (compiled,) = slices(trace, "compile")
    assert (compiled["args"]["batch_size"], compiled["args"]["cores"]) == (1, 2)


@pytest.mark.parametrize("name", ["v030-mix-stdout", "v030-tty-colors", "v102-mix-stdout"])
def test_subgraphs_and_nodes_in_none_of_them(name: str) -> None:
    trace = read_file(GOLDEN / name / "input.log")
    graphs = slices(trace, "subgraph")
    assert [one["name"] for one in graphs] == ["subgraph NM_Subgraph_1", "subgraph NM_Subgraph_2"]
    assert [len(one["args"]["nodes"]) for one in graphs] == [3, 5]
    assert graphs[1]["args"]["inputs"] == ["a5"]
    assert instants(trace, "supported")[0]["onnxruntime_nodes"] == ["3: CumSum cumsum", "4: Sin"]
    (graph,) = slices(trace, "graph")
    assert graph["args"]["nodes"] == 10


def test_phases_nest_on_each_of_two_interleaved_threads() -> None:
    trace = read_file(GOLDEN / "v030-threads" / "input.log")
    for thread in ("thread 1", "thread 2"):
        own = {kind: [one for one in slices(trace, kind) if one["track"].startswith(thread)] for kind in KINDS}
        capability, compile_phase = own["phase"]
        (subgraph,), (translate,), (compiled,) = own["subgraph"], own["translate"], own["compile"]
        assert len(own["node"]) == 27
        assert capability["ts"] < own["graph"][0]["ts"] < subgraph["ts"] < translate["ts"]
        assert translate["end"] == compiled["ts"]
        assert compiled["end"] == subgraph["end"] < capability["end"] < compile_phase["ts"]
        assert len(own["compute_func"]) == 6
        assert own["compute_func"][0]["ts"] >= compile_phase["end"]


KINDS = ("phase", "graph", "node", "subgraph", "translate", "compile", "compute_func")


def test_colours_change_nothing(read: Any) -> None:
    """The terminal's log without its escape sequences is read as the same trace."""
    text = (GOLDEN / "v030-tty-colors" / "input.log").read_text()
    assert "\x1b[34m[nm_ort" in text
    assert dump(read(text)) == dump(read(text.replace("\x1b[34m", "").replace("\x1b[33m", "").replace("\x1b[0m", "")))


def test_levels_and_sources(read: Any) -> None:
    trace = read(BANNER + "".join(message(level, level=level) for level in ("FATAL", "ERROR", "WARN", "DIAGNOSE")))
    assert trace.logs.level.tolist()[1:] == [Level.FATAL, Level.ERROR, Level.WARNING, Level.DEBUG]
    assert {trace.strings[index] for index in trace.logs.source[1:]} == {"nm_execution_provider.cc:294"}


def test_glued_messages_are_two(read: Any) -> None:
    trace = read(call("1", "aaaaaa").rstrip() + call("2", "bbbbbb"))
    assert [one["track"] for one in slices(trace, "compute_func")] == [
        "thread 1 (aaaaaa) (synthetic)",
        "thread 2 (bbbbbb) (synthetic)",
    ]
    assert trace.sources[0].balance.read == trace.sources[0].balance.written == 1


def test_a_banner_after_the_first_message_is_the_same_process(read: Any) -> None:
    """1.x prints its scheduler before the banner."""
    first = "[nm_ort 7fb5701ebb80 >DIAGNOSE< construct_engine src/entry_points/deepsparse_engine.cpp:883] Single\n"
    trace = read(first + BANNER + message("a") + first + BANNER + message("b"))
    processes = [track.name for track in trace.tracks if track.name.startswith("DeepSparse")]
    assert processes == ["DeepSparse 0.9.1"] * 2
    pairs = zip(trace.logs.origin, trace.logs.track, strict=True)
    owner = {int(line): int(trace.tracks[track].parent) for line, track in pairs}
    assert owner[1] == owner[2] == owner[3] != owner[4]
    assert owner[4] == owner[5] == owner[6]


def test_unusable_durations_are_losses(read: Any) -> None:
    trace = read(BANNER + call("nan") + call("-1") + call("1e400") + call("") + call("0.5") + call("0.25")[:-5])
    assert len(slices(trace, "compute_func")) == 1
    assert problems(trace) == {"deepsparse.bad_duration": 4, "deepsparse.cut_line": 1}


def test_layers_sum_up_to_the_total_of_the_report() -> None:
    report = json.loads((GOLDEN / "v180-analysis" / "input.json").read_text())
    trace = read_file(GOLDEN / "v180-analysis" / "input.json")
    table = trace.slices
    layers = [i for i in range(len(table.ts)) if trace.tracks[table.track[i]].name == "layers (synthetic)"]
    assert [trace.strings[table.name[i]] for i in layers] == [layer["name"] for layer in report["layer_info"]]
    assert int(sum(table.dur[i] for i in layers)) == round(report["average_total_time"] * 10**6)
    assert all(int(table.ts[a] + table.dur[a]) == int(table.ts[b]) for a, b in pairwise(layers))


@pytest.mark.parametrize("text", ["{", '{"a":1}', "no log", '{"a":' * 9000])
def test_other_files_are_refused(read: Any, text: str) -> None:
    with pytest.raises(MalformedInput, match=r"run\.log"):
        read(text)


def test_sniffing() -> None:
    def sure(text: str) -> Certainty:
        return DeepSparse().sniff(Head(text.encode(), True, "")).certainty

    assert sure("any\n" + call("1")) is Certainty.YES
    assert sure("x\n\x1b[34m[nm_ort 7f5a271fab80 >WARN<\x1b[33m f() a.cc:1\x1b[34m] \x1b[0mtext\n") is Certainty.YES
    assert sure(BANNER) is Certainty.MAYBE
    assert sure("Node 12: Conv >DIAGNOSE< x\n") is Certainty.NO
    assert sure('{"layer_info": [], "model": "SparseML"}') is Certainty.NO
    start = '{"batch_size": 1, "average_total_time": 2.5, "items_per_second": 400.0, "iteration_times": [2.5'
    assert sure(start + ", 2.5" * 9000) is Certainty.YES  # the layers stand behind the times
