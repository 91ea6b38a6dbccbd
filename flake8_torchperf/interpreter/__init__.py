"""Abstract interpretation: expressions to values, each tensor with the reason for it.

- `engine`: the `analysis` that every evaluation shares, and the tables of `dispatch`.
- `stated_types`: `annotations`, `docstrings`, `class_hierarchy`, `isinstance_tests`.
- `inference`: `parameters` by how the body uses them (`usage_inference`) and `from_callees`.
- `transfer`: a module for each kind of syntax: `expressions`, `statements`, `assignment`, `loops`.
- `models`: calls of torch (`torch_functions`, `tensor_methods`), of builtins and libraries.
- `calls`: `call_dispatch` chooses the handler; `summaries`, `closures` and `instances` handle the
  project's own code, `members` attributes.
- `events`: the sites that are recorded, and the guards that show how often their branches run.
- `driver`: `registry` fills the tables, and `function_analysis` interprets one function.

The package `values` holds the values, their reasons and the store that binds names to them.

The permitted imports are listed in `.importlinter`.
"""
