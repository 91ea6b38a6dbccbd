"""Helpers that several fixes share: checks of code, and statements written with libcst."""
