"""libcst trees of the suspect functions, and positions for what is reported."""
