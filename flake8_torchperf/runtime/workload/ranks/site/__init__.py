"""The folder that counted processes put on PYTHONPATH for the processes that they start."""
