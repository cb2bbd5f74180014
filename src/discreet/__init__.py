"""Statistics about people, and nothing about any one of them."""
