"""The command `traceconv`, which is `python -m traceconv`, too."""

from __future__ import annotations

import gc

from traceconv.io import interrupts


def main() -> None:
    """Run the command line; see `traceconv.cli.main` for the exit codes."""
    interrupts.end_at_once()
    gc.disable()  # importing leaves no garbage that matters; `cli` enables it for the command
    from traceconv.cli import main as run

    try:
        run()
    finally:
        interrupts.end_silently()


if __name__ == "__main__":
    main()
