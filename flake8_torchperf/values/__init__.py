"""Abstract values, the reasons for them, and the store that binds them to names."""
