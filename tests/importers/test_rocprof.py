"""Counters of kernels in the CSV of rocprofv3: a row for each, in any order."""

from __future__ import annotations

import json
from pathlib import Path

from traceconv.api import read

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
