"""Print what commands found: as tables for people, or in the format that `--format` names."""
