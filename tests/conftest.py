"""Shared by all tests. That it stands here puts this folder on the path, for modules such as `by_definition`."""

from hypothesis import settings

# How long an example takes says nothing about the code on a busy machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
