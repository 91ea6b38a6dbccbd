"""The sandboxed child process of ``torchperf confirm``."""
