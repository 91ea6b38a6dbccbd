"""Transfer functions: one module for each kind of syntax."""
