"""One command in a process of its own, forked from one that has imported everything: what it said, took and wrote."""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import traceback
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import traceconv
from tests import kernels
from traceconv import cli, kernel
from traceconv.errors import ImporterFailed

#: A run that takes as much CPU time is ended, s, and one that waits for as long.
MOST_SECONDS, MOST_WAITING = 20, 600
#: What a run may take above the idle process and the size of its inputs, bytes.
MOST_MEMORY = 500 << 20
#: Where a run gets no more memory, so that the machine keeps some, bytes.
_NO_MORE_MEMORY = 4 << 30
_FOREIGN = "foreign.txt"


@dataclass(frozen=True)
class Ended:
    """A process that has ended.

    Attributes:
        code: its exit code; negative: the signal that ended it.
        stdout, stderr: what it said.
        foreign: the tracebacks of errors that are none of ours, also of those that were reported as a bug.
        seconds: its CPU time.
        memory: its peak, bytes.
    """

    code: int
    stdout: bytes
    stderr: bytes
    foreign: str
    seconds: float
    memory: int


def import_everything() -> None:
    """Import all that a command may import, before processes are forked."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for module in pkgutil.walk_packages(traceconv.__path__, "traceconv."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("duckdb", "pyarrow", "pyarrow.parquet", "pyarrow.csv", "zstandard"):
        importlib.import_module(name)
    for name in kernel.MODULES:
        kernel.module(name)
    gc.collect()
    gc.freeze()


def execute(words: list[str], folder: Path, *, stdin: str = "", compiled: bool = True) -> Ended:
    """Run a command in a folder, where `said` takes what it says and `tmp` its temporary files."""
    said = folder / "said"
    said.mkdir(exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    others = _finalizers()
    process = os.fork()
    if not process:
        code = 70
        try:
            code = _child(words, folder, said, stdin, compiled)
            _finalise(others)
        finally:
            os._exit(code)
    _, status, used = os.wait4(process, 0)
    foreign = said / _FOREIGN
    return Ended(
        os.waitstatus_to_exitcode(status),
        (said / "stdout").read_bytes(),
        (said / "stderr").read_bytes(),
        foreign.read_text(errors="backslashreplace") if foreign.exists() else "",
        used.ru_utime + used.ru_stime,
        used.ru_maxrss << 10,
    )


def _finalizers() -> set[Any]:
    return set(weakref.finalize._registry)  # type: ignore[attr-defined]


def _finalise(others: set[Any]) -> None:
    """Do what a process does that ends by itself, but for what it has of its parent."""
    for finalizer in _finalizers() - others:
        finalizer()


def _child(words: list[str], folder: Path, said: Path, stdin: str, compiled: bool) -> int:
    (said / _FOREIGN).unlink(missing_ok=True)
    os.chdir(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")  # the parent has looked it up
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS + 1, MOST_SECONDS + 2))
    resource.setrlimit(resource.RLIMIT_DATA, (_NO_MORE_MEMORY, _NO_MORE_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(MOST_WAITING)
    for number, path in enumerate((stdin or os.devnull, said / "stdout", said / "stderr")):
        file = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["traceconv", *words]
    with _noted(said / _FOREIGN) as note, nullcontext() if compiled else kernels.without():
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0)
        except BaseException:
            note()
            return 1
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
    return 0


@contextmanager
def _noted(path: Path) -> Iterator[Any]:
    """Write down the error that is handled: when called, and where it is reported as a bug, warned of or dropped."""

    def note() -> None:
        with path.open("a", errors="backslashreplace") as file:
            file.write(traceback.format_exc())

    def failed(self: ImporterFailed, *args: Any, **keywords: Any) -> None:
        note()
        super(ImporterFailed, self).__init__(*args, **keywords)

    def dropped(dropped: Any) -> None:
        with path.open("a", errors="backslashreplace") as file:
            traceback.print_exception(dropped.exc_value, file=file)

    ImporterFailed.__init__ = failed  # type: ignore[method-assign, assignment]
    sys.unraisablehook = dropped
    warnings.simplefilter("error")
    yield note


@cache
def idle_memory() -> int:
    """The peak of a command that reads nothing, bytes."""
    with tempfile.TemporaryDirectory() as folder:
        return execute(["formats"], Path(folder)).memory
