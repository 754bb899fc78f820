"""Names of files, and names inside of them, that would steer a terminal or break out of a line or a page."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import terminal
from traceconv.io.shown import lines, one_line

#: It would clear the screen, set the title of the window, ring, go back in the line, turn text round, close a page.
EVIL = "\x1b[2J\x1b]0;title\x07\x08\x7f\x9b31m\u202eevil\u2066</script><b>"
#: What no line of ours has; lines end with a line feed, and progress is for terminals only.
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
T = 1_790_857_026_000_000_000


def kineto(folder: Path, name: str, **more: Any) -> str:
    """A profile in which whatever can have a name has a hostile one."""
    events = [
        {"ph": "M", "name": "process_name", "pid": 5, "tid": 0, "args": {"name": EVIL}},
        {"ph": "M", "name": "thread_name", "pid": 5, "tid": 5, "args": {"name": EVIL}},
        *({"ph": "X", "cat": EVIL, "name": EVIL + str(i), "pid": 5, "tid": 5, "ts": 9 * i, "dur": 5} for i in range(9)),
        {"ph": "X", "cat": "cpu_op", "name": EVIL, "pid": 5, "tid": 5, "ts": 12, "dur": 15},
        {"ph": "C", "name": EVIL, "pid": 5, "tid": 5, "ts": 12, "args": {EVIL: "no number" + EVIL}},
        {"ph": EVIL, "name": EVIL, "pid": 5, "tid": 5, "ts": 12},
        {"ph": "E", "name": EVIL, "pid": EVIL, "tid": EVIL, "ts": 12},
        {"ph": "s", "id": EVIL, "cat": EVIL, "name": EVIL, "pid": 5, "tid": 5, "ts": 12},
    ]
    about = {"schemaVersion": 1, "host_name": EVIL, "distributedInfo": {"backend": EVIL, "rank": 0}, "traceName": EVIL}
    path = folder / name
    path.write_text(json.dumps({**about, "baseTimeNanoseconds": T, EVIL: EVIL, "traceEvents": events} | more))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / EVIL.replace("/", "|")
    home.mkdir()
    return home


def run(*args: str, status: set[int] | None = None, **env: str) -> str:
    """All that a command says; neither a traceback nor anything that steers."""
    command = [sys.executable, "-c", "from traceconv.cli import main; main()", *args]
    done = subprocess.run(
        command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "utf-8", **env}, check=False
    )
    said = (done.stdout + done.stderr).decode("utf-8", "surrogateescape")
    assert "Traceback" not in said
    assert done.returncode in (status or {0, 1})
    assert not STEERING.search(said), repr(said)
    assert said
    return said


def name_of(number: int) -> str:
    return f"{EVIL.replace('/', '|')}\n{number}.json"


COMMANDS = [
    ["identify", "FILE", "OTHER"],
    ["identify", "--all", "FILE"],
    ["info", "FILE", "TABLE"],
    ["clocks", "FILE", "OTHER", "ALONE"],
    ["check", "FILE", "OUT"],
    ["convert", "-v", "FILE", "-f", "-o", "OUT"],
    ["convert", "FILE", "-f", "-o", "OUT.pftrace"],
    ["merge", "-v", "FILE", "OTHER", "-f", "-o", "OUT", "--report", "REPORT.html"],
    ["merge", "FILE", "ALONE", "-o", "NEW", "--report", "REFUSED.html"],
    ["merge", "FILE", "OTHER", "-o", "NEW.pftrace", "--offset", "EVIL=1s"],
    ["merge", "FILE", "OTHER", "-o", "NEW.pftrace", "-O", "EVIL=1"],
    ["align", "FILE", "OTHER", "--report", "ALIGNED.html"],
    ["align", "FILE", "ALONE"],
    ["report", "FILE", "--by", "track,arg:EVIL"],
    ["report", "FILE", "--by", "track,arg:EVIL", "-o", "TABLES.html"],
    ["convert", "FILE", "-o", "FILE"],
    ["convert", "MISSING", "-o", "NEW"],
    ["convert", "FILE", "-o", "EVIL"],
    ["convert", "--from", "EVIL", "FILE", "-o", "NEW"],
    ["open", "--timeout", "0.1", "--no-browser", "OUT"],
    ["open", "TABLE"],
    ["anchor", "-f", "-o", "ANCHOR", "--", "EVIL"],
    ["formats", "EVIL"],
    ["how", "EVIL"],
    ["EVIL"],
    ["convert", "--EVIL"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands(words: list[str], folder: Path) -> None:
    files = {
        "FILE": kineto(folder, name_of(1)),
        "OTHER": kineto(folder, name_of(2)),
        "ALONE": str(folder / name_of(3)),
        "TABLE": str(folder / name_of(4)),
        "OUT": kineto(folder, name_of(5)),
        **{name: str(folder / f"{name}{name_of(6)}") for name in ("NEW", "MISSING", "ANCHOR")},
    }
    events = [{"ph": "X", "name": f"{EVIL}{i}", "pid": 1, "tid": 1, "ts": i, "dur": 1} for i in range(3)]
    Path(files["ALONE"]).write_text(json.dumps([*events, {"ph": "i", "name": EVIL, "ts": EVIL}]))
    Path(files["TABLE"]).write_text(f"nothing that anybody knows {EVIL}\n" * 5)
    pages = {word: folder / f"{EVIL.replace('/', '|')}{word}" for word in words if word.endswith((".html", ".pftrace"))}
    args = [str(pages.get(word, files.get(word, word.replace("EVIL", EVIL)))) for word in words]
    run(*args, status={0, 1, 2, 3, 4, 127})
    for word, page in pages.items():
        if word.endswith(".html"):
            text = page.read_text()
            assert not STEERING.search(text)
            assert "<b>" not in text
            assert text.count("</script>") == text.count("<script")


def test_a_narrow_terminal(folder: Path) -> None:
    merged = ["merge", kineto(folder, name_of(1)), kineto(folder, name_of(2)), "-o", str(folder / "out.json")]
    assert "\\x1b" in run(*merged, COLUMNS="40")


def test_csv_on_a_terminal(folder: Path) -> None:
    """In a file or a pipe it has names as they are."""
    found = terminal.shown(["query", kineto(folder, "a.json"), "select name from slices", "--format", "csv"], 80)
    assert not STEERING.search("".join(found))
    assert any("\\x1b[2J" in line for line in found)


def test_names_that_are_no_text(folder: Path) -> None:
    path = os.fsencode(folder) + b"/\xff\x1b.json"
    Path(os.fsdecode(path)).write_text(Path(kineto(folder, "plain.json")).read_text())
    assert "\\udcff" in run("info", os.fsdecode(path), PYTHONUTF8="1")


def test_only_one_place_prints() -> None:
    """Whatever is said goes through `say`, which escapes it; `__main__` prints where that cannot be loaded.

    From Python, `open` prints its link, likewise escaped.
    """
    folder = Path(__file__).parent.parent / "traceconv"
    printing = {"print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write"}
    found = {
        path.name
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in printing
    }
    assert found == {"terminal.py", "__main__.py", "opening.py"}


def test_what_is_shown() -> None:
    assert one_line("a\x1b[0m\n\tb\u2028é😀\udcff") == "a\\x1b[0m\\n\\tb\\u2028é😀\\udcff"
    assert lines("a\x1b\r\n\tb") == "a\\x1b\\r\n\tb"
