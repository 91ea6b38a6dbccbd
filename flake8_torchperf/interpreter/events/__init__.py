"""Typed facts about the places where tensor work meets Python."""
