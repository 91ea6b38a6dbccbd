"""Models of calls to torch, builtins and libraries."""
