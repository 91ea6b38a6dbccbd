"""Fixes that keep values, types, gradients, aliasing, evaluation order and exceptions."""
