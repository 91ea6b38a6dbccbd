"""Runs a person's own workload under the counter and holds the linter's findings against it.

`launch` starts it in a child process, `bootstrap` and `session` are that child's side, `judge`
compares. Only the child imports torch.
"""
