/**
 * Whether text was shown: what a hook has to know before it asks the model again.
 *
 * @module
 */
import type { Emit } from "../protocol/event.ts";

/** A filter that lets everything pass, and what it has seen. */
export interface Shown {
  /** The filter. */
  readonly emit: Emit;
  /** Whether text went out that was not taken back. */
  readonly text: boolean;
}

/** Watches what goes out to `emit`. */
export function trackShownText(emit: Emit): Shown {
  let text = false;
  return {
    emit(event) {
      if (event.type === "text.delta") text = true;
      else if (event.type === "model.reset") text = false;
      emit(event);
    },
    get text() {
      return text;
    },
  };
}
