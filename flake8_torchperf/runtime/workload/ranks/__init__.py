"""The processes of one run: counted wherever they start, read together, told apart.

- In every process that is counted: `environment` lets those that it starts be counted too.
  `site` is what they find first; `takeover` decides, and starts them anew under the counter.
- `recordings` is the folder in which each leaves what it saw.
- In the parent: `team` brings together parents that a launcher started side by side, `merge` adds
  up what was seen, and `shares` says how a statement's cost is spread over the ranks.
"""
