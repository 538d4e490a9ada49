/**
 * Models that stop in the middle of an answer.
 *
 * @module
 */
import type { Model } from "@jizai/jizai";

/** A model that answers "One.", and the rest once it is released, or nothing if its run is stopped. */
export function halting(rest = " Two."): {
  readonly model: Model;
  /** Resolves when "One." was sent. */
  readonly begun: Promise<void>;
  readonly release: () => void;
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
  return { model, begun: begun.promise, release: gate.resolve };
}

/** A model that sends one word, and then waits until it is stopped. */
export function waiting(text = "Wait"): Model {
  return {
    id: "waiting",
    async *stream(_request, { signal }) {
      yield [{ type: "text", text }];
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  };
}
