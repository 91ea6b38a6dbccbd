"""Contracts: code that must not wait, followed through the calls of a package."""
