"""The section on primitives, against sums over the lines of recordings."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.golden import ROOT
from traceconv.answers.operations import primitives
from traceconv.answers.slice_tables import SliceTable
from traceconv.api import read
from traceconv.families.onednn.verbose import OnednnVerbose
from traceconv.io.shown import quantity
from traceconv.model.diagnostics import CALLS

CASES = ["all-ts", "boot-clock", "decimal-comma", "gemm-api", "gpu", "graph-ts", "mkldnn-v0", "mkldnn-v021-torch"]
CASES += ["torch-convnet-process", "v2-threads-ts", "v313-openvino-ts"]


def log(case: str) -> Path:
    (path,) = (ROOT / "onednn-verbose" / case).glob("input.*")
    return path


@pytest.mark.parametrize("case", CASES)
def test_calls_are_added_up_by_implementation(case: str) -> None:
    trace = read(log(case))
    slices = trace.slices
    groups: dict[tuple[str, str | None], list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for row in range(len(slices.ts)):
        if trace.strings[slices.category[row]] == "exec":
            args = json.loads(bytes(trace.args.view(int(slices.args_at[row]), int(slices.args_len[row]))))
            groups[trace.strings[slices.name[row]], args.get("impl")].append((int(slices.dur[row]), args))
    whole = sum(dur for calls in groups.values() for dur, _ in calls)
    records = primitives(SliceTable(trace)).records()
    assert len(records) == len(groups)
    for row in records:
        calls = groups[row["kind"], row["implementation"]]
        total = sum(dur for dur, _ in calls)
        assert (row["count"], row["total_ns"]) == (len(calls), total)
        assert row["mean_ns"] == round(Fraction(total, len(calls)))
        assert row["primitives_share"] == pytest.approx(total / whole)
        assert row["reorder"] == ("yes" if row["kind"] == "reorder" else "no")
        for column, arg, scale in (("gflop_per_s", "derived_gflop", 1e9), ("gb_per_s", "derived_bytes", 1)):
            known = [(args[arg], dur) for dur, args in calls if arg in args and dur > 0]
            if known:
                work, time = map(sum, zip(*known, strict=True))
                assert row[column] == pytest.approx(work / time * scale)
            else:
                assert row[column] is None
    totals = [row["total_ns"] for row in records]
    assert totals == sorted(totals, reverse=True)


def test_rates_follow_from_the_shape(tmp_path: Path) -> None:
    tensors = " ".join(
        f"{role}:{kind}::blocked:ab::f0" for role, kind in (("src", "f32"), ("wei", "s8"), ("dst", "f16"))
    )
    line = f"onednn_verbose,v1,primitive,exec,cpu,matmul,{{}},undef,{tensors},,,{{}},{{}}\n"
    path = tmp_path / "a.log"
    path.write_text(
        line.format("brg:avx2", "10x20:20x30", "0.001") * 3
        + line.format("ref:any", "10x20:20x30", "0.002")
        + line.format("ref:any", "10x20:20x*", "0.002")
        + line.format("prefetch:any", "1x1:1x1", "0.5")
    )
    section = primitives(SliceTable(read(path)))
    assert [note.endswith("in rows with a speed, 1 call left out") for note in section.notes[:2]] == [True] * 2
    found = {row["implementation"]: row for row in section.records()}
    assert found["brg:avx2"]["gflop_per_s"] == pytest.approx(2 * 10 * 20 * 30 / 1000)
    assert found["brg:avx2"]["gb_per_s"] == pytest.approx((10 * 20 * 4 + 20 * 30 * 1 + 10 * 30 * 2) / 1000)
    assert found["ref:any"]["gflop_per_s"] == pytest.approx(2 * 10 * 20 * 30 / 2000)  # of the call with a known shape
    assert found["prefetch:any"]["gflop_per_s"] == pytest.approx(2 / 500_000)
    assert {name: row["reference"] for name, row in found.items()} == {
        "brg:avx2": "no",
        "ref:any": "yes",
        "prefetch:any": "no",
    }


@pytest.mark.parametrize("name", ["ref:any", "ocl:ref:any", "ref_int8:any", "x64:ref", "gemm:ref"])
def test_reference_implementations_are_known_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"onednn_verbose,v1,primitive,exec,cpu,softmax,{name},undef,src:f32::blocked:ab::f0,,,8x8,0.5\n")
    assert [row["reference"] for row in primitives(SliceTable(read(path))).records()] == ["yes"]


def test_what_cannot_be_told_is_said() -> None:
    section = primitives(SliceTable(read(ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json")))
    assert section.rows == []
    assert section.notes == ["no primitives found, or the inputs do not name their implementation"]
    section = primitives(SliceTable(read(log("gemm-api"))))
    assert (None, None) in [(row["implementation"], row["reference"]) for row in section.records()]
    section = primitives(SliceTable(read(log("gpu"))))
    trace = read(log("gpu"))
    without = [trace.strings[category] for category in trace.instants.category.tolist()].count("exec")
    assert without
    assert section.notes[0] == f"left out: {quantity(without, CALLS)} without a duration in the input"
    assert OnednnVerbose.marks.primitives is not None
    assert OnednnVerbose.marks.primitives.formula in " ".join(section.notes)
