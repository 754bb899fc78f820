"""The recordings that the files, folders and archives of a command line stand for, and what is said of that."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from traceconv.cli._terminal import say
from traceconv.errors import UsageError
from traceconv.expanding import Expanded, expand
from traceconv.io.folders import AnyPath, shown
from traceconv.io.limits import Limits
from traceconv.io.shown import quantity

#: So many files that are left out are listed.
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class Verbosity:
    """How much a command says of what it did: errors only, what people want to know, or all."""

    quiet: bool = False
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose contradict each other")


def recordings_in(
    files: Sequence[str],
    limits: Limits,
    *,
    skip_unknown: bool = False,
    named: Collection[str] = (),
    output: str = "",
    said: Verbosity | None = None,
) -> list[AnyPath]:
    """Return the recordings, and list what is taken of folders and archives, and what is not.

    The arguments are those of `expand`.
    """
    expanded = expand(files, skip_unknown=skip_unknown, named=named, output=output, limits=limits)
    said = said or Verbosity()
    if not said.quiet:
        _list(expanded, said.verbose)
    return expanded.paths


def _list(expanded: Expanded, verbose: bool) -> None:
    taken = [(shown(path), format) for path, format in zip(expanded.paths, expanded.formats, strict=True) if format]
    if taken:
        say(f"{quantity(len(taken), 'recordings')} taken:", *(f"  {path} ({format})" for path, format in taken))
    left = [f"  {path}: {reason}" for path, reason in expanded.left_out.items()]
    if left:
        say(f"{quantity(len(left), 'files')} left out:", *left[: None if verbose else _MOST_LISTED])
    if len(left) > _MOST_LISTED and not verbose:
        say(f"  and {len(left) - _MOST_LISTED} more")
