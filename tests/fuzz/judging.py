"""What is wrong with a run: each fault as one line."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from tests import oracle
from tests.fuzz.commands import Run
from tests.fuzz.execution import MOST_MEMORY, MOST_SECONDS, MOST_WAITING, Ended, execute

Files = dict[str, bytes]
#: What each command may end with.
_CODES = range(5)
#: What `diff` ends with besides, by its verdict: its output is there.
_VERDICTS = (5, 6)
#: The most traces that one trace processor loads, for its memory grows.
_SERVED = 50
_loaded = 0


def files(folder: Path) -> Files:
    """All files of a folder, and their content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def carried_out(run: Run, folder: Path, compiled: bool) -> tuple[Ended, Files]:
    """What a run says, and its outputs, which lie in `out` afterwards."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    ended = execute(run.words, folder, stdin=run.stdin, compiled=compiled)
    return ended, files(out)


def faults_of(run: Run, folder: Path, idle: int) -> tuple[list[str], Ended]:
    """Carry out a run, and say what is wrong with it."""
    before = files(folder / "in")
    ended, outputs = carried_out(run, folder, compiled=True)
    found = [*_faults(ended, outputs, run, sum(map(len, before.values())), idle), *_left(folder, before)]
    if run.compared and ended.code >= 0:
        plain, others = carried_out(run, folder, compiled=False)
        found += [f"without the kernel: {fault}" for fault in _faults(plain, others, run, 1 << 40, idle)]
        said, said_plain = (
            sorted(told.stderr.splitlines()) for told in (ended, plain)
        )  # batches report in other orders
        same = (plain.code, plain.stdout, said_plain, others) == (ended.code, ended.stdout, said, outputs)
        found += [] if same else [f"the kernel changes {_difference(ended, plain, outputs, others)}"]
    return found, ended


def _faults(ended: Ended, outputs: Files, run: Run, size: int, idle: int) -> list[str]:
    found = []
    has_verdict = run.words[0] == "diff" and ended.code in _VERDICTS
    last = ended.foreign.strip().splitlines()[-1:]
    if last:
        found.append(f"a foreign exception: {last[0][:200]}")
    elif ended.code not in _CODES and not has_verdict:
        found.append(f"ended with {ended.code}")
    elif b"\nTraceback (most recent" in b"\n" + ended.stderr:
        found.append("a traceback was printed")
    if ended.seconds > MOST_SECONDS:
        found.append(f"took {ended.seconds:.0f} s")
    if ended.code == -signal.SIGALRM:
        found.append(f"did not end in {MOST_WAITING} s")
    if ended.memory > idle + size + MOST_MEMORY:
        found.append(f"took {(ended.memory - idle) >> 20} MB for {size} bytes")
    named = {Path(word).name for word in run.words if word.startswith("out/")}
    if other := {Path(name).parts[0] for name in outputs} - named:
        found.append(f"left {sorted(other)}")
    target = run.words[-1].removeprefix("out/") if run.words[-2:-1] == ["-o"] else ""
    there = any(Path(name).parts[0] == target for name in outputs)
    if target and there != (has_verdict or ended.code == 0):
        found.append(f"ended with {ended.code}, and the output is {'there' if there else 'not there'}")
    return found


def _left(folder: Path, before: Files) -> list[str]:
    found = ["changed its inputs"] if files(folder / "in") != before else []
    return [*found, *(["left temporary files"] if any((folder / "tmp").iterdir()) else [])]


def _difference(one: Ended, other: Ended, outputs: Files, others: Files) -> str:
    for what in ("code", "stdout", "stderr"):
        if getattr(one, what) != getattr(other, what):
            return what
    return ", ".join(name for name in outputs.keys() | others.keys() if outputs.get(name) != others.get(name))


def trace_of(run: Run, folder: Path) -> Path | None:
    """The trace that a run wrote, if it did."""
    path = folder / run.words[-1]
    written = run.words[0] in ("convert", "merge") and run.words[-2] == "-o"
    return path if written and path.is_file() else None


def faults_of_trace(path: Path, folder: Path) -> list[str]:
    """What the trace processor and our own check say against a trace."""
    global _loaded
    _loaded += 1
    if _loaded % _SERVED == 0:
        oracle.shutdown()
    try:
        with oracle.open_trace(path) as loaded:
            problems = [f"{row['name']}: {row['value']}" for row in oracle.import_problems(loaded)]
    except oracle.TraceRefused as refused:
        problems = [f"refused: {str(refused)[:200]}"]
    found = [f"the trace processor says: {', '.join(problems)}"] if problems else []
    check = execute(["check", str(path)], folder)
    if check.code:
        found.append(f"check says: {(check.stdout + check.stderr).decode(errors='replace')[:300]}")
    return found
