"""Helpers of several fixes: facts about expressions, and the text that they write."""
