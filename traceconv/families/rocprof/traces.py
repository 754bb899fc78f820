"""AMD ROCm: what rocprofv3 (ROCprofiler-SDK) and the older rocprof write as CSV and JSON.

    "Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp",...
    "KERNEL_DISPATCH",1,1,10,"void add<float>(float*, float const*)",1,58378640000000,58378640010000,...

    "Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
    "HIP_RUNTIME_API","hipLaunchKernel",315155,315155,1,58378639990000,58378639996000

    {"rocprofiler-sdk-tool": [{"metadata": {"pid": 7}, "agents": [], "kernel_symbols": [], "strings": {},
      "buffer_records": {"kernel_dispatch": [], "hip_api": [], _cupti.MEMCPY: []}}]}

Sources: the guides of rocprofv3 and rocprof (rocm.docs.amd.com), ROCprofiler-SDK's generateCSV.cpp and generateJSON.cpp
(ROCm 6.2 to 7), and public outputs (see `checked`). Columns differ by version: they are found by name, and what has no
other use is an arg. Times are ns of CLOCK_BOOTTIME, the same for host and device. One CSV holds one kind of record:
kernels, copies, allocations, calls, markers. Counters had no times in ROCm 6.2; rocprofv2 leaves a start of 0 where the
kernel was not timed. rocprof (v1) has `Index,KernelName,gpu-id,queue-id,...,BeginNs,EndNs` for kernels, with a column
for each counter (with `-i`, times only with `--timestamp on`), and Chrome JSON for traces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from msgspec import structs

from traceconv.families.chrome import document
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.common.collective_kernels import declare_kernels
from traceconv.families.common.cupti import KERNEL
from traceconv.families.importer import Match
from traceconv.families.rocprof._exact_times import take_exact_times
from traceconv.families.rocprof._sdk import read_sdk
from traceconv.families.rocprof._table import FOREIGN_LINE, Table
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import BOOTTIME, NO_TIME, ClockDomain, Run, Zero
from traceconv.model.counted import ROWS
from traceconv.model.marks import GPU_MARKS, CountMarks, FormatMarks, TotalsMarks
from traceconv.model.trace import Layer

#: The default clock of ROCprofiler-SDK (source/lib/common/utility.hpp); early versions took CLOCK_MONOTONIC.
CLOCK = BOOTTIME
#: The Chrome JSON of the old rocprof counts from its first record, if its args do not hold times of the boot clock.
V1_CLOCK = ClockDomain("rocprof time", Zero.UNKNOWN, Run.MONOTONIC, 1)

_HEADING = re.compile(
    rb'(?m)^(?=.*(?:Start_Timestamp"?,"?End_Timestamp|BeginNs"?,"?EndNs))"?[\w-]+"?,.*$', re.IGNORECASE
)
_STATS = re.compile(rb'(?m)^"Name","(?:Calls|TotalDurationNs)".*"(?:TotalDurationNs|AverageNs|Percentage)".*$')
_SDK_JSON = re.compile(rb'"rocprofiler-sdk-tool"\s*:')
_V1_JSON = re.compile(rb'"args"\s*:\s*\{\s*"name"\s*:\s*"(?:CPU HIP API|CPU HSA API|GPU\d+|COPY|Markers and Ranges)"')
_UNTIMED = re.compile(
    rb'(?mi)^(?!.*(?:Timestamp|BeginNs))(?:"?Index"?,"?KernelName"?,"?gpu-id"?,.*$'
    rb'|"?[\w-]+"?,(?>.*?Kernel_?Name"?,).*"?Counter_Name"?,"?Counter_Value"?[ \t\r]*$)'
)


@dataclass(frozen=True)
class Rocprof:
    """Importer of what rocprofv3 and rocprof write."""

    name: ClassVar[str] = "rocprof"
    title: ClassVar[str] = "AMD ROCm: rocprofv3 and rocprof traces"
    url: ClassVar[str] = "https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html"
    versions: ClassVar[str] = (
        "rocprofv3 CSV and JSON (ROCm 6.2 to 7), CSV of rocprofv2, CSV and JSON of rocprof; no databases"
    )
    clock: ClassVar[ClockDomain] = CLOCK
    layer: ClassVar[Layer] = Layer.DEVICE
    marks: ClassVar[FormatMarks] = structs.replace(
        GPU_MARKS,
        # Counters of the hardware, also summed up over its units, and the derived ones that are sums and no ratios.
        counts=CountMarks(
            (KERNEL,),
            r"[A-Z]{2,9}[0-9]?_[A-Z0-9_]+(?:_sum)?(?:\[\d+\])?|FetchSize|WriteSize|FETCH_SIZE|WRITE_SIZE",
            rows_are_calls=True,
            others=r"(?!(?:Dispatch|Complete)Ns$)(?:[A-Z][A-Z0-9]++[a-z]|[A-Z][a-z0-9]++[A-Z])[A-Za-z0-9]*+(?:\[\d+\])?"
            r"|[A-Z]{2,9}[0-9]?_\w+(?:\[\d+\])?|Wavefronts",
        ),
        totals=TotalsMarks(
            calls=("calls",),
            total=("total_duration_ns",),
            mean=("average_ns",),
            least=("min_ns",),
            most=("max_ns",),
            percent=("percentage",),
        ),
    )
    record: ClassVar[str] = "rocprofv3 --sys-trace --output-format json -- python run.py"
    line_up: ClassVar[str] = (
        "Times count from boot, and host and device share that clock. The JSON names the host, so it is "
        "aligned with files on clocks since boot of the same host; else `--offset FILE=TIME`."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("kernel dispatches", "slices on the queues of their device, with sizes and registers as args"),
        ("memory copies", "slices on a track of the device that they go to, with bytes where the file has them"),
        ("HIP, HSA, RCCL calls, markers", "slices on their thread"),
        ("correlation of call and kernel or copy (JSON)", "flows"),
        (
            "counter_collection (CSV, JSON)",
            "slices of the kernels with the counters as args; rows of totals if it has no times",
        ),
        ("memory allocations", "slices on a track of their device, with the bytes; a free on that of its address"),
        ("statistics (*_stats.csv)", "rows of totals"),
    )
    skips = (EMPTY_EVENT, FOREIGN_LINE)
    lost: ClassVar[tuple[str, ...]] = (
        "CSV has no flows between calls and kernels, since each file holds one kind of record; the JSON has all.",
        "Counters of the old rocprof have times only with `--timestamp on`; without, they are rows of totals.",
        "All kernels of RCCL have one name. Its calls name the operation, but return before it is done.",
        "Kernels without a start or end (0) are rows of a table without times; other such records are counted only.",
        "Addresses, code objects and samples of the program counter in the JSON are not read.",
        "Databases are not read: `rocpd convert --output-format csv -i FILE` writes those of rocprofv3 as CSV, and the "
        "first rocprof wrote results.json and results.csv beside its results.db.",
    )
    unrecorded = (
        "no AMD GPU was at hand. Public files of all three versions were read, too. "
        "Goldens are made by hand after the sources in docs/formats.md."
    )
    checked: ClassVar[tuple[tuple[str, str, str], ...]] = (
        (
            "rocprofv3 of ROCm 7, MI350X",
            "908_results.json.gz of AMD-AGI/TraceLens, 43,915 dispatches",
            "all groups and fields; the times and queues of all dispatches; 1,310 of RCCL, without their collective",
        ),
        (
            "rocprofv3 of ROCm 6.2 to 7",
            "generateCSV.cpp, generateJSON.cpp and the nine outputs in source/docs/data of ROCm/rocprofiler-sdk",
            "the columns of each table, by version; all rows read",
        ),
        (
            "rocprofv2 of ROCm 5.7, rocprof of ROCm 2 to 6",
            "ROCm's changelog and guide, outputs in tutorials (columns and single rows)",
            "the columns",
        ),
        (
            "tables of omniperf, made by rocprof, rocprofv2 and rocprofv3: kernels with counters; MI100 to MI300X",
            "661 public files (repositories ROCm/rocprofiler-compute: tests/workloads; HGLiu1998/batched_gemm)",
            "by a reading of our own: start and duration of 2,779 kernels, sums of 120,201 columns",
        ),
        (
            "rocprof --hip-trace of ROCm 6, MI300X: Chrome JSON and statistics",
            "4 public files (repository shashankparsi/HIP_Programming)",
            "by a reading of our own: the times of 17 calls, copies and kernels in ns, 4 flows, 10 rows of totals",
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by the key of the JSON or the heading of a table."""
        if _SDK_JSON.search(head.data[:4096]):
            return Match.yes("JSON of ROCprofiler-SDK")
        if head.text[:1] == b"{" and b'"traceEvents"' in head.data[:4096] and _V1_JSON.search(head.data):
            return Match.yes("Chrome JSON with the process names of rocprof")
        heading = _HEADING.search(head.data) or _STATS.search(head.data) or _UNTIMED.search(head.data)
        if heading and re.search(rb"Kernel_?Name|Function|Agent_Id|Correlation_Id|Calls", heading[0], re.IGNORECASE):
            return Match.yes("the heading of a rocprof table")
        return Match.no("no key, process names or table heading of rocprof")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole file."""
        head = source.head()
        if head.text[:1] == b"{":
            if _SDK_JSON.search(head.data):
                read_sdk(source, out, self.clock)
                declare_kernels(out, KERNEL)
                return
            reader = ChromeReader(source, out)
            events = ChromeEvents(out)
            events.add_all(reader)
            top = document.top_level(reader, out)
            events.finish(top.get("stackFrames"))
            document.set_clock(top, out, self.clock if take_exact_times(out) else V1_CLOCK)
            return
        out.info.unit, out.balance.unit = "line", ROWS
        out.info.real_ids = True
        if _STATS.search(head.data) or _UNTIMED.search(head.data):
            out.clocks.set_default(NO_TIME)
            out.belongs_to((self.name,))
        Table(out).read(source)
        if not out.balance.written:
            raise source.malformed("no rows of rocprof found", hint=f"record with: {self.record}")
        declare_kernels(out, KERNEL)
