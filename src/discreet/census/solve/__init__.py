"""From measurements to tables that add up: least squares, then whole numbers from the top."""
