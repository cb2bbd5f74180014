"""Answers in a notebook: frames, charts, the magic of cells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

import discreet
import small_town
from discreet.binding import create_ledger
from discreet.budget import Budget
from discreet.policy.policy import Policy
from discreet.vault.answer import Answer

COST = Budget(epsilon=Fraction(1, 10), delta=Fraction(0))
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def answer(keys: dict[str, list[Any]], values: list[Any], margins: list[float | None]) -> Answer:
    nothing = pa.array([None] * len(values), pa.float64())
    return Answer(
        table=pa.table({**keys, "n": values}),
        margins=pa.table({**dict.fromkeys(keys, nothing), "n": pa.array(margins, pa.float64())}),
        selected=(False,) * len(values),
        cost=COST,
        left=COST,
        certificate={},
        id="7",
    )


def test_a_short_repr() -> None:
    assert (
        repr(answer({"k": ["a", "b"]}, [1, 2], [1.0, 1.0]))
        == "<Answer 7: 2 rows of 2, cost ε = 0.1>"
    )


def test_frames() -> None:
    found = answer({"k": ["a", "b"]}, [5, 7], [1.5, 2.5])
    assert found.to_pandas().to_dict("list") == {"k": ["a", "b"], "n": [5, 7]}
    both = {"k": ["a", "b"], "n": [5, 7], "n_margin": [1.5, 2.5]}
    assert found.to_pandas(margins=True).to_dict("list") == both
    assert found.to_polars(margins=True).to_dict(as_series=False) == both
    assert found.to_polars().columns == ["k", "n"]


def test_a_missing_package_is_named_with_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.vault.answer.find_spec", lambda name: None)
    with pytest.raises(discreet.UsageError, match="pip install polars"):
        answer({}, [1], [1.0]).to_polars()


def test_bars_below_their_margin_are_pale() -> None:
    drawn = answer({"k": ["a", "b"]}, [100, 3], [5.0, 5.0]).plot()._repr_html_()
    assert drawn.count('<g class="c0">') == 1
    assert drawn.count('<g class="c9">') == 1


def test_two_keys_of_which_one_is_a_time_make_lines() -> None:
    days = [date(2024, month, 1) for month in (1, 2, 3)] * 2
    found = answer({"kind": ["a"] * 3 + ["<b>"] * 3, "day": days}, [1, 2, 3, 4, 5, 6], [1.0] * 6)
    drawn = found.plot("n").html
    assert drawn.count('class="band"') == 2
    assert "&lt;b&gt;" in drawn
    assert "<b>b" not in drawn
    assert drawn in found._repr_html_()


def test_two_other_keys_make_bars_with_both_names() -> None:
    drawn = answer({"k": ["a", "a"], "l": ["x", "y"]}, [1, 2], [0.5, 0.5]).plot().html
    assert "a · x" in drawn
    assert "a · y" in drawn


@pytest.mark.parametrize(
    ("keys", "measure"),
    [({}, None), ({"k": ["a"]}, None), ({"k": ["a"], "l": [1], "m": [2]}, None), ({}, "k")],
)
def test_what_cannot_be_drawn_is_refused(keys: dict[str, list[Any]], measure: str | None) -> None:
    with pytest.raises(discreet.UsageError):
        answer(keys, [1], [1.0]).plot(measure)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[InteractiveShell]:
    path = tmp_path / "town.yaml"
    path.write_text(
        small_town.POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum")
    )
    create_ledger(Policy.read(path))
    discreet.open(path, tables=small_town.town(victim=True))
    started = InteractiveShell()
    started.user_ns["path"] = str(path)
    started.run_line_magic("load_ext", "discreet")
    yield started
    started.history_manager.end_session() if started.history_manager else None


def ask(shell: InteractiveShell, line: str, sql: str = BY_SEX) -> Any:
    return shell.run_cell(f"%%discreet {line}\n{sql}\n", store_history=False)


def test_a_cell_of_sql(shell: InteractiveShell) -> None:
    shell.run_line_magic("discreet", shell.user_ns["path"])
    found = ask(shell, "--analyst alice --epsilon 0.5 --into people").result
    assert isinstance(found, Answer)
    assert found.cost.epsilon == Fraction(1, 2)
    assert shell.user_ns["people"] is found
    again = ask(shell, "--analyst alice --margin 20 --quote").result
    assert set(again.margins) == {"n"}
    shown = shell.display_formatter.format(again)[0]["text/plain"]
    assert shown == str(again)
    assert shown.startswith("cost ε = ")
    assert ask(shell, "--analyst alice --epsilon 0.5 --explain").success


def test_the_only_curator_of_a_notebook_is_asked(shell: InteractiveShell) -> None:
    shell.user_ns["curator"] = discreet.open(shell.user_ns["path"])
    assert isinstance(ask(shell, "--analyst alice --epsilon 1").result, Answer)
    shell.user_ns["other"] = discreet.open(shell.user_ns["path"])
    assert "Whom do you ask?" in str(ask(shell, "--analyst alice --epsilon 1").error_in_exec)
    assert isinstance(ask(shell, "other --analyst alice --epsilon 1").result, Answer)


@pytest.mark.parametrize(
    ("line", "sql", "told"),
    [
        ("--analyst alice --epsilon 1", "SELECT name FROM people", "Rejected (line 1"),
        ("--analyst alice --epsilon -1", BY_SEX, "psilon"),
        ("--epsilon 1", BY_SEX, "Who asks?"),
        ("--analyst alice --epsilon 1 --into 1x", BY_SEX, "--into names a variable"),
        ("--analyst alice --silon 1", BY_SEX, "unrecognized arguments"),
        ("--analyst alice --epsilon '1", BY_SEX, "quotation"),
    ],
)
def test_refusals_are_one_sentence(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], line: str, sql: str, told: str
) -> None:
    shell.run_line_magic("discreet", shell.user_ns["path"])
    found = ask(shell, line, sql)
    assert not found.success
    assert told in str(found.error_in_exec)
    assert "Traceback" not in "".join(capsys.readouterr())
