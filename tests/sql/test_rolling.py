"""Several groupings of the same rows: the cheaper way is chosen, both ways mean the same, and
margins hold.

False alarms: 1e-9 in all, over fewer than 400 cells that are tested; no seeds.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from discreet.asking.explain import explanation
from discreet.asking.offer import BlockOffer, Offer, offer
from discreet.asking.quotes import quote_of
from discreet.binding import accountant_of, terms_of
from discreet.budget import Charge
from discreet.curator import Curator
from discreet.errors import Unproved
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace
from discreet.mechanisms.tails.simulate import Several
from discreet.noise import Stream
from discreet.sql import rolling
from discreet.sql.after.finish import Noisy, noisy_table, roll_up_numbers
from discreet.sql.after.naming import table_name
from discreet.sql.after.widths.margins import half_width, ratio_quantile
from discreet.sql.plan.block import Block, RolledUp, Shared
from discreet.sql.plan.keys import Key
from discreet.sql.plan.plan import Plan
from discreet.sql.values.value import Number
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact
from fresh_noise import fresh
from sql import bounded, harness, policies
from test_margins import _run, population

CUBE = "SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY CUBE (sex, smoker)"
MONTHS = "SELECT clinic, day, COUNT(*) AS n FROM visits GROUP BY ROLLUP (clinic, day)"
ANSWERS = 1_000
ALARM = 1e-9 / 400


def planned(sql: str, neighbors: str = "add_remove", accountant: str = "sum") -> Plan:
    return harness.planned(sql, policies.policy("hospital", neighbors, accountant), name="hospital")


def offered(
    sql: str, neighbors: str = "add_remove", accountant: str = "sum", epsilon: int = 1
) -> Offer:
    policy = policies.policy("hospital", neighbors, accountant)
    purse = accountant_of(policy)
    amount = purse.allot(epsilon=Fraction(epsilon))
    return offer(
        planned(sql, neighbors, accountant), purse, amount=amount, limit=terms_of(policy).limit
    )


def each_itself(blocks: Any, again: Any, **_: object) -> tuple[tuple[Block, ...], tuple[()]]:
    return tuple(blocks), ()


# --- the choice -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "neighbors", "accountant", "measured"),
    [
        (
            CUBE,
            "add_remove",
            "sum",
            1,
        ),  # four groupings of twelve cells: one has less noise than four quarters
        (CUBE, "change_one", "sum", 1),
        (
            CUBE,
            "change_one",
            "zcdp",
            4,
        ),  # four parts of ρ are but twice the noise, a total of twelve √12 times
        (MONTHS, "add_remove", "sum", 2),  # never 1,468 numbers to one; but clinics make the total
        (MONTHS, "add_remove", "zcdp", 3),
        (
            "SELECT sex, COUNT(DISTINCT age) AS n FROM people GROUP BY ROLLUP (sex)",
            "add_remove",
            "sum",
            2,
        ),
        (
            "SELECT clinic, COUNT(DISTINCT person_id) AS n FROM visits GROUP BY ROLLUP (clinic)",
            "add_remove",
            "sum",
            2,
        ),
        (
            "SELECT COUNT(DISTINCT person_id) FROM visits GROUP BY CUBE (clinic, pain)",
            "add_remove",
            "sum",
            4,
        ),
        (
            "SELECT sex, COUNT(DISTINCT person_id) AS n FROM people GROUP BY ROLLUP (sex)",
            "add_remove",
            "sum",
            1,
        ),
        (
            "SELECT sex, AVG(age), STDDEV(age) FROM people GROUP BY ROLLUP (sex)",
            "add_remove",
            "sum",
            1,
        ),
        (
            "SELECT sex, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) FROM people GROUP BY sex",
            "add_remove",
            "sum",
            1,
        ),
        (
            "SELECT sex, smoker, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (smoker))",
            "add_remove",
            "sum",
            1,
        ),
        (
            "SELECT born, age, COUNT(*) FROM people GROUP BY GROUPING SETS ((born), (age))",
            "add_remove",
            "sum",
            2,
        ),
    ],
)
def test_what_is_measured(sql: str, neighbors: str, accountant: str, measured: int) -> None:
    assert (
        sum(len(block.own_statistics) for block in planned(sql, neighbors, accountant).blocks)
        == measured
    )


def test_a_block_that_is_shared_with_one_that_is_rolled_up_has_its_numbers() -> None:
    """Three groupings and one of them again: the finest is measured, once."""
    once = "SELECT sex, smoker, SUM(income) AS s FROM people GROUP BY CUBE (sex, smoker)"
    again = "SELECT sex, NULL, SUM(income) FROM people GROUP BY sex"
    found = offered(f"{once} UNION ALL {again}")
    shared = [each for each in found.blocks if isinstance(each.block.kind, Shared)]
    assert len(shared) == 1
    assert len(found.parts) == len(offered(once).parts) == 1
    assert isinstance(shared[0].block.kind, Shared)
    assert shared[0].noise == found.blocks[shared[0].block.kind.block].noise != {}


def test_a_statistic_is_made_of_what_is_read_alone() -> None:
    [block] = planned("SELECT SUM(age) FROM people").blocks
    with pytest.raises(Unproved, match="a reading that the query lacks"):
        block.statistics[0].over(())


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
@pytest.mark.parametrize("neighbors", harness.NEIGHBORS)
def test_margins_are_no_wider_on_average_than_of_groupings_by_themselves(
    neighbors: str, accountant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = ("sex", "smoker", "diagnosis", "age // 10", "month(born)", "age")
    dice = random.Random()
    questions = [
        f"GROUP BY {dice.choice(['ROLLUP', 'CUBE'])} ({', '.join(dice.sample(sizes, 2))})"
        for _ in range(8)
    ]
    for group in questions:
        sql = f"SELECT COUNT(*) AS n FROM people {group}"
        chosen = offered(sql, neighbors, accountant).margins(0, assuming=None)
        with monkeypatch.context() as patch:
            patch.setattr(rolling, "choose_roll_ups", each_itself)
            apart = offered(sql, neighbors, accountant).margins(0, assuming=None)
        assert chosen is not None
        assert apart is not None
        assert len(chosen) == len(apart)
        # whole numbers; reach is told within 2 %
        assert np.mean(chosen) <= 1.03 * np.mean(apart) + 0.5, group


def test_more_keys_than_are_allowed_are_not_put_together() -> None:
    text = policies.text("hospital").replace("memory: 1GB", "memory: 1GB, keys: 11")
    policy = type(policies.policy("hospital")).parse(text, path="hospital.yaml")
    plan = harness.planned(CUBE, policy, name="hospital")
    assert max(block.cells for block in plan.blocks) == 6


def test_explain_tells_which_way_and_why() -> None:
    policy = policies.policy("hospital")

    def told(sql: str) -> str:
        left = terms_of(policy).limit
        return explanation(
            offered(sql),
            policy,
            accountant_of(policy),
            analyst="ann",
            left=left,
            spell=harness.spelled,
        )

    assert "3, 4, 12 of them to one, free of charge" in told(CUBE)
    assert "12 public groups, with one more of each key, for NULL" in told(CUBE)
    assert "margins 2.1 times as large" in told(CUBE)
    assert "MEDIAN(age) is chosen in each group" in told(
        "SELECT sex, MEDIAN(age) FROM people GROUP BY ROLLUP (sex)"
    )
    assert "is not the sum of its parts'" in told(
        "SELECT sex, COUNT(DISTINCT age) FROM people GROUP BY ROLLUP (sex)"
    )
    assert "their keys are not public" in told(
        "SELECT zip, sex, COUNT(*) FROM people GROUP BY CUBE (zip, sex)"
    )
    sums = "Every total is the sum of its parts,"
    assert sums not in told(CUBE)  # which also has the rows whose sex or smoking is not known
    assert sums in told("SELECT diagnosis, COUNT(*) FROM people GROUP BY ROLLUP (diagnosis)")


def test_a_quote_tells_the_least_and_the_largest_margin() -> None:
    policy = policies.policy("hospital")
    quote = quote_of(
        offered(CUBE), accountant_of(policy), left=terms_of(policy).limit, assuming=None
    )
    assert quote.margins == {"n": {"least": 3.0, "most": 9.0}}
    assert "n: ± 3 to ± 9, by grouping" in str(quote)


# --- both ways mean the same ----------------------------------------------------------------------

QUESTIONS = [
    CUBE,
    "SELECT sex, diagnosis, GROUPING(sex, diagnosis) AS g, COUNT(*), AVG(age), SUM(balance), VARIANCE(age), CORR(age,"
    " balance) FROM people GROUP BY CUBE (sex, diagnosis)",
    "SELECT clinic, pain, COUNT(*) AS n, SUM(cost), MEDIAN(cost) FROM visits GROUP BY ROLLUP (clinic, pain)",
    "SELECT smoker, diagnosis, COUNT(income) AS n FROM people GROUP BY GROUPING SETS ((smoker), (diagnosis), ())",
    "SELECT diagnosis, sex, COUNT(*) FROM people GROUP BY ROLLUP (diagnosis, sex) HAVING COUNT(*) > 3",
]


@pytest.mark.parametrize("neighbors", harness.NEIGHBORS)
def test_both_ways_agree_without_noise(
    neighbors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where keys are NULL that should not be: such rows are in no group of that key, but in
    the totals.
    """
    tables = bounded.dirty(policies.policy("hospital"), people=40, dice=random.Random())
    curator = bounded.opened(tmp_path, "hospital", tables, neighbors=neighbors)
    for sql in QUESTIONS:
        together = rows(curator, sql)
        curator._view.plans.clear()  # planned anew
        with monkeypatch.context() as patch:
            patch.setattr(rolling, "choose_roll_ups", each_itself)
            apart = rows(curator, sql)
        curator._view.plans.clear()
        assert len(together) == len(apart)
        for one, other in zip(together, apart, strict=True):
            assert all(bounded.same(a, b) for a, b in zip(one, other, strict=True)), (
                sql,
                one,
                other,
            )


def rows(curator: Curator, sql: str) -> list[tuple[Any, ...]]:
    table = curator.ask(sql, analyst="ann", epsilon="1e45").table
    # which is chosen anew each time
    kept = [name for name in table.column_names if "MEDIAN" not in name]
    return [tuple(row.values()) for row in table.select(kept).to_pylist()]


def test_totals_are_the_sums_of_their_parts_where_null_is_a_group(tmp_path: Path) -> None:
    tables = bounded.dirty(policies.policy("hospital"), people=40, dice=random.Random())
    curator = bounded.opened(tmp_path, "hospital", tables)
    # rounded in each of 4 groups
    for aggregate, off in (("COUNT(*)", 0), ("SUM(age)", 0), ("COUNT(*), SUM(age)", 2)):
        sql = (
            f"SELECT GROUPING(diagnosis) AS g, {aggregate} FROM people GROUP BY ROLLUP (diagnosis)"
        )
        answer = curator.ask(sql, analyst="ann", epsilon=1).table.to_pylist()
        for name in list(answer[0])[1:]:
            parts = [row[name] for row in answer if not row["g"]]
            assert len(parts) == 4
            assert abs(sum(parts) - next(row[name] for row in answer if row["g"])) <= off


# --- margins --------------------------------------------------------------------------------------

KINDS = {
    "count": "COUNT(*)",
    "sum of both signs": "SUM(balance)",
    "mean": "AVG(age)",
    "deviation": "STDDEV(age)",
    "ratio": "100.0 * COUNT(*) FILTER (WHERE age > 50) / COUNT(*)",
}


def noised(
    each: BlockOffer, source: BlockOffer, purse: Any, times: int, name: str
) -> tuple[pa.Table, pa.Table]:
    """Many answers of a grouping, and what it is without noise: the source's cells, repeated under
    a made-up key.
    """
    key = Key(domain=Number(step=Fraction(1), lo=0, hi=times - 1), nullable=False)
    exact = population().sql(harness.spelled(source.block.sums)).to_arrow_table()
    columns = {"k0": pa.array(np.repeat(np.arange(times), exact.num_rows))}
    for index, column in enumerate(exact.column_names):
        renamed = f"k{index + 1}" if index < len(source.block.keys) else column
        values = np.array(
            [harness.whole(value) for value in exact.column(column).to_pylist()], dtype=object
        )
        columns[renamed] = pa.array(np.tile(values, times), pa.int64())
    assert isinstance(each.block.kind, RolledUp)
    rolled = replace(each.block.kind, keys=(0, *(place + 1 for place in each.block.kind.keys)))
    block = replace(each.block, keys=(key, *each.block.keys), kind=rolled)
    finer = replace(source.block, keys=(key, *source.block.keys))
    secret = Stream.fresh().bits(256).to_bytes(32, "little")
    tables = []
    for amount in (1, 10**40):
        allowance = Allowance(key=secret, accountant=purse, paid=Charge(amount=Fraction(10) ** 90))
        quiet = {
            name: replace(noise, scale=noise.scale / amount)
            if isinstance(noise, DiscreteLaplace)
            else replace(noise, sigma=noise.sigma / amount)  # type: ignore[type-var]
            for name, noise in source.added.items()
        }
        numbers = {
            statistic.id: allowance.measure(
                quiet[statistic.id],
                Exact(pa.table(columns)),
                moved=statistic.sensitivity,
                sizes=finer.sizes,
                forms=statistic.over(source.block.readings),
            )
            for statistic in source.block.own_statistics
        }
        noisy = Noisy(
            numbers=roll_up_numbers(rolled, block.sizes, finer.sizes, numbers),
            picks={},
            survivors=None,
        )
        table = noisy_table(block, noisy, each.noise, _run, name=name)
        if block.derived:
            value = _run(
                f'SELECT CAST({block.derived[0]} AS DOUBLE) AS d FROM "{name}"', {name: table}
            )
            table = table.append_column("d", value.column(0))
        tables.append(table)
    return tables[0], tables[1]


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
@pytest.mark.parametrize("kind", KINDS)
def test_margins_of_what_is_added_up_cover(kind: str, accountant: str) -> None:
    """At least 95 % in every coarser group; and margins of a fifth would be caught, in one group at
    least.
    """
    found = offered(f"SELECT {KINDS[kind]} AS x FROM people GROUP BY CUBE (smoker, diagnosis, sex)")
    purse = accountant_of(policies.policy("hospital", "add_remove", accountant))
    if accountant == "zcdp":  # the same plan, whose margins must hold whatever noise is on it
        limit = terms_of(policies.policy("hospital", "add_remove", accountant)).limit
        found = offer(found.plan, purse, amount=purse.allot(epsilon=Fraction(1)), limit=limit)
    coarse = [
        each
        for each in found.blocks
        if isinstance(each.block.kind, RolledUp) and len(each.block.keys) in (0, 1)
    ]
    assert len(coarse) == 4
    caught = False
    for each in coarse:
        assert isinstance(each.block.kind, RolledUp)
        source = found.blocks[each.block.kind.block]
        table, truth = noised(each, source, purse, ANSWERS, table_name(found.blocks.index(each)))
        value, margin = ("d", "d0") if each.block.derived else ("a0", "m0")
        off = np.abs(floats(table, value) - floats(truth, value)).reshape(ANSWERS, -1)
        # none: nothing is claimed
        margins = np.nan_to_num(floats(table, margin).reshape(ANSWERS, -1), nan=np.inf)
        known = ~np.isnan(off)  # a group with hardly anybody in it may have no deviation
        least = stats.binom.ppf(ALARM, known.sum(axis=0), 0.95)
        assert (((off <= margins * (1 + 1e-9) + 1e-9) & known).sum(axis=0) >= least).all()
        caught |= bool((((off <= margins / 5) & known).sum(axis=0) < least).any())
    assert caught


def floats(table: pa.Table, name: str) -> Any:
    return np.array(
        [np.nan if value is None else float(value) for value in table.column(name).to_pylist()]
    )


@pytest.mark.parametrize("scale", ["0.4", "1", "7"])
@pytest.mark.parametrize("kind", [DiscreteLaplace, DiscreteGaussian])
def test_margins_of_sums_are_the_smallest_that_cover(kind: Any, scale: str) -> None:
    """Against the convolution by definition."""
    mechanism = (
        kind(scale=Fraction(scale), l1=Fraction(1))
        if kind is DiscreteLaplace
        else kind(sigma=Fraction(scale), l2_squared=Fraction(1))
    )
    reach = 40 * max(1, int(float(scale)))
    one = np.exp([mechanism.log_mass(z) for z in range(-reach, reach + 1)])
    total = np.ones(1)
    for draws in range(1, 20):
        total = np.convolve(total, one)
        middle, half = (
            len(total) // 2,
            half_width(Several(noise=mechanism, draws=draws), (Fraction(1),)),
        )
        assert total[middle - half : middle + half + 1].sum() >= 0.95
        assert half == 0 or total[middle - half + 1 : middle + half].sum() < 0.95 + 1e-6


def test_wide_sums_and_ratios_cover() -> None:
    """Noise too wide to be convolved: against draws of it."""
    noise = Several(noise=DiscreteLaplace(scale=Fraction(1000), l1=Fraction(1)), draws=5)
    size = 100_000
    parts = fresh(noise.noise, (2, 5, size)).sum(axis=1)
    least, most = stats.binom.ppf([ALARM, 1 - ALARM], size, [0.95, 0.955])
    assert least <= (np.abs(parts[0]) <= half_width(noise, (Fraction(1),))).sum() <= most
    for share in (0.0, 0.2, 0.5):
        error = np.abs((1 - share) * parts[0] - share * parts[1])
        assert least <= (error <= ratio_quantile(noise, np.array(share))).sum() <= most
    factors = (Fraction(1, 3), Fraction(1))
    assert least <= (np.abs(parts[0] / 3 + parts[1]) <= half_width(noise, factors)).sum() <= most
