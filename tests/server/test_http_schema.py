"""Schemathesis against our OpenAPI: whatever fits it, or does not, is answered as it says.
Derandomized and bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from server.http_client import Browser
from server.running_server import Running, open_town, running

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Logins lock the address out after twenty failures; a snapshot and a check read the source, which
# there is none of.
APART = r"/(login|logout|snapshot|check)$"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(open_town(tmp_path_factory.mktemp("town"))) as found:
        yield found


@pytest.fixture(scope="module")
def token(town: Running) -> str:
    return town.users.add_token("carol")


@pytest.fixture(scope="module")
def api(town: Running) -> Any:
    found = schemathesis.openapi.from_url(f"http://127.0.0.1:{town.http}/api/v1/openapi.json")
    return found.exclude(path_regex=APART).exclude(method="PUT")


def test_every_route_is_as_it_says(api: Any, token: str) -> None:
    operations = [found.ok() for found in api.get_all_operations()]
    assert len(operations) > 30
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(
            max_examples=4,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def run(case: Any) -> None:
            response = case.call(headers={"Authorization": f"Bearer {token}"}, timeout=120)
            case.validate_response(response, checks=CHECKS)

        run()


def test_the_description_is_sound(api: Any, town: Running) -> None:
    api.validate()
    told = Browser(town.http).get("/openapi.json").json
    assert told["openapi"].startswith("3.1")
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            assert operation["description"] or operation["summary"], (method, path)
            assert "401" in operation["responses"], (method, path)
