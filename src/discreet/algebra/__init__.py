"""The trees that an engine runs: expressions over one row, and rows that each belong to one person.

The analysis builds these trees. `sql.check` derives from them how far one person can move each
number. An engine's spelling writes them as SQL. They are values: frozen, and equal if their content
is.

What cannot be built here cannot be asked. Two private sources are joined on their owners only.
Rows of several people are grouped only in `Aggregate`, the last step. The only subquery in an
expression is `Exists`, over rows of the same person.

rows       expressions, sources and queries
totals     the last step: from rows to numbers
trees      walk and rewrite trees
exclusive  which conditions exclude each other
"""

from __future__ import annotations

from discreet.algebra.rows import (
    OWNER,
    Call,
    Careful,
    Case,
    Cast,
    Column,
    Columns,
    Constant,
    ConstantTable,
    Exists,
    Expression,
    Fold,
    Frame,
    Interval,
    Kind,
    Operand,
    Order,
    Over,
    OwnerJoin,
    PerPerson,
    Plain,
    PublicJoin,
    PublicScan,
    Query,
    Scan,
    Select,
    Source,
    Stage,
    UnionAll,
    call,
    case,
    expression,
    weight_of,
)
from discreet.algebra.totals import (
    BEFORE,
    ROWS,
    TOTAL,
    Aggregate,
    Distinct,
    Factor,
    Nearest,
    Numbers,
    Persons,
    Rank,
    Reading,
    Sum,
    key_column,
    number_column,
)
from discreet.algebra.trees import (
    bare,
    conjuncts,
    owner_of,
    parts_of,
    stages,
    walk,
    with_columns,
    with_stages,
)

__all__ = [
    "BEFORE",
    "OWNER",
    "ROWS",
    "TOTAL",
    "Aggregate",
    "Call",
    "Careful",
    "Case",
    "Cast",
    "Column",
    "Columns",
    "Constant",
    "ConstantTable",
    "Distinct",
    "Exists",
    "Expression",
    "Factor",
    "Fold",
    "Frame",
    "Interval",
    "Kind",
    "Nearest",
    "Numbers",
    "Operand",
    "Order",
    "Over",
    "OwnerJoin",
    "PerPerson",
    "Persons",
    "Plain",
    "PublicJoin",
    "PublicScan",
    "Query",
    "Rank",
    "Reading",
    "Scan",
    "Select",
    "Source",
    "Stage",
    "Sum",
    "UnionAll",
    "bare",
    "call",
    "case",
    "conjuncts",
    "expression",
    "key_column",
    "number_column",
    "owner_of",
    "parts_of",
    "stages",
    "walk",
    "weight_of",
    "with_columns",
    "with_stages",
]
