"""The evidence that rule pages claim a run shows.

`use_spans` finds the lines where it shows if that is not the reported line, and `examples` runs the
examples of a page under the counter. `findings.documentation` reads it from a page.
"""
