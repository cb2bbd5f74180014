"""The words of SQL that most engines share: operators, functions, folds and windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from discreet.errors import EngineFailure


class Unspelled(EngineFailure):
    """An engine has no way to compute a part of a question that gives the same values as on the
    others.
    """

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what


Word = Callable[[Sequence[str]], str]  # from the arguments of a call, as SQL, to the call


def infix(operator: str) -> Word:
    return lambda arguments: f"({f' {operator} '.join(arguments)})"


def prefix(function: str) -> Word:
    return lambda arguments: f"{function}({', '.join(arguments)})"


def _list(arguments: Sequence[str]) -> str:
    return f"[{', '.join(arguments)}]"


def _among(arguments: Sequence[str]) -> str:
    return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"


def _like(word: str) -> Word:
    def spell(arguments: Sequence[str]) -> str:
        escape = f" ESCAPE {arguments[2]}" if len(arguments) > 2 else ""
        return f"({arguments[0]} {word} {arguments[1]}{escape})"

    return spell


def _pair(arguments: Sequence[str]) -> str:
    """Write a pair that is ordered by its first part, then by its second."""
    return f"{{'k': {arguments[0]}, 'v': {arguments[1]}}}"


# The vocabulary of `Call`, in DuckDB's words.
_OPERATORS = ("+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "||")


_FUNCTIONS = (
    *("abs", "cbrt", "exp", "greatest", "least", "ln", "round", "sqrt"),
    *("coalesce", "nullif"),
    *(
        "concat",
        "concat_ws",
        "contains",
        "ends_with",
        "left",
        "length",
        "lower",
        "lpad",
        "ltrim",
        "md5",
        "replace",
    ),
    *("right", "rpad", "rtrim", "split_part", "starts_with", "strpos", "substr", "trim", "upper"),
    *("date_diff", "date_part", "date_trunc", "epoch_us", "make_timestamp", "strftime"),
    *("list_extract", "list_position", "row"),
    "hash",  # of any values: a whole number that is at least 0 and depends on them alone
)


WORDS: Mapping[str, Word] = {
    **{operator: infix(operator) for operator in _OPERATORS},
    **{function: prefix(function) for function in _FUNCTIONS},
    "negative": lambda arguments: f"(-{arguments[0]})",
    "NOT": lambda arguments: f"(NOT {arguments[0]})",
    "is null": lambda arguments: f"({arguments[0]} IS NULL)",
    "is not null": lambda arguments: f"({arguments[0]} IS NOT NULL)",
    "is true": lambda arguments: f"({arguments[0]} IS TRUE)",
    "is false": lambda arguments: f"({arguments[0]} IS FALSE)",
    "in": _among,
    "like": _like("LIKE"),
    "ilike": _like("ILIKE"),
    "list": _list,
    "pair": _pair,
    "second of pair": lambda arguments: f"struct_extract({arguments[0]}, 'v')",
}


# The vocabulary of `Fold`: aggregates of a person's rows, and what stands before OVER.
_FOLDS = ("sum", "min", "max", "bool_or", "bool_and")


_IN_WINDOWS = (
    "row_number",
    "rank",
    "dense_rank",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
)


FOLDS: Mapping[str, Word] = {
    **{function: prefix(function) for function in (*_FOLDS, *_IN_WINDOWS)},
    "count": lambda arguments: f"count({', '.join(arguments) or '*'})",
    "count distinct": lambda arguments: f"count(DISTINCT {', '.join(arguments)})",
}
