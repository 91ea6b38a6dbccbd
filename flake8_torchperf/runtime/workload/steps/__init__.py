"""The steps of a run: what ends one, and what was counted in those after the warm-up."""
