"""The index of formats: where each importer is, and what its inputs contain. Only those that fit are loaded.

It repeats what the importers declare, and is written by `pytest tests/test_index.py --update-golden`.
"""

from traceconv.families.importer import FIELD_1, Certainty, Signature

FORMATS = {
    "chrome-trace": (
        "chrome.document:ChromeTrace",
        Signature('"ph" | "traceevents" | []', (rb"\[\s+\]",), most=Certainty.MAYBE),
    ),
    "clock-anchor": ("clock_anchor:ClockAnchor", Signature("traceconv-anchor")),
    "deepsparse": (
        "deepsparse.analysis:DeepSparse",
        Signature(
            ">fatal< | >error< | >warn< | >info< | >diagnose< | >debug | &gt; & &lt; | deepsparse & copyright | "
            'neuralmagic wand version | average_run_time_in_ms | actspars | "iteration_times" | "benchmark_result"'
        ),
    ),
    "furiosa": ("furiosa:Furiosa", Signature('"parent_span_id" | "nux" | "npu"')),
    "furiosa-table": (
        "furiosa_table:FuriosaTable",
        Signature(
            "leader_device,name,cycle | inference counts | parent_span_id | ╞ | trace_id | thread.id | pe_index | "
            "npu total | npu iowait | average elapsed(ns) | average_elapsed (ns)"
        ),
    ),
    "mxnet": (
        "mxnet.profile_json:Mxnet",
        Signature(
            '"cpu/ | "gpu/ | "cpu pinned/ | "cpu shared/ | 3060606181218273969 | 849786139768988538 | "operator" | '
            '"custom operator" | "mxnet_c_api" | "device storage" | "category"'
        ),
    ),
    "mxnet-table": (
        "mxnet.aggregates:MxnetTable",
        Signature('profile statistics | "count" & "total" | "count" & "min" | "count" & "avg"'),
    ),
    "nsight-compute": ("nsight_compute:NsightCompute", Signature("kernel name | ==prof== | ==warning== | ==error==")),
    "nsight-systems": ("nsight.systems:NsightSystems", Signature("stringids")),
    "nvprof": ("nvprof.database:NvprofSqlite", Signature("cupti_activity_kind_")),
    "nvprof-text": (
        "nvprof.console:NvprofText",
        Signature("nvprof is profiling | time(%) | invocations", (rb'(?m)^[\s"]*start["\s]',)),
    ),
    "onednn-verbose": ("onednn.verbose:OnednnVerbose", Signature("_verbose,")),
    "onnxruntime": ("onnxruntime:OnnxRuntime", Signature('"cat" & "session" | "cat" & "node" | [\n] | [\r\n]')),
    "openvino": (
        "openvino:Openvino",
        Signature(
            '"avg_performance" | "detailed_performance" | "cmd_options" | "configuration_setup" | '
            '"execution_results" | layername | layertype: | [step 1/ | command line parameters'
        ),
    ),
    "perf-data": ("perf.data:PerfData", Signature("perfile2 | 2elifrep | perffile")),
    "perf-header": ("perf.header:PerfHeader", Signature("# captured on")),
    "perf-json": ("perf.header:PerfJson", Signature('"linux-perf-json-version"')),
    "perf-report": ("perf.header:PerfReport", Signature("# samples:")),
    "perf-script": (
        "perf.script:PerfScript",
        Signature(patterns=(rb"\.\d{1,9}:\s", rb"\s\d{1,10}[\s/].{0,99}?[\w:.-]:(?:\s*?[\r\n]|\s+[0-9a-f]{5,16} |\Z)")),
    ),
    "perf-stat": (
        "perf.stat:PerfStat",
        Signature(
            'performance counter stats for | "counter-value" | counts unit events',
            (rb"\d[^\w.<>-]{1,16}\d{1,3}[.,]\d\d[^\w.<>-]",),
        ),
    ),
    "perfetto": ("perfetto.reader:Perfetto", Signature(patterns=(FIELD_1,))),
    "pytorch-kineto": (
        "pytorch.kineto:PytorchKineto",
        Signature('"schemaversion" | "tracename" | "external id" | "ev idx"'),
    ),
    "pytorch-table": ("pytorch.table:PytorchTable", Signature("----  ---- & self")),
    "rocprof": (
        "rocprof:Rocprof",
        Signature(
            '"rocprofiler-sdk-tool" | "cpu hip api" | "cpu hsa api" | "gpu | "copy" | "markers and ranges" | '
            'end_timestamp | beginns | "name","calls" | "name","totaldurationns" | counter_value',
            (rb'kernelname"?,"?gpu-id',),
        ),
    ),
    "tensorflow-profiler": (
        "tensorflow.profiler:TensorflowProfiler",
        Signature('"highres-ticks" | "/host: | "/device:'),
    ),
    "tensorrt": (
        "tensorrt:Tensorrt",
        Signature(
            '"startcomputems" | "startenqms" | "endcomputems" | "layers" & "layertype" | "layers" & "bindings"',
            (rb'\A(?:\xef\xbb\xbf)?\s*\[\s*\{\s*"count"',),
        ),
    ),
    "timed-log": ("logs.timed_log:TimedLog", Signature(patterns=(rb"\d",), most=Certainty.FALLBACK)),
    "tvm-debugger": ("tvm.debugger:TvmDebugger", Signature("node name | op #")),
    "tvm-execution-trace": ("tvm.execution_trace:TvmExecutionTrace", Signature('"traceevents" & "b" & "e"')),
    "tvm-graph": ("tvm.debugger_files:TvmGraph", Signature('nodes & func_name | nodes & tvm_op | nodes & "type:')),
    "tvm-output-tensors": (
        "tvm.debugger_files:TvmOutputTensors",
        Signature(patterns=(rb"\A\xb7\x9c\x04\x05o\x8d\xe5\xf7",)),
    ),
    "tvm-profile": (
        "tvm.profile:TvmProfile",
        Signature('"calls" | "device_metrics" | "configuration" | duration (us) | duration(us)'),
    ),
    "viztracer": ("chrome.document:Viztracer", Signature('"viztracer_metadata" | "fee"', (rb':\d+\)"\s*:\s*\[',))),
    "vtune": (
        "vtune.reports:Vtune",
        Signature(
            "cpu time | clockticks | instructions retired | hardware event | task time | task count | elapsed time | "
            "cpi rate | wait time | wait count | total time | spin time | spin and overhead time | effective time | "
            "bin start time | metric name | tsc.",
            (rb"-- +--",),
        ),
    ),
    "xplane": ("tensorflow.xplane:Xplane", Signature(patterns=(FIELD_1,))),
}
