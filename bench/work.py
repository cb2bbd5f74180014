"""What one person costs the engine in hostile questions, beside what `sql/work.py` says before they
are asked.

    python bench/work.py [--repeats 5]

Each question is read on snapshots of few and of more people, who have all rows and the dearest
texts: the difference is what a person costs, in CPU time, so that it does not matter what else the
machine does. `share` is that as a share of limits.seconds, in thousandths. Exits with 1 where a
person costs more than was said.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from discreet.algebra import Numbers
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.policy.policy import Policy
from discreet.sql.analyze import plan
from discreet.sql.check.counts import PersonCounts
from discreet.sql.work import Work

ROWS, LETTERS, SECONDS = 1_000, 1_000, 60
FEW, MORE = 2, 4  # people
POLICY = f"""\
unit: person
budget: {{epsilon: 1000, delta: 0.1}}
limits: {{seconds: LIMIT}}
tables:
  rows:
    owner: id
    max_rows: {ROWS}
    columns:
      id: identifier
      x: {{integer: [0, 1000000]}}
      y: {{integer: [-1000, 1000]}}
      day: {{date: [2000-01-01, 2030-12-31]}}
      word: {{text: true, letters: {LETTERS}}}
      other: {{text: true, letters: {LETTERS}}}
"""
TEXTS = ("a" * LETTERS, "é" * LETTERS, "aB " * (LETTERS // 3), "%_" * (LETTERS // 2))
_TEN = "(VALUES " + ", ".join(f"({n})" for n in range(10)) + ")"
_TENFOLD = f"rows CROSS JOIN {_TEN} AS ten(n)"
QUESTIONS = {
    "ten times the rows": f"SELECT SUM(x + n) FROM {_TENFOLD}",
    "a hundred times the rows": f"SELECT COUNT(*) FROM {_TENFOLD} CROSS JOIN {_TEN} AS more(m)",
    "rows with themselves": "SELECT SUM(a.x * b.y) FROM rows a JOIN rows b ON a.id = b.id WHERE a.x < b.x",
    "stacked": "SELECT SUM(x) FROM (SELECT x FROM rows UNION ALL SELECT y FROM rows UNION ALL SELECT x FROM rows) AS s",
    "quotients": "SELECT SUM(x / (y * y + 1) + y / (x + 1) + (x + y) / (x * x + 1)) FROM rows",
    "choices": f"SELECT SUM(CASE {' '.join(f'WHEN x + y = {n} THEN {n}' for n in range(150))} END) FROM rows",
    "dates": "SELECT COUNT(*) FROM rows WHERE STRFTIME(day, '%A %B %Y') || 'x' LIKE 'M%' OR MONTH(day) = DAY(day)",
    "distinct": "SELECT COUNT(DISTINCT x), COUNT(DISTINCT (x, y)) FROM rows",
    "quantiles": "SELECT QUANTILE_CONT(x, [0.25, 0.5, 0.75]) FROM rows",
    "row numbers": "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY x) AS n FROM rows)"
    " AS s WHERE n > 1 AND word < other",
    "frames": "SELECT SUM(s) FROM (SELECT SUM(x) OVER (PARTITION BY id ORDER BY x"
    " ROWS BETWEEN 500 PRECEDING AND 500 FOLLOWING) AS s FROM rows) AS s",
    "frames of pairs": "SELECT SUM(s) FROM (SELECT ARG_MAX(x, y) OVER (PARTITION BY id ORDER BY x"
    " ROWS BETWEEN 500 PRECEDING AND 500 FOLLOWING) AS s FROM rows) AS s",
    "exists for each pair": "SELECT COUNT(*) FROM rows a WHERE EXISTS"
    " (SELECT 1 FROM rows b WHERE b.id = a.id AND b.x > a.x + 1000 AND b.y < a.y)",
    "group by owner": "SELECT SUM(n) FROM (SELECT id, x, COUNT(*) AS n, MAX(y) AS m FROM rows GROUP BY id, x) AS s",
    "capitals": "SELECT COUNT(*) FROM rows WHERE UPPER(word) = LOWER(other)",
    "cut and joined": "SELECT COUNT(DISTINCT LEFT(word, 900) || RIGHT(other, 900)) FROM rows",
    "replaced": "SELECT COUNT(*) FROM rows WHERE REPLACE(word, 'a', 'bcd') = SPLIT_PART(other, 'B', 300)",
    "grown": f"SELECT COUNT(*) FROM rows WHERE CONTAINS(REPLACE(LEFT(word, 99), 'a', '{'b' * 100}'), 'bx')",
    "padded": "SELECT COUNT(*) FROM rows WHERE LPAD(word, 1000, 'éa') < RPAD(LEFT(other, 1), 1000, 'aé')",
    "sought": f"SELECT COUNT(*) FROM rows WHERE CONTAINS(word, '{'a' * 50}b') OR STRPOS(word, '{'a' * 50}b') > 1",
    "like": "SELECT COUNT(*) FROM rows WHERE word LIKE '%a%b%c%' OR other LIKE '%aaaaaaaaaaaaaaab%'",
    "like with _": "SELECT COUNT(*) FROM rows WHERE word LIKE '%aaa_b%'",
    "like without case": "SELECT COUNT(*) FROM rows WHERE word ILIKE '%aaab%'",
    "text keys": "SELECT word, COUNT(*), COUNT(DISTINCT id) FROM rows GROUP BY word",
    "two text keys": "SELECT word, other, SUM(x) FROM rows GROUP BY word, other",
    "windows of texts": "SELECT COUNT(*) FROM (SELECT word, ROW_NUMBER() OVER (PARTITION BY id ORDER BY word, other)"
    " AS n FROM rows) AS s WHERE n < 5 AND word > 'b'",
}


def person(name: int, text: str) -> pa.Table:
    """All rows of one person; texts that end differently, so that each is a key of its own."""
    ends = [f"{n:03}" for n in range(ROWS)]
    return pa.table(
        {
            "id": [name] * ROWS,
            "x": [n * 997 % 1_000_001 for n in range(ROWS)],
            "y": [n * 31 % 2001 - 1000 for n in range(ROWS)],
            "day": ["2024-02-29"] * ROWS,
            "word": [text[:-3] + end for end in ends],
            "other": [text[:-3] + end for end in reversed(ends)],
        }
    )


def opened(folder: Path, people: int, text: str) -> tuple[Policy, DuckDB]:
    folder.mkdir()
    rows = pa.concat_tables(person(name, text) for name in range(people))
    path = folder / "policy.yaml"
    # so that what would be refused is measured too
    path.write_text(POLICY.replace("LIMIT", str(SECONDS * 1000)))
    policy = Policy.read(path)
    prepare(policy, {"rows": rows}, policy.store, 1, None)
    return policy, DuckDB.open(policy, 1, threads=1)


def took(engine: DuckDB, queries: list[Numbers], repeats: int) -> float:
    """The least CPU time for all queries, of several."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        for query in queries:
            engine.fetch(query, 600)
        found.append(time.process_time() - began)
    return min(found)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        few = [opened(root / f"few{place}", FEW, text) for place, text in enumerate(TEXTS)]
        more = [opened(root / f"more{place}", FEW + MORE, text) for place, text in enumerate(TEXTS)]
        counts, missed = PersonCounts(policy=few[0][0]), 0
        told = Work(
            rows=counts.rows, letters=lambda table, column: LETTERS * (column in ("word", "other"))
        )
        print(
            f"{'':26}{'said ms':>10}{'took ms':>10}{'ratio':>8}{'share':>8}   at limits.seconds: {SECONDS}"
        )
        for name, sql in QUESTIONS.items():
            blocks = plan(sql, few[0][0], {}, lambda sql: pa.table({"n": list(range(10))})).blocks
            queries = [query for block in blocks for query in block.queries]
            said = sum(map(told.seconds, queries))
            pairs = [
                (took(b[1], queries, repeats), took(a[1], queries, repeats))
                for a, b in zip(few, more, strict=True)
            ]
            most = max(max((later - before) / MORE, 1e-6) for later, before in pairs)
            refused = said > SECONDS / 1000
            wrong = said < most
            missed += wrong
            words = "refused" if refused else ""
            print(
                f"{name:26}{said * 1000:10.2f}{most * 1000:10.2f}{said / most:8.1f}{most / SECONDS * 1000:8.3f}"
                f"   {words}{' MISSED' if wrong else ''}"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
