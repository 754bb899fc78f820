"""Each golden merge is placed, doubted or refused as pinned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.align.merges import Merge, merges

MERGES = list(merges())


@pytest.mark.parametrize("merge", MERGES, ids=[merge.folder.name for merge in MERGES])
def test_what_the_alignment_says(merge: Merge, tmp_path: Path, update_golden: bool) -> None:
    expected, found = merge.folder / "expect.txt", merge.described(tmp_path)
    if update_golden:
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")
