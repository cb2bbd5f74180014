"""Print the results of commands: as tables for people, or in the format that `--format` names."""
