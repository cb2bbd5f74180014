"""No constant that an analyst writes makes a quote slow or large: every function, every place, in a
small process.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlglot import exp

from discreet.errors import Rejected
from discreet.sql.text.parse import parse
from discreet.sql.values.expressions import TRANSLATORS

SECONDS, MEMORY = 20.0, 1 << 30  # for one quote, and beyond what the process takes without one

HUGE = (
    "999999999",
    "1000000000000000000",
    "1e400",
    "-1000000000",
    f"'{'a' * 20_000}'",
    f"'{'%_' * 5_000}'",
)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in re.split(r"\s;\s", text))


# Calls with a place for a constant each, marked ?; x stands for a number, a category, a text, a
# day.
CALLS = _listed(
    """
    INITCAP(LEFT(x, ?)) ; TRIM(x, ?) ; SPLIT_PART(x, 'a', ?) ; SPLIT_PART(x, ?, 1) ; SUBSTR(x, ?) ;
    SUBSTR(x, ?, 3) ; SUBSTR(x, 1, ?) ; SUBSTRING(x
    FROM ? FOR ?) ; LEFT(x, ?) ; RIGHT(x, ?) ; LPAD(x, ?, 'a') ; RPAD(x, ?, 'a') ; LPAD(x, 1000, ?) ; RPAD(x, ?) ;
    REPEAT(x, ?) ; REPLACE(x, 'a', ?) ; REPLACE(x, ?, 'b') ; x || ? ; ? || x ; CONCAT(x, ?, ?) ; CONCAT_WS(?, x,
    x) ; CONCAT_WS(',', x, ?) ; STRPOS(x, ?) ; POSITION(? IN x) ; INSTR(x, ?) ; CONTAINS(x, ?) ; STARTS_WITH(x, ?)
    ; ENDS_WITH(x, ?) ; x LIKE ? ; x ILIKE ? ; x LIKE ? ESCAPE '!' ; LENGTH(?) ; TRIM(?) ; LOWER(?) ; UPPER(?) ;
    CHR(?) ; SPACE(?) ; ROUND(x, ?) ; ROUND(?, 2) ; TRUNC(x, ?) ; POWER(x, ?) ; POWER(?, x) ; x ** ? ; EXP(?) ;
    EXP(x * ?) ; LN(?) ; LOG(?, x) ; LOG(?) ; SQRT(?) ; CBRT(?) ; x + ? ; x - ? ; x * ? ; x / ? ; x // ? ; x % ? ;
    ? / x ; ? % x ; -? ; ABS(?) ; SIGN(?) ; FLOOR(x * ?) ; CEIL(x * ?) ; CLAMP(x, ?, ?) ; CLAMP(x, 0, ?) ;
    LEAST(x, ?) ; GREATEST(x, ?) ; WIDTH_BUCKET(x, 0, 100, ?) ; WIDTH_BUCKET(x, ?, 100, 10) ; WIDTH_BUCKET(x, 0,
    ?, 10) ; x IN (?, 1) ; x BETWEEN ? AND ? ; x = ? ; x > ? ; COALESCE(x, ?) ; NULLIF(x, ?) ; CASE WHEN x = ?
    THEN ? ELSE x END ; IF(x = ?, ?, x) ; CAST(? AS INTEGER) ; CAST(? AS DECIMAL(38, 2)) ; CAST(x AS DECIMAL(?,
    2)) ; CAST(? AS VARCHAR) ; CAST(? AS DATE) ; CAST(? AS TIMESTAMP) ; CAST(? AS BOOLEAN) ; TRY_CAST(? AS BIGINT)
    ; x + INTERVAL (?) DAY ; x - INTERVAL (?) MONTH ; x + INTERVAL (?) YEAR ; x + INTERVAL (?) SECOND ;
    DATE_TRUNC(?, x) ; DATE_TRUNC('month', ?) ; DATE_DIFF(?, x, x) ; DATE_DIFF('day', x, ?) ;
    DATE_PART(?, x) ; EXTRACT(YEAR FROM ?) ;
    STRFTIME(x, ?) ; TO_TIMESTAMP(?) ; TO_TIMESTAMP(x * ?) ; DATE_BIN(INTERVAL (?) DAY, x, TIMESTAMP '2000-01-01') ;
    DATE_BIN(INTERVAL 1 DAY, x, ?) ; DATEADD(DAY, ?, x) ;
    MONTH(?) ; WEEK(?) ; HOUR(?) ; EPOCH(?) ; TIMESTAMPDIFF(DAY, x, ?) ; x
    IS NOT DISTINCT FROM ? ; x AND ? ; NOT ? ; x OR ?
    """
)
AGGREGATES = _listed(
    """
    QUANTILE_CONT(x, ?) ; QUANTILE_CONT(x, [0.1, ?]) ; PERCENTILE_CONT(?) WITHIN GROUP (ORDER BY x) ; SUM(?) ;
    AVG(?) ; SUM(x * ?) ; VARIANCE(?) ; MEDIAN(?) ; MAX(?) ; MODE(?) ; COVAR_POP(x, ?) ; CORR(x, ?) ; COUNT(?) ;
    COUNT(DISTINCT ?) ; COUNT(*) FILTER (WHERE x > ?) ; COUNT_IF(x = ?) ; ROUND(AVG(x), ?) ; COUNT(*) * ? ;
    LPAD(CAST(COUNT(*) AS VARCHAR), ?, 'a') ; SPLIT_PART(CAST(COUNT(*) AS VARCHAR), 'a', ?) ; COUNT(*) + INTERVAL
    (?) DAY ; REPLACE(CAST(COUNT(*) AS VARCHAR), '1', ?) ; LEFT(CAST(COUNT(*) AS VARCHAR), ?) ; POWER(COUNT(*), ?)
    ; COUNT(*) // ? ; CLAMP(COUNT(*), 0, ?) ; EXP(COUNT(*) * ?) ; CAST(COUNT(*) AS DECIMAL(?, 2)) ; COUNT(*) || ?
    ; SUBSTR(CAST(COUNT(*) AS VARCHAR), ?, ?) ; CAST(COUNT(*) AS VARCHAR) LIKE ? ; CONCAT_WS(?, COUNT(*),
    COUNT(*))
    """
)
STATEMENTS = _listed(
    """
    SELECT COUNT(*) FROM people LIMIT ? ; SELECT COUNT(*) FROM people OFFSET ? ; SELECT sex, COUNT(*) AS n FROM
    people GROUP BY sex QUALIFY NTILE(?) OVER (ORDER BY n) = 1 ; SELECT sex, LAG(COUNT(*), ?) OVER (ORDER BY sex)
    FROM people GROUP BY sex ; SELECT SUM(n) FROM (SELECT NTILE(?) OVER (PARTITION BY person_id ORDER BY day) AS n
    FROM visits) AS s ; SELECT SUM(n) FROM (SELECT LAG(pain, ?, 1) OVER (PARTITION BY person_id ORDER BY day) AS n
    FROM visits) AS s ; SELECT SUM(n) FROM (SELECT SUM(pain) OVER (PARTITION BY person_id ORDER BY day ROWS
    BETWEEN ? PRECEDING AND CURRENT ROW) AS n FROM visits) AS s ; SELECT COUNT(*) FROM people CROSS JOIN (VALUES
    (?), (1)) AS v(n) ; SELECT SUM(v.n) FROM people CROSS JOIN (VALUES (?)) AS v(n) ; SELECT COUNT(*) FROM people
    WHERE age < (SELECT MAX(n) * ? FROM (VALUES (1)) AS v(n)) ; SELECT SPLIT_PART(w, 'a', ?), COUNT(*) FROM people
    CROSS JOIN (SELECT RPAD(w, ?, 'a') AS w FROM (VALUES ('b')) AS v(w)) AS s GROUP BY 1 ; SELECT COUNT(*) FROM
    people ORDER BY ? ; SELECT COUNT(*) FROM people GROUP BY ?
    """
)
COLUMNS = ("sex", "age", "sex", "zip", "sex", "born", "'abc'")
GROWING = (
    "SELECT COUNT(*) FROM people WHERE SPLIT_PART(sex, 'a', 999999999) = 'b'",
    "SELECT COUNT(*) FROM people WHERE DATE_PART('', born) = 1",
    "WITH a0 AS (SELECT sex AS s FROM people)"
    + "".join(f", a{n} AS (SELECT s || s AS s FROM a{n - 1})" for n in range(1, 30))
    + " SELECT COUNT(*) FROM a29 WHERE s = 'a'",
    "SELECT COUNT(*) FROM people WHERE " + "REPLACE(" * 8 + "sex" + f", 'F', '{'F' * 100}')" * 8 + " = 'a'",
    f"SELECT COUNT(*) FROM people WHERE RPAD(sex, 1000, 'a') || RPAD(sex, 1000, 'a') LIKE '{'%a_' * 900}b'",
    "SELECT UPPER(a), COUNT(*) FROM (SELECT RPAD(age || sex || smoker, 1000, 'x') AS a FROM people) AS s GROUP BY 1",
)  # fmt: skip

SCRIPT = """
import random, resource, sys, time
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
from discreet.errors import DiscreetError
from sql import bounded, policies, test_constants as here
policy = policies.policy("hospital")
curator = bounded.opened(Path(sys.argv[2]), "hospital", bounded.tidy(policy, people=3, dice=random.Random()))
curator.quote("SELECT sex, AVG(age) + 1 FROM people GROUP BY sex", analyst="ann", epsilon="1")
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + here.MEMORY, used + here.MEMORY))
for sql in here.statements(int(sys.argv[3]), int(sys.argv[4])):
    began = time.process_time()
    try:
        curator.quote(sql, analyst="ann", epsilon="1")
    except DiscreetError:
        pass
    except MemoryError:
        sys.exit(f"memory: {sql[:200]}")
    took = time.process_time() - began
    if took > here.SECONDS:
        sys.exit(f"{took:.1f} s: {sql[:200]}")
print("quoted")
"""


def statements(part: int, parts: int) -> list[str]:
    """Every call with every constant in every place; x is each kind of column in turn."""
    found, turn = list(GROWING), 0
    for huge in HUGE:
        for call in (*CALLS, *AGGREGATES):
            turn += 1
            text = re.sub(r"\bx\b", COLUMNS[turn % len(COLUMNS)], call).replace("?", huge)
            grouped = f"SELECT {text} AS k, COUNT(*) FROM people GROUP BY 1"
            found.append(f"SELECT {text} FROM people" if call in AGGREGATES else grouped)
        found += [sql.replace("?", huge) for sql in STATEMENTS]
    return found[part::parts]


@pytest.mark.parametrize("part", range(2))
def test_no_constant_makes_a_quote_slow_or_large(part: int, tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, tests, str(tmp_path), str(part), "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == "quoted", ran.stderr[-2000:]


def test_every_function_is_met() -> None:
    """A function that is added to the language is added here."""
    met = set[type[exp.Expression]]()
    for sql in statements(0, 1):
        with contextlib.suppress(Rejected):
            met |= {type(node) for node in parse(sql, limit=10**6).walk()}
    missing = {kind.__name__ for kind in TRANSLATORS if kind not in met | _WITHOUT}
    assert not missing


# What takes no constant that could be large, or is one of several that are computed alike.
_COMPARED = (exp.NullSafeNEQ, exp.NEQ, exp.LT, exp.LTE, exp.GTE, exp.Is)
_OF_DAYS = (
    exp.Year,
    exp.Quarter,
    exp.Day,
    exp.DayOfMonth,
    exp.DayOfWeek,
    exp.DayOfYear,
    exp.DayOfWeekIso,
    exp.Minute,
)
_WITHOUT = {
    exp.Column,
    exp.Paren,
    exp.Null,
    exp.Boolean,
    exp.Pi,
    exp.Second,
    exp.WeekOfYear,
    exp.DateTrunc,
    exp.UnixToTime,  # TO_TIMESTAMP above, which is rewritten after parsing
    *_COMPARED,
    *_OF_DAYS,
}
