// The settings as the server and the command line take them. Knows nothing about VS Code.

export type Settings = Record<string, unknown>;

// These decide which findings are cached or left out; `torchperf why` does not take them.
export const NOT_FOR_WHY = ["baseline", "profile", "cache", "cache-dir"];
export const INTERPRETER = "interpreter";

/** Return the settings of [tool.torchperf] that are set, by their names in package.json. */
export function settingsOf(properties: string[], value: (name: string) => unknown): Settings {
  const names = properties.map((one) => one.replace(/^torchperf\./, ""));
  const set = names
    .filter((name) => name !== INTERPRETER)
    .map((name) => [name, value(name)] as const)
    .filter(([, one]) => one !== null && one !== undefined);
  return Object.fromEntries(set);
}

/** Return settings as options of a `torchperf` command, those left out that it does not take. */
export function asOptions(settings: Settings, takes: (name: string) => boolean): string[] {
  return Object.entries(settings)
    .filter(([name]) => takes(name))
    .map(([name, value]) => {
      if (typeof value === "boolean") {
        return value ? `--${name}` : `--no-${name}`;
      }
      return `--${name}=${Array.isArray(value) ? value.join(",") : String(value)}`;
    });
}
