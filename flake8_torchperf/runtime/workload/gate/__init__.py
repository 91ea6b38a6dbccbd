"""The gate of a run: what regions allow, the conditions under which a run fails, `--raise`."""
