"""What several fixes share: questions about code, and statements written with libcst."""
