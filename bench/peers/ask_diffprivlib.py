"""diffprivlib: tools on arrays, one column at a time.

Of everybody it has no count: `count_nonzero` is cut off at the array's length, which is the very
number.
"""

import duckdb
from diffprivlib import tools
from harness import EPSILON, HIGH, LOW, QUANTILES, run


def columns(path, *names):
    found = duckdb.sql(f"SELECT {', '.join(names)} FROM '{path}'").fetchnumpy()
    return [found[name] for name in names]


def filtered_count(path):
    (ages,) = columns(path, "age")
    return tools.count_nonzero((ages >= 40) & (ages <= 64), epsilon=EPSILON)


def mean_by_state(path):
    """The states are disjoint, so each mean may have all of ε."""
    found = duckdb.sql(
        f"SELECT substr(state, 2)::INTEGER AS state, income FROM '{path}'"
    ).fetchnumpy()
    states, incomes = found["state"], found["income"]
    return {
        f"S{place:02}": tools.mean(incomes[states == place], epsilon=EPSILON, bounds=(LOW, HIGH))
        for place in range(50)
    }


def median(path):
    (incomes,) = columns(path, "income")
    return tools.median(incomes, epsilon=EPSILON, bounds=(LOW, HIGH))


def five_quantiles(path):
    (incomes,) = columns(path, "income")
    return list(tools.quantile(incomes, QUANTILES, epsilon=EPSILON, bounds=(LOW, HIGH)))


run(
    {
        "filtered count": filtered_count,
        "mean by state": mean_by_state,
        "median": median,
        "five quantiles": five_quantiles,
    }
)
