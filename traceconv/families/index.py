"""The index of formats: the class of each importer, and marks of its inputs, so that only fitting importers are loaded.

The marks only exclude importers that would answer NO. The importer itself decides, by `sniff`.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from traceconv.families.common.ansi import plain
from traceconv.io.source import Head


class Certainty(enum.IntEnum):
    """The certainty of an importer that an input is of its format."""

    NO = 0
    FALLBACK = 1
    MAYBE = 2
    YES = 3


class Format(NamedTuple):
    """The module of an importer, and the marks of its inputs.

    Attributes:
        importer: its module below `traceconv.families`, and its class.
        words: marks in lower case: the head of an input contains one of these, or all of a tuple. The names of the
            tables of a database and the last bytes of JSON count as part of the head.
        pattern: or it contains a match of this pattern, which is slower to search.
        most: the highest certainty of the importer. It is not asked if another one is more certain.
    """

    importer: str
    words: tuple[bytes | tuple[bytes, ...], ...] = ()
    pattern: bytes = b""
    most: Certainty = Certainty.YES

    def fits(self, text: bytes) -> bool:
        """Return whether an input may be of this format, by the text of its head (see `searched`)."""
        has_word = any(
            word in text if isinstance(word, bytes) else all(one in text for one in word) for word in self.words
        )
        return has_word or bool(self.pattern and re.search(self.pattern, text))


#: The first byte of a protobuf whose first field is 1 and has a length, unless it is white space before JSON. Perfetto
#: decides so, too: a text is JSON if it begins with a brace, or a bracket and a brace, and a quote between white space.
FIELD_1 = rb"\A\n(?!\s*(?:\{\s*[\"}]|\[\s*[{\]]))"

FORMATS = {
    "chrome-trace": Format(
        "chrome.document:ChromeTrace", (b'"ph"', b'"traceevents"', b"[]"), rb"\[\s+\]", most=Certainty.MAYBE
    ),
    "clock-anchor": Format("clock_anchor:ClockAnchor", (b"traceconv-anchor",)),
    "deepsparse": Format(
        "deepsparse.analysis:DeepSparse",
        (
            *(b">fatal<", b">error<", b">warn<", b">info<", b">diagnose<", b">debug", (b"&gt;", b"&lt; ")),
            *((b"deepsparse", b"copyright"), b"neuralmagic wand version"),
            *(b"average_run_time_in_ms", b"actspars", b'"iteration_times"', b'"benchmark_result"'),
        ),
    ),
    "furiosa": Format("furiosa:Furiosa", (b'"parent_span_id"', b'"nux"', b'"npu"')),
    "furiosa-table": Format(
        "furiosa_table:FuriosaTable",
        (
            *(b"leader_device,name,cycle", b"inference counts", b"parent_span_id", "╞".encode()),
            *(b"trace_id", b"thread.id", b"pe_index", b"npu total", b"npu iowait"),
            *(b"average elapsed(ns)", b"average_elapsed (ns)"),
        ),
    ),
    "mxnet": Format(
        "mxnet.profile:Mxnet",
        (
            *(b'"cpu/', b'"gpu/', b'"cpu pinned/', b'"cpu shared/', b"3060606181218273969", b"849786139768988538"),
            *(b'"operator"', b'"custom operator"', b'"mxnet_c_api"', b'"device storage"', b'"category"'),
        ),
    ),
    "mxnet-table": Format(
        "mxnet.table:MxnetTable",
        (b"profile statistics", (b'"count"', b'"total"'), (b'"count"', b'"min"'), (b'"count"', b'"avg"')),
    ),
    "nsight-compute": Format(
        "nsight.compute:NsightCompute", (b"kernel name", b"==prof==", b"==warning==", b"==error==")
    ),
    "nsight-systems": Format("nsight.systems:NsightSystems", (b"stringids",)),
    "nvprof": Format("nvprof.database:NvprofSqlite", (b"cupti_activity_kind_",)),
    "nvprof-text": Format(
        "nvprof.text:NvprofText", (b"nvprof is profiling", b"time(%)", b"invocations"), rb'(?m)^[\s"]*start["\s]'
    ),
    "onednn-verbose": Format("onednn.verbose:OnednnVerbose", (b"_verbose,",)),
    "onnxruntime": Format(
        "onnxruntime:OnnxRuntime", ((b'"cat"', b'"session"'), (b'"cat"', b'"node"'), b"[\n]", b"[\r\n]")
    ),
    "openvino": Format(
        "openvino:Openvino",
        (
            *(b'"avg_performance"', b'"detailed_performance"'),
            *(b'"cmd_options"', b'"configuration_setup"', b'"execution_results"'),
            *(b"layername", b"layertype:", b"[step 1/", b"command line parameters"),
        ),
    ),
    "perf-data": Format("perf.data:PerfData", (b"perfile2", b"2elifrep", b"perffile")),
    "perf-header": Format("perf.header:PerfHeader", (b"# captured on",)),
    "perf-json": Format("perf.header:PerfJson", (b'"linux-perf-json-version"',)),
    "perf-report": Format("perf.header:PerfReport", (b"# samples: ",)),
    "perf-script": Format(
        "perf.script:PerfScript",
        pattern=rb"\d\.\d{1,9}:\s|(?:\A|[\r\n])\S.{0,63}?\s+(?:\d{1,10}/)?\d{1,10}\s+(?:\[\d+\]\s+)?(?:\d+\s+)?"
        rb"[\w:.-]+:(?:\s*?(?:[\r\n]|\Z)|\s+[0-9a-f]{5,16} )",
    ),
    "perf-stat": Format(
        "perf.stat:PerfStat",
        (b"performance counter stats for ", b'"counter-value"', b"counts unit events"),
        rb"\d[^\w.<>-]{1,16}\d{1,3}[.,]\d\d[^\w.<>-]",
    ),
    "perfetto": Format("perfetto.reader:Perfetto", pattern=FIELD_1),
    "pytorch-kineto": Format(
        "pytorch.kineto:PytorchKineto", (b'"schemaversion"', b'"tracename"', b'"external id"', b'"ev idx"')
    ),
    "pytorch-table": Format("pytorch.table:PytorchTable", ((b"----  ----", b"self "),)),
    "rocprof": Format(
        "rocprof:Rocprof",
        (
            *(
                b'"rocprofiler-sdk-tool"',
                b'"cpu hip api"',
                b'"cpu hsa api"',
                b'"gpu',
                b'"copy"',
                b'"markers and ranges"',
            ),
            *(b"end_timestamp", b"beginns", b'"name","calls"', b'"name","totaldurationns"', b"counter_value"),
        ),
        rb'kernelname"?,"?gpu-id',
    ),
    "tensorflow-profiler": Format(
        "tensorflow.profiler:TensorflowProfiler", (b'"highres-ticks"', b'"/host:', b'"/device:')
    ),
    "tensorrt": Format(
        "tensorrt:Tensorrt",
        (
            b'"startcomputems"',
            b'"startenqms"',
            b'"endcomputems"',
            (b'"layers"', b'"layertype"'),
            (b'"layers"', b'"bindings"'),
        ),
        rb'\A(?:\xef\xbb\xbf)?\s*\[\s*\{\s*"count"',
    ),
    "timed-log": Format("logs.timed_log:TimedLog", pattern=rb"\d", most=Certainty.FALLBACK),
    "tvm-debugger": Format("tvm.debugger:TvmDebugger", (b"node name", b"op #")),
    "tvm-execution-trace": Format("tvm.execution_trace:TvmExecutionTrace", ((b'"traceevents"', b'"b"', b'"e"'),)),
    "tvm-graph": Format(
        "tvm.graph:TvmGraph", ((b"nodes", b"func_name"), (b"nodes", b"tvm_op"), (b"nodes", b'"type: '))
    ),
    "tvm-output-tensors": Format("tvm.output_tensors:TvmOutputTensors", pattern=rb"\A\xb7\x9c\x04\x05o\x8d\xe5\xf7"),
    "tvm-profile": Format(
        "tvm.profile:TvmProfile",
        (b'"calls"', b'"device_metrics"', b'"configuration"', b"duration (us)", b"duration(us)"),
    ),
    "viztracer": Format("chrome.document:Viztracer", (b'"viztracer_metadata"', b'"fee"'), rb':\d+\)"\s*:\s*\['),
    "vtune": Format(
        "vtune.reports:Vtune",
        (
            *(b"cpu time", b"clockticks", b"instructions retired", b"hardware event ", b"task time", b"task count"),
            *(b"elapsed time", b"cpi rate", b"wait time", b"wait count", b"total time", b"spin time"),
            *(b"spin and overhead time", b"effective time", b"bin start time", b"metric name", b"tsc."),
        ),
        rb"-- +--",
    ),
    "xplane": Format("tensorflow.xplane:Xplane", pattern=FIELD_1),
}

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
        """Return whether an input is such a file."""
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
        _BEHIND_LINES + rb'(?:# +time [^\n]*\n +\d+\.\d{9}\s| time,[^\n]*\n +\d+\.\d{9},|\{"interval" : \d+\.\d{9}\b)',
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
    known = (one for one in CLOSED if one.fits(head))
    return next((one for one in known if one.is_form or not may_be_log), None)


def may_end_with_marks(head: Head) -> bool:
    """Return whether marks may be in the last bytes only, which JSON has for metadata behind its events."""
    return head.text[:1] in (b"{", b"[", b'"') and not head.complete


def searched(head: Head, *, to_end: bool) -> bytes:
    """Return the text that is searched for marks: what importers can see of an input, in lower case.

    If there are terminal control sequences or JSON escapes, the text without them is appended.

    Args:
        to_end: whether the last bytes are part of it, for which an archive is unpacked to its end.
    """
    parts = [head.data, *map(str.encode, head.tables)]
    if to_end and may_end_with_marks(head):
        parts.append(head.tail)
    if b"\x1b" in head.data:
        parts += map(plain, head.data.splitlines())
    text = b"\n".join(parts).lower()
    if _ESCAPE.search(text):
        plainly = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()) if escape[1] else b"/", text)
        text = b"\n".join((text, plainly.lower()))
    return text
