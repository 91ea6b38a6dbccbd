"""Abstract interpretation: expressions to values, each tensor with the reason for it.

- `domain`: `values` and where they come from (`provenance`), the `store` that binds names to them,
  `site` and `heat` for what is seen and how often it runs.
- `engine`: the `analysis` that every evaluation shares, and the tables of `dispatch`.
- `stated_types`: `annotations`, `docstrings`, `class_hierarchy`, `isinstance_tests`.
- `inference`: `parameters` by how the body uses them (`usage_inference`) and `from_callees`.
- `transfer`: a module for each kind of syntax: `expressions`, `statements`, `assignment`, `loops`.
- `models`: calls of torch (`torch_functions`, `tensor_methods`), of builtins and libraries.
- `calls`: `call_dispatch` chooses the handler; `summaries`, `closures` and `instances` handle the
  project's own code, `members` attributes.
- `driver`: `registry` fills the tables, `selection` chooses functions, `function_analysis` runs
  one, `caller_review` uses the calls in the whole package, which `package_callers` finds.

The permitted imports are listed in `.importlinter`.
"""
