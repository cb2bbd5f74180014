"""Forms of joins and subqueries that are rewritten to the one form that is analyzed."""
