"""What files state about how runs were recorded, and makes them hard to compare: host, device, versions, options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from traceconv.answers.section import Column, Section, Unit
from traceconv.model.trace import Trace

_COLUMNS = (
    Column("property", "property", Unit.TEXT),
    Column("before", "before", Unit.TEXT),
    Column("after", "after", Unit.TEXT),
)

_CHANGES = (Column("run", "since run", Unit.TEXT), *_COLUMNS)


def environment(trace: Trace) -> dict[str, str]:
    """Return the environment of a merged trace as its formats declare it: values by name, "" where none is stated."""
    stated: dict[str, list[str]] = {}
    metadata = {each["file"]: each["metadata"] for each in trace.metadata["inputs"]}
    for source in trace.sources:
        for name, place in source.marks.environment.items():
            stated.setdefault(name, []).extend(map(str, _values(metadata.get(source.name), place)))
    return {name: ", ".join(sorted(set(values))) for name, values in stated.items()}


def _values(value: Any, place: Sequence[str]) -> Iterator[Any]:
    """Yield what is at a place; of a list, at that place of each element."""
    if isinstance(value, list):
        for element in value:
            yield from _values(element, place)
    elif not place:
        yield from () if value in (None, "") else (value,)
    elif isinstance(value, dict):
        yield from _values(value.get(place[0]), place[1:])


def differences(before: Sequence[Mapping[str, str]], after: Sequence[Mapping[str, str]]) -> Section:
    """Return a row for each property that all runs can state and that is not the same in all of them."""
    section = Section("diff_environment", _COLUMNS)
    runs = [*before, *after]
    for name in runs[0]:
        if all(name in run for run in runs) and len({run[name] for run in runs}) > 1:
            section.rows.append((name, *("; ".join(sorted({run[name] for run in side})) for side in (before, after))))
    return section


def changes(names: Sequence[str], environments: Sequence[Mapping[str, str]]) -> Section:
    """Return a row for each run that states another value of a property than the last run before it that can state it.

    Args:
        names: the names of the runs, in order.
        environments: what each of them states.
    """
    section = Section("history_environment", _CHANGES)
    for name in dict.fromkeys(name for run in environments for name in run):
        stated = [(run, values[name]) for run, values in zip(names, environments, strict=True) if name in values]
        section.rows += [(run, name, old, new) for (_, old), (run, new) in pairwise(stated) if old != new]
    return section
