"""The bodies that something runs, and the classes that something makes."""
