"""Inputs for a function under examination: described, chosen and built.

An input spec (`input_specs`) is plain data that crosses to the child.

- In the parent, without torch: `from_types` uses the interpreter, `from_usage` the function's text.
- On both sides: `from_names` uses a parameter's name.
- In the child: `from_signatures` uses the live signature; `builder` and `objects` make the inputs.
"""
