"""The code of the child: runs both versions of a function, each in a fork, and compares them."""
