"""Abstract interpretation: expressions to values, each tensor with the reason it is one."""
