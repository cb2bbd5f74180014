"""The kit by which every report, chart and answer in a browser or notebook is drawn.

`page` writes a whole page, and `fragment` a part of a page that is not ours. Neither loads anything
or runs scripts. `blocks` has headings, tables, cards and figures. `bars`, `plot` and `heat` draw
charts, `axis` computes their ticks and units, and `style` has the sizes of type and the colors.
Charts stretch with the page while their words keep their size, so that labels wrap and are never
cut off, also on paper and on a phone. The kit needs the standard library alone.
"""
