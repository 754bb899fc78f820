"""`traceconv report`."""

from __future__ import annotations

from pathlib import PurePath

import click

from traceconv import api
from traceconv.align import Policy
from traceconv.answers import SECTIONS, Questions
from traceconv.answers.render import RENDERERS
from traceconv.cli import _common as common
from traceconv.cli._groups import grouped
from traceconv.cli._limits import limit_options
from traceconv.cli._terminal import say
from traceconv.errors import UsageError
from traceconv.io.limits import Limits
from traceconv.io.output import check_target, write_output
from traceconv.io.shown import lines

_ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".txt": "text",
    "": "text",
}
_ROWS, _PAGE_ROWS = 20, 500


def _questions(sections: tuple[str, ...], by: str, sort: str, where: str, step_name: str, stacks: str) -> Questions:
    keys = tuple(key.strip() for key in by.split(","))
    return Questions(sections, keys, step_name, sort=sort, where=where, stacks=stacks)


@click.command("report")
@grouped(
    "asked",
    _questions,
    click.option(
        "--section",
        "sections",
        multiple=True,
        type=click.Choice(SECTIONS),
        help="Print this section; by default all of them.",
    ),
    click.option(
        "--by",
        default="name",
        show_default=True,
        metavar="KEY,...",
        help="Group operations and layers by name, category, track, thread, process, rank, arg:KEY, or several.",
    ),
    click.option(
        "--sort",
        default="self_ns",
        show_default=True,
        metavar="COLUMN",
        help="Sort operations by this column, the largest number first.",
    ),
    click.option(
        "--where",
        default="",
        metavar="CONDITION",
        help="Count only slices for which it holds, such as 'name~conv and dur>1ms and args.device=1'.",
    ),
    click.option("--step-name", metavar="REGEX", default="", help="The whole name of the slices that are steps."),
    click.option("--stacks", metavar="LAYER", default="", help="Print the call tree of the samples of a layer, too."),
)
@click.option(
    "--top",
    type=click.IntRange(0),
    help="Print so many rows of each table; 0 for all. By default 20, and 500 on a page.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(RENDERERS)),
    help="How to print; by default the ending of the output decides, else text.",
)
@click.option(
    "-o",
    "--output",
    "path",
    default="-",
    metavar="FILE",
    help="Where to write, such as report.html; else it is printed.",
)
@common.force_option
@common.recordings
@common.policy_options
@common.memory_option
@limit_options
def command(
    asked: Questions,
    top: int | None,
    form: str | None,
    path: str,
    force: bool,
    recordings: common.Recordings,
    policy: Policy,
    memory: int | None,
    limits: Limits,
) -> None:
    """Print tables about recordings: what was slow, how long steps took, whether a device waited.

    \b
      traceconv report kineto.json
      traceconv report kineto.json --section operations --by category,thread --top 10
      traceconv report ort.json onednn.log --format json
      traceconv report kineto.json -o report.html

    Several files are merged first, as by `merge`. The definitions of all numbers are in docs/answers.md.
    """
    ending = PurePath(path).suffix.lower()
    form = form or _ENDINGS.get(ending)
    if form is None:
        known = ", ".join(filter(None, _ENDINGS))
        raise UsageError(f"{path}: no format has the ending {ending}", hint=f"--format, or one of {known}")
    (inputs, options), facts = recordings.inputs(), recordings.facts()
    api.refuse_overwriting(inputs, path)
    check_target(path, binary=False, force=force)
    with common.working(f"reading {len(inputs)} files", False):
        sections = api.report(inputs, asked, options=options, facts=facts, policy=policy, memory=memory, limits=limits)
    text = RENDERERS[form](sections, top if top is not None else _PAGE_ROWS if form == "html" else _ROWS)
    if path == "-":
        say(*text.split("\n")[:-1], err=False)
    else:
        write_output(path, lambda sink: sink.write(lines(text).encode()), binary=False, force=force)
        say(f"{path}: {', '.join(section.name for section in sections)}")
