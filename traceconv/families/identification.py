"""Tell formats apart: the text that signatures search, other names of formats, and files that no importer reads."""

from __future__ import annotations

import re
from typing import NamedTuple

from traceconv.families.common.ansi import plain
from traceconv.io.source import Head

#: Other names of formats, besides their names and the part before the hyphen; the usual format comes first.
ALIASES: dict[str, tuple[str, ...]] = {
    "chrome": ("chrome-trace",),
    "chrome-json": ("chrome-trace",),
    "json": ("chrome-trace",),
    "trace-event": ("chrome-trace",),
    "anchor": ("clock-anchor",),
    "pftrace": ("perfetto",),
    "kineto": ("pytorch-kineto",),
    "torch": ("pytorch-kineto", "pytorch-table"),
    "ort": ("onnxruntime",),
    "onnx": ("onnxruntime",),
    "onednn": ("onednn-verbose",),
    "dnnl": ("onednn-verbose",),
    "mkldnn": ("onednn-verbose",),
    "trt": ("tensorrt",),
    "trtexec": ("tensorrt",),
    "tensorflow": ("xplane", "tensorflow-profiler"),
    "tf": ("xplane", "tensorflow-profiler"),
    "jax": ("xplane", "tensorflow-profiler"),
    "xprof": ("xplane",),
    "nsys": ("nsight-systems",),
    "ncu": ("nsight-compute",),
    "rocm": ("rocprof",),
    "rocprofv3": ("rocprof",),
    "log": ("timed-log",),
    "text": ("timed-log",),
}

_ESCAPE = re.compile(rb"\\(?:u00([2-7][0-9a-f])|/)")


class Closed(NamedTuple):
    """A file of a profiler that no importer reads, such as one that its tool must first write in another form.

    Attributes:
        pattern: the first bytes of such a file match it.
        what: what the file is.
        hint: what is read instead.
        ending: the end of its name.
        is_form: whether the pattern is of a form that no log has: then it is not read as a log either.
        table: a pattern of the name of a table that such a database has.
    """

    pattern: bytes
    what: str
    hint: str
    ending: str = ""
    is_form: bool = False
    table: str = ""

    def fits(self, head: Head) -> bool:
        has_table = not self.table or any(re.match(self.table, name) for name in head.tables)
        return bool(re.match(self.pattern, head.data)) and head.name.endswith(self.ending) and has_table


#: A few lines before those that tell the format.
_BEHIND_LINES = rb"(?:[^\n]*\n){0,9}?"
_NSYS_EXPORT = "export it: nsys export --type=sqlite --output=report.sqlite FILE"
#: The headings of traces and of sums, which nsys stats prints as CSV and as columns.
_NSYS_HEADINGS = rb" *(?:(?:Start \([mun]?s\)(?:,| +)(?:Duration|End)|Time ?\(%\)(?:,| +)Total Time) \([mun]?s\))"
_NCU_CSV = "print its kernels as CSV: ncu --import FILE --csv --page raw > kernels.csv"

#: Seen in files of nsys 2023.4 and 2025.3, of ncu 2025.3 and of perf 6.1; else after the documents of the tools.
CLOSED = (
    Closed(rb"NVIDIA Tegra Profiler Report", "a report of Nsight Systems (.nsys-rep, .qdrep)", _NSYS_EXPORT),
    Closed(
        rb".{0,8}\[END\]NVIDIA Nsight Systems Stream",
        "a stream of Nsight Systems that is not yet a report (.qdstrm)",
        f"make a report of it with QdstrmImporter, which nsys brings; then {_NSYS_EXPORT}",
    ),
    Closed(
        _BEHIND_LINES + _NSYS_HEADINGS,
        "a table that nsys stats of Nsight Systems printed",
        "the database of its report is read: nsys export --type=sqlite --output=report.sqlite report.nsys-rep",
        is_form=True,
    ),
    Closed(rb"NVR\0", "a report of Nsight Compute (.ncu-rep)", _NCU_CSV),
    Closed(
        rb"(?s).*\n +Section: [^\n]+\n +-{8,}[ -]*\n +Metric Name +Metric Unit",
        "text that Nsight Compute printed for people",
        f"record with --csv, or {_NCU_CSV}",
    ),
    Closed(
        rb"(?s).*=== Profile \([0-9]+ iterations ?\) ===",
        "a table that trtexec of TensorRT printed for people",
        "record it as JSON: trtexec --loadEngine=FILE --dumpProfile --separateProfileRun --exportProfile=profile.json",
    ),
    Closed(
        _BEHIND_LINES + rb'(?:# +time [^\n]*\n +\d+\.\d{9}\s| time,[^\n]*\n +\d+\.\d{9},|\{"interval" : \d+\.\d{9}\b|'
        rb'(?:\{\}\n)?\{"(?:metric-value|insn per cycle|GHz|CPUs utilized)" : "|'
        rb"(?:insn per cycle|GHz|CPUs utilized),(?:[a-zA-Z][\w %/-]{0,60},)*\r?\n)",
        "metrics of perf stat --metric-only, which has no counts",
        "record without --metric-only: traceconv how perf-stat",
        is_form=True,
    ),
    Closed(
        _BEHIND_LINES + rb"Performance counter statistics[:,]\r?\n",
        "counts of simpleperf stat",
        "samples of simpleperf are read, as its report_sample.py prints them: traceconv formats perf-script",
    ),
    Closed(
        rb'"?Sample_Timestamp"?,"?Exec_Mask\b',
        "samples of the program counter of rocprofv3",
        "its kernels, copies, calls and counters are read: traceconv how rocprof",
        is_form=True,
    ),
    Closed(
        _BEHIND_LINES + rb"\s*ROCPROFV3 (?:[A-Z_]+ )?SUMMARY:",
        "the summary that rocprofv3 printed for people",
        "its records, and the files *_stats.csv, are read: traceconv how rocprof",
    ),
    Closed(
        rb'\{"version": ?"[\d.]+", ?"dur": ?[\d.]+, ?"timer_freq_hz":',
        "JSON of wprof (-J)",
        "wprof writes traces for Perfetto, too, which are read",
        is_form=True,
    ),
    Closed(
        rb"\s*<\?xml\s",
        "a session of NVIDIA's Visual Profiler as XML",
        "databases of nvprof are read: traceconv how nvprof",
        ending=".nvvp",
    ),
    # After tblextr.py of rocprof, which fills its database and writes the others from it.
    Closed(
        b"SQLite format 3",
        "the database of the first rocprof (results.db)",
        "rocprof wrote what is in it into files beside it, which are read: results.json with the calls, kernels and "
        "copies, results.csv with the kernels and counters: traceconv how rocprof",
        table="KERN$",
    ),
    # After the guide of ROCprofiler-SDK to this format.
    Closed(
        b"SQLite format 3",
        "a database of rocprofv3 (rocpd)",
        "write its tables as CSV: rocpd convert --output-format csv -i FILE; or record with rocprofv3 --output-format "
        "json: traceconv how rocprof",
        table="rocpd_info_",
    ),
)


def closed(head: Head, *, may_be_log: bool) -> Closed | None:
    """Return what an input is, if it is a known file that no importer reads. `may_be_log`: it could be read as one."""
    known = (form for form in CLOSED if form.fits(head))
    return next((form for form in known if form.is_form or not may_be_log), None)


def may_end_with_metadata(head: Head) -> bool:
    """Return whether a signature may be in the last bytes only, which JSON has for metadata behind its events."""
    return head.text[:1] in (b"{", b"[", b'"') and not head.complete


def searched(head: Head, *, to_end: bool) -> bytes:
    """Return the text in which signatures are searched: what importers can see of an input, in lower case.

    Control sequences and JSON escapes are also left out of a copy behind it. `to_end`: with the last bytes.
    """
    parts = [head.data, *map(str.encode, head.tables)]
    if to_end and may_end_with_metadata(head):
        parts.append(head.tail)
    if b"\x1b" in head.data:
        parts += map(plain, head.data.splitlines())
    text = b"\n".join(parts).lower()
    if _ESCAPE.search(text):
        plainly = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()) if escape[1] else b"/", text)
        text = b"\n".join((text, plainly.lower()))
    return text
