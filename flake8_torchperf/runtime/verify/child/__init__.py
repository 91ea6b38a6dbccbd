"""What runs in the child: both versions of a function, each in a fork, and their comparison."""
