"""Margins of numbers computed after noise: exact for linear forms, by redrawing for the rest."""
