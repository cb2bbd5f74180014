"""How wrong a number is that was computed after noise: margins, by form or by redrawing."""
