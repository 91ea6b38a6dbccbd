// Makes elements of the page. Text goes in as text, never as HTML.

export type Child = Node | string;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// The text with its `code` set as code.
export function prose(text: string): Child[] {
  return text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
}
