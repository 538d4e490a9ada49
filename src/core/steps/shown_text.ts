/**
 * The text of an answer that clients have seen.
 *
 * @module
 */
import type { Emit } from "../../protocol/event.ts";
import type { AssistantMessage } from "../../protocol/message.ts";

/** Collects the text that clients have seen. */
export class ShownText {
  #pieces: string[] = [];
  readonly #emit: Emit;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** Passes an event on, and collects its text. */
  readonly emit: Emit = (event) => {
    if (event.type === "text.delta") this.#pieces.push(event.text);
    else if (event.type === "model.reset") this.#pieces = [];
    this.#emit(event);
  };

  get text(): string {
    return this.#pieces.join("");
  }
  get message(): AssistantMessage {
    return { role: "assistant", parts: this.#pieces.length === 0 ? [] : [{ type: "text", text: this.text }] };
  }
}
