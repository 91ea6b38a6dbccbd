"""How often code runs: evidence first, naming conventions last."""
