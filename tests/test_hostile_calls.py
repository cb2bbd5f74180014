"""An analyst with Python and a terminal: odd arguments, texts that speak to terminals, descriptions
made by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet.accounting import SumAccountant
from discreet.binding import create_ledger
from discreet.budget import Charge
from discreet.cli import run
from discreet.curator import Curator
from discreet.errors import DiscreetError, Rejected
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.exponential import PermuteAndFlip
from discreet.noise import Stream
from discreet.policy.policy import Policy
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact
from small_town import POLICY, town

COUNT = "SELECT COUNT(*) FROM people"
MEAN = "SELECT AVG(income) FROM people"


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    path = tmp_path_factory.mktemp("hostile") / "policy.yaml"
    path.write_text(
        POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum"), encoding="utf-8"
    )
    create_ledger(Policy.read(path))
    return discreet.open(path, tables=town(victim=True))


def said(work: Callable[[], Any]) -> str:
    """What an analyst sees: an answer, or one of our own sentences; anything else is an escape."""
    try:
        work()
    except DiscreetError as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


NUMBERS = (
    *(
        -1,
        0,
        True,
        None,
        float("nan"),
        float("inf"),
        1e308,
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("-Infinity"),
    ),
    *(
        "",
        " ",
        "e",
        "0x1",
        "1//3",
        "1/0",
        "1e999999999",
        "9" * 500,
        "∞",
        b"1",
        [1],
        {},
        object(),
        1j,
    ),
)


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: repr(value)[:20])
def test_odd_amounts(curator: Curator, value: Any) -> None:
    before = curator._ledger.spent()
    assert said(lambda: curator.ask(COUNT, analyst="alice", epsilon=value)).startswith("UsageError")
    assert said(lambda: curator.ask(COUNT, analyst="alice", margin=value)).startswith("UsageError")
    assert said(lambda: curator.describe("people", epsilon=value)).startswith("UsageError")
    assert curator._ledger.spent() == before


@pytest.mark.parametrize(
    "value", [np.float64(0.5), Fraction(1, 3), Decimal("0.1"), " 1 ", "1/3", ".5"], ids=repr
)
def test_amounts_that_are_numbers(curator: Curator, value: Any) -> None:
    assert said(lambda: curator.quote(COUNT, analyst="alice", epsilon=value)) in ("answered",)


@pytest.mark.parametrize(
    "value", [0, -1, 10**400, 1.5, "x", True, float("nan"), b"", []], ids=lambda v: repr(v)[:20]
)
def test_odd_assumptions(curator: Curator, value: Any) -> None:
    for named in ({"epsilon": 1}, {"margin": 1000}):
        assert said(
            lambda named=named: curator.quote(MEAN, analyst="alice", assuming=value, **named)  # type: ignore[misc]
        ).startswith("UsageError")


class Liar(str):
    """A text that says it is whatever it is compared with, the curator too."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


def test_odd_texts_and_names(curator: Curator) -> None:
    for sql in (None, 1, b"SELECT 1", ["x"], object()):
        assert said(lambda sql=sql: curator.ask(sql, analyst="alice", epsilon=1)).startswith(
            "UsageError"
        )  # type: ignore[misc]
    for who in (
        None,
        1,
        b"alice",
        ["alice"],
        "",
        "Alice",
        "alice ",
        "x'; --",
        "\ud800",
        "\x00",
        "a" * 10**5,
    ):
        assert said(lambda who=who: curator.ask(COUNT, analyst=who, epsilon=1)).startswith(
            "UsageError"
        )  # type: ignore[misc]
        assert said(lambda who=who: curator.quote(COUNT, analyst=who, epsilon=1)).startswith(
            "UsageError"
        )  # type: ignore[misc]
    assert "plain text" in said(lambda: curator.ask(COUNT, analyst=Liar("eve"), epsilon=1))
    for table, column in (
        (None, None),
        (1, 2),
        ("people", 'age" FROM people; --'),
        ('people" --', "age"),
    ):
        shown = said(lambda table=table, column=column: curator.bounds(table, column, epsilon=1))  # type: ignore[misc]
        assert shown.startswith(("UsageError", "Rejected"))


@pytest.mark.parametrize(
    "mark", ["\x1b[2J", "\x07", "\x9b", "\u202e", "\u2066", "\x00", "\ud800"], ids=repr
)
def test_no_control_character_gets_into_the_ledger(curator: Curator, mark: str) -> None:
    """They would speak to the terminal of whoever lists it, or turn a line around."""
    for sql in (
        f"{COUNT} /* {mark} */",
        f'SELECT COUNT(*) AS "{mark}" FROM people',
        f"{COUNT} WHERE zip = '{mark}'",
    ):
        with pytest.raises(Rejected):
            curator.ask(sql, analyst="alice", epsilon=1)


def test_brackets_are_no_markup(curator: Curator, capsys: pytest.CaptureFixture[str]) -> None:
    """A question with [/bold] in it ended the curator's listing, and the analyst's own answer after
    it was charged.
    """
    path = str(curator.policy.path)
    sql = 'SELECT COUNT(*) AS "[/bold]" FROM people /* [link=x]y[/link] [/] */'
    assert run(["ask", path, sql, "--analyst", "alice", "--epsilon", "1"]) == 0
    assert "[/bold]" in capsys.readouterr().out
    assert run(["ledger", path]) == 0
    assert "[/]" in capsys.readouterr().out.replace("\n", "").replace(" ", "")


def test_texts_of_the_data_do_not_speak_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, tables = tmp_path / "policy.yaml", town(victim=True)
    path.write_text(
        POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum"), encoding="utf-8"
    )
    create_ledger(Policy.read(path))
    people = tables["people"]
    place = people.column_names.index("zip")
    tables["people"] = people.set_column(place, "zip", [["\x1b[2J[/x]"] * people.num_rows])
    discreet.open(path, tables=tables)
    sql = "SELECT zip, COUNT(*) FROM people GROUP BY zip"
    assert run(["ask", str(path), sql, "--analyst", "alice", "--epsilon", "50"]) == 0
    shown = capsys.readouterr().out
    assert "[/x]" in shown
    assert "\x1b" not in shown


NAMES = ("[red]x", "[/]", "\x1b[2Jy")


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that succeeds prints, without the terminal's own line ends."""
    assert run(arguments) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    assert "\x1b" not in out
    return out.replace("\n", "").replace(" ", "")


def test_names_of_a_file_do_not_speak_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns and values of files that somebody sent: printed as they stand, whatever they would
    mean as markup.
    """
    path, width = str(tmp_path / "rows.parquet"), len(NAMES)
    rows = pa.table(
        {name: [NAMES[(i + place) % width] for i in range(12)] for place, name in enumerate(NAMES)}
    )
    pyarrow.parquet.write_table(rows, path)
    shown = "[red]x", "[/]", "\ufffd[2Jy"
    for command in (
        ["query", path, "SELECT * FROM rows"],
        ["risk", path, "--quasi", ",".join(NAMES), "--reveal"],
        [
            "anonymize",
            path,
            "--quasi",
            ",".join(NAMES),
            "--k",
            "3",
            "--out",
            str(tmp_path / "made.csv"),
        ],
        ["attack", "link", path, path, "--on", ",".join(NAMES)],
    ):
        out = printed(command, capsys)
        assert all(each in out for each in shown), command


def test_a_description_does_not_speak_to_the_terminal(
    curator: Curator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "d.json"
    curator.describe("people", epsilon=1, columns=["age", "sex"], synthesizer="independent").save(
        path
    )
    text = (
        path.read_text(encoding="utf-8")
        .replace('"sex"', '"\\u001b[2J[/]"')
        .replace('"age"', '"[red]x"')
    )
    path.write_text(text, encoding="utf-8")
    out = printed(["inspect", str(path)], capsys)
    assert "[red]x" in out
    assert "\ufffd[2J[/]" in out
    assert (
        run(
            [
                "generate",
                str(path),
                "--rows",
                "1",
                "--out",
                str(tmp_path / "x.csv"),
                "--given",
                "sex=F",
            ]
        )
        != 0
    )
    told = capsys.readouterr().err  # the sentence names the columns that there are
    assert "\ufffd[2J[/]" in told
    assert "\x1b" not in told


def test_a_model_made_by_hand_does_not_make_distances_wrap() -> None:
    """Distances that add up to 2^63 - 1 without somebody were -2^63 with them: one look, whatever
    the noise.

    The adversary knows everybody else and writes the description, hence the model that the counts
    are compared with.
    """
    shown = []
    for rows in (5, 6):
        counts = Exact(pa.table({"k0": [0], "s0": [rows]}))
        model = np.array([0, *[92 * 10**16] * 10, 2**63 - 1 - 92 * 10**17 - 5])
        noise = DiscreteLaplace(scale=Fraction(1), l1=Fraction(1))
        allowance = Allowance(
            key=b"k" * 32, accountant=SumAccountant(), paid=Charge(amount=Fraction(1))
        )
        shown.append(
            int(
                allowance.distances(
                    noise, [counts], moved=ONE, cells=[np.arange(len(model))], models=[model]
                )[0]
            )
        )
    assert shown[1] - shown[0] == 1


def test_sums_of_points_do_not_wrap() -> None:
    """Rows of 2^61 with four points each would pass 64 bits, and one row more would show."""
    shown = []
    for rows in (2**61, 2**61 + 1):
        counts = Exact(pa.table({"k0": [0], "s0": [rows]}))
        noise = DiscreteLaplace(scale=Fraction(1), l1=Fraction(1))
        allowance = Allowance(
            key=b"k" * 32, accountant=SumAccountant(), paid=Charge(amount=Fraction(1))
        )
        shown.append(int(allowance.sums(noise, [counts], moved=ONE, points=[np.array([4])])[0]))
    assert shown[1] - shown[0] == 4


ONE = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)


@pytest.mark.parametrize("sums", [[], [0], [7]])
def test_large_factors_fit_whatever_the_sums(sums: list[int]) -> None:
    """A factor beyond 64 bits failed on sums of nobody and on no other: the traceback would have
    told them apart.
    """
    keys = list(range(len(sums)))
    noise = DiscreteLaplace(scale=Fraction(1), l1=Fraction(1))
    allowance = Allowance(
        key=b"k" * 32, accountant=SumAccountant(), paid=Charge(amount=Fraction(1))
    )
    exact = Exact(pa.table({"k0": pa.array(keys, pa.int64()), "s0": pa.array(sums, pa.int64())}))
    ((noisy,),) = allowance.measure(noise, exact, moved=ONE, sizes=[1], forms=[(2**70,)])
    assert abs(int(noisy) - sum(sums) * 2**70) < 1000


def test_scores_do_not_wrap() -> None:
    """The farthest of two tables stays the farthest when its score passes 64 bits."""
    counts = Exact(pa.table({"k0": [0], "s0": [5]}))
    models = [np.array([2**61, 0]), np.array([5, 0])]
    choice = PermuteAndFlip(epsilon=Fraction(1), linf=Fraction(8))
    for _ in range(20):
        allowance = Allowance(
            key=Stream.fresh()._key, accountant=SumAccountant(), paid=Charge(amount=Fraction(1))
        )
        cells = [np.arange(2)] * 2
        chosen = allowance.farthest(
            choice,
            [counts] * 2,
            moved=1,
            cells=cells,
            models=models,
            factors=[8, 8],
            expected=[0, 0],
        )
        assert chosen == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT LPAD('a', 1000000000, 'b'), COUNT(*) FROM people",
        "SELECT RPAD('a', COUNT(*), 'b') FROM people",
        "SELECT LPAD('a', 5, ''), COUNT(*) FROM people",
        "SELECT REPEAT('a', 1000000000), COUNT(*) FROM people",
        "SELECT COUNT(*) FROM people, range(100000000000)",
    ],
)
def test_nothing_grows_without_end_after_noise(curator: Curator, sql: str) -> None:
    before = curator._ledger.spent()
    with pytest.raises(Rejected):
        curator.ask(sql, analyst="alice", epsilon=1)
    assert curator._ledger.spent() == before
