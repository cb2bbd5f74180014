"""The layout of a snapshot on Spark: a folder of Parquet files. The snapshot exists as soon as its
manifest does.

1.spark, 2.spark, ...             the snapshots: a folder of Parquet files for each private table,
                                  made by Spark
    private_people/               #owner first, then the columns that the policy declares, in its
                                  order
    public_states.parquet         a public table in Spark's types; the .arrow file beside it has its
                                  own types
    kinds.json                    the types of all columns, in the words that every engine uses
1.spark.json, 2.spark.json, ...   the manifests, written last: notes for the curator alone
                                  (engines/snapshot.py)

The folder is in the policy's store, which the server and all workers of the cluster must see under
the same path.
"""

from __future__ import annotations

from pathlib import Path

from discreet.engines.spark.spelling import PRIVATE, PUBLIC, view
from discreet.errors import UsageError

_SUFFIX = ".spark"


def snapshot_folder(store: Path, number: int) -> Path:
    return store / f"{number}{_SUFFIX}"


def manifest_file(store: Path, number: int) -> Path:
    return store / f"{number}{_SUFFIX}.json"


def numbers_in(store: Path) -> list[int]:
    """Return the numbers of the snapshots that have a manifest, ascending."""
    found = (file.name.removesuffix(f"{_SUFFIX}.json") for file in store.glob(f"*{_SUFFIX}.json"))
    return sorted(int(number) for number in found if number.isdecimal())


def address(path: Path) -> str:
    """Return a path as an address for Spark.

    Spark does not undo escapes in it. So raise UsageError if the path has letters that Spark would
    take for a pattern.
    """
    if strange := [letter for letter in _STRANGE if letter in str(path)]:
        raise UsageError(
            f"The path of the store has a {strange[0]}, which Spark does not take as it is. Rename the folder, or name "
            "one without any of * ? [ ] {} \\ % # , : as `store:` in the policy."
        )
    return f"file://{path}"


_STRANGE = "*?[]{}\\%#,:"


def table_folder(folder: Path, table: str) -> Path:
    """Return the folder with the Parquet files of a private table."""
    return folder / view(PRIVATE, table)


def kinds_file(folder: Path) -> Path:
    """Return the file with the types of the tables' columns."""
    return folder / "kinds.json"


def public_file(folder: Path, table: str) -> Path:
    """Return the file of a public table in Spark's types."""
    return folder / f"{view(PUBLIC, table)}.parquet"


def arrow_file(folder: Path, table: str) -> Path:
    """Return the file of a public table with its own types, in the order of its content."""
    return folder / f"{view(PUBLIC, table)}.arrow"
