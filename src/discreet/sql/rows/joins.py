"""Joins with private rows, by S4: on the owner with private tables, on anything with public ones.

private JOIN private       needs owner = owner as a top-level conjunct; one person has at most m1 *
                           m2 rows
private LEFT JOIN private  the same; m1 * max(1, m2), and the right columns may be NULL
private JOIN public        m times how many public rows one row can meet, which is known
public LEFT JOIN private   refused on rows: the null-extended row belongs to nobody, and vanishes
                           when one person arrives; `spines` joins such groups after noise
EXISTS, IN                 only correlated by equality of owners: a row stays or goes by its own
                           person's rows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from discreet.algebra import (
    Call,
    Careful,
    Column,
    Expression,
    OwnerJoin,
    PublicJoin,
    walk,
)
from discreet.sql.rows.owners import (
    as_equality,
    conjuncts,
    leads_to,
    matches_owners,
    owner_hint,
    same_owner,
)
from discreet.sql.rows.public import PublicSide
from discreet.sql.rows.relation import Field, Names, Relation
from discreet.sql.text.parse import reject
from discreet.sql.values.expressions import translate
from discreet.sql.values.unify import as_flag, comparison
from discreet.sql.values.value import Category, Opaque, Text, Value


def drop_brackets(node: exp.Select) -> exp.Select:
    """Return the SELECT without the brackets in its FROM that change nothing.

    FROM (a JOIN b ON ...) JOIN c is a JOIN b JOIN c; (a JOIN b ON ...) AS t is (SELECT * FROM a
    JOIN b ON ...) AS t. Brackets around joins stay where they decide what is joined first: a JOIN
    (b JOIN c ON ...) ON ...
    """
    clauses = [node.args.get("from_"), *(node.args.get("joins") or [])]
    if not any(
        clause is not None and (_in_brackets(clause.this) or clause.this.args.get("joins"))
        for clause in clauses
    ):
        return node
    copy = node.copy()
    first, inner = _open(copy.args["from_"].this)
    copy.set("from_", exp.From(this=first))
    for clause in copy.args.get("joins") or []:
        right, joins = _open(clause.this)
        right.set("joins", joins or None)
        clause.set("this", exp.Subquery(this=right) if joins else right)
    copy.set("joins", [*inner, *(copy.args.get("joins") or [])])
    return copy


def _in_brackets(node: exp.Expression) -> bool:
    """(a), (a JOIN b ...): brackets around tables, and not around a SELECT."""
    if any(part for name, part in node.args.items() if name not in ("this", "alias", "joins")):
        return False
    inner = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(inner, exp.Subquery):
        return bool(inner.args.get("joins") or inner.alias) or _in_brackets(inner)
    return isinstance(inner, exp.Table)


def _open(node: exp.Expression) -> tuple[exp.Expression, list[exp.Expression]]:
    """Return the first table in brackets, and what is joined to it there."""
    joins = list(node.args.get("joins") or [])
    node.set("joins", None)
    if not _in_brackets(node):
        return node, joins
    first, inner = _open(node.this)
    if not node.args.get("alias"):
        return first, [*inner, *joins]
    every = exp.Select(expressions=[exp.Star()], from_=exp.From(this=first), joins=inner)
    return exp.Subquery(this=every, alias=node.args["alias"]), joins


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """An ON clause, taken apart: equalities of columns with one name (USING), and the rest."""

    parts: tuple[exp.Expression, ...]
    using: tuple[str, ...]


def join(
    left: Relation | PublicSide,
    right: Relation | PublicSide,
    clause: exp.Join,
    where: exp.Expression | None,
    alias: str,
) -> Relation:
    """Two sides joined; at least one of them is private. `alias` is a fresh engine alias, should
    one be needed.
    """
    first, side = left, _side(clause)
    if side == "RIGHT":
        left, right, side = right, left, "LEFT"
    if side == "LEFT" and isinstance(left, PublicSide):
        raise reject(
            clause,
            "an outer join that keeps public rows shows whether anybody matches them.",
            "Group by its columns alone, and aggregate columns of the private side, each by its name; or write JOIN: "
            "groups without people appear by themselves, with a noisy zero.",
        )
    if isinstance(left, PublicSide):
        left, right = right, left
    assert isinstance(left, Relation)
    names = Names(fields=(*left.fields, *right.fields))
    condition = _condition(clause, names)
    if isinstance(right, PublicSide):
        joined = _with_public(left, right, condition, side, names, clause)
    else:
        joined = _with_private(left, right, condition, side, names, clause, where, alias)
    if left is first:
        return joined
    return replace(joined, fields=_turn(joined.fields, len(left.fields), condition.using))


def _turn(fields: Sequence[Field], place: int, using: Sequence[str]) -> tuple[Field, ...]:
    """Return the columns of two sides that changed places, as * lists them: those from `place` on
    come first.

    What USING made one of two stands where the first side has it.
    """
    later, first = list(fields[:place]), list(fields[place:])
    for name in dict.fromkeys(map(str.lower, using)):
        one = next(
            index
            for index, field in enumerate(later)
            if field.name.lower() == name and not field.merged
        )
        two = next(
            index
            for index, field in enumerate(first)
            if field.name.lower() == name and field.merged
        )
        later[one], first[two] = first[two], later[one]
    return (*first, *later)


def _side(clause: exp.Join) -> str:
    for name, part in clause.args.items():
        if name not in ("this", "on", "using", "side", "kind") and part not in (None, False, []):
            word = str(part).upper() if name == "method" else name
            raise reject(
                clause,
                f"{word} JOIN is not answered.",
                "Use JOIN or LEFT JOIN, with USING (column) or ON.",
            )
    side, kind = (str(clause.args.get(name) or "").upper() for name in ("side", "kind"))
    if kind in ("SEMI", "ANTI"):
        word = "IN" if kind == "SEMI" else "NOT IN"
        raise reject(
            clause,
            f"{kind} JOIN is not answered.",
            f"Write WHERE owner {word} (SELECT owner FROM ...).",
        )
    if side == "FULL" or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise reject(
            clause,
            f"{side or kind} JOIN is not answered on private rows.",
            "Use JOIN or LEFT JOIN.",
        )
    return side


def _condition(clause: exp.Join, names: Names) -> _Condition:
    using = tuple(part.name for part in clause.args.get("using") or [])
    parts = tuple(as_equality(part, names) for part in conjuncts(clause.args.get("on")))
    return _Condition(parts=parts, using=using)


def _pairs(
    condition: _Condition, left: Sequence[Field], right: Sequence[Field], node: exp.Expression
) -> list[tuple[Field, Field]]:
    """USING (a, b): the columns of that name on both sides."""
    return [
        (_using_column(name, left, node), _using_column(name, right, node))
        for name in condition.using
    ]


def _using_column(name: str, fields: Sequence[Field], node: exp.Expression) -> Field:
    """Return the column of one side that USING means; of several, owners alone are equal."""
    found = [field for field in fields if field.name.lower() == name.lower() and not field.merged]
    if not found:
        raise reject(node, f"{name} is not a column of both sides.", "Write ON a.x = b.y.")
    owners = [
        field
        for field in found
        if isinstance(field.value.domain, Opaque) and field.value.domain.owner
    ]
    if len({field.value.expression for field in found}) > 1 and not owners:
        which = f"{found[0].table}.{name}"
        raise reject(
            node, f"USING ({name}) could mean several columns.", f"Write ON {which} = b.{name}."
        )
    return owners[0] if owners else found[0]


def _with_public(
    left: Relation,
    right: PublicSide,
    condition: _Condition,
    side: str,
    names: Names,
    node: exp.Join,
) -> Relation:
    pins, on, met, origins = list[Pin](), list[Expression](), list[int](), set[tuple[str, int]]()
    for ours, theirs in _pairs(condition, left.fields, right.fields, node):
        place = right.fields.index(theirs)
        told = comparison("=", ours.value, theirs.value, node).expression
        pin = _pin(told, right) if _tells_apart(ours.value, place, right) else None
        if pin is None:
            on.append(told)
        else:
            pins.append(pin)
            met.append(place)
        origins |= ours.origins
    for part in condition.parts:
        told = as_flag(translate(part, names), part).expression
        places = _equalities(part, left, right, names)
        pin = _pin(told, right) if places else None
        if pin is None:
            on.append(told)
        else:
            pins.append(pin)
            met += places
        origins |= names.origins(part)
    multiplicity = right.multiplicity(list(dict.fromkeys(met)))
    nullable = side == "LEFT"
    met_at_most = max(1, multiplicity) if nullable else multiplicity
    rows = left.rows * met_at_most
    if rows == 0:
        raise reject(node, "this join matches no row of the public table.", "Check the condition.")
    # A public row that is met alone is a function of what it is met by; one of several is not.
    found = frozenset(origins) if multiplicity <= 1 else frozenset({(right.source.stage, rows)})
    fields = tuple(replace(field, origins=found) for field in right.fields)
    source = PublicJoin(left.source, right.source, multiplicity, tuple(pins), tuple(on), nullable)
    return replace(
        left,
        source=source,
        fields=_fields(left, fields, nullable, condition, node),
        rows=rows,
        plain=False,
    )


Pin = tuple[Expression, Expression]


def _pin(condition: Expression, right: PublicSide) -> Pin | None:
    """Return an equality of a private expression with a public one, in this order."""
    bare = condition.value if isinstance(condition, Careful) else condition
    if not isinstance(bare, Call) or bare.name != "=":
        return None
    first, second = bare.arguments
    if _mentions(first, right.source.stage):
        first, second = second, first
    only_public = all(
        part.stage == right.source.stage for part in walk(second) if isinstance(part, Column)
    )
    if (
        _mentions(first, right.source.stage)
        or not _mentions(second, right.source.stage)
        or not only_public
    ):
        return None
    return first, second


def _mentions(node: Expression, stage: str) -> bool:
    return any(isinstance(part, Column) and part.stage == stage for part in walk(node))


def _equalities(part: exp.Expression, left: Relation, right: PublicSide, names: Names) -> list[int]:
    """Return the place of the public column that a conjunct private = public pins, if it is of that
    form.
    """
    if not isinstance(part, exp.EQ):
        return []
    for ours, theirs in ((part.this, part.expression), (part.expression, part.this)):
        if isinstance(theirs, exp.Column):
            value = names.column(theirs)
            public = [each.value.expression for each in right.fields]
            place = public.index(value.expression) if value.expression in public else None
            uses = {names.column(column).expression for column in ours.find_all(exp.Column)}
            alone = not uses & set(public)
            if place is not None and alone and _tells_apart(translate(ours, names), place, right):
                return [place]
    return []


def _tells_apart(ours: Value, place: int, right: PublicSide) -> bool:
    """Return True if equality with `ours` holds for one value of the public column at this place
    only.

    Not so of floats, which are compared on a grid; of texts beside a number, which are compared as
    numbers; of times in nanoseconds, which are compared in microseconds.
    """
    kind, types = right.table.column(place).type, pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        return isinstance(ours.domain, Category | Text)
    # Privacy: a type that is not known to be compared exactly pins nothing. Were two of its values
    # one to the engine, a row would meet both.
    exact = (
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
    )
    exact = exact or (types.is_timestamp(kind) and kind.unit != "ns")
    return exact and not isinstance(ours.domain, Category | Text)


def _with_private(
    left: Relation,
    right: Relation,
    condition: _Condition,
    side: str,
    names: Names,
    node: exp.Join,
    where: exp.Expression | None,
    alias: str,
) -> Relation:
    if not right.plain or (side == "LEFT" and right.conditions):
        right = right.nest(alias)
        names = Names(fields=(*left.fields, *right.fields))
    owned, on = False, list[Expression]()
    for ours, theirs in _pairs(condition, left.fields, right.fields, node):
        if same_owner(ours.value, theirs.value):
            owned = True
            on.append(ours.value.expression.equals(theirs.value.expression))
        else:
            on.append(comparison("=", ours.value, theirs.value, node).expression)
    for part in condition.parts:
        match = matches_owners(part, left, right, names)
        if match is None:
            on.append(as_flag(translate(part, names), part).expression)
        else:
            owned = True
            on.append(match)
    # FROM a, b WHERE a.owner = b.owner: the condition stands in WHERE, and is applied there too.
    owned = owned or any(
        matches_owners(part, left, right, names) is not None for part in conjuncts(where)
    )
    if not owned and condition.using:
        listed = ", ".join(condition.using)
        raise reject(
            node, f"USING ({listed}) joins different people's rows.", owner_hint(left, right)
        )
    if not owned:
        raise reject(
            node, "private tables can be joined on the owner only.", owner_hint(left, right)
        )
    # That the owners are equal is said by OwnerJoin itself.
    on = [each for each in dict.fromkeys(on) if each != left.owner.equals(right.owner)]
    nullable = side == "LEFT"
    rows = left.rows * (max(1, right.rows) if nullable else right.rows)
    source = OwnerJoin(left.source, right.source, tuple(on), nullable)
    conditions = left.conditions if nullable else (*left.conditions, *right.conditions)
    fields = _fields(left, right.fields, nullable, condition, node)
    bounds = [each for each in (left.max_groups, right.max_groups) if each is not None]
    return replace(
        left,
        source=source,
        fields=fields,
        rows=rows,
        conditions=conditions,
        plain=False,
        max_groups=min(bounds, default=None),
    )


def _fields(
    left: Relation,
    right: Sequence[Field],
    nullable: bool,
    condition: _Condition,
    node: exp.Expression,
) -> tuple[Field, ...]:
    """All columns; those of an outer side nullable, those of USING once, unless they are written
    with their table.
    """
    ours = {theirs: field for field, theirs in _pairs(condition, left.fields, right, node)}
    theirs = []
    for field in right:
        same = ours.get(field)
        if nullable:  # then b.x is NULL where a.x is not
            theirs.append(replace(_outer(field), merged=field.merged or same is not None))
        elif same is not None and type(same.value.domain) is type(
            field.value.domain
        ):  # a.x and b.x are one
            theirs.append(replace(field, value=same.value, origins=same.origins, merged=True))
        else:
            theirs.append(replace(field, merged=field.merged or same is not None))
    # A row number stops being one when rows are multiplied.
    return tuple(
        replace(field, value=replace(field.value, numbering=False))
        for field in (*left.fields, *theirs)
    )


def _outer(field: Field) -> Field:
    """Return a column of the side that may be missing: NULL is one more value. An owner that may be
    NULL owns no rows.
    """
    value = field.value
    domain = (
        Opaque(owner=False, link=leads_to(value))
        if isinstance(value.domain, Opaque)
        else value.domain
    )
    origins = frozenset((alias, rows + 1) for alias, rows in field.origins) or frozenset(
        {(field.name, 2)}
    )
    return replace(
        field, value=replace(value, nullable=True, domain=domain, constant=False), origins=origins
    )


# --- semi- and anti-joins -------------------------------------------------------------------------
