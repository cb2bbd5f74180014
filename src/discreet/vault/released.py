"""Noisy numbers as the ledger keeps them; answers are computed from them at each asking."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = tuple[npt.NDArray[Any], ...]  # integers, also as Python objects where they pass 64 bits
_KINDS = ("<i2", "<i4", "<i8")  # of whole numbers, from the narrowest
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """The noisy numbers of one part, or for a pick one array of cells for each choice."""

    numbers: tuple[Numbers, ...]
    survivors: pa.Table | None = None  # unknown keys that passed the threshold


def to_bytes(released: Mapping[str, Released]) -> bytes:
    """Return what a charge stores: each part's numbers in as few bytes as an array needs, and its
    survivors.

    First a list of what comes: of each part its id, the kinds of its arrays by place, and whether
    it has survivors.
    """
    told, contents = [], list[bytes]()
    for name, each in released.items():
        arrays = [[_pack(array) for array in place] for place in each.numbers]
        told.append(
            [name, [[kind for kind, _ in place] for place in arrays], each.survivors is not None]
        )
        contents += [content for place in arrays for _, content in place]
        contents += [] if each.survivors is None else [_ipc(each.survivors)]
    first = json.dumps({"format": _FORMAT, "parts": told}).encode()
    return b"".join(len(each).to_bytes(8, "little") + each for each in (first, *contents))


def from_bytes(content: bytes) -> dict[str, Released]:
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
    ends = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    kind = next(
        kind for kind in _KINDS if np.iinfo(kind).min <= ends[0] and ends[1] <= np.iinfo(kind).max
    )
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
