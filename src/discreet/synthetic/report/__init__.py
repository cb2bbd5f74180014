"""Reports on synthetic data: inspect, errors, raw scores, pages."""
