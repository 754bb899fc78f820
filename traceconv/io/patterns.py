"""Regular expressions that are compiled when they are first used.

The importers have hundreds of them, all are imported to find out the format of one file, and compiling takes longer
than everything else in importing them.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """Does what a compiled pattern does, but is not the `re` of its matches; what was used once is an attribute."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:  # asked only for what is not yet there
        if name.startswith("__"):  # of no pattern: copying and pickling look for such
            raise AttributeError(name)
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern of a text, for module level; `re.error` for a text that is none is raised on first use."""
    return cast("re.Pattern[AnyStr]", LazyPattern(text, flags))
