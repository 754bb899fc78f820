"""Inputs of ranks of several jobs in one merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceconv.ir.trace import Trace


def warnings_of_jobs(traces: Sequence[Trace]) -> Iterator[tuple[int, str]]:
    """For inputs that state another size of their job than the first one, what to say of that."""
    sources = enumerate(trace.sources[0] for trace in traces)
    stated = [(index, source) for index, source in sources if source.world_size is not None]
    for index, source in stated[1:]:
        _, first = stated[0]
        if source.world_size != first.world_size:
            yield (
                index,
                f"it is of a job of {source.world_size} ranks, {first.name} of one of {first.world_size}: two jobs, so "
                "that what their ranks did together is not compared",
            )
