"""Columns as synthetic data sees them: values on public grids, and cuts found at a price."""
