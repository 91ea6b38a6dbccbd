"""The parts that all fixes share: planning on the ast, and changing text with libcst."""
