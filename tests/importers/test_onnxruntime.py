"""The ONNX Runtime importer, beyond what the golden cases show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traceconv.errors import UsageError
from traceconv.families import onnxruntime
from traceconv.families.onnxruntime import OnnxRuntime
from traceconv.families.registry import Certainty, configure
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, Zero
from traceconv.model.diagnostics import ProblemKind
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind

GOLDEN = Path(__file__).parents[2] / "golden" / "onnxruntime"
CASES = sorted(path.name for path in GOLDEN.iterdir())
HEALTHY = [name for name in CASES if name != "cut"]


def read(path: Path, **options: str) -> Trace:
    out = Builder(SourceInfo(path.name, OnnxRuntime.name), OnnxRuntime.clock)
    configure(OnnxRuntime, options).read(Source(path), out)
    return out.finish()


def line(name: str, ts: int, dur: int, args: str = "", cat: str = "Node", pid: int = 5, tid: int = 5) -> str:
    return (
        f'{{"cat" : "{cat}","pid" :{pid},"tid" :{tid},"dur" :{dur},"ts" :{ts},"ph" : "X",'
        f'"name" :"{name}","args" : {{{args}}}}}'
    )


def written(tmp_path: Path, *lines: str, name: str = "profile.json") -> Path:
    path = tmp_path / name
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return path


def diagnostics(trace: Trace) -> dict[str, int]:
    return {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}


def args_of(trace: Trace, row: int) -> dict[str, Any]:
    raw = trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row]))
    return json.loads(raw) if raw else {}


def counter(trace: Trace, name: str) -> list[tuple[int, int]]:
    (track,) = [i for i, one in enumerate(trace.tracks) if one.kind is TrackKind.COUNTER and one.name == name]
    table = trace.counters
    rows = [i for i, at in enumerate(table.track.tolist()) if at == track]
    return [(int(table.ts[i]), int(table.integer[i])) for i in rows]


def sniff(text: bytes, complete: bool = False) -> Certainty:
    return OnnxRuntime().sniff(Head(text, complete, "x")).certainty


@pytest.mark.parametrize("case", CASES)
def test_every_event_is_accounted_for(case: str) -> None:
    source = read(GOLDEN / case / "input.json").sources[0]
    assert source.balance.even
    assert (source.diagnostics.lost == 0) == (case in HEALTHY)


def test_sniff() -> None:
    text = ("[\n" + line("model_run", 1, 2, cat="Session")).encode()
    assert sniff(text) is Certainty.YES
    assert sniff(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n")) is Certainty.YES
    assert sniff(text.replace(b'"cat" : ', b'"cat": ')) is Certainty.YES
    assert sniff(text.removeprefix(b"[\n")) is Certainty.YES
    assert sniff(text.replace(b'"Session"', b'"cpu_op"')) is Certainty.NO
    assert sniff(text.replace(b'"args" : {}', b'"args" : {"device": 0}')) is Certainty.NO
    assert sniff(text.replace(b'"dur" :2', b'"dur" :2.5')) is Certainty.NO
    assert sniff(text.replace(b'"Session"', b'"Kernel"')) is Certainty.NO
    assert sniff(b"[\n]\n", complete=True) is Certainty.MAYBE
    assert sniff(b"[\n]\n", complete=False) is Certainty.NO
    assert sniff(b"[]", complete=True) is Certainty.NO
    assert sniff(b'{"traceEvents": []}') is Certainty.NO


RUN = line("model_run", 1000, 10, cat="Session")


@pytest.mark.parametrize(
    ("name", "offset", "expected", "bound"),
    [
        # `date -u -d 2026-11-21T07:17:34Z +%s` prints 1795245454. Opening the file takes up to 40 µs more.
        ("onnxruntime_profile__2026-11-21_07-17-34_140.json", "", 1795245454_140_520_000, 520_000),
        ("onnxruntime_profile__2026-11-21_07-17-34.json.gz", "", 1795245454_500_020_000, 500_020_000),
        ("deep.model_2026-11-21_09-17-34_140.json", "+02:00", 1795245454_140_520_000, 520_000),
        ("p_2026-11-21_01-47-34_140.json", "-05:30", 1795245454_140_520_000, 520_000),
        ("p_2026-11-21_07-17-34_140.json", "Z", 1795245454_140_520_000, 520_000),
    ],
)
def test_start_from_the_file_name(tmp_path: Path, name: str, offset: str, expected: int, bound: int) -> None:
    trace = read(written(tmp_path, RUN, name=name), **({"utc_offset": offset} if offset else {}))
    (snapshot,) = trace.snapshots
    assert (snapshot.ts, snapshot.other, snapshot.other_ts, snapshot.bound_ns) == (0, REALTIME, expected, bound)
    assert any("read as UTC" in note for note in trace.sources[0].notes) == (not offset)


def test_the_true_start_lies_within_the_bound_of_the_name(tmp_path: Path) -> None:
    # The program that wrote this file also printed get_profiling_start_time_ns().
    case = GOLDEN / "v1.31-perf-process"
    path = tmp_path / "onnxruntime_profile__2026-11-21_07-17-34_140.json"
    path.write_bytes((case / "input.json").read_bytes())
    (snapshot,) = read(path).snapshots
    assert abs(snapshot.other_ts - 1795245454_140_082_108) <= snapshot.bound_ns


@pytest.mark.parametrize("name", ["profile.json", "p_2026-13-41_07-17-34.json", "p_2026-11-21_07-17-34.txt"])
def test_names_without_a_time(tmp_path: Path, name: str) -> None:
    assert read(written(tmp_path, RUN, name=name)).snapshots == []


def test_start_given_by_the_user(tmp_path: Path) -> None:
    path = written(tmp_path, RUN, name="p_2026-11-21_07-17-34_140.json")
    (snapshot,) = read(path, start_ns="1795245454140082108").snapshots
    assert (snapshot.other, snapshot.other_ts, snapshot.bound_ns) == (REALTIME, 1795245454140082108, 1000)


def test_start_that_counts_from_boot(tmp_path: Path) -> None:
    trace = read(written(tmp_path, RUN), start_ns="2186782146266")
    assert trace.snapshots[0].other.zero is Zero.BOOT
    assert "not a time since 1970" in trace.sources[0].notes[0]


@pytest.mark.parametrize("offset", ["2", "+25:00", "02:00", "+02:75", "Europe/Berlin"])
def test_bad_offset(tmp_path: Path, offset: str) -> None:
    with pytest.raises(UsageError, match="utc_offset"):
        read(written(tmp_path, RUN), utc_offset=offset)


def test_args_are_typed(tmp_path: Path) -> None:
    args = (
        '"op_name" : "12","node_index" : "3","activation_size" : "512","mem_in_use_delta" : "-64",'
        '"output_type_shape" : [{"float":[1,2]}],"thread_scheduling_stats" : "","provider" : "CPU"'
    )
    trace = read(written(tmp_path, line("a/b_kernel_time", 1, 5, args), line("x_fence_after", 6, 0, '"op_name" : "A"')))
    assert [trace.strings[name] for name in trace.slices.name] == ["a/b", "x_fence_after"]
    assert args_of(trace, 0) == {
        "op_name": "12",
        "node_index": 3,
        "activation_size": 512,
        "mem_in_use_delta": -64,
        "output_type_shape": [{"float": [1, 2]}],
        "provider": "CPU",
    }


@pytest.mark.parametrize("key", ["mem_arena_held", "cycles", "node_index"])
@pytest.mark.parametrize(("digits", "is_number"), [(18, True), (20, False)])
def test_numbers_beyond_64_bits_stay_texts(tmp_path: Path, key: str, digits: int, is_number: bool) -> None:
    """They are no points of a counter, either."""
    trace = read(written(tmp_path, line("a_kernel_time", 1, 5, f'"{key}" : "{"9" * digits}"')))
    assert args_of(trace, 0) == {key: int("9" * digits) if is_number else "9" * digits}
    assert bool(len(trace.counters.ts)) == (is_number and key != "node_index")


def test_node_without_a_name(tmp_path: Path) -> None:
    trace = read(written(tmp_path, line("_kernel_time", 1, 5, '"op_name" : "Conv"')))
    assert trace.strings[trace.slices.name[0]] == "Conv"
    assert args_of(trace, 0)["event"] == "_kernel_time"


def test_backslashes_in_node_names(tmp_path: Path) -> None:
    trace = read(written(tmp_path, line("net\\new\\conv_kernel_time", 1, 5)))
    assert trace.strings[trace.slices.name[0]] == "net\\new\\conv"


def test_perf_counters_hold_over_their_layer(tmp_path: Path) -> None:
    trace = read(
        written(
            tmp_path,
            line("inner_kernel_time", 110, 20, '"cycles" : "7"'),
            line("sticks_out_kernel_time", 180, 21, '"cycles" : "8"'),
            line("loop_kernel_time", 100, 100, '"cycles" : "100"'),
            line("next_kernel_time", 300, 10, '"cycles" : "9007199254740993"'),
        )
    )
    assert counter(trace, "cycles") == [
        (100_000, 100),
        (110_000, 7),
        (130_000, 100),
        (180_000, 8),
        (200_000, 100),
        (200_000, 0),
        (300_000, 2**53 + 1),
        (310_000, 0),
    ]
    assert args_of(trace, 3) == {"cycles": 2**53 + 1}


def test_perf_counters_belong_to_their_thread(tmp_path: Path) -> None:
    trace = read(
        written(
            tmp_path,
            line("a_kernel_time", 100, 10, '"cycles" : "1"', tid=5),
            line("b_kernel_time", 105, 10, '"cycles" : "2"', tid=6),
        )
    )
    tracks = [track for track in trace.tracks if track.kind is TrackKind.COUNTER]
    assert [(trace.tracks[track.parent].tid, track.name) for track in tracks] == [(5, "cycles"), (6, "cycles")]
    assert all("only the thread that runs the layer" in track.description for track in tracks)


def test_counter_without_value(tmp_path: Path) -> None:
    args = '"cycles" : "18446744073709551615","instructions" : "5","provider" : "7","alias" : "text"'
    trace = read(written(tmp_path, line("a_kernel_time", 1, 5, args)))
    assert diagnostics(trace) == {"onnxruntime.counter_no_value": 1}
    assert args_of(trace, 0) == {
        "cycles": "18446744073709551615",
        "instructions": 5,
        "provider": "7",
        "alias": "text",
    }
    assert counter(trace, "instructions") == [(1000, 5), (6000, 0)]


def test_unknown_args_of_other_events_are_no_counters(tmp_path: Path) -> None:
    trace = read(written(tmp_path, line("model_run", 1, 5, '"batch" : "5"', cat="Session")))
    assert args_of(trace, 0) == {"batch": "5"}
    assert len(trace.counters.ts) == 0


def test_all_zero_needs_every_counter_to_be_zero(tmp_path: Path) -> None:
    one = line("a_kernel_time", 1, 5, '"cycles" : "0","page-faults" : "0"')
    other = line("b_kernel_time", 9, 5, '"cycles" : "4","page-faults" : "0"')
    assert diagnostics(read(written(tmp_path, one))) == {"onnxruntime.counters_all_zero": 1}
    assert diagnostics(read(written(tmp_path, one, other))) == {}


def test_counters_can_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, line("a_kernel_time", 1, 5, '"cycles" : "3","mem_arena_held" : "10"'))
    trace = read(path, counters="false")
    assert len(trace.counters.ts) == 0
    assert args_of(trace, 0) == {"cycles": 3, "mem_arena_held": 10}


def test_memory_of_each_provider(tmp_path: Path) -> None:
    memory = '"provider" : "{}","mem_arena_held" : "{}"'
    trace = read(
        written(
            tmp_path,
            line("a_kernel_time", 1, 5, memory.format("CPU", 10)),
            line("b_kernel_time", 7, 2, memory.format("CUDA", 99)),
            line("c_kernel_time", 9, 2, memory.format("CPU", 20)),
        )
    )
    assert counter(trace, "mem_arena_held (CPU)") == [(6000, 10), (11000, 20)]
    assert counter(trace, "mem_arena_held (CUDA)") == [(9000, 99)]
    assert {track.unit for track in trace.tracks if track.kind is TrackKind.COUNTER} == {"bytes"}


def test_event_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "EVENT_LIMIT", 3)
    three = [line("a_kernel_time", ts, 1) for ts in (1, 3, 5)]
    on_gpu = line("k", 2, 1, '"stream" : "7"', cat="Kernel", pid=-1, tid=-1)
    end = line("profile_truncated", 9, 0, '"dropped_event_count" : "12"', cat="Session")
    assert diagnostics(read(written(tmp_path, *three))) == {"onnxruntime.truncated": 1}
    assert diagnostics(read(written(tmp_path, *three[:2]))) == {}
    assert diagnostics(read(written(tmp_path, *three[:2], on_gpu))) == {}
    truncated = read(written(tmp_path, *three[:2], end)).sources[0].diagnostics
    assert [entry.places[0].split(": ")[1] for entry in truncated] == ["12 events were dropped"]
    assert [entry.code.kind for entry in truncated] == [ProblemKind.ABSENT]


def test_gpu_events_of_parents_that_begin_later_are_not_joined(tmp_path: Path) -> None:
    trace = read(
        written(
            tmp_path,
            line("conv_kernel_time", 100, 10, '"op_name" : "Conv"'),
            line("k", 90, 5, '"stream" : "7","parent_name" : "conv_kernel_time"', cat="Kernel", pid=-1, tid=-1),
            line("copy", 105, 5, '"parent_name" : "conv_kernel_time"', cat="Kernel", pid=-1, tid=-1),
        )
    )
    assert [(int(a), int(b)) for a, b in zip(trace.flows.from_slice, trace.flows.to_slice, strict=True)] == [(0, 2)]
    assert [track.name for track in trace.tracks] == ["onnxruntime", "", "GPU", "stream 7"]
    assert trace.slices.track.tolist() == [1, 3, 2]
