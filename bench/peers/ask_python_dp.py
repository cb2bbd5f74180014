"""python-dp, Google's building blocks: algorithms on lists, one at a time."""

import duckdb
from harness import DELTA, EPSILON, HIGH, LOW, QUANTILES, STATES, run
from pydp.algorithms.laplacian import BoundedMean, Count, Median, Percentile
from pydp.algorithms.partition_selection import create_truncated_geometric_partition_strategy


def column(path, select):
    return duckdb.sql(f"SELECT {select} AS found FROM '{path}'").fetchnumpy()["found"]


def count(path):
    return Count(epsilon=EPSILON, dtype="int").quick_result(column(path, "age").tolist())


def filtered_count(path):
    ages = column(path, "age")
    return Count(epsilon=EPSILON, dtype="int").quick_result(
        ages[(ages >= 40) & (ages <= 64)].tolist()
    )


def mean_by_state(path):
    """The states are disjoint, so each mean may have all of ε."""
    states, incomes = column(path, "substr(state, 2)::INTEGER"), column(path, "income")
    means = (
        BoundedMean(epsilon=EPSILON, lower_bound=LOW, upper_bound=HIGH, dtype="float")
        for _ in STATES
    )
    return {
        state: mean.quick_result(incomes[states == place].tolist())
        for place, (state, mean) in enumerate(zip(STATES, means, strict=True))
    }


def median(path):
    algorithm = Median(epsilon=EPSILON, lower_bound=LOW, upper_bound=HIGH, dtype="float")
    return algorithm.quick_result(column(path, "income").tolist())


def five_quantiles(path):
    """One algorithm each, with a fifth of ε."""
    incomes = column(path, "income").tolist()
    bounds = {"lower_bound": LOW, "upper_bound": HIGH, "dtype": "float"}
    each = EPSILON / len(QUANTILES)
    return [
        Percentile(epsilon=each, percentile=q, **bounds).quick_result(incomes) for q in QUANTILES
    ]


def unknown_keys(path):
    """Half of ε to select keys, half to count; plain DuckDB counts the rows of each."""
    found = duckdb.sql(f"SELECT word, COUNT(*) FROM '{path}' GROUP BY word").fetchall()
    strategy = create_truncated_geometric_partition_strategy(EPSILON / 2, DELTA, 1)
    kept = [(word, rows) for word, rows in found if strategy.should_keep(rows)]
    counts = {}
    for word, rows in kept:
        counter = Count(epsilon=EPSILON / 2, dtype="int")
        counter.add_entries([1] * rows)
        counts[word] = counter.result()
    return counts


run(
    {
        "count": count,
        "filtered count": filtered_count,
        "mean by state": mean_by_state,
        "median": median,
        "five quantiles": five_quantiles,
        "unknown keys": unknown_keys,
    }
)
