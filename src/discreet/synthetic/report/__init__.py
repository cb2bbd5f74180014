"""What people see of synthetic data: inspect, errors, raw scores, pages."""
