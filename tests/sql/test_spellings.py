"""Other ways of writing the same question make the same plan, so that the second asking is free
(S10).
"""

from __future__ import annotations

import pytest

from discreet.sql.plan import identity
from sql import harness, policies

SAME = (
    (
        "SELECT age, COUNT(*) AS n FROM people WHERE age IN (SELECT UNNEST([20, 30])) GROUP BY age",
        "SELECT age, COUNT(*) AS n FROM people WHERE age IN (SELECT n FROM (VALUES (20), (30)) AS s(n)) GROUP BY age",
    ),
    (
        "SELECT age, COUNT(*) AS n FROM people WHERE age IN (SELECT UNNEST(RANGE(20, 22))) GROUP BY age",
        "SELECT age, COUNT(*) AS n FROM people WHERE age IN (SELECT n FROM (VALUES (20), (21)) AS s(n)) GROUP BY age",
    ),
    (
        "SELECT s.sex, COUNT(*) AS n FROM people AS p JOIN UNNEST(['F', 'M']) AS s(sex) ON s.sex = p.sex GROUP BY 1",
        "SELECT s.sex, COUNT(*) AS n FROM people AS p JOIN (VALUES ('F'), ('M')) AS s(sex) ON s.sex = p.sex GROUP BY 1",
    ),
    (
        "SELECT DATE_BIN('1 day', seen, '2024-01-01') AS d, COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT DATE_BIN('1 day', seen, TIMESTAMP '2024-01-01') AS d, COUNT(*) AS n FROM visits GROUP BY 1",
    ),
    ("SELECT COUNT(*) AS n FROM people GROUP BY ALL", "SELECT COUNT(*) AS n FROM people"),
    (
        "SELECT sex, COUNT(*) FROM people GROUP BY ALL",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex",
    ),
    (
        "SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ROLLUP",
        "SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)",
    ),
    (  # DuckDB shows NULL for each sex in the second set, as if it were another column
        "SELECT sex, smoker, COUNT(*) FROM people AS p GROUP BY GROUPING SETS ((sex), (P.sex, smoker))",
        "SELECT sex, smoker, COUNT(*) FROM people AS p GROUP BY GROUPING SETS ((sex), (sex, smoker))",
    ),
    (
        "SELECT v.clinic, COUNT(*) FROM visits AS v LEFT JOIN clinics AS c USING (clinic) GROUP BY ROLLUP (clinic)",
        "SELECT clinic, COUNT(*) FROM visits AS v LEFT JOIN clinics AS c USING (clinic) GROUP BY ROLLUP (clinic)",
    ),
    (
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC FETCH FIRST 2 ROWS ONLY",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 2",
    ),
    (
        "SELECT sex, COUNT(*) FROM people GROUP BY ALL ORDER BY ALL",
        "SELECT sex, COUNT(*) FROM people GROUP BY 1 ORDER BY 1, 2",
    ),
    (
        "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) ORDER BY n DESC LIMIT 2",
        "SELECT * FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS bracketed ORDER BY n DESC LIMIT 2",
    ),
    (
        "SELECT SUM(w) AS n FROM (SELECT LAG(cost) RESPECT NULLS OVER (PARTITION BY person_id ORDER BY day) AS w"
        " FROM visits) AS t",
        "SELECT SUM(w) AS n FROM (SELECT LAG(cost) OVER (PARTITION BY person_id ORDER BY day) AS w FROM visits) AS t",
    ),
    ("SELECT COUNT(*) AS n FROM main.people AS p", "SELECT COUNT(*) AS n FROM people"),
    (
        "SELECT approx_count_distinct(person_id) AS n FROM visits",
        "SELECT COUNT(DISTINCT person_id) AS n FROM visits",
    ),
    (
        "SELECT approx_quantile(age, 0.5) AS n FROM people",
        "SELECT quantile(age, 0.5) AS n FROM people",
    ),
    (
        "SELECT mode() WITHIN GROUP (ORDER BY sex) AS n FROM people",
        "SELECT mode(sex) AS n FROM people",
    ),
    (
        "SELECT SUM(iff(smoker, 1, 0)) AS n FROM people",
        "SELECT SUM(if(smoker, 1, 0)) AS n FROM people",
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE suffix(zip, 'a')",
        "SELECT COUNT(*) AS n FROM people WHERE ends_with(zip, 'a')",
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE age = ANY ([1, 2])",
        "SELECT COUNT(*) AS n FROM people WHERE age IN (1, 2)",
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE date_add(born, INTERVAL 1 MONTH) > '1990-03-01'",
        "SELECT COUNT(*) AS n FROM people WHERE born + INTERVAL 1 MONTH > '1990-03-01'",
    ),
    (
        "SELECT dayname(day) AS d, COUNT(*) FROM visits GROUP BY d",
        "SELECT strftime('%A', day) AS d, COUNT(*) FROM visits GROUP BY d",
    ),
    (
        "SELECT approx_percentile(age, 0.5) AS n FROM people",
        "SELECT quantile(age, 0.5) AS n FROM people",
    ),
    (
        "SELECT AVG(isnull(income, 0)) AS n FROM people",
        "SELECT AVG(coalesce(income, 0)) AS n FROM people",
    ),
    (
        "SELECT AVG(zeroifnull(income)) AS n FROM people",
        "SELECT AVG(coalesce(income, 0)) AS n FROM people",
    ),
    (
        "SELECT varp(age) AS a, stdevp(age) AS b FROM people",
        "SELECT var_pop(age) AS a, stddev_pop(age) AS b FROM people",
    ),
    ("SELECT var(age) AS a FROM people", "SELECT variance(age) AS a FROM people"),
    (
        "SELECT safe_divide(SUM(cost), COUNT(*)) AS n FROM visits",
        "SELECT (SUM(cost) / COUNT(*)) AS n FROM visits",
    ),
    (
        "SELECT nvl2(income, 1, 0) AS k, COUNT(*) FROM people GROUP BY k",
        "SELECT if(NOT income IS NULL, 1, 0) AS k, COUNT(*) FROM people GROUP BY k",
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE equal_null(diagnosis, 'flu')",
        "SELECT COUNT(*) AS n FROM people WHERE (diagnosis IS NOT DISTINCT FROM 'flu')",
    ),
    (
        "SELECT date(seen) AS d, COUNT(*) FROM visits GROUP BY d",
        "SELECT seen::date AS d, COUNT(*) FROM visits GROUP BY d",
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE date_sub(born, INTERVAL 1 MONTH) > '1990-03-01'",
        "SELECT COUNT(*) AS n FROM people WHERE born - INTERVAL 1 MONTH > '1990-03-01'",
    ),
    (
        "SELECT mid(zip, 1, 2) AS z, COUNT(*) FROM people GROUP BY z",
        "SELECT substr(zip, 1, 2) AS z, COUNT(*) FROM people GROUP BY z",
    ),
    (
        "SELECT sex, RANK() OVER w AS r, SUM(COUNT(*)) OVER w AS s FROM people GROUP BY sex WINDOW w AS (ORDER BY sex)",
        "SELECT sex, RANK() OVER (ORDER BY sex) AS r, SUM(COUNT(*)) OVER (ORDER BY sex) AS s FROM people GROUP BY sex",
    ),
    (
        "SELECT SUM(x) AS n FROM (SELECT COUNT(*) OVER w AS x FROM visits WINDOW w AS (PARTITION BY person_id)) AS t",
        "SELECT SUM(x) AS n FROM (SELECT COUNT(*) OVER (PARTITION BY person_id) AS x FROM visits) AS t",
    ),
    (
        "SELECT COUNT(DISTINCT v.person_id) AS n FROM people AS p JOIN visits AS v USING (person_id)",
        "SELECT COUNT(DISTINCT p.person_id) AS n FROM people AS p JOIN visits AS v USING (person_id)",
    ),
    (
        "SELECT mean(age) AS a, favg(income) AS b FROM people",
        "SELECT avg(age) AS a, avg(income) AS b FROM people",
    ),
    (
        "SELECT AVG(p.`age`) AS n FROM `people` AS `p`",
        'SELECT AVG(p."age") AS n FROM "people" AS "p"',
    ),
    ("SELECT COUNT(*) FROM people; -- how many", "SELECT COUNT(*) FROM people"),
    ("SELECT COUNT(*) FROM people;\n/* the end */\n;", "SELECT COUNT(*) FROM people"),
    ("-- how many\nSELECT COUNT(*) FROM people;", "SELECT COUNT(*) FROM people"),
    (
        "SELECT sex, COUNT(*) FROM people GROUP BY (), sex, ()",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex",
    ),
    (
        "SELECT sex, GROUPING_ID(sex) AS g, COUNT(*) FROM people GROUP BY ROLLUP (sex)",
        "SELECT sex, GROUPING(sex) AS g, COUNT(*) FROM people GROUP BY ROLLUP (sex)",
    ),
    (
        "SELECT SUM(DATE_DIFF(born, DATE '1990-01-01', DAY)) AS n FROM people",
        "SELECT SUM(DATE_DIFF('day', DATE '1990-01-01', born)) AS n FROM people",
    ),
    (
        "SELECT SUM(DATEDIFF(DATE_TRUNC(born, MONTH), '1990-01-01')) AS n FROM people",
        "SELECT SUM(DATE_DIFF('day', '1990-01-01', DATE_TRUNC('month', born))) AS n FROM people",
    ),
    (
        "SELECT DATE_TRUNC(born, QUARTER) AS q, COUNT(*) FROM people GROUP BY q",
        "SELECT DATE_TRUNC('quarter', born) AS q, COUNT(*) FROM people GROUP BY q",
    ),
    (
        "SELECT DATE_PART(year, born) AS y, COUNT(*) FROM people GROUP BY y",
        "SELECT DATE_PART('year', born) AS y, COUNT(*) FROM people GROUP BY y",
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE zip LIKE 'a' ESCAPE '!'",
        "SELECT COUNT(*) AS n FROM people WHERE zip LIKE 'a'",
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE zip LIKE 'a!%' ESCAPE ''",
        "SELECT COUNT(*) AS n FROM people WHERE zip LIKE 'a!%'",
    ),
    ("SELECT COUNT(*) AS n FROM people LIMIT ALL OFFSET 0", "SELECT COUNT(*) AS n FROM people"),
    (
        "SELECT COUNT(*) AS n FROM (SELECT person_id FROM people WHERE age > 18 LIMIT NULL OFFSET 0) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT person_id FROM people WHERE age > 18) AS t",
    ),
    (
        "SELECT COUNT(*) AS n FROM people AS p WHERE EXISTS(SELECT 1 AS a FROM visits AS v"
        " WHERE v.person_id = (p.person_id) ORDER BY v.day LIMIT 1)",
        "SELECT COUNT(*) AS n FROM people AS p WHERE EXISTS(SELECT 1 FROM visits AS v WHERE v.person_id = p.person_id)",
    ),
    *(
        (
            f"SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN people AS p ON {condition}",
            "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN people AS p ON v.person_id = p.person_id",
        )
        for condition in (
            "(v.person_id) = (p.person_id)",
            "v.person_id IS NOT DISTINCT FROM p.person_id",
            "((v.person_id = p.person_id) OR ((v.person_id IS NULL) AND (p.person_id IS NULL)))",
            "v.person_id IS NULL AND p.person_id IS NULL OR v.person_id = p.person_id",
        )
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE day >= (SELECT (DATE '2024-03-01' + (-6 || ' day')::INTERVAL))",
        "SELECT COUNT(*) AS n FROM visits WHERE day >= DATE '2024-03-01' + INTERVAL '-6' DAY",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE day >= DATE '2024-03-01' - CAST('1 month' AS INTERVAL)",
        "SELECT COUNT(*) AS n FROM visits WHERE day >= DATE '2024-03-01' - INTERVAL 1 MONTH",
    ),
    (
        "SELECT DATE_TRUNC('day', seen, 'UTC') AS d, COUNT(*) FROM visits GROUP BY d",
        "SELECT CAST(DATE_TRUNC('day', CAST(seen AS TIMESTAMP)) AS TIMESTAMP) AS d, COUNT(*) FROM visits GROUP BY d",
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE pg_catalog.lower(zip) = 'a'",
        "SELECT COUNT(*) AS n FROM people WHERE lower(zip) = 'a'",
    ),
    (
        "SELECT zip[1:2] AS z, COUNT(*) FROM people GROUP BY z",
        "SELECT substr(zip, 1, 2) AS z, COUNT(*) FROM people GROUP BY z",
    ),
)


@pytest.mark.parametrize("pair", SAME, ids=lambda pair: pair[0])
def test_other_spellings_are_the_same_question(pair: tuple[str, str]) -> None:
    one, other = (
        harness.planned(sql, policies.policy("hospital"), name="hospital") for sql in pair
    )
    one_named = identity.question(one) if one.columns == other.columns else None
    assert one_named == identity.question(other)
