"""Other libraries that are used with torch: numpy, einops, executors of tasks."""
