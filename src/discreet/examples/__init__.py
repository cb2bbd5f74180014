"""A generated town and a generated country, to try things on."""
