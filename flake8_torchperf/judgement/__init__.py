"""Judgement: how often a site runs, where its value lies, and whether the wait there is wanted."""
