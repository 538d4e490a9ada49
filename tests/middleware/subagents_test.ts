import { assertEquals, assertThrows } from "@std/assert";
import { agent } from "@jizai/jizai";
import { subagents } from "@jizai/jizai/middleware/subagents";
import { scripted } from "@jizai/jizai/model/scripted";
import { lines } from "../support/transcript_lines.ts";

Deno.test("subagents() adds each agent with its name and description", async () => {
  const reader = agent({ name: "reader", description: "Reads", model: scripted("Read.") });
  const writer = agent({ name: "writer", description: "Writes", model: scripted("Written.") });
  const model = scripted({ calls: [["writer", { prompt: "W" }], ["reader", { prompt: "R" }]] }, "Done.");
  const { messages } = await agent({ model, use: [subagents([reader, writer])] }).run("Go").result;
  assertEquals(lines(messages), ["user Go", "call writer reader", "ok Written.", "ok Read.", "assistant Done."]);
  assertEquals(model.requests[0]?.tools.map(({ name, description }) => [name, description]), [
    ["reader", "Reads"],
    ["writer", "Writes"],
  ]);
});

Deno.test("subagents() throws for invalid and duplicate names", () => {
  const child = (name: string) => agent({ name, model: scripted() });
  assertThrows(() => subagents([child("a b")]), TypeError, `Cannot create tool "a b"`);
  const both = subagents([child("a"), child("a")]);
  assertThrows(() => agent({ model: scripted(), use: [both] }), TypeError, `"subagents" has two tools "a"`);
});
