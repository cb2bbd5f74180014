"""The mechanisms, one module each. A mechanism is a value that adds noise or chooses, states its
privacy loss, and bounds its error.

The ledger stores a mechanism's fields for ever. Never remove a field and never change its meaning:
write a new class instead.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import cache
from typing import Any, get_type_hints

from discreet.errors import UsageError
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.exponential import ExponentialMechanism, PermuteAndFlip, TopK
from discreet.mechanisms.fine_quantile import FineQuantile
from discreet.mechanisms.quantile import Quantile, Quantiles
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.shapes import Additive, Choice, Mechanism, Nearby, Selection, Threshold
from discreet.mechanisms.sparse_vector import AboveThreshold
from discreet.mechanisms.threshold import (
    GaussianThreshold,
    LaplaceThreshold,
    TruncatedLaplaceThreshold,
)

__all__ = [
    "MECHANISMS",
    "AboveThreshold",
    "Additive",
    "Choice",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "FineQuantile",
    "GaussianThreshold",
    "LaplaceThreshold",
    "Mechanism",
    "Nearby",
    "PermuteAndFlip",
    "Quantile",
    "Quantiles",
    "RandomizedResponse",
    "Selection",
    "Threshold",
    "TopK",
    "TruncatedLaplaceThreshold",
    "from_row",
    "to_row",
]


MECHANISMS: tuple[type[Any], ...] = (
    DiscreteLaplace,
    DiscreteGaussian,
    ExponentialMechanism,
    PermuteAndFlip,
    TopK,
    LaplaceThreshold,
    GaussianThreshold,
    TruncatedLaplaceThreshold,
    Quantile,
    Quantiles,
    FineQuantile,
    AboveThreshold,
    RandomizedResponse,
)


def to_row(mechanism: Mechanism) -> dict[str, str]:
    """Return the ledger row: {"mechanism": "DiscreteLaplace", "scale": "10", "l1": "1"}."""
    row = {"mechanism": type(mechanism).__name__}
    for field in dataclasses.fields(mechanism):  # type: ignore[arg-type]
        value = getattr(mechanism, field.name)
        if isinstance(value, tuple):
            row[field.name] = ",".join(map(str, value))
        else:
            row[field.name] = str(value)
    return row


def from_row(row: dict[str, str]) -> Mechanism:
    """Return the mechanism of a ledger row; refuse a row whose fields are not the mechanism's."""
    known = {kind.__name__: kind for kind in MECHANISMS}
    kind = known.get(row.get("mechanism", ""))
    if kind is None:
        raise UsageError(
            f"No mechanism is called {row.get('mechanism')!r}; there are {', '.join(known)}."
        )
    hints = _hints(kind.__name__)
    names = [field.name for field in dataclasses.fields(kind)]
    if set(row) != {"mechanism", *names}:
        raise UsageError(
            f"A row of {kind.__name__} has the fields {', '.join(names)}, not {', '.join(row)}."
        )
    values = {name: _value(hints[name], row[name]) for name in names}
    mechanism: Mechanism = kind(**values)
    return mechanism


@cache
def _hints(name: str) -> dict[str, Any]:
    """Return the types of a mechanism's fields. Kept, because finding them out is slow."""
    return get_type_hints(next(kind for kind in MECHANISMS if kind.__name__ == name))


def _value(kind: Any, text: str) -> object:
    if kind is bool:
        return {"True": True, "False": False}[text]
    if kind in (int, Fraction):
        return kind(text)
    if getattr(kind, "__origin__", None) is tuple:
        parts = text.split(",") if text else []
        return tuple(_value(kind.__args__[0], part) for part in parts)
    return text  # str or a Literal of strings
