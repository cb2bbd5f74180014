"""Hostile texts as names of tables, columns, analysts, users and releases, as values, questions and
links.

On every page of the server they are texts, and nothing of them runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.policy.policy import Policy
from discreet.server.users import UserFile
from server.running_server import PASSWORD, Running, running
from server.test_pages import LESSONS, PARTS, ask, opened, write

IMAGE = "<img src=x onerror=hit()>"
SCRIPT = "</script><script>hit()</script>"
DRAWING = "'\"><svg/onload=hit()>"
ADDRESS = "javascript:hit()"
TEMPLATE = "{{7*7}}${7*7}`"
AREA = "</textarea></title></style><b onclick=hit()>"
FRAME = "<iframe src=javascript:hit()>"
TEXTS = (IMAGE, SCRIPT, DRAWING, ADDRESS, TEMPLATE, AREA)
NAMES = (IMAGE, SCRIPT, ADDRESS)  # without quotes, which no name of a policy may have
POLICY = {
    "unit": f"person {IMAGE}",
    "tables": {
        IMAGE: {
            "owner": "id",
            "columns": {
                "id": {"identifier": True},
                "day": {"date": ["2024-01-01", "2024-12-31"]},
                SCRIPT: {"integer": [0, 120]},
                FRAME: {"values": [*TEXTS]},
                ADDRESS: "text",
                "place": {"values": ["here", "there"]},
            },
        },
        FRAME: {"public": True},
    },
    "budget": {"epsilon": 1000, "delta": 1e-6},
    "limits": {"epsilon": 100},
    "analysts": {name: {"epsilon": 100} for name in NAMES},
    "releases": {
        SCRIPT: {
            "question": f'SELECT COUNT(*) AS n FROM "{IMAGE}"',
            "time": "day",
            "period": "month",
            "from": "2024-01-01",
            "periods": 12,
            "publish": ["daily", "cumulative"],
            "per_person": {"periods": 1},
            "epsilon": 1,
        }
    },
    "hierarchies": {"where": ["place"]},
    "publications": {"count": {"table": IMAGE, "hierarchy": "where", "tables": [[]], "epsilon": 1}},
}
SHOUT = "window.hits = 0; window.hit = () => { window.hits += 1; };"
BY_VALUE = 'SELECT "{}" AS "{}", COUNT(*) AS "{}", \'{}\' AS "{}" FROM "{}" GROUP BY 1'


def quoted(name: str) -> str:
    return name.replace('"', '""')


def hostile_town(folder: Path) -> Curator:
    path = folder / "town.yaml"
    path.write_text(json.dumps(POLICY), encoding="utf-8")
    create_ledger(Policy.read(path))
    users = UserFile(Policy.read(path))
    for name in NAMES:
        users.add(name, password=PASSWORD)
    for name in TEXTS:
        users.add(f"{name} !", role="curator", password=PASSWORD)
    ids = range(60)
    tables = {
        IMAGE: pa.table(
            {
                "id": [*ids],
                "day": ["2024-03-01" for _ in ids],
                SCRIPT: [i % 100 for i in ids],
                FRAME: [TEXTS[i % len(TEXTS)] for i in ids],
                ADDRESS: [TEXTS[0] for _ in ids],
                "place": ["here" for _ in ids],
            }
        ),
        FRAME: pa.table({TEMPLATE: [*TEXTS]}),
    }
    return discreet.open(path, tables=tables)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(hostile_town(tmp_path_factory.mktemp("town"))) as found:
        yield found


def require_unharmed(page: Any) -> None:
    assert page.evaluate("window.hits") == 0
    assert page.locator("img, iframe, svg[onload], main script").count() == 0
    assert page.evaluate(
        "[...document.querySelectorAll('a')].every((link) => link.protocol.startsWith('http'))"
    )


def test_an_analysts_page(browser: Any, town: Running) -> None:
    names = [quoted(name) for name in (FRAME, IMAGE, SCRIPT)]
    sql = BY_VALUE.format(*names, SCRIPT, AREA, IMAGE)
    with opened(browser, town, IMAGE) as page:
        page.context.add_init_script(SHOUT)
        page.goto(f"/?answer={IMAGE}")
        page.wait_for_selector("text=There is no answer of this link.")
        require_unharmed(page)
        page.click(f"#tables summary >> text={IMAGE}")
        page.click(f"#tables .column >> text={SCRIPT}")  # put into the question, as a name
        assert f'"{SCRIPT}"' in page.input_value("#editor textarea")
        page.click("#way-build")
        page.select_option("[data-part=by]", FRAME)
        page.click("text=Add a condition")
        page.select_option("[aria-label='Column of condition 1']", FRAME)
        page.select_option("[aria-label='Value of condition 1']", DRAWING)
        ask(page)
        require_unharmed(page)
        write(page, sql)
        ask(page)
        page.wait_for_selector(f"#answer figcaption >> text={SCRIPT}", state="attached")
        for tab in ("Chart", "Table", "Certificate"):
            page.get_by_role("tab", name=tab).click()
            require_unharmed(page)
        page.get_by_role("tab", name="Table").click()
        shown = page.inner_text("#answer table")
        for text in (SCRIPT, AREA, TEMPLATE):
            assert text in shown
        page.click("#history-box summary")
        page.wait_for_selector("#history .past a")
        for wrong in (
            f'SELECT "{quoted(AREA)}" FROM people',
            f"SELECT '{IMAGE}",
            f'SELECT "{IMAGE}" FROM "{IMAGE}"',
        ):
            page.fill("#editor textarea", wrong)
            page.wait_for_selector(".refusal")
            require_unharmed(page)
        page.fill("#editor textarea", "")
        page.locator("#editor textarea").press_sequentially(
            f'SELECT COUNT(*) FROM "{IMAGE}" WHERE "{IMAGE[:3]}'
        )
        require_unharmed(page)
        page.goto(f"/learn#{IMAGE}")
        for lesson in LESSONS:
            page.goto(f"/learn#{lesson}")
            page.wait_for_selector(f"[data-part={lesson}] h2")
        require_unharmed(page)


def test_a_curators_page(browser: Any, town: Running) -> None:
    town.server.curator.ask(
        f'SELECT COUNT(*) AS "{IMAGE}" FROM "{IMAGE}"', analyst=SCRIPT, epsilon=1
    )
    with opened(browser, town, f"{SCRIPT} !", "/curate") as page:
        page.context.add_init_script(SHOUT)
        page.reload()
        for part in PARTS:
            page.goto(f"/curate#{part}")
            page.wait_for_selector(f"[data-part={part}]:not([aria-busy])")
            require_unharmed(page)
        page.goto("/curate#ledger")
        page.click("text=Certificate >> nth=0")
        page.wait_for_selector("dialog pre")
        require_unharmed(page)
        page.click("dialog >> text=Close")
        page.goto("/curate#users")
        page.fill("[data-part=users] input", IMAGE)
        page.click("text=Let in")
        page.wait_for_selector("[data-part=users] .bad")  # there is one already: the name is told
        page.fill("[data-part=users] input", f"{AREA}?")
        page.select_option("[data-part=users] select", "auditor")
        page.click("text=Let in")
        page.wait_for_selector(".once")
        require_unharmed(page)
        page.goto("/curate#publishing")
        page.wait_for_selector("[data-part=publishing]:not([aria-busy])")
        page.get_by_label(f"Price of {SCRIPT}").click()
        page.wait_for_selector("text=Costs ε")
        for label in (f"Start {SCRIPT}", f"Run {SCRIPT}"):
            page.get_by_label(label, exact=True).click()
            page.wait_for_selector(f"text=Page of {SCRIPT}")
        require_unharmed(page)
        page.goto("/curate#policy")
        page.wait_for_selector("text=Nothing was changed.")
        page.fill("[data-part=policy] textarea", json.dumps(POLICY | {IMAGE: 1, "unit": 5}))
        page.wait_for_selector(".problem")
        require_unharmed(page)
        page.goto(f"/curate#{IMAGE}")
        page.wait_for_selector("[data-part=budgets]:not([aria-busy])")
        require_unharmed(page)


def test_pages_of_releases(browser: Any, town: Running) -> None:
    release = town.server.curator.release(SCRIPT)
    release.start()
    release.run()
    with opened(browser, town, f"{IMAGE} !", "/curate") as page:
        page.context.add_init_script(SHOUT)
        path = f"/api/v1/releases/{SCRIPT.replace('/', '%2F')}/page"
        assert page.goto(path).status == 200
        require_unharmed(page)
