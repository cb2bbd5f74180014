"""Statistics published every day for one ε: streams of releases over time (S15).

    strategy       what every strategy can do; and how far one person can move what it measures
    independent    fresh noise for every period: best where only single periods are published
    dense          integer factors of up to a few thousand periods: square roots, and one optimised
                   for a mix of sums
    buffered       a square root in small memory, for long streams
    tree           trees of sums: binary with its best estimate, and k-ary with subtraction for pure
                   budgets
    doubling       for a horizon that is not known
    choose         the best of them for what is published
    running        a schedule started, run and shown: charge, freeze, noise, publish
    series         what was published, its margins, and how it looks as a table; consistent for the
                   revised values
    chart, page    the same in a terminal and as a web page

Nothing here sees an exact value: encoders are handed to `release.Steps`, which alone opens them.
"""
