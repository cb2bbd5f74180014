"""Requests: what each aggregate asks to be measured, and the few sums that answer all of them.

request    what one aggregate asks for
readings   exact sums of powers and products
sharing    which requests share a statistic
assembly   the statistics and picks of one aggregation
"""
