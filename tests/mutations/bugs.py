"""Planted bugs: small changes of trusted files, and the tests that must notice each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

FUZZ = "tests/fuzz/test_statements.py::test_found_once"
BRUTE = "tests/test_every_aggregate.py::test_no_neighbor_moves_more_than_claimed"
ATTACKS = "tests/test_known_attacks.py"
HARD = "tests/test_hardening.py"
REPLAY = "tests/test_replay.py"
OVERRUNS = "tests/test_overruns.py"
MECHANISMS = "tests/test_every_mechanism.py"
RUNNING = "tests/sql/test_running.py"
JOINED = "tests/sql/test_joined_back.py"
FITS = "tests/test_every_mechanism.py::test_draws_fit_their_mass_and_no_other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A planted bug: each edit is (file under src/discreet, old text, new text)."""

    name: str
    edits: tuple[tuple[str, str, str], ...]
    tests: tuple[str, ...]


def bug(name: str, file: str, old: str, new: str, *tests: str) -> Bug:
    return Bug(name=name, edits=((file, old, new),), tests=tests)


def spot(old: str) -> re.Pattern[str]:
    """Return a pattern that finds a text also where its lines are broken in more places."""
    pattern, before = "", ""
    for word in re.findall(r"^\s+|\s*\n\s*|\w+|[^\w\s]", old):
        if word.isspace() or before.isspace() or not before:
            pattern += re.escape(word)
        else:
            gap = r"\s+" if before[-1].isidentifier() and word[0].isidentifier() else r"\s*"
            comma = r"(?:,\s*)?" if word in ")]}" and before != "," else ""
            pattern += gap + comma + re.escape(word)
        before = word
    return re.compile(pattern)


_NOISE = "discrete_laplace(stream, items, self.scale)"
_OWNERS = 'conditions = [f"{self.expression(owner_of(source))} = {self.expression(owner)}", *self.all(where)]'
_RESERVE = "        charge = self._reserve(request)\n"
_OVERRAN = '            self._journal.append({"kind": "overrun", "charge": reservation.id, "analyst": analyst})\n'
_READ = "        work(make_allowance(bytes(32), request.inside, request.paid), 0)\n"
_IDENTITY = 'digest(f"discreet statistic {VERSION}", read, rows.also(value))'

BUGS = (
    bug(
        "a public row that an EXISTS meets is one for all rows",
        "sql/check/counts.py",
        "if meets > 1 or any(map(_reads_other_rows, conditions)):",
        "if meets > 1:",
        "tests/sql/test_check.py",
    ),
    bug(
        "the plan of a release is not proved",
        "continual/question.py",
        "        prove(found, alone)\n",
        "",
        "tests/continual/test_release_flow.py::test_a_release_is_proved_before_it_costs",
    ),
    bug(
        "any table may be joined as a public one",
        "sql/check/whose.py",
        "_require_public(right.table, policy)",
        "pass",
        "tests/sql/test_check.py",
    ),
    bug(
        "EXISTS under the name of its own rows",
        "sql/check/whose.py",
        "if owner != owner_of(source) or stages(inner) & here:",
        "if owner != owner_of(source):",
        "tests/sql/test_check.py",
    ),
    bug(
        "choices are not held to their number of groups",
        "sql/check/checker.py",
        "if groups == 1 and any(size != 1 for size in sizes):",
        "if False:",
        "tests/sql/test_check_alone.py",
    ),
    bug(
        "a text is what stands beside it",
        "engines/postgres/spelling.py",
        "return f'(pg_catalog.text {literal(value)} COLLATE \"C\")'",
        "return literal(value)",
        "tests/engines/test_postgres_engine.py",
    ),
    bug(
        "texts of a question are in the order of the database",
        "engines/postgres/spelling.py",
        "return f'(pg_catalog.text {literal(value)} COLLATE \"C\")'",
        'return f"pg_catalog.text {literal(value)}"',
        "tests/engines/test_every_engine.py",
    ),
    bug(
        "a text of a question is a variable of Spark's",
        "engines/spark/session.py",
        '"spark.sql.variable.substitute": "false"',
        '"spark.sql.variable.substitute": "true"',
        "tests/engines/test_real_spark.py",
    ),
    bug(
        "logins that began together are each a guess",
        "server/auth.py",
        'one after the other: others may have failed since.\n        """\n        self._tries.check(name, address)\n',
        'one after the other: others may have failed since.\n        """\n',
        "tests/server/test_users.py",
    ),
    bug(
        "a page may choose where snapshots go",
        "server/http/curating.py",
        'FIXED = ("source", "engine", ',
        'FIXED = ("source", ',
        "tests/server/test_http_curator.py",
    ),
    bug(
        "who has no partner counted as who has one",
        "sql/text/rules/semijoins.py",
        'none = _kind(join) == "ANTI"',
        'none = _kind(join) == "SEMI"',
        "tests/sql/test_planned_alike.py",
    ),
    bug(
        "a count of two taken as a test for one",
        "sql/text/rules/semijoins.py",
        "if (type(node), number) not in some | none:",
        "if False:",
        "tests/sql/test_rejected.py",
    ),
    bug(
        "texts that another column's list leaves",
        "sql/values/texts_left.py",
        "arguments=(left, Constant(value=str(text)))) if left == value:",
        "arguments=(left, Constant(value=str(text)))):",
        "tests/sql/test_narrowed_texts.py",
    ),
    bug(
        "days that a column takes away added",
        "sql/values/time/shifts.py",
        "factor = sign * int(gap.step)",
        "factor = int(gap.step)",
        "tests/sql/test_right_answers.py",
    ),
    bug(
        "days of a column multiplied in its own few bits",
        "sql/values/time/shifts.py",
        "days = widen(right.expression, 100_000) * factor",
        "days = right.expression * factor",
        FUZZ,
    ),
    bug(
        "windows beside grouping sets see one set",
        "sql/text/grouping.py",
        "    if _looks_across(node):\n",
        '    if node.args.get("qualify"):\n',
        "tests/sql/test_meaning_in_postgres.py",
    ),
    bug(
        "what is rounded within brackets has no slack",
        "sql/after/widths/kinds.py",
        "case exp.Paren():\n            return of(node.this)",
        "case exp.Paren():\n            return of(strip_rounding(node)[0])",
        "tests/sql/test_again.py",
    ),
    bug(
        "a join dropped though a column of it is used",
        "sql/rows/rewrites/antijoins.py",
        "if id(column) not in own and (column.table.lower() == alias or bare):",
        "if id(column) not in own and bare:",
        "tests/sql/test_planned_alike.py",
    ),
    bug(
        "a join dropped for a value that may be NULL",
        "sql/rows/rewrites/antijoins.py",
        "column.table.lower() == alias and column.name.lower() in keys",
        "column.table.lower() == alias",
        "tests/sql/test_planned_alike.py",
    ),
    bug(
        "a join that counts rows taken for a filter",
        "sql/rows/rewrites/filters.py",
        "return isinstance(aggregate.this, exp.Distinct)",
        "return True",
        "tests/sql/test_planned_alike.py",
    ),
    bug(
        "a join whose columns are shown taken for a filter",
        "sql/rows/rewrites/filters.py",
        "or is_used(node, join, alias, tests, columns):",
        "or False:",
        "tests/sql/test_planned_alike.py",
    ),
    bug(
        "an earlier name goes before a column",
        "sql/text/rules/earlier_names.py",
        "if own and name in meanings and name not in known:",
        "if own and name in meanings:",
        "tests/sql/test_planned_alike.py",
    ),
    bug(
        "a number shown as its own margin",
        "sql/after/error_bars.py",
        'if column.half_width == "late":',
        'if column.half_width == "later":',
        "tests/sql/test_error_bars.py",
    ),
    bug(
        "rows chosen by what is no margin yet",
        "sql/after/after.py",
        'if output is not None and output.half_width == "late":',
        "if output is None:",
        "tests/sql/test_error_bars.py",
    ),
    bug(
        "conditions that meet at their end exclude each other",
        "algebra/exclusive.py",
        "self.high < other.low",
        "self.high <= other.low",
        "tests/sql/test_exclusive.py",
    ),
    bug(
        "a number that is a condition is compared with TRUE",
        "algebra/exclusive.py",
        "_TRUE = Values(kind=_AsCondition,",
        "_TRUE = Values(kind=bool,",
        "tests/sql/test_exclusive.py",
    ),
    bug(
        "what a condition leaves out is what it leaves",
        "algebra/exclusive.py",
        "yield value, Values(kind=values.kind, but=values.among)",
        "yield value, Values(kind=values.kind, among=values.among)",
        "tests/sql/test_exclusive.py",
    ),
    bug(
        "all rows are the sum of some",
        "sql/requests/assembly.py",
        "forms.append(rest | {reading: -1 for form in forms for reading in form})",
        "forms.append(rest)",
        "tests/test_every_aggregate.py",
    ),
    bug(
        "one group for many that can be",
        "sql/blocks.py",
        "grid if joint is None else joint.size",
        "grid if joint is None else 1",
        "tests/sql/test_possible.py",
    ),
    bug(
        "rows beside the listed groups",
        "sql/rows/keys/places.py",
        'return case((call("AND", flat >= cells[0], flat <= cells[-1]), flat - cells[0]))',
        'return call("greatest", flat - cells[0], 0)',
        "tests/sql/test_possible.py",
    ),
    bug(
        "a hierarchy by any of two tables",
        "sql/rows/keys/lying_in.py",
        "or len(homes) != 1:",
        "or not homes:",
        "tests/sql/test_lying_in.py",
    ),
    bug(
        "places that are not declared",
        "sql/rows/keys/lying_in.py",
        "if None not in row",
        "if row",
        "tests/sql/test_lying_in.py",
    ),
    bug(
        "a quantile paid for twice",
        "asking/parts.py",
        "sorted({each.id for each in block.every} - {PEOPLE})",
        "sorted(each.id for each in block.every if each.id != PEOPLE)",
        "tests/test_picks.py::test_a_quantile_that_is_asked_for_in_two_ways_is_paid_for_once",
    ),
    bug(
        "keys apart that a condition joins",
        "sql/rows/keys/possible.py",
        "        for each, at in _conditions(source, where):\n            parts.append",
        "        for each, at in ():\n            parts.append",
        "tests/sql/test_possible.py",
    ),
    bug(
        "half noise",
        "mechanisms/discrete_laplace.py",
        _NOISE,
        _NOISE.replace("scale)", "scale / Fraction(2))"),
        FITS,
    ),
    Bug(
        name="missing clamp",
        edits=(
            (
                "engines/duckdb/preparing/encode.py",
                "CAST(least(greatest({x}, {low}), {high})",
                "CAST(({x})",
            ),
            (
                "engines/duckdb/preparing/encode.py",
                'ends = f"WHEN {x} < {low} THEN {domain.first}',
                'ends = f"WHEN FALSE THEN {domain.first}',
            ),
            (
                "engines/duckdb/preparing/encode.py",
                "WHEN {x} > {high} THEN {domain.last}",
                "WHEN FALSE THEN {domain.last}",
            ),
        ),
        tests=("tests/engines/test_encode.py",),
    ),
    bug(
        "forgotten truncation",
        "engines/duckdb/preparing/prepare.py",
        "        if not heavy:\n",
        "        if heavy >= 0:\n",
        f"{ATTACKS}::test_rows_instead_of_people",
    ),
    bug(
        "threshold on rows instead of persons",
        "sql/requests/assembly.py",
        "reads=(Sum() if rows == 1 else Persons(),)",
        "reads=(Sum(),)",
        FUZZ,
        BRUTE,
    ),
    bug(
        "read before the charge",
        "door.py",
        _RESERVE,
        _READ + _RESERVE,
        f"{HARD}::test_nothing_is_read_before_the_charge",
    ),
    bug(
        "recall of the same numbers of other people",
        "sql/plan/identity.py",
        _IDENTITY,
        _IDENTITY.replace("read, rows", "rows"),
        f"{HARD}::test_other_questions_have_other_answers",
    ),
    bug(
        "float sum",
        "engines/spelling.py",
        "product = powers[0]\n",
        'product = f"CAST({powers[0]} AS DOUBLE)"\n',
        f"{HARD}::test_sums_are_exact_beyond_floats",
    ),
    bug(
        "ignored FILTER",
        "engines/spelling.py",
        'return "" if where is None else f" FILTER (WHERE {self.expression(where)})"',
        'return ""',
        f"{HARD}::test_no_clause_is_ignored",
    ),
    bug(
        "LIMIT inside",
        "sql/rows/project.py",
        'for clause in ("having", "order", "limit", "offset"):\n        if node',
        'for clause in ("having",):\n        if node',
        f"{ATTACKS}::test_limit_inside",
    ),
    bug(
        "NaN kept",
        "engines/duckdb/preparing/encode.py",
        "CASE WHEN {x} IS NULL OR isnan({x}) THEN NULL",
        "CASE WHEN {x} IS NULL THEN NULL",
        "tests/engines/test_encode.py",
        f"{ATTACKS}::test_not_a_number",
    ),
    bug(
        "one key for all charges",
        "ledger/chain.py",
        "def fresh_secret() -> bytes:",
        "def fresh_secret() -> bytes:\n    return bytes(32)\n\n\ndef unused_secret() -> bytes:",
        "tests/ledger/test_book.py",
    ),
    bug(
        "delta not charged",
        "mechanisms/threshold.py",
        "rho=self.noise.loss().rho, delta=self.delta)",
        "rho=self.noise.loss().rho, delta=Fraction(0))",
        MECHANISMS,
        "tests/mechanisms/test_threshold.py",
    ),
    bug(
        "no key's threshold is raised",
        "mechanisms/threshold.py",
        "items, later).astype(np.int64)",
        "items, Fraction(0)).astype(np.int64)",
        MECHANISMS,
    ),
    bug(
        "thresholds raised a little too rarely",
        "mechanisms/tails/enclose.py",
        "return Fraction(smallest(mixed, times=times, delta=delta), _PARTS)",
        "return Fraction(smallest(mixed, times=times, delta=delta) - 1, _PARTS)",
        "tests/mechanisms/test_threshold.py",
    ),
    bug(
        "grid off by one",
        "sql/plan/keys.py",
        "domain.largest) - lo)",
        "domain.largest) - (lo + 1))",
        FUZZ,
    ),
    bug(
        "error text passed through",
        "engines/duckdb/engine.py",
        'in: %s", type(error).__name__, sql)\n        raise EngineFailure from None',
        'in: %s", error, sql)\n        raise EngineFailure(str(error)) from None',
        f"{HARD}::test_the_second_wall",
        f"{HARD}::test_no_private_value_in_any_log",
    ),
    bug(
        "the wrong neighbors",
        "sql/plan/sensitivity.py",
        'cells = parts * groups\n    if neighbors == "add_remove":',
        "cells = parts * groups\n    if neighbors:",
        FUZZ,
        BRUTE,
    ),
    bug(
        "ties in truncation",
        "engines/duckdb/preparing/order.py",
        "OVER (PARTITION BY {owner} ORDER BY place)",
        "OVER (PARTITION BY {owner})",
        "tests/engines/test_prepare.py",
    ),
    bug(
        "fresh noise at resume",
        "ledger/book.py",
        "key=self._journal.unsealed(waiting), resumed=True",
        "key=fresh_secret(), resumed=True",
        "tests/ledger/test_book.py",
    ),
    bug(
        "one key for two statistics",
        "vault/allowance.py",
        'self._stream.derive("measurement", len(self.used))',
        'self._stream.derive("measurement", 0)',
        f"{HARD}::test_two_statistics_never_share_noise",
        REPLAY,
    ),
    Bug(
        name="EXISTS without owners",
        edits=(
            (
                "sql/rows/subqueries.py",
                "        owned = owned or match is not None\n",
                "        owned = True\n",
            ),
            ("engines/spelling.py", _OWNERS, "conditions = self.all(where)"),
        ),
        tests=(FUZZ,),
    ),
    bug(
        "public LEFT JOIN private",
        "sql/rows/joins.py",
        'if side == "LEFT" and isinstance(left, PublicSide):',
        'if side == "NEVER" and isinstance(left, PublicSide):',
        f"{ATTACKS}::test_limit_inside",
    ),
    bug(
        "hi - lo under change_one",
        "sql/plan/sensitivity.py",
        "rows * (max(hi, 0) - min(lo, 0))",
        "rows * (hi - lo)",
        FUZZ,
        BRUTE,
    ),
    bug(
        "grouping sets charged once",
        "asking/offer.py",
        "cost=accountant.price(mechanism.loss() for mechanism in found.mechanisms)",
        "cost=accountant.price(mechanism.loss() for mechanism in found.mechanisms[:1])",
        REPLAY,
    ),
    bug(
        "people of several groups added up",
        "sql/aggregates/distinct.py",
        "return touched == 1",
        "return True",
        "tests/sql/test_rolling.py::test_what_is_measured",
    ),
    bug(
        "rows without a key lost in totals",
        "sql/rolling.py",
        'place = call("coalesce", place, key.domain.size)',
        "pass",
        "tests/sql/test_rolling.py::test_both_ways_agree_without_noise",
    ),
    bug(
        "largest value instead of the row's absence",
        "sql/plan/sensitivity.py",
        "largest = rows * max(abs(lo), abs(hi))",
        "largest = rows * (hi - lo)",
        FUZZ,
        BRUTE,
    ),
    bug(
        "NULLIF of an owner",
        "sql/values/choices.py",
        "    if isinstance(value.domain, Opaque):\n        # Privacy: S4. An owner",
        "    if False:\n        # Privacy: S4. An owner",
        FUZZ,
        f"{ATTACKS}::test_limit_inside",
    ),
    bug(
        "LEAST overflows",
        "sql/values/choices.py",
        "most = domain.largest\n            constants",
        "most = 1\n            constants",
        FUZZ,
    ),
    bug(
        "outer constants are one value",
        "sql/rows/joins.py",
        "origins = origins or rows_of_stage(field.name, 2)",
        "origins = origins or rows_of_stage(field.name, 1)",
        FUZZ,
    ),
    bug(
        "row numbers outlive a join",
        "sql/rows/joins.py",
        "replace(field, value=replace(field.value, numbering=False)) for field",
        "field for field",
        FUZZ,
    ),
    bug(
        "rows of a join are not multiplied",
        "sql/rows/joins.py",
        "partners = max(int(nullable), _limit_rows(right, parts, names))",
        "partners = 1",
        FUZZ,
        BRUTE,
    ),
    Bug(
        name="a column's values without NULL, also for the checker",
        edits=(
            (
                "sql/rows/relation.py",
                "values = table.max_rows if size is None else size + 1",
                "values = table.max_rows if size is None else size",
            ),
            (
                "sql/check/counts.py",
                "values = most if size is None else size + 1",
                "values = most if size is None else size",
            ),
        ),
        tests=("tests/sql/test_check.py::test_values_that_one_person_can_have",),
    ),
    bug(
        "UNION counts one side",
        "sql/rows/sets.py",
        "left.rows + right.rows",
        "max(left.rows, right.rows)",
        FUZZ,
        BRUTE,
    ),
    bug(
        "half of rho",
        "mechanisms/discrete_gaussian.py",
        "Fraction(self.l2_squared) / (2 *",
        "Fraction(self.l2_squared) / (4 *",
        MECHANISMS,
    ),
    bug(
        "bits shared after a fork",
        "noise/stream.py",
        "elif self._pid != os.getpid():",
        "elif self._pid == -1:",
        "tests/noise/test_stream.py",
    ),
    bug("overruns are resumed", "ledger/book.py", _OVERRAN, "", OVERRUNS),
    bug(
        "reads go on after the deadline",
        "engines/limits/until.py",
        "return min(seconds, left)",
        "return seconds",
        OVERRUNS,
    ),
    bug(
        "overruns without a limit",
        "ledger/balance.py",
        "self.overruns.get(analyst, 0) >= most",
        "self.overruns.get(analyst, 0) < 0",
        OVERRUNS,
    ),
    Bug(
        name="a range that ends before it begins",
        edits=(
            (
                "sql/values/value.py",
                "if self.lo > self.hi:\n            raise",
                "if self.lo is None:\n            raise",
            ),
            (
                "sql/values/casts.py",
                "if domain.lo > most or domain.hi < -most:",
                "if domain.lo is None:",
            ),
        ),
        tests=(FUZZ,),
    ),
    bug(
        "noise that follows the number of rows",
        "vault/allowance.py",
        'self._stream.derive("measurement", len(self.used))',
        'self._stream.derive("measurement", len(self.used), id(mechanism))',
        REPLAY,
    ),
    bug(
        "an encoder that draws as the answer says",
        "local/protocols/response.py",
        "return place if kept else other + (other >= place)\n\n    def encode",
        "return place if kept or (place and bits.coin(source, 1)) else other + (other >= place)\n\n    def encode",
        REPLAY,
    ),
    bug(
        "candidates of a later quantile follow the data",
        "mechanisms/nested.py",
        "    below[..., -1], above[..., 0] = half, half\n",
        "    below[..., -1], above[..., 0] = half, half\n    above = above[..., : max(1, above.any(axis=0).sum())]\n",
        f"{REPLAY}::test_ask",
    ),
    bug(
        "distances that wrap",
        "vault/allowance.py",
        "if 2 * max(largest(counts), largest(model)) * len(model) >= 2**62:",
        "if len(model) < 0:",
        "tests/test_hostile_calls.py::test_a_model_made_by_hand_does_not_make_distances_wrap",
    ),
    bug(
        "groups by the names of keys",
        "engines/spelling.py",
        'grouped = f"{select} {by_place(len(keys))}"',
        "grouped = f\"{select} GROUP BY {', '.join(f'k{place}' for place in range(len(keys)))}\"",
        "tests/test_hostile_names.py",
    ),
    bug(
        "two columns under an analyst's one name",
        "sql/rows/public.py",
        'columns = [f"c{index}" for index in range(table.num_columns)]',
        "columns = [quoted(name) for name in table.column_names]",
        FUZZ,
    ),
    Bug(
        name="a file cut as its rows say",
        edits=(
            ("engines/files.py", ", comment = '', skip = 0", ""),
            ("engines/files.py", ", auto_detect = false", ""),
            ("engines/files.py", "columns = {{{columns}}})", "all_varchar = true)"),
        ),
        tests=("tests/engines/test_prepare.py::test_one_line_does_not_decide_how_others_are_read",),
    ),
    Bug(
        name="moments apart that are one to the engine",
        edits=(
            ("sql/rows/joins.py", ' and kind.unit != "ns"', ""),
            ("engines/spelling.py", "node.stage, pinned, join.meets)", "node.stage, pinned, 1000)"),
        ),
        tests=(FUZZ,),
    ),
    bug(
        "a range that is rounded in another way",
        "sql/rows/public.py",
        'units = call("least", call("greatest", Cast(call("round", stored * 1_000_000), "BIGINT"), lo), hi)',
        'units = Cast(call("round", stored * 1_000_000), "BIGINT")',
        FUZZ,
    ),
    bug(
        "decimals that fail where somebody meets them",
        "sql/rows/public.py",
        "min(2**62, 10 ** (37 - kind.scale))",
        "2**62",
        FUZZ,
    ),
    Bug(
        name="factors that no number of the engine holds",
        edits=(
            (
                "sql/values/value.py",
                "if max(self.step.numerator, self.step.denominator) >= MOST_STEP:",
                "if self.step < 0:",
            ),
            (
                "sql/values/numbers.py",
                "    check_size(-step.numerator, step.denominator, node)\n",
                "    assert step\n",
            ),
        ),
        tests=(FUZZ,),
    ),
    bug(
        "a row that fails stops the answer",
        "engines/duckdb/engine.py",
        "total = CAREFUL.numbers(query)\n            if total == sql:",
        "total = PLAIN.numbers(query)\n            if total == sql:",
        "tests/test_total.py",
    ),
    bug(
        "folders decide what columns are",
        "engines/files.py",
        '"hive_partitioning = false"',
        '"filename = false"',
        "tests/engines/test_prepare.py::test_folders_are_no_columns",
    ),
    bug(
        "an optimizer that loses conditions between outer joins",
        "engines/duckdb/locked.py",
        '",".join((OUTER_JOINS, *without))',
        '",".join(without)',
        "tests/engines/test_duckdb.py",
    ),
    bug(
        "what stands twice is taken out of TRY",
        "engines/duckdb/engine.py",
        "without=(STATISTICS, COMMON_PARTS)",
        "without=(STATISTICS,)",
        "tests/test_total.py",
    ),
    bug(
        "texts that a database calls equal",
        "engines/duckdb/preparing/prepare.py",
        'COLLATE "binary" AS',
        "AS",
        "tests/engines/test_prepare.py::test_texts_are_equal_when_their_bytes_are",
    ),
    bug(
        "one person under two numbers",
        "engines/duckdb/preparing/encode.py",
        "if kinds & {WHOLE, FLOAT, DECIMAL}:",
        "if not types:",
        "tests/engines/test_prepare.py::test_one_person_whose_number_is_text",
    ),
    bug(
        "a charge for one snapshot carried out on another",
        "curator.py",
        "return Visit(view=view, door=door)",
        "newest = {'__getattr__': lambda _, name: getattr(self._view, name)}\n"
        "        return Visit(view=type('Newest', (), newest)(), door=door)",
        "tests/test_curator.py::test_a_snapshot_that_another_thread_takes",
    ),
    bug(
        "sums that wrap",
        "sql/requests/readings.py",
        "reach = largest * max(self.most, 1) * MOST_PEOPLE",
        "reach = largest * MOST_PEOPLE",
        "tests/sql/test_work.py",
        "tests/fuzz/test_statements.py",
    ),
    bug(
        "rows without a limit",
        "sql/rows/relation.py",
        "if self.rows > MOST_ROWS:",
        "if self.rows < 0:",
        "tests/sql/test_work.py",
    ),
    bug(
        "periods that wrap",
        "continual/strategies/tree.py",
        "exact_sum(total + 0 * values, values)",
        "total + values",
        "tests/sql/test_work.py::test_totals_over_periods_do_not_wrap",
    ),
    bug(
        "a person's work without a limit",
        "sql/limits.py",
        "    if needed > allowed:\n        rows",
        "    if needed < 0:\n        rows",
        "tests/sql/test_work.py",
    ),
    bug(
        "the owner is no part of the order of rows",
        "engines/duckdb/preparing/order.py",
        "_measured(f'{table}{name(OWNER)}'), copy",
        "copy",
        "tests/engines",
    ),
    bug(
        "a negative part that is left out",
        "continual/strategies/strategy.py",
        "usable = np.abs(gram) if signed else np.maximum(gram, 0)",
        "usable = np.maximum(gram, 0)",
        "tests/test_every_stream.py",
    ),
    bug(
        "more changes than were promised",
        "local/protocols/repeated/few_changes.py",
        "return places[-1] if changed == self.changes else place",
        "return place",
        "tests/local/test_histories.py",
    ),
    bug(
        "a renamed survey begins anew",
        "local/respondent/device.py",
        "        if self.given + cost > self.limit:",
        "        if self.spent(survey) + cost > self.limit:",
        "tests/local/test_device.py::test_a_renamed_survey_gets_no_fresh_lifetime",
    ),
    bug(
        "one file decides the types of all",
        "engines/duckdb/preparing/parts.py",
        "return list(groups.values())",
        "return [list(files_of(source, table))]",
        "tests/engines/test_parts.py",
    ),
    bug(
        "a snapshot that is believed",
        "engines/duckdb/preparing/verify.py",
        "if connection.execute(most_rows(table, place)).fetchall():",
        "if connection.execute(most_rows(table, place)).fetchall() and not place:",
        "tests/engines/test_verify.py",
    ),
    bug(
        "runs weighed as one cell each",
        "noise/choose_runs.py",
        "weights = runs.lengths.astype(np.float64) * np.exp(",
        "weights = (runs.lengths > 0) * np.exp(",
        "tests/noise/test_choose_runs.py",
    ),
    bug(
        "scores of the wrong gap",
        "mechanisms/fine_quantile.py",
        "gaps[own - 1] = np.minimum(abs(before - wanted)[kept], reach)",
        "gaps[own - 1] = np.minimum(abs(upto - wanted)[kept], reach)",
        "tests/mechanisms/test_fine_quantile.py",
    ),
    bug(
        "extremes aimed at the edge",
        "sql/plan/picks.py",
        "inside = plain.margin(INSIDE) + 1",
        "inside = plain.margin(INSIDE) // 2",
        "tests/test_picks.py::test_an_extreme_is_hardly_ever_beyond_the_data",
    ),
    bug(
        "an audit that takes away whoever moves nothing",
        "audit/chosen.py",
        "ORDER BY abs({moved}) DESC",
        "ORDER BY abs({moved})",
        "tests/audit/test_audit_question.py",
    ),
    bug(
        "an unsound audit that ends well",
        "cli/__init__.py",
        "        return stop.exit_code",
        "        return 0",
        "tests/test_exit_codes.py::test_an_audit_that_does_not_hold",
    ),
    Bug(
        name="recall of what was measured on another snapshot",
        edits=(
            (
                "ledger/balance.py",
                'return part, asked["policy"], asked["snapshot"]',
                'return part, asked["policy"], 0',
            ),
            ("ledger/balance.py", "    balance.parts.clear()", "    balance.parts.copy()"),
            ("ledger/book.py", 'for name in ("policy", "snapshot"))', 'for name in ("policy",))'),
        ),
        tests=("tests/test_recall.py::test_another_snapshot_is_measured_anew",),
    ),
    bug(
        "recall of what was measured by another mechanism",
        "ledger/book.py",
        "first = bisect_left(stored, amount, key=itemgetter(0))",
        "first = 0",
        "tests/test_recall.py::test_a_larger_epsilon_is_measured_anew_and_kept",
    ),
    bug(
        "another's noise in the certificate",
        "asking/offer.py",
        "_describe_statistic(statistic, each.added[statistic.id])",
        "_describe_statistic(statistic, next(iter(each.added.values())))",
        "tests/test_certificates.py",
    ),
    bug(
        "an error after the charge leaves as it is",
        "engines/limits/until.py",
        "        except BaseException as error:\n",
        "        except EngineFailure as error:\n",
        "tests/test_after_the_charge.py",
    ),
    bug(
        "keys in 32 bits",
        "vault/unknown.py",
        "named = wide_offsets(table.select(",
        "named = (table.select(",
        "tests/test_many_keys.py::test_texts_have_wide_offsets",
    ),
    bug(
        "a level of a publication that is not paid for",
        "census/plan.py",
        "    used = [noise for row in noises for noise in row if noise is not None]\n",
        "    used = [noise for row in noises[1:] for noise in row if noise is not None]\n",
        "tests/census/test_publication.py::test_one_charge_and_the_same_bytes",
    ),
    bug(
        "a publication where whoever changes place counts once",
        "census/plan.py",
        'times = 2 if policy.neighbors == "change_one" else 1',
        "times = 1",
        "tests/census/test_publication.py::test_no_person_moves_more_than_claimed",
    ),
    bug(
        "an invariant by accident",
        "vault/allowance.py",
        "            counts = _count_cells(place, number, first, size)\n",
        "            counts = _count_cells(place, number, first, size)\n"
        "            if len(counts) == 1:\n                return counts\n",
        "tests/census/test_neighbors.py::test_replay",
    ),
    bug(
        "whole numbers that look at the exact ones",
        "census/running.py",
        "            noisy = measure(self.plan, allowance, self.fetch)\n",
        "            noisy = measure(self.plan, allowance, self.fetch)\n"
        '            noisy[0, 0][:] = sum(self.fetch(self.plan.counted).unwrap().column("s0").to_pylist())\n',
        "tests/census/test_neighbors.py::test_replay",
    ),
    bug(
        "a person who changes is counted in one cell of a marginal",
        "synthetic/source.py",
        'times = 2 if self.neighbors == "change_one" else 1',
        "times = 1",
        "tests/synthetic/test_spikes.py::test_it_is_paid_from_the_same_lump",
    ),
    bug(
        "parts of an interval reach into the next one",
        "synthetic/columns/split.py",
        "case((place < start, None), (place < end, part))",
        "case((place < start, None), otherwise=part)",
        "tests/synthetic/test_spikes.py::test_the_engine_counts_a_level_as_defined",
    ),
    bug(
        "the rows of each kind weigh as much as all of a person's rows",
        "synthetic/linked/sources.py",
        "weight=expression(UNIT) // (met * alike),",
        "weight=expression(UNIT) // alike,",
        "tests/synthetic/test_linked.py::test_no_person_moves_more_than_a_unit",
    ),
    bug(
        "a total with the noise of a count",
        "synthetic/marginals.py",
        "moved = self._moved_numbers(1, largest=axis.bins - 1)\n        noise = self._noise(share, moved)\n"
        "        rows, (place,) = self._source.placed([axis.name])\n        cell = ",
        "moved = self._moved_numbers(1)\n        noise = self._noise(share, moved)\n"
        "        rows, (place,) = self._source.placed([axis.name])\n        cell = ",
        "tests/synthetic/test_totals.py::test_one_person_moves_a_total_by_no_more_than_is_claimed",
    ),
    bug(
        "a value in two ranges is at one place of both",
        "sql/check/norms.py",
        "((place, each.value, each.lo, each.hi), each)",
        "((place, each.value, 0, 0), each)",
        "tests/sql/test_check.py::test_a_value_may_be_added_up_in_two_ranges",
    ),
    bug(
        "all choices of all values, also of those that are not added up",
        "sql/check/norms.py",
        "for each in added for variable, _ in _variables(each)",
        "for each in sums for variable, _ in _variables(each)",
        "tests/sql/test_check.py::test_sums_of_many_values_that_exclude_each_other_are_looked_at_one_by_one",
    ),
    Bug(
        name="running totals as far as numbers, also for the checker",
        edits=(
            (
                "sql/running.py",
                "l2_squared = people * longest(grid.periods) * one**2",
                "l2_squared = people * one**2",
            ),
            (
                "sql/check/checker.py",
                "longest = int((sums * sums).sum(axis=0).max())",
                "longest = 1",
            ),
        ),
        tests=(f"{RUNNING}::test_no_neighbor_moves_the_sums_more_than_claimed",),
    ),
    Bug(
        name="equal rows in two orders, also for the checker",
        edits=(
            ("sql/rows/project.py", "_orders(result) > 1", "_orders(result) > 9"),
            (
                "sql/check/ties.py",
                "if with_ties and len(orders) > 1:",
                "if with_ties and len(orders) > 9:",
            ),
        ),
        tests=("tests/sql/test_ties.py::test_equal_rows_are_told_apart_once",),
    ),
    bug(
        "rows that are tied and not alike",
        "sql/check/ties.py",
        "if each in decisive:",
        "if decisive:",
        "tests/sql/test_ties.py",
    ),
    bug(
        "running totals as far as numbers",
        "sql/running.py",
        "l2_squared = people * longest(grid.periods) * one**2",
        "l2_squared = people * one**2",
        f"{RUNNING}::test_running_totals_are_measured",
    ),
    bug(
        "two people move running totals of both signs to one side",
        "sql/running.py",
        "return all(each.lo >= 0 for each in factors)",
        "return True",
        f"{RUNNING}::test_running_totals_are_measured",
    ),
    bug(
        "noise on numbers in the place of sums",
        "vault/allowance.py",
        "[multiply_by_factor(values, totals) for values in dense]",
        "[values * 4096 for values in dense]",
        f"{RUNNING}::test_the_answer_is_right",
    ),
    bug(
        "margins of running totals from single numbers",
        "mechanisms/running.py",
        "wide = lengths(self.grid.periods)[0] * self._reach(factors)",
        "wide = lengths(self.grid.periods)[1] * self._reach(factors)",
        f"{RUNNING}::test_margins_cover",
    ),
    bug(
        "one recall for numbers and for running totals",
        "sql/plan/identity.py",
        "return () if statistic.totals is None else (statistic.totals,)",
        "return ()",
        f"{RUNNING}::test_other_noise_is_another_measurement",
    ),
    bug(
        "rows that meet several rows of a noisy result",
        "sql/joined/after_noise.py",
        "met.keys is not None and met.keys <= met.equated",
        "met.keys is not None",
        f"{JOINED}::test_a_row_meets_one_row_of_a_noisy_result",
    ),
    bug(
        "people counted once for each group that they are in",
        "sql/joined/adding_up.py",
        "if not self.one_row or len(parts)",
        "if len(parts)",
        f"{JOINED}::test_people_in_several_groups_are_not_added_up",
    ),
    bug(
        "rows of others beside a row, as if they were its own",
        "sql/rows/rewrites/correlated.py",
        "if all(",
        "if any(",
        f"{JOINED}::test_rows_of_others_are_not_joined_to_a_row",
    ),
)
