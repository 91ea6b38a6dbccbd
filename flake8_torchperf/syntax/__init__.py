"""Places and source text of the ast nodes that findings stand on, and types written in strings."""
