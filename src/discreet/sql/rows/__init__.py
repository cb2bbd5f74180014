"""Private rows: tables, joins, windows and sets, each row with its owner."""
