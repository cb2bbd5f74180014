"""How the house is built: its functions, lines, names and folders beside those of peers, and a
question's walk.

    python bench/house.py [--peers] [--walk]

--peers also measures httpx and mbi (installed into a temporary folder), dp_accounting and sqlglot's
optimizer (as they are installed here). --walk traces one question that joins and groups. Both print
tables as CONTRIBUTING has them. Tests call `knots`, `Figures.of` and the rest for ourselves:
tests/test_house.py.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, median
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src" / "discreet"
Function = ast.FunctionDef | ast.AsyncFunctionDef

# --- one module -----------------------------------------------------------------------------------

# Words in -ed that are no participles, and participles that do not end in -ed.
_PLAIN = "bed bleed breed embed exceed feed hundred indeed kindred naked need proceed red seed shed speed"
_IRREGULAR = """
begun bound bought broken brought built caught chosen done drawn driven fed felt forgotten found frozen given gone got
grown held hidden kept known laid lent lost made meant met paid proven said seen sent shown shut sold spelt spent spoken
stolen struck sunk taken taught thrown told understood won worn written
"""  # not cut, left, read, set and split: these are nouns or verbs as well
PLAIN, IRREGULAR = frozenset(_PLAIN.split()), frozenset(_IRREGULAR.split())


def is_participle(name: str) -> bool:
    """Whether a name is a past participle or begins with one: noised, kept_rows, PlannedBlock."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    first = words[0].lower() if words else ""
    return first in IRREGULAR or (len(first) > 4 and first.endswith("ed") and first not in PLAIN)


def complexity(function: Function) -> int:
    """The ways through a function: 1, and 1 for each branch, loop, handler, case, condition, `and`
    and `or`.

    Ruff counts no conditions within an expression. Functions inside a function count for
    themselves.
    """
    found, pending = 1, list[ast.AST](function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, Function):
            continue
        if isinstance(
            node,
            ast.If
            | ast.IfExp
            | ast.For
            | ast.AsyncFor
            | ast.While
            | ast.ExceptHandler
            | ast.match_case,
        ):
            found += 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        pending.extend(ast.iter_child_nodes(node))
    return found


def parameters(function: Function) -> int:
    """How many parameters it takes, itself left out."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return len([each for each in every if each.arg not in ("self", "cls")])


@dataclass(frozen=True)
class Module:
    """One file of Python."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @cached_property
    def described(self) -> list[bool]:
        """Of each public function and class: does it have a docstring?"""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, Function | ast.ClassDef)]
        return [
            ast.get_docstring(node) is not None for node in nodes if not node.name.startswith("_")
        ]

    @cached_property
    def definitions(self) -> list[str]:
        """The names of its functions and classes."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, Function | ast.ClassDef)]
        return [node.name for node in nodes if not node.name.startswith("__")]

    @cached_property
    def names(self) -> set[str]:
        """What it names: functions, classes, parameters, fields and variables; constants are left
        out.
        """
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, Function | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
        return {
            name
            for name in found
            if not name.startswith("__") and not name.isupper() and len(name) > 1
        }

    @cached_property
    def code(self) -> dict[int, tuple[int, int]]:
        """Of each line that holds code: how many tokens, and how wide it is. Docstrings and
        comments are no code.
        """
        texts = {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        counted: Counter[int] = Counter()
        marks = (
            tokenize.COMMENT,
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        )
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in marks and token.start[0] not in texts:
                counted[token.start[0]] += 1
        written = self.text.splitlines()
        return {line: (tokens, len(written[line - 1])) for line, tokens in counted.items()}


def modules_of(folder: Path) -> list[Module]:
    """The modules below a folder, tests left out."""
    paths = sorted(folder.rglob("*.py"))
    tests = re.compile(r"(^|/)(tests?/|test_[^/]*$)|_test\.py$")
    return [Module(path) for path in paths if not tests.search(str(path.relative_to(folder)))]


# --- a package ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a package is like. Of two numbers the first is the middle or the mean, the second the
    largest.
    """

    modules: int
    module_lines: tuple[int, int]
    files_a_folder: tuple[float, int]
    function_lines: tuple[float, int]
    complexity: tuple[float, int]
    parameters: int
    tokens_a_line: float
    line_width: tuple[float, int]
    docstrings: float
    participles: tuple[float, float]

    @classmethod
    def of(cls, modules: list[Module]) -> Figures:
        functions = [each for module in modules for each in module.functions]
        lengths = [(each.end_lineno or each.lineno) - each.lineno + 1 for each in functions]
        ways = [complexity(each) for each in functions]
        code = [line for module in modules for line in module.code.values()]
        described = [each for module in modules for each in module.described]
        defined = [is_participle(name) for module in modules for name in module.definitions]
        named = [is_participle(name) for module in modules for name in module.names]
        folders = Counter(module.path.parent for module in modules).values()
        return cls(
            modules=len(modules),
            module_lines=(
                round(median(each.lines for each in modules)),
                max(each.lines for each in modules),
            ),
            files_a_folder=(mean(folders), max(folders)),
            function_lines=(mean(lengths), max(lengths)),
            complexity=(mean(ways), max(ways)),
            parameters=max(map(parameters, functions)),
            tokens_a_line=mean(tokens for tokens, _ in code),
            line_width=(mean(width for _, width in code), max(width for _, width in code)),
            docstrings=100 * mean(described),
            participles=(100 * mean(defined), 100 * mean(named)),
        )


WORDS = {
    "modules": "modules",
    "module_lines": "lines of a module: median, most",
    "files_a_folder": "modules of a folder: mean, most",
    "function_lines": "lines of a function: mean, most",
    "complexity": "complexity of a function: mean, most",
    "parameters": "parameters: most",
    "tokens_a_line": "tokens a line",
    "line_width": "width of a line: mean, most",
    "docstrings": "public functions and classes with a docstring, %",
    "participles": "past participles among functions and classes, among all names, %",
}


def shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(shown, value))
    return f"{value:.1f}" if isinstance(value, float) else f"{value:,}"


def table(columns: dict[str, Figures]) -> str:
    """The figures in Markdown."""
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for field in fields(Figures):
        cells = [shown(getattr(each, field.name)) for each in columns.values()]
        lines.append(f"| {WORDS[field.name]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def peers(scratch: Path) -> Iterator[tuple[str, Path]]:
    """Where the code of others is; two are fetched."""
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--target",
        str(scratch),
    ]
    subprocess.run([*command, "httpx", "mbi"], check=True)
    yield from (("httpx", scratch / "httpx"), ("mbi", scratch / "mbi"))
    for name, module in (
        ("dp_accounting", "dp_accounting"),
        ("sqlglot optimizer", "sqlglot.optimizer"),
    ):
        spec = find_spec(module)
        assert spec is not None  # a development dependency, and a dependency
        yield name, Path((spec.submodule_search_locations or [])[0])


# --- imports --------------------------------------------------------------------------------------


def module_names(root: Path = SOURCE) -> dict[str, Path]:
    """Every module of ours by its name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of ours that a module imports when it is loaded, or for its types; not those
    inside functions.
    """
    found: set[str] = set()
    pending = list[ast.AST](ast.parse(path.read_text(encoding="utf-8")).body)
    while pending:
        node = pending.pop()
        if isinstance(node, Function):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {full if full in known else node.module for full in inner.values()}
        pending.extend(ast.iter_child_nodes(node))
    return found & set(known)


def knots(root: Path = SOURCE) -> list[list[str]]:
    """Modules that import one another in a circle, types included (Tarjan's components of more than
    one module).
    """
    known = module_names(root)
    graph = {name: imports_of(path, known) - {name} for name, path in known.items()}
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    held: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        held.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
            if other in held:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            place = held.index(name)
            found.append(sorted(held[place:]))
            del held[place:]

    for name in graph:
        if name not in number:
            visit(name)
    return [knot for knot in found if len(knot) > 1]


# --- a question's walk ----------------------------------------------------------------------------

QUESTION = (
    "SELECT p.state, COUNT(*) AS n, AVG(v.income) AS m FROM visits AS v "
    "JOIN patients AS p ON v.person_id = p.person_id GROUP BY p.state"
)


def walks(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Modules in which a function of ours runs while a question is answered, with how many calls;
    and then again.

    What is loaded once has been loaded before. The second walk is of the same text at another
    epsilon.
    """
    from ask import opened

    curator = opened(folder, 1_000)
    curator.ask(QUESTION, analyst="alice", epsilon="0.1")
    curator._view.plans.clear()
    return walk(curator, "0.2"), walk(curator, "0.3")


def walk(curator: Any, epsilon: str) -> dict[str, int]:
    calls: Counter[str] = Counter()

    def count(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            calls[str(Path(frame.f_code.co_filename).relative_to(SOURCE))] += 1

    sys.setprofile(count)
    try:
        curator.ask(QUESTION, analyst="alice", epsilon=epsilon)
    finally:
        sys.setprofile(None)
    return dict(calls)


def told(calls: dict[str, int]) -> str:
    """How many modules of each room a question crosses, and which."""
    rooms: dict[str, list[str]] = {}
    for path in sorted(calls):
        room, _, name = path.rpartition("/")
        rooms.setdefault(room or "the root", []).append(name.removesuffix(".py"))
    lines = [f"| {room} | {len(names)} | {', '.join(names)} |" for room, names in rooms.items()]
    return "\n".join(
        ["| room | modules | which |", "|---|---|---|", *lines, f"| all | {len(calls)} | |"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--walk", action="store_true")
    given = parser.parse_args()
    ours = modules_of(SOURCE)
    columns = {"discreet": Figures.of(ours)}
    with tempfile.TemporaryDirectory() as scratch:
        if given.peers:
            columns |= {
                name: Figures.of(modules_of(folder))
                for name, folder in peers(Path(scratch) / "peers")
            }
        print(table(columns))
        dear = sorted(
            ((complexity(f), m, f.name) for m in ours for f in m.functions),
            key=lambda each: -each[0],
        )
        print(
            "\nmost complex:",
            "; ".join(
                f"{name} {ways} ({m.path.relative_to(SOURCE)})" for ways, m, name in dear[:10]
            ),
        )
        print("knots of imports:", knots() or "none")
        if given.walk:
            first, second = walks(Path(scratch) / "1000")
            print(told(first))
            print("again:", len(second))


if __name__ == "__main__":
    main()
