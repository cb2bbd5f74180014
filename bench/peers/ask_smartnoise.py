"""SmartNoise SQL: its private reader on a data frame. It has no quantiles."""

import duckdb
from harness import DELTA, EPSILON, HIGH, LOW, run
from snsql import Privacy, from_df

METADATA = {
    "": {
        "town": {
            "people": {
                "row_privacy": False,
                "max_ids": 1,
                "person_id": {"type": "int", "private_id": True},
                "state": {"type": "string"},
                "age": {"type": "int", "lower": 0, "upper": 120},
                "income": {"type": "float", "lower": LOW, "upper": HIGH},
                "word": {"type": "string"},
            }
        }
    }
}


def rows(path, sql, columns, charges):
    """Its epsilon is charged `charges` times, says its own odometer: twice for COUNT(*), three
    times for AVG.
    """
    frame = duckdb.sql(f"SELECT person_id, {columns} FROM '{path}'").df()
    privacy = Privacy(epsilon=EPSILON / charges, delta=DELTA)
    return from_df(frame, privacy=privacy, metadata=METADATA).execute(sql)[1:]


def count(path):
    return rows(path, "SELECT COUNT(*) AS n FROM town.people", "age", 2)[0][0]


def filtered_count(path):
    return rows(
        path, "SELECT COUNT(*) AS n FROM town.people WHERE age >= 40 AND age <= 64", "age", 2
    )[0][0]


def mean_by_state(path):
    return dict(
        rows(
            path,
            "SELECT state, AVG(income) AS m FROM town.people GROUP BY state",
            "state, income",
            3,
        )
    )


def unknown_keys(path):
    return dict(
        rows(
            path,
            "SELECT word, COUNT(DISTINCT person_id) AS n FROM town.people GROUP BY word",
            "word",
            1,
        )
    )


run(
    {
        "count": count,
        "filtered count": filtered_count,
        "mean by state": mean_by_state,
        "unknown keys": unknown_keys,
    }
)
