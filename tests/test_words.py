"""One word for one thing: those that the glossary replaces are in no text and no name of the product."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: What must not be said, and what to say.
FORBIDDEN = {
    r"word of the user": "what the user states",
    r"lonely": "half a flow, alone",
    r"mend(ed|s|ing)?": "repair",
    r"twins?": "duplicate inputs",
    r"(the|its) begin": "start",
}
#: In TVM's traces a begin is an event that waits for its end.
ALLOWED = {"traceconv/families/tvm": r"the begin"}
TEXTS = sorted(
    path
    for pattern in ("traceconv/**/*.py", "traceconv/**/*.j2", "docs/*.md", "README.md", "CONTRIBUTING.md")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("word", FORBIDDEN, ids=FORBIDDEN.values())
def test_what_the_glossary_replaces_is_not_said(word: str) -> None:
    found = []
    for path in TEXTS:
        allowed = next((text for folder, text in ALLOWED.items() if folder in path.as_posix()), None)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            said = re.sub(allowed, "", line) if allowed else line
            # Names are words too: `_LONELY`, `mended_text`.
            if re.search(rf"(?<![a-z]){word}(?![a-z])", said, re.IGNORECASE):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, f"say {FORBIDDEN[word]}:\n" + "\n".join(found)
