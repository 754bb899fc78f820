"""What an input states of collectives, as columns: kind, group, number and sizes of its slices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traceconv.align import align
from traceconv.align.collective_matching import match_collectives
from traceconv.api import read
from traceconv.families.common.collective_kernels import kind_of_kernel
from traceconv.model.stated_collectives import StatedCollectives, stated_collectives
from traceconv.model.trace import Trace

KERNEL = "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"


def profile(folder: Path, *stated: dict[str, Any], rank: int = 0, first: int = 0, kernel: str = KERNEL) -> Trace:
    """A rank of two with a kernel a millisecond, of growing length."""
    group = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Group size": 2}
    events = [
        {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": 1000 * n, "dur": 300 + n, "args": args}
        for n, args in enumerate(({"device": 0, "dtype": "Float"} | group | one for one in stated), first)
    ]
    info = {"backend": "nccl", "rank": rank, "world_size": 2}
    top = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": info, "baseTimeNanoseconds": 10**18}
    path = folder / f"rank{rank}.json"
    path.write_text(json.dumps(top | {"host_name": "node7", "traceEvents": events}))
    return read(path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", "all_gather"),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclWorkElem)", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", "reduce_scatter"),
        ("hccl::all_reduce", "all_reduce"),
        ("mscclKernel_Sum_half_LL_false(ncclDevComm*, mscclAlgo*, mscclWork*)", ""),
        ("ncclDevKernelDebug_Generic_4(ncclDevKernelArgsStorage<4096ul>)", ""),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", ""),
        ("ncclDevKernel_Broadcast_RING_LL(x)", "broadcast"),
        ("ncclKernel_Reduce_RING_LL_Sum_float(ncclWorkElem)", "reduce"),
        ("ncclDevKernel_AllToAllv(x)", None),
        ("gemm_allreduce_fused", None),
    ],
)
def test_what_kernels_are_called(name: str, kind: str | None) -> None:
    assert kind_of_kernel(name) == kind


def stated(folder: Path, *args: dict[str, Any], kernel: str = KERNEL) -> StatedCollectives:
    return stated_collectives(profile(folder, *args, kernel=kernel))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("allreduce", "all_reduce"), ("allreduce_coalesced", "all_reduce"), ("all_gather", "all_gather")),
        *(("_allgather_base", "all_gather"), ("allgather_into_tensor_coalesced", "all_gather")),
        *(("reduce_scatter", "reduce_scatter"), ("_reduce_scatter_base", "reduce_scatter"), ("barrier", "barrier")),
        *(("reduce_scatter_tensor_coalesced", "reduce_scatter"), ("all_to_all", "all_to_all")),
    ],
)
def test_what_torch_calls_them(name: str, kind: str, tmp_path: Path) -> None:
    """The names that ProcessGroupNCCL gives; a kernel of RCCL tells nothing itself."""
    (one,) = stated(tmp_path, {"Collective name": name}).each
    assert one.kind == kind


@pytest.mark.parametrize("name", ["broadcast", "_broadcast_oop", "reduce", "gather", "scatter", "send", "all_to_allv"])
def test_what_does_not_wait_for_all_is_not_stated(name: str, tmp_path: Path) -> None:
    assert stated(tmp_path, {"Collective name": name, "Seq": 1}).each == []


@pytest.mark.parametrize(
    ("sent", "received", "kind"),
    [
        *(("[]", "[]", "all_to_all"), ("[512, 512]", "[512, 512]", "all_to_all"), ("[]", "[512, 512]", "all_to_all")),
        *(("[1024, 0]", "[]", ""), ("[]", "[0, 1024]", ""), ("[0, 0]", "[0, 0]", ""), ("[512, 1]", "[512, 512]", "")),
        *(("[1, ..., 1]", "[]", ""), (None, None, ""), ("[]", None, ""), ([], [], "")),
    ],
)
def test_all_to_all_of_equal_parts(sent: Any, received: Any, kind: str, tmp_path: Path) -> None:
    """torch 2.11 calls all of them all_to_allv; an empty part would let its receiver leave early."""
    parts = {"In split size": sent, "Out split size": received}
    args = {"Collective name": "all_to_allv"} | {key: value for key, value in parts.items() if value is not None}
    assert [one.kind for one in stated(tmp_path, args).each] == [kind] * bool(kind)


@pytest.mark.parametrize(
    ("kernel", "name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_TREE_LL", "barrier", "barrier"),
        ("ncclDevKernel_AllReduce_Sum_f32_TREE_LL", "broadcast", "all_reduce"),
        ("ncclDevKernel_AllReduce_Sum_f32_TREE_LL", "another", "all_reduce"),
        ("ncclDevKernel_Broadcast_RING_LL", "all_gather", ""),
    ],
)
def test_the_record_states_what_was_asked_for(kernel: str, name: str, kind: str, tmp_path: Path) -> None:
    """NCCL runs a barrier as an all_reduce of one element."""
    found = stated(tmp_path, {"Collective name": name, "Seq": 1}, kernel=kernel).each
    assert [one.kind for one in found] == [kind] * bool(kind)


def test_columns(tmp_path: Path) -> None:
    found = stated(tmp_path, {"Collective name": "allreduce", "Seq": 7, "In msg nelems": 1024})
    (one,) = found.each
    assert (one.row, one.seq, one.sizes) == (0, 7, (KERNEL, "1024", "Float"))
    group = found.groups[one.group]
    assert (group.ranks, group.name, group.about) == ((0, 1), "0", "")


@pytest.mark.parametrize("seq", [True, -1, 2**62, "7", 7.5, None])
def test_what_is_not_a_number_is_none(seq: Any, tmp_path: Path) -> None:
    (one,) = stated(tmp_path, {"Collective name": "allreduce", "Seq": seq}).each
    assert one.seq == -1


def test_a_number_that_is_stated_twice_tells_nothing(tmp_path: Path) -> None:
    """Kernels of a replayed graph have that of the capture; as for other kinds and groups they count on their own."""
    again = {"Collective name": "allreduce", "Seq": 7}
    found = stated(tmp_path, again, again, again | {"Seq": 8}, again | {"Collective name": "barrier"})
    assert [one.seq for one in found.each] == [-1, -1, 8, 7]


def test_replays_that_one_rank_began_to_record_later_are_told_by_the_clocks(tmp_path: Path) -> None:
    """Both have the number of the capture ten times, but not of the same ten; their clocks are those of one host."""
    again = {"Collective name": "allreduce", "Seq": 7}
    traces = [profile(tmp_path, *[again] * 10, rank=rank, first=rank) for rank in (0, 1)]
    matched = match_collectives(traces, align(traces))
    assert (matched.occurrences.count, matched.alone) == (9, 2)
    first, second = (matched.occurrences.where(matched.occurrences.rank == rank) for rank in (0, 1))
    assert (first.start == second.start).all()
