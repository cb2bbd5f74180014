"""Noisy numbers as the ledger stores them; every answer is computed from them anew."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = tuple[npt.NDArray[Any], ...]  # integers; Python's own if they pass 64 bits
_KINDS = ("<i2", "<i4", "<i8")  # types of integers, the narrowest first
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """The noisy numbers of one part; for a pick, one array of chosen cells for each choice."""

    numbers: tuple[Numbers, ...]
    survivors: pa.Table | None = None  # unknown keys that passed the threshold


def to_bytes(released: Mapping[str, Released]) -> bytes:
    """Return the bytes that a charge stores: the numbers of each part, and its survivors.

    A JSON header comes first: the id of each part, the types of its arrays, and whether it has
    survivors. An array takes as few bytes a number as its numbers need.
    """
    parts = []
    contents = list[bytes]()
    for name, part in released.items():
        arrays = [[_pack(array) for array in place] for place in part.numbers]
        kinds = [[kind for kind, _ in place] for place in arrays]
        parts.append([name, kinds, part.survivors is not None])
        contents += [content for place in arrays for _, content in place]
        if part.survivors is not None:
            contents.append(_ipc(part.survivors))
    header = json.dumps({"format": _FORMAT, "parts": parts}).encode()
    return b"".join(len(block).to_bytes(8, "little") + block for block in (header, *contents))


def from_bytes(content: bytes) -> dict[str, Released]:
    """Return the parts that `to_bytes` wrote."""
    contents = _contents(io.BytesIO(content))
    return {
        name: Released(
            numbers=tuple(
                tuple(_unpack(kind, next(contents)) for kind in place) for place in kinds
            ),
            survivors=pa.ipc.open_stream(next(contents)).read_all() if unknown else None,
        )
        for name, kinds, unknown in json.loads(next(contents))["parts"]
    }


def _contents(stream: io.BytesIO) -> Iterator[bytes]:
    while head := stream.read(8):
        yield stream.read(int.from_bytes(head, "little"))


def _pack(numbers: npt.NDArray[Any]) -> tuple[str, bytes]:
    if numbers.dtype == object:
        return "text", ",".join(map(str, numbers)).encode()
    low = int(numbers.min(initial=0))
    high = int(numbers.max(initial=0))
    kind = next(kind for kind in _KINDS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return kind, numbers.astype(kind).tobytes()


def _unpack(kind: str, content: bytes) -> npt.NDArray[Any]:
    if kind == "text":
        return np.array([int(each) for each in content.decode().split(",") if each], dtype=object)
    return np.frombuffer(content, dtype=kind).astype(np.int64)


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())
