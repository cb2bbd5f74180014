"""Shared by all tests. That it stands here puts this folder on the path, for modules such as `by_definition`."""
