"""The README, the documents and the help texts say what the code does. `--update-golden` writes the generated parts."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest

import traceconv
from tests import HANG_S, terminal
from traceconv import cli
from traceconv import errors as errors_
from traceconv.database.views import VIEWS
from traceconv.families.outputs import writers
from traceconv.families.registry import importers
from traceconv.model.trace import TABLES, column_types

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
FORMATS = DOCS / "formats.md"
PICTURE_COLUMNS = 116


def formats_block() -> str:
    """Return a section of each format; `traceconv formats NAME` prints more."""
    parts = []
    told: dict[str, str] = {}
    for name, cls in importers().items():
        advice = cls.line_up
        for before, first in told.items():
            advice = advice.replace(before, f"As `{first}`.")
        told.setdefault(cls.line_up, name)
        limits = [f"- {sentence}" for sentence in cls.lost]
        parts += [
            f"## `{name}`",
            f"[{cls.title}]({cls.url}): {cls.versions}.",
            f"**Read:** {'; '.join(what for what, _ in cls.becomes)}.",
            f"**Clock:** {cls.clock.name}. {advice}",
            "\n".join(f"    {line}" for line in cls.record.splitlines()),
            *(["\n".join(limits)] if limits else []),
        ]
    return "\n\n".join(parts)


def commands() -> str:
    """Return the help of each command; an option of several commands, with the same text, is described once."""
    pages = []
    users: dict[tuple[str, str], list[str]] = {}
    for name in cli._COMMANDS:
        command = cli.cli.get_command(click.Context(cli.cli, info_name="traceconv"), name)
        assert command is not None
        context = click.Context(command, info_name=f"traceconv {name}")
        given = [param for param in command.params if isinstance(param, click.Option)]
        for record in filter(None, (param.get_help_record(context) for param in given)):
            users.setdefault(record, []).append(name)
        text = click.HelpFormatter(width=110)
        command.format_usage(context, text)
        command.format_help_text(context, text)
        pages.append("\n".join(f"    {line}".rstrip() for line in text.getvalue().splitlines()))
    parts = []
    for name, page in zip(cli._COMMANDS, pages, strict=True):
        parts += [f"## `traceconv {name}`", page]
        if own := [record for record in users if users[record] == [name]]:
            parts.append(indented(own))
    parts.append("## Options of several commands")
    for names in dict.fromkeys(tuple(names) for names in users.values() if len(names) > 1):
        heading = ", ".join(f"`{name}`" for name in names)
        parts += [f"{heading}:", indented([record for record in users if tuple(users[record]) == names])]
    return "\n\n".join(parts)


def indented(records: list[tuple[str, str]]) -> str:
    """Options and their help in two columns."""
    text = click.HelpFormatter(width=110)
    text.write_dl(records, col_max=34)
    return "\n".join(f"    {line}".rstrip() for line in text.getvalue().splitlines())


def command_in(document: Path, beginning: str) -> list[str]:
    """The arguments of the document's only command that begins like that."""
    (line,) = [line for line in document.read_text(encoding="utf-8").splitlines() if beginning in line]
    return shlex.split(line[line.index(beginning) :])[1:]


def printed(arguments: list[str]) -> str:
    return _printed(tuple(arguments))


@cache
def _printed(arguments: tuple[str, ...]) -> str:
    command = [sys.executable, "-m", "traceconv", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=HANG_S)
    return "\n".join(f"    {line}".rstrip() for line in (result.stdout + result.stderr).splitlines())


def receipt(tmp_path: Path) -> str:
    arguments = command_in(README, "traceconv merge golden")
    arguments[arguments.index("-o") + 1] = str(tmp_path / "out.pftrace")
    return printed(arguments).replace(f"{tmp_path}/", "")


def check_block(document: Path, name: str, text: str, update: bool) -> None:
    found = document.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    assert pattern.search(found), f"{document} has no block {name}"
    check_document(document, pattern.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", found), update)


def check_document(document: Path, wanted: str, update: bool) -> None:
    if update:
        document.write_text(wanted, encoding="utf-8")
    assert document.read_text(encoding="utf-8") == wanted, f"{document} is stale: pytest {__file__} --update-golden"


def test_the_document_of_formats(update_golden: bool) -> None:
    check_block(FORMATS, "formats", formats_block(), update_golden)


def test_the_evidence_of_each_format_is_told() -> None:
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", FORMATS.read_text(encoding="utf-8"), re.MULTILINE)
    told = {name: recorded for names, recorded in rows for name in re.findall(r"`([^`]*)`", names)}
    assert set(told) == set(importers())
    not_recorded = {name for name, recorded in told.items() if recorded.startswith("no")}
    assert not_recorded == {name for name, cls in importers().items() if cls.unrecorded}


def test_the_document_of_commands(update_golden: bool) -> None:
    check_block(DOCS / "cli.md", "commands", commands(), update_golden)


def test_the_columns_of_data_frames(update_golden: bool) -> None:
    trace = ROOT / "golden" / "pytorch-kineto" / "cuda-streams" / "input.json"
    frames = traceconv.frames([trace])
    rows = [
        f"| `{name}` | {', '.join(f'`{column}`' for column in frame.to_arrow().column_names)} |"
        for name, frame in frames.items()
    ]
    check_block(DOCS / "python-api.md", "frames", "\n".join(["| table | columns |", "|---|---|", *rows]), update_golden)


def test_the_views_of_queries(update_golden: bool) -> None:
    rows = [f"| `{view.name}` | {', '.join(f'`{column.name}`' for column in view.columns)} |" for view in VIEWS]
    check_block(DOCS / "sql.md", "views", "\n".join(["| view | columns |", "|---|---|", *rows]), update_golden)


def test_the_receipt_of_the_readme(tmp_path: Path, update_golden: bool) -> None:
    check_block(README, "receipt", receipt(tmp_path), update_golden)


def test_the_alignment_by_activity_of_the_guide(update_golden: bool) -> None:
    guide = DOCS / "aligning.md"
    check_block(guide, "activity", printed(command_in(guide, "traceconv align tests/")), update_golden)


def test_the_output_below_a_question_is_as_printed(update_golden: bool) -> None:
    answers = DOCS / "answers.md"
    for name, command in (
        ("ranks", "golden/pytorch-kineto/gloo"),
        ("launches", "golden/pytorch-kineto/cuda"),
        ("stated", "golden/nvprof-text"),
    ):
        check_block(answers, name, printed(command_in(answers, f"traceconv report {command}")), update_golden)


def test_the_picture_of_the_readme_is_what_a_terminal_shows(update_golden: bool) -> None:
    arguments = command_in(README, "traceconv report golden/")
    wanted = terminal.picture(
        shlex.join(["traceconv", *arguments]), terminal.shown(arguments, PICTURE_COLUMNS), PICTURE_COLUMNS
    )
    assert len(wanted) < 10_000
    check_document(DOCS / "report.svg", wanted, update_golden)
    assert "limited the steps: GPU 0 (NVIDIA H100 80GB HBM3) was idle 30.9 %" in wanted, "as the text in its place says"


def test_the_table_of_layers(update_golden: bool) -> None:
    check_block(README, "layers", printed(command_in(README, "traceconv report tests/")), update_golden)


def test_the_readme_is_short_and_shows_every_command_and_format() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 180
    assert [name for name in cli._COMMANDS if f"traceconv {name}" not in text] == []
    assert [name for name in importers() if f"`{name}`" not in text] == []


def headings(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    lines = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


def test_links_lead_somewhere_and_the_index_names_every_page() -> None:
    for document in (README, ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")):
        for target, heading in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                page = document.parent / target if target else document
                assert page.exists(), f"{document.name}: {target}"
                assert not heading or heading in headings(page), f"{document.name}: {target}#{heading}"
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("*.md") if f"({page.name})" not in index and page.name != "README.md"] == []


def test_files_that_documents_name_exist() -> None:
    for document in (ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")):
        for path in re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|pyx|j2|json|md))`", document.read_text(encoding="utf-8")):
            assert any((folder / path).exists() for folder in (ROOT, ROOT / "traceconv")), f"{document.name}: {path}"


def test_the_readme_names_every_output() -> None:
    text = README.read_text(encoding="utf-8")
    for writer in writers():
        assert f"`{writer.suffixes[0]}`" in text


def test_the_readme_says_at_once_that_perfetto_has_a_traceconv_too() -> None:
    assert "other way" in " ".join(README.read_text(encoding="utf-8").splitlines()[:10])


def test_every_picture_is_there() -> None:
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README.read_text(encoding="utf-8")):
        assert (ROOT / path).is_file(), path


def test_the_changelog_names_every_format() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in importers():
        assert f"`{name}`" in text


def test_the_examples_of_the_library_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recordings = {"kineto.json": "pytorch-kineto", "onednn.log": "onednn-verbose"}
    for name, format in recordings.items():
        (source,) = (ROOT / "golden" / format / "torch-convnet-process").glob("input.*")
        shutil.copy(source, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "python-api.md").read_text(encoding="utf-8")
    known: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, known)
    assert {"one.pftrace", "both.pftrace", "both.json"} <= {path.name for path in tmp_path.iterdir()}
    named = set(re.findall(r"`([A-Z]\w+)`", page))
    assert named <= set(traceconv.__all__) | {"TraceconvErrors"}
    errors = {
        name for name in traceconv.__all__ if isinstance(getattr(traceconv, name), type) and name in vars(errors_)
    }
    assert errors - {"TraceconvError", "AlignmentError"} <= named


def test_the_model_page_names_every_column() -> None:
    page = (DOCS / "trace-model.md").read_text(encoding="utf-8")
    for name, table in TABLES.items():
        row = f"| `{name}` | {', '.join(f'`{column}`' for column in column_types(table))} |"
        assert row in page
