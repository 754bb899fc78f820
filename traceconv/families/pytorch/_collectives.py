"""Declare the slices of a Kineto trace that are collectives of torch.distributed.

    {"cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "args": {
      "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float",
      "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "Seq": 7}}
    {"cat": "user_annotation", "name": "gloo:all_reduce", "args": {"Input Dims": [[65536]]}}

Two kinds of slices last from the entry to the exit of a process: kernels of NCCL, RCCL and HCCL, which spin on the
device until all have entered, and the annotations of gloo around its work. Host calls (`c10d::allreduce_`,
`record_param_comms`, `nccl:all_reduce`) return earlier, and gloo:recv ends before the data has arrived.

A kernel names the other side of a message ("Src Rank", "Dst Rank"). The root of a broadcast, scatter, reduce or gather
is the "Rank", counted in the group, of the `record_param_comms` with its "External id"; of other operations this is the
rank itself. `Seq` counts collectives and, apart from these, messages to all others of a group.

Source: the source of Kineto (libkineto/src/output_json.cpp; pull requests 821, 880, 906, 1294, 1296, 1440), where the
args were added one by one since torch 2.2, recordings of torch 2.11 with NCCL 2.28, whose kernels have all of the above
but `Seq`, and of torch 2.15 with gloo. torch 2.11 calls all_to_all_single "all_to_allv", with "In split size" and "Out
split size": "[]" if all parts are equal. Kernels of coalesced calls have none of these args. Those that replay a CUDA
graph had none either; since 2026 (torch/cuda, annotations of graphs) they may have those of the capture, with its
`Seq`. Lists of more than 30 ranks are cut: 29 of them, "...", and the last one; `distributedInfo` has all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traceconv.families.common.collective_kernels import kind_of_kernel
from traceconv.model.builder import Builder
from traceconv.model.collectives import ONE_SIDED, CollectiveArgs, Collectives, Group, parse_ranks

_ARGS = CollectiveArgs(
    kind="Collective name",
    ranks="Process Group Ranks",
    group="Process Group Name",
    about="Process Group Description",
    group_size="Group size",
    seq="Seq",
    sizes=("In msg nelems", "Out msg nelems", "dtype", "Input Dims", "Input type"),
    parts=("In split size", "Out split size"),
    source="Src Rank",
    target="Dst Rank",
    call="External id",
    root="Rank",
)
_CALL = "record_param_comms"
#: The names of ProcessGroupNCCL.
_KIND_OF_TEXT = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "all_gather": "all_gather",
    "allgather": "all_gather",
    "_allgather_base": "all_gather",
    "allgather_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all": "all_to_all",
    "barrier": "barrier",
    **{kind: kind for kind in ONE_SIDED},
}
#: Parts of an all_to_allv may be empty, so that nobody waits for their senders; not if all are equal.
_KIND_OF_EQUAL_PARTS = {"all_to_allv": "all_to_all"}
_GLOO = {
    "gloo:all_reduce": "all_reduce",
    "gloo:all_gather": "all_gather",
    "gloo:_allgather_base": "all_gather",
    "gloo:reduce_scatter": "reduce_scatter",
    "gloo:barrier": "barrier",
}
_PAIR = 2
#: Larger jobs do not list the members of groups.
_MOST_RANKS = 1_000_000
_ANNOTATIONS = ("user_annotation",)
_DEVICE_WORK = ("kernel", "Kernel", "mtia_ccp_events")


def declare_collectives(out: Builder, info: Any) -> None:
    """Declare the collectives, once all names are known.

    Args:
        out: the input, which knows its place in the job.
        info: `distributedInfo`, decoded.
    """
    names = out.tables.strings()
    kinds = _kinds(names)
    if kinds:
        size = out.info.world_size
        world = None if size is None or size > _MOST_RANKS else tuple(range(size))
        groups, only = _groups(info, world)
        calls = [(names.index(_CALL), names.index("cpu_op"))] if {_CALL, "cpu_op"} <= {*names} else ()
        out.collectives = Collectives(kinds, _ARGS, _KIND_OF_TEXT, _KIND_OF_EQUAL_PARTS, groups, only, world, calls)


def _kinds(names: Sequence[str]) -> dict[tuple[int, int], str]:
    """Return the operation by interned name and category."""
    number_of = {name: number for number, name in enumerate(names) if name in (*_ANNOTATIONS, *_DEVICE_WORK)}
    kinds: dict[tuple[int, int], str] = {}
    for number, name in enumerate(names):
        kind, categories = (_GLOO[name], _ANNOTATIONS) if name in _GLOO else (kind_of_kernel(name), _DEVICE_WORK)
        if kind is not None:
            kinds |= {(number, number_of[category]): kind for category in categories if category in number_of}
    return kinds


def _groups(info: Any, world: Group | None) -> tuple[dict[str, Group], Group | None]:
    """Return the ranks of each group by name, and those of the only group if the job has one group.

    torch numbers groups in the order of creation, and uses the number as the name if the user gives none.
    """
    listed = info.get("pg_config") if isinstance(info, dict) else None
    groups: dict[str, Group] = {}
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict):
            ranks = parse_ranks(one.get("ranks"))
            ranks = world if world and not ranks and one.get("pg_size") == len(world) else ranks
            if ranks:
                groups[str(one.get("pg_name"))] = ranks
    count = info.get("pg_count") if isinstance(info, dict) else None
    # Two processes have only one group with both.
    made = sorted(groups, key=lambda name: (not name.isdecimal(), len(name), name))  # numbers by their size
    return {name: groups[name] for name in made}, world if count == 1 or (world and len(world) == _PAIR) else None
