"""Run statements: some at once, some on a worker; and refuse the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa

from discreet.policy.policy import Policy
from discreet.server.catalog import Catalog, CatalogError, CatalogSession, StatementDescription
from discreet.server.pgwire import commands, copying, types
from discreet.server.pgwire.commands import Portal, Prepared, State
from discreet.server.pgwire.faults import Fault
from discreet.server.pgwire.lexer import Statement, Token
from discreet.server.pgwire.parameters import Parameter, infer, literal, sample_of, write_in
from discreet.server.pgwire.question import Asker, Result

Made = TypeVar("Made")
QUESTIONS = frozenset(("SELECT", "WITH", "VALUES", "TABLE", "("))
_INSTEAD = {
    "CREATE": "No view or table is kept, not for a session either: write WITH name AS (SELECT ...) in the question.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The catalog of one session. It answers from the policy alone, and returns None if a statement
    is a question.
    """

    catalog: Catalog
    session: CatalogSession

    def answer(
        self, statement: Statement, values: Sequence[object], oids: Sequence[int]
    ) -> pa.Table | None:
        try:
            return self.catalog.answer(statement.text, self.session, values, oids)
        except CatalogError as error:
            raise _fault(error, statement) from None

    def describe(self, statement: Statement, oids: Sequence[int]) -> StatementDescription | None:
        try:
            return self.catalog.describe(statement.text, self.session, oids)
        except CatalogError as error:
            raise _fault(error, statement) from None


def _fault(error: CatalogError, statement: Statement) -> Fault:
    return Fault(error.sqlstate, error.message, hint=error.hint, place=statement.offset + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyResult:
    """A result that leaves by the COPY protocol."""

    copy: copying.Copy
    result: Result


class Runner:
    """Runs the statements of one session."""

    def __init__(
        self,
        *,
        state: State,
        asker: Asker,
        policy: Policy,
        look: Look,
        most_held: int,
        metrics: Callable[[], str],
        work: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        """`work` runs a call on a worker, by turns; `most_held` is how many bytes cursors may
        hold.
        """
        self.state = state
        self._asker = asker
        self._policy = policy
        self._look = look
        self._most_held = most_held
        self._work = work
        # asked when they are shown
        self._live = {"discreet.budget": asker.budget, "discreet.metrics": metrics}

    # --- from text to a prepared statement --------------------------------------------------------

    async def prepare(self, statement: Statement | None, oids: Sequence[int]) -> Prepared:
        """Find the types of a statement's parameters; the catalog knows its own."""
        if statement is None:
            return Prepared(statement=None, parameters=())
        prepared = Prepared(statement=statement, parameters=infer(statement, oids, self._policy))
        if prepared.parameters and statement.verb in QUESTIONS:
            found = await self._work(lambda: self._look.describe(statement, tuple(oids)))
            if found is not None:
                prepared.parameters = tuple(
                    Parameter(oid=oid, sample=sample_of(oid)) for oid in found.parameters
                )
                prepared.schema = found.schema
                prepared.described = True
        return prepared

    async def describe(self, prepared: Prepared) -> pa.Schema | None:
        """Return the columns of a statement's result before its parameters have values; None where
        it has none.
        """
        if not prepared.described:
            samples = tuple(parameter.sample for parameter in prepared.parameters)
            prepared.schema = await self._schema(prepared, samples)
            prepared.described = True
        return prepared.schema

    async def describe_portal(self, portal: Portal) -> pa.Schema | None:
        if portal.result is not None:
            return None if portal.result.table is None else portal.result.table.schema
        if portal.prepared.described:
            return portal.prepared.schema
        return await self._schema(portal.prepared, portal.literals)

    async def _schema(self, prepared: Prepared, literals: Sequence[str]) -> pa.Schema | None:
        statement = prepared.statement
        if statement is None:
            return None
        self.state.require_sound(statement.verb)
        match statement.verb:
            case "SHOW":
                shown = self._show(statement)
                return None if shown.table is None else shown.table.schema
            case "EXPLAIN":
                return pa.schema([pa.field("QUERY PLAN", pa.string())])
            case "FETCH":
                return await self.describe_portal(
                    self._cursor(commands.parse_fetch(statement).name)
                )
            case "EXECUTE":
                return await self.describe(self._read_execute(statement)[0])
        if statement.verb not in QUESTIONS:
            return None
        oids = tuple(parameter.oid for parameter in prepared.parameters)
        return await self._work(lambda: self._schema_of_question(statement, literals, oids))

    def _schema_of_question(
        self, statement: Statement, literals: Sequence[str], oids: Sequence[int]
    ) -> pa.Schema:
        found = self._look.describe(statement, oids)
        if found is not None:
            return found.schema
        return self._asker.schema(self._written(statement, literals), offset=statement.offset)

    def _written(self, statement: Statement, literals: Sequence[str]) -> str:
        return write_in(statement, literals, most=self._policy.limits.statement)

    # --- running ----------------------------------------------------------------------------------

    async def run(self, statement: Statement) -> Result | CopyResult:
        """Run a statement that has no parameters."""
        return await self._run(Portal(prepared=Prepared(statement=statement, parameters=())))

    async def execute(self, portal: Portal) -> Result | CopyResult:
        """Run a portal. Its result is kept in it, so that it runs only once."""
        if portal.result is None:
            if self.state.held > self._most_held:
                hint = "CLOSE some. What they asked is stored, and free to ask again."
                raise Fault("53200", "The cursors of this session hold too much.", hint=hint)
            made = await self._run(portal)
            if isinstance(made, CopyResult):
                return made
            portal.result = made
        return portal.result

    async def _run(self, portal: Portal) -> Result | CopyResult:
        statement = portal.prepared.statement
        assert statement is not None
        self.state.require_sound(statement.verb)
        if statement.verb == "SHOW":
            live = self._live.get(commands.setting_name(statement).lower())
            if live is not None:
                name = commands.setting_name(statement).lower()
                return Result(tag="SHOW", table=commands.show_value(name, await self._work(live)))
        done = commands.run(self.state, statement)
        if done is not None:
            return done
        match statement.verb:
            case "EXPLAIN":
                return await self._explain(statement)
            case "COPY":
                copy = copying.parse(statement)
                return CopyResult(copy=copy, result=await self._ask(copy.source, portal))
            case "DECLARE":
                return await self._declare(statement, portal)
            case "FETCH" | "MOVE":
                return await self._fetch(statement)
            case "PREPARE":
                return await self._prepare(statement)
            case "EXECUTE":
                prepared, literals = self._read_execute(statement)
                return await self._run(Portal(prepared=prepared, literals=literals))
        if statement.verb not in QUESTIONS:
            raise Fault(
                "25006",
                f"{statement.tokens[0].text[:40]} is not understood here: this server answers questions "
                "and changes nothing.",
                hint=_INSTEAD.get(
                    statement.verb, "Ask by SELECT. SHOW discreet.budget tells what is left."
                ),
                place=statement.offset + 1,
            )
        return await self._ask(statement, portal)

    async def _ask(self, statement: Statement, portal: Portal) -> Result:
        oids = tuple(parameter.oid for parameter in portal.prepared.parameters)
        expected = portal.prepared.schema if portal.prepared.described and portal.literals else None

        def asked() -> Result:
            # EXECUTE's are written, and have no types
            by_name = bool(portal.literals) and not portal.values
            looked = statement
            if by_name:
                looked = replace(statement, text=self._written(statement, portal.literals))
            found = self._look.answer(looked, portal.values, () if by_name else oids)
            if found is not None:
                return Result(tag=f"SELECT {found.num_rows}", table=found)
            sql = self._written(statement, portal.literals)
            if expected is not None:
                _require_same(expected, self._asker.schema(sql, offset=statement.offset))
            return self._asker.ask(sql, offset=statement.offset)

        result: Result = await self._work(asked)
        self.state.charged = self.state.charged or result.charged
        return result

    async def _explain(self, statement: Statement) -> Result:
        place, as_json = 1, False
        if (
            statement.tokens[1:2]
            and statement.tokens[1].text == "("
            and not _is_question(statement.tokens[2:3])
        ):
            place = (
                next(
                    (i for i, token in enumerate(statement.tokens) if token.text == ")"),
                    len(statement.tokens),
                )
                + 1
            )
        words = [token.upper for token in statement.tokens[1:place]]
        while place < len(statement.tokens) and statement.tokens[place].upper in (
            "ANALYZE",
            "VERBOSE",
        ):
            words.append(statement.tokens[place].upper)
            place += 1
        if "ANALYZE" in words:
            hint = "EXPLAIN alone is free and says what would happen."
            raise Fault(
                "0A000",
                "EXPLAIN ANALYZE would ask the question and tell how long it took.",
                hint=hint,
            )
        as_json = "JSON" in words
        inner = statement.rest(place)
        if inner.verb == "EXECUTE":
            prepared, literals = self._read_execute(inner)
            assert prepared.statement is not None
            sql = self._written(prepared.statement, literals)
            offset = inner.offset
        else:
            sql, offset = inner.text, inner.offset
        result: Result = await self._work(
            lambda: self._asker.explain(sql, offset=offset, as_json=as_json)
        )
        return result

    def _show(self, statement: Statement) -> Result:
        found = commands.run(self.state, statement)
        assert found is not None
        return found

    # --- cursors and prepared statements by name --------------------------------------------------

    async def _declare(self, statement: Statement, outer: Portal) -> Result:
        """Keep a question as a cursor. It is asked at the first FETCH; if it cannot be asked,
        refuse it now.
        """
        declared = commands.parse_declare(statement)
        if self.state.status == "I" and not declared.hold:
            hint = "Write BEGIN first, or DECLARE ... WITH HOLD."
            raise Fault("25P01", "A cursor without HOLD lives in a transaction.", hint=hint)
        if declared.name in self.state.portals:
            raise Fault(
                "42P03", f"There is a cursor {declared.name[:63]} already.", hint="CLOSE it first."
            )
        if declared.source.verb not in QUESTIONS:
            raise Fault("42601", "A cursor is declared for a SELECT.")
        prepared = Prepared(statement=declared.source, parameters=outer.prepared.parameters)
        portal = Portal(
            prepared=prepared, literals=outer.literals, values=outer.values, hold=declared.hold
        )
        prepared.schema = await self._schema(prepared, outer.literals)
        prepared.described = True
        self.state.keep_portal(declared.name, portal)
        return Result(tag="DECLARE CURSOR")

    def _cursor(self, name: str) -> Portal:
        if name not in self.state.portals:
            raise Fault(
                "34000", f"There is no cursor {name[:63]}.", hint="DECLARE it in this transaction."
            )
        return self.state.portals[name]

    async def _fetch(self, statement: Statement) -> Result:
        fetch = commands.parse_fetch(statement)
        portal = self._cursor(fetch.name)
        first = portal.result is None
        made = await self.execute(portal)
        assert isinstance(made, Result)
        if made.table is None:
            raise Fault("34000", f"The cursor {fetch.name[:63]} has no rows.")
        numbers = commands.rows_of(fetch, portal, made.table.num_rows)
        notices = made.notices if first else ()
        if fetch.move:
            return Result(tag=f"MOVE {len(numbers)}", notices=notices)
        table = made.table.take(pa.array(numbers, pa.int64()))
        return Result(tag=f"FETCH {len(numbers)}", table=table, notices=notices)

    async def _prepare(self, statement: Statement) -> Result:
        """Read PREPARE name [(types)] AS statement."""
        words = [token.upper for token in statement.tokens]
        if len(words) < 4 or "AS" not in words:
            raise Fault("42601", "Write PREPARE name AS SELECT ...")
        name = statement.tokens[1].name
        start = words.index("AS")
        if name in self.state.statements:
            raise Fault(
                "42P05",
                f"There is a prepared statement {name[:63]} already.",
                hint="DEALLOCATE it first.",
            )
        prepared = await self.prepare(statement.rest(start + 1), ())
        self.state.keep_statement(name, prepared)
        return Result(tag="PREPARE")

    def _read_execute(self, statement: Statement) -> tuple[Prepared, tuple[str, ...]]:
        """Read EXECUTE name (literal, ...)."""
        if len(statement.tokens) < 2 or statement.tokens[1].name not in self.state.statements:
            raise Fault("26000", "There is no such prepared statement.", hint="PREPARE it first.")
        prepared = self.state.statements[statement.tokens[1].name]
        given = _arguments(statement.tokens[2:])
        if prepared.statement is None or len(given) != len(prepared.parameters):
            raise Fault(
                "42601",
                f"The prepared statement takes {len(prepared.parameters)} values, not {len(given)}.",
            )
        return prepared, given


def _is_question(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[0].upper in QUESTIONS


def _arguments(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the values between the brackets of EXECUTE, as they were written."""
    parts = list[list[str]]()
    depth = 0
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]") if token.kind == "symbol" else 0
        if (token.text == "(" and depth == 1 and not parts) or (token.text == "," and depth == 1):
            parts.append([])
        elif parts and depth >= 1:
            parts[-1].append(token.text)
    return tuple(" ".join(part) for part in parts if part)


def _require_same(expected: pa.Schema, found: pa.Schema) -> None:
    """Refuse, before anything is charged, an answer with other types than were described to the
    client.
    """
    told, now = ([field.oid for field in types.fields_of(schema)] for schema in (expected, found))
    if told != now:
        raise Fault(
            "0A000",
            "With these values the answer has other types than were described.",
            hint="Cast the parameters, or write the values into the statement.",
        )


def bind(prepared: Prepared, values: Sequence[object], formats: Sequence[int]) -> Portal:
    literals = tuple(literal(value) for value in values)
    return Portal(
        prepared=prepared, literals=literals, values=tuple(values), formats=tuple(formats)
    )


def only_one(statements: Sequence[Statement]) -> Statement | None:
    """Return the only statement of a text; None where the text is empty."""
    if len(statements) > 1:
        raise Fault(
            "42601", "A prepared statement holds one statement.", place=statements[1].offset + 1
        )
    return statements[0] if statements else None
