"""`traceconv report`, as it is typed."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceconv
from tests import commands, terminal
from tests.golden import ROOT
from traceconv.answers import SECTION_OF, SECTIONS, Questions
from traceconv.answers.render import markdown, screen, text
from traceconv.answers.section import Column, Section, Unit

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
RANKS = [ROOT / "pytorch-kineto" / f"nccl-rank{rank}" / "input.json" for rank in (0, 1)]
CUDA = ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"
GRAPH = ROOT / "pytorch-kineto" / "cuda-graph" / "input.json"
COUNTED = ROOT / "onnxruntime" / "perf-counters-hw" / "input.json"
SCHEMA = json.loads((ROOT.parent / "schemas" / "report.schema.json").read_text(encoding="utf-8"))


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return commands.run("report", *arguments)


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_each_loss_and_warning_is_said_once(form: str, tmp_path: Path) -> None:
    """The notes of the tables have them, so that the details do not; a report in a file leaves them to the details."""
    cut = ROOT / "furiosa-table" / "csv-cut" / "input.csv"
    losses = "a row does not fit the columns", [cut]
    warnings = "it states no name that identifies its host", RANKS
    unmeasured = "the time of an event was never set", [ROOT / "pytorch-kineto" / "never-set-base" / "input.json"]
    for words, inputs in (losses, warnings, unmeasured):
        said = run(*inputs, "--section", "operations", "--format", form, "-v")
        assert said.returncode == 0, said.stderr
        assert (said.stdout + said.stderr).count(words) == 1
        path = tmp_path / f"report-{inputs[0].parent.name}.{form}"
        said = run(*inputs, "--section", "operations", "--format", form, "-v", "-o", path)
        assert said.stderr.count(words) == 1


def test_text_has_a_table_for_each_section() -> None:
    result = run(CUDA, "--top", 3)
    assert result.returncode == 0, result.stderr
    for word in (
        "summary",
        "overview",
        "operations",
        "steps",
        "device",
        "kernels",
        "ProfilerStep#2",
        "more rows: --top",
    ):
        assert word in result.stdout
    assert re.search(r"^  GPU 0 .*, rank 3 +52 µs +46 µs +42 µs +0 ns +4 µs +6 µs ", result.stdout, re.MULTILINE)


def test_json_follows_its_schema_and_says_what_the_library_says() -> None:
    result = run(KINETO, ONEDNN, "--format", "json", "--top", 0)
    document = json.loads(result.stdout)
    jsonschema.validate(document, SCHEMA)
    sections = traceconv.report([KINETO, ONEDNN])
    assert document["schema_version"] == 2
    assert {section.name: section.records() for section in sections}.items() <= document.items()
    assert [row["verdict"] for row in document["overview"]] == ["ok", "ok"]
    table = ROOT / "nvprof-text" / "summary" / "input.log"
    stated = json.loads(run(table, "--format", "json").stdout)
    jsonschema.validate(stated, SCHEMA)
    assert stated["stated_totals"]
    for section in (*sections, *traceconv.report([table])):
        assert all(column.name.endswith("_ns") == (column.unit is Unit.NS) for column in section.columns)


def test_each_form_of_a_report_says_the_warnings_of_the_alignment() -> None:
    said = "nccl-rank0/input.json: it states no name that identifies its host"
    for more in (("--section", "ranks"), ("--section", "operations"), ("--format", "json"), ("--format", "html")):
        assert run(*RANKS, "--top", 1, *more).stdout.count(said) == 1
        assert said not in run(*RANKS, "--top", 1, *more, "--same-machine").stdout
    assert said in run(*RANKS, "--section", "ranks", "--format", "csv").stderr


def test_a_report_names_what_was_lost(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(KINETO.read_bytes()[:60_000])
    said = "cut.json: lost: the file ends inside an event, which was left out; all events before it were read"
    first, second = traceconv.report([cut], Questions(("operations", "steps")))
    assert [note for note in first.notes if note.startswith(said)] == [note for note in first.notes if "lost" in note]
    assert not any("lost" in note for note in second.notes)
    assert said in run(cut, "--section", "operations").stdout
    assert sum(said in section for section in run(cut, "--format", "markdown").stdout.split("\n## ")) == 1
    assert "lost:" not in run(KINETO).stdout
    table = run(cut, "--section", "operations", "--format", "csv")
    assert said in table.stderr
    assert "lost" not in table.stdout


def test_a_window_is_named_by_each_section() -> None:
    window = "from 14 µs to 17 µs after the start"
    of_time = [f"--section={name}" for name in SECTIONS if name != "overview"]
    text = run(CUDA, "--between", "cudaLaunchKernel[2]", "--section=overview", *of_time).stdout
    assert text.count(window) == len(of_time) + 2  # `device` and `ranks` have two tables
    assert "--between does not apply to this section" in text
    document = json.loads(run(CUDA, "--between", "cudaLaunchKernel[2]", "--format", "json").stdout)
    jsonschema.validate(document, SCHEMA)
    assert document["between"] == {"asked": "cudaLaunchKernel[2]", "start_ns": 14_000, "end_ns": 17_000}
    assert [(row["name"], row["device_ns"], row["count"]) for row in document["operations"]] == [
        ("aten::mm", 40_000, 0),  # launched the kernel of the window, and starts before it
        ("cudaLaunchKernel", None, 1),
    ]
    assert [row["name"] for row in document["kernels"]] == ["sgemm_128x128"]
    (section,) = traceconv.report([CUDA], Questions(["operations"], between="cudaLaunchKernel[2]"))
    assert section.records() == document["operations"]


def test_a_report_is_quiet_or_tells_all(tmp_path: Path) -> None:
    said = run(KINETO, ONEDNN, "--section", "overview", "-v")
    assert "causality: " in said.stderr
    assert re.search(r"^input.json +PyTorch profiler time .* ok$", said.stderr, re.MULTILINE)
    assert said.stdout == run(KINETO, ONEDNN, "--section", "overview").stdout
    quiet = run(CUDA, "--format", "csv", "-q")
    assert quiet.stdout
    assert not quiet.stderr
    assert run(CUDA, "--format", "csv").stderr
    assert not run(CUDA, "-q", "-o", tmp_path / "a.html").stderr
    assert run(CUDA, "-o", tmp_path / "b.html").stderr


def test_a_long_text_of_a_single_row_is_folded() -> None:
    (section,) = traceconv.report([ROOT / "pytorch-kineto" / "gloo-rank0" / "input.json"], Questions(["overview"]))
    shown = text([section], 0, 80)
    assert "…" not in shown
    assert re.search(r"placed by +baseTimeNanoseconds .*\n {13}\S.* 20 µs\n", shown)


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_how_an_input_was_placed_is_never_cut(form: str) -> None:
    result = run(KINETO, "--section", "overview", "--format", form)
    assert "from a CPU counter that follows the wall clock to 20 µs" in result.stdout


@pytest.mark.parametrize(
    ("form", "top", "rows"),
    [("json", None, 67), ("csv", None, 67), ("text", None, 20), ("markdown", None, 20), ("html", None, 67)]
    + [(form, 5, 5) for form in ("json", "csv", "text", "markdown", "html")],
)
def test_rows_that_are_left_out_are_counted_in_all_forms(form: str, top: int | None, rows: int, tmp_path: Path) -> None:
    """Data has all rows unless --top limits them."""
    path = tmp_path / "report"
    result = run(
        *(KINETO, "--section", "operations", "--format", form, "-o", path),
        *(() if top is None else ("--top", top)),
    )
    report = path.read_text()
    if form == "json":
        assert len(json.loads(report)["operations"]) == rows
    elif form == "csv":
        assert len(list(csv.DictReader(io.StringIO(report)))) == rows
    said = (result.stderr if form == "csv" else report).count(f"{67 - rows} more rows: --top 67")
    assert said == (rows < 67)


def test_keys_of_several_options_add_up() -> None:
    asked = KINETO, "--section", "operations", "--format", "csv"
    wanted = run(*asked, "--by", "category,thread").stdout
    assert wanted.startswith("category,thread,device_ns,")
    assert run(*asked, "--by", "category", "--by", "thread", "--by", "category").stdout == wanted


def test_csv_and_markdown_hold_the_same_rows() -> None:
    rows = list(csv.DictReader(io.StringIO(run(CUDA, "--section", "operations", "--format", "csv").stdout)))
    assert [row["name"] for row in rows[:3]] == ["aten::mm", "(no operator)", "cudaLaunchKernel"]
    assert (int(rows[0]["device_ns"]), int(rows[0]["self_ns"])) == (84_000, 16_125)
    text = run(CUDA, "--section", "operations", "--format", "markdown").stdout
    assert "| aten::mm | 84 µs | 97.7 % | 4 | 1 | 30.2 µs | 16.1 µs |" in text


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("<backward op>", r"\<backward op\>"),
        ("a|b`c`", r"a\|b\`c\`"),
        ("&lt; **x** [y](z)", r"\&lt; \*\*x\*\* \[y\](z)"),
        ("_x_ a_b c__d", r"\_x\_ a_b c\_\_d"),
        (r"a\|b", r"a\\\|b"),
        ("~~x~~ $y$", r"\~\~x\~\~ \$y\$"),
    ],
)
def test_markdown_shows_names_as_they_are(name: str, escaped: str) -> None:
    section = Section("operations", (Column("name", "name", Unit.TEXT),), [(name,)], [name])
    assert markdown([section], 0) == f"## operations\n\n| name |\n| --- |\n| {escaped} |\n\n- {escaped}\n"


def test_a_slice_without_a_name_is_shown_as_such_and_empty_in_data() -> None:
    section = Section(
        "operations", (Column("name", "name", Unit.TEXT), Column("count", "count", Unit.COUNT)), [("", 2)]
    )
    assert "  (no name)      2\n" in text([section], 0)
    assert "| (no name) | 2 |" in markdown([section], 0)
    assert section.records() == [{"name": "", "count": 2}]


def test_groups_by_what_is_asked() -> None:
    document = json.loads(run(CUDA, "--section", "operations", "--by", "category, thread", "--format", "json").stdout)
    assert {"category", "thread"} <= document["operations"][0].keys()
    assert document.keys() == {"schema_version", "operations", "notes"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "nmae"), "'nmae' is not a key"),
        (
            ("--sort", "slef"),
            "columns of operations: name, device_ns, device_share, kernels, device_busy_ns, no_operator_ns, count",
        ),
        (("--sort", "name", "--section", "steps"), "none of these sections is sorted by a column"),
        (("--where", "dur>1"), "at character 5 of 'dur>1'"),
        (("--between", "ProfilerStep#9"), "no slice is named 'ProfilerStep#9', at character 1 of"),
        (("--between", "cudaLaunchKernel"), "3 slices are named 'cudaLaunchKernel', at character 1"),
        (("--between", "1us..5xs"), "at character 6 of '1us..5xs'"),
        (("--step-name", "("), "--step-name '('"),
        (("--section", "devcie"), "there is no section 'devcie'"),
        (("--section", "xyz"), "'xyz' is not one of"),
        (("--where", ""), "--where: it is empty"),
        (("--between", " "), "--between: it is empty"),
    ],
)
def test_what_cannot_be_asked_is_a_wrong_call(arguments: tuple[str, ...], message: str) -> None:
    result = run(CUDA, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("table", "section"), SECTION_OF.items())
def test_a_table_can_be_asked_for_by_its_name(table: str, section: str) -> None:
    found = json.loads(run(CUDA, "--section", table, "--format", "json").stdout)
    assert found == json.loads(run(CUDA, "--section", section, "--format", "json").stdout)


def test_clocks_that_nothing_relates_are_refused_as_by_merge() -> None:
    other = ROOT / "chrome-trace" / "metadata" / "input.json"
    result = run(ROOT / "chrome-trace" / "flows-v2" / "input.json", other)
    assert result.returncode == 3


def test_an_input_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(CUDA.read_bytes())
    result = run(path, "-o", path, "-f")
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: {path}: the output would replace an input")
    assert path.read_bytes() == CUDA.read_bytes()


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_tables_without_rows_are_left_out_unless_asked_for(form: str) -> None:
    found = run(CUDA, "--format", form).stdout
    headings = [line.removeprefix("## ") for line in found.splitlines() if line and line[:2] not in ("  ", "| ", "- ")]
    assert headings == [
        *("summary", "device", "host_late", "kernels", "operations", "launches", "steps", "step_parts", "waits"),
        *("memory", "allocations", "memory_steps", "overview"),
    ]
    assert (
        "nothing to show in flops, ranks, layers, primitives, logs: `traceconv report --section NAME` says why"
        in found.replace("\\`", "`")
    )
    assert "no input holds log entries" in run(CUDA, "--format", form, "--section", "logs").stdout
    assert json.loads(run(CUDA, "--format", "json").stdout)["logs"] == []


def test_notes_are_wrapped_on_a_terminal() -> None:
    sections = traceconv.report([CUDA])
    wide, narrow = (text(sections, 3, width).split("\n") for width in (0, 60))
    assert max(len(line) for line in wide) > 160
    notes = [line for line in narrow if line not in wide]
    assert notes
    assert 50 < max(map(len, notes)) <= 60
    joined = " ".join("\n".join(narrow).split())
    assert all(note in joined for section in sections for note in section.notes)


@pytest.mark.parametrize(
    "more", [(), ("-v",), ("--section", "operations"), ("--format", "json"), ("--format", "csv", "-v")]
)
def test_what_reading_repaired_is_said_once(more: tuple[str, ...]) -> None:
    result = run(ROOT / "pytorch-kineto" / "quotes" / "input.json", *more)
    assert (result.stdout + result.stderr).count("repaired: 4 x invalid JSON (quotes") == 1


def test_what_needs_no_action_is_said_at_the_end() -> None:
    words = "absent: a flow has only one end"
    for more in ((), ("--section", "device", "--section", "operations")):
        assert words not in run(CUDA, *more).stdout
        *_, last = run(CUDA, *more, "-v").stdout.split("\n\n")
        assert words in last
    notes = json.loads(run(CUDA, "--format", "json").stdout)["notes"]
    assert [name for name, said in notes.items() if any(words in note for note in said)] == ["overview"]


def test_what_reading_repaired_is_said_beside_the_layers() -> None:
    failed = ROOT / "onnxruntime" / "perf-counters-error" / "input.json"
    shown = run(failed, "--section", "layers").stdout
    assert "input.json: notice: 9 x the perf counters of a layer could not be read" in shown
    assert "[event 4: Bad file descriptor; event 7: Bad file descriptor;" in shown


def test_details_are_all_columns_within_a_terminal() -> None:
    (section,) = traceconv.report([COUNTED], Questions(["layers"]))
    assert "cycles, total" not in text([section], 0, 80)
    shown = text([section.detailed()], 0, 80)
    assert max(map(len, shown.split("\n"))) <= 80
    row = next(row for row in section.records() if row["name"] == "SequentialExecutor::Execute")
    block = shown[shown.index(row["name"]) :].split("\n\n")[0]
    assert re.search(rf"^  cycles, total .* {row['cycles_total']}\b", block, re.MULTILINE)
    assert "samples" not in shown.split("self:")[0]  # what holds nothing
    assert "cycles, total" in run(COUNTED, "--section", "layers", "--details", "--format", "markdown").stdout


def test_wide_tables_are_turned() -> None:
    section = traceconv.report([CUDA], Questions(["device"]))[0]
    lines = text([section], 0, 100).splitlines()
    busy = [line.split() for line in lines if line.startswith("  busy ")]
    assert sum(len(line) - 1 for line in busy) == 2 * len(section.rows)
    assert max(map(len, lines)) <= 100
    (row,) = section.rows[:1]
    alone = text([replace(section, rows=[row])], 0, 100).splitlines()
    assert alone[1] == f"  device                 {row[0]}"


def test_texts_that_do_not_fit_stand_below_their_row() -> None:
    columns = (
        Column("name", "name", Unit.TEXT),
        Column("samples", "samples", Unit.COUNT, within="away"),
        Column("away", "away", Unit.COUNT, detail=True),
        Column("cpu-clock", "cpu-clock", Unit.NS),
        Column("symbols", "top symbols", Unit.TEXT, below=True),
    )
    rows = [(f"layer {at}", 10 * at, at or None, at * 10**6, "99 % " + "f" * 30 if at else "") for at in range(5)]
    section = Section("layers", columns, rows)
    assert text([section], 2, 60).split("\n")[1:5] == [
        "  name     samples  cpu-clock",
        "  layer 0        0       0 ns",
        "  layer 1   10 ± 1       1 ms",
        "      top symbols: 99 % " + "f" * 30,
    ]
    assert text([section], 2, 80).split("\n")[3] == "  layer 1   10 ± 1       1 ms  99 % " + "f" * 30


def test_what_made_a_step_slow_stands_below_it() -> None:
    section, *_ = traceconv.report([ROOT / "tensorflow-profiler" / "jax-gpu" / "input.json"], Questions(["steps"]))
    lines = text([section], 0, 80).splitlines()
    assert " ".join(lines[1].split()) == "step track start duration interval state slower by"
    assert lines[3] == "      slower operation: command_buffer::execute"


def test_a_column_is_shown_where_the_first_rows_hold_nothing_in_it() -> None:
    assert "cycles" in run(COUNTED, "--section", "layers", "--top", "1").stdout


def test_layers_are_sorted_by_any_column() -> None:
    rows = json.loads(run(COUNTED, "--section", "layers", "--sort", "cycles", "--format", "json").stdout)["layers"]
    counts = [row["cycles"] or 0 for row in rows]
    assert counts == sorted(counts, reverse=True)
    refused = run(COUNTED, "--section", "layers", "--sort", "nothing")
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "error: --sort: there is no column 'nothing'\nhint: columns of layers: name, calls,"
    )


def test_a_column_to_sort_by_is_in_one_of_the_sections_asked_for() -> None:
    both = ("--section", "layers", "--section", "operations")
    for sections, columns in (
        (both[:2], "columns of layers: name, calls,"),
        (both, "columns of operations: name, device_ns, .*; layers: name, calls,"),
    ):
        refused = run(CUDA, *sections, "--sort", "nosuch")  # which has neither samples nor counts
        assert refused.returncode == 2
        assert re.match(f"error: --sort: there is no column 'nosuch'\nhint: {columns}", refused.stderr)
    for column, owner, other in (("cycles", "layers", "operations"), ("p99_ns", "operations", "layers")):
        document = json.loads(run(COUNTED, *both, "--sort", column, "--format", "json").stdout)
        sorted_cells = [row[column] or 0 for row in document[owner]]
        assert sorted_cells == sorted(sorted_cells, reverse=True)
        plain = json.loads(run(COUNTED, "--section", other, "--format", "json").stdout)
        assert document[other] == plain[other]
        assert f"--sort: only {owner} has the column {column}: the order is as without it" in document["notes"][other]


def test_a_terminal_is_known_as_one() -> None:
    pty = pytest.importorskip("pty")
    shown: list[bytes] = []

    def read(descriptor: int) -> bytes:
        shown.append(os.read(descriptor, 1 << 16))
        return shown[-1]

    command = [sys.executable, "-m", "traceconv", "report", str(CUDA), "--section", "device"]
    assert pty.spawn(command, read) == 0
    assert max(len(line) for line in b"".join(shown).decode().splitlines()) <= 80


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_fit_a_terminal(width: int) -> None:
    sections = traceconv.report([KINETO, ONEDNN])
    assert max(map(len, text(sections, 0, width).split("\n"))) <= width


@given(
    st.lists(st.tuples(st.text(max_size=40), st.integers(-(10**9), 10**15), st.text(max_size=40)), max_size=4),
    st.integers(50, 200),
)
def test_no_number_is_dropped_in_a_narrow_terminal(rows: list[tuple[str, int, str]], width: int) -> None:
    columns = (Column("a", "a", Unit.TEXT), Column("b_ns", "how long it was", Unit.COUNT), Column("c", "c", Unit.TEXT))
    shown = text([Section("made", columns, list(rows))], 0, width)
    assert all(str(number) in shown for _, number, _ in rows)
    assert all(len(line) <= width for line in shown.split("\n"))


def test_a_trace_that_was_written_before_says_the_same(tmp_path: Path) -> None:
    memory = ROOT / "pytorch-kineto" / "memory-and-stacks" / "input.json"
    for path, sections in ((CUDA, ["operations", "steps"]), (memory, ["memory"]), (ONEDNN, ["primitives"])):
        traceconv.convert(path, tmp_path / "out.pftrace")
        asked = Questions(sections)
        before, after = traceconv.report([path], asked), traceconv.report([tmp_path / "out.pftrace"], asked)
        names = {"input", "counter"}  # counters stand in a group of their own
        # Devices and the overhead of the recorder are inside of the process there.
        names |= {"device", "step_share"}
        for one, other in zip(before, after, strict=True):
            assert one.rows
            assert [{key: row[key] for key in row.keys() - names} for row in one.records()] == [
                {key: row[key] for key in row.keys() - names} for row in other.records()
            ]
        (tmp_path / "out.pftrace").unlink()


@pytest.mark.parametrize("name", ["both.pftrace", "both.json"])
def test_a_trace_that_was_written_before_keeps_no_ranks(name: str, tmp_path: Path) -> None:
    ranks = [ROOT / "pytorch-kineto" / f"gloo-rank{rank}" / "input.json" for rank in (0, 1)]
    traceconv.merge(ranks, tmp_path / name)
    words = f"{name} shows ranks 0-1, but does not keep their collectives and clocks apart"
    for asked in (["ranks"], []):
        first, *_ = traceconv.report([tmp_path / name], Questions(asked))
        assert [note for note in first.notes if note.startswith(words)]
    beside, *_ = traceconv.report([tmp_path / name, *ranks], Questions(["ranks"]))
    assert [note for note in beside.notes if note.startswith(words)]
    assert f"no rank is stated by {name}" not in beside.notes
    traceconv.merge(ranks[:1], tmp_path / f"one-{name}")
    assert "does not keep" not in str(traceconv.report([tmp_path / f"one-{name}"], Questions()))


@pytest.mark.parametrize(
    ("width", "omitted"),
    [(0, []), (120, []), (80, ["mean", "p50", "p99"]), (40, [])],
)
def test_a_narrow_terminal_does_without_what_it_says(width: int, omitted: list[str]) -> None:
    (section,) = traceconv.report([KINETO], Questions(("operations",)))
    shown = text([section], 20, width).splitlines()
    table = "\n".join(shown).partition("more rows")[0]
    titles = [line for line in shown if line.strip().startswith("name  ")]
    assert (len(titles) > 1) == (width == 40)  # turned: blocks of some rows each
    assert [title for title in ("mean", "p50", "p99") if title not in table] == omitted
    said = f"too narrow for {', '.join(omitted)}: a wider terminal or --format csv shows all columns"
    assert (said in " ".join(" ".join(shown).split())) is bool(omitted)
    assert max(map(len, shown)) <= (width or 1000)


def test_titles_break_at_spaces_only() -> None:
    columns = (
        Column("name", "name", Unit.TEXT),
        *(Column(f"{at}_ns", "exposed communication", Unit.NS) for at in range(3)),
        Column("kind", "computation-bound", Unit.TEXT),
    )
    rows = [("x" * 40, 1, 2, 3, "y" * 40)]
    shown = text([Section("made", columns, rows)], 0, 100).splitlines()
    assert shown[1].split() == ["name", *["exposed"] * 3, "computation-bound"]
    assert shown[2].split() == ["communication"] * 3
    assert max(map(len, shown)) <= 100


def test_a_screen_has_tables_with_fewer_rows_after_one_that_does_not_fit() -> None:
    def turned(name: str, count: int) -> Section:
        columns = (Column("name", "name", Unit.TEXT), *(Column(f"c{at}", f"c{at}", Unit.COUNT) for at in range(count)))
        return Section(name, columns, [("x" * 30, *range(count))] * 5)

    small = Section("small", (Column("name", "name", Unit.TEXT),), [("a",)] * 9)
    sections = [turned("first", 20), turned("second", 70), small, turned("third", 30)]
    lines = screen(sections, 80, lambda names: f"{', '.join(names)}: --top 20").splitlines()
    assert [line for line in lines if line in ("first", "second", "small", "third")] == ["first", "small"]
    assert sum("x" * 30 in line for line in lines) == 2  # of five rows
    assert lines[-1] == "  more: second, third: --top 20"
    assert len(lines) <= 60


@pytest.mark.parametrize(("command", "count"), [(["report", str(CUDA)], 2), (["diff", str(GRAPH), str(CUDA)], 1)])
def test_the_options_below_a_screen_are_those_of_the_command(command: list[str], count: int) -> None:
    hint = " ".join(terminal.shown(command, 100)).partition("more: ")[2]
    ways = [re.findall(r"(--\w+) +(\w+)", way) for way in hint.split("; or all: ")]
    assert all(ways)
    assert len(ways) == count
    for options in ways:
        assert "more: " not in " ".join(terminal.shown([*command, *chain.from_iterable(options)], 100))


def test_the_tables_of_a_written_report_are_listed(tmp_path: Path) -> None:
    result = run(KINETO, "-o", path := tmp_path / "report.md")
    tables = re.findall(r"^## (\w+)", path.read_text(), re.MULTILINE)
    assert result.stderr.splitlines()[-1] == f"wrote {path}: {', '.join(tables)}"


def test_strict_refuses_what_is_lost(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(KINETO.read_bytes()[:60_000])
    page = tmp_path / "report.html"
    refused = run(cut, "--strict", "-o", page)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: cut.json: lost: the file ends inside an event")
    assert "hint: without --strict" in refused.stderr
    assert not page.exists()
    assert run(CUDA, "--strict", "--section", "overview").returncode == 0
    done = commands.run("export", cut, "--strict", "-o", tmp_path / "t.csv")
    assert done.returncode == 1
    assert "the file ends inside an event" in done.stderr
    assert not (tmp_path / "t.csv").exists()


def test_json_is_a_format() -> None:
    assert run(CUDA, "--json").stdout == run(CUDA, "--format", "json").stdout
    refused = run(CUDA, "--json", "--format", "csv")
    assert refused.returncode == 2
    assert "--json and --format csv contradict each other" in refused.stderr
