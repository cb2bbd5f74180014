"""The protocols that randomize one answer. Their encoders need the standard library only."""
