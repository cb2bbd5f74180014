"""Everything after noise: estimates, margins, and the rest of the statement. It costs nothing."""
