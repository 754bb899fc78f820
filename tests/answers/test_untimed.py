"""Slices whose duration was not recorded: every section leaves their times out, and says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import traceconv
from tests.answers.test_ranks import MS, US, collective, write
from tests.answers.test_ranks import tables as tables_of_ranks
from tests.answers.test_sections import KINETO, event, kineto, launched, only, parts
from tests.golden import ROOT
from traceconv import Questions
from traceconv.answers.device_time import device
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.steps import NOT_RECORDED, steps
from traceconv.errors import UsageError
from traceconv.model import args
from traceconv.model.args import Args

OPEN = {"args": {"unfinished": True}}
LEFT_OUT = "times leave out 1 slice whose duration was not recorded"
Events = list[dict[str, Any]]


def test_a_step_without_a_duration_has_only_a_start(tmp_path: Path) -> None:
    events = [event(f"ProfilerStep#{number}", number * 30, 20, cat="user_annotation") for number in range(5)]
    events.append(event("ProfilerStep#5", 150, 900, cat="user_annotation", **OPEN))
    section, times = steps(kineto(tmp_path / "a.json", events))
    row = only(section, step="ProfilerStep#5")
    assert (row["start_ns"], row["duration_ns"], row["state"]) == (150_000, None, "no duration")
    assert (row["slower_operation"], row["slower_by_ns"]) == ("", None)
    assert only(section, step="ProfilerStep#4")["interval_ns"] == 30_000
    assert times.rows[0][1:] == (5, 5, *[20_000] * 4, "a.json")
    assert section.notes == [LEFT_OUT]


def test_steps_that_all_lack_a_duration_have_no_percentiles(tmp_path: Path) -> None:
    (section,) = steps(kineto(tmp_path / "a.json", [event("ProfilerStep#5", 150, 900, cat="user_annotation", **OPEN)]))
    assert (len(section.rows), section.notes) == (1, [LEFT_OUT])


def test_what_has_no_duration_made_no_step_slow(tmp_path: Path) -> None:
    events: Events = []
    for number in range(6):
        slow = 50 if number == 3 else 0
        events.append(event(f"ProfilerStep#{number}", number * 100, 40 + slow, cat="user_annotation"))
        events.append(event("cut", number * 100 + 1, 4 + slow, **(OPEN if slow else {})))
        events.append(event("conv", number * 100 + 70 if slow else number * 100 + 30, 6 + slow // 10))
    row = only(steps(kineto(tmp_path / "a.json", events))[0], state="outlier")
    assert (row["step"], row["slower_operation"]) == ("ProfilerStep#3", NOT_RECORDED)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("chrome-trace/no-duration", "All recorded durations are 0."),
        ("deepsparse/v180-sr", "No durations are recorded."),
    ],
)
def test_a_recording_without_durations_does_not_tell_what_took_the_time(case: str, why: str) -> None:
    (path,) = (ROOT / case).glob("input.*")
    found, unanswered = traceconv.report([path], Questions(["summary"]))
    assert (found.rows, unanswered.rows[0]) == ([], ("What took the time?", why))


def test_work_of_unknown_duration_does_not_keep_a_device_busy(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))
    events += launched(3, (134, 135), (151, 900), args={"device": 0, "stream": 7, "correlation": 3, "unfinished": True})
    section = device(kineto(tmp_path / "a.json", events))[0]
    (row,) = section.records()
    assert (row["window_ns"], row["busy_ns"], row["idle_ns"], row["launches"]) == (145_000, 105_000, 40_000, 2)
    assert f"{LEFT_OUT}: idle may include them" in section.notes


def test_a_device_whose_work_all_lacks_a_duration_has_no_row(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100), args={"device": 0, "stream": 7, "correlation": 1, "unfinished": True})
    section = device(kineto(tmp_path / "a.json", events))[0]
    assert (section.rows, section.notes) == ([], [LEFT_OUT])


def test_a_gap_is_unknown_if_the_launch_call_has_no_duration(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))
    (call,) = (one for one in events if one.get("name") == "cudaLaunchKernel" and one["ts"] == 130)
    call["args"] = call["args"] | {"unfinished": True}
    late = [event("busy", 101, 20, **OPEN)]
    found = device(kineto(tmp_path / "a.json", events + late))
    row = found[0].records()[0]
    assert parts(row) == (0, 0, 0, 0, 40_000)
    assert (row["launches"], row["launch_latency_p50_ns"], row["queue_time_p50_ns"]) == (2, 5_000, 3_000)


def test_an_open_slice_is_not_what_a_late_host_ran(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))
    events += [event("open", 101, 900, **OPEN), event("ran", 102, 8)]
    _, late = device(kineto(tmp_path / "a.json", events))
    assert {row["name"]: row["time_ns"] for row in late.records()} == {"(none recorded)": 22_000, "ran": 8_000}


def test_steps_and_collectives_of_ranks(tmp_path: Path) -> None:
    step = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "name": "ProfilerStep#1"}
    never = collective(5 * MS, 0, 2)
    never["args"] = never["args"] | {"unfinished": True}
    paths = write(
        tmp_path,
        {
            0: [collective(0, 500 * US, 1), collective(5 * MS, 9 * MS, 2), step | {"ts": 0, "dur": 900}],
            1: [collective(400 * US, 100 * US, 1), never, step | {"ts": 0, "dur": 9000} | OPEN],
        },
    )
    found = tables_of_ranks(*paths)
    assert [row["seq"] for row in found["collectives"].records()] == [1]
    assert [(row["step_p50_ns"], row["steps"]) for row in found["ranks"].records()] == [(900 * US, 1), (None, None)]
    assert "step times leave out 1 slice whose duration was not recorded" in found["ranks"].notes
    assert "left out: 1 record of collectives whose duration was not recorded" in found["ranks"].notes


def test_primitives_leave_out_calls_without_a_duration(tmp_path: Path) -> None:
    start = "onednn_verbose,info,oneDNN v3.4\nonednn_verbose,primitive,info,template:operation,engine,primitive\n"
    calls = [f"onednn_verbose,primitive,exec,cpu,relu,jit:avx2,forward,a,b,,{shape},1\n" for shape in ("2x8", "4x9")]
    (tmp_path / "a.log").write_text(start + "".join(calls))
    trace = traceconv.read(tmp_path / "a.log")
    # The importer draws a call without a duration as an instant, so a mark is written into the args of a slice.
    args = bytearray(b"".join(bytes(part) for part in trace.args.parts))
    at, length = int(trace.slices.args_at[0]), int(trace.slices.args_len[0])
    args[at : at + length] = b'{"no_duration":true}'.ljust(length)
    (section,) = traceconv.report(trace.with_tables(args=type(trace.args)([args])), traceconv.Questions(["primitives"]))
    assert [row["count"] for row in section.records()] == [1]
    assert "left out: 1 call without a duration in the input" in section.notes


def test_conditions_and_windows_know_no_duration(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    events = [event("open", 0, 50, **OPEN), event("short", 60, 1), event("long", 70, 50)]
    path.write_text(json.dumps(KINETO | {"traceEvents": events}))

    def counted(**asked: str) -> set[str]:
        (section,) = traceconv.report([path], traceconv.Questions(["operations"], **asked))
        return {row["name"] for row in section.records()}

    assert counted(where="dur>=1us") == {"short", "long"}
    assert counted(where="self<50us") == {"short"}
    assert counted(where="dur!=1us") == {"open", "long"}
    assert counted(where="start<10us") == {"open"}
    assert counted(between="open..") == {"open", "short", "long"}
    for between in ("open", "..open"):
        with pytest.raises(UsageError, match="the duration of 'open' was not recorded") as caught:
            counted(between=between)
        assert "'open..'" in str(caught.value.hint)


def test_a_window_that_cuts_a_slice_still_knows_that_it_has_no_duration() -> None:
    folder = Path(__file__).parents[1] / "data" / "layers"
    trace = traceconv.merge(
        [folder / "profile.json", folder / "perf.data.gz"], constraints=traceconv.Constraints(same_machine=True)
    ).trace
    rows = [row for row, name in enumerate(trace.slices.name) if trace.strings[name] == "conv"]
    args = bytearray(b"".join(bytes(part) for part in trace.args.parts))
    end = len(args)
    args += b'{"unfinished":true}'
    at, length = trace.slices.args_at.copy(), trace.slices.args_len.copy()
    at[rows], length[rows] = end, len(args) - end
    slices = replace(trace.slices, args_at=at, args_len=length)
    changed = trace.with_tables(slices=slices, args=type(trace.args)([args]))
    assert int((~SliceTable(changed).timed).sum()) == len(rows)
    start, first = SliceTable(changed).start, int(trace.slices.ts[rows[0]])
    inside = f"{first - start + 1000}ns..{first - start + 10**9}ns"
    for between in ("", inside):
        (section,) = traceconv.report(changed, traceconv.Questions(["layers"], between=between))
        names = {row["name"] for row in section.records()}
        assert "conv" not in names
        assert "dense" in names
        assert any(note.startswith("layers leave out") for note in section.notes)


def test_a_table_of_sums_agrees_without_durations_that_were_not_recorded(tmp_path: Path) -> None:
    """The table is written by hand, in the form of `key_averages().table()`."""
    line = "---------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
    titles = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
    rows = (titles, ("relu", "100.00%", "10.000us", "100.00%", "10.000us", "5.000us", "2"))
    cells = ["".join(f"{cell:>{9 if at == 0 else 12}}  " for at, cell in enumerate(row)) + "\n" for row in rows]
    table, trace = tmp_path / "table.txt", tmp_path / "a.json"
    table.write_text(f"{line}{cells[0]}{line}{cells[1]}{line}Self CPU time total: 10.000us\n")
    for second, agree in ((event("relu", 60, 50, **OPEN), 1), (event("relu", 60, 50), 0)):
        trace.write_text(json.dumps(KINETO | {"traceEvents": [event("relu", 0, 10), second]}))
        (section,) = traceconv.report([trace, table], traceconv.Questions(["operations"]))
        (said,) = (note for note in section.notes if "agree" in note)
        assert said.startswith(f"table.txt: {agree} of 1 rows agree with a.json")


def test_frames_tell_which_durations_were_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(KINETO | {"traceEvents": [event("open", 0, 50, **OPEN), event("short", 60, 1)]}))
    slices = traceconv.frames([path], args=["unfinished"]).slices.to_arrow()
    assert slices.column_names[-3:] == ["args", "no_duration", "args.unfinished"]
    assert dict(zip(slices["name"].to_pylist(), slices["no_duration"].to_pylist(), strict=True)) == {
        "open": True,
        "short": False,
    }


@pytest.mark.parametrize("searched", [1, 2, 7, 10, 11])
def test_a_mark_is_found_wherever_the_search_is_cut(searched: int, monkeypatch: pytest.MonkeyPatch) -> None:
    searchable = Args([bytearray(b'{"a":1}{"unfinished":true}{"unfinished":true}'), bytearray(b'"unfinished"')])
    monkeypatch.setattr(args, "_SEARCHED", searched)
    assert list(searchable.places(b'"unfinished"')) == [8, 27, 45]
