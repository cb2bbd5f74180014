"""One kit for everything that a browser shows: reports, charts, and answers in notebooks.

`page` writes a whole page and `fragment` a piece of somebody else's; both load nothing and run
nothing. `blocks` has headings, tables, cards and figures; `bars`, `plot` and `heat` draw; `axis`
knows ticks and units; `style` has the one type scale and the one palette. Charts stretch with the
page while their words keep their size, so that labels wrap and are never cut off, on paper and on a
phone too. The kit needs the standard library alone.
"""
