"""``# noqa`` comments: those that silence nothing, and those that a person wants written."""
