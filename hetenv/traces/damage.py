"""Damaged copies of small files, for the search for inputs that a reader cannot cope with.

Every blow is one of those that real files suffer: bytes changed or lost, lines and fields lost, doubled or moved,
values of another kind, another encoding, JSON of another shape.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

MOST_BLOWS = 5
RARE_SHARE = 0.03  # of the inputs
VALUES = (
    *("", "0", "-1", "-0.0", "0.5", "1.0000000001", "8", "2147483648", "4294967297", "9" * 25, "9" * 5000, "1_000"),
    *("1e308", "-1e308", "1e-308", "1e999", "nan", "-nan", "inf", "-inf", "0x10", "100%", "1e3", " 7 ", "1,2", "1\t2"),
    *("None", "null", "NULL", "true", "x", "[]", "{}", "()", '"', "'", '""', "\\", "#", ";", "|", "=1+1", "a" * 70_000),
    *("\0", "é", "\ufeff", "\u2028", "\x85", "\x1c", "\r", "\x1a", "\u0663", "\u00b2", "\U0001f600", "\ud7ff"),
    *("2020-02-30 00:00:00", "9999-12-31 23:59:59", "0001-01-01 00:00:00+14:00", "2020-04-01T10:00:00.123456789Z"),
    *("2017-10-07", "10:00:00", "1969-12-31 23:59:59", "2020-04-01 10:00:00 PDT", "1600000000000", "20200401"),
)
DEEP = 100_000  # levels of brackets, far beyond what a recursive reader can go down
ROWS = 120_000  # more than a reader takes at once

Blow = Callable[[bytes, np.random.Generator], bytes]


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """``data`` after one blow or a few; JSON mostly stays JSON."""
    if rng.random() < RARE_SHARE:
        header, _, rows = data.partition(b"\n")
        data = header + b"\n" + rows * int(rng.integers(2, 20))
    blows = (*COMMON, *[_reshape] * len(COMMON) * 4) if data[:1] in (b"[", b"{") else COMMON
    for _ in range(min(MOST_BLOWS, rng.geometric(0.6))):
        data = blows[rng.integers(len(blows))](data, rng)
    if rng.random() < RARE_SHARE:
        data = RARE[rng.integers(len(RARE))](data, rng)
    return data


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed."""
    changed = bytearray(data)
    for at in rng.integers(len(data), size=rng.integers(1, 9)) if data else ():
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    """The end lost."""
    return data[: rng.integers(len(data), endpoint=True)]


def _insert(data: bytes, rng: np.random.Generator) -> bytes:
    """A value where none belongs."""
    at = rng.integers(len(data), endpoint=True)
    return data[:at] + _value(rng) + data[at:]


def _lines(data: bytes, rng: np.random.Generator) -> bytes:
    """A line lost, doubled or moved."""
    return b"\n".join(_disorder(data.split(b"\n"), rng))


def _fields(data: bytes, rng: np.random.Generator) -> bytes:
    """A field of a line lost, doubled or moved."""
    return _on_fields(data, rng, lambda cells: _disorder(cells, rng))


def _column(data: bytes, rng: np.random.Generator) -> bytes:
    """The same field of every line lost or set to one value."""
    lines = data.split(b"\n")
    separator = _separator(lines[0])
    at, lost, value = int(rng.integers(8)), rng.random() < 0.5, _value(rng)
    rows = [line.split(separator) for line in lines]
    for row in rows[int(rng.integers(2)) :]:
        row[at : at + 1] = [] if lost or at >= len(row) else [value]
    return b"\n".join(separator.join(row) for row in rows)


def _replace(data: bytes, rng: np.random.Generator) -> bytes:
    """Another value in a field."""

    def replaced(cells: list[bytes]) -> list[bytes]:
        cells[rng.integers(len(cells))] = _value(rng)
        return cells

    return _on_fields(data, rng, replaced)


def _reshape(data: bytes, rng: np.random.Generator) -> bytes:
    """JSON with another value or name somewhere; another value in a field of what is no JSON."""
    try:
        root = [json.loads(data)]
    except (ValueError, RecursionError):
        return _replace(data, rng)
    place: Any = root
    while True:
        keys = list(range(len(place)) if isinstance(place, list) else place)
        key = keys[rng.integers(len(keys))]
        inner = place[key]
        if not isinstance(inner, list | dict) or not inner or rng.random() < 0.2:
            break
        place = inner
    text = _value(rng).decode()
    if isinstance(place, dict) and rng.random() < 0.2:
        place[text if rng.random() < 0.5 else _flip(key.encode(), rng).decode("latin-1")] = place.pop(key)
        return json.dumps(root[0]).encode()
    others: list[Any] = [None, True, -1, 0.5, 10**30, float("nan"), text, [], {}, [None], [[inner]], {text: inner}]
    place[key] = others[rng.integers(len(others))]
    return json.dumps(root[0]).encode()


def _encode(data: bytes, rng: np.random.Generator) -> bytes:
    """Another encoding or other line ends."""
    text = data.decode("utf-8", "replace")
    encodings = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp500", "utf-7")
    choice = int(rng.integers(len(encodings) + 2))
    if choice < len(encodings):
        return text.encode(encodings[choice], "replace")
    return data.replace(b"\n", b"\r\n" if choice == len(encodings) else b"\r")


def _empty(data: bytes, rng: np.random.Generator) -> bytes:
    """Nothing, or next to nothing."""
    rests = (b"", b"\n", b" \n\n", b"\xef\xbb\xbf", b"\0" * 100, data.split(b"\n")[0], data.split(b"\n")[0] + b"\n")
    return rests[rng.integers(len(rests))]


def _nest(data: bytes, rng: np.random.Generator) -> bytes:
    """Brackets within brackets."""
    opening, closing = (b"[", b"]") if rng.random() < 0.5 else (b'{"a":', b"}")
    at = rng.integers(len(data), endpoint=True)
    nested = opening * DEEP + (b"0" + closing * DEEP if rng.random() < 0.5 else b"")
    return data[:at] + nested + data[at:]


def _repeat(data: bytes, rng: np.random.Generator) -> bytes:
    """The rows again and again."""
    header, _, rows = data.partition(b"\n")
    times = ROWS // max(1, rows.count(b"\n") or 1)
    return header + b"\n" + rows * int(rng.integers(1, max(2, min(times, 20_000_000 // max(1, len(rows))))))


COMMON: tuple[Blow, ...] = (_flip, _cut, _insert, _lines, _fields, _column, _replace, _replace, _reshape)
RARE: tuple[Blow, ...] = (_encode, _empty, _nest, _repeat)


def _value(rng: np.random.Generator) -> bytes:
    return VALUES[rng.integers(len(VALUES))].encode("utf-8", "surrogatepass")


def _disorder(parts: list[bytes], rng: np.random.Generator) -> list[bytes]:
    at, to = (int(place) for place in rng.integers(len(parts), size=2))
    blow = rng.integers(3)
    if blow == 0:
        del parts[at]
    elif blow == 1:
        parts.insert(to, parts[at])
    else:
        parts[at], parts[to] = parts[to], parts[at]
    return parts


def _separator(line: bytes) -> bytes:
    return next((mark for mark in (b"\t", b",", b":") if mark in line), b" ")


def _on_fields(data: bytes, rng: np.random.Generator, change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    lines = data.split(b"\n")
    at = int(rng.integers(len(lines)))
    separator = _separator(lines[at])
    lines[at] = separator.join(change(lines[at].split(separator)))
    return b"\n".join(lines)
