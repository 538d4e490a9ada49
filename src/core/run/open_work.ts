/**
 * The work in progress of a run: its end unwinds the work, keeps the unfinished answer, and cleans up once.
 *
 * @module
 */
import type { AssistantMessage } from "../../protocol/message.ts";

/** The work in progress. */
export class OpenWork {
  readonly #unwinders = new Set<() => void>();
  #partial: (() => AssistantMessage) | undefined;
  #cleanup: Promise<void> | undefined;

  /** The unfinished answer that clients have seen, if the model is streaming one. */
  get partial(): AssistantMessage | undefined {
    return this.#partial?.();
  }

  /** Sets the source of the unfinished answer, or clears it. */
  streamPartial(partial: (() => AssistantMessage) | undefined): void {
    this.#partial = partial;
  }

  /** Registers a function that unwinds work when the run ends without it. Returns a function that removes it. */
  onUnwind(unwind: () => void): () => void {
    this.#unwinders.add(unwind);
    return () => this.#unwinders.delete(unwind);
  }

  /** Unwinds the work. */
  unwind(): void {
    for (const unwind of this.#unwinders) unwind();
    this.#unwinders.clear();
  }

  /** Runs the cleanup, once. */
  cleanUp(clean: () => Promise<void>): Promise<void> {
    return this.#cleanup ??= clean();
  }
}
