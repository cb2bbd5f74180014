"""The report on an anonymized table, on a page and in a terminal."""
