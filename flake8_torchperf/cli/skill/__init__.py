"""``torchperf skill``: the steps that a coding agent follows, in the Agent Skills format."""
