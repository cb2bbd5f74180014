"""The embedded engine: it keeps snapshots in DuckDB files, and answers questions on them."""
