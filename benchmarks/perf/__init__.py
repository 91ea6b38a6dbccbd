"""The costs of the linter and the counter: `python benchmarks/perf COMMAND`."""
