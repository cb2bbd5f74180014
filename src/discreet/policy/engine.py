"""Read `engine:` of the policy: which engine prepares snapshots and answers questions, and its
addresses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

from discreet.policy.document import Map, Node, Reader

EngineName = Literal["duckdb", "postgres", "spark"]
ENGINES: tuple[EngineName, ...] = ("duckdb", "postgres", "spark")
POSTGRES = ("postgresql://", "postgres://")
# The words before the place of tables that Spark reads: its catalog, or a format.
CATALOG = "catalog"
LAKES = (CATALOG, "delta", "iceberg")
_KEYS = ("name", "at", "reader")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """An engine, by its name.

    `at` is the address of its snapshots. `reader` is the address by which questions read them, as
    a user with fewer rights.
    """

    name: EngineName = "duckdb"
    at: str | None = field(default=None, repr=False)  # both addresses may hold a password
    reader: str | None = field(default=None, repr=False)


def engine_choice(reader: Reader, node: Node | None, source: str | None) -> EngineChoice:
    """Read `engine:`: a name, or a mapping with a name and addresses."""
    if node is None:
        return EngineChoice()
    fields: dict[str, Node] = {"name": node}
    if isinstance(node, Map):
        fields = reader.fields(node, "engine", ("engine",), _KEYS)
    if "name" not in fields:
        reader.problem(node, "engine needs a name: write `engine: {name: postgres, ...}`.")
    name = cast(EngineName, reader.word(fields.get("name"), "engine", ENGINES) or "duckdb")
    at = reader.string(
        fields.get("at"), "engine.at", "an address, such as postgresql://curator@host/town"
    )
    reads = reader.string(
        fields.get("reader"), "engine.reader", "an address, such as postgresql://reader@host/town"
    )
    if name == "duckdb" and (at or reads):
        reader.problem(node, "engine: duckdb is embedded and has no address. Remove at and reader.")
    if name == "spark" and reads:
        reader.problem(node, "engine: spark has no reader. Remove it.")
    if name == "postgres":
        if not at and source is not None and source.startswith(POSTGRES):
            at = source
        if at is None or not at.startswith(POSTGRES):
            reader.problem(
                node,
                "engine: postgres needs `at: postgresql://...`, or such a source: where snapshots go.",
            )
        if reads is not None and not reads.startswith(POSTGRES):
            reader.wrong(
                fields["reader"],
                "engine.reader",
                "an address, such as postgresql://reader@host/town",
            )
    return EngineChoice(name=name, at=at, reader=reads)
