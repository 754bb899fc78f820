"""`traceconv report` and `export`."""

from __future__ import annotations

from collections.abc import Sequence

import click
from msgspec import Struct

from traceconv import api
from traceconv.align.receipt import Aligned, warning_lines
from traceconv.answers import SECTION_OF, SECTIONS, Questions, answers
from traceconv.answers.frames import Frames
from traceconv.cli.options import HeadedCommand, Named, Verbosity, grouped, recordings_options, settings_options
from traceconv.cli.results import force_option, print_details, strict_option, verbosity_options
from traceconv.cli.tables import Shown, print_sections, section_options
from traceconv.cli.terminal import say, working
from traceconv.database.table_files import Partition, check_tables, write_tables
from traceconv.errors import UsageError
from traceconv.io.folders import check_all_there
from traceconv.io.output import check_target
from traceconv.io.shown import Counted, quantity
from traceconv.model.diagnostics import FILES, SLICES
from traceconv.model.trace import Trace
from traceconv.recordings import Settings

TABLES = Counted("table", "tables")

#: Forms of the report that leave out empty tables unless they were asked for by name.
_BRIEF = ("text", "markdown")

#: Other words for what a section shows.
_SECTION_FOR = {
    "kernel": "kernels",
    "ops": "operations",
    "operators": "operations",
    "functions": "operations",
    "gpu": "device",
    "cuda": "launches",
    "queue": "launches",
    "idle": "device",
    "iterations": "steps",
    "locks": "waits",
    "roofline": "flops",
    "communication": "ranks",
    "nccl": "ranks",
    "counters": "layers",
}


class _Section(click.Choice[str]):
    """The name of a section or table; for another word, the error proposes the section that is meant."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            import difflib  # costs some ms

            similar = [_SECTION_FOR[value]] if value in _SECTION_FOR else difflib.get_close_matches(value, self.choices)
            if similar:
                raise UsageError(f"there is no section {value!r}", hint=f"did you mean --section {similar[0]}?")
        return super().convert(value, param, ctx)


def part_of_slices(option: str, stated: str | None) -> str:
    """Return a condition or window, "" for all slices.

    Raises:
        UsageError: it is empty: whoever states it means a part of the slices.
    """
    if stated is not None and not stated.strip():
        raise UsageError(f"{option}: it is empty", hint=f"without {option}, all slices count")
    return stated or ""


def _questions(
    sections: tuple[str, ...],
    by: tuple[str, ...],
    sort: str,
    where: str | None,
    between: str | None,
    step_name: str,
    stacks: str,
    peak: str,
) -> Questions:
    where, between = part_of_slices("--where", where), part_of_slices("--between", between)
    keys = tuple(dict.fromkeys(key.strip() for text in by for key in text.split(",")))
    return Questions(sections, keys, step_name, sort=sort, where=where, between=between, stacks=stacks, peak=peak)


@click.command("report", cls=HeadedCommand)
@grouped(
    "questions",
    _questions,
    click.option(
        "--section",
        "sections",
        multiple=True,
        type=_Section((*SECTIONS, *SECTION_OF)),
        metavar="SECTION",
        help=f"Print only this section: {', '.join(SECTIONS[:-1])} or {SECTIONS[-1]}; or the section of the table "
        f"{', '.join([*SECTION_OF][:-1])} or {[*SECTION_OF][-1]}. May be repeated. Default: all.",
    ),
    click.option(
        "--by",
        multiple=True,
        default=("name",),
        metavar="KEY,...",
        help="Group operations, layers and allocations by name, category, track, thread, process, rank, input, shape, "
        "module, class (of modules), range or arg:KEY, or by several of them. May be repeated. Default: name.",
    ),
    click.option(
        "--sort",
        default="",
        metavar="COLUMN",
        help="Sort operations by this column, largest number first. With --section layers: sort layers.",
    ),
    click.option(
        "--where",
        metavar="CONDITION",
        help="Count only slices that meet CONDITION, such as 'name~conv and dur>1ms and args.device=1'.",
    ),
    click.option(
        "--between",
        metavar="WINDOW",
        help="Restrict the tables to a window of time: that of a slice ('ProfilerStep#3'), or an interval of names or "
        "of times from the start ('ProfilerStep#2..ProfilerStep#4', 1.5ms..20ms).",
    ),
    click.option(
        "--step-name", metavar="REGEX", default="", help="Treat slices whose whole name matches REGEX as steps."
    ),
    click.option(
        "--peak",
        metavar="TFLOPS,GBPS|DEVICE",
        default="",
        help="What the device can do at most, such as 989,3350 or H100-SXM: the section flops compares operations with "
        "it.",
    ),
    click.option("--stacks", metavar="LAYER", default="", help="Also print the call tree of the samples of a layer."),
)
@section_options()
@strict_option
@recordings_options
@settings_options(policy=True, memory=True)
@verbosity_options
def report_command(
    questions: Questions, shown: Shown, strict: bool, named: Named, settings: Settings, verbosity: Verbosity
) -> None:
    """Print tables: what was slow, how long steps took, whether a device waited.

    \b
      traceconv report kineto.json
      traceconv report kineto.json --section operations --by thread --top 10
      traceconv report kineto.json onednn.log --format json
      traceconv report kineto.json -o report.html

    Several files are merged first, as by `merge`. docs/answers.md defines all numbers.
    """
    questions.check()
    check_all_there(named.files)
    shown.check(named.files)
    recordings = named.opened(settings, verbosity, shown.path)
    with working(f"reading {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        trace, aligned = api.on_one_clock(recordings)
        if strict:
            api.refuse_losses(trace)
        sections = answers(trace, aligned, questions)
    in_report = shown.path == "-" or shown.form == "csv"
    print_details(trace, aligned, verbosity, problems=not in_report)
    if shown.form in _BRIEF and not questions.sections:
        printed = [section for section in sections if section.rows or section.name == "stacks"]
    else:
        printed = [section for section in sections if section.rows or section.name != "unanswered"]
    if shown.details and shown.form in _BRIEF:
        printed = [section.detailed() for section in printed]
    print_sections(printed, shown, verbosity, None if questions.sections else _more)


def _more(tables: Sequence[str]) -> str:
    """Return the options that print tables whose section can be asked for, and those that print all."""
    sections = dict.fromkeys(SECTION_OF.get(name, name) for name in tables)
    asked = " ".join(f"--section {name}" for name in sections if name in SECTIONS)
    return "; or all: ".join(filter(None, [asked, "--top 20"]))


class _Export(Struct, frozen=True):
    """What `export` writes, and where."""

    path: str
    by: str | None
    args: tuple[str, ...]
    slices: bool
    force: bool

    @property
    def partition(self) -> Partition | None:
        """The column that divides tables."""
        return Partition(self.by) if self.by else None

    @property
    def is_stacks(self) -> bool:
        """Whether a file of stacks is written, not a folder of tables."""
        from traceconv.answers.stack_files import ending_of

        return ending_of(self.path) != ""

    def check(self, files: Sequence[str]) -> None:
        """Raise the errors about the output that are known before the inputs are read."""
        if self.is_stacks:
            if self.args or self.by:
                raise UsageError("--arg and --by are for tables, and stacks are none")
            check_target(self.path, binary=False, force=self.force, inputs=files)
        elif self.slices:
            raise UsageError("--slices is for stacks, not for tables", hint="-o run.speedscope.json, for example")
        else:
            check_tables(self.path, None, self.partition, self.args, force=self.force)

    def write(self, trace: Trace, aligned: Aligned) -> list[str]:
        """Write a trace on one clock; return lines that say what was written."""
        if self.is_stacks:
            from traceconv.answers.stack_files import write_stacks
            from traceconv.answers.weighted_stacks import stacks_of

            stacks = stacks_of(trace, slices=self.slices)
            written = write_stacks(stacks, self.path, force=self.force)
            others = quantity(len(trace.slices.ts), SLICES)
            return [
                f"{written}; self times of {others}: --slices"
                if stacks.is_sampled and len(trace.slices.ts)
                else written
            ]
        tables = Frames(trace, aligned, self.args)
        write_tables(tables, self.path, None, self.partition, force=self.force)
        empty = "no event here has it, so its columns are empty"
        absent = [f"--arg {key}: {empty}" for key in tables.absent_args()]
        return [*absent, f"{self.path}: {quantity(len(tables), TABLES)}"]


@click.command("export", cls=HeadedCommand)
@grouped(
    "export",
    _Export,
    click.option(
        "-o",
        "--output",
        "path",
        required=True,
        metavar="OUTPUT",
        help="Folder of tables to write, with a name ending in .parquet, .csv or .arrow; database of tables, ending in "
        ".duckdb; or file of stacks, ending in .folded, .speedscope.json or .pb.gz.",
    ),
    click.option(
        "--by", type=click.Choice([str(column) for column in Partition]), help="Tables: folders for each rank or input."
    ),
    click.option("--arg", "args", multiple=True, metavar="KEY", help="Tables: add a column args.KEY for this arg."),
    click.option("--slices", is_flag=True, help="Stacks: of slices with their self times, also if there are samples."),
    force_option,
)
@strict_option
@recordings_options
@settings_options(policy=True, memory=True)
@verbosity_options
def export_command(export: _Export, strict: bool, named: Named, settings: Settings, verbosity: Verbosity) -> None:
    """Write recordings as tables, or as stacks for viewers of flame graphs.

    \b
      traceconv export kineto.json -o run.parquet
      traceconv export kineto.json onednn.log -o run.csv
      traceconv export kineto.json --arg device --arg stream -o run.arrow
      traceconv export rank0.json rank1.json --by rank -o job.parquet
      traceconv export kineto.json -o run.duckdb
      traceconv export ort.json perf.data -o run.speedscope.json
      traceconv export ort.json perf.data --slices -o run.pb.gz

    Several files are merged first, as by `merge`. Tables are for pandas, polars, DuckDB and spreadsheets: a folder
    with one file per table; docs/python-api.md lists their columns. They need pyarrow: pip install
    'traceconv[arrow]'. A .duckdb has the tables of `query` (docs/sql.md), and needs 'traceconv[sql]'.

    Stacks are one file, for speedscope.app, pprof (.pb.gz) or FlameGraph (.folded): of samples, below the layers that
    their thread was running; without samples, of slices. docs/answers.md has the details.
    """
    check_all_there(named.files)
    export.check(named.files)
    recordings = named.opened(settings, verbosity, export.path)
    with working(f"reading {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        trace, aligned = api.on_one_clock(recordings)
        if strict:
            api.refuse_losses(trace)
        lines = export.write(trace, aligned)
    print_details(trace, aligned, verbosity)
    if not verbosity.quiet:
        if not verbosity.verbose:  # else they were printed with the details
            say(*trace.losses(), *warning_lines(aligned.receipt))
        say(*lines)
