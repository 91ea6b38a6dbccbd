"""The parts that every evaluation shares: the analysis, its context, call arguments."""
