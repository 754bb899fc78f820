"""Inputs of ranks of several jobs in one merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceconv.align.messages import Message, Text
from traceconv.model.trace import Trace


def warnings_of_jobs(traces: Sequence[Trace]) -> Iterator[tuple[int, Message]]:
    """For inputs that state another size of their job than the first one, what to say of that."""
    sources = enumerate(trace.sources[0] for trace in traces)
    stated = [(index, source) for index, source in sources if source.world_size is not None]
    for index, source in stated[1:]:
        _, first = stated[0]
        if source.world_size != first.world_size:
            yield index, Text.ANOTHER_JOB(ranks=source.world_size, other=first.name, its_ranks=first.world_size)
