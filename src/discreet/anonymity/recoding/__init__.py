"""Coarsen a table: globally by levels, or locally class by class."""
