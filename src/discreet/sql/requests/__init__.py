"""What aggregates ask for, and the few exact sums that serve all requests of one aggregation."""
