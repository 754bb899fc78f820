"""Synthetic outputs of the Furiosa profiler: no NPU is at hand.

What these files assume stands in `ASSUMED`; a real file of an NPU could refute each of it. The host and the layout of
the JSON were seen in runs of the runtimes 0.10.0 to 0.10.4 without an NPU; what is of the NPU comes from the
documentation and the Python sources of the SDK.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

ASSUMED = {
    "start_ts and end_ts": "ns since 1970 as decimal text of an unsigned 64-bit number (seen)",
    "ts and dur": "microseconds as a float, ts from the start of the exporter (seen)",
    "layout": "[ and the first event in one line, then lines that begin with a comma, metadata at the end (seen)",
    "ids": "trace ids of 32, span ids of 16 hex digits; a parent of zeros means none (seen)",
    "thread.id": "small number as text, equal to tid on the host (seen)",
    "cat": "empty for record(), Runtime (0.10) or Nux (before) for the host, NPU for the NPU (NPU: documented)",
    "indices": "pe_index, execution_index, instruction_index, dram_base, operator_index as text (documented)",
    "pid of an NPU": "a number beyond those of processes, named npu:0:0-1 by process_name (documented)",
    "tid of an NPU": "65536 (documented)",
    "children of an execution": "Load, Store and operators name it by parent_span_id (source of print_npu_executions)",
    "execution": "has no instruction_index (source)",
    "execution's parent": "not in the file, or the Task of the same trace (assumed)",
    "host and NPU": "share the trace id of a query (assumed from the documentation's pictures)",
    "run": "sum of the durations of the children without Execution, Load and Store (source)",
    "wait of 0.10": "run - total in unsigned 64 bits (from the documented figures)",
    "export": "args pe_index, execution_index, instruction_index as text; tid pe_index + 10000000; no ids (source)",
}

EXPORTER_START = 1795244784924123918
HOST_PID, NPU_PID, NPU_TID = 17251, 9223372036, 65536
ZEROS = "0" * 16


@dataclass
class Made:
    """One span, in ns since 1970."""

    name: str
    start: int
    dur: int
    cat: str = "Runtime"
    thread: int = 1
    trace: str = "c772" + "0" * 24 + "7803"
    span: str = ""
    parent: str = ZEROS
    indices: dict[str, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + self.dur


def query(number: int, at: int, *, cat: str = "Runtime", pe: int = 0) -> list[Made]:
    """One inference with host operators and an execution of the NPU; inner spans end, and are written, first."""
    trace = f"{number:032x}"
    root, execution = f"{number:08x}{1:08x}", f"{number:08x}{5:08x}"
    host: dict[str, Any] = {"trace": trace, "cat": cat}
    npu: dict[str, Any] = {"trace": trace, "cat": "NPU", "thread": NPU_TID, "parent": execution}
    place = {"pe_index": pe, "execution_index": 0, "dram_base": 4096}
    worker: dict[str, Any] = host | {"thread": 40, "parent": root}
    run = at + 200_000

    def span(low: int) -> str:
        return f"{number:08x}{low:08x}"

    def step(low: int, name: str, start: int, dur: int) -> Made:
        return Made(name, run + start, dur, span=span(low), indices={**place, "instruction_index": low - 6}, **npu)

    return [
        Made("Quantize", at + 1_000, 136_285, span=span(2), indices={"operator_index": 0}, **worker),
        step(6, "Load", 0, 5_000),
        step(7, "LowLevelConv2d", 6_000, 100_000),
        step(8, "LowLevelPad", 107_000, 8_134),
        step(9, "Store", 116_000, 3_000),
        Made("Execution", run, 119_145, span=execution, indices=place, **(npu | {"parent": ZEROS})),
        Made("Dequantize", at + 330_000, 14_682, span=span(3), indices={"operator_index": 3}, **worker),
        Made("Inference", at, 350_000, span=root, **host),
    ]


def runtime_json(spans: list[Made], more: list[dict[str, Any]] | None = None) -> bytes:
    """The file that the runtime writes."""
    events = [_runtime_event(one) for one in spans] + (more or [])
    names = [(HOST_PID, 1, "thread_name", "0x1"), (HOST_PID, 40, "thread_name", "tokio-runtime-worker")]
    names += [(NPU_PID, NPU_TID, "thread_name", "0x10000"), (NPU_PID, NPU_TID, "process_name", "npu:0:0-1")]
    lines = [_line(event) for event in events]
    lines += [
        _line({"args": {"name": name}, "name": kind, "ph": "M", "pid": pid, "tid": tid})
        + ","
        + _line({"args": {"sort_index": str(tid)}, "name": "thread_sort_index", "ph": "M", "pid": pid, "tid": tid})
        for pid, tid, kind, name in names
    ]
    return ("[" + "\n,".join(lines) + "\n]\n").encode()


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _runtime_event(one: Made) -> dict[str, Any]:
    is_npu = one.cat == "NPU"
    ids = {"trace_id": one.trace, "span_id": one.span, "parent_span_id": one.parent, "thread.id": str(one.thread)}
    indices = {key: str(value) for key, value in one.indices.items()}
    return {
        "args": {"start_ts": str(one.start), "end_ts": str(one.end), **ids, **indices},
        "cat": one.cat,
        "dur": one.dur / 1000,
        "name": one.name,
        "ph": "X",
        "pid": NPU_PID if is_npu else HOST_PID,
        "tid": NPU_TID if is_npu else one.thread,
        "ts": (one.start - EXPORTER_START) / 1000,
    }


def exported_json(spans: list[Made]) -> bytes:
    """What export_chrome_trace writes."""
    first = min(one.start for one in spans)
    events: list[dict[str, Any]] = []
    for one in spans:
        event = {"name": one.name, "cat": one.cat, "ph": "X", "ts": (one.start - first) / 1000, "dur": one.dur / 1000}
        event |= {"pid": HOST_PID, "tid": one.thread}
        args = {key: str(value) for key, value in one.indices.items() if key != "dram_base"}
        if one.cat == "NPU":
            event["tid"] = one.indices["pe_index"] + 10_000_000
        events.append(event | ({"args": args} if args else {}))
    for pe in sorted({one.indices["pe_index"] for one in spans if one.cat == "NPU"}):
        events.append(
            {"ph": "M", "name": "thread_name", "pid": HOST_PID, "tid": pe + 10_000_000, "args": {"name": f"NPU {pe}"}}
        )
    return json.dumps(events).encode()


COLUMNS = [
    *("trace_id", "parent_span_id", "span_id", "start", "end", "cat", "name", "thread.id", "dram_base", "pe_index"),
    *("execution_index", "instruction_index", "operator_index", "dur"),
]


def frame(spans: list[Made]) -> list[dict[str, Any]]:
    """The rows of the data frame."""
    rows = []
    for one in spans:
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        row |= {"trace_id": one.trace, "parent_span_id": one.parent, "span_id": one.span, "start": one.start}
        row |= {"end": one.end, "cat": one.cat, "name": one.name, "thread.id": one.thread, "dur": one.dur}
        rows.append(row | one.indices)
    return rows


def csv_of(rows: list[dict[str, Any]], *, index: bool = False) -> bytes:
    """The data frame as to_csv writes it; with the unnamed column of row numbers, if asked for."""
    lines = [("," if index else "") + ",".join(COLUMNS)]
    for number, row in enumerate(rows):
        cells = ["" if row[key] is None else str(row[key]) for key in COLUMNS]
        lines.append(",".join([str(number), *cells] if index else cells))
    return ("\n".join(lines) + "\n").encode()


def box(columns: list[str], rows: list[list[str]]) -> str:
    """A table as polars prints it, without the row of types."""
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]

    def rule(left: str, line: str, joint: str, right: str) -> str:
        return left + joint.join(line * (width + 2) for width in widths) + right

    def cells(row: list[str]) -> str:
        return "│ " + " ┆ ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " │"

    lines = [rule("┌", "─", "┬", "┐"), cells(columns), rule("╞", "═", "╪", "╡"), *map(cells, rows)]
    return "\n".join([*lines, rule("└", "─", "┴", "┘")]) + "\n"
