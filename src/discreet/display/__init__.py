"""How answers look: as text and HTML, as charts, as bytes of a file."""
