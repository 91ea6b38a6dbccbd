"""Finds, by syntax, the code that ``torch.compile`` compiles and ``torch.func`` transforms."""
