"""JSON that is read whole: the elements of long arrays come in parts, from memory or from a file."""

from __future__ import annotations

import json
import mmap
import os
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.together import together
from traceconv import api
from traceconv.errors import MalformedInput, OutputError
from traceconv.families.common import json_document
from traceconv.families.common.json_document import JsonDocument, is_array
from traceconv.io.source import Source

ROOT = Path(__file__).parents[1] / "golden"


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_document, "_PART", 50)
    monkeypatch.setattr(json_document, "_WINDOW", 40)


@pytest.fixture(params=[0, 64 << 20], ids=["in a file", "in memory"])
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(json_document, "_IN_MEMORY", request.param)
    return int(request.param)


def document(folder: Path, text: bytes) -> JsonDocument:
    path = folder / "in.json"
    path.write_bytes(text)
    return JsonDocument(Source(path))


def elements(found: JsonDocument, key: str) -> list[Any]:
    members = msgspec.json.decode(found.text, type=dict[str, msgspec.Raw])
    return [json.loads(bytes(element)) for element in found.elements(members[key])]


def value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(7 if depth < 3 else 4)
    if kind < 4:
        text = "".join(chance.choice('ab,"{}[]\\ ü') for _ in range(chance.randrange(9)))
        return (chance.randrange(1000), text, None, 1.5)[kind]
    inner = [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return inner if kind == 6 else {str(number): one for number, one in enumerate(inner)}


@pytest.mark.usefixtures("small_parts")
def test_elements_are_those_of_the_array(limit: int, tmp_path: Path) -> None:
    with together() as each:
        for seed in range(60):
            with each(seed):
                check_elements(seed, limit, tmp_path)


def check_elements(seed: int, limit: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    kinds = (lambda: value(chance), lambda: {"x": value(chance, 1)}, lambda: [value(chance, 1)], lambda: "a,b")
    array = [kinds[seed % 4]() for _ in range(chance.randrange(40))]
    text = json.dumps({"a": array, "b": 1}, ensure_ascii=seed % 3 == 0, indent=chance.choice([None, 1]))
    mark = "\ufeff" if seed % 2 else ""
    found = document(tmp_path, (mark + text).encode())
    assert isinstance(found.text, mmap.mmap) == (limit == 0)
    assert elements(found, "a") == array


@pytest.mark.usefixtures("small_parts")
def test_an_array_comes_in_parts(tmp_path: Path) -> None:
    found = document(tmp_path, json.dumps({"a": [{"n": n} for n in range(100)]}).encode())
    array = msgspec.json.decode(found.text, type=dict[str, msgspec.Raw])["a"]
    first = json_document._part(memoryview(array), 1, 50, json_document._ENDS[b"{"])
    assert len(first[1]) < 10
    assert first[0] > 50


@pytest.mark.usefixtures("limit")
def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    assert elements(document(tmp_path, b'{"a":["\xff","\xc3"]}'), "a") == ["\ufffd", "\ufffd"]


def test_other_values_are_no_array(tmp_path: Path) -> None:
    found = document(tmp_path, b'{"a":"[]"}')
    raw = msgspec.json.decode(found.text, type=dict[str, msgspec.Raw])["a"]
    assert not is_array(raw)
    with pytest.raises(msgspec.ValidationError):
        found.elements(raw)


def test_a_folder_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(json_document, "_IN_MEMORY", 0)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with pytest.raises(OutputError, match=r"temporary file in .*none: No such file or directory"):
        document(tmp_path, b'{"a":[]}')


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    "case",
    [
        "deepsparse/v180-analysis",
        "openvino/json-cpp",
        "openvino/json-detailed",
        "openvino/json-sorted",
        "rocprof/sdk",
        "rocprof/sdk-counters",
        "tensorrt/layer-names",
        "tensorrt/layers",
        "tensorrt/profile-unescaped",
        "tensorrt/times",
        "tvm-profile/vm-json",
    ],
)
def test_same_bytes(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = (ROOT / case).glob("input.*")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    outputs = []
    for size in (64 << 20, 0):
        monkeypatch.setattr(json_document, "_IN_MEMORY", size)
        monkeypatch.setattr(json_document, "_PART", size or 50)
        api.convert(source, tmp_path / f"{size}.pftrace")
        outputs.append((tmp_path / f"{size}.pftrace").read_bytes())
    assert outputs[0] == outputs[1]
    assert os.listdir(temporary) == []


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("tvm-profile", '{"calls":[{"Name":{"string":"a"}},1],"device_metrics":{}}'),
        ("tvm-profile", '{"calls":3,"device_metrics":{}}'),
        ("rocprof", '{"rocprofiler-sdk-tool":[{"buffer_records":{"hip_api":3}}]}'),
        ("rocprof", '{"rocprofiler-sdk-tool":[{"buffer_records":{"hip_api":[%s]}}]}' % ("[" * 3000 + "]" * 3000)),
        ("openvino", '{"report_type":"detailed","detailed_performance":[{"nodes":[]}]'),
        ("deepsparse", '{"layer_info":[{"name":"a"}'),
    ],
)
def test_what_is_no_report_is_refused(format: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text(text)
    with pytest.raises(MalformedInput):
        api.read(path, format=format)
