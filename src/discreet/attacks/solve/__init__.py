"""The mathematics of attacks: linear algebra, ranges, and the sets of people (worlds) that fit
published statistics.
"""
