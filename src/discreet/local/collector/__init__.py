"""The collector's side: it takes reports and estimates the true answers, with margins."""
