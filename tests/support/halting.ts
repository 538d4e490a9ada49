/**
 * Models that stop in the middle of an answer.
 *
 * @module
 */
import type { Model } from "@jizai/jizai";

/** A model that says "One.", and the rest once it is told to go on; or nothing more, where its run is stopped. */
export function halting(rest = " Two."): {
  readonly model: Model;
  /** Settles when the first of it is said. */
  readonly begun: Promise<void>;
  readonly goOn: () => void;
} {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const model: Model = {
    id: "halting",
    async *stream(_request, { signal }) {
      yield [{ type: "text", text: "One." }];
      begun.resolve();
      signal.addEventListener("abort", () => gate.resolve());
      await gate.promise;
      yield signal.aborted ? [] : [{ type: "text", text: rest }, { type: "finish", reason: "stop" }];
    },
  };
  return { model, begun: begun.promise, goOn: gate.resolve };
}

/** A model that says a word, and then waits until it is told to stop. */
export function waiting(): Model {
  return {
    id: "waiting",
    async *stream(_request, { signal }) {
      yield [{ type: "text", text: "Wait" }];
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  };
}
