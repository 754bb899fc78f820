"""Where the CPU time of a command goes: `python -m tests.benchmarks.phases convert trace.json -o out.pftrace`.

A timer interrupts the command every millisecond of its CPU time, and the time since the last interruption goes to the
innermost function of traceconv that is running then. Python handles an interruption as soon as compiled code returns,
so the time of a kernel, and of every other compiled function, goes to the function that called it. What several
threads take goes to the main one.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from types import FrameType

INTERVAL_S = 0.001
_IMPORTS = "start-up"
#: The first part of a module's name that fits decides.
PHASES: Mapping[str, str] = {
    "traceconv.families.perfetto.writer": "encoding",
    "traceconv.families.perfetto.tree": "encoding",
    "traceconv.families.chrome.writer": "encoding",
    "traceconv.families": "reading",
    "traceconv.reading": "reading",
    "traceconv.io.source": "reading",
    "traceconv.io.log_collectors": "reading",
    "traceconv.io.sqlite": "reading",
    "traceconv.families.registry": "reading",
    "traceconv.model.layout": "ordering",
    "traceconv.writers.order": "ordering",
    "traceconv.writers": "encoding",
    "traceconv.model": "reading",
    "traceconv.io.output": "writing",
    "traceconv.align": "alignment",
    "traceconv.merging.traces": "alignment",
    "traceconv.merging.processes": "alignment",
}


def phase_of(module: str, function: str) -> str:
    """What a function of traceconv is part of."""
    if function.startswith("sort") or "order" in function:
        return "ordering"
    return next((phase for prefix, phase in PHASES.items() if module.startswith(prefix)), "everything else")


class Sampler:
    """Adds up CPU time by phase and by function while it runs."""

    def __init__(self) -> None:
        self.phases: Counter[str] = Counter({_IMPORTS: time.process_time()})  # Python's own start
        self.functions: Counter[str] = Counter()
        self._last = time.process_time()

    def __enter__(self) -> Sampler:
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._add(sys._getframe())

    def _sample(self, number: int, frame: FrameType | None) -> None:
        self._add(frame)

    def _add(self, frame: FrameType | None) -> None:
        now = time.process_time()
        phase, function = _place(frame)
        self.phases[phase] += now - self._last
        self.functions[function] += now - self._last
        self._last = now


def _place(frame: FrameType | None) -> tuple[str, str]:
    """The phase and the innermost function of traceconv; importing anything is start-up, whenever it happens."""
    found: tuple[str, str] | None = None
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module == "importlib._bootstrap":
            return _IMPORTS, "imports"
        if found is None and module.startswith("traceconv"):
            function = frame.f_code.co_qualname
            found = phase_of(module, function.rpartition(".")[2]), f"{module}.{function}"
        frame = frame.f_back
    return found or ("everything else", "outside traceconv")


def main() -> None:
    """Run `traceconv` with the arguments; print what took the time."""
    sampler = Sampler()
    code: object = 0
    with sampler:
        try:
            from traceconv.cli import main as traceconv

            sys.argv[0] = "traceconv"
            traceconv()
        except SystemExit as ended:
            code = ended.code
    total = sum(sampler.phases.values())
    for counts, shown in ((sampler.phases, len(sampler.phases)), (sampler.functions, 25)):
        print()
        for name, seconds in counts.most_common(shown):
            print(f"{seconds:8.2f} s {seconds / total:5.0%}  {name}")
    sys.exit(code)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
