"""Answer a plan: price it, explain it, carry it out, and store what was released."""
