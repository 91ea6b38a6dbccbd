"""``torchperf why FILE:LINE``: what is known in a line, and why it is reported or not."""
