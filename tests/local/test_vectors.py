"""The Python encoders against the shared vectors; the browser's are held to the same ones in
test_page.
"""

from __future__ import annotations

from typing import Any

import pytest
import vectors

from discreet.local.protocols.protocol import to_wire
from discreet.local.question import KINDS

VECTORS = vectors.load()


def test_the_survey_of_the_vectors_is_compiled_as_it_was() -> None:
    assert vectors.survey().as_json() == VECTORS["survey"]
    assert vectors.survey().fingerprint == VECTORS["fingerprint"]


def test_every_protocol_that_a_survey_may_name_has_vectors() -> None:
    asked = {question["name"]: question["protocol"] for question in VECTORS["survey"]["questions"]}
    assert {asked[vector["question"]] for vector in VECTORS["vectors"]} == {
        name for names in KINDS.values() for name in names
    }


@pytest.mark.parametrize("question", vectors.survey().questions, ids=lambda question: question.name)
def test_reports_come_out_as_the_vectors_say(question: Any) -> None:
    own = [vector for vector in VECTORS["vectors"] if vector["question"] == question.name]
    assert own
    for vector in own:
        source = vectors.Words([int(word, 16) for word in vector["words"]])
        if question.numbered:
            protocol, places = question.protocol, list[int]()
            plan, reports = protocol.plan(source), []
            for answer in vector["history"]:
                places.append(protocol.held(places, protocol.domain.index(answer)))
                reports.append(protocol.report(plan, places, source))
            assert (plan, reports, source.left) == (vector["plan"], vector["reports"], [])
            continue
        if question.repeats:
            permanent = question.protocol.remember(vector["answer"], source)
            assert permanent == vector["permanent"]
            report = question.protocol.report(permanent, source)
        else:
            report = question.protocol.respond(vector["answer"], source)
        assert to_wire(report, question.protocol.size) == vector["report"]
        assert source.left == []
