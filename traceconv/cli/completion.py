"""Completion of words in a shell: formats, writers, files."""

from __future__ import annotations

from click import Context, Parameter
from click.shell_completion import BashComplete, CompletionItem, add_completion_class


class _Bash(BashComplete):
    """Completion for bash, which splits FILE=FORMAT into words at the `=`, and replaces only the last one."""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in [*args, incomplete]:
            if words and (word == "=" or words[-1].endswith("=")):
                words[-1] += word
            else:
                words.append(word)
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Return an answer to bash, which replaces only the part after an `=`."""
        return f"{item.type},{item.value.rpartition('=')[2]}"


def prepare() -> None:
    """Register the completion for bash with click, in place of its own."""
    add_completion_class(_Bash)


def complete_files(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Tell the shell to complete the name of a file."""
    return [CompletionItem(incomplete, type="file")]


def complete_formats(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the formats and aliases that start with a text; in FILE=FORMAT with the text after the file."""
    from traceconv.families.identification import ALIASES
    from traceconv.families.registry import names

    file, equals, begun = incomplete.rpartition("=")
    matching = [name for name in names() if name.startswith(begun)]
    matching = matching or [name for name in ALIASES if name.startswith(begun)]
    return [CompletionItem(f"{file}{equals}{name}") for name in matching]


def complete_files_and_formats(context: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the formats after FILE=; before the `=`, tell the shell to complete a file."""
    return (complete_formats if "=" in incomplete else complete_files)(context, parameter, incomplete)


def complete_writers(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the output formats that start with a text, or else their aliases."""
    from traceconv.families import outputs

    names = [cls.name for cls in outputs.writers()]
    matching = [name for name in names if name.startswith(incomplete)]
    return list(map(CompletionItem, matching or [name for name in outputs.ALIASES if name.startswith(incomplete)]))
