"""How the calls of a tree are written in SQL, with the words that most engines share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from discreet.errors import EngineFailure


class Unspelled(EngineFailure):
    """An engine cannot compute a part of a question with the same values as the other engines."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what


Word = Callable[[Sequence[str]], str]  # of a call's arguments in SQL; returns the call in SQL


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


# How DuckDB writes each `Call`.
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
    "hash",  # a whole number >= 0 that depends on the values alone
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


# How DuckDB writes each `Fold`: aggregates of a person's rows, and functions before OVER.
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
