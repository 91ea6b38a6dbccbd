"""The frequency at which code runs: evidence first, naming conventions last."""
