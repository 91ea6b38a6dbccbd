"""The functions that are analysed, their setting, and what their callers show of them."""
