"""Recognise the collective of a kernel of NCCL, RCCL, MSCCL and HCCL by its name.

    ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)      NCCL since 2.18
    ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem), ncclAllReduceRingLLKernel_sum_f32(ncclWorkElem)    before
    ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>), mscclKernel_Sum_half_LL_false(...)            RCCL
    hccl::all_reduce                                                                                         MTIA

These kernels spin on the device until the ranks that they wait for have entered. Names of RCCL do not state the
operation, and `SendRecv` is all_to_all, gather, scatter, send or receive.
"""

from __future__ import annotations

from traceconv.model.builder import Builder
from traceconv.model.stated_collectives import Collectives

_LIBRARY = ("nccl", "rccl", "msccl", "hccl")
#: Parts of names in lower case without underscores, and their operation; the first match counts.
_KINDS = {
    "alltoallv": None,
    "alltoall": "all_to_all",
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "barrier": "barrier",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
}


def kind_of_kernel(name: str) -> str | None:
    """Return the operation of a kernel, "" if its name does not state it; None for other kernels and all_to_allv."""
    if not name.startswith(_LIBRARY):
        return None
    words = name.partition("(")[0].partition("<")[0].lower().replace("_", "")
    return next((kind for word, kind in _KINDS.items() if word in words), "")


def declare_kernels(out: Builder, category: str) -> None:
    """Declare the collectives of a format that has only the names of kernels, all of one category."""
    names = out.tables.strings()
    if category in names:
        at = names.index(category)
        kinds = {(number, at): kind for number, name in enumerate(names) if (kind := kind_of_kernel(name))}
        out.collectives = Collectives(kinds) if kinds else None
