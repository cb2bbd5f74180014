"""Show answers: as text and HTML, as charts, as bytes of a file."""
