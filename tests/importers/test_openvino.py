"""OpenVINO: reports as JSON say what reports as CSV say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden import ROOT
from traceconv.api import identify, read
from traceconv.errors import MalformedInput
from traceconv.model.trace import Slices, Trace

GOLDEN = ROOT / "openvino"


def report(case: str) -> Any:
    return json.loads((GOLDEN / case / "input.json").read_text(encoding="utf-8"))


def csv_of_counters(parts: list[Any]) -> str:
    """The same counters as benchmark_app writes them without -json_stats."""
    lines = []
    for part in parts:
        lines.append("layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)")
        keys = ("name", "status", "node_type", "exec_type", "real_time", "cpu_time")
        lines += [";".join(node[key] for key in keys) for node in part["nodes"]]
        lines += [f"Total;;;;{part['total_real_time']};{part['total_cpu_time']}", ""]
    return "\n".join(lines)


def events(trace: Trace) -> list[Any]:
    """Slices and instants with their tracks and args, without where they stand in the file."""
    found: list[Any] = []
    for table in (trace.slices, trace.instants):
        for row in range(len(table.ts)):
            args = json.loads(trace.args.get(int(table.args_at[row]), int(table.args_len[row])) or b"{}")
            where = trace.tracks[table.track[row]].name
            dur = int(table.dur[row]) if isinstance(table, Slices) else None
            name, category = trace.strings[table.name[row]], trace.strings[table.category[row]]
            found.append((where, int(table.ts[row]), dur, name, category, args))
    return found


def plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_counters_as_json_and_as_csv_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    path.write_text(csv_of_counters(report("json-detailed")["detailed_performance"]), encoding="utf-8")
    expected, found = read(path), read(GOLDEN / "json-detailed" / "input.json")
    assert events(found) == events(expected)
    assert len(found.slices.ts) == 12
    assert [track.name for track in found.tracks] == [track.name for track in expected.tracks]


def test_a_report_as_json_and_as_csv_is_the_same(tmp_path: Path) -> None:
    sections = {"cmd_options": "Command line parameters", "configuration_setup": "Configuration setup"}
    sections |= {"execution_results": "Execution results"}
    lines = []
    for key, title in sections.items():
        lines += [title, *(f"{name};{plain(value)}" for name, value in report("json-report")[key].items()), ""]
    path = tmp_path / "report.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert events(read(GOLDEN / "json-report" / "input.json")) == events(read(path))


@pytest.mark.parametrize("case", ["json-report", "json-detailed", "json-cpp", "json-sorted"])
@pytest.mark.parametrize("indent", [None, 1])
def test_reports_are_known_however_they_are_spaced(case: str, indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "unknown"
    path.write_text(json.dumps(report(case), indent=indent), encoding="utf-8")
    assert identify(path)[0] == "openvino"


def test_a_cut_report_is_an_error_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes((GOLDEN / "json-detailed" / "input.json").read_bytes()[:-40])
    with pytest.raises(MalformedInput, match="not valid JSON") as caught:
        read(path)
    assert "\n" not in caught.value.message


def test_layers_by_time_are_rows_of_totals_whatever_they_are_printed_as() -> None:
    """Their order is not that of execution, so none is a slice. Two runs, so times differ; printed names are cut."""
    cases = {"json-sorted": "input.json", "csv-sorted": "input.csv", "printed-sorted": "input.txt"}
    found = {}
    for case, name in cases.items():
        rows = [event for event in events(read(GOLDEN / case / name)) if "layers by time" in event[0]]
        assert not any(dur for _, _, dur, _, _, _ in rows)
        found[case] = {(layer[:16], kind, args["status"]) for _, _, _, layer, kind, args in rows}
    assert found["json-sorted"] == found["csv-sorted"] == found["printed-sorted"]
    assert len(found["json-sorted"]) == 11


def test_a_layer_behind_layers_by_time_is_in_a_request_of_its_own(tmp_path: Path) -> None:
    """It was on no track, an error of traceconv's own."""
    path = tmp_path / "log.txt"
    path.write_text("b,EXECUTED,Add,ref,0.5,0.5,100.0\na;EXECUTED;Add;ref;0.5;0.5\n", encoding="utf-8")
    trace = read(path, format="openvino")
    assert [trace.strings[name] for name in trace.slices.name.tolist()] == ["a"]
    assert trace.tracks[int(trace.slices.track[0])].name == "performance counters (synthetic)"
