"""What DataSynthesizer 0.1.13 got wrong, as tests against ours."""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.errors import UsageError
from discreet.mechanisms import from_row
from discreet.synthetic.columns.axis import Intervals
from discreet.synthetic.description import Description
from synthetic.small_table import curator


def test_two_charges_never_share_noise(tmp_path: Path) -> None:
    """There: seed 0 by default, so the noise could be subtracted. Here: no seed exists, and every
    charge has a key.
    """
    made = [
        curator(tmp_path / name, count=400).describe(
            "people", epsilon=1, synthesizer="independent", columns=["age", "sex", "ill", "smoker"]
        )
        for name in "ab"
    ]
    noisy = [np.concatenate([each.counts for each in one.measured]) for one in made]
    assert (noisy[0] != noisy[1]).mean() > 0.5
    for verb in (curator(tmp_path / "c", count=4).describe, Description.generate):
        assert "seed" not in inspect.signature(verb).parameters


def test_the_price_is_what_was_asked(tmp_path: Path) -> None:
    """There: asked for ε, the correlated mode spent 2ε."""
    made = curator(tmp_path, count=100, budget="accountant: sum")
    made.describe("people", epsilon=1, synthesizer="privbayes")
    post = next(row for row in made._ledger.rows() if row["kind"] == "post")
    assert sum(from_row(row).loss().epsilon for row in post["mechanisms"]) <= 1  # type: ignore[misc]
    assert made._ledger.spent().amount == Fraction(1)


def test_domain_and_size_come_from_the_policy_and_noise(tmp_path: Path) -> None:
    """There: categories, minima, maxima, missing rates and n were read from the data. Here two
    tables that differ in all of these give descriptions of the same columns, cells and questions.
    (Where intervals are split, the cells follow noisy counts, which are paid for:
    tests/synthetic/test_spikes.py.)
    """
    made = [
        curator(tmp_path / str(n), count=n).describe(
            "people", epsilon=1, synthesizer="independent", intervals=Intervals(split=False)
        )
        for n in (4, 500)
    ]
    assert made[0].axes == made[1].axes
    assert [each.noise for each in made[0].measured] == [each.noise for each in made[1].measured]
    assert [len(each.counts) for each in made[0].measured] == [axis.size for axis in made[0].axes]


def test_a_description_is_data_and_never_code(tmp_path: Path) -> None:
    """There: the generator evaluated strings of the description. Here every string of a file may be
    code, in turn, and the file is refused, or rows are drawn from it; nothing runs.
    """
    made = curator(tmp_path, count=50).describe(
        "people", epsilon=1, synthesizer="independent", columns=["sex", "age"]
    )
    marker = tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    plain = json.loads(made.to_bytes())
    places = list(strings(plain))
    assert len(places) > 10
    for place in places:
        changed = copy.deepcopy(plain)
        holder: Any = changed
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = code
        with contextlib.suppress(UsageError):
            Description.from_bytes(json.dumps(changed).encode()).generate(rows=3)
    assert not marker.exists()


def strings(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a document strings stand."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from strings(part, (*place, key))


def test_zero_is_no_switch(tmp_path: Path) -> None:
    """There: epsilon 0 meant no noise at all."""
    made = curator(tmp_path, count=4)
    for epsilon in (0, "0", -1):
        with pytest.raises(ValueError, match="greater than zero"):
            made.describe("people", epsilon=epsilon)


def test_missing_values_are_reproduced(tmp_path: Path) -> None:
    """There they were not. A quarter of the incomes is missing."""
    made = curator(tmp_path, count=2000).describe("people", epsilon=200, synthesizer="independent")
    assert abs(made.generate(rows=4000)["income"].null_count / 4000 - 0.25) < 0.02
