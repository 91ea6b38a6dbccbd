"""Matching of sites against the catalogue of rules."""
