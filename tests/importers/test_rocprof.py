"""Counters of kernels in the CSV of rocprofv3: a row for each, in any order."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.golden import ROOT
from traceconv import cli
from traceconv.api import read
from traceconv.io.source import Source
from traceconv.io.spill import Memory
from traceconv.model import columns, tables
from traceconv.model.columns import Column
from traceconv.model.dump import dump
from traceconv.reading import read_recognised, recognise

HEADING = "Kernel_Name,Counter_Name,Counter_Value,Dispatch_Id,Agent_Id,Queue_Id,Start_Timestamp,End_Timestamp,VGPR"


def test_counters_of_a_dispatch_in_any_order(tmp_path: Path) -> None:
    """Made by hand: rows of a dispatch apart, a counter twice, ids that are equal as numbers only, no times."""
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
    (row,) = range(len(trace.instants.ts))
    place = int(trace.instants.args_at[row]), int(trace.instants.args_len[row])
    assert json.loads(trace.args.get(*place)) == {
        "agent": "Agent 4",
        "queue": "Queue 2",
        "dispatch_id": "x",
        "vgpr_count": 8,
        "WAVES": 4,
    }
    balance = trace.sources[0].balance
    assert balance.even
    assert (balance.written, balance.merged["further counters of a kernel"]) == (4, 3)


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
    monkeypatch.setattr(tables, "_WORTH_A_FILE", 1)
    monkeypatch.setattr(tables, "_ROWS_BETWEEN_LOOKS", 7)
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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"EndNs":"5000110999"', '"EndNs":"5000115999"'),  # not what dur was cut from
        ('"EndNs":"5000110999"', '"EndNs":"5000109099"'),  # before the start
        ('"BeginNs":"5000109100"', '"Begin":"5000109100"'),  # missing
        ('"ts":"63"', '"ts":"66"'),  # from another start of the file
        (',{"ts":49,', ',{"ts":49,"ph":"i","pid":2,"tid":9877,"name":"mark"}\n,{"ts":49,'),  # no time in args
    ],
)
def test_the_times_of_chrome_json_stay_where_the_args_do_not_fit(tmp_path: Path, old: str, new: str) -> None:
    text = (ROOT / "rocprof" / "v1-trace-exact" / "input.json").read_text(encoding="utf-8")
    path = tmp_path / "results.json"
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert old in text
    trace = read(path)
    assert min(trace.slices.ts) == 0
    assert [clock.name for clock in trace.clocks] == ["rocprof time"]
