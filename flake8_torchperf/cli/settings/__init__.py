"""The linter's settings: in files, and on command lines that flake8 does not parse."""
