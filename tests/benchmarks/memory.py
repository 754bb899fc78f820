"""What the memory of a conversion is beside the size of its input: `python -m tests.benchmarks.memory [SHAPE ...]`.

Each shape is as hard on memory as a format allows: tiny events, rows of a few bytes, a track or a name for each event.
The shortest rows of text formats have the names of `python -m tests.benchmarks.lines`, such as vtune/timeline.
Each is written to a file and converted. The peak memory of the process, less the size of the file, is printed; the
bound is 500 MB. The exit code is 1 if a shape is above it. All shapes together take some two hours.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.benchmarks.frame import Contestant, measure, traceconv
from tests.benchmarks.lines import ROWS, head_of, options_of, source_of

BOUND = 500_000_000
_MB = 1_000_000
#: A million tracks with one event each, in MB.
_SIZE_OF_TRACKS = 54
_BATCH = 20_000
#: The sizes of files in MB: of a shape, and of the shortest rows of a text format, which cost more CPU time a byte.
_SIZE, _SIZE_OF_TEXT = 300, 100
#: The reports whose rows are objects until all are read, and the size of their files in MB.
_OF_OBJECTS = ("nsight-compute/", "tvm-debugger/", "tvm-profile/", "vtune/call_tree")
_SIZE_OF_OBJECTS = 8


@dataclass(frozen=True)
class Shape:
    """A file that is hard on memory.

    Attributes:
        name: the file, whose ending says what is in it.
        head, tail: what stands before and behind the rows.
        row: the text of a row, by its number from 0.
        options: what the command is given besides the file.
        size: of the file in MB, by default.
    """

    name: str
    row: Callable[[int], str]
    head: str = ""
    tail: str = ""
    options: tuple[str, ...] = ()
    size: int = _SIZE

    def write(self, path: Path, size: int) -> int:
        """Write rows until there are `size` bytes; how many there are."""
        count = 0
        with path.open("w", encoding="utf-8", errors="surrogateescape") as file:
            written = file.write(self.head)
            while written < size:
                written += file.write("".join(map(self.row, range(count, count + _BATCH))))
                count += _BATCH
            file.write(self.tail)
        return count


def _chrome(row: Callable[[int], str]) -> Shape:
    return Shape("in.json", lambda n: row(n) + ",\n", "[\n", '{"ph":"i","ts":0}]\n', ("--from", "chrome-trace"))


def _begin_or_end(n: int) -> str:
    return f'{{"ph":"{"EB"[n % 2 == 0]}","ts":{n}}}'


_ROCPROF = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n"
_COUNTERS = "Kernel_Name,Counter_Name,Counter_Value,Dispatch_Id,Agent_Id,Start_Timestamp,End_Timestamp\n"
#: By name; what is there besides is as small as it can be.
SHAPES: dict[str, Shape] = {
    "slices": _chrome(lambda n: f'{{"ph":"X","ts":{n},"dur":1}}'),
    "backwards": _chrome(lambda n: f'{{"ph":"X","ts":{99_999_999 - n},"dur":1,"tid":{n % 100}}}'),
    "pairs": _chrome(_begin_or_end),
    "instants": _chrome(lambda n: f'{{"ph":"i","ts":{n}}}'),
    "counters": _chrome(lambda n: f'{{"ph":"C","ts":{n},"args":{{"":{n % 9}}}}}'),
    "names": _chrome(lambda n: f'{{"ph":"X","name":"{n}","ts":{n},"dur":1}}'),
    "args": _chrome(lambda n: f'{{"ph":"X","ts":{n},"dur":1,"args":{{"a":{n}}}}}'),
    "processes": _chrome(lambda n: f'{{"ph":"X","pid":{n},"tid":{n},"ts":{n},"dur":1}}'),
    "threads": replace(_chrome(lambda n: f'{{"ph":"X","pid":1,"tid":{n},"ts":{n},"dur":1}}'), size=_SIZE_OF_TRACKS),
    "counter-tracks": replace(
        _chrome(lambda n: f'{{"ph":"C","pid":1,"name":"c{n}","ts":{n},"args":{{"":1}}}}'), size=_SIZE_OF_TRACKS
    ),
    "ids": _chrome(lambda n: f'{{"ph":"{"eb"[n % 2 == 0]}","id":{n // 2},"ts":{n}}}'),
    "flows": _chrome(lambda n: f'{{"ph":"{"Xsf"[n % 3]}","id":{n // 3},"ts":{n},"dur":1}}'),
    "kineto": _chrome(
        lambda n: (
            f'{{"ph": "X", "cat": "cpu_op", "name": "aten::op{n % 97}", "pid": 31854, "tid": 31854, "ts": {n}.125, '
            f'"dur": 1.000, "args": {{"External id": {n}, "Ev Idx": {n}, "Fwd thread id": 0}}}}'
        )
    ),
    "onednn": Shape(
        "in.log",
        lambda n: f"dnnl_verbose,{10**9 + n}.5,exec,cpu,a,b,c,,,,,1\n",
        "dnnl_verbose,info,oneDNN v3.5.0\ndnnl_verbose,info,cpu,runtime:OpenMP,nthr:1\n"
        "dnnl_verbose,primitive,info,template:timestamp,operation,engine,primitive,implementation,prop_kind,"
        "memory_descriptors,attributes,auxiliary,problem_desc,exec_time\n",
    ),
    "onednn-runs": Shape(
        "in.log",
        lambda n: (
            "dnnl_verbose,info,oneDNN v3.5.0\ndnnl_verbose,primitive,info,template:operation,engine,primitive,"
            "implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,exec_time\n"
            "dnnl_verbose,exec,cpu,a,b,c,,,,,1\n"
        ),
    ),
    "samples": Shape("in.txt", lambda n: f"a {n % 97} {n // 1000}.{n % 1000:06}: a:\n"),
    "threads-of-samples": Shape("in.txt", lambda n: f"a {n} {n // 1000}.{n % 1000:06}: a:\n"),
    "counters-of-kernels": Shape("in.csv", lambda n: f"k,c,{n % 9},{n},1,{n + 1},{n + 9}\n", _COUNTERS),
    "tvm-json": Shape(
        "in.json",
        lambda n: f'{{"Name":{{"string":"a"}},"Duration (us)":{{"microseconds":{n % 97}.5}}}},\n',
        '{"calls":[\n',
        '{"Name":{"string":"a"}}],"device_metrics":{}}',
        ("--from", "tvm-profile"),
        _SIZE_OF_OBJECTS,
    ),
    "rocprof-sdk": Shape(
        "in.json",
        lambda n: f'{{"start_timestamp":{n},"end_timestamp":{n + 1},"correlation_id":{{"internal":{n}}}}},\n',
        '{"rocprofiler-sdk-tool":[{"buffer_records":{"hip_api":[\n',
        '{"start_timestamp":0,"end_timestamp":1}]}}]}',
        ("--from", "rocprof"),
    ),
    "rocprof-sdk-counters": Shape(
        "in.json",
        lambda n: (
            f'{{"dispatch_data":{{"start_timestamp":{n},"end_timestamp":{n + 1},'
            f'"dispatch_info":{{"dispatch_id":{n}}}}},"records":[{{"counter_id":{{"handle":1}},"value":1}}]}},\n'
        ),
        '{"rocprofiler-sdk-tool":[{"counters":[{"id":{"handle":1},"name":"c"}],'
        '"callback_records":{"counter_collection":[\n',
        '{"dispatch_data":{"start_timestamp":0,"end_timestamp":1,"dispatch_info":{}}}]}}]}',
        ("--from", "rocprof"),
    ),
    "tensorrt-times": Shape(
        "in.json",
        lambda n: f'{{"startComputeMs":{n},"endComputeMs":{n + 1}}},\n',
        "[\n",
        '{"startComputeMs":0,"endComputeMs":0}]',
        ("--from", "tensorrt"),
    ),
    "tensorrt-profile": Shape(
        "in.json",
        lambda n: '{"name":"a","timeMs":1},\n',
        '[{"count":1},\n',
        '{"name":"a","timeMs":1}]',
        ("--from", "tensorrt"),
    ),
    "openvino-json": Shape(
        "in.json",
        lambda n: f'{{"name":"a","real_time":{n % 9},"cpu_time":0}},\n',
        '{"report_type":"average","avg_performance":{"nodes":[\n',
        '{"name":"a","real_time":1,"cpu_time":0}]}}',
        ("--from", "openvino"),
    ),
    "deepsparse-json": Shape(
        "in.json",
        lambda n: f'{{"name":"a","average_run_time_in_ms":{n % 9}}},\n',
        '{"layer_info":[\n',
        '{"name":"a","average_run_time_in_ms":1}]}',
        ("--from", "deepsparse"),
    ),
    "csv": Shape("in.csv", lambda n: f"H,a,1,1,1,{n},{n + 9}\n", _ROCPROF),
}


def shape_of(name: str) -> Shape:
    """Return a shape by its name, or that of the shortest rows of a format of text."""
    if name in SHAPES:
        return SHAPES[name]
    head = head_of(name).decode("utf-8", "surrogateescape")
    row = ROWS[name]
    size = _SIZE_OF_OBJECTS if name.startswith(_OF_OBJECTS) else _SIZE_OF_TEXT
    return Shape(source_of(name).name, lambda n: f"{row(n + 1)}\n", head, options=options_of(name), size=size)


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate, measure, print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.memory", description=__doc__.split("\n")[0])
    every = (*SHAPES, *ROWS)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"{', '.join(every)}; all of them by default")
    sizes = f"{_SIZE}, for the rows of a text format {_SIZE_OF_TEXT}, or {_SIZE_OF_OBJECTS} if they are objects"
    parser.add_argument("--size", type=int, help=f"of each file in MB, by default {sizes}")
    parser.add_argument("--to", default="pftrace", help="the ending of the output")
    parser.add_argument("--memory", help="what the command is to be given")
    parser.add_argument("--limit", type=int, default=3600, help="of each conversion, in seconds")
    args = parser.parse_args(arguments)
    options = ("--memory", args.memory) if args.memory else ()
    print(f"{'':34}{'rows':>12}{'bytes a row':>13}{'input MB':>10}{'peak MB':>9}{'over MB':>9}{'CPU s':>8}")
    above = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.shapes or every:
            shape = shape_of(name)
            source, output = Path(folder) / shape.name, Path(folder) / f"out.{args.to}"
            rows = shape.write(source, (args.size or shape.size) * _MB)
            size = source.stat().st_size
            command = traceconv("convert", source, "-o", output, *shape.options, *options)
            cost = measure(Contestant(command, output), limit_s=args.limit)
            over = cost.peak_bytes - size
            print(
                f"{name:34}{rows:12}{size / rows:13.1f}{size / _MB:10.0f}{cost.peak_bytes / _MB:9.0f}{over / _MB:9.0f}"
                f"{cost.cpu_s:8.1f}{'' if over < BOUND else '  more than the bound'}",
                flush=True,
            )
            output.unlink()
            if over >= BOUND:
                above.append(name)
    if above:
        print(f"more than {BOUND / _MB:.0f} MB above the input: {', '.join(above)}", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
