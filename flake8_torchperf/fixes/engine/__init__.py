"""What all fixes share: planning on the ast, and changing text with libcst."""
