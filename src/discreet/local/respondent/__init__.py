"""The respondent's side: device, terminal and page. Standard library only."""
