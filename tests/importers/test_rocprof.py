"""Counters of kernels in the CSV of rocprofv3: a row for each, in any order."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.damage import members, with_value
from tests.golden import ROOT
from traceconv import cli
from traceconv.answers.device_time import device
from traceconv.answers.slice_tables import SliceTable
from traceconv.api import convert, read
from traceconv.families import rocprof
from traceconv.families.rocprof import NOT_EXACT
from traceconv.families.rocprof_sdk import TOO_LARGE
from traceconv.io.source import Source
from traceconv.io.spill import Memory
from traceconv.model import columns, event_tables
from traceconv.model.args import Args
from traceconv.model.columns import Column
from traceconv.model.dump import dump
from traceconv.reading import read_recognised, recognise

HEADING = "Kernel_Name,Counter_Name,Counter_Value,Dispatch_Id,Agent_Id,Queue_Id,Start_Timestamp,End_Timestamp,VGPR"


def test_counters_of_a_dispatch_in_any_order(tmp_path: Path) -> None:
    """Made by hand: rows of a dispatch apart, a counter twice, ids that are equal as numbers only, times never set."""
    rows = [
        "a,WAVES,1,7,4,1,100,200,8",
        "b,WAVES,2,07,4,1,300,400,",
        "a,WAVES,3,7,5,1,500,600,8",
        "c,WAVES,4,x,4,2,0,0,8",
        "a,BUSY,0.5,7,4,1,100,200,8",
        "b,BUSY,9,07,4,1,300,400,",
        "a,WAVES,6,7,4,1,100,200,8",
    ]
    path = tmp_path / "1_counter_collection.csv"
    path.write_text("\n".join([HEADING, *rows]) + "\n")
    trace = read(path)
    slices = trace.slices
    found = [
        (
            trace.strings[slices.name[row]],
            int(slices.ts[row]),
            int(slices.dur[row]),
            json.loads(trace.args.get(int(slices.args_at[row]), int(slices.args_len[row]))),
        )
        for row in range(len(slices.ts))
    ]
    assert found == [
        ("a", 100, 100, {"dispatch_id": 7, "vgpr_count": 8, "WAVES": 6, "BUSY": 0.5}),
        ("b", 300, 100, {"dispatch_id": 7, "WAVES": 2, "BUSY": 9}),
        ("a", 500, 100, {"dispatch_id": 7, "vgpr_count": 8, "WAVES": 3}),
    ]
    balance = trace.sources[0].balance
    assert balance.even
    assert (balance.written, balance.merged["further counters of a kernel"]) == (3, 3)
    assert balance.skipped.total() == 1


@pytest.mark.parametrize("value", [b"9223372036854775813", b"-9223372036854775808", b"1e308", b"9" * 400])
def test_sums_of_counters_that_no_number_holds_are_lost(value: bytes, tmp_path: Path) -> None:
    """Each counter of the first pass has several instances."""
    data = (ROOT / "rocprof" / "sdk-counters" / "input.json").read_bytes()
    path = tmp_path / "input.json"
    path.write_bytes(with_value(data, members(data)[b"value"], value))
    trace = read(path, format="rocprof")
    assert trace.sources[0].diagnostics.count(TOO_LARGE)
    assert b"inf" not in b"".join(map(bytes, trace.args.parts))


def test_rows_of_counters_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by hand: the rows spilled as often as possible give the trace of the rows in memory."""
    chance = random.Random(1)
    rows = [
        f"k{n % 3},C{chance.randint(0, 4)},{n},{(dispatch := chance.randint(0, 40))},{dispatch % 3},1,{n + 1},{n + 9},8"
        for n in range(300)
    ]
    path = tmp_path / "1_counter_collection.csv"
    path.write_text("\n".join([HEADING, *rows]) + "\n")
    expected = dump(read(path))
    with monkeypatch.context() as patch:
        patch.setattr(columns, "_MOST_KEPT", 299)
        assert dump(read(path)) == expected
    spilled: list[int] = []
    spill = Column.spill
    monkeypatch.setattr(Column, "spill", lambda column: (spilled.append(len(column)), spill(column))[1])
    monkeypatch.setattr(event_tables, "_WORTH_A_FILE", 1)
    monkeypatch.setattr(event_tables, "_ROWS_BETWEEN_LOOKS", 7)
    assert dump(read_recognised(recognise(Source(path)), {}, memory=Memory(1))) == expected
    assert 7 in spilled
    assert 294 in spilled


V1_COLUMNS = "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,vgpr,sgpr,fbar"


@pytest.mark.parametrize(("columns", "cells"), [(",sig,obj", ",0x0,0x7f00"), (",sig", ",0x0"), ("", "")])
def test_counters_of_the_old_rocprof_without_times_are_summed_up(tmp_path: Path, columns: str, cells: str) -> None:
    """Made by hand: `rocprof -i` without --timestamp on; the columns behind fbar differ by version."""
    rows = [f'{n},"add(int, int)",0,0,0,51,52,64,64,0,0,8,16,0{cells},{n + 1}.0000,7.5000' for n in range(3)]
    path = tmp_path / "metrics.csv"
    path.write_text("\n".join([f"{V1_COLUMNS}{columns},TCC_EA_WRREQ_sum,VALUBusy", *rows]) + "\n")
    assert not len(read(path).slices.ts)
    said = CliRunner().invoke(cli.cli, ["report", str(path), "--section", "layers", "--format", "json"])
    row, _ = json.loads(said.stdout)["layers"]
    assert (row["name"], row["calls"], row["TCC_EA_WRREQ_sum"]) == ("add(int, int)", 3, 6)
    assert "VALUBusy" not in row  # an average


@pytest.mark.parametrize("end", [0, 300])
def test_counters_of_kernels_are_rows_of_a_table_where_no_time_was_set(tmp_path: Path, end: int) -> None:
    path = tmp_path / "counter_collection.csv"
    rows = [f"a,WAVES,1,7,4,1,0,{end},8", f"b,WAVES,2,8,4,1,0,{end},8", f"b,BUSY,3,8,4,1,0,{end},8"]
    path.write_text("\n".join([HEADING, *rows, ""]))
    trace = read(path)
    places = zip(trace.instants.args_at.tolist(), trace.instants.args_len.tolist(), strict=True)
    assert [json.loads(trace.args.get(*place)) for place in places] == [
        {"agent": "Agent 4", "queue": "Queue 1", "dispatch_id": 7, "vgpr_count": 8, "WAVES": 1},
        {"agent": "Agent 4", "queue": "Queue 1", "dispatch_id": 8, "vgpr_count": 8, "WAVES": 2, "BUSY": 3},
    ]
    assert (len(trace.slices.ts), trace.sources[0].balance.skipped.total()) == (0, 0)


EXACT = (ROOT / "rocprof" / "v1-trace-exact" / "input.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"EndNs":"5000110999"', '"EndNs":"5000115999"'),  # not what dur was cut from
        ('"EndNs":"5000110999"', '"EndNs":"5000109099"'),  # before the start
        ('"EndNs":"5000110999"', '"EndNs":"9999999999999999999"'),
        ('"BeginNs":"5000109100"', '"Begin":"5000109100"'),  # missing
        ('"BeginNs":"5000109100"', '"BeginNs":""'),
        ('"BeginNs":"5000109100"', '"BeginNs":"50001x9100"'),
        ('"BeginNs":"5000109100"', '"BeginNs":5000109100.5'),
        ('"BeginNs":"5000109100"', '"BeginNs":"5000109100","more":{"BeginNs":"5000109100"}'),
        ('"BeginNs":"5000109100"', '"Name":"\\"BeginNs\\":\\"5000109100\\""'),
    ],
)
def test_what_chrome_json_holds_no_ns_of_keeps_whole_us(tmp_path: Path, old: str, new: str) -> None:
    assert old in EXACT
    whole, path = tmp_path / "whole.json", tmp_path / "results.json"
    whole.write_text(EXACT, encoding="utf-8")
    path.write_text(EXACT.replace(old, new), encoding="utf-8")
    expected, trace = read(whole), read(path)
    rows = trace.slices.ts.tolist()
    assert [time for time in rows if time != 5_000_108_000] == [
        time for time in expected.slices.ts.tolist() if time != 5_000_109_100
    ]
    at = rows.index(5_000_108_000)
    assert (trace.strings[trace.slices.name[at]], trace.slices.dur[at]) == ("scale(float*, int)", 1000)
    assert trace.clocks == expected.clocks
    (said,) = (one for one in trace.sources[0].diagnostics if one.code is NOT_EXACT)
    assert (said.count, said.code.kind.value) == (1, "notice")
    assert not any(one.code is NOT_EXACT for one in expected.sources[0].diagnostics)


def test_a_time_from_another_start_of_the_file_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(EXACT.replace('"ts":"63"', '"ts":"66"'), encoding="utf-8")
    trace = read(path)
    assert 5_000_066_000 in trace.slices.ts
    assert 5_000_063_500 not in trace.slices.ts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BeginNs", "Begin"),  # of an older rocprof: nothing to say
        ('"BeginNs":"50001', '"Begin":"50001'),  # three of five
        (',{"ts":49,', ',{"ts":49,"ph":"i","pid":2,"tid":9877,"name":"mark"}\n,{"ts":49,'),  # no time in args
    ],
)
def test_the_times_of_chrome_json_stay_where_the_args_do_not_fit(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(EXACT.replace(old, new), encoding="utf-8")
    assert old in EXACT
    trace = read(path)
    assert min(trace.slices.ts) == 0
    assert [clock.name for clock in trace.clocks] == ["rocprof time"]
    said = [one.count for one in trace.sources[0].diagnostics if one.code is NOT_EXACT]
    assert said == ([] if old == "BeginNs" else [5])


@pytest.mark.parametrize(("old", "copies"), [("dev-id", 12_900), ("device", 0)])
def test_kernels_and_copies_of_a_gpu_in_chrome_json_are_its_work(tmp_path: Path, old: str, copies: int) -> None:
    """A copy that names no GPU is no work of one; an output with the same names is no file of rocprof."""
    path, output = tmp_path / "results.json", tmp_path / "out.json"
    path.write_text(EXACT.replace("dev-id", old), encoding="utf-8")
    row, *_ = device(SliceTable(read(path)))[0].records()
    assert (row["device"], row["compute_ns"], row["exposed_copy_ns"]) == ("GPU0", 1899, copies)
    convert(path, output)
    assert read(output).sources[0].format == "chrome-trace"


@pytest.mark.parametrize("quote", ['"', ""])
def test_the_ns_are_read_in_any_order_and_wherever_they_are_kept(tmp_path: Path, quote: str) -> None:
    digits = [0, 1, 5_000_063_500, 10**18 - 1, 10**18]
    texts = [b'{"a":1,"BeginNs":%b%d%b}' % (quote.encode(), one, quote.encode()) for one in digits]
    found = rocprof._numbers(
        Args([b"".join(texts[:2]), b"".join(texts[2:])]),
        np.cumsum([0, *map(len, texts)])[:-1][::-1].astype(np.int64),
        np.array([*map(len, texts)][::-1], np.int32),
        b"BeginNs",
    )
    assert found.tolist() == [-1, 10**18 - 1, 5_000_063_500, 1, 0]
