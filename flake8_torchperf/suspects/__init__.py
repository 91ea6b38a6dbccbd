"""Cheap, over-approximate search for functions that deserve a closer look; reads only the ast."""
