"""Qrlew: its SQL, rewritten for PostgreSQL, run by DuckDB on the Parquet. It answers no private
quantiles.
"""

import duckdb
import pyqrlew as qrl
import sqlalchemy
from harness import DELTA, EPSILON, HIGH, LOW, STATES, run

COLUMNS = "person_id INTEGER, state TEXT, age INTEGER, income FLOAT, word TEXT"


def dataset(rows):
    """What Qrlew learns from a database: columns and the number of rows; then ranges and public
    states are declared.
    """
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(f"CREATE TABLE people ({COLUMNS})"))
        connection.execute(sqlalchemy.text("INSERT INTO people VALUES (1, 'S00', 1, 1.0, 'w1')"))
    small = str(qrl.Dataset.from_database("town", engine)).replace(
        '"size": "1"', f'"size": "{rows}"'
    )
    sized = qrl.Dataset.from_str(*(line.split(": ", 1)[1] for line in small.splitlines() if line))
    ranged = sized.with_range(None, "people", "income", LOW, HIGH).with_range(
        None, "people", "age", 0, 120
    )
    unique = ranged.with_constraint(None, "people", "person_id", qrl.Dataset.CONSTRAINT_UNIQUE)
    return unique.with_possible_values(None, "people", "state", STATES)


def ask(sql, path):
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW people AS FROM '{path}'")
    rows = connection.execute("SELECT COUNT(*) FROM people").fetchone()[0]
    data = dataset(rows)
    private = data.relation(sql).rewrite_with_differential_privacy(
        data,
        [("people", [], "person_id")],
        {"epsilon": EPSILON, "delta": DELTA},
        max_multiplicity=1,
    )
    return connection.execute(private.relation().to_query(qrl.Dialect.PostgreSql)).fetchall()


def count(path):
    return ask("SELECT COUNT(*) AS n FROM people", path)[0][0]


def filtered_count(path):
    return ask("SELECT COUNT(*) AS n FROM people WHERE age >= 40 AND age <= 64", path)[0][0]


def mean_by_state(path):
    return dict(ask("SELECT state AS state, AVG(income) AS m FROM people GROUP BY state", path))


def unknown_keys(path):
    return dict(ask("SELECT word AS word, COUNT(*) AS n FROM people GROUP BY word", path))


run(
    {
        "count": count,
        "filtered count": filtered_count,
        "mean by state": mean_by_state,
        "unknown keys": unknown_keys,
    }
)
