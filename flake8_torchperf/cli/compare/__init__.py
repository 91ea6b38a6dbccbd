"""``torchperf compare``: two sets of reports that `torchperf run --json` wrote."""
