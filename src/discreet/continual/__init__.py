"""Releases: statistics that are published in every period, such as every day, for one ε (S15).

    strategies/    which sums of the stream get noise:
      strategy     the protocol of a strategy, and how far one person moves what it measures
      independent  fresh noise for every period: best if only single periods are published
      dense        matrices of whole numbers for up to a few thousand periods: square roots, and one
                   that is optimized for a mix of sums
      buffered     a square root that needs little memory, for long streams
      tree         trees of sums: binary with its best estimate, and k-ary with subtraction for pure
                   budgets
      doubling     for a horizon that is not known
      choose       the best of them for what is published
    question       the question of one period; design the strategy and noise of a whole release
    running        starts, runs and shows a release: charge, freeze, add noise, publish
    series         the published values with their margins, as a table; consistent revises them
    quote          cost and margins before anything is charged
    chart, page    a release in a terminal and as a web page

Nothing here sees an exact value: only `vault.steps.Steps` opens what the encoders return.
"""
