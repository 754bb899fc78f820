"""The two outputs of the profiler of TensorFlow and JAX: each by itself, and both of one run against each other."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import kernels
from tests.golden import ROOT
from tests.make_xplane import MADE, START, Plane, device, device_json
from traceconv.align import align
from traceconv.api import identify, read
from traceconv.errors import MalformedInput, TraceconvError
from traceconv.families.common import wire_writer as wire
from traceconv.families.tensorflow.xplane import ends_of_flows, step_name
from traceconv.model.clocks import REALTIME
from traceconv.model.dump import dump
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind

#: xprof makes these out of two instants when it prepares a file for viewers.
DERIVED = "ThreadpoolListener::Region"


def events(trace: Trace) -> Counter[tuple[Any, ...]]:
    """Start, duration, name and thread of all events, with or without a length."""
    found: Counter[tuple[Any, ...]] = Counter()
    for table in (trace.slices, trace.instants):
        durations = getattr(table, "dur", table.ts * 0)
        for ts, dur, name, track in zip(table.ts, durations, table.name, table.track, strict=True):
            found[int(ts), int(dur), trace.strings[name], trace.tracks[track].name] += 1
    return found


@pytest.mark.parametrize("run", ["tensorflow-2.13", "tensorflow-2.18", "jax"])
def test_both_files_of_a_run_agree(run: str) -> None:
    space = events(read(ROOT / "xplane" / run / "input.pb"))
    viewer = events(read(ROOT / "tensorflow-profiler" / run / "input.json"))
    derived = Counter({event: count for event, count in viewer.items() if event[2] == DERIVED})
    assert viewer - derived == space
    assert bool(derived) is (run == "tensorflow-2.18")


def test_both_files_for_viewers_agree() -> None:
    paths = [ROOT / "tensorflow-profiler" / name / "input.json" for name in ("jax", "jax-perfetto")]
    one, other = (events(read(path)) for path in paths)
    assert one == other


@pytest.mark.parametrize("run", ["tensorflow-2.13", "tensorflow-2.18"])
def test_both_files_of_a_run_have_the_same_flows(run: str) -> None:
    found = []
    for path in (ROOT / "xplane" / run / "input.pb", ROOT / "tensorflow-profiler" / run / "input.json"):
        trace = read(path)
        ts = trace.slices.ts.tolist()
        pairs = zip(trace.flows.from_slice.tolist(), trace.flows.to_slice.tolist(), strict=True)
        found.append(sorted((ts[one], ts[other]) for one, other in pairs))
    assert found[0] == found[1] != []


def test_the_inputs_of_the_goldens_are_as_made() -> None:
    for path, make in MADE.items():
        assert (ROOT / path).read_bytes() == make(), path


def write(folder: Path, data: bytes, name: str = "host.xplane.pb") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def codes(trace: Trace) -> dict[str, int]:
    return {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}


def test_start_of_the_profile_is_on_the_wall_clock(tmp_path: Path) -> None:
    trace = read(write(tmp_path, device()))
    alignment = align([trace])
    assert alignment.clock == REALTIME
    assert trace.clocks[0].machine == "node7"
    assert next(line.offset_ns for line in alignment.receipt) == START


def test_times_since_1970(tmp_path: Path) -> None:
    plane = Plane("/host:CPU")
    plane.line("main", START, plane.event("op", 1_000, 2_000))
    trace = read(write(tmp_path, plane.bytes()))
    assert align([trace]).clock == REALTIME
    assert trace.slices.ts.tolist() == [START + 1]


def test_kinds_of_tracks_and_args(tmp_path: Path) -> None:
    trace = read(write(tmp_path, device()))
    kinds = {track.name: (track.kind, track.pid) for track in trace.tracks}
    assert kinds["/host:CPU"] == (TrackKind.PROCESS, 4711)
    assert kinds["main python thread"] == (TrackKind.THREAD, None)
    assert kinds["/device:GPU:0"] == kinds["XLA Ops"] == (TrackKind.TRACK, None)
    names = [trace.strings[name] for name in trace.slices.name]
    assert {"fusion.1", "train 4", "0"} <= set(names)
    row = names.index("fusion_kernel_1")
    args = trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row])).decode()
    assert args.startswith('{"hlo_op":"fusion.1","hlo_module":"jit_train","flops":4096,"occupancy":0.5,')


def test_picoseconds_are_rounded_and_counted(tmp_path: Path) -> None:
    plane = Plane("/host:CPU")
    exact = plane.event("exact", 2_000, 1_000)
    odd = [plane.event("odd", at, dur) for at, dur in ((10_499, 1_000), (10_500, 2_000), (20_000, 3_499))]
    plane.line("main", 0, exact, *odd)
    trace = read(write(tmp_path, plane.bytes()))
    times = zip(trace.slices.ts.tolist(), trace.slices.dur.tolist(), strict=True)
    assert sorted(times) == [(2, 1), (10, 1), (11, 2), (20, 3)]
    assert codes(trace)["xplane.rounded"] == 3


def test_errors_of_the_profiler_are_told(tmp_path: Path) -> None:
    found = codes(read(write(tmp_path, device())))
    assert found["xplane.profiler_error"] == found["xplane.profiler_warning"] == found["xplane.bytes"] == 1


def test_names_that_are_missing(tmp_path: Path) -> None:
    event = wire.integer(1, 77) + wire.integer(2, 5000) + wire.blob(4, wire.integer(1, 9) + wire.integer(3, 1))
    line = wire.integer(1, 1) + wire.text(2, "main") + wire.blob(4, event)
    trace = read(write(tmp_path, wire.blob(1, wire.text(2, "/host:CPU") + wire.blob(3, line))))
    assert trace.strings[trace.instants.name[0]] == "(event 77)"
    assert codes(trace) == {"xplane.no_name": 2}


def test_events_that_are_no_messages(tmp_path: Path) -> None:
    good = Plane("/host:CPU")
    event = good.event("op", 1000, 1000)
    good.line("main", 0, event, b"\x12\x7f", event)
    trace = read(write(tmp_path, good.bytes()))
    assert codes(trace) == {"xplane.not_a_message": 1}
    assert trace.sources[0].balance.describe() == "3 events = 2 written + 1 skipped (xplane.not_a_message)"


def test_nothing_that_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="not an XSpace"):
        read(write(tmp_path, b"\xff\xff"), format="xplane")


def test_any_byte_may_be_wrong(tmp_path: Path) -> None:
    data = device()
    for at in range(0, len(data), 11):
        for value in (0x00, 0x7F, 0xFF):
            broken = bytearray(data)
            broken[at] = value
            try:
                trace = read(write(tmp_path, bytes(broken)), format="xplane")
            except TraceconvError:
                continue
            assert trace.sources[0].balance.even


def test_other_messages_are_not_claimed(tmp_path: Path) -> None:
    foreign = Plane("/etc/passwd").bytes(), wire.blob(1, wire.text(1, "a.b.Message")), b"\x0a\x05hello", b"\n\n\n"
    for data in foreign:
        try:
            assert identify(write(tmp_path, data))[0] != "xplane"
        except TraceconvError:
            continue


def test_numbers_in_text_become_numbers_of_any_size(tmp_path: Path) -> None:
    text = device_json().replace(b'"4 of 8"', b'"18446744073709551615", "a": "-0", "b": "007", "c": "1.5"')
    trace = read(write(tmp_path, text, "x.json"))
    places = zip(trace.slices.args_at.tolist(), trace.slices.args_len.tolist(), strict=True)
    args = [trace.args.get(at, length).decode() for at, length in places]
    assert any('"note":18446744073709551615,"a":"-0","b":"007","c":"1.5"}' in one for one in args)


def test_events_for_viewers_are_the_same_with_and_without_the_kernel(tmp_path: Path) -> None:
    """Those with numbers as text, flows, steps, no duration, categories, or escapes are read in another way."""
    random_ = random.Random(4)
    values = ["7", "-12", "0", "007", "1.5", "18446744073709551615", "99999999999999999999", 'a:"1"', "\u0031", "é"]
    values += [3, 2.50, True, None, ["4"], {"a": "5"}, "2017612633061982230"]
    keys = ["group_id", "name", "flow", "step_num", "_p", "_ct", "fl\u006fw", "a:"]

    def event(number: int) -> str:
        args = {random_.choice(keys): random_.choice(values) for _ in range(random_.randrange(4))}
        text = json.dumps(args, ensure_ascii=random_.random() < 0.5).replace("6f", "\\u0036f")
        duration = random_.choice([',"dur":1.5', ',"dur":0.0004', ',"dur":2', "", ',"dur":"x"'])
        more = random_.choice(["", "", "", "", ',"cat":"op"', ',"odd":[1]', ',"id":3', ',"s":"t"'])
        head = f'"ph":"{random_.choice("XXXXXiIBEC")}","pid":{random_.randrange(2)},"name":"op {number % 7}"'
        time = f'"tid":{number % 40},"ts":{number}.{random_.randrange(1000)}{duration}'
        return f'{{{head},{time}{more},"args":{random_.choice([text, text, "{}"])}}}'

    plane = '{"ph":"M","pid":0,"name":"process_name","args":{"name":"/host:CPU"}}'
    head = '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":['
    path = tmp_path / "host.trace.json"
    path.write_text(f"{head}{','.join([plane, *map(event, range(3000))])}]}}", encoding="utf-8")
    found = read(path)
    with kernels.without():
        expected = read(path)
    assert dump(found).splitlines() == dump(expected).splitlines()


def test_directions_of_flows() -> None:
    assert ends_of_flows({"_p": 7, "_pt": 2, "_c": 8}) == [("s", b"2 7"), ("f", b"0 8")]
    assert ends_of_flows({"flow": 5 << 2 | 3}) == [("f", b"flow 5"), ("s", b"flow 5")]
    assert ends_of_flows({"flow": "text"}) == ends_of_flows({"flow": 5 << 2}) == []


def test_names_of_steps() -> None:
    assert step_name("train", {"step_num": 3}) == step_name("train 3", {"step_num": 3}) == "train 3"
    assert step_name("3", {"step_num": 3}) == "3"
    assert step_name("op", {}) == "op"


def test_a_cut_file_shows_what_is_whole(tmp_path: Path) -> None:
    whole = (ROOT / "xplane" / "tensorflow-2.18" / "input.pb").read_bytes()
    events = read(write(tmp_path, whole), format="xplane").sources[0].balance.written
    for percent in (90, 50):
        source = read(write(tmp_path, whole[: len(whole) * percent // 100]), format="xplane").sources[0]
        assert 0 < source.balance.written <= events
        assert source.balance.even
        assert "xplane.cut" in {one.code.name for one in source.diagnostics}


def test_events_before_the_cut_keep_their_metadata_ids(tmp_path: Path) -> None:
    whole = device()
    written = [
        read(write(tmp_path, whole[:size]), format="xplane").sources[0].balance.written
        for size in range(len(whole) // 2, len(whole), 7)
    ]
    assert written == sorted(written)
    assert min(written) > 0
