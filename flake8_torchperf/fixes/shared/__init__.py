"""Facts about code that several fixes ask for, on the ast, and in `nodes` what they write."""
