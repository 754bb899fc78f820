"""The enumerations of CUPTI, for the databases that store their numbers: nvprof and Nsight Systems.

The names are those that the tools print. Source: `cupti_activity.h` (CUDA 11.8 to 13.5). A number that is missing here
is newer: `named` shows it as "kind 17", so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from traceconv.model.numbers import is_digits


def _numbered(*names: str) -> dict[int, str]:
    return dict(enumerate(names))


#: CUpti_ActivityMemcpyKind; from 11 on only in Nsight Systems: copies of unified memory.
MEMCPY_KIND: Final = _numbered(
    *("unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"),
    *("unified HtoD", "unified DtoH", "unified DtoD"),
)

#: CUpti_ActivityMemoryKind: source and destination of copies, memory that is set, allocations in nvprof.
MEMORY_KIND: Final = _numbered(
    "unknown", "pageable", "pinned", "device", "array", "managed", "device static", "managed static"
)

#: CUpti_ActivityUnifiedMemoryMigrationCause.
MIGRATION_CAUSE: Final = _numbered("unknown", "user", "coherence", "prefetch", "eviction", "access counters")

#: CUpti_ActivityUnifiedMemoryAccessType, of page faults.
ACCESS_TYPE: Final = _numbered("unknown", "read", "write", "atomic", "prefetch")

#: CUpti_ActivitySynchronizationType.
SYNCHRONIZATION: Final = _numbered(
    "unknown", "event synchronize", "stream wait event", "stream synchronize", "context synchronize"
)

#: CUpti_ActivityOverheadKind.
OVERHEAD: Final = {
    0: "unknown",
    1: "driver compiler",
    1 << 16: "CUPTI buffer flush",
    2 << 16: "CUPTI instrumentation",
    3 << 16: "CUPTI resource",
    4 << 16: "runtime triggered module loading",
    5 << 16: "lazy function loading",
    6 << 16: "command buffer full",
    7 << 16: "activity buffer request",
    8 << 16: "UVM activity init",
}

#: CUpti_ActivityLaunchType, of kernels.
LAUNCH_TYPE: Final = _numbered("regular", "cooperative", "cooperative multi-device")

#: CUpti_ActivityStreamFlag.
STREAM_FLAG: Final = _numbered("unknown", "default", "non-blocking", "null stream")

#: CUpti_ActivityComputeApiKind, of contexts.
COMPUTE_API: Final = _numbered("unknown", "CUDA", "CUDA MPS")

#: Categories of the slices and flows that both databases hold: the same words, so that a filter works on either.
KERNEL: Final = "kernel"
MEMCPY: Final = "memcpy"
MEMSET: Final = "memset"
SYNC: Final = "cuda_sync"
RUNTIME_API: Final = "cuda_runtime"
DRIVER_API: Final = "cuda_driver"
LAUNCH_FLOW: Final = "launch"

#: The metrics of kernels that are averages, extremes, shares and ratios, so no counts: a pattern of their names.
NO_COUNTS: Final = r"\w+\.(?:avg|max|min|pct|ratio|sum\.).*"

#: The arg with the throughput of a copy, in 10**9 bytes per second.
THROUGHPUT: Final = "throughput_gb_per_s"


def named(names: Mapping[int, str], number: Any) -> str:
    """Return the name of a number of an enumeration; "kind 17" for an unknown number, "" for None."""
    if number is None:
        return ""
    return names.get(number) or f"kind {number}"


def throughput_gb_per_s(size: int, dur_ns: int) -> float | None:
    """Return the throughput in 10**9 bytes per second, rounded to four decimals; None for a duration of 0."""
    return round(size / dur_ns, 4) if dur_ns > 0 and size >= 0 else None


def display_api_name(name: str) -> str:
    """Return the name of a call in the source: cudaMemcpyAsync_v3020 -> cudaMemcpyAsync.

    The suffix is the CUDA version of the signature. `_ptsz` and `_ptds` (per-thread default stream) and the `_v2` of
    driver calls are part of the name, and stay.
    """
    head, mark, version = name.rpartition("_v")
    return head if mark and len(version) >= 4 and is_digits(version) else name
