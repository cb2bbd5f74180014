"""The shape of the package: imports point down, one place draws, one place opens exact values."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from discreet.mechanisms import MECHANISMS

SOURCE = Path(__file__).parent.parent / "src" / "discreet"
MODULES = sorted(SOURCE.rglob("*.py"))

# From the ground up; a module may import its own layer and those below it.
LAYERS = (
    (
        "arrow",
        "errors",
        "extras",
        "files",
        "budget",
        "policy",
        "noise",
        "pages",
        "threads",
        "algebra",
    ),
    ("accounting", "mechanisms"),
    ("vault", "ledger", "engines"),
    ("sql", "synthetic", "local", "continual", "census"),
    (
        "display",
        "client",
        "binding",
    ),
    ("asking", "door"),
    ("curator", "upkeep", "examples"),
    ("anonymity", "attacks", "audit", "evaluate", "server"),
    ("cli", "notebook"),
)
DOORSTEPS = {"__init__", "__main__"}
FORBIDDEN = {
    "sql": {"engines", "vault", "ledger", "noise"},
    "accounting": {"mechanisms"},
    "server": {
        *("sql", "engines", "vault", "ledger", "noise", "mechanisms", "accounting", "synthetic"),
        *("asking", "door", "algebra"),
    },
}
# What is about accountants themselves: made, declared, advised on, and held against one another.
ABOUT_ACCOUNTANTS = {
    "accounting/accountants.py",
    "policy/limits.py",
    "sql/analyze.py",
    "sql/rows/keys/groups.py",
    "synthetic/describe.py",
    "audit/ledger.py",
    "upkeep.py",
}
SHAPES = SOURCE / "mechanisms" / "shapes.py"
# What shows an answer is loaded only when somebody looks at it; a skeleton's text knows the
# source's types.
EXCEPTIONS = {("vault", "display"), ("local", "display")}


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def family(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The families of our own that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(syntax(path)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "discreet"
                else [node.module]
            )
        found |= {name.split(".")[1] for name in names if name.startswith("discreet.")}
    return found


def layer(name: str) -> int:
    return next(index for index, names in enumerate(LAYERS) if name in names)


def test_every_family_has_a_layer() -> None:
    families = {family(path) for path in MODULES} - DOORSTEPS
    assert families <= {name for names in LAYERS for name in names}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    own = family(path)
    if own in DOORSTEPS:
        return
    for other in imported(path) - {own}:
        if (own, other) in EXCEPTIONS or other == "__version__":
            continue
        assert layer(other) <= layer(own), f"{own} imports {other}, which stands above it"
        assert other not in FORBIDDEN.get(own, set()), f"{own} must not import {other}"


SECRETS = {"server/fresh.py"}  # of logins; nothing there touches data


def test_only_noise_draws() -> None:
    banned = (
        "numpy.random",
        "np.random",
        "import random",
        "from random",
        "import secrets",
        "os.urandom",
        "RANDOM()",
    )
    for path in MODULES:
        if family(path) == "noise" or str(path.relative_to(SOURCE)) in SECRETS:
            continue
        text = path.read_text()
        for word in banned:
            assert word not in text, f"{path.relative_to(SOURCE)} draws: {word}"


def test_only_the_vault_opens_exact_values() -> None:
    callers = {
        str(path.relative_to(SOURCE))
        for path in MODULES
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith("unwrap")
    }
    assert callers == {"vault/allowance.py", "vault/steps.py"}


def test_the_vault_names_the_shape_of_every_mechanism() -> None:
    """It knows mechanisms by what they do: not as anything, and not by asking which one it was
    given.
    """
    tree = ast.parse((SOURCE / "vault/allowance.py").read_text())
    shapes = {
        node.name for node in ast.parse(SHAPES.read_text()).body if isinstance(node, ast.ClassDef)
    }
    taken = [
        each
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments)
        for each in (*node.args, *node.kwonlyargs)
    ]
    named = {
        ast.unparse(each.annotation)
        for each in taken
        if each.arg == "mechanism" and each.annotation
    }
    assert len(named) >= 5
    assert named <= shapes
    known = {kind.__name__ for kind in MECHANISMS}
    for path in (
        SOURCE / "vault/allowance.py",
        SOURCE / "asking/offer.py",
        SOURCE / "asking/measure.py",
        SOURCE / "asking/explain.py",
    ):
        for node in ast.walk(syntax(path)):
            asked = isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "getattr",
                "hasattr",
                "isinstance",
            )
            about = ast.unparse(node.args[0]) if isinstance(node, ast.Call) and asked else ""
            assert about not in ("mechanism", "noise", "choice", "each.threshold"), (
                f"{path.name}: which {about}?"
            )
            assert not (isinstance(node, ast.Name) and node.id in known), (
                f"{path.name} knows {node.id} by name"
            )


def test_every_release_says_how_far_one_person_moves_it() -> None:
    """What takes a mechanism takes `moved` beside it, and holds the two together before it
    spends.
    """
    [vault] = [
        node
        for node in ast.parse((SOURCE / "vault/allowance.py").read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "Allowance"
    ]
    releases = [
        each
        for each in vault.body
        if isinstance(each, ast.FunctionDef)
        and "self._spend(" in ast.unparse(each)
        and each.name != "_spend"
    ]
    assert {each.name for each in releases} >= {
        "measure",
        "steps",
        "threshold",
        "choose",
        "choose_near",
        "sums",
        "farthest",
    }
    for each in releases:
        text = ast.unparse(each)
        assert "moved" in {argument.arg for argument in each.args.kwonlyargs}, each.name
        assert -1 < text.find("_require(mechanism") < text.find("self._spend("), each.name


def test_currencies_are_told_apart_in_one_place() -> None:
    """Which accountant a budget has decides which mechanism it buys: `mechanisms.currency` knows,
    and nobody asks.
    """
    found = set()
    for path in MODULES:
        for node in ast.walk(syntax(path)):
            if not isinstance(node, ast.Compare):
                continue
            sides = [ast.unparse(each) for each in (node.left, *node.comparators)]
            budget = any(
                "accountant" in side or "currency" in side or side == "name" for side in sides
            )
            if budget and {"'sum'", "'zcdp'"} & set(sides):
                found.add(str(path.relative_to(SOURCE)))
    assert found <= ABOUT_ACCOUNTANTS


def test_only_the_door_spends() -> None:
    callers = {
        str(path.relative_to(SOURCE))
        for path in MODULES
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "reserve"
    }
    assert callers == {"door.py"}


# Who may make an Exact or an Allowance. The audit does so on data of its own, to measure what noise
# hides.
LATER = {"continual/running.py"}  # a stream adds up what was read before
AUDIT = {"audit/runs.py", "audit/question.py"}
SPARK = {"engines/spark/engine.py"}
MAKERS = {
    "Exact": {
        "vault/allowance.py",
        "engines/duckdb/engine.py",
        "engines/postgres/engine.py",
        *SPARK,
        *LATER,
        *AUDIT,
    },
    "Allowance": {"door.py", *AUDIT},
}


@pytest.mark.parametrize("name", MAKERS)
def test_who_makes_exact_values_and_allowances(name: str) -> None:
    makers = {
        str(path.relative_to(SOURCE))
        for path in MODULES
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    }
    assert makers == MAKERS[name]


def test_one_module_opens_databases() -> None:
    """Every DuckDB of ours loads nothing and takes nothing from Python's variables."""
    openers = {
        str(path.relative_to(SOURCE))
        for path in MODULES
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Attribute)
        and node.attr == "connect"
        and ast.unparse(node.value) not in ("sqlite3", "psycopg", "discreet")
    }
    assert openers == {"engines/duckdb/locked.py"}
    named = {"from duckdb import connect", "duckdb import connect", "import duckdb as"}
    assert not [path for path in MODULES if any(words in path.read_text() for words in named)]


def test_one_module_knows_how_a_snapshot_looks() -> None:
    """Names of its schemas, files and hidden column are written in one place, and the algebra's for
    the owner.
    """
    written = {
        node.value: str(path.relative_to(SOURCE))
        for path in MODULES
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Constant)
        and node.value in ("#owner", "public_tables", "order.key", ".building")
    }
    assert written == {
        "#owner": "algebra/rows.py",
        "public_tables": "engines/layout.py",
        "order.key": "engines/layout.py",
        ".building": "engines/layout.py",
    }


LETTERS = re.compile(r"""f?"[ksamd](\d+|\{\w+\})"|int\((\w+\.)?(name|place|column)\[1:\]\)""")
NAMES = {"algebra/totals.py", "sql/after/naming.py"}  # of exact tables, of noisy tables


def test_names_of_columns_are_written_and_read_in_one_place_each() -> None:
    """Which key or number a column is: `algebra` says it of exact tables, `sql.after.naming` of
    noisy ones.
    """
    rooms = ("algebra", "sql", "vault", "engines", "audit", "continual", "synthetic", "census")
    own = [
        path
        for path in MODULES
        if path.parent == SOURCE or path.relative_to(SOURCE).parts[0] in rooms
    ]
    found = {str(path.relative_to(SOURCE)) for path in own if LETTERS.search(path.read_text())}
    assert found == NAMES


def test_one_module_reads_files_of_data() -> None:
    readers = {
        str(path.relative_to(SOURCE))
        for path in MODULES
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Constant)
        and str(node.value).startswith(("read_csv(", "read_parquet("))
    }
    assert readers == {"engines/files.py"}


@cache
def comes_along(package: str, name: str) -> bool:
    """Whether a fresh Python that imports a package can use its submodule `name` at once."""
    code = f"import sys, {package} as package; sys.exit(not hasattr(package, {name!r}))"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@cache
def is_submodule(package: str, name: str) -> bool:
    try:
        return find_spec(f"{package}.{name}") is not None
    except ModuleNotFoundError:  # `package` is a module alone
        return False


def not_imported(tree: ast.Module) -> set[str]:
    """Submodules of other packages that a module uses and does not import itself.

    `pa.compute` works where anybody has imported pyarrow.compute before, as in a process that runs
    many tests, and fails in a process that asks one question.
    """
    packages, imported = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                imported.add(name.name)
                if name.asname is not None or "." not in name.name:
                    packages[name.asname or name.name] = name.name
    used = {
        (packages[node.value.id], node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in packages
    }
    return {
        f"{package}.{name}"
        for package, name in used
        if f"{package}.{name}" not in imported
        and is_submodule(package, name)
        and not comes_along(package, name)
    }


def test_submodules_are_imported_where_they_are_used() -> None:
    assert not_imported(ast.parse("import pyarrow as pa\npa.compute.sum([1])")) == {
        "pyarrow.compute"
    }
    found = {name: not_imported(syntax(path)) for path in MODULES if (name := str(path))}
    assert not {name: missing for name, missing in found.items() if missing}


def test_modules_stay_readable() -> None:
    long = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > 500} == {}


def test_no_folder_has_over_fifteen_modules() -> None:
    crowds = Counter(str(path.parent.relative_to(SOURCE)) for path in MODULES)
    assert {folder: count for folder, count in crowds.items() if count > 15} == {}


def test_no_two_test_files_share_a_name() -> None:
    """pytest imports them by their bare names."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert len(names) == len(set(names))
