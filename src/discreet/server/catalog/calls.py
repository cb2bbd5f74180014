"""Functions that a client calls, as the catalog's database has them; bounded, so that texts cannot
grow without end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from discreet.server.catalog import types
from discreet.server.catalog.failure import CatalogError, not_supported
from discreet.server.catalog.functions import EXPRESSIONS, FUNCTIONS, GROWING
from discreet.server.catalog.kinds import Kinds
from discreet.server.catalog.literals import array_of, number, text

SETTINGS_NOW = "settings_now"
# The engine's limit of memory does not count the texts of the rows that it works on, so their
# growth is bounded here.
_MOST_GROWING = 64  # parts of one statement that make longer texts or arrays
_ONCE = frozenset(("d_joined", "d_short", "d_few", "d_array_to_string", "d_visible", "d_may"))
_MOST_NESTED = 3  # calls of functions that are written with their argument in several places


class Calls:
    """Writes the calls of one statement; remembers what they read and how many of them make texts
    longer.
    """

    def __init__(self, kinds: Kinds, session: Mapping[str, str]) -> None:
        self._kinds = kinds
        self._session = session
        self.reads: set[str] = set()
        self._growing = 0

    def call(self, name: str, given: list[exp.Expression]) -> exp.Expression:
        """Write the call of one function with its arguments."""
        special = getattr(self, f"_call_{name}", None)
        if special is not None:
            made: exp.Expression = special(given)
        elif name in EXPRESSIONS:
            made = self.fill(EXPRESSIONS[name][0], given, name)
        else:
            made = exp.Anonymous(this=FUNCTIONS[name][0], expressions=given)
        _check_nesting(made)
        if name in GROWING:
            made = self.grow(made, "d_short" if name == "array_to_string" else "d_joined")
        made.set("was", name)
        return made

    def grow(self, made: exp.Expression, check: str) -> exp.Expression:
        """Check what makes longer texts, for each row."""
        self._growing += 1
        if self._growing > _MOST_GROWING:
            raise CatalogError(
                "54000", "The statement puts too many texts together.", hint="Split it."
            )
        return exp.Anonymous(this=check, expressions=[made])

    def as_text(self, node: exp.Expression, kind: str) -> exp.Expression:
        """Write an expression of some type as text."""
        if kind in types.REFERENCES:
            return exp.Anonymous(this=f"d_{kind}_text", expressions=[node])
        if kind in types.TEXTS or isinstance(node, exp.Literal | exp.DPipe):
            return node
        return exp.cast(node, "VARCHAR", dialect="duckdb")

    def fill(self, pattern: str, given: list[exp.Expression], name: str = "") -> exp.Expression:
        """Write an expression of EXPRESSIONS with its arguments in their places."""
        marks = {f"{{{n}}}": f"arg__{n}" for n in range(10)} | {"{last}": f"arg__{len(given) - 1}"}
        sql = pattern
        for mark, column in marks.items():
            sql = sql.replace(mark, column)
        for word, value in self._session.items():
            sql = sql.replace(f"{{{word}}}", value)
        made = exp.Paren(this=sqlglot.parse_one(sql, dialect="duckdb"))
        for column in list(made.find_all(exp.Column)):
            if column.name.startswith("arg__"):
                place = int(column.name.removeprefix("arg__"))
                if not 0 <= place < len(given):
                    raise CatalogError("42883", f"function {name} has too few arguments")
                column.replace(given[place].copy())
        found = made.this
        return found.pop() if isinstance(found, exp.Expression) else made

    # --- functions that need more than another name -----------------------------------------------

    def _call_generate_subscripts(self, given: list[exp.Expression]) -> exp.Expression:
        vector = bool(given) and self._kinds.of(given[0]) in types.VECTORS
        return exp.Anonymous(
            this="d_subscripts_from_0" if vector else "d_subscripts", expressions=given[:1]
        )

    def _call_obj_description(self, given: list[exp.Expression]) -> exp.Expression:
        return exp.Anonymous(
            this="d_obj_description" if len(given) < 2 else "d_told_of", expressions=given[:2]
        )

    def _call_pg_get_indexdef(self, given: list[exp.Expression]) -> exp.Expression:
        place = given[1] if len(given) > 1 else number(0)
        return exp.Anonymous(
            this="d_short_index" if len(given) > 2 else "d_index_part",
            expressions=[given[0], place],
        )

    def _call_current_setting(self, given: list[exp.Expression]) -> exp.Expression:
        self.reads.add(SETTINGS_NOW)
        return self.fill(EXPRESSIONS["current_setting"][0], given, "current_setting")

    def _call_unnest(self, given: list[exp.Expression]) -> exp.Expression:
        return exp.Anonymous(this="unnest", expressions=[self._as_array(each) for each in given])

    def _call_sum(self, given: list[exp.Expression]) -> exp.Expression:
        made = exp.Anonymous(this="sum", expressions=given)
        fraction = self._kinds.of(given[0]) in ("float4", "float8", "numeric") if given else False
        return made if fraction else exp.cast(made, "BIGINT", dialect="duckdb")

    def _call_array_to_string(self, given: list[exp.Expression]) -> exp.Expression:
        given[0] = self._as_array(given[0])
        kind = self._kinds.of(given[0]) or ""
        # names already
        gathered = isinstance(given[0], exp.Anonymous) and given[0].name == "array_agg"
        if kind == "_regtype" and not gathered:
            given[0] = exp.Anonymous(this="d_regtypes_text", expressions=[given[0]])
        elif types.element(kind) in types.REFERENCES and not gathered:
            raise not_supported(f"array_to_string of {kind}")
        return exp.Anonymous(this="d_array_to_string", expressions=given[:2])

    def _call_array_agg(self, given: list[exp.Expression]) -> exp.Expression:
        """Gather references to objects by name."""
        kind = self._kinds.of(given[0]) if given else None
        inner = given[0].this if given and isinstance(given[0], exp.Order) else None
        made = exp.Anonymous(this="array_agg", expressions=given)
        if kind in types.REFERENCES:
            place = inner if inner is not None else made.expressions[0]
            place.replace(exp.Anonymous(this=f"d_{kind}_text", expressions=[place.copy()]))
        return made

    def _call_json_build_object(self, given: list[exp.Expression]) -> exp.Expression:
        made = exp.Anonymous(this="json_object", expressions=given)
        return exp.cast(made, "VARCHAR", dialect="duckdb")

    def _call_set_config(self, given: list[exp.Expression]) -> exp.Expression:
        if len(given) < 2 or (
            isinstance(given[0], exp.Literal) and str(given[0].this).startswith("discreet.")
        ):
            raise CatalogError(
                "0A000",
                "set_config changes nothing here.",
                hint="Write SET discreet.epsilon = 0.1.",
            )
        return given[1]

    def _call_format(self, given: list[exp.Expression]) -> exp.Expression:
        """Put texts together as a constant says: %s is a text, %I a name, %L a constant, %% a
        sign.
        """
        pattern = given[0] if given else None
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise not_supported("format with a pattern that is not a constant")
        parts: list[exp.Expression] = [text("")]
        place = 0
        for sign, plain in re.findall(r"%([sIL%])|([^%]+)", str(pattern.this)):
            if plain or sign == "%":
                parts.append(text(plain or "%"))
                continue
            place += 1
            if place >= len(given):
                raise CatalogError("22023", "too few arguments for format()")
            value = self.as_text(given[place], self._kinds.of(given[place]) or "")
            quote = {"I": "d_quote_ident", "L": "d_quote_literal"}.get(sign)
            parts.append(exp.Anonymous(this=quote, expressions=[value]) if quote else value)
        return exp.Anonymous(this="concat", expressions=parts)

    def _as_array(self, node: exp.Expression) -> exp.Expression:
        plain = isinstance(node, exp.Literal) and node.is_string
        return array_of(str(node.this), "_text") if plain else node


def _check_nesting(call: exp.Expression) -> None:
    around = (
        node
        for node in call.find_all(exp.Anonymous)
        if node.name.startswith("d_") and node.name not in _ONCE
    )
    for node in around:
        depth, parent = 0, node.parent
        while parent is not None and depth <= _MOST_NESTED:
            depth += (
                isinstance(parent, exp.Anonymous)
                and parent.name.startswith("d_")
                and parent.name not in _ONCE
            )
            parent = parent.parent
        if depth >= _MOST_NESTED:
            raise CatalogError("54001", "The statement is nested too deeply.", hint="Split it.")
