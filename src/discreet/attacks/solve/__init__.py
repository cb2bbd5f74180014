"""The mathematics of attacks: linear algebra, ranges, and the worlds that fit the published
statistics.
"""
