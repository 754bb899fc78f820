"""Recognise Chrome traces of viztracer, for its importer and for that of PyTorch, whose files are similar."""

from __future__ import annotations

import re

from traceconv.io.source import Head

_FUNCTION = re.compile(rb'"cat"\s*:\s*"(?:FEE|fee)"')
#: The last entry of `file_info`: "relu (/src/net.py:15)": ["/src/net.py", 15]}}}
_LAST_FUNCTION = re.compile(rb'\(([^"]+):(\d+)\)"\s*:\s*\[\s*"\1"\s*,\s*\2\s*\]\s*\}\s*\}\s*\}\s*\Z')
_LAST_ENTRY = 4096
_KEY = b'"viztracer_metadata"'


def begins_as_of_viztracer(head: Head) -> bool:
    """Return whether viztracer wrote a Chrome trace, by metadata or functions in the head."""
    return _KEY in head.data or _FUNCTION.search(head.data) is not None


def is_of_viztracer(head: Head) -> bool:
    """Return whether viztracer wrote a Chrome trace.

    By functions in the head, or by its metadata or `file_info` at the end.
    """
    if begins_as_of_viztracer(head):
        return True
    return _KEY in head.tail or _LAST_FUNCTION.search(head.tail[-_LAST_ENTRY:]) is not None
