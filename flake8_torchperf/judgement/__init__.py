"""Judgement of a site: its frequency, the residence of its value, and the fate of its wait."""
