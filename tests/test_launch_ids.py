"""Ids of launches in args: the compiled module reads them as plain Python does."""

from __future__ import annotations

import itertools
import mmap
import random
import tempfile

import msgspec
import numpy as np
import pytest

from tests import kernels
from traceconv.model.args import Args
from traceconv.model.marks import LaunchMarks, ids_of

MARKS = LaunchMarks(calls=("call",), ids=("correlation", "External id"), failed="error")
OBJECTS = [
    (b'{"correlation":7}', 7),
    (b'{"correlation":0}', 0),
    (b'{"correlation":0,"External id":8}', 8),
    (b'{"External id":8,"correlation":7}', 7),
    (b'{"correlation":7,"correlation":9}', 9),
    (b'{"correlation":7,"correlation":"9"}', 0),
    (b'{"correlation":7,"error":3}', 0),
    (b'{"correlation":7,"error":0}', 7),
    (b'{"correlation":7,"error":-1}', 7),
    (b'{"correlation":-7}', 0),
    (b'{"correlation":7.0}', 0),
    (b'{"correlation":7e2}', 0),
    (b'{"correlation":999999999999999999}', 999999999999999999),
    (b'{"correlation":1000000000000000000}', 0),
    (b'{"correlation":123456789012345678901234567890}', 0),
    (b'{"correlation":true,"External id":8}', 8),
    (b'{"correlation":null,"External id":8}', 8),
    (b'{"correlation":[7],"External id":8}', 8),
    (b'{"correlation":"7","External id":8}', 8),
    (b'{"a":{"correlation":7},"b":[{"correlation":6}],"External id":8}', 8),
    (rb'{"a":"\"correlation\":7,}","b":"\\","External id":8}', 8),
    (rb'{"a\"":1,"correlation":7}', 7),
    (rb'{"correl\u0061tion":7,"External id":8}', 7),
    (b'{"correlation": 7, "External id": 8}', 7),
    (b"{}", 0),
    (b"", 0),
]


def _ids(objects: list[bytes], parts: int = 1) -> list[int]:
    """The ids of slices with these args, which lie in several parts."""
    edges = [len(objects) * number // parts for number in range(parts + 1)]
    joined = [b"".join(objects[start:end]) for start, end in itertools.pairwise(edges)]
    length = np.array([len(one) for one in objects], np.int32)
    at = np.cumsum(length, dtype=np.int64) - length
    return ids_of(Args(joined), at, length, MARKS).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("with_kernel", [True, False])
def test_ids_of_args(parts: int, with_kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_kernel:
        monkeypatch.setattr("traceconv.kernel.module", lambda _: None)
    assert _ids([text for text, _ in OBJECTS], parts) == [one for _, one in OBJECTS]


def test_ids_of_args_in_a_file_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceconv.model.args._READ_OF_FILE", 4)
    length = np.array([len(text) for text, _ in OBJECTS], np.int32)
    at = np.cumsum(length, dtype=np.int64) - length
    with tempfile.TemporaryFile() as file:
        file.write(b"".join(text for text, _ in OBJECTS))
        file.flush()
        args = Args([mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)])
    assert ids_of(args, at, length, MARKS).tolist() == [one for _, one in OBJECTS]
    assert max(len(rows) for rows, _, _ in args.by_part(at, length)) == 4


def test_any_args_have_the_same_ids_with_and_without_the_kernel() -> None:
    random_ = random.Random(3)
    values = [
        0,
        1,
        -1,
        7,
        10**17,
        10**18,
        10**25,
        1.5,
        True,
        None,
        "7",
        '"',
        "\\",
        "}",
        [],
        [1, {"error": 2}],
        {"x": 3},
    ]
    keys = ["correlation", "External id", "error", "a", 'q"', "\\", ""]
    objects = [
        msgspec.json.encode({random_.choice(keys): random_.choice(values) for _ in range(random_.randrange(5))})
        for _ in range(3000)
    ]
    found = _ids(objects, 2)
    with kernels.without():
        assert found == _ids(objects, 2)
    assert 100 < np.count_nonzero(found) < 2900


@pytest.mark.parametrize("variant", kernels.variants("strings").values())
def test_places_outside_of_the_bytes_are_refused(variant: object) -> None:
    one = np.zeros(1, np.int64)
    for at, size in ((0, 3), (-1, 2), (2, 1), (1 << 62, 1)):
        with pytest.raises(ValueError, match="outside"):
            variant.first_integers(  # type: ignore[attr-defined]
                np.frombuffer(b"{}", np.uint8), np.array([at]), np.array([size], np.int32), (b"a",), None, one
            )
        with pytest.raises(ValueError, match="outside"):
            variant.Texts().number_members(  # type: ignore[attr-defined]
                np.frombuffer(b"{}", np.uint8), np.array([at]), np.array([size], np.int32), (b"a",), one
            )
    with pytest.raises(ValueError, match="too many keys"):
        variant.first_integers(np.frombuffer(b"{}", np.uint8), one, np.array([2], np.int32), (b"a",) * 9, None, one)  # type: ignore[attr-defined]
