"""The folder that counted processes put on PYTHONPATH for those that they start."""
