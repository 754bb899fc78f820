"""Rows about tracks of two inputs are told apart, in all sections and all forms of a report."""

from __future__ import annotations

import csv
import io
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import traceconv
from tests.golden import ROOT
from traceconv.answers import SECTION_OF, SECTIONS, Questions
from traceconv.answers.render import RENDERERS, text
from traceconv.answers.section import Column, Section, Unit
from traceconv.io.shown import shortened_column

#: The columns that name a row; numbers and `input` do not count.
NAMING = {
    "summary": ("id",),
    "unanswered": ("question",),
    "overview": ("input", "clock"),
    "kernels": ("name", "kind"),
    "launches": ("name",),
    "waits": ("name", "thread"),
    "flops": ("name", "shape", "type"),
    "step_parts": ("name", "device", "start_ns", "track"),
    "step_differences": ("step", "start_ns", "track", "name", "kind"),
    "step_kernels": ("step", "start_ns", "track", "device", "name", "kind"),
    "late_causes": ("rank", "name", "kind"),
    "operations": ("name",),
    "stated_totals": ("name", "table", "category"),
    "steps": ("step", "track"),
    "step_times": ("track",),
    "device": ("device", "queue"),
    "host_late": ("device", "name", "thread"),
    "ranks": ("rank",),
    "collectives": ("collective", "group", "start_ns"),
    "hosts": ("host", "ranks"),
    "memory": ("counter",),
    "allocations": ("name", "device"),
    "memory_steps": ("name", "counter", "track"),
    "logs": ("level", "text", "input"),
    "primitives": ("kind", "implementation"),
    "layers": ("name",),
    "run_ratios": ("name", "formula", "counted", "input"),
}
#: The sections whose rows add up all inputs, or the ranks of a job.
OF_ALL = {
    "summary",
    "unanswered",
    "kernels",
    "operations",
    "flops",
    "launches",
    "waits",
    "primitives",
    "layers",
    "collectives",
    "late_causes",
    "allocations",
}


def kineto(path: Path, factor: int) -> Path:
    """Write six steps of a process on one device with two streams; `factor` changes what kernels and memory take."""
    rows: list[dict[str, Any]] = []
    for step in range(6):
        start = 1000 + 1000 * step
        common = {"ph": "X", "pid": 100, "tid": 100}
        rows.append(common | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start})
        rows[-1]["dur"] = 900 + 300 * (step == 5)
        wait = {"cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "ts": start + 700, "dur": 50}
        rows.append(common | wait)
        held = {"Device Type": 1, "Device Id": 0, "Total Allocated": 1000 * factor * (step + 1), "Total Reserved": 9000}
        rows.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100, "tid": 100, "s": "t"})
        rows[-1] |= {"ts": start + 5, "args": held | {"Bytes": 100, "Addr": 1}}
        for call in range(3):
            ts, stream, number = start + 10 + 200 * call, 7 + call % 2, 10 * step + call + 1
            shapes = {"Input Dims": [[64, 32], [32, 64]], "Input type": ["float", "float"]}
            rows.append(common | {"cat": "cpu_op", "name": "aten::mm", "ts": ts, "dur": 60, "args": shapes})
            launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + 10, "dur": 20}
            rows.append(common | launch | {"args": {"correlation": number}})
            args = {"device": 0, "stream": stream, "correlation": number}
            kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": stream, "args": args}
            rows.append(kernel | {"ts": ts + 35, "dur": 80 * factor + call})
    gpu = {"id": 0, "name": "NVIDIA H100 80GB HBM3"}
    document = {"schemaVersion": 1, "deviceProperties": [gpu], "baseTimeNanoseconds": 17 * 10**17, "traceEvents": rows}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def devices(folder: Path) -> list[Path]:
    return [kineto(folder / "a.json", 1), kineto(folder / "b.json", 2)]


def of_one_name(folder: Path) -> list[Path]:
    return [kineto(folder / "x" / "t.json", 1), kineto(folder / "y" / "t.json", 2)]


def saved_again(folder: Path) -> list[Path]:
    paths = [folder / "m.pftrace", folder / "n.pftrace"]
    for path, source in zip(paths, devices(folder), strict=True):
        traceconv.convert(source, path)
    return paths


def primitives(folder: Path) -> list[Path]:
    log = (ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log").read_text()
    half = "".join(log.splitlines(keepends=True)[:60])
    return [written(folder / "a.log", log), written(folder / "b.log", half)]


def logs(folder: Path) -> list[Path]:
    line = "2026-01-01T00:00:0{}.5Z {} WARNING runs slowly\n"
    return [written(folder / f"{one}.log", "".join(line.format(n, one) for n in range(5))) for one in "ab"]


def tables(folder: Path) -> list[Path]:
    table = (ROOT / "nvprof-text" / "summary" / "input.log").read_text()
    return [written(folder / "a.log", table), written(folder / "b.log", table.replace("148.", "149."))]


def of_ranks(_: Path) -> list[Path]:
    return [ROOT / "pytorch-kineto" / f"gloo-rank{rank}" / "input.json" for rank in (0, 1)]


def sampled(_: Path) -> list[Path]:
    return [ROOT.parent / "tests" / "data" / "layers" / name for name in ("profile.json", "perf.data.gz")]


def counted(folder: Path) -> list[Path]:
    text = (ROOT / "perf-stat" / "csv" / "input.csv").read_text()
    return [written(folder / name, text.replace(" ", change)) for name, change in (("a.csv", " "), ("b.csv", "  "))]


PAIRS = (devices, of_one_name, saved_again, primitives, logs, tables, of_ranks, sampled, counted)


def repeated(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [key for key, same in groupby(sorted(rows, key=repr)) if len(list(same)) > 1]


def sections_of(paths: list[Path], questions: Questions) -> list[Section]:
    return traceconv.report(paths, questions, constraints=traceconv.Constraints(same_machine=True))


@pytest.mark.parametrize("make", PAIRS)
def test_no_two_rows_have_the_same_names(make: Any, tmp_path: Path) -> None:
    sections = sections_of(make(tmp_path), Questions())

    for section in sections:
        naming = NAMING[section.name]
        if section.name == "stated_totals":
            naming = (*naming, "input")  # a column that text shows if several inputs state totals
            assert not next(one for one in section.columns if one.name == "input").detail
        rows = [tuple(row[name] for name in naming) for row in section.records()]
        assert not repeated(rows), section.name
        if section.name not in OF_ALL:
            assert all(row["input"] for row in section.records()), section.name


def test_all_sections_are_looked_at(tmp_path: Path) -> None:
    assert set(NAMING) == {*SECTIONS, *SECTION_OF}
    found = {
        one.name for make in PAIRS for one in sections_of(make(new(tmp_path / make.__name__)), Questions()) if one.rows
    }
    assert found == set(NAMING)


@pytest.mark.parametrize("key", ["track", "thread", "process"])
def test_operations_by_track_are_those_of_one_input(key: str, tmp_path: Path) -> None:
    (section,) = sections_of(devices(tmp_path), Questions(["operations"], by=[key]))
    assert [str(row[key])[:9] for row in section.records()].count("a.json · ") == len(section.rows) // 2
    whole = sum(row["device_ns"] for row in section.records())
    # A condition takes a path, which is that of both inputs, and what the table shows.
    for path, share in (("process 100", 2), ("a.json · process 100", 1)) if key == "process" else ():
        (one,) = sections_of(devices(tmp_path), Questions(["operations"], by=[key], where=f'{key}="{path}"'))
        assert len(one.rows) == share
        assert (sum(row["device_ns"] for row in one.records()) < whole) == (share == 1)


def test_all_forms_name_the_input(tmp_path: Path) -> None:
    sections = sections_of(devices(tmp_path), Questions(["device", "steps", "memory"]))
    gpus = [f"{one}.json · GPU 0 (NVIDIA H100 80GB HBM3)" for one in "ab"]
    for form, render in RENDERERS.items():
        if form != "text":
            assert all(gpu in render(sections, 0) for gpu in gpus), form
    assert all(f"{one}.json · GPU 0" in RENDERERS["text"](sections, 0) for one in "ab")
    heading, *rows = csv.reader(RENDERERS["csv"]([one for one in sections if one.name == "device"], 0).splitlines())
    assert [row[heading.index("input")] for row in rows] == ["a.json", "b.json"] + 2 * ["a.json"] + 2 * ["b.json"]
    steps = json.loads(RENDERERS["json"](sections, 0))["steps"]
    assert {(row["input"], row["track"]) for row in steps} == {
        (f"{one}.json", f"{one}.json · process 100 / thread 100") for one in "ab"
    }


def test_csv_holds_texts_as_they_are() -> None:
    names = ["a\nb", "a\\nb", "a\rb", 'a"b', "a,b", "", "=1", "a\x1b[2J\u2028\0", " a "]
    column = Column("na\nme", "name", Unit.TEXT)
    sections = [
        Section("query", (column,), [(name,) for name in names]),
        Section("query", (column,), [(True,), (None,)]),
    ]
    rows = list(csv.reader(io.StringIO(RENDERERS["csv"](sections, 0), newline="")))
    assert rows == [[column.name], *([name] for name in names), [], [column.name], ["true"], [""]]
    sections = [Section("query", (column,), [("a\udcffé",)])]
    assert RENDERERS["csv"](sections, 0).splitlines()[-1] == "a\\udcffé"


def test_a_turned_table_has_rows_without_anything() -> None:
    columns = tuple(Column(f"c{number}", f"c{number}", Unit.TEXT) for number in range(12))
    shown = text([Section("query", columns, [("x",) * 12, (None,) * 12])], 0)
    assert shown.count("x") == 12


def test_one_input_is_not_named_in_titles(tmp_path: Path) -> None:
    path, _ = devices(tmp_path)
    other = kineto(tmp_path / "c.json", 3)
    other.write_text(other.read_text().replace('"pid": 100', '"pid": 200').replace("H100", "H200"))
    for paths in ([path], [path, other]):
        for section in sections_of(paths, Questions(["device", "steps"])):
            assert not any(" · " in str(cell) for row in section.rows for cell in row)


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        (("r0.json · GPU 0 (NVIDIA H100)", "r1.json · GPU 0 (NVIDIA H100)"), ("r0.json · GPU 0…", "r1.json · GPU 0…")),
        (
            ("rank 7 · node7 · GPU 7 (NVIDIA H100)", "rank 6 · node6 · GPU 1 (NVIDIA H100)", "short"),
            ("rank 7 …· GPU 7…", "rank 6 …· GPU 1…", "short"),
        ),
        (
            ("r0.json · process 100 / thread 8", "r0.json · process 100 / thread 9"),
            ("r0.json …hread 8", "r0.json …hread 9"),
        ),
        (("r0.json · GPU 0 (NVIDIA H100)",) * 2, ("r0.json …A H100)",) * 2),
    ],
)
def test_an_end_that_names_share_is_not_shown_instead_of_what_differs(
    ends: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    found = shortened_column(ends, 16)
    assert len(set(found)) == len(set(ends))
    assert max(map(len, found)) <= 16
    assert tuple(found) == shown


def test_a_narrow_table_shows_what_tells_devices_apart(tmp_path: Path) -> None:
    late = next(one for one in traceconv.report(devices(tmp_path)) if one.name == "host_late")
    table = text([late], 0, 80)
    assert {line.split("  ")[1] for line in table.splitlines() if "GPU" in line} == {
        "a.json · GPU 0 …",
        "b.json · GPU 0 …",
    }
