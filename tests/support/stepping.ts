/**
 * A model whose answer continues when a test lets it.
 *
 * @module
 */
import type { Model } from "@jizai/jizai";

/** A model that answers `texts`, each once it is released. */
export function stepping(...texts: readonly string[]) {
  const steps = texts.map((text) => ({ text, gate: Promise.withResolvers<void>() }));
  const model: Model = {
    id: "stepping",
    async *stream() {
      for (const { text, gate } of steps) {
        await gate.promise;
        yield [{ type: "text", text }];
      }
      yield [{ type: "finish", reason: "stop" }];
    },
  };
  return { model, release: (step: number) => steps[step]?.gate.resolve() };
}
