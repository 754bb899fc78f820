"""What a killed run leaves beside its output is removed by the next run for it, and nothing else is."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import HANG_S
from traceconv.io import output
from traceconv.io.output import write_folder, write_output

pytestmark = pytest.mark.skipif(output.fcntl is None, reason="parts are not locked here")


def put(target: Path) -> None:
    write_output(str(target), lambda sink: sink.write(b"new"), binary=False, force=True)


def put_folder(target: Path) -> None:
    write_folder(str(target), lambda folder: [(folder / "a").write_text("new") and "a"], force=True)


def run(target: Path, step: str, kind: str = "file") -> subprocess.Popen[bytes]:
    """A process that does something in the middle of writing an output; it has begun."""
    code = (
        "import os, signal, sys\nfrom traceconv.io.output import write_folder, write_output\n"
        f"def write(_): print('begun', flush=True); {step}; return []\n"
        + (
            f"write_output({str(target)!r}, write, binary=False, force=True)"
            if kind == "file"
            else f"write_folder({str(target)!r}, write, force=True)"
        )
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    return process


def killed(target: Path, kind: str = "file") -> Path:
    """What a run leaves that was killed."""
    before = set(target.parent.iterdir())
    with run(target, "os.kill(os.getpid(), signal.SIGKILL)", kind):
        pass
    (left,) = set(target.parent.iterdir()) - before
    return left


@pytest.mark.parametrize(("kind", "write"), [("file", put), ("folder", put_folder)])
def test_the_next_run_removes_what_a_killed_one_left(kind: str, write: Any, tmp_path: Path) -> None:
    target, other = tmp_path / "out", tmp_path / "other"
    left, of_other = [killed(target, kind), killed(target, kind)], killed(other, kind)
    write(target)
    assert not any(one.exists() for one in left)
    assert set(tmp_path.iterdir()) == {target, of_other}


@pytest.mark.parametrize(("kind", "write"), [("file", put), ("folder", put_folder)])
def test_a_run_that_goes_on_keeps_its_part(kind: str, write: Any, tmp_path: Path) -> None:
    target = tmp_path / "out"
    with run(target, "sys.stdin.read()", kind) as running:
        (part,) = tmp_path.iterdir()
        write(target)
        assert part.exists()
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(HANG_S) == (0 if kind == "file" else 1)  # the folder now holds a table of another run
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_was_being_replaced_is_kept(tmp_path: Path) -> None:
    """It may be the only one."""
    target = tmp_path / "out"
    part = killed(target, "folder")
    (part / output.KEPT).mkdir()
    put_folder(target)
    assert part.exists()


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out"
    left = killed(target)

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(output.fcntl, "flock", no_locks)
    put(target)
    assert left.exists()
    assert target.read_bytes() == b"new"


def test_the_parts_of_other_systems_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, boot = tmp_path / "out", tmp_path / "boot_id"
    left = killed(target)
    boot.write_text("another")
    monkeypatch.setattr(output, "_BOOT", boot)
    put(target)
    assert left.exists()


def test_a_part_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, tried = output._locked, list[str]()

    def late(path: str) -> int | None:
        tried.append(path)
        if len(tried) == 1:
            os.unlink(path)
        return locked(path)

    monkeypatch.setattr(output, "_locked", late)
    put(tmp_path / "out")
    assert len(tried) == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_link_with_the_name_of_a_part_leads_nowhere(tmp_path: Path) -> None:
    target, precious = tmp_path / "out", tmp_path / "precious"
    precious.write_text("x")
    link = tmp_path / f"{output._prefix('out')}x.part"
    link.symlink_to(precious)
    put(target)
    assert precious.read_text() == "x"
