import { ModelError } from "@jizai/jizai";
import type { ModelErrorOptions } from "@jizai/jizai/engine";
import { assertEquals } from "@std/assert";

Deno.test("ModelError derives its code from the other options unless it is given", () => {
  const codes: readonly (readonly [ModelErrorOptions, ModelError["code"]])[] = [
    [{}, "internal"],
    [{ status: 400 }, "internal"],
    [{ status: 401 }, "unauthorized"],
    [{ status: 403 }, "unauthorized"],
    [{ status: 429, recoverable: true }, "rate_limited"],
    [{ status: 503, recoverable: true }, "overloaded"],
    [{ status: 529 }, "overloaded"],
    [{ status: 500 }, "unavailable"],
    [{ recoverable: true }, "unavailable"],
    [{ status: 413, overflow: true }, "context"],
    [{ status: 429, code: "unavailable" }, "unavailable"],
  ];
  for (const [options, code] of codes) assertEquals(new ModelError("No.", options).code, code);
});

Deno.test("instanceof recognizes a ModelError of another copy of the package, and nothing else", async () => {
  const copy: { readonly ModelError: typeof ModelError } = await import(
    new URL("../../src/model/model.ts?copy", import.meta.url).href
  );
  class Mine extends ModelError {}
  const foreign = new copy.ModelError("No.");
  assertEquals(copy.ModelError === ModelError, false);
  assertEquals([foreign instanceof ModelError, new Mine("No.") instanceof copy.ModelError], [true, true]);
  assertEquals([foreign instanceof Mine, new ModelError("No.") instanceof Mine, new Mine("No.") instanceof Mine], [
    false,
    false,
    true,
  ]);
  const others: readonly unknown[] = [null, undefined, "ModelError", new Error("No."), { name: "ModelError" }];
  assertEquals(others.filter((value) => value instanceof ModelError), []);
});
