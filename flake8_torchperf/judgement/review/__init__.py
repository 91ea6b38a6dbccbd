"""Review of functions by the calls in their whole package."""
