"""Reports that benchmark_app writes with `-json_stats`: counters of layers, and the report of the run.

    {"report_type": "detailed", "detailed_performance": [{"nodes": [{"name": "conv", "node_type": "Convolution",
     "status": "Status.EXECUTED", "real_time": "0.014", "cpu_time": "0.014", "exec_type": "brgconv_avx512_bf16"}],
     "total_real_time": "0.014", "total_cpu_time": "0.014"}]}
    {"report_type": "average", "avg_performance": {"nodes": [...], ...}}
    {"cmd_options": {"-m": "net.xml"}, "configuration_setup": {"topology": "net"}, "execution_results": {...}}

Times are milliseconds: text with three decimals from the Python tool, numbers from the C++ one, which also writes its
keys in alphabetical order and states without `Status.`. With `-pcsort` the type is "sorted": layers by time. The
average of the Python tool holds the first layer only (seen with 2025.3): it takes each layer for a request. Sources:
recordings with 2025.3, and the writers statistics_report.py and statistics_report.cpp of OpenVINO.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

_COUNTERS = re.compile(rb'"(?:avg|detailed)_performance"\s*:\s*\[?\s*\{\s*"nodes"\s*:\s*\[')
_REPORT = re.compile(rb'\A\s*\{\s*"(?:cmd_options|configuration_setup|execution_results)"\s*:\s*\{')
SECTIONS = {
    "cmd_options": "Command line parameters",
    "configuration_setup": "Configuration setup",
    "execution_results": "Execution results",
}
_STATUS = re.compile(r"(?:Status\.)?(\w+)")


class Node(NamedTuple):
    """A layer; times are texts in ms."""

    name: str
    status: str
    layer_type: str
    exec_type: str
    real: bytes
    cpu: bytes
    share: str


class Part(NamedTuple):
    """The layers of one infer request, or means of several.

    Attributes:
        nodes: None for one that cannot be read.
        total: the sum of their times in ms, b"" if not stated.
        is_sorted: whether they are sorted by time.
        is_average: whether they are means.
    """

    nodes: list[Node | None]
    total: bytes
    is_sorted: bool
    is_average: bool


class Setting(NamedTuple):
    """A parameter, a setting or a result."""

    section: str
    name: str
    value: Any


def is_counters(data: bytes) -> bool:
    """Return whether a head begins a report of counters."""
    return data.lstrip()[:1] == b"{" and _COUNTERS.search(data) is not None


def is_report(data: bytes) -> bool:
    """Return whether a head begins a report of a run."""
    return _REPORT.match(data) is not None


def parts_of(report: dict[str, Any]) -> Iterator[Part]:
    """Yield the parts of a report of counters."""
    kind = report.get("report_type")
    detailed, average = report.get("detailed_performance"), report.get("avg_performance")
    for part in detailed if isinstance(detailed, list) else []:
        yield _part(part, kind, is_average=False)
    if average is not None:
        yield _part(average, kind, is_average=kind != "sorted")


def settings_of(report: dict[str, Any]) -> Iterator[Setting]:
    """Yield the settings and results of a report of a run."""
    for key, section in SECTIONS.items():
        members = report.get(key)
        for name, value in members.items() if isinstance(members, dict) else ():
            yield Setting(section, name, value)


def unknown_keys(report: dict[str, Any]) -> list[str]:
    """Return the unknown members."""
    return [key for key in report if key not in {*SECTIONS, "report_type", "detailed_performance", "avg_performance"}]


def _part(part: Any, kind: Any, *, is_average: bool) -> Part:
    members = part if isinstance(part, dict) else {}
    nodes = members.get("nodes")
    nodes_read = list(map(_node, nodes if isinstance(nodes, list) else [None]))
    return Part(nodes_read, _number(members.get("total_real_time")), kind == "sorted", is_average)


def _node(node: Any) -> Node | None:
    if not isinstance(node, dict) or "name" not in node or "real_time" not in node:
        return None
    name, layer_type, exec_type, share = (str(node.get(key, "")) for key in ("name", "node_type", "exec_type", "%"))
    status = _STATUS.fullmatch(str(node.get("status", "")))
    times = _number(node["real_time"]), _number(node.get("cpu_time"))
    return Node(name, status[1] if status else "", layer_type, exec_type, *times, share)


def _number(value: Any) -> bytes:
    """Return a number, or a text that holds one, as it is written; b"" for anything else."""
    if isinstance(value, str):
        return value.strip().encode()
    return msgspec.json.encode(value) if isinstance(value, int | float) and not isinstance(value, bool) else b""
