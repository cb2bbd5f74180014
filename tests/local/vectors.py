"""Shared vectors of the encoders: a question, an answer, the random words, and the report that must
come out.

`vectors.json` is read by the Python and by the browser tests, so that both encoders are held to the
same bytes. Run this file to write it anew, which is right only when the protocols themselves are
meant to change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from discreet.local.protocols.protocol import to_wire
from discreet.local.question import Survey, SurveyQuestion
from discreet.local.survey import from_text

FILE = Path(__file__).with_name("vectors.json")

SURVEY = """
survey: vectors
epsilon: 100
questions:
  two:       {ask: "?", values: [no, yes], protocol: two_coins}
  warner:    {ask: "?", values: [no, yes], protocol: warner, epsilon: 0.7}
  truthful:  {ask: "?", values: [no, yes], protocol: truthful, truth: 0.7}
  kary:      {ask: "?", values: [a, b, c, d, e], protocol: kary, epsilon: 1}
  symmetric: {ask: "?", values: [a, b, c, d, e], protocol: symmetric_unary, epsilon: 1}
  optimized: {ask: "?", values: [1, 2, 3, 4, 5, 6, 7, 8, 9], protocol: optimized_unary, epsilon: 1}
  hash2:     {ask: "?", values: [a, b, c, d, e, f, g, h, i], protocol: local_hashing, epsilon: 0.1}
  hash4:     {ask: "?", values: [a, b, c, d, e, f, g, h, i], protocol: local_hashing, epsilon: 1}
  hash5:     {ask: "?", values: [a, b, c, d, e, f, g, h, i], protocol: local_hashing, epsilon: 2}
  hash8:     {ask: "?", values: [a, b, c, d, e, f, g, h, i], protocol: local_hashing, epsilon: 3}
  subset:    {ask: "?", values: [a, b, c, d, e, f, g, h], protocol: subset_selection, epsilon: 0.3}
  hadamard:  {ask: "?", values: [a, b, c, d, e, f, g], protocol: hadamard, epsilon: 1}
  duchi:     {ask: "?", number: [-2, 2], step: 0.25, protocol: duchi, epsilon: 1}
  piecewise: {ask: "?", number: [0, 24], step: 0.5, protocol: piecewise, epsilon: 1}
  hybrid:    {ask: "?", number: [0, 24], step: 0.5, epsilon: 1.5}
  wave:      {ask: "?", number: [0, 100], step: 1, protocol: square_wave, epsilon: 1}
  word:      {ask: "?", text: 8, alphabet: abcdefghijklmnopqrstuvwxyz, epsilon: 2}
  name:      {ask: "?", text: 16, epsilon: 4}
  tags:      {ask: "?", text: 12, items: 3, epsilon: 1}
  mood:      {ask: "?", values: [low, middle, high], epsilon: 1, repeats: {instant: 2, changes: 2, rounds: 6}}
  apps:      {ask: "?", values: [a, b, c, d], protocol: memoized_unary, epsilon: 1, repeats: {instant: 2, changes: 1}}
  week:      {ask: "?", values: [a, b, c, d, e], epsilon: 1, repeats: {rounds: 5, changes: 2}}
  year:      {ask: "?", values: [no, yes, unsure], epsilon: 2, repeats: {rounds: 3000, changes: 3}}
"""

ANSWERS: dict[str, list[Any]] = {
    "duchi": ["-2", "0.25", "2", "-0.75"],
    "piecewise": ["0", "7.5", "24"],
    "hybrid": ["0", "7.5", "24"],
    "wave": ["0", "37", "100"],
    "word": ["a", "firefox", "zzzzzzzz", "ok"],
    "name": ["x", "Zoë Müller", "東京", "sixteen letters!"],
    "tags": [["b", "a"], ["é", "z", "𝄞"], []],
}


class Words:
    """A source that gives the words it was built with, or the system's, and remembers them."""

    def __init__(self, words: list[int] | None = None) -> None:
        self.left = None if words is None else list(words)
        self.given: list[int] = []

    def bits(self, k: int) -> int:
        value = 0
        for i in range(-(-k // 64)):
            word = (
                int.from_bytes(os.urandom(8), "little") if self.left is None else self.left.pop(0)
            )
            self.given.append(word)
            value |= word << (64 * i)
        return value & ((1 << k) - 1)


def survey() -> Survey:
    return from_text(SURVEY, file="vectors")


def generate() -> Iterator[dict[str, Any]]:
    for question in survey().questions:
        protocol = question.protocol
        if question.numbered:
            yield from (history(question) for _ in range(12))
            continue
        for answer in ANSWERS.get(question.name) or list(protocol.domain):
            for _ in range(3):
                source = Words()
                if not question.repeats:
                    report = protocol.respond(answer, source)
                    yield vector(question.name, answer, source, to_wire(report, protocol.size))
                else:
                    permanent = protocol.remember(answer, source)
                    report = protocol.report(permanent, source)
                    yield {
                        **vector(question.name, answer, source, to_wire(report, protocol.size)),
                        "permanent": permanent,
                    }


def history(question: SurveyQuestion) -> dict[str, Any]:
    """Twenty rounds, or all there are, of answers that change more often than they may."""
    protocol, source, places = question.protocol, Words(), list[int]()
    plan, reports, given = protocol.plan(source), [], []
    for round in range(min(20, protocol.rounds)):
        given.append(protocol.domain[round // 4 % len(protocol.domain)])
        places.append(protocol.held(places, round // 4 % len(protocol.domain)))
        reports.append(protocol.report(plan, places, source))
    words = [f"{word:x}" for word in source.given]
    return {
        "question": question.name,
        "history": given,
        "plan": plan,
        "words": words,
        "reports": reports,
    }


def vector(name: str, answer: Any, source: Words, wire: int | str) -> dict[str, Any]:
    return {
        "question": name,
        "answer": answer,
        "words": [f"{word:x}" for word in source.given],
        "report": wire,
    }


def load() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    content = {
        "survey": survey().as_json(),
        "fingerprint": survey().fingerprint,
        "vectors": list(generate()),
    }
    FILE.write_text(
        json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )
