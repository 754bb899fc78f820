"""What shells are told when they complete a word: formats, writers, files."""

from __future__ import annotations

from click import Context, Parameter
from click.shell_completion import CompletionItem


def files(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Return that the shell is to complete the name of a file."""
    return [CompletionItem(incomplete, type="file")]


def formats(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the formats and their aliases that begin so; in FILE=FORMAT behind the file."""
    from traceconv.families.index import ALIASES
    from traceconv.families.registry import names

    file, equals, begun = incomplete.rpartition("=")
    found = [name for name in names() if name.startswith(begun)]
    found = found or [name for name in ALIASES if name.startswith(begun)]
    return [CompletionItem(f"{file}{equals}{name}") for name in found]


def files_and_formats(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the formats behind FILE=, and before that, that it is a file."""
    return (formats if "=" in incomplete else files)(context, parameter, incomplete)


def writers(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the output formats that begin so."""
    return [CompletionItem(name) for name in ("perfetto", "chrome-json", "json") if name.startswith(incomplete)]
