"""What a browser shows."""

from __future__ import annotations

from fastapi import FastAPI


def add(app: FastAPI) -> None:
    """Add the pages' routes to the app."""
