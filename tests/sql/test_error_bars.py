"""MARGIN(x): the half-widths of a column as a column, the same that stand behind ±, and free."""

from __future__ import annotations

from typing import Any

import pytest

from coverage_kinds import curator
from discreet.errors import Rejected

T = "WITH t AS (SELECT g, sex, COUNT(*) AS n, AVG(age) AS m, MEDIAN(age) AS q FROM people WHERE g < 3 GROUP BY g, sex)"
SHARE = "COUNT(*) * 1.0 / SUM(COUNT(*)) OVER ()"
CASES = {  # a question whose last column is MARGIN of the one before it
    "of an aggregate": "SELECT sex, COUNT(*) AS n, MARGIN(COUNT(*)) AS e FROM people GROUP BY sex",
    "by the name beside it": "SELECT sex, SUM(age) AS n, MARGIN(n) AS e FROM people GROUP BY sex",
    "of a mean": "SELECT sex, AVG(age) AS n, MARGIN(AVG(age)) AS e FROM people GROUP BY sex",
    "of what is linear": "SELECT COUNT(*) * 2 - SUM(age) AS n, MARGIN(COUNT(*) * 2 - SUM(age)) AS e FROM people",
    "of a quotient": "SELECT sex, SUM(age) / COUNT(*) AS n, MARGIN(SUM(age) / COUNT(*)) AS e FROM people GROUP BY sex",
    "of a share": f"SELECT sex, {SHARE} AS n, MARGIN({SHARE}) AS e FROM people GROUP BY sex",
    "of a share, handed on": f"SELECT * FROM (SELECT sex, {SHARE} AS n, MARGIN({SHARE}) AS e FROM people GROUP BY sex)"
    " AS virtual_table LIMIT 1000",
    "of an inner column": f"{T} SELECT g, sex, m, MARGIN(m) AS e FROM t",
    "of an inner column, computed": f"{T} SELECT g, sex, n * 3 AS x, MARGIN(n * 3) AS e FROM t",
    "of a running total": f"{T} SELECT g, sex, SUM(n) OVER (ORDER BY g, sex) AS c,"
    " MARGIN(SUM(n) OVER (ORDER BY g, sex)) AS e FROM t",
    "of a sum over groups": f"{T} SELECT sex, SUM(n) AS s, MARGIN(SUM(n)) AS e FROM t GROUP BY sex",
    "of a union": "SELECT sex, COUNT(*) AS n, MARGIN(COUNT(*)) AS e FROM people GROUP BY sex"
    " UNION ALL SELECT 'all', COUNT(*), MARGIN(COUNT(*)) FROM people",
    "of grouping sets": "SELECT sex, COUNT(*) AS n, MARGIN(COUNT(*)) AS e FROM people GROUP BY ROLLUP (sex)",
    "of a median, which has none": f"{T} SELECT g, sex, q, MARGIN(q) AS e FROM t",
    "of a key, which needs none": f"{T} SELECT sex, g, MARGIN(g) AS e FROM t",
}
REFUSED = {
    "in order by what is found late": f"SELECT sex, MARGIN({SHARE}) AS e FROM people GROUP BY sex ORDER BY e",
    "by its place": f"SELECT sex, MARGIN({SHARE}) AS e FROM people GROUP BY sex ORDER BY 2",
    "each once": f"SELECT DISTINCT MARGIN({SHARE}) AS e FROM people GROUP BY sex",
    "chosen by it": f"SELECT * FROM (SELECT sex, MARGIN({SHARE}) AS e FROM people GROUP BY sex) AS t WHERE e > 0",
    "computed from it": f"SELECT sex, {SHARE} - MARGIN({SHARE}) AS e FROM people GROUP BY sex",
    "a value of it": f"SELECT (SELECT MAX(e) FROM (SELECT MARGIN({SHARE}) AS e FROM people GROUP BY sex) AS s) AS e",
    "grouped by it": f"SELECT e, COUNT(*) FROM (SELECT MARGIN({SHARE}) AS e FROM people GROUP BY sex) AS t GROUP BY e",
    "one side of a union": f"SELECT sex, MARGIN({SHARE}) AS e FROM people GROUP BY sex UNION ALL SELECT 'x', 1.0",
    "without repeats": f"SELECT sex, MARGIN({SHARE}) AS e FROM people GROUP BY sex"
    f" UNION SELECT sex, MARGIN({SHARE}) FROM people GROUP BY sex",
    "of a margin": "SELECT MARGIN(MARGIN(COUNT(*))) AS e FROM people",
    "of two": "SELECT MARGIN(COUNT(*), 2) FROM people",
    "of nothing": "SELECT MARGIN() FROM people",
    "of everything": "SELECT MARGIN(*) FROM people",
    "of rows": "SELECT MARGIN(age) FROM people",
    "on rows": "SELECT COUNT(*) FROM people WHERE MARGIN(age) > 1",
    "inside an aggregate": "SELECT SUM(MARGIN(age)) FROM people",
    "as JSON": f"SELECT ROW_TO_JSON(t) FROM (SELECT sex, MARGIN({SHARE}) AS e FROM people GROUP BY sex) AS t",
}


@pytest.fixture(scope="module", params=("sum", "zcdp"))
def made(request: Any) -> Any:
    return curator(request.param)[0]


@pytest.mark.parametrize("case", CASES)
def test_is_what_stands_behind_the_number(made: Any, case: str) -> None:
    answer = made.ask(CASES[case], analyst="curator", epsilon=1)
    assert answer.table.num_rows
    shown, behind = answer.table.column("e").to_pylist(), answer.margins.columns[-2].to_pylist()
    assert shown == behind
    assert (None in shown) == ("none" in case)
    assert answer.margins.column("e").null_count == answer.table.num_rows
    assert "e" not in answer.certificate.get("without_margin", {})
    assert str(made.shape(CASES[case], analyst="curator").schema.field("e").type) == "double"


def test_costs_nothing_and_changes_no_number(made: Any) -> None:
    plain = "SELECT sex, AVG(age) AS n FROM people GROUP BY sex"
    first = made.ask(plain, analyst="curator", epsilon="0.25")
    bars = "SELECT sex, AVG(age) AS n, MARGIN(AVG(age)) AS e, n - MARGIN(n) AS lo FROM people GROUP BY sex"
    again = made.ask(bars.replace("n - ", "AVG(age) - "), analyst="curator", epsilon="0.25")
    assert again.cost.epsilon == 0
    assert again.table.column("n") == first.table.column("n")
    ends = [
        n - e
        for n, e in zip(*(again.table.column(name).to_pylist() for name in ("n", "e")), strict=True)
    ]
    assert again.table.column("lo").to_pylist() == pytest.approx(ends)
    assert "lo" not in again.certificate.get("without_margin", {})


def test_can_be_computed_with_where_it_is_known_at_once(made: Any) -> None:
    sql = "SELECT sex, n, e FROM (SELECT sex, COUNT(*) AS n, MARGIN(COUNT(*)) AS e FROM people GROUP BY sex) AS t"
    every = made.ask(f"{sql} WHERE n > 2 * e ORDER BY e, sex", analyst="curator", epsilon=1)
    assert every.table.num_rows == 2
    assert not made.ask(f"{sql} WHERE e > 1e6", analyst="curator", epsilon=1).table.num_rows


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused_where_it_is_not_known(made: Any, case: str) -> None:
    with pytest.raises(Rejected):
        made.quote(REFUSED[case], analyst="curator", epsilon=1)
