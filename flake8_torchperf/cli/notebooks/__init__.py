"""Jupyter notebooks for ``torchperf check``: their Python, and where in which cell it is."""
