// The text and the settings, compressed, in the fragment of an address. Browsers send no fragments.

import type { Settings } from "./protocol";

export interface Shared {
  text: string;
  settings: Settings;
}

export const SCOPES = ["loop", "hot", "all"];
export const CONFIDENCES = ["stated", "inferred", "assumed"];
export const DEFAULTS: Settings = { scope: "hot", confidence: "inferred", preview: false };

const KEY = "#code=";

async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream): Promise<Uint8Array> {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

// Base64 with the letters that need no escape in an address.
function encoded(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function decoded(text: string): Uint8Array<ArrayBuffer> {
  const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(bytes, (letter) => letter.charCodeAt(0));
}

export async function toFragment(shared: Shared): Promise<string> {
  const json = new TextEncoder().encode(JSON.stringify(shared));
  return KEY + encoded(await through(json, new CompressionStream("deflate-raw")));
}

// Undefined if the fragment holds no code. Throws if what it holds can't be read.
export async function fromFragment(fragment: string): Promise<Shared | undefined> {
  if (!fragment.startsWith(KEY)) return undefined;
  const bytes = await through(decoded(fragment.slice(KEY.length)), new DecompressionStream("deflate-raw"));
  const { text, settings } = JSON.parse(new TextDecoder().decode(bytes)) as Partial<Shared>;
  if (typeof text !== "string") throw new Error("the link holds no code");
  return { text, settings: checked(settings) };
}

function checked(given: Partial<Settings> | undefined): Settings {
  const of = (known: string[], word: string | undefined, other: string) =>
    word !== undefined && known.includes(word) ? word : other;
  return {
    scope: of(SCOPES, given?.scope, DEFAULTS.scope),
    confidence: of(CONFIDENCES, given?.confidence, DEFAULTS.confidence),
    preview: given?.preview === true,
  };
}
