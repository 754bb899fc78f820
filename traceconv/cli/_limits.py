"""The options that bound what an input may take; commands that need nothing else of `_common` start sooner so."""

from __future__ import annotations

import click

from traceconv.cli._groups import grouped
from traceconv.io.limits import DEFAULT_LIMITS, Limits
from traceconv.io.spill import parse_size


def limits_of(max_length: str, max_ratio: int) -> Limits:
    """Return what the options say."""
    return Limits(parse_size(max_length, "--max-length"), max_ratio)


LIMITS = (
    click.option(
        "--max-length",
        metavar="SIZE",
        default="16M",
        show_default=True,
        help="Longest line, name or arg, in bytes. Longer lines and args are left out; longer names are cut.",
    ),
    click.option(
        "--max-ratio",
        type=click.IntRange(0),
        default=DEFAULT_LIMITS.ratio,
        show_default=True,
        help="Refuse an input that grows to more than this many times its size: beyond 32 MB unpacked, beyond 256 MB "
        "in the args of its events or in the output. 0: no limit.",
    ),
)
#: The command gets them as `limits`.
limit_options = grouped("limits", limits_of, *LIMITS)
