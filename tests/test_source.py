"""Inputs: what they may be packed in, and what happens when they cannot be read."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import random
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from traceconv.errors import InputError
from traceconv.io.source import HEAD_BYTES, Head, Source

TEXT = "".join(f"line {number} µs \U0001f600\n" for number in range(5000))
DATA = TEXT.encode()


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(data: bytes, name: str = "input.log") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


Write = Callable[..., Path]


def whole(source: Source) -> bytes:
    with source.open() as stream:
        return stream.read()


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return sink.getvalue()


def refusal(path: str | Path) -> InputError:
    """The error of reading everything, one line as all of them."""
    with pytest.raises(InputError) as error:
        whole(Source(path))
    assert "\n" not in error.value.message
    return error.value


# -- what is inside ---------------------------------------------------------------------------------------------------

PACKED = {
    "plain": DATA,
    "gzip": gzip.compress(DATA),
    "gzip members": gzip.compress(DATA[:1000]) + gzip.compress(b"") + gzip.compress(DATA[1000:]),
    "gzip padded": gzip.compress(DATA) + bytes(512),
    "zip": zipped({"other name.bin": DATA}),
    "zip stored": zipped({"x": DATA}, zipfile.ZIP_STORED),
    "zip with folder": zipped({"folder/": b"", "folder/x": DATA}),
    "utf-16-le": b"\xff\xfe" + TEXT.encode("utf-16-le"),
    "utf-16-be": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-32": TEXT.encode("utf-32"),
    "utf-32-be": b"\0\0\xfe\xff" + TEXT.encode("utf-32-be"),
    "utf-16 in gzip": gzip.compress(b"\xff\xfe" + TEXT.encode("utf-16-le")),
}


@pytest.mark.parametrize("data", PACKED.values(), ids=PACKED)
def test_the_same_inside(data: bytes, written: Write) -> None:
    source = Source(written(data, "misleading.zip.gz"))
    for _ in range(2):
        assert whole(source) == DATA
        assert b"".join(line.text for line in source.lines(keep_ends=True)) == DATA
        assert b"".join(line.text + b"\n" for line in source.lines()) == DATA
        assert source.head().data == DATA[:HEAD_BYTES]
    assert not source.damage


@pytest.mark.parametrize(("size", "complete"), [(0, True), (HEAD_BYTES, True), (HEAD_BYTES + 1, False)])
def test_the_head_is_bounded(size: int, complete: bool, written: Write) -> None:
    for data in (b"x" * size, gzip.compress(b"x" * size)):
        head = Source(written(data)).head()
        assert len(head.data) == min(size, HEAD_BYTES)
        assert head.complete is complete
        assert head.name == "input.log"


def test_the_head_reads_no_further_than_it_must(written: Write) -> None:
    packed = bytearray(gzip.compress(random.Random(1).randbytes(4 << 20)))
    packed[-8] ^= 0xFF  # the checksum, which only he sees who reads to the end
    source = Source(written(packed))
    assert len(source.head().data) == HEAD_BYTES
    assert not source.damage


def test_text_of_the_head() -> None:
    assert Head(b"\xef\xbb\xbf \r\n\t{", True, "").text == b"{"


# -- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\n\n\nb", [b"a", b"", b"", b"b"]),
        (b"\xef\xbb\xbfa\nb", [b"a", b"b"]),
        (b"a\x00b\xff\nc\x0bd\x85e", [b"a\x00b\xff", b"c\x0bd\x85e"]),
        (b"a\rb\n", [b"a\rb"]),
    ],
)
def test_lines(data: bytes, lines: list[bytes], written: Write) -> None:
    found = list(Source(written(data)).lines())
    assert [line.text for line in found] == lines
    assert [line.number for line in found] == list(range(1, len(lines) + 1))


def test_utf16_with_crlf_and_an_odd_byte_at_the_end(written: Write) -> None:
    data = b"\xff\xfe" + "a\r\nµ".encode("utf-16-le") + b"x"
    assert [line.text for line in Source(written(data)).lines()] == [b"a", "µ\N{REPLACEMENT CHARACTER}".encode()]


# -- what is broken ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0.5, 0.01, -8, -4, -1])
def test_a_cut_gzip_gives_what_was_before_the_cut(cut: float, written: Write) -> None:
    rng = random.Random(1)
    data = "".join(f"{rng.random()}\n" for _ in range(50_000)).encode()
    packed = gzip.compress(data)
    kept = packed[: int(len(packed) * cut) if isinstance(cut, float) else cut]
    source = Source(written(kept))
    expected = zlib.decompressobj(31).decompress(kept)
    assert whole(source) == expected
    assert source.damage
    assert len(expected) == len(data) if isinstance(cut, int) else len(expected) < len(data)
    assert data.startswith(expected)


def test_a_gzip_cut_in_its_header(written: Write) -> None:
    source = Source(written(gzip.compress(DATA)[:6]))
    assert whole(source) == b""
    assert source.damage


def test_corrupt_gzip(written: Write) -> None:
    packed = bytearray(PACKED["gzip"])
    packed[12] ^= 0xFF  # at the beginning: nothing can be unpacked
    assert "input.log: damaged, nothing of it can be unpacked: " in refusal(written(packed)).message


def test_gzip_with_a_wrong_checksum_keeps_what_could_be_unpacked(written: Write) -> None:
    packed = bytearray(PACKED["gzip"])
    packed[-6] ^= 0xFF
    source = Source(written(packed))
    with source.open() as stream:
        assert stream.read() == TEXT.encode()
    assert "CRC" in source.damage


def test_gzip_with_garbage_behind_it_keeps_what_could_be_unpacked(written: Write) -> None:
    source = Source(written(PACKED["gzip"] + b"garbage"))
    with source.open() as stream:
        assert stream.read() == TEXT.encode()
    assert source.damage


def test_a_zip_needs_one_file(written: Write) -> None:
    error = refusal(written(zipped({"a": b"1", "b": b"2"})))
    assert "2 files (a, b)" in error.message
    assert "traceconv merge" in error.hint
    assert "the zip archive is empty" in refusal(written(zipped({}))).message


def test_file_names_in_a_zip_do_not_break_the_line(written: Write) -> None:
    refusal(written(zipped({"a\nb\r\x1b[2J": b"", "c": b""})))


def test_encrypted_zip(written: Write) -> None:
    data = bytearray(zipped({"a": DATA}))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + flags] |= 1
    assert "encrypted" in refusal(written(data)).message


def test_cut_zip(written: Write) -> None:
    assert "broken zip archive" in refusal(written(PACKED["zip"][:-30])).message


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_archives_never_raise_anything_else(method: int, written: Write) -> None:
    rng = random.Random(method)
    sound = zipped({"a": DATA[:3000]}, method)
    for _ in range(150):
        data = bytearray(sound)
        for _ in range(rng.randint(1, 4)):
            # Half of the damage goes to the headers, which are at both ends.
            place = rng.choice([rng.randrange(4, len(data)), rng.randrange(4, 40), len(data) - 1 - rng.randrange(70)])
            data[place] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(4, len(data)) :]
        with contextlib.suppress(InputError):
            whole(Source(written(data)))


def test_damaged_gzip_never_raises_anything_else(written: Write) -> None:
    rng = random.Random(5)
    for _ in range(200):
        data = bytearray(gzip.compress(DATA[:3000]))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(2, len(data))] = rng.randrange(256)
        with contextlib.suppress(InputError):
            whole(Source(written(data)))


# -- streams ----------------------------------------------------------------------------------------------------------


class _Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("data", [DATA, PACKED["gzip"], PACKED["zip"]], ids=["plain", "gzip", "zip"])
def test_standard_input(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Stdin(data))
    source = Source("-")
    assert (source.display, source.name, source.path) == ("<stdin>", "<stdin>", None)
    assert source.head().data == DATA[:HEAD_BYTES]
    assert whole(source) == DATA
    assert whole(source) == DATA
    assert not source.is_same_file("-")


def test_a_file_with_the_name_of_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "<stdin>").write_bytes(DATA)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", _Stdin(DATA))
    assert [Source(path).argument for path in ("-", "<stdin>")] == ["-", "<stdin>"]


def test_a_pipe_can_be_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    feeder = threading.Thread(target=path.write_bytes, args=(PACKED["gzip"],))
    feeder.start()
    source = Source(path)
    feeder.join()
    assert source.path is None
    assert source.head().data == DATA[:HEAD_BYTES]
    assert whole(source) == DATA


def test_an_empty_device() -> None:
    assert Source(os.devnull).head() == Head(b"", True, "null")


# -- what cannot be opened --------------------------------------------------------------------------------------------


def test_a_directory(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert f"{tmp_path}: is a directory" in error.message
    assert error.hint


def test_a_missing_file(tmp_path: Path) -> None:
    error = refusal(tmp_path / "absent.json")
    assert error.message == f"{tmp_path}/absent.json: No such file or directory"
    assert "spelling" in error.hint


@pytest.mark.parametrize("path", ["nul\0inside", "", "a" * 300, "/dev/null/inside", "line\nend"])
def test_paths_that_cannot_be(path: str) -> None:
    refusal(path)


def test_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    refusal(tmp_path / "a")


def test_no_permission(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(DATA)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    error = refusal(path)
    assert error.message == f"{path}: Permission denied"
    assert "permission" in error.hint


def test_removed_after_it_was_named(written: Write) -> None:
    path = written(DATA)
    source = Source(path)
    path.unlink()
    with pytest.raises(InputError, match="No such file"):
        source.head()


def test_a_disk_that_fails(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError(5, "Input/output error")

    path = written(DATA)
    monkeypatch.setattr(Path, "open", lambda *_, **__: Failing())
    assert refusal(path).message == f"{path}: Input/output error"


def test_a_disk_that_fails_later(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.BytesIO):
        def seek(self, *_: object) -> int:
            self.read1 = self.readinto = self.read  # type: ignore[assignment, method-assign]
            return 0

        def read(self, *_: object) -> bytes:
            if "read1" in self.__dict__:
                raise OSError(5, "Input/output error")
            return super().read(4)

    path = written(DATA)
    monkeypatch.setattr(Path, "open", lambda *_, **__: Failing(DATA))
    assert "Input/output error" in refusal(path).message


# -- the same file ----------------------------------------------------------------------------------------------------


def test_is_same_file(written: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(DATA)
    (tmp_path / "soft").symlink_to(path)
    (tmp_path / "hard").hardlink_to(path)
    other = written(DATA, "other")
    source = Source(path)
    monkeypatch.chdir(tmp_path)
    for same in (path, "input.log", "./input.log", tmp_path / "soft", tmp_path / "hard"):
        assert source.is_same_file(same)
    for different in (other, tmp_path / "absent", tmp_path, "-", "", "\0"):
        assert not source.is_same_file(different)
    assert Source(tmp_path / "soft").is_same_file(path)
    assert source.path == path


def test_nothing_is_read_behind_damage(tmp_path: Path) -> None:
    """`gzip` goes on behind a wrong checksum, and takes the next bytes for another one."""
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"one\n")[:-8] + b"\xff" * 8 + bytes(range(100)))
    source = Source(path)
    with source.open() as stream:
        assert [stream.read(), stream.read(), stream.read(1)] == [b"one\n", b"", b""]
    assert source.damage.startswith("CRC check failed 0xffffffff")
