/**
 * Tracks whether a client has seen text, which a hook needs to know before it asks the model again.
 *
 * @module
 */
import type { Emit } from "../../protocol/event.ts";

/** A filter that passes every event and tracks text. */
export interface Shown {
  /** The filter. */
  readonly emit: Emit;
  /** True if text was emitted since the last `model.reset`. */
  readonly text: boolean;
}

/** Creates a filter in front of `emit`. */
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
