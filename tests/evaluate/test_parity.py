"""Parity: the bootstrap of the real rows, synthetic tables of public and of private ones, and what
is reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy.stats import binom

import discreet
from discreet.attacks.experiment.dice import Dice
from discreet.binding import create_ledger
from discreet.cli import run
from discreet.errors import UsageError
from discreet.evaluate.assertion import Logic, read_assertion
from discreet.evaluate.bootstrap import Steadiness, steadiness
from discreet.evaluate.findings import Finding, Study, parse_study
from discreet.evaluate.judge import Judge, Verdict
from discreet.evaluate.paid import FAILS, HOLDS, UNASKED, UNCLEAR, ask_findings
from discreet.evaluate.parity import Parity, Trials, clopper_pearson, private_parity, public_parity
from discreet.evaluate.public import describe_public, domain_text
from discreet.evaluate.report import as_json, failures, intervals_text, page, real_text, why_text
from discreet.synthetic.description import Description

FINDINGS = """\
study: Pay
citation: Nobody (2026), The Journal of <Nothing> & More
table: people
findings:
  - says: Half of the people are women.
    kind: descriptive
    holds: AVG(CAST(sex = 'female' AS INTEGER)) BETWEEN 0.4 AND 0.6
    value: 0.5
    within: 0.05
  - says: Pay rises with schooling.
    kind: correlation
    holds: CORR(pay, school) > 0.5
  - says: Men earn more.
    kind: mean difference
    holds: AVG(pay) FILTER (WHERE sex = 'male') - AVG(pay) FILTER (WHERE sex = 'female') > 2
  - says: Women earn more.
    kind: mean difference
    holds: AVG(pay) FILTER (WHERE sex = 'female') - AVG(pay) FILTER (WHERE sex = 'male') > 2
  - says: Schooling pays at the same sex.
    kind: regression
    holds: OLS(pay, [school, sex = 'male']).coefficient[1] > 1 AND OLS(pay, [school, sex = 'male']).p[1] < 0.05
"""
ROWS = 2000


def pay_study() -> Study:
    return parse_study(FINDINGS, file="pay.yaml")


def people() -> pa.Table:
    place = np.arange(ROWS)
    school, male = 8 + place % 9, (place // 9) % 2
    noise = np.sin(place * 12.9898) * 43758.5453 % 1
    pay = np.clip(20 + 2 * (school - 8) + 8 * male + 10 * noise, 0, 60).astype(int)
    return pa.table({"pay": pay, "school": school, "sex": np.where(male == 1, "male", "female")})


# The bootstrap.


def finding(holds: str) -> Finding:
    assertion = read_assertion(holds, table="t")
    return Finding(
        number=1,
        says="",
        kind="descriptive",
        assertion=assertion,
        value=None,
        within=None,
        cited="",
    )


def steady(holds: str, values: Any, resamples: int) -> Steadiness:
    table = pa.table({"x": values})
    return steadiness([finding(holds)], table, judge=Judge(), resamples=resamples)[0]


def test_the_bootstrap_error_covers_as_often_as_it_says() -> None:
    """Of 40 samples with a known mean, about 37 lie within 1.96 errors of it, and about 12 within a
    fifth of that.

    Chance of failing: below 1e-9 for each side, were the coverages 0.9 and 0.4.
    """
    dice, judge, within, near = Dice(), Judge(), 0, 0
    assert binom.cdf(20, 40, 0.9) < 1e-9
    assert binom.sf(34, 40, 0.4) < 1e-9
    for _ in range(40):
        table = pa.table({"x": dice.normal(150)})
        [found] = steadiness([finding("AVG(x) > -1")], table, judge=judge, resamples=25)
        assert found.verdict.value is not None
        assert found.error is not None
        within += abs(found.verdict.value) < 1.96 * found.error
        near += abs(found.verdict.value) < 1.96 * found.error / 5
    assert within > 20
    assert near <= 34


def test_how_far_a_finding_is_from_turning() -> None:
    values = np.linspace(-1, 1, 401)  # mean 0, standard error 0.029
    far = steady("AVG(x) > -0.29", values, 60)
    edge = steady("AVG(x) > 0.0001", values, 60)
    assert (far.verdict.holds, far.flips) == (True, 0)
    assert far.distance == pytest.approx(10, rel=0.6)
    assert far.steady
    assert not edge.verdict.holds
    assert 5 < edge.flips < 55
    assert edge.distance == pytest.approx(0, abs=0.1)
    assert not edge.steady


def test_the_nearest_part_of_a_claim_counts() -> None:
    values = np.linspace(-1, 1, 401)
    both = steady("AVG(x) > -0.29 AND AVG(x) < 10", values, 40)
    either = steady("AVG(x) > -0.29 OR AVG(x) < 10", values, 40)
    assert both.distance is not None
    assert either.distance is not None
    assert both.distance < 20 < 100 < either.distance
    assert steady("ARG_MAX(x, x) = 1", values, 20).distance is None
    assert steady("COUNT(*) > 3", values, 20).distance == np.inf
    assert steady("AVG(x) > 3", values[:0], 5) == Steadiness(
        verdict=Verdict(holds=False, value=None, gaps=(None,), null=True),
        resamples=5,
        flips=0,
        distance=None,
        error=None,
    )


@pytest.mark.parametrize("n", [1, 3, 10])
def test_intervals_cover_whatever_the_share_is(n: int) -> None:
    intervals = [clopper_pearson(hits, n) for hits in range(n + 1)]
    for share in np.linspace(0, 1, 201):
        covered = sum(
            binom.pmf(k, n, share)
            for k, (low, high) in enumerate(intervals)
            if low <= share <= high
        )
        assert covered >= 0.95 - 1e-9
    assert intervals[0][0] == 0
    assert intervals[n][1] == 1


def test_the_interval_of_five_of_ten_is_the_one_in_every_table() -> None:
    assert clopper_pearson(5, 10) == pytest.approx((0.1871, 0.8129), abs=1e-4)
    assert clopper_pearson(0, 10) == pytest.approx((0, 0.3085), abs=1e-4)


# Public tables.


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([True, False], "{boolean: true}"),
        ([3, 9, None], "{integer: [3, 9], nullable: true}"),
        ([4, 4], "{integer: [4, 5]}"),
        ([3.0, 9.0, None], "{integer: [3, 9], nullable: true}"),
        ([0.25, 1.5], "{decimal: [0.25, 1.50], step: 0.25}"),
        ([-1.1, 0.3], "{decimal: [-1.1, 0.3], step: 0.1}"),
        (
            np.array([0.221, 3.9, 0.1], dtype=np.float32).astype(float),
            "{decimal: [0.100, 3.900], step: 0.001}",
        ),
        (["b", "a", "b", None], '{values: ["a", "b"], nullable: true}'),
        ([date(2020, 1, 2), date(2021, 3, 4)], "{date: [2020-01-02, 2021-03-04]}"),
        (
            [datetime(2020, 1, 2, 3, 4), datetime(2020, 1, 5)],
            "{timestamp: [2020-01-02, 2020-01-06], step: 1s}",
        ),
    ],
)
def test_domains_come_from_a_public_column(values: Any, text: str) -> None:
    assert domain_text("x", pa.chunked_array([pa.array(values)])) == text


@pytest.mark.parametrize("values", [[None], [float("inf"), 1.0], [b"bytes"], [[1, 2]]])
def test_columns_that_cannot_be_described_say_so(values: Any) -> None:
    with pytest.raises(UsageError, match=r"x .*(Leave it out|leave it out)"):
        domain_text("x", pa.chunked_array([pa.array(values)]))


def test_every_description_of_a_public_table_is_a_fresh_one() -> None:
    table = people().append_column("row_number", pa.array(np.arange(ROWS) % 3))
    made = [
        describe_public(table, name="people", epsilon="1", synthesizer="independent")
        for _ in range(2)
    ]
    assert made[0].measured[0].counts.tolist() != made[1].measured[0].counts.tolist()
    assert [axis.name for axis in made[0].axes] == ["pay", "school", "sex", "row_number"]


def test_a_public_table_of_every_kind_of_column_is_described() -> None:
    """Also where a name has a dot or is a key word; a name that no policy takes is refused in a
    sentence.
    """
    place = np.arange(300)
    table = pa.table(
        {
            "yrs.service": place % 7,
            "new": place % 2 == 0,
            "select": pa.array([None if each % 5 == 0 else "ja: nein, {x}" for each in place]),
            "day": pa.array([date(2020, 1, 1 + int(each) % 28) for each in place]),
            "seen": pa.array([datetime(2020, 1, 1, int(each) % 24) for each in place]),
            "cost": place / 4,
        }
    )
    made = describe_public(table, name="select", epsilon="50", synthesizer="independent").generate(
        rows=200
    )
    assert made.column_names == table.column_names
    with pytest.raises(UsageError, match=r"public table cannot be described: .*letters, digits"):
        describe_public(pa.table({'a "b"': place}), name="t", epsilon="1", synthesizer="random")
    found = finding(
        'AVG("yrs.service") BETWEEN 2 AND 4 AND MAX(cost) > 50 AND COUNT("select") < COUNT(*)'
    )
    assert found.assertion.columns(tuple(table.column_names)) == ("yrs.service", "select", "cost")
    assert Judge().verdict(found.assertion, made).holds


@pytest.fixture(scope="module")
def tried() -> Parity:
    planned = Trials(synthesizers=["independent", "default"], epsilons=["1", "20"], repeats=2)
    return public_parity(pay_study(), people(), planned, resamples=20)


def test_findings_hold_where_the_model_keeps_them(tried: Parity) -> None:
    held = [cell.held for cell in tried.of("default", "20")]
    assert held == [2, 2, 2, 0, 2]
    assert tried.parity("default", "20") == 0.8
    assert tried.parity("default", "20", steady=True) == 1.0


def test_independent_columns_keep_no_finding_about_two(tried: Parity) -> None:
    cells = tried.of("independent", "20")
    assert [cell.held for cell in cells] == [2, 0, 0, 0, 0]
    assert (cells[0].together, cells[0].near) == (2, 2)
    assert (cells[1].together, cells[1].apart, cells[1].near) == (0, (("pay", "school", 2),), None)
    assert why_text(cells[1]) == "never measured together: pay × school"
    assert why_text(cells[0]) == "its columns were measured together every time"


def test_the_real_side_says_what_the_rows_say(tried: Parity) -> None:
    assert [each.verdict.holds for each in tried.real] == [True, True, True, False, True]
    assert "holds, " in real_text(tried.real[0])
    assert "does not hold" in real_text(tried.real[3])
    assert [each.steady for each in tried.real] == [True, True, True, False, True]


def test_the_same_is_told_as_json_as_lines_and_as_a_page(tried: Parity) -> None:
    told = as_json(tried)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert len(told["cells"]) == 20
    assert told["cells"][0]["interval"] == list(clopper_pearson(told["cells"][0]["held"], 2))
    assert told["findings"][1]["columns"] == ["pay", "school"]
    assert {"synthesizer": "default", "epsilon": 20.0, "parity": 0.8, "steady": 1.0} in told[
        "parity"
    ]
    assert (
        "2",
        "independent, ε = 20",
        "0 of 2",
        "never measured together: pay × school",
    ) in failures(tried)
    assert "2 of 2: 16 to 100 %" in intervals_text(tried)
    shown = page(tried)
    assert "Pay: would it still be true?" in shown
    assert "&lt;Nothing&gt; &amp; More" in shown
    assert shown.count("<rect") >= 20
    assert "NOT FOR RELEASE" not in shown


def test_several_processes_try_the_same(tried: Parity) -> None:
    planned = Trials(synthesizers=["independent"], epsilons=["20"], repeats=2)
    found = public_parity(pay_study(), people(), planned, resamples=0, jobs=2)
    assert [cell.held for cell in found.cells] == [
        cell.held for cell in tried.of("independent", "20")
    ]
    assert found.real[0].resamples == 0


def test_a_synthesizer_that_is_told_measures_what_findings_need() -> None:
    """With ten idle columns beside, at little ε: what is not asked for is not measured."""
    table = people()
    for number in range(10):
        table = table.append_column(
            f"idle{number}", pa.array(np.arange(ROWS) * (number + 3) // 7 % 6)
        )
    planned = Trials(synthesizers=["default"], epsilons=["1"], repeats=1, informed=True)
    found = public_parity(pay_study(), table, planned, resamples=0)
    cells = found.of("default", "1")
    assert [cell.held for cell in cells[:4]] == [1, 1, 1, 0]
    assert cells[1].apart == ()


# Private tables.

POLICY = """\
unit: person
tables:
  people:
    owner: person
    columns:
      person: {identifier: true}
      pay: {integer: [0, 60]}
      school: {integer: [8, 16]}
      sex: {values: [female, male]}
budget: {epsilon: 200}
limits: {epsilon: 100}
"""


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy, a description, the raw rows and the findings."""
    folder = tmp_path_factory.mktemp("private")
    opened(folder).describe("people", epsilon=20).save(folder / "people.json")
    return folder


def opened(folder: Path) -> discreet.Curator:
    """A curator of a folder that has a policy, the raw rows and the findings."""
    (folder / "policy.yaml").write_text(POLICY.replace("unit:", "source: data\nunit:"))
    (folder / "pay.yaml").write_text(FINDINGS)
    (folder / "data").mkdir()
    rows = people().append_column("person", pa.array(np.arange(ROWS)))
    pyarrow.csv.write_csv(rows, folder / "data" / "people.csv")
    policy = discreet.Policy.read(folder / "policy.yaml")
    create_ledger(policy)
    return discreet.open(folder / "policy.yaml")


def test_the_private_side_is_paid_for(private: Path) -> None:
    curator = discreet.open(private / "policy.yaml")
    before = curator.left(analyst="curator").epsilon
    paid = ask_findings(pay_study(), curator, epsilon="40", analyst="curator")
    assert [each.verdict for each in paid] == [HOLDS, HOLDS, HOLDS, FAILS, UNASKED]
    assert paid[0].value == pytest.approx(0.5, abs=0.05)
    assert paid[0].margin is not None
    assert 0 < paid[0].margin < 0.05
    assert "public rows only" in paid[4].why
    # a quarter each; 3 and 4 are about the same means
    assert before - curator.left(analyst="curator").epsilon == 30
    # asked again, it is free
    assert ask_findings(pay_study(), curator, epsilon="40", analyst="curator") == paid
    assert before - curator.left(analyst="curator").epsilon == 30


def test_little_epsilon_cannot_tell(tmp_path: Path) -> None:
    curator = opened(tmp_path)
    paid = ask_findings(pay_study(), curator, epsilon="0.0001", analyst="curator")
    assert [each.verdict for each in paid] == [UNCLEAR, UNCLEAR, UNCLEAR, UNCLEAR, UNASKED]


def test_margins_move_a_claim_to_both_ends() -> None:
    a, b = Logic(word="gap", gap=0), Logic(word="gap", gap=1)
    both, either = (Logic(word=word, parts=(a, b)) for word in ("and", "or"))
    assert both.ends([1, -2], [3, 5]) == (-2, 3)
    assert either.ends([1, -2], [3, 5]) == (1, 5)
    assert Logic(word="not", parts=(a,)).ends([1], [3]) == (-3, -1)
    assert both.ends([1, None], [3, None]) == (None, None)
    assert Logic(word="unknown").ends([], []) == (None, None)


Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    def call(*words: object) -> tuple[int, str, str]:
        code = run([str(word) for word in words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_the_command_on_a_private_table(private: Path, shell: Shell) -> None:
    findings, policy, description = (
        private / name for name in ("pay.yaml", "policy.yaml", "people.json")
    )
    code, out, _ = shell(
        "parity", findings, policy, description, "--repeats", 3, "--epsilon", 40, "--format", "json"
    )
    told = json.loads(out)
    assert code == 0
    assert "release" not in told
    assert [each["paid"]["verdict"] for each in told["findings"]] == [
        HOLDS,
        HOLDS,
        HOLDS,
        FAILS,
        UNASKED,
    ]
    assert [each["real"] for each in told["findings"]] == [None] * 5
    assert [each["held"] for each in told["cells"]] == [3, 3, 3, 0, 3]
    code, out, _ = shell("parity", findings, policy, description, "--repeats", 2)
    assert code == 0
    assert "NOT FOR RELEASE" not in out
    assert "parity: mean share of tables" in out


def test_the_raw_report_is_marked_and_for_this_account_alone(private: Path, shell: Shell) -> None:
    findings, policy, description = (
        private / name for name in ("pay.yaml", "policy.yaml", "people.json")
    )
    raw, html = private / "data" / "people.csv", private / "raw.html"
    words = (
        "parity",
        findings,
        policy,
        description,
        "--repeats",
        1,
        "--bootstrap",
        5,
        "--raw",
        raw,
    )
    code, out, _ = shell(*words, "--html", html)
    assert code == 0
    assert out.startswith("NOT FOR RELEASE")
    assert "NOT FOR RELEASE" in html.read_text()
    assert html.stat().st_mode & 0o777 == 0o600
    code, out, _ = shell(*words, "--format", "json")
    assert json.loads(out)["release"] == "NOT FOR RELEASE"


def test_the_command_on_a_public_table(private: Path, shell: Shell, tmp_path: Path) -> None:
    public, html = tmp_path / "public.csv", tmp_path / "parity.html"
    pyarrow.csv.write_csv(people(), public)
    words = ("parity", private / "pay.yaml", "--public", public, "--repeats", 1, "--bootstrap", 5)
    code, out, _ = shell(
        *words, "--synthesizers", "random, independent", "--epsilons", "1,5", "--html", html
    )
    assert code == 0
    for name in ("random, ε = 1", "independent, ε = 5", "Nobody (2026)", "Finding 2 held 0 of 1"):
        assert name in out
    assert "heat" in html.read_text()
    code, out, _ = shell(
        *words, "--synthesizers", "random", "--epsilons", "1/2", "--format", "json"
    )
    assert code == 0
    assert {each["epsilon"] for each in json.loads(out)["cells"]} == {0.5}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["none"], "no such study is shipped"),
        (["pay.yaml"], "name no data"),
        (["pay.yaml", "policy.yaml"], "Name the description"),
        (
            ["pay.yaml", "policy.yaml", "people.json", "--public", "data/people.csv"],
            "--public belongs to a public table",
        ),
        (
            ["pay.yaml", "policy.yaml", "people.json", "--informed"],
            "--informed belongs to a public table",
        ),
        (["pay.yaml", "--epsilon", "1"], "--epsilon belongs to a private table"),
        (
            ["pay.yaml", "--public", "data/people.csv", "--raw", "data/people.csv"],
            "--raw belongs to a private table",
        ),
        (
            [
                "pay.yaml",
                "policy.yaml",
                "people.json",
                "--raw",
                "data/people.csv",
                "--epsilon",
                "1",
            ],
            "Write one of them",
        ),
        (
            ["pay.yaml", "--public", "data/people.csv", "--synthesizers", "best"],
            "There is no synthesizer best",
        ),
        (
            ["pay.yaml", "--public", "data/people.csv", "--epsilons", "0"],
            "epsilon must be greater than zero",
        ),
        (
            ["pay.yaml", "--public", "data/people.csv", "--epsilons", "1,many"],
            "epsilon must be a finite number",
        ),
        (["pay.yaml", "--public", "data/people.csv", "--epsilons", ","], "separated by commas"),
        (["affairs", "policy.yaml", "people.json"], "findings are about readers"),
        (["pay.yaml", "--public", "none.csv"], "none.csv"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(
    words: list[str], why: str, private: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(private)
    code, out, err = shell("parity", *words)
    assert code == 2
    assert why in err
    assert not out


def test_a_finding_that_cannot_be_judged_is_named_and_nothing_is_paid(
    private: Path, shell: Shell
) -> None:
    """Here, two findings that a table answers with a number and with no column."""
    curator = discreet.open(private / "policy.yaml")
    spent = curator._ledger.spent()
    text = (private / "pay.yaml").read_text()
    for holds, why in (("MAX(pay)", "neither true nor false"), ("AVG(weight) > 1", "weight")):
        path = private / "broken.yaml"
        more = f"  - {{says: Broken., kind: descriptive, holds: {holds}}}\n"
        path.write_text(text + more)
        number = text.count("says:") + 1
        words = ("parity", path, private / "policy.yaml", private / "people.json", "--repeats", 1)
        code, out, err = shell(*words, "--epsilon", 1)
        assert code == 2
        assert f"Finding {number}: " in err
        assert why in err
        assert not out
    assert curator._ledger.spent() == spent


def test_a_finding_that_is_null_says_so(private: Path, shell: Shell) -> None:
    """Its columns were measured together, and that is not why it failed."""
    path = private / "null.yaml"
    holds = "AVG(pay) / COUNT(*) FILTER (WHERE school > 99) > 0"
    more = f"  - {{says: Nobody., kind: descriptive, holds: {holds}}}\n"
    path.write_text((private / "pay.yaml").read_text() + more)
    words = ("parity", path, private / "policy.yaml", private / "people.json", "--repeats", 2)
    code, out, _ = shell(*words)
    assert code == 0
    assert "it was NULL on 2 of 2 tables (a division by zero" in out
    code, out, _ = shell(*words, "--raw", private / "data" / "people.csv", "--bootstrap", 2)
    assert code == 0
    assert "does not hold, because it is NULL" in " ".join(out.replace("│", " ").split())
    code, out, _ = shell(*words, "--epsilon", 5, "--format", "json")
    assert code == 0
    assert json.loads(out)["cells"][-1]["null"] == 2


def test_a_description_for_findings(private: Path, shell: Shell, tmp_path: Path) -> None:
    """`--for` measures what the findings need; findings about another table are refused before
    anything is paid.
    """
    out = tmp_path / "for.json"
    words = ("describe", private / "policy.yaml", "people", "--epsilon", 1, "--out", out)
    code, _, err = shell(*words, "--for", "affairs")
    assert code == 2
    assert "about readers, not people" in err
    code, _, _ = shell(*words, "--for", private / "pay.yaml")
    assert code == 0
    made = Description.load(out)
    measured = [
        frozenset(made.axes[column].name for column in each.columns) for each in made.measured
    ]
    assert any({"pay", "school"} <= each for each in measured)


def test_draws_of_one_description_differ_and_their_rows_are_as_many_as_expected(
    private: Path,
) -> None:
    description = Description.load(private / "people.json")
    found = private_parity(pay_study(), description, repeats=3)
    assert len(set(found.cells[0].values)) > 1
    assert found.real == found.paid == ()
    assert found.sides == (("default", f"{description.cost['epsilon']:.6g}"),)
