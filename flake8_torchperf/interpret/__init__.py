"""Abstract interpretation: expressions evaluate to values, each tensor with the reason it is one."""
