"""`torchperf fix --verify`: runs the text before and after a fix, and withdraws what differs.

Only that command line starts any of this. `plan` says what to run, `session` asks a child of
`confirm`'s sandbox, `verdict` judges what it told. `child` is what runs there.
"""
