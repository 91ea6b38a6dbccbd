// Which Python to use, and whether with the bundled copy. Knows nothing about VS Code.

import { Output, program } from "./python";

/** What an interpreter can import. */
export interface Probed {
  readonly version: readonly [number, number];
  readonly linter: boolean;
  readonly pygls: boolean;
  readonly libcst: boolean;
}

/** The decision about one interpreter: why it can't be used, or how it is. */
export type Verdict =
  | { readonly usable: false; readonly reason: string }
  | { readonly usable: true; readonly bundled: boolean; readonly fixes: boolean; readonly note: string };

const OLDEST = [3, 10] as const;
export const PROBE = program(`
import json
from importlib.util import find_spec

def has(name):
    try:
        return find_spec(name) is not None
    except ImportError:
        return False  # the package that it is in is missing

names = {"linter": "flake8_torchperf.server.app", "pygls": "pygls.lsp.server", "libcst": "libcst"}
print(json.dumps({"version": sys.version_info[:2], **{k: has(v) for k, v in names.items()}}))
`);

/** Return the interpreters to try, the first that can be used wins. */
export function candidates(setting: string, active: string, folder: string): string[] {
  const named = setting.trim();
  if (named) {
    // A person who names one wants no other.
    return [named.replaceAll("${workspaceFolder}", folder)];
  }
  return [active, "python3", "python"].filter(Boolean);
}

/** Return what the probe printed; a text says why there is nothing. */
export function read(output: Output): Probed | string {
  const said = output.err.trim().split("\n").pop() || `exit status ${output.status}`;
  if (output.status !== 0) {
    return said;
  }
  try {
    return JSON.parse(output.out) as Probed;
  } catch {
    return `no answer that can be read: ${output.out.trim().slice(0, 80)}`;
  }
}

/** Decide how an interpreter is used. */
export function judge(command: string, probed: Probed | string): Verdict {
  if (typeof probed === "string") {
    return { usable: false, reason: `${command}: ${probed}` };
  }
  const [major, minor] = probed.version;
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    const reason = `${command}: Python ${major}.${minor} is too old; ${OLDEST.join(".")} or newer is needed`;
    return { usable: false, reason };
  }
  const bundled = !probed.linter || !probed.pygls;
  const missing = probed.linter ? "pygls 2" : "flake8-torchperf";
  const notes: string[] = [];
  if (bundled) {
    notes.push(`${missing} is not installed in ${command}, so the extension's own copy is used.`);
  }
  if (!probed.libcst) {
    notes.push("Fixes need libcst, which is compiled and so not in the extension: pip install libcst");
  }
  return { usable: true, bundled, fixes: probed.libcst, note: notes.join(" ") };
}
