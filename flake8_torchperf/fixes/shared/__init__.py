"""Facts about the ast that several fixes need; `nodes` builds the code that they write."""
