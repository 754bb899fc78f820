"""The recordings in the files, folders and archives of a command line, and the messages about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from traceconv.cli._terminal import say
from traceconv.errors import UsageError
from traceconv.expanding import Expanded, Recording, expand
from traceconv.io.folders import AnyPath, shown
from traceconv.io.limits import Limits
from traceconv.io.shown import quantity
from traceconv.model.counted import FILES, RECORDINGS

#: The most files left out that are listed by name.
_MOST_LISTED = 20


class Verbosity(Struct, frozen=True):
    """How much a command prints: errors only, a summary, or everything."""

    quiet: bool = False
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose contradict each other")


def expanded(
    files: Sequence[str],
    limits: Limits,
    *,
    skip_unknown: bool = False,
    named: Collection[str] = (),
    output: AnyPath = "",
    each: bool = False,
    verbosity: Verbosity | None = None,
) -> Expanded:
    """Return the recordings, and list what is taken of folders and archives, and what is not.

    The arguments are those of `expand`.
    """
    expansion = expand(files, skip_unknown=skip_unknown, named=named, output=output, each=each, limits=limits)
    verbosity = verbosity or Verbosity()
    if not verbosity.quiet:
        _list(expansion, verbosity.verbose)
    return expansion


def left_out_json(expansion: Expanded) -> list[dict[str, str]]:
    """Return what was left out of folders and archives."""
    return [{"file": file, "reason": reason} for file, reason in expansion.left_out.items()]


def _list(expansion: Expanded, verbose: bool) -> None:
    inside = [one for one in expansion.recordings if one.is_inside]
    taken = [_described(one) for one in inside]
    if taken:
        say(f"{quantity(len(taken), RECORDINGS)} taken:", *taken)
    left = [f"  {path}: {reason}" for path, reason in expansion.left_out.items()]
    if left:
        say(f"{quantity(len(left), FILES)} left out:", *left[: None if verbose else _MOST_LISTED])
    if len(left) > _MOST_LISTED and not verbose:
        say(f"  and {len(left) - _MOST_LISTED} more")


def _described(recording: Recording) -> str:
    name = recording.recognition.cls.name if recording.recognition else "named"
    repeats = f": merge leaves it out: {recording.repeats}" if recording.repeats else ""
    return f"  {shown(recording.path)} ({name}){repeats}"
