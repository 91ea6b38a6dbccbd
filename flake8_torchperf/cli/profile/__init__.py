"""``torchperf profile``: profiles that `torchperf run --save-profile` wrote."""
