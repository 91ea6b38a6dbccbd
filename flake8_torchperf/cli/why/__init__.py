"""``torchperf why FILE:LINE``: the values in a line, and why it is reported or not."""
