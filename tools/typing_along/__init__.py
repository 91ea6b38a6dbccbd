"""A simulated user: an editor without a window, and the edits typed into it."""
