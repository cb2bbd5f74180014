"""Whose row it is: tables, joins, windows and sets of private rows, each row with its owner."""
