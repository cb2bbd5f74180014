"""The collector's side: reports in, estimates with margins out."""
