"""What the rule pages claim that a run shows.

`claims` reads a page's evidence, `use_spans` finds the lines where it shows if that is not the
reported line, and `examples` runs the examples of a page under the counter.
"""
