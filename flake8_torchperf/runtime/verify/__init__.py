"""`torchperf fix --verify`: runs the text before and after a fix, and withdraws fixes that differ.

Only that command line starts any of this. `plan` says what to run, `session` uses a child of
`confirm`'s sandbox, and `verdict` judges the child's report. `child` is the code that runs there.
"""
