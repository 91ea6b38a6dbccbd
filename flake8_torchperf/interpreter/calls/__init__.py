"""Calls of project code: dispatch, summaries, closures, instances."""
