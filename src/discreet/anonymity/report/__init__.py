"""What anonymizing cost and did not give, on a page and in a terminal."""
