"""The embedded engine: snapshots in DuckDB files, and questions on them."""
