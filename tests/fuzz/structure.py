"""Damage that knows the form of an input: values of JSON, rows of text, fields of protobuf, words of binary data.

Each function takes a source of randomness and the bytes, and returns other bytes, or the same where there is no such
form.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

#: Names that would break out of a line, a page or an encoding, or that are no name.
NAMES = [
    *("", " ", "\x1b[2J\x07\x7f\x9b31m\u202eevil</script>", "a\x00b", "\ud800", "\U0001f600\u2028", "a/b\\c\"d'e", "²"),
    *("n" * 70_000, "0", "-1", "NaN", "null", "(anonymous namespace)::f<int>(", "{}", "%s%n", "=1+1", "a,b;c\td"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 1e300, 1e18, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**40),
    *([], {}, "", "x", "1", "1.5", "0x1f", "-1", [[]], [{}], {"a": 1}, {"": []}, ["a", 1], float("inf"), float("nan")),
]
#: The most JSON that is taken apart.
_MOST_BYTES = 400_000
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_:.]{2,40}")
_DIGITS = re.compile(rb"[0-9]+")
_LONG = [b" ", b"\t", b"9", b"a", b",", b"a b ", b"0 1.5 ", b"(", b'"']


def values(rng: Random, data: bytes) -> bytes:
    """Change one value, key or list of a JSON document."""
    if len(data) > _MOST_BYTES or data.lstrip()[:1] not in (b"{", b"["):
        return data
    try:
        document = json.loads(data)
        changed = _changed(rng, document)
        return json.dumps(changed, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return data


def _changed(rng: Random, document: Any) -> Any:
    places = [(holder, key) for holder in _holders(document) for key in _keys(holder)]
    if not places:
        return document
    holder, key = rng.choice(places)
    value = holder[key]
    match rng.choice(["value", "name", "other", "nest", "remove", "rename", "list", "time", "time"]):
        case "value":
            holder[key] = rng.choice(VALUES)
        case "name":
            holder[key] = rng.choice(NAMES)
        case "other":
            other, at = rng.choice(places)
            holder[key] = json.loads(json.dumps(other[at]))
        case "nest":
            for _ in range(rng.choice([1, 2, 700])):
                value = [value] if rng.random() < 0.5 else {"a": value}
            holder[key] = value
        case "remove":
            del holder[key]
        case "rename" if isinstance(holder, dict):
            holder[rng.choice([*NAMES, *holder])] = holder.pop(key)
        case "time" if isinstance(value, int | float) and not isinstance(value, bool):
            holder[key] = rng.choice([value * 1000, -value, value + 1, value - 1, value / 3, 0, value + 10**15])
        case _ if isinstance(value, list) and value:
            one, other = sorted(rng.randrange(len(value) + 1) for _ in range(2))
            part = value[one:other][:500]
            value[one:one] = rng.choice([part, part[::-1], part * 3])
        case _ if isinstance(holder, list):
            rng.shuffle(holder)
    return document


def _holders(document: Any) -> list[Any]:
    found, todo = [], [document]
    while todo:
        one = todo.pop()
        if isinstance(one, dict | list):
            found.append(one)
            todo += one.values() if isinstance(one, dict) else one
    return found


def _keys(holder: Any) -> Any:
    return list(holder) if isinstance(holder, dict) else range(len(holder))


def rows(rng: Random, data: bytes) -> bytes:
    """Cut, repeat, move, join or lengthen rows of a text, or change a column of it."""
    lines = data.split(b"\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    line = lines[at]
    column = rng.randrange(len(line) + 1)
    match rng.choice(["cut", "all", "repeat", "move", "join", "long", "blanks", "column", "column"]):
        case "cut":
            lines[at] = rng.choice([line[:column], line[column:]])
        case "all":
            lines = [one[:column] for one in lines]
        case "repeat":
            lines[at:at] = [line] * rng.choice([1, 2, 50])
        case "move":
            lines.insert(to, lines.pop(at))
        case "join":
            lines[at : at + 2] = [b"".join(lines[at : at + 2])]
        case "long":
            filler = rng.choice(_LONG)
            lines[at] = line[:column] + filler * (65_536 // len(filler)) + line[column:]
        case "blanks":
            return data.replace(*rng.choice([(b"\t", b" "), (b"  ", b" "), (b" ", b"\t"), (b",", b";"), (b".", b",")]))
        case "column":
            separator = rng.choice([one for one in (b",", b"\t", b";", b"  ", b" ") if one in line] or [b","])
            number, whole = rng.randrange(line.count(separator) + 1), rng.random() < 0.5
            change = rng.choice(["remove", "repeat", "empty", "name"])
            name = rng.choice(NAMES).encode("utf-8", "surrogatepass")
            for index in range(len(lines)) if whole else [at]:
                cells = lines[index].split(separator)
                cells[number : number + 1] = {
                    "remove": [],
                    "repeat": cells[number : number + 1] * 2,
                    "empty": [b""],
                    "name": [name],
                }[change]
                lines[index] = separator.join(cells)
    return b"\n".join(lines)


def names(rng: Random, data: bytes) -> bytes:
    """Replace a word by a name that is none, once or wherever it is."""
    words = _WORD.findall(data[:_MOST_BYTES])
    if not words:
        return data
    name = rng.choice(NAMES).encode("utf-8", "surrogatepass")
    most = max(1, (1 << 20) // (1 + len(name)))
    return data.replace(rng.choice(words), name, rng.choice([1, most]))


def numbers(rng: Random, data: bytes) -> bytes:
    """Put one number of the input in the place of another: ids, times and sizes that are none of their own."""
    found = list(_DIGITS.finditer(data[:_MOST_BYTES]))
    if not found:
        return data
    one, other = rng.choice(found), rng.choice(found)
    return data[: one.start()] + other[0] + data[one.end() :]


def words(rng: Random, data: bytes) -> bytes:
    """Overwrite a word of binary data by a number at an edge."""
    size = rng.choice([1, 2, 4, 8])
    if len(data) < size:
        return data
    at = rng.randrange(len(data) // size) * size if rng.random() < 0.7 else rng.randrange(min(1024, len(data)))
    value = rng.choice([0, 1, -1, 2 ** (8 * size - 1), 2 ** (8 * size - 1) - 1, len(data), rng.getrandbits(8 * size)])
    return (
        data[:at]
        + (value % 2 ** (8 * size)).to_bytes(size, rng.choice(["little", "little", "big"]))
        + data[at + size :]
    )


Field = tuple[int, int | bytes]


def fields(rng: Random, data: bytes) -> bytes:
    """Change, remove, repeat or move a field of a protobuf message, at any depth."""
    parsed = _parsed(data)
    return _encoded(_changed_fields(rng, parsed)) if parsed else data


def _changed_fields(rng: Random, message: list[Field]) -> list[Field]:
    at = rng.randrange(len(message))
    key, value = message[at]
    if isinstance(value, bytes) and rng.random() < 0.85 and (inner := _parsed(value)):
        message[at] = key, _encoded(_changed_fields(rng, inner))
        return message
    match rng.choice(["value", "value", "remove", "repeat", "move", "number", "other"]):
        case "value" if isinstance(value, bytes):
            message[at] = key, rng.choice(NAMES).encode("utf-8", "surrogatepass")
        case "value":
            message[at] = key, rng.choice([0, 1, value + 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1])
        case "remove":
            del message[at]
        case "repeat":
            message[at:at] = [message[at]] * rng.choice([1, 2, 50])
        case "move":
            message.insert(rng.randrange(len(message)), message.pop(at))
        case "number":
            message[at] = rng.choice([key + 8, max(8 + key % 8, key - 8), key % 8 + 8 * rng.randrange(1, 120)]), value
        case "other":
            same = [one for other, one in message if other % 8 == key % 8]
            message[at] = key, rng.choice(same)
    return message


def _parsed(data: bytes) -> list[Field]:
    """The fields of a message, as key and value; none if it is no message."""
    found: list[Field] = []
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            value: int | bytes
            match key % 8:
                case 0:
                    value, at = _varint(data, at)
                case 2:
                    size, at = _varint(data, at)
                    value, at = data[at : at + size], at + size
                case 1 | 5 as kind:
                    size = 8 if kind == 1 else 4
                    value, at = int.from_bytes(data[at : at + size], "little"), at + size
                case _:
                    return []
            if key < 8 or at > len(data):
                return []
            found.append((key, value))
    except IndexError:
        return []
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            break
    return value, at


def _encoded(message: list[Field]) -> bytes:
    parts = []
    for key, value in message:
        parts.append(_as_varint(key))
        if isinstance(value, bytes):
            parts += [_as_varint(len(value)), value]
        elif key % 8 == 0:
            parts.append(_as_varint(value))
        else:
            size = 8 if key % 8 == 1 else 4
            parts.append((value % 2 ** (8 * size)).to_bytes(size, "little"))
    return b"".join(parts)


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
