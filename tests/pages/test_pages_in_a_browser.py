"""Pages of the kit in a browser: nothing is cut off or loaded; wide and narrow, light, dark and on
paper.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from discreet.pages import axis, blocks
from discreet.pages.bars import Series, bars
from discreet.pages.heat import Square, heat
from discreet.pages.plot import Curve, plot

NAMES = ["short", "a rather long name of a category", "AnExtremelyLongWordWithoutAnySpaceInIt"]
# Every word lies inside the page, and no tick lies on its neighbor.
CUT_OFF = """() => {
  const found = [];
  for (const each of document.querySelectorAll('.name, .value, .ticks span, .up span, th, td, figcaption, h1, h2, p')) {
    const box = each.getBoundingClientRect();
    const scrolls = each.closest('.wide, .heat');
    if (box.width && !scrolls && (box.left < -1 || box.right > innerWidth + 1)) found.push(each.textContent);
  }
  for (const row of document.querySelectorAll('.ticks')) {
    const boxes = [...row.children].map(e => e.getBoundingClientRect()).filter(b => b.width);
    for (let i = 1; i < boxes.length; i++) if (boxes[i - 1].right > boxes[i].left) found.push(row.textContent);
  }
  return found;
}"""


def example() -> str:
    days = [date(2024, 1, 1) + timedelta(days=place) for place in range(366)]
    values = [50 + 30 * (place % 7) for place in range(366)]
    line = Curve(
        across=[axis.place_of(day) for day in days],
        up=values,
        lows=[value - 20 for value in values],
        highs=[value + 20 for value in values],
    )
    series = Series(values=[3e4, 1e4, 2e4], ranges=[(2e4, 4e4)] * 3, texts=["30,000 ± 10,000"] * 3)
    squares = [Square(row=0, column=1, value=0.3), Square(row=1, column=2, value=0.1, marked=True)]
    parts = [
        blocks.cards([("10,059", "rows, about"), ("ε = 1", "what it cost")]),
        blocks.grid(
            [
                blocks.figure(
                    "Bars", bars(NAMES, [series], axis=axis.numbers(0, 4e4, title="rows"))
                ),
                blocks.figure(
                    "Time",
                    plot(
                        [line],
                        across=axis.days(days[0], days[-1]),
                        up=axis.numbers(0, 250, title="n"),
                        label="n",
                    ),
                ),
                blocks.figure("Pairs", heat(NAMES, squares, full=0.5, label="pairs")),
            ]
        ),
        blocks.table(("name", "number"), [(name, "1,204 ± 12") for name in NAMES]),
    ]
    return blocks.page(
        "A page", parts, subtitle="Of everything", banner="NOT FOR RELEASE", footer="The end."
    )


@pytest.mark.parametrize("width", [1200, 794, 390])
def test_nothing_is_cut_off_and_nothing_is_loaded(tmp_path: Path, browser: Any, width: int) -> None:
    (tmp_path / "page.html").write_text(example(), encoding="utf-8")
    said: list[str] = []
    asked: list[str] = []
    for scheme, media in (("light", "screen"), ("dark", "screen"), ("light", "print")):
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab.emulate_media(media=media, color_scheme=scheme)
        tab.on("console", lambda message: said.append(message.text))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto((tmp_path / "page.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, (width, scheme, media)
        assert tab.evaluate(CUT_OFF) == [], (width, scheme, media)
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(20, 25, 30)") == (scheme == "dark"), (scheme, media, ground)
        tab.close()
    assert said == []
    assert {url.rsplit("/", 1)[1] for url in asked} == {"page.html"}
