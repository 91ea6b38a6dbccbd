"""What the linter and the counter cost: `python benchmarks/perf COMMAND`."""
