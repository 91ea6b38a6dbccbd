"""The processes of one run: each is counted, and their results are merged and shown by rank.

- In every process that is counted: `environment` lets the processes that it starts be counted too.
  `site` is the first code that they run; `takeover` decides, and restarts them under the counter.
- `recordings` is the folder in which each leaves its results.
- In the parent: `team` joins the parents that a launcher started side by side, `merge` adds up the
  results, and `shares` says how a statement's cost is spread over the ranks.
"""
