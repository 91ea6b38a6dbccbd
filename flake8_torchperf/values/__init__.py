"""Abstract values, where they come from, and the store that binds them to names."""
