"""The command `traceconv`, which is `python -m traceconv`, too."""

from __future__ import annotations

import gc
import os
import sys

from traceconv.io import process
from traceconv.io.shown import one_line


def main() -> None:
    """Run the command line; see `traceconv.cli.main` for the exit codes."""
    process.end_at_once()
    gc.disable()  # importing leaves no garbage that matters; `cli` enables it for the command
    try:
        from traceconv.cli import main as run

        run()
    except (ImportError, MemoryError, SystemError) as error:
        if os.environ.get("TRACECONV_DEBUG") or _is_bug(error):
            raise
        try:
            reason = _why_not_loaded(error)
        except MemoryError:
            reason = "error: not enough memory\n"
        sys.stderr.write(reason)
        sys.exit(1)
    finally:
        process.end_silently()


def _is_bug(error: ImportError | MemoryError | SystemError) -> bool:
    """Return whether an error is one of the product; libraries raise SystemError where memory is limited."""
    if isinstance(error, SystemError):
        return not process.memory_hint()
    return (getattr(error, "name", "") or "").startswith("traceconv")


def _why_not_loaded(error: ImportError | MemoryError | SystemError) -> str:
    """Return the lines that say why a library cannot be loaded: mostly there is too little memory for it."""
    first: BaseException = error  # libraries wrap the reason into pages of advice
    while isinstance(cause := first.__cause__ or first.__context__, ImportError | MemoryError | SystemError):
        first = cause
    reason = one_line((str(first) or "not enough memory").strip().splitlines()[0])
    hint = process.memory_hint()
    return f"error: a library cannot be loaded: {reason}\n" + (f"hint: {hint}\n" if hint else "")


if __name__ == "__main__":
    main()
