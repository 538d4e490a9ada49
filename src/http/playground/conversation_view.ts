/**
 * The conversation on the page.
 *
 * @module
 */
import type { Element } from "./dom.ts";
import type { Elements } from "./elements.ts";
import type { Entry } from "./view.ts";

/** Draws the conversation. Runs in the page, so it uses nothing outside itself. */
export function drawConversation({ make, write, list }: Elements, root: Element, entries: readonly Entry[]): void {
  const names = { you: "You", agent: "Agent", thought: "Thought", note: "Note", call: "Call" };
  list(root, entries, create, update);

  function create({ who }: Entry): Element {
    if (who !== "call") return make("li", `entry ${who}`, make("span", "who"), make("div", "text"));
    const details = make("details", "call", make("summary", ""), make("pre", "input"), make("pre", "result"));
    return make("li", "entry", details);
  }

  function update({ children: [first, second] }: Element, { who, name, text, status, input }: Entry): void {
    if (who !== "call") {
      write(first, name === undefined ? names[who] : `${names[who]}, ${name}`);
      write(second, text);
      return;
    }
    const [summary, callInput, result] = first?.children ?? [];
    write(summary, `${name}: ${status}`);
    write(callInput, input ?? "");
    write(result, text);
  }
}
