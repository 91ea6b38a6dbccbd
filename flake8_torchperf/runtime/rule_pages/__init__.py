"""What the rule pages claim a run shows, and runs of their examples."""
