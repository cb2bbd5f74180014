"""Reads a survey from YAML; every mistake with its place, all of them at once.

survey: weekend-2026
epsilon: 2                       # in total, for a respondent's lifetime
questions:
  drank:   {ask: "Did you go out drinking?", values: [no, yes], protocol: two_coins}
  browser: {ask: "Which browser?", values: [firefox, chrome, safari, other], epsilon: 0.5}
  hours:   {ask: "Hours slept", number: [0, 24], step: 0.5, epsilon: 0.4}
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.budget import number
from discreet.errors import PolicyError, Problem, UsageError
from discreet.local.question import (
    KINDS,
    MEMOIZED,
    MOST,
    Survey,
    SurveyQuestion,
    build,
    check_name,
    choose_protocol,
)
from discreet.policy.document import List, Map, Node, Reader, Scalar, parse

_KEYS = ("survey", "epsilon", "questions")
_QUESTION_KEYS = (
    "ask",
    "values",
    "number",
    "step",
    "text",
    "alphabet",
    "items",
    "protocol",
    "epsilon",
    "truth",
    "repeats",
)
_ONLY_WITH = {"step": "number", "alphabet": "text", "items": "text", "repeats": "values"}
_A_KIND = "what may be answered: values: [a, b], number: [0, 24] with step: 0.5, or text: 16"


def read(path: str | Path) -> Survey:
    """Read the survey in a file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The survey {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"The survey {path} is not text in UTF-8.") from None
    return from_text(text, file=path.name)


def from_text(text: str, *, file: str) -> Survey:
    root, problems = parse(text, file=file)
    reader = Reader(file=file, problems=problems)
    if root is None and not problems:
        problems.append(Problem(file=file, line=1, column=1, message="The survey is empty."))
    survey = _survey(reader, root) if root is not None else None
    if problems or survey is None:
        raise PolicyError(*sorted(problems, key=lambda problem: (problem.line, problem.column)))
    return survey


def _survey(reader: Reader, root: Node) -> Survey | None:
    fields = reader.fields(root, "The survey", (), _KEYS)
    for missing in [key for key in _KEYS if key not in fields] if isinstance(root, Map) else ():
        reader.problem(root, f"The survey needs {missing}.")
    name = reader.string(fields.get("survey"), "survey", "a name")
    if name is not None:
        _name(reader, fields["survey"], name, "survey")
    epsilon = reader.amount(fields.get("epsilon"), "epsilon", most=MOST)
    entries = reader.fields(fields.get("questions"), "questions", ("questions",), None)
    if "questions" in fields and not entries:
        reader.problem(fields["questions"], "The survey asks nothing.")
    found = [_question(reader, each, node) for each, node in entries.items()]
    questions = tuple(question for question in found if question is not None)
    if reader.problems or name is None or epsilon is None:
        return None
    cost = sum((question.protocol.epsilon for question in questions), Fraction(0))
    if cost > epsilon:
        parts = " + ".join(
            f"{number(question.protocol.epsilon)} ({question.name})" for question in questions
        )
        told = f"The questions cost {parts} = {number(cost)}, more than epsilon, {number(epsilon)}."
        reader.problem(fields["epsilon"], f"{told} Raise it, or lower a question's.")
        return None
    return Survey(name=name, epsilon=epsilon, questions=questions)


def _name(reader: Reader, node: Node, name: str, what: str) -> bool:
    try:
        check_name(name, what)
    except UsageError as error:
        reader.problem(node, str(error))
        return False
    return True


def _question(reader: Reader, name: str, node: Node) -> SurveyQuestion | None:
    if not _name(reader, node, name, "A question"):
        return None
    before = len(reader.problems)
    fields = reader.fields(node, name, ("questions", name), _QUESTION_KEYS)
    if not isinstance(node, Map):
        return None
    ask = reader.string(fields.get("ask"), f"{name}.ask", "the text of the question")
    if "ask" not in fields:
        reader.problem(node, f"{name} needs ask, the text of the question.")
    kinds = [kind for kind in KINDS if kind in fields]
    if len(kinds) != 1:
        # otherwise the mistyped kind is a problem already
        if kinds or len(fields) == len(node.entries):
            reader.problem(node, f"{name} must say one thing about {_A_KIND}.")
        return None
    for key, kind in _ONLY_WITH.items():
        if key in fields and kind != kinds[0]:
            reader.problem(fields[key], f"{name}.{key} goes with {kind} only.")
    declared = _domain(reader, name, kinds[0], fields) | _privacy(
        reader, name, kinds[0], node, fields
    )
    if len(reader.problems) > before or ask is None:
        return None
    try:
        if "protocol" not in declared:
            declared["protocol"] = choose_protocol(declared)
        return SurveyQuestion(name=name, ask=ask, declared=declared, protocol=build(declared))
    except UsageError as error:
        reader.problem(node, f"{name}: {error}")
        return None


def _domain(reader: Reader, name: str, kind: str, fields: dict[str, Node]) -> dict[str, Any]:
    node = fields[kind]
    if kind == "values":
        return {"values": _values(reader, name, node)}
    if kind == "number":
        ends = (
            [reader.number(end, f"{name}.number") for end in node.items]
            if isinstance(node, List)
            else []
        )
        if len(ends) != 2:
            reader.problem(node, f"{name}.number must be a range of two numbers, such as [0, 24].")
        if "step" not in fields:
            reader.problem(
                node, f"{name}.number needs step, the grid that answers lie on, such as step: 0.5."
            )
        step = reader.amount(fields.get("step"), f"{name}.step")
        return {"number": [str(end) for end in ends], "step": str(step)}
    found: dict[str, Any] = {"text": reader.whole(node, f"{name}.text")}
    if "alphabet" in fields:
        found["alphabet"] = reader.string(
            fields["alphabet"], f"{name}.alphabet", "the symbols, as one string"
        )
    if "items" in fields:
        found["items"] = reader.whole(fields["items"], f"{name}.items")
    return found


def _values(reader: Reader, name: str, node: Node) -> list[str | int]:
    if not isinstance(node, List) or len(node.items) < 2:
        reader.problem(
            node, f"{name}.values must be a list of two values or more, such as [no, yes]."
        )
        return []
    found: list[str | int] = []
    for item in node.items:
        if not isinstance(item, Scalar) or not item.text.strip():
            reader.wrong(item, f"A value of {name}", "a word or a number")
            continue
        value = (
            item.value
            if isinstance(item.value, int) and not isinstance(item.value, bool)
            else item.text
        )
        if str(value) in map(str, found):
            reader.problem(item, f"{name}.values has {value} twice.")
        found.append(value)
    return found


def _privacy(
    reader: Reader, name: str, kind: str, node: Node, fields: dict[str, Node]
) -> dict[str, Any]:
    """Read the protocol, and what declares it: epsilon, truth, or nothing."""
    found: dict[str, Any] = {}
    protocol = (
        reader.word(fields.get("protocol"), f"{name}.protocol", (*KINDS[kind], "best")) or "best"
    )
    if protocol != "best":
        found["protocol"] = protocol
    needed = {"two_coins": "", "truthful": "truth"}.get(protocol, "epsilon")
    for key in ("epsilon", "truth"):
        if key in fields and key != needed:
            instead = (
                "its coins say what it costs, ε = ln 3"
                if not needed
                else f"{protocol} is declared by {needed}"
            )
            reader.problem(fields[key], f"{name}.{key} is not used: {instead}.")
    if needed and needed not in fields:
        reader.problem(node, f"{name} needs {needed}.")
    elif needed:
        value = reader.amount(fields[needed], f"{name}.{needed}", most=MOST)
        found[needed] = None if value is None else str(value)
    if "repeats" in fields:
        if protocol not in (*MEMOIZED, "few_changes", "best"):
            listed = "few_changes, memoized or memoized_unary"
            reader.problem(fields["repeats"], f"{name}.repeats goes with protocol: {listed}.")
        found["repeats"] = _repeats(reader, name, fields["repeats"], protocol)
    elif protocol in MEMOIZED:
        reader.problem(node, f"{name} needs repeats: {{instant: 2, changes: 1}}.")
    elif protocol == "few_changes":
        reader.problem(node, f"{name} needs repeats: {{rounds: 12, changes: 2}}.")
    return found


def _repeats(reader: Reader, name: str, node: Node, protocol: str) -> dict[str, Any]:
    """Read `repeats`: with instant it is memoized; without, `few_changes`, which needs the number
    of rounds.
    """
    fields = reader.fields(
        node, f"{name}.repeats", ("questions", name, "repeats"), ("instant", "rounds", "changes")
    )
    if protocol == "few_changes" and "instant" in fields:
        reader.problem(fields["instant"], f"{name}.repeats.instant is not used by few_changes.")
    needed = {"changes", "instant"} if protocol in MEMOIZED else {"changes"}
    if "instant" not in fields:
        needed |= {"rounds"}
    for missing in sorted(needed - set(fields)) if isinstance(node, Map) else ():
        reader.problem(node, f"{name}.repeats needs {missing}.")
    found: dict[str, Any] = {}
    if "instant" in fields:
        found["instant"] = str(
            reader.amount(fields["instant"], f"{name}.repeats.instant", most=MOST)
        )
    for key in ("rounds", "changes"):
        if key in fields:
            found[key] = reader.whole(fields[key], f"{name}.repeats.{key}")
    return found
