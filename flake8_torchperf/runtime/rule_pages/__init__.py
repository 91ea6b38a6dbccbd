"""The evidence that rule pages claim a run shows.

`use_spans` finds the lines where it shows if that is not the reported line; `unshown` tells why a
count of 0 refutes no finding.
"""
