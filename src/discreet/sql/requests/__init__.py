"""Requests of aggregates, and the few exact sums that serve all requests of one aggregation."""
