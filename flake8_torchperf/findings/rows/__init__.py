"""Rows: findings of one function that are one remedy, and printed as one."""
