"""A small training project, written as plainly as can be."""
