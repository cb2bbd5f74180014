"""Plan joins with private rows (S4): with private tables on the owner, with public tables on any
condition.

private JOIN private       ON needs owner = owner as one of the conditions that must all be true;
                           one person has at most m1 * m2 rows
private LEFT JOIN private  the same, with at most m1 * max(1, m2) rows; the right columns may be NULL
private JOIN public        at most m times the public rows that one row can meet, which is known
public LEFT JOIN private   refused on rows: the row with NULLs belongs to nobody, and vanishes when
                           a person arrives who matches; `spines` joins such groups after noise
EXISTS, IN                 only with equality of owners: the rows of its own person decide about a
                           row
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from discreet.algebra import (
    Call,
    Column,
    Expression,
    OwnerJoin,
    PublicJoin,
    Stage,
    bare,
    walk,
)
from discreet.sql.rows.numbered import numbers_left
from discreet.sql.rows.owners import (
    as_equality,
    conjuncts,
    leads_to,
    matches_owners,
    owner_hint,
    same_owner,
)
from discreet.sql.rows.public import PublicSide
from discreet.sql.rows.relation import Field, Names, Origin, Relation, rows_of_stage
from discreet.sql.text.parse import reject
from discreet.sql.values.expressions import translate
from discreet.sql.values.unify import as_flag, comparison
from discreet.sql.values.value import Category, Opaque, Text, Value


def drop_brackets(node: exp.Select) -> exp.Select:
    """Return the SELECT without the brackets in its FROM clause that change nothing.

    FROM (a JOIN b ON ...) JOIN c becomes a JOIN b JOIN c; (a JOIN b ON ...) AS t becomes (SELECT *
    FROM a JOIN b ON ...) AS t. Brackets that decide what is joined first stay: a JOIN (b JOIN c ON
    ...) ON ...
    """
    clauses = [node.args.get("from_"), *(node.args.get("joins") or [])]
    tables = [clause.this for clause in clauses if clause is not None]
    if not any(_in_brackets(each) or each.args.get("joins") for each in tables):
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
    """Return True for (a) and (a JOIN b ...): brackets around tables, not around a SELECT."""
    if any(part for name, part in node.args.items() if name not in ("this", "alias", "joins")):
        return False
    inner = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(inner, exp.Subquery):
        return bool(inner.args.get("joins") or inner.alias) or _in_brackets(inner)
    return isinstance(inner, exp.Table)


def _open(node: exp.Expression) -> tuple[exp.Expression, list[exp.Expression]]:
    """Return the first table in brackets, and the joins after it."""
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
    """The conditions of a join: those of ON, and the names of USING."""

    parts: tuple[exp.Expression, ...]
    using: tuple[str, ...]


def join(
    left: Relation | PublicSide,
    right: Relation | PublicSide,
    clause: exp.Join,
    where: exp.Expression | None,
    alias: str,
) -> Relation:
    """Return the join of two sides, of which at least one is private. `alias` is a fresh engine
    alias.
    """
    first = left
    side = _side(clause)
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
        result = _with_public(left, right, condition, side, names, clause)
    else:
        result = _with_private(left, right, condition, side, names, clause, where, alias)
    if left is first:
        return result
    return replace(result, fields=_swap(result.fields, len(left.fields), condition.using))


def _swap(fields: Sequence[Field], place: int, using: Sequence[str]) -> tuple[Field, ...]:
    """Return the columns of two sides that were exchanged in their original order: those from
    `place` on come first.

    A column of USING stands at its place in the side that comes first.
    """
    later = list(fields[:place])
    first = list(fields[place:])
    for name in dict.fromkeys(map(str.lower, using)):
        one = _index(later, name, merged=False)
        two = _index(first, name, merged=True)
        later[one], first[two] = first[two], later[one]
    return (*first, *later)


def _index(fields: Sequence[Field], name: str, *, merged: bool) -> int:
    """Return the index of the first column with a name that is merged, or not merged."""
    for index, field in enumerate(fields):
        if field.name.lower() == name and field.merged == merged:
            return index
    raise AssertionError(f"USING has no column {name}")


def _side(clause: exp.Join) -> str:
    """Return LEFT, RIGHT or an empty text, or refuse the join."""
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
    """Return the columns of USING, from both sides."""
    pairs = []
    for name in condition.using:
        ours = _using_column(name, left, node)
        theirs = _using_column(name, right, node)
        pairs.append((ours, theirs))
    return pairs


def _using_column(name: str, fields: Sequence[Field], node: exp.Expression) -> Field:
    """Return the column of one side that USING means. Of several it is an owner, because all owners
    of a row are equal.
    """
    candidates = [
        field for field in fields if field.name.lower() == name.lower() and not field.merged
    ]
    if not candidates:
        raise reject(node, f"{name} is not a column of both sides.", "Write ON a.x = b.y.")
    for field in candidates:
        if isinstance(field.value.domain, Opaque) and field.value.domain.owner:
            return field
    first = candidates[0]
    if len({field.value.expression for field in candidates}) > 1:
        raise reject(
            node,
            f"USING ({name}) could mean several columns.",
            f"Write ON {first.table}.{name} = b.{name}.",
        )
    return first


def _with_public(
    left: Relation,
    right: PublicSide,
    condition: _Condition,
    side: str,
    names: Names,
    node: exp.Join,
) -> Relation:
    """Return the join of private rows with a public table."""
    pins: list[Pin] = []
    on: list[Expression] = []
    pin_columns: list[int] = []  # the places of public columns in pins
    origins: set[Origin] = set()
    for ours, theirs in _pairs(condition, left.fields, right.fields, node):
        place = right.fields.index(theirs)
        equality = comparison("=", ours.value, theirs.value, node).expression
        pin = _pin(equality, right) if _is_exact(ours.value, place, right) else None
        if pin is None:
            on.append(equality)
        else:
            pins.append(pin)
            pin_columns.append(place)
        origins |= ours.origins
    for part in condition.parts:
        flag = as_flag(translate(part, names), part).expression
        places = _equalities(part, left, right, names)
        pin = _pin(flag, right) if places else None
        if pin is None:
            on.append(flag)
        else:
            pins.append(pin)
            pin_columns += places
        origins |= names.origins(part)
    multiplicity = right.multiplicity(list(dict.fromkeys(pin_columns)))
    nullable = side == "LEFT"
    partners = max(1, multiplicity) if nullable else multiplicity
    rows = left.rows * partners
    if rows == 0:
        raise reject(node, "this join matches no row of the public table.", "Check the condition.")
    # If at most one public row matches, it is a function of the private columns in the conditions.
    # If several match, it is not.
    new_origins = rows_of_stage(right.source.stage, rows)
    if multiplicity <= 1:
        new_origins = frozenset(origins)
    fields = tuple(replace(field, origins=new_origins) for field in right.fields)
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
    """Return the sides of an equality of a private with a public expression, the private one first;
    None for other conditions.
    """
    plain = bare(condition)
    if not isinstance(plain, Call) or plain.name != "=":
        return None
    public = right.source.stage
    private_side, public_side = plain.arguments
    if public in _stages_of(private_side):
        private_side, public_side = public_side, private_side
    if public in _stages_of(private_side) or _stages_of(public_side) != {public}:
        return None
    return private_side, public_side


def _stages_of(node: Expression) -> set[str]:
    """Return the stages whose columns an expression reads."""
    return {part.stage for part in walk(node) if isinstance(part, Column)}


def _equalities(part: exp.Expression, left: Relation, right: PublicSide, names: Names) -> list[int]:
    """Return the place of the public column in a condition private = public column, in a list; an
    empty list for other conditions.
    """
    if not isinstance(part, exp.EQ):
        return []
    public = [each.value.expression for each in right.fields]
    for ours, theirs in ((part.this, part.expression), (part.expression, part.this)):
        if not isinstance(theirs, exp.Column):
            continue
        column = names.column(theirs).expression
        columns = {names.column(each).expression for each in ours.find_all(exp.Column)}
        if column not in public or columns & set(public):
            continue
        place = public.index(column)
        if _is_exact(translate(ours, names), place, right):
            return [place]
    return []


def _is_exact(ours: Value, place: int, right: PublicSide) -> bool:
    """Return True if `ours` equals only one value of a public column.

    It may equal several floats, which are compared on a grid; several texts, if it is a number and
    they are compared as numbers; and several times in nanoseconds, which are compared in
    microseconds.
    """
    kind = right.table.column(place).type
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        return isinstance(ours.domain, Category | Text)
    # Privacy: other types are not known to be compared exactly, so they pin nothing. If the engine
    # took two values for equal, a row would meet both.
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
    """Return the join of two private relations; refuse it unless the owners are equal."""
    if not right.plain or (side == "LEFT" and right.conditions):
        right = right.nest(alias)
        names = Names(fields=(*left.fields, *right.fields))
    owned = False
    on: list[Expression] = []
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
    # FROM a, b WHERE a.owner = b.owner has the condition in WHERE, which also filters by it.
    if not owned:
        matches = [matches_owners(part, left, right, names) for part in conjuncts(where)]
        owned = any(match is not None for match in matches)
    if not owned and condition.using:
        columns = ", ".join(condition.using)
        raise reject(
            node, f"USING ({columns}) joins different people's rows.", owner_hint(left, right)
        )
    if not owned:
        raise reject(
            node, "private tables can be joined on the owner only.", owner_hint(left, right)
        )
    # `OwnerJoin` itself adds the equality of owners.
    on = [each for each in dict.fromkeys(on) if each != left.owner.equals(right.owner)]
    nullable = side == "LEFT"
    parts = (*condition.parts, *conjuncts(where))
    partners = max(int(nullable), _limit_rows(right, parts, names))
    rows = _limit_rows(left, conjuncts(where) if nullable else parts, names) * partners
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


def _limit_rows(side: Relation, parts: Iterable[exp.Expression], names: Names) -> int:
    """Return the most rows of a person that one side of a join has in what these conditions keep."""
    rows = side.rows
    if not isinstance(side.source, Stage):
        return rows
    for part in parts:
        limit = numbers_left(part, names)
        if limit is not None and _stages_of(limit[0]) == {side.source.stage}:
            rows = min(rows, limit[1])
    return rows


def _fields(
    left: Relation,
    right: Sequence[Field],
    nullable: bool,
    condition: _Condition,
    node: exp.Expression,
) -> tuple[Field, ...]:
    """Return the columns of a join. Those of an outer side may be NULL; a pair of USING is merged."""
    ours = {theirs: field for field, theirs in _pairs(condition, left.fields, right, node)}
    theirs = []
    for field in right:
        same = ours.get(field)
        is_equal = same is not None and type(same.value.domain) is type(field.value.domain)
        if nullable:  # b.x may be NULL although a.x is not
            theirs.append(replace(_outer(field), merged=field.merged or same is not None))
        elif same is not None and is_equal:  # b.x always has the value of a.x
            theirs.append(replace(field, value=same.value, origins=same.origins, merged=True))
        else:
            theirs.append(replace(field, merged=field.merged or same is not None))
    # A join may repeat rows, so row numbers are no longer unique.
    return tuple(
        replace(field, value=replace(field.value, numbering=False))
        for field in (*left.fields, *theirs)
    )


def _outer(field: Field) -> Field:
    """Return a column of the outer side, where NULL is one more value. An owner that may be NULL
    becomes a plain identifier.
    """
    value = field.value
    domain = value.domain
    if isinstance(domain, Opaque):
        domain = Opaque(owner=False, link=leads_to(value))
    # A column without origins is constant; with NULL it has two values.
    origins = frozenset((*each[:2], each[2] + 1, each[3] + 1) for each in field.origins)
    origins = origins or rows_of_stage(field.name, 2)
    value = replace(value, nullable=True, domain=domain, constant=False)
    return replace(field, value=value, origins=origins)
