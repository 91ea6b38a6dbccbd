"""The counts of one thread, the recorders of all threads, and their counts by source line."""
