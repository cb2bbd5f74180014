"""Files that are not written as a policy says: what the curator is told, and the declaration that
mends each.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from small_sources import Rows, kept, policy_of

from discreet.engines.advice import check
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.engines.report import SHOUT, report
from discreet.errors import PolicyError, UsageError

ROWS = 40


def told(
    tmp_path: Path, column: str, content: str | bytes, read: str = ""
) -> tuple[list[str], Rows]:
    """The report of a file of a column x, and what was kept of it."""
    (tmp_path / "data").mkdir(exist_ok=True)
    text = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "data" / "t.csv").write_bytes(text)
    policy = policy_of(f"  t: {{owner: id, {read}columns: {{x: {column}}}}}\n", tmp_path)
    number = len(list(policy.store.glob("*.duckdb"))) + 1
    made = prepare(policy, tmp_path / "data", policy.store, number)
    engine = DuckDB.open(policy, number)
    try:
        return report(made, policy), kept(engine, "t")
    finally:
        engine.close()


def written(values: list[str], head: str = "id;x") -> str:
    lines = [f"{place};{values[place % len(values)]}" for place in range(ROWS)]
    return "\n".join([head, *lines]) + "\n"


NUMBER, LIST, DAY = (
    "{decimal: [0, 9000], step: 0.1%s}",
    "{values: [Yes, No]%s}",
    "{date: [2000-01-01, 2030-12-31]%s}",
)
MOMENT = "{timestamp: [2000-01-01, 2030-01-01], step: 1s%s}"

# a column, what its file holds, the declaration that the report names, and what is then read of the
# first two rows
BAD: dict[str, tuple[str, list[str], str, list[Any]]] = {
    "decimal comma": (NUMBER, ["1,5", "1.234,5"], "read: {decimal: comma}", [15, 12345]),
    "thousands": (NUMBER, ["1,234.5", "2,000"], "read: {decimal: point}", [12345, 20000]),
    "blanks": (LIST, [" Yes", "No\u00a0"], "read: {trim: true}", [0, 1]),
    "case": (LIST, ["yes", "NO"], "read: {fold: case}", [0, 1]),
    "blanks and case": (LIST, [" YES", " nO"], "read: {trim: true, fold: case}", [0, 1]),
    "blanks and comma": (NUMBER, ["\u00a01,5", "\u00a02,5"], "read: {decimal: comma}", [15, 25]),
    "days first": (DAY, ["31.12.2024", "01.02.2025"], "format: '%d.%m.%Y'", [date(2024, 12, 31), date(2025, 2, 1)]),
    "months first": (DAY, ["12/31/2024", "02/01/2025"], "format: '%m/%d/%Y'", [date(2024, 12, 31), date(2025, 2, 1)]),
    "compact days": (DAY, ["20241231", "20250201"], "format: '%Y%m%d'", [date(2024, 12, 31), date(2025, 2, 1)]),
    "moments": (MOMENT, ["31.12.2024 13:05", "01.02.2025 01:00"], "format: '%d.%m.%Y %H:%M'",
                [datetime(2024, 12, 31, 13, 5), datetime(2025, 2, 1, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_the_report_names_what_mends_it(tmp_path: Path, name: str) -> None:
    column, values, declaration, read = BAD[name]
    lines, rows = told(tmp_path, column % "", written(values))
    shouted = [line for line in lines if line.lstrip().startswith(SHOUT)]
    assert len(shouted) == 1
    assert f"x: {ROWS} (100 %) could not be read and became NULL" in shouted[0]
    assert {row[1] for row in rows} == {None}
    assert f"      {ROWS} would be read with  {declaration}" in lines
    assert "is not covered by the promise" in lines[-1]
    format = f", {declaration}" if declaration.startswith("format") else ""
    reading = "" if format else f"{declaration}, "
    lines, rows = told(tmp_path, column % format, written(values), reading)
    assert lines == [f"t: {ROWS} of {ROWS} rows kept"]
    assert [row[1] for row in sorted(rows, key=lambda row: int(row[0]))[:2]] == read


WRITTEN = "k,owner,day\n" + "".join(
    f"{place},{place if place % 4 else ''},{place % 28 + 1:02}.01.2024\n" for place in range(ROWS)
)


@pytest.mark.parametrize(
    ("tables", "kept_rows"),
    [
        ("  t: {owner: owner, columns: {day: %s}}\n", 30),
        ("  t: {owner: [owner, k], columns: {day: %s}}\n", 30),
        ("  t: {owner: row, columns: {day: %s}}\n", 40),
        ("  p: {owner: owner}\n  t: {owner: {through: p, on: k}, columns: {day: %s}}\n", 19),
        ("  t: {owner: day, columns: {day: %s}}\n", 40),
    ],
    ids=["one key", "two keys", "each row", "through another table", "itself"],
)
def test_what_would_be_read_is_counted_among_the_rows_that_have_an_owner(
    tmp_path: Path, tables: str, kept_rows: int
) -> None:
    """Otherwise more values would be read than could not be."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t.csv").write_text(WRITTEN)
    fewer = WRITTEN.splitlines()[:27]  # 26 rows, of which 7 have no owner
    (tmp_path / "data" / "p.csv").write_text("\n".join(fewer) + "\n")
    policy = policy_of(tables % (DAY % ""), tmp_path)
    lines = report(prepare(policy, tmp_path / "data", policy.store, 1), policy)
    (bad,) = [line for line in lines if "could not be read" in line]
    (mended,) = [line for line in lines if "would be read" in line]
    assert int(bad.split()[2]) == kept_rows
    assert int(mended.split()[0]) == kept_rows


def test_days_that_fit_either_order_name_both(tmp_path: Path) -> None:
    lines, _ = told(tmp_path, DAY % "", written(["01/02/2024", "03/04/2024"]))
    assert [line.split("  ")[-1] for line in lines if "would be read" in line] == [
        "format: '%d/%m/%Y'",
        "format: '%m/%d/%Y'",
    ]


def test_days_in_two_formats_are_told_that_a_column_has_one(tmp_path: Path) -> None:
    """A format that reads the few must not look like a way to read them beside the many."""
    days = ["2024-12-30", "2024-12-31", "2025-01-01", "31.12.2024"]
    (offer,) = [line for line in told(tmp_path, DAY % "", written(days))[0] if "would be" in line]
    assert offer.endswith("(and those that are read now would not: a column has one format)")
    lines, rows = told(tmp_path, DAY % ", format: '%d.%m.%Y'", written(days))
    assert {row[1] for row in rows} == {None, date(2024, 12, 31)}
    assert (
        "      Are all written as the policy says, in %d.%m.%Y? A column has one format." in lines
    )


def test_a_mark_of_thousands_elsewhere_is_no_number(tmp_path: Path) -> None:
    """1.5 is not 15 where the comma is the decimal mark."""
    values = ["1.5", "1.2345", "12,34,5", "1,5", "-2.000,25", "1 234,5", "1e2", "x"]
    _, rows = told(
        tmp_path,
        "{decimal: [-9000, 9000], step: 0.01}",
        written(values),
        "read: {decimal: comma}, ",
    )
    found = [row[1] for row in sorted(rows, key=lambda row: int(row[0]))[: len(values)]]
    assert found == [None, None, None, 150, -200025, 123450, 10000, None]


def test_values_outside_a_range_stand_out_without_a_remedy_from_the_data(tmp_path: Path) -> None:
    lines, _ = told(tmp_path, "{integer: [0, 5]}", written(["3", "700"]))
    assert lines[1] == f"  {SHOUT}x: {ROWS // 2} (50 %) were outside the range and moved to its end"
    assert "discreet bounds" in lines[-1]
    assert not any("700" in line for line in lines)
    lines, _ = told(tmp_path, "{integer: [0, 900]}", written(["3"] * 39 + ["1000"]))
    assert lines[1] == f"  {SHOUT}x: 1 (2.5 %) were outside the range and moved to its end"


def test_another_unit_stands_out(tmp_path: Path) -> None:
    """Ages in centuries are all 0 as whole years: nothing is NULL or clamped, and all is lost."""
    lines, rows = told(tmp_path, "{integer: [0, 120]}", written(["0.19", "0.42"]))
    assert {row[1] for row in rows} == {0}
    assert lines[1] == (
        f"  {SHOUT}x: {ROWS} (100 %) were changed by more than a tenth when they were rounded to the step"
    )
    assert lines[2].endswith("A finer step keeps them:  {decimal: [lo, hi], step: 0.01}")
    assert "discreet bounds" in lines[-1]
    for column, values in (
        ("{decimal: [0, 2], step: 0.01}", ["0.19", "0.42"]),
        ("{decimal: [0, 2], step: 0.01}", ["nan", "0"]),
        ("{integer: [0, 120]}", ["19.4", "42", "5.49"]),
        ("{decimal: [0, 900], step: 10}", ["101", "0", "inf"]),
    ):
        lines, _ = told(tmp_path, column, written(values))
        assert not any("rounded" in line for line in lines), lines


@pytest.mark.parametrize(
    ("kind", "values", "rounded"),
    [
        (pa.float64(), [0.4, 3.0, float("inf"), float("nan"), None], 1),
        (pa.decimal128(6, 2), [Decimal("0.40"), Decimal("3.05"), None], 1),
        (pa.int64(), [0, 3, None], 0),
        (pa.bool_(), [True, False, None], 0),
    ],
)
def test_what_rounding_loses_is_counted_for_every_type(
    tmp_path: Path, kind: pa.DataType, values: list[Any], rounded: int
) -> None:
    policy = policy_of("  t: {owner: id, columns: {x: {integer: [0, 9]}}}\n", tmp_path)
    source = {"t": pa.table({"id": range(len(values)), "x": pa.array(values, kind)})}
    (table,) = prepare(policy, source, policy.store, 1).tables
    assert table.columns[0].rounded == rounded


def test_words_that_are_neither_true_nor_false(tmp_path: Path) -> None:
    lines, _ = told(tmp_path, "boolean", written(["ja", "nein"]))
    assert (
        lines[2]
        .strip()
        .startswith("The words that are read are true, t, yes, y, 1 and false, f, no, n, 0.")
    )


def test_one_reading_for_all_columns(tmp_path: Path) -> None:
    """What is said already is said with it, so that the line can be pasted over the old one."""
    (tmp_path / "data").mkdir()
    text = "id;pay;sex\n" + "".join(f"{place};1,5; F\n" for place in range(ROWS))
    (tmp_path / "data" / "t.csv").write_text(text)
    columns = "columns: {pay: {decimal: [0, 9], step: 0.1}, sex: {values: [f, m]}}"
    policy = policy_of(f"  t: {{owner: id, read: {{encoding: cp1252}}, {columns}}}\n", tmp_path)
    lines = report(prepare(policy, tmp_path / "data", policy.store, 1), policy)
    assert [line.split("  ")[-1] for line in lines if "read: {" in line] == [
        "read: {encoding: cp1252, decimal: comma}",
        "read: {encoding: cp1252, trim: true, fold: case}",
        "read: {encoding: cp1252, decimal: comma, trim: true, fold: case}",
    ]
    (noted,) = check(policy).groups["The snapshot"][:1]
    assert noted == (
        "t.pay: 40 (100 %) could not be read and became NULL. (Snapshot 1; for the curator's eyes only.)"
    )


def test_a_second_try_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that is no UTF-8 is read again, carefully: whoever waits need not hear of the first
    try.
    """
    caplog.set_level("INFO")
    told(tmp_path, LIST % "", written(["Zürich", "Yes"]).encode("latin-1"))
    assert not caplog.records


def test_an_owner_that_cannot_be_one(tmp_path: Path) -> None:
    text = "id;x\n" + "".join(f"{place % 3};1\n" for place in range(ROWS))
    lines, rows = told(tmp_path, "{integer: [0, 5]}", text)
    assert len(rows) == 3
    assert lines[0] == f"{SHOUT}t: 3 of {ROWS} rows kept ({ROWS - 3} beyond max_rows: 1)"
    assert "Only 7.5 % of the rows" in lines[1]
    assert "Does id tell people apart?" in lines[1]
    text = "id;x\n" + "".join(f"{place if place < 9 else ''};1\n" for place in range(ROWS))
    lines, _ = told(tmp_path, "{integer: [0, 5]}", text)
    assert lines[0] == f"{SHOUT}t: 9 of {ROWS} rows kept ({ROWS - 9} without an owner in id)"
    assert "Rows without one are left out." in lines[1]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "shift_jis"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    column = (
        "{values: ['日本', Tokyo]}" if encoding == "shift_jis" else "{values: [Zürich, Genève]}"
    )
    first = "日本" if encoding == "shift_jis" else "Zürich"
    content = written([first, "Tokyo" if encoding == "shift_jis" else "Genève"]).encode(encoding)
    if encoding != "utf-16":  # which is not even cut into lines
        lines, rows = told(tmp_path, column, content)
        assert any("encoding" in line for line in lines)
        assert {row[1] for row in rows} <= {None, 1}
    lines, rows = told(tmp_path, column, content, f"read: {{encoding: {encoding}}}, ")
    assert lines == [f"t: {ROWS} of {ROWS} rows kept"]
    assert {row[1] for row in rows} == {0, 1}


def test_a_header_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t.csv").write_bytes("id;größe\n1;3\n".encode("latin-1"))
    tables = "  t: {owner: id, read: {encoding: latin-1}, columns: {größe: {integer: [0, 5]}}}\n"
    policy = policy_of(tables, tmp_path)
    prepare(policy, tmp_path / "data", policy.store, 1)
    engine = DuckDB.open(policy, 1)
    assert kept(engine, "t") == [("1", 3)]
    engine.close()


def test_ragged_files_name_their_line_and_no_value(tmp_path: Path) -> None:
    for text, why in (
        (
            "id;x\n1;2\nSECRET\n",
            "The file t.csv, line 3: there are 1 fields, and the header has 2.",
        ),
        (
            'id;x\n1;"a\nb"\n2;2;SECRET\n',
            "The file t.csv, line 4: there are 3 fields, and the header has 2.",
        ),
        ('id;x\n1;2\n2;"SECRET\n', "The file t.csv, line 3: a quote begins here"),
    ):
        with pytest.raises(UsageError) as caught:
            told(tmp_path, "text", text)
        assert str(caught.value).startswith(why)
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "UTC"])
def test_time_stamps_of_pandas(tmp_path: Path, unit: str, zone: str | None) -> None:
    """With and without a zone, in every unit; by UTC's clock, or by that of `timezone`."""
    moments = pd.Series(pd.to_datetime(["2024-07-01 23:30:00"])).dt.as_unit(unit)
    frame = pd.DataFrame(
        {"id": [1], "x": moments if zone is None else moments.dt.tz_localize(zone)}
    )
    clocks = {
        None: {None: 23, "Europe/Berlin": 21, "UTC": 23},
        "Europe/Berlin": {None: 23, "Europe/Berlin": 23, "UTC": 25},
    }
    for number, (clock, hours) in enumerate(clocks.items()):
        read = "" if clock is None else f"read: {{timezone: {clock}}}, "
        policy = policy_of(f"  t: {{owner: id, {read}columns: {{x: {MOMENT % ''}}}}}\n", tmp_path)
        prepare(policy, {"t": frame}, policy.store, number + 1)
        engine = DuckDB.open(policy, number + 1)
        day, hour = divmod(hours[zone], 24)
        assert kept(engine, "t") == [(1, datetime(2024, 7, 1 + day, hour, 30))]
        engine.close()


def test_texts_of_moments_by_a_clock(tmp_path: Path) -> None:
    values = [
        "2024-07-01 23:30:00",
        "2024-07-01T23:30:00Z",
        "2024-07-01 23:30:00+00",
        "2024-07-01",
        "2024-07-01 23:30:00.5 UTC",
    ]
    _, rows = told(tmp_path, MOMENT % "", written(values), "read: {timezone: Europe/Berlin}, ")
    found = [row[1] for row in sorted(rows, key=lambda row: int(row[0]))[: len(values)]]
    late = datetime(2024, 7, 2, 1, 30)
    assert found == [datetime(2024, 7, 1, 23, 30), late, late, datetime(2024, 7, 1), late]


def test_one_odd_value_changes_no_other(tmp_path: Path) -> None:
    """Privacy: S23. However a value is written, the others are read as without it."""
    read = "read: {decimal: comma, trim: true, fold: case, timezone: Europe/Berlin, encoding: cp1252}, "
    for column, values, odd in (
        (NUMBER % "", ["1,5", " 2.000,5"], ["x", "", "1e999", "\x81", '"a\nb"', "-"]),
        (LIST % "", ["yes", " NO"], ["\x81", "", '"\n"', "YeS"]),
        (DAY % ", format: '%d.%m.%Y'", ["31.12.2024"], ["31.13.2024", "99999999999", "%d", "\x81"]),
        (
            MOMENT % "",
            ["2024-07-01 10:00Z"],
            ["infinity", "294277-01-01 00:00+02", "10:00", "\x81"],
        ),
    ):
        _, before = told(tmp_path, column, written(values).encode("latin-1"), read)
        text = written(values) + "".join(f"new {place};{each}\n" for place, each in enumerate(odd))
        _, after = told(tmp_path, column, text.encode("latin-1"), read)
        assert [row for row in after if not row[0].startswith("new")] == before
        assert len(after) == len(before) + len(odd)


@pytest.mark.parametrize(
    ("read", "column", "why"),
    [
        ("{timezone: Mars/Phobos}", "text", "there is no zone Mars/Phobos"),
        ("{encoding: latin-1}", "text", "is for CSV files"),
        ("{}", "{date: [2000-01-01, 2001-01-01], format: '%d.%m.%Y'}", "which is for texts"),
    ],
)
def test_what_cannot_be_read_so_is_refused(
    tmp_path: Path, read: str, column: str, why: str
) -> None:
    policy = policy_of(f"  t: {{owner: id, read: {read}, columns: {{x: {column}}}}}\n", tmp_path)
    source = {"t": pa.table({"id": [1], "x": pa.array([0], pa.date32())})}
    with pytest.raises(PolicyError, match=why):
        prepare(policy, source, policy.store, 1)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("read: {encoding: rot13}", "must be the name of an encoding"),
        ("read: {encoding: nonsense}", "must be the name of an encoding"),
        ("read: {decimal: dot}", "must be comma or point"),
        ("read: {fold: all}", "must be case"),
        ("read: {timezone: 'a b'}", "must be a zone"),
        ("read: {trims: true}", "Did you mean trim"),
        ("read: {fold: case}, columns: {x: {values: [a, A]}}", "differ only by case"),
        ("columns: {x: {integer: [0, 1], format: '%Y'}}", "only date and timestamp have a format"),
        ("columns: {x: {date: [2000-01-01, 2001-01-01], format: '%d.%m'}}", "names no year"),
        ("columns: {x: {date: [2000-01-01, 2001-01-01], format: '%Q'}}", "must be written with"),
    ],
)
def test_declarations_that_are_none(tmp_path: Path, table: str, why: str) -> None:
    with pytest.raises(PolicyError, match=why):
        policy_of(f"  t: {{owner: id, {table}}}\n", tmp_path)


def test_how_it_is_read_is_part_of_what_an_answer_means(tmp_path: Path) -> None:
    plain = policy_of("  t: {owner: id, columns: {x: text}}\n", tmp_path)
    assert (
        policy_of("  t: {owner: id, read: {trim: false}, columns: {x: text}}\n", tmp_path).digest
        == plain.digest
    )
    assert (
        policy_of("  t: {owner: id, read: {trim: true}, columns: {x: text}}\n", tmp_path).digest
        != plain.digest
    )
