"""Commands to begin with: the demo, and the interview that writes a policy."""
