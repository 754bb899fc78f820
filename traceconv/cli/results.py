"""The options of commands that write, and what they print about what they have done."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from itertools import zip_longest
from textwrap import wrap

import click
from msgspec.structs import replace

from traceconv.align import ReceiptLine
from traceconv.align.checks import Causality
from traceconv.align.identity import Together
from traceconv.align.receipt import Aligned, warned
from traceconv.api import Output, Result, check_output, check_reports
from traceconv.cli.completion import complete_files, complete_writers
from traceconv.cli.options import Verbosity, grouped
from traceconv.cli.terminal import say, width_of
from traceconv.families.outputs import writer_named
from traceconv.io.folders import AnyPath, check_all_there
from traceconv.io.shown import one_line, quantity, shown_ranks, widths_within
from traceconv.model.diagnostics import TRACKS, Severity
from traceconv.model.numbers import format_drift, format_long, format_short, format_time, format_within
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

#: Endings of packed files, which have another ending before.
_PACKED = (".gz", ".zip")
#: The most lines about processes that are printed.
_MOST_PROCESSES = 20
#: The columns of the receipt whose text can be folded.
_FOLDED = ("file", "clock", "placed by")
#: So many ranks that were placed equally have one line of the receipt.
_MANY_RANKS = 4
#: The width of the lines of the receipt where the output is not a terminal: logs shall hold them whole.
_WIDEST = 200

force_option = click.option("-f", "--force", is_flag=True, help="Replace the output if it exists.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")

#: Of the commands that print a receipt, as `verbosity: Verbosity`.
verbosity_options = grouped(
    "verbosity",
    Verbosity,
    quiet_option,
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Also print the exact offset of each file, and every diagnostic.",
    ),
)
report_option = click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="FILE",
    help="Write the evidence for the alignment to FILE, such as align.html or align.json. May be repeated.",
)
strict_option = click.option("--strict", is_flag=True, help="Fail if any data of the inputs is lost.")
_writing = (
    click.option(
        "-o",
        "--output",
        "path",
        shell_complete=complete_files,
        default="",
        metavar="FILE",
        help="The file to write; - is standard output. Default: a file beside the first input, with its name; in a "
        "pipe, standard output.",
    ),
    click.option(
        "--to",
        metavar="FORMAT",
        shell_complete=complete_writers,
        help="perfetto or chrome-json (json). Default: from the ending of the output.",
    ),
    force_option,
    strict_option,
    click.option(
        "--attribute",
        is_flag=True,
        help="Add samples, counts and primitives as args to the slices of frameworks (the layers) that caused them. "
        "Layers become the outermost frames of call stacks, so that flame graphs are split by layer.",
    ),
    click.option(
        "--layer-counters",
        is_flag=True,
        help="Like --attribute, and also draw the events of each layer as counters below its thread.",
    ),
    click.option(
        "--trim",
        default="",
        metavar="WINDOW",
        help="Write only what happened in a window of time. WINDOW is the FILE name of an input, the name of a slice "
        "('ProfilerStep#3'), or an interval ('ProfilerStep#2..4', or 1.5ms..20ms from the start). Slices that cross an "
        "edge of the window stay whole. Events outside are counted.",
    ),
)
#: What a trace is written to, as `output: Output`; one of several ranks has more to show.
output_options = grouped("output", Output, *_writing)
merged_output_options = grouped(
    "output",
    Output,
    *_writing,
    click.option(
        "--collective-flows",
        is_flag=True,
        help="Draw flows between the members of each collective, in order of rank. The members must be certain: by "
        "sequence numbers (Seq), or by their order on related clocks.",
    ),
)


def output_named(output: Output, files: Sequence[str], reports: Sequence[str] = ()) -> Output:
    """Return an output with a name: if the user gave none, one beside the first file, or standard output in a pipe.

    Raises:
        InputError: an input does not exist.
        UsageError, OutputError: the output or a report cannot be written, or the output is to be cut to an interval
            that cannot be read; `merge` finds that, too, but only once archives are unpacked.
    """
    if not output.path:
        ending = writer_named(output.to or "perfetto").suffixes[0]
        output = replace(output, path=default_name(files, ending) if sys.stdout.isatty() else "-")
    if ".." in output.trim:
        from traceconv.answers.selection import check_trim

        check_trim(output.trim, files)
    check_all_there(files)
    check_output(output, files)
    check_reports(reports, output.path, files, force=output.force)
    return output


def default_name(files: Sequence[str], suffix: str) -> str:
    """Return how an output is called by default: after the first input, beside it if one can write there.

    It is never the name of an input.
    """
    first = os.path.normpath(files[0])
    folder, name = os.path.split(os.path.abspath(first) if os.path.basename(first) in (".", "..") else first)
    if os.path.isfile(first):
        stem, ending = os.path.splitext(name)
        name = os.path.splitext(stem)[0] if ending.lower() in _PACKED else stem
    elif not os.path.isdir(first):  # a stream
        folder, name = "", "trace"
    if not os.access(folder or ".", os.W_OK):
        folder = ""
    path = os.path.join(folder, name + ("-merged" if len(files) > 1 else ""))
    inputs = {os.path.realpath(file) for file in files}
    return path + (suffix if os.path.realpath(path + suffix) not in inputs else f"-converted{suffix}")


def print_summary(result: Result, output: AnyPath, verbosity: Verbosity) -> None:
    """Print what was read, what was lost, how it was aligned and what was written to an output of this name."""
    if verbosity.quiet:
        return
    trace = result.trace
    _print_inputs(trace, result.receipt, result.causality, result.together, verbose=verbosity.verbose)
    counts = trace.counts() | {TRACKS: len(trace.tracks)}
    written = ", ".join(quantity(count, what) for what, count in counts.items() if count)
    say(f"wrote {'<stdout>' if output == '-' else output}: {written or 'no events'}")


def print_details(trace: Trace, aligned: Aligned, verbosity: Verbosity, *, problems: bool = True) -> None:
    """Print what was read and lost and how it was aligned, if all details were asked for.

    Without `problems`, what was lost or repaired and warnings are left out: the caller prints them.
    """
    if verbosity.verbose and aligned.alignment is not None:
        alignment = aligned.alignment
        _print_inputs(trace, alignment.receipt, aligned.checks, alignment.together, verbose=True, problems=problems)


def _print_inputs(
    trace: Trace,
    receipt: list[ReceiptLine],
    checks: Causality,
    together: Together,
    *,
    verbose: bool,
    problems: bool = True,
) -> None:
    hosts = {line.file: line.host for line in receipt}
    for source in trace.sources:
        print_source(source, verbose, hosts.get(source.name, ""), problems=problems)
    if len(trace.sources) > 1:
        say("", f"On one time axis: {trace.clocks[0].describe()}")
        files = [source.name for source in trace.sources]
        print_receipt(receipt, checks, together, files, verbose=verbose, warnings=problems)
    elif problems:
        say(*(warning for warning, _ in warned(receipt)))


def print_receipt(
    receipt: list[ReceiptLine],
    checks: Causality,
    together: Together,
    files: list[str],
    *,
    verbose: bool,
    warnings: bool = True,
) -> None:
    """Print how each input was placed, its warnings, processes of several inputs, and the causality checks."""
    cells = receipt_cells(receipt, files, verbose)
    say(*(receipt_table(cells, width_of(sys.stderr) or _WIDEST) or receipt_blocks(cells)))
    say(*(f"{line.file}: {line.note}" for line in receipt if line.note))
    for warning, likewise in warned(receipt) if warnings else ():
        say(warning, *[f"  {likewise}"] * bool(likewise))
    processes = together.describe()
    for words in processes[:_MOST_PROCESSES]:
        say(words)
    if len(processes) > _MOST_PROCESSES:
        rest = len(processes) - _MOST_PROCESSES
        say(f"{rest} more processes and threads that several files show: --report lists them")
    for words in checks.describe():
        say(words)


def print_source(source: SourceInfo, verbose: bool, host: str = "", *, problems: bool = True) -> None:
    """Print the balance, the notes and the diagnostics of one input, or of these only the details."""
    place = " on ".join(filter(None, (source.place_in_job, host)))
    about = f"{source.format}, {place}" if source.place_in_job else source.format
    say(f"{source.name} ({about}): {source.balance.describe()}")
    for note in source.notes:
        say(f"  note: {note}")
    for entry in source.diagnostics:
        if problems if entry.code.severity > Severity.INFO else verbose:
            say(f"  {entry.message()}")


def receipt_cells(receipt: list[ReceiptLine], files: list[str], verbose: bool = False) -> list[dict[str, str]]:
    """Return the receipt for people.

    For each clock of each input what to say by title; what would stay empty is left out.

    Args:
        receipt: how the inputs with events were placed.
        files: the names of all inputs.
        verbose: whether to say what was added to the times of each clock, and every digit.
    """
    any_moved = any(line.moved_ns for line in receipt)
    several_hosts = len({line.host for line in receipt if line.host}) > 1
    columns: dict[str, Callable[[ReceiptLine], str]] = {
        "file": lambda line: line.file,
        "host": lambda line: line.host if several_hosts else "",
        "rank": lambda line: "" if line.rank is None else str(line.rank),
        "clock": lambda line: line.clock,
        "placed by": lambda line: line.method,
        "moved": lambda line: "" if line.moved_ns is None or not any_moved else _moved(line.moved_ns, line.bound_ns),
        "offset": lambda line: f"{'+' if line.offset_ns >= 0 else ''}{format_time(line.offset_ns)}" if verbose else "",
        "drift": lambda line: format_drift(line.drift_ppm) if line.drift_ppm else "",
        "within": lambda line: line.bound_text if verbose else _bound(line),
        "matches": lambda line: _matches(line, format_time if verbose else format_short),
        "verdict": lambda line: line.verdict,
    }
    rows = [{title: one_line(cell(line)) for title, cell in columns.items()} for line in receipt]
    rows = rows if verbose else _with_ranks_together(receipt, rows)
    placed = {line.file for line in receipt}
    nothing = "nothing to place: it holds no events"
    rows += [
        dict.fromkeys(columns, "") | {"file": one_line(file), "placed by": nothing}
        for file in files
        if file not in placed
    ]
    shown = [title for title in columns if any(row[title] for row in rows)]
    return [{title: row[title] for title in shown} for row in rows]


def _with_ranks_together(receipt: list[ReceiptLine], rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return one row for many ranks with equal cells, notes and warnings; other rows stay as they are."""
    groups: dict[object, list[int]] = {}
    for at, (line, row) in enumerate(zip(receipt, rows, strict=True)):
        rest = (*(row | {"file": "", "rank": ""}).values(), line.note, *line.warnings)
        groups.setdefault(at if line.rank is None else rest, []).append(at)
    shown: dict[int, dict[str, str]] = {}
    for group in groups.values():
        if len(group) < _MANY_RANKS:
            shown |= {at: rows[at] for at in group}
        else:
            files = f"{rows[group[0]]['file']} and {len(group) - 1} more"
            ranks = shown_ranks({receipt[at].rank or 0 for at in group})
            shown[group[0]] = rows[group[0]] | {"file": files, "rank": ranks}
    return [row for _, row in sorted(shown.items())]


def receipt_table(cells: list[dict[str, str]], width: int) -> list[str]:
    """Return the lines of the receipt as a table of at most `width` columns; none if it does not fit."""
    titles = list(cells[0]) if cells else []
    rows = [titles, *(list(row.values()) for row in cells)]
    widths = widths_within(rows, [title in _FOLDED for title in titles], width - 2 * (len(titles) - 1))
    if widths is None:
        return []
    lines = []
    for row in rows:
        for parts in zip_longest(*map(wrap, row, widths), fillvalue=""):
            lines.append("  ".join(map(str.ljust, parts, widths)).rstrip())
    return lines


def receipt_blocks(cells: list[dict[str, str]]) -> list[str]:
    """Return the receipt for a narrow terminal: the lines of one block for each row."""
    lines = []
    for row in cells:
        file, *others = row.items()
        lines.append(file[1])
        lines += [f"  {title:<9}  {text}" for title, text in others if text]
    return lines


def _moved(ns: int, bound_ns: int | None) -> str:
    shown = format_long(ns) if bound_ns is None else format_within(ns, bound_ns)
    return f"{'+' if ns > 0 else ''}{shown}" if ns else "0"


def _bound(line: ReceiptLine) -> str:
    if line.bound_ns is None:
        return line.bound_text
    return f"±{format_long(line.bound_ns)}"


def _matches(line: ReceiptLine, shown: Callable[[int], str]) -> str:
    if not line.matches:
        return ""
    return f"{line.matches}" + ("" if line.residual_ns is None else f", {shown(line.residual_ns)} apart")
