"""Fixes: findings in, changed source text out."""
