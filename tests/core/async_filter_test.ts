/**
 * An `emit` filter may be an async function, which TypeScript accepts. If it rejects, its error is reported, and neither the process nor the run ends.
 */
import { agent, type Emit, type Point } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { settled } from "../support/batch.ts";
import { at, reach } from "../support/reach.ts";

/** Returns a filter that passes every event on and then rejects. */
function saving(emit: Emit): Emit {
  return async (event) => {
    emit(event);
    await Promise.resolve();
    throw new Error(`No database for ${event.type}`);
  };
}

const received: readonly (readonly [Point, readonly string[]])[] = [
  ["prompt", ["turn.started", "model.started", "text.delta", "model.finished", "turn.finished"]],
  ["model", ["text.delta"]],
  ["tool", ["approval.decided"]],
];

for (const [point, types] of received) {
  Deno.test(`${point}: the operator receives the errors of a filter that rejects, and the run is done`, async () => {
    const filter = at(point, "saving", (ctx, next) => next({ emit: saving(ctx.emit) }));
    const { result, errors } = await reach(point, [filter]);
    await settled();
    assertEquals(errors.map(String), types.map((type) => `Error: No database for ${type}`));
    assertEquals(result.status, "done");
  });
}

Deno.test("the errors of a filter that rejects are reported in strict mode too", async () => {
  const errors: unknown[] = [];
  const { status } = await agent({
    model: scripted("Hello!"),
    use: [{ name: "saving", model: (ctx, next) => next({ emit: saving(ctx.emit) }) }],
    strict: true,
  }).run({ prompt: "Hi", onError: (error) => errors.push(error) }).result;
  await settled();
  assertEquals([status, ...errors.map(String)], ["done", "Error: No database for text.delta"]);
});

Deno.test("a filter that throws at once fails the run", async () => {
  const filter = at("model", "strict", (_, next) =>
    next({
      emit() {
        throw new Error("No.");
      },
    }));
  const { result } = await reach("model", [filter]);
  assertEquals([result.status, String(result.error)], ["failed", "Error: No."]);
});
