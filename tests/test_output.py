"""Outputs: whole or not at all, and nothing that the user did not name is touched."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from traceconv.errors import OutputError, TraceconvError, UsageError
from traceconv.io.output import check_target, write_output


def hello(sink: BinaryIO) -> int:
    sink.write(b"hello")
    return 5


def put(target: str | Path, force: bool = False) -> int:
    return write_output(str(target), hello, binary=True, force=force)


def ask(target: str | Path) -> None:
    check_target(str(target), binary=True, force=False)


@contextlib.contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_new_file(tmp_path: Path) -> None:
    assert put(tmp_path / "out") == 5
    assert (tmp_path / "out").read_bytes() == b"hello"
    assert os.listdir(tmp_path) == ["out"]


def test_a_name_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put("out")
    assert os.listdir() == ["out"]


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    put(tmp_path / ("µ" * 127))
    assert os.listdir(tmp_path) == ["µ" * 127]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_are_the_usual_ones(mask: int, mode: int, tmp_path: Path) -> None:
    with umask(mask):
        put(tmp_path / "out")
        assert os.umask(mask) == mask
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == mode


def test_an_existing_file_needs_force(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"precious")
    with pytest.raises(UsageError, match="exists") as error:
        put(path)
    assert "--force" in error.value.hint
    assert path.read_bytes() == b"precious"
    put(path, force=True)
    assert path.read_bytes() == b"hello"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_replaced_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_bytes(b"secret")
    path.chmod(mode)
    link.symlink_to("out")
    for name in (path, link):
        put(name, force=True)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_nothing_appears_before_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def write(sink: BinaryIO) -> None:
        sink.write(b"new")
        sink.flush()
        assert path.read_bytes() == b"old"

    write_output(str(path), write, binary=True, force=True)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_file_that_appears_meanwhile_is_not_replaced(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where two runs write one output: the one that ends first has it."""
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "out"

    def write(sink: BinaryIO) -> None:
        put(path)
        sink.write(b"later")

    with pytest.raises(UsageError, match="appeared") as error:
        write_output(str(path), write, binary=True, force=False)
    assert "--force" in error.value.hint
    assert path.read_bytes() == b"hello"
    assert os.listdir(tmp_path) == ["out"]
    write_output(str(path), lambda sink: sink.write(b"forced"), binary=True, force=True)
    assert path.read_bytes() == b"forced"


def refuse(*_: object) -> None:
    raise PermissionError(errno.EPERM, "no hard links here")


class Interrupted(BaseException):
    """As a Ctrl-C would come."""


@pytest.mark.parametrize(
    "error", [ValueError("x"), AssertionError("x"), KeyboardInterrupt(), Interrupted(), MemoryError()]
)
@pytest.mark.parametrize("existing", [False, True])
def test_a_failure_leaves_nothing_behind(error: BaseException, existing: bool, tmp_path: Path) -> None:
    path = tmp_path / "out"
    if existing:
        path.write_bytes(b"old")

    def write(sink: BinaryIO) -> None:
        sink.write(b"x" * 100_000)
        raise error

    with pytest.raises(type(error)):
        write_output(str(path), write, binary=True, force=True)
    assert os.listdir(tmp_path) == (["out"] if existing else [])
    assert not existing or path.read_bytes() == b"old"


@pytest.mark.parametrize("step", ["write", "fsync", "replace", "link", "chmod", "close"])
def test_a_full_disk(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(sink: BinaryIO) -> None:
        if step == "write":
            full()
        sink.write(b"x")
        if step == "close":
            os.close(sink.fileno())

    if step in ("fsync", "replace", "link", "chmod"):
        monkeypatch.setattr(os, step, full)
    with pytest.raises(OutputError) as error:
        write_output(str(path), write, binary=True, force=step == "replace")
    assert error.value.message.startswith(f"{path}: ")
    if step != "close":
        assert error.value.message == f"{path}: No space left on device"
        assert "space" in error.value.hint
    assert os.listdir(tmp_path) == []


def test_our_own_errors_stay_what_they_are(tmp_path: Path) -> None:
    def write(sink: BinaryIO) -> None:
        raise TraceconvError("own", hint="h")

    with pytest.raises(TraceconvError, match="own") as error:
        write_output(str(tmp_path / "out"), write, binary=True, force=False)
    assert type(error.value) is TraceconvError
    assert os.listdir(tmp_path) == []


# -- targets that cannot be written ------------------------------------------------------------------------------------


def test_a_directory(tmp_path: Path) -> None:
    for force in (False, True):
        with pytest.raises(OutputError, match="is a directory"):
            put(tmp_path, force)
    with pytest.raises(OutputError, match="is a directory"):
        put("")


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="No such file") as error:
        put(tmp_path / "absent" / "out")
    assert error.value.hint == "the folder must exist"


@pytest.mark.parametrize("name", ["a" * 300, "nul\0inside"])
def test_names_that_cannot_be(name: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        put(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="Not a directory"):
        put(tmp_path / "file" / "out")


def test_what_will_be_refused_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("absent/out")
    for name in ("", "file", "file/out", "absent/out", "link", "nul\0"):
        refused: list[str] = []
        for refuse in (ask, put):
            with pytest.raises(TraceconvError) as error:
                refuse(tmp_path / name)
            refused.append(f"{error.value.message} {error.value.hint}")
        assert refused[0] == refused[1]
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_asking_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    for name in ("new", "old", os.devnull):
        check_target(str(tmp_path / name), binary=True, force=True)
    check_target("-", binary=False, force=False)
    assert os.listdir(tmp_path) == ["old"]
    assert (tmp_path / "old").read_bytes() == b"old"


# -- links ------------------------------------------------------------------------------------------------------------


def test_a_link_is_written_through(tmp_path: Path) -> None:
    """The link stays a link, as with any other program; the file that it names is replaced as a whole."""
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link.symlink_to("folder/target")
    with pytest.raises(UsageError, match="exists"):
        put(link)
    put(link, force=True)
    assert link.is_symlink()
    assert target.read_bytes() == b"hello"


def test_a_link_to_nothing_yet(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    put(link)
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"hello"


def test_another_name_of_the_file_keeps_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    (tmp_path / "other").hardlink_to(tmp_path / "out")
    put(tmp_path / "out", force=True)
    assert (tmp_path / "other").read_bytes() == b"old"


# -- devices and streams ----------------------------------------------------------------------------------------------


def test_the_null_device() -> None:
    assert put(os.devnull) == 5
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device() -> None:
    with pytest.raises(OutputError, match="/dev/full: No space left on device"):
        put("/dev/full")


def test_a_pipe_by_name(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    put(path)
    reader.join()
    assert got == [b"hello"]
    assert stat.S_ISFIFO(path.stat().st_mode)


SCRIPT = """
import sys
from traceconv.errors import TraceconvError
from traceconv.io.output import write_output
kind, size = sys.argv[1], int(sys.argv[2])
try:
    write_output("-", lambda sink: [sink.write(b"x" * 1000) for _ in range(size)], binary=kind == "binary", force=False)
except TraceconvError as error:
    print(type(error).__name__, error.message, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def stdout_process(kind: str, size: int, stdout: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, kind, str(size)], stdout=stdout, stderr=subprocess.PIPE)


def test_standard_output() -> None:
    process = stdout_process("binary", 3, subprocess.PIPE)
    assert process.communicate() == (b"x" * 3000, b"")
    assert process.returncode == 0


@pytest.mark.parametrize(("kind", "code"), [("binary", 2), ("text", 0)])
def test_a_terminal_gets_text_only(kind: str, code: int) -> None:
    ours, theirs = pty.openpty()
    process = stdout_process(kind, 1, theirs)
    os.close(theirs)
    _, errors = process.communicate()
    assert process.returncode == code
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error
        while chunk := os.read(ours, 10_000):
            shown += chunk
    os.close(ours)
    assert shown == (b"" if code else b"x" * 1000)
    assert (b"terminal" in errors) == bool(code)


@pytest.mark.parametrize("size", [1, 1000])
def test_a_reader_that_goes_away(size: int) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = stdout_process("binary", size, write_end)
    os.close(write_end)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert errors == b"OutputError standard output was closed before the trace was written\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("size", [1, 1000])
def test_standard_output_on_a_full_disk(size: int) -> None:
    with open("/dev/full", "wb") as full:
        process = stdout_process("binary", size, full.fileno())
        _, errors = process.communicate()
    assert process.returncode == 1
    assert errors == b"OutputError standard output: No space left on device\n"
