"""Plan a question: whose rows are read, what is measured, and what runs after noise.

`plan` parses the text, lets `Analysis` walk over the tree, and makes the plan from what the walk
collected. It refuses every clause that it does not understand, and ignores none.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.errors import DiscreetError, Rejected
from discreet.policy.policy import Policy
from discreet.sql import rolling, running
from discreet.sql.after.naming import table_name
from discreet.sql.after.rebuild import as_sql
from discreet.sql.after.released import Output, OutputTable
from discreet.sql.after.tables import plain_columns
from discreet.sql.after.widths.again import again
from discreet.sql.after.widths.joint import describe_noisy_table
from discreet.sql.after.widths.kinds import Kind
from discreet.sql.analysis import Analysis, Evaluate, PublicTables
from discreet.sql.limits import check_room, check_work
from discreet.sql.plan.identity import add_ids, mark_shared
from discreet.sql.plan.plan import (
    AnswerColumn,
    Plan,
    arrow_type,
    empty_plan,
)
from discreet.sql.rows.keys.possible import Spell
from discreet.sql.rows.project import example, show_spread
from discreet.sql.rows.relation import Relation
from discreet.sql.text.dialect import Dialect
from discreet.sql.text.parse import (
    count_labels,
    parse,
    reject,
)
from discreet.sql.text.postgres import mean_as_postgres
from discreet.sql.text.probe import without_empty_clauses
from discreet.sql.text.rules import clients
from discreet.sql.text.spelling import spell_one_way


def plan(
    question: str | exp.Query,
    policy: Policy,
    public: PublicTables,
    evaluate: Evaluate,
    *,
    dialect: Dialect = "duckdb",
    today: date | None = None,
    spell: Spell | None = None,
) -> Plan:
    """Return the plan of one question, or raise `Rejected`. It depends on these arguments alone.

    `today` is the meaning of CURRENT_DATE. `spell` writes a tree as SQL that `evaluate` can run over
    tables of constants. A question that is a tree already is changed in place.
    """
    tree = _parse(question, policy, dialect)
    asks_the_day = any(map(clients.is_clock, tree.walk()))
    analysis = Analysis(policy=policy, public=public, evaluate=evaluate, spell=spell)
    try:
        if dialect == "postgres":
            tree = mean_as_postgres(tree)
        tree = spell_one_way(tree, database=policy.path.stem, today=today)
        result, probe = _analyze(tree, analysis)
    except _UNFORESEEN as error:
        if isinstance(error, DiscreetError):
            raise
        # Fail closed: syntax that no rule foresees, such as MAX() without an argument, is not
        # understood. So refuse it.
        raise reject(
            tree,
            "the statement has a part that is not understood.",
            "docs/language.md lists what is.",
        ) from None
    if isinstance(result, OutputTable):
        whole = _plan(tree, result, analysis)
        return replace(whole, probe=probe, today=today if asks_the_day else None)
    if probe:
        columns = result.expand_star("")
        return empty_plan([(each.name, arrow_type(each.value.domain)) for each in columns])
    raise _asks_for_rows(tree, result)


def _analyze(tree: exp.Query, analysis: Analysis) -> tuple[Relation | OutputTable, bool]:
    """Return the result of a statement, and True if it is a probe: a statement that can return no
    row.

    A probe is analyzed without the clauses that exclude all rows. If it measures nothing, it is
    free, and is analyzed as it is.
    """
    probe = without_empty_clauses(tree)
    with count_labels():
        if probe is None:
            return analysis.query(tree, {}), False
        result = analysis.query(probe, {})
        if isinstance(result, OutputTable) and not analysis.blocks:
            return analysis.query(tree, {}), False
        return result, True


def _plan(tree: exp.Query, result: OutputTable, analysis: Analysis) -> Plan:
    """Return the plan of a statement that was analyzed: its blocks, and what runs after noise."""
    policy = analysis.policy
    accountant = policy.budget.accountant
    blocks, ways = rolling.choose_roll_ups(
        mark_shared(analysis.blocks),
        analysis.again,
        accountant=accountant,
        limit=policy.limits.keys,
    )
    uses = running.find_running_totals(result.tree, blocks, selected=result.selected)
    if uses is not None:
        alone = analysis.alone[0]
        blocks = (running.measure_running_totals(blocks[0], uses, alone, accountant=accountant),)
    check_work(tree, blocks, policy, analysis.public)
    check_room(tree, blocks, policy)
    noisy_tables = {
        table_name(index): describe_noisy_table(block) for index, block in enumerate(blocks)
    }
    has_margins = [each.margin is not None and not result.distinct for each in result.outputs]
    kinds, once_more = again(result.tree, has_margins, noisy_tables)
    columns = []
    for place, (output, kind) in enumerate(zip(result.outputs, kinds, strict=True)):
        column = _column(output, result, kind)
        if uses is not None:
            column = replace(column, total_of=uses.of(place))
        columns.append(column)
    final = result.with_margin_columns()
    reads_one_table = len(blocks) == 1 and not analysis.public_used
    return Plan(
        blocks=add_ids(blocks),
        after=as_sql(final),
        listed=plain_columns(final, table_name(0)) if reads_one_table else None,
        columns=tuple(columns),
        selected=result.selected,
        public=tuple(sorted(analysis.public_used)),
        combined=tuple(analysis.combined),
        ways=ways,
        max_rows=tuple(sorted(analysis.private_used.items())),
        again=once_more,
    )


def _parse(question: str | exp.Query, policy: Policy, dialect: Dialect) -> exp.Query:
    if not isinstance(question, str):
        return question
    columns = [column for table in policy.tables.values() for column in table.columns]
    return parse(
        question,
        limit=policy.limits.statement,
        dialect=dialect,
        tables=policy.tables,
        columns=columns,
    )


def _column(output: Output, result: OutputTable, kind: Kind) -> AnswerColumn:
    has_margin = output.margin is not None
    is_computed = has_margin and not output.estimate
    return AnswerColumn(
        name=output.name,
        measured=has_margin,
        estimate=output.estimate,
        also=output.also,
        forms=output.forms if is_computed else (),
        simulated=is_computed and not output.forms and not result.distinct,
        noisy=kind is not Kind.PUBLIC and output.half_width is None,
        # a sum over groups has no margin because of how it is computed, not because of DISTINCT
        distinct=result.distinct and bool(output.estimate or result.tree.args.get("distinct")),
        half_width=output.half_width,
    )


def _asks_for_rows(tree: exp.Expression, result: Relation) -> Rejected:
    if tree.args.get("group"):
        return reject(tree.args["group"], _OF_EACH, show_spread(tree))
    return reject(
        tree, "this asks for rows, and rows never leave.", f"Aggregate: {example(tree, result)}."
    )


_UNFORESEEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    SqlglotError,
    pa.ArrowException,
)


_OF_EACH = (
    "GROUP BY an identifier gives single rows, or a row for each person, and rows never leave."
)
