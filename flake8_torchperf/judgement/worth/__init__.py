"""The worth of findings: the evidence about each, weighed."""
