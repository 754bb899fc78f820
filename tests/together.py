"""One test of many inputs that shows all that fail: an item of its own for each costs more than a cheap check."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


@contextmanager
def together() -> Iterator[Callable[[object], AbstractContextManager[None]]]:
    """Yield what names an input: `with together() as each: for x in ...: with each(x): assert ...`.

    Failed assertions are raised together at the end. Another error ends the test, with a note of the input.
    """
    failures = []

    @contextmanager
    def each(name: object) -> Iterator[None]:
        try:
            yield
        except AssertionError as error:
            line = traceback.extract_tb(error.__traceback__)[-1]
            failures.append(f"{name}: {error}\n  {line.filename}:{line.lineno}: {line.line}")
        except BaseException as error:
            error.add_note(f"with {name}")
            raise

    yield each
    assert not failures, "\n".join((f"{len(failures)} failed:", *failures))
