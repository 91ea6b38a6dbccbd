"""New code as libcst's nodes, for several fixes: imported only where source text is changed."""
