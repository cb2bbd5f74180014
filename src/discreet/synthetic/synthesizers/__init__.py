"""The synthesizers: each makes a model of a table from counts that it pays for."""
