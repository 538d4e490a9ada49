/**
 * The conversation, as it is drawn.
 *
 * @module
 */
import type { Element } from "./dom.ts";
import type { Elements } from "./elements.ts";
import type { Said } from "./view.ts";

/** Draws what was said. Runs in the page: it reaches for nothing outside of itself. */
export function drawTalk({ make, write, list }: Elements, root: Element, said: readonly Said[]): void {
  const names = { you: "You", agent: "Agent", thought: "Thought", note: "Note", call: "Call" };
  list(root, said, begin, update);

  function begin({ who }: Said): Element {
    if (who !== "call") return make("li", `said ${who}`, make("span", "who"), make("div", "text"));
    const details = make("details", "call", make("summary", ""), make("pre", "input"), make("pre", "result"));
    return make("li", "said", details);
  }

  function update({ children: [first, second] }: Element, { who, name, text, status, input }: Said): void {
    if (who !== "call") {
      write(first, name === undefined ? names[who] : `${names[who]}, ${name}`);
      write(second, text);
      return;
    }
    const [summary, given, result] = first?.children ?? [];
    write(summary, `${name}: ${status}`);
    write(given, input ?? "");
    write(result, text);
  }
}
