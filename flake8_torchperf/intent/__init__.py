"""Waits that repeat, but that their author asked for or cannot avoid."""
