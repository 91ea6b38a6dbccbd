"""Unsafe fixes that replace a loop by one operation."""
