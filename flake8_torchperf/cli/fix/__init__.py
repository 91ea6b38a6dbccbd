"""``torchperf fix``: the command line and the work on files."""
