"""What is known of torch: a table generated from torch itself, and a cited supplement."""
