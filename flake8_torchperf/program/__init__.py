"""Who runs a body of code, and where: outlines of modules, and the flow of functions in them."""
