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
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from traceconv.families.common.json_document import JsonDocument, is_array
from traceconv.model.json_values import decode_json

_COUNTERS = re.compile(rb'"(?:avg|detailed)_performance"\s*:\s*+\[?\s*+\{\s*"nodes"\s*:\s*\[')
_REPORT = re.compile(rb'\A\s*\{\s*"(?:cmd_options|configuration_setup|execution_results)"\s*:\s*\{')
#: The members of a report.
Report = dict[str, msgspec.Raw]
_NULL = msgspec.Raw(b"null")
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
        nodes: read when they are iterated; None for one that cannot be read.
        total: the sum of their times in ms, b"" if not stated.
        is_sorted: whether they are sorted by time.
        is_average: whether they are means.
    """

    nodes: Iterable[Node | None]
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


def parts_of(document: JsonDocument, report: Report) -> Iterator[Part]:
    """Yield the parts of a report of counters."""
    kind = _value(report.get("report_type", _NULL))
    detailed, average = report.get("detailed_performance", _NULL), report.get("avg_performance", _NULL)
    for part in document.elements(detailed) if is_array(detailed) else ():
        yield _part(document, part, kind, is_average=False)
    if bytes(memoryview(average)[:4]) != b"null":
        yield _part(document, average, kind, is_average=kind != "sorted")


def settings_of(report: Report) -> Iterator[Setting]:
    """Yield the settings and results of a report of a run."""
    for key, section in SECTIONS.items():
        for name, value in _members(report.get(key, _NULL)).items():
            yield Setting(section, name, _value(value))


def unknown_keys(report: Report) -> list[str]:
    """Return the unknown members."""
    return [key for key in report if key not in {*SECTIONS, "report_type", "detailed_performance", "avg_performance"}]


def _part(document: JsonDocument, part: msgspec.Raw, kind: Any, *, is_average: bool) -> Part:
    members = _members(part)
    nodes = members.get("nodes", _NULL)
    nodes_read = map(_node, document.elements(nodes)) if is_array(nodes) else [None]
    return Part(nodes_read, _number(_value(members.get("total_real_time", _NULL))), kind == "sorted", is_average)


def _members(value: msgspec.Raw) -> Report:
    """Return the members of an object, none of another value."""
    return msgspec.json.decode(value, type=Report) if memoryview(value)[0] == ord("{") else {}


def _value(value: msgspec.Raw) -> Any:
    """Return a decoded value."""
    return decode_json(value)


def _node(element: msgspec.Raw) -> Node | None:
    node = _value(element)
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
