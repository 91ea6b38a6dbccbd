"""A person at a keyboard: an editor without a window, and what is typed into it."""
