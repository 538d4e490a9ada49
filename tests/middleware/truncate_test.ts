import { agent, type ContentPart, failed, type Middleware, text, textOf, tool, type ToolResult } from "@jizai/jizai";
import { truncate } from "@jizai/jizai/middleware/truncate";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";

/** Returns the text that the model reads of a tool that returns `output`. */
async function readByModel(output: unknown, ...use: readonly Middleware[]): Promise<readonly ContentPart[]> {
  const show = tool({ name: "show", description: "", input: z.object({}), execute: () => output });
  const model = scripted({ calls: [["show", {}]] }, "Done.");
  const { messages } = await agent({ model, tools: [show], use }).run("Go").result;
  return messages.flatMap((message) => message.role === "tool" ? message.results.flatMap(({ parts }) => parts) : []);
}

/** The same, as text. */
async function shown(output: unknown, ...use: readonly Middleware[]): Promise<string> {
  return textOf({ parts: await readByModel(output, ...use) });
}

Deno.test("truncate() obeys the laws of middleware", async () => {
  await testMiddleware(() => truncate({ limit: 40, head: 2, tail: 2 }));
});

Deno.test("truncate() keeps the beginning and the end, and states how much it left out", async () => {
  const output = `abc${"-".repeat(95)}yz`;
  const use = truncate({ limit: 99, head: 3, tail: 2 });
  assertEquals(await shown(output, use), "abc\n\n[... OMITTED 95 chars ...]\n\nyz");
});

Deno.test("truncate() keeps a text up to the limit", async () => {
  const use = truncate({ limit: 100, head: 3, tail: 2 });
  for (const length of [0, 1, 99, 100]) assertEquals(await shown("x".repeat(length), use), "x".repeat(length));
});

Deno.test("truncate() keeps a text that would not become shorter", async () => {
  assertEquals(await shown("x".repeat(101), truncate({ limit: 100, head: 50, tail: 50 })), "x".repeat(101));
});

Deno.test("truncate() keeps half and a quarter of the limit by default", async () => {
  const output = `${"a".repeat(5_000)}${"-".repeat(2_501)}${"z".repeat(2_500)}`;
  const cut = `${"a".repeat(5_000)}\n\n[... OMITTED 2501 chars ...]\n\n${"z".repeat(2_500)}`;
  assertEquals(await shown(output, truncate()), cut);
  assertEquals(await shown(cut, truncate()), cut);
});

Deno.test("truncate() can keep only one end, or none", async () => {
  const output = `abc${"-".repeat(95)}yz`;
  const marker = (omitted: number) => `\n\n[... OMITTED ${omitted} chars ...]\n\n`;
  assertEquals(await shown(output, truncate({ limit: 10, head: 3, tail: 0 })), `abc${marker(97)}`);
  assertEquals(await shown(output, truncate({ limit: 10, head: 0, tail: 2 })), `${marker(98)}yz`);
  assertEquals(await shown(output, truncate({ limit: 0 })), marker(100));
});

Deno.test("truncate() never splits a surrogate pair", async () => {
  const use = truncate({ limit: 10, head: 3, tail: 3 });
  assertEquals(await shown("😀".repeat(50), use), "😀\n\n[... OMITTED 96 chars ...]\n\n😀");
});

Deno.test("truncate() shortens each text separately, and keeps media", async () => {
  const media = { type: "media", mediaType: "image/png", data: "A".repeat(200) } as const;
  const long = { type: "text", text: "x".repeat(100) } as const;
  const short = { type: "text", text: "short" } as const;
  const cut = { type: "text", text: "xx\n\n[... OMITTED 96 chars ...]\n\nxx" } as const;
  const use = truncate({ limit: 50, head: 2, tail: 2 });
  assertEquals(await readByModel(text([long, media, short, long]), use), [cut, media, short, cut]);
});

Deno.test("truncate() shortens error results, and answers of hooks", async () => {
  const use = truncate({ limit: 50, head: 2, tail: 2 });
  const cut = "xx\n\n[... OMITTED 96 chars ...]\n\nxx";
  assertEquals(await shown(failed("x".repeat(100)), use), cut);
  const answering: Middleware = { name: "answering", tool: () => Promise.resolve(text("x".repeat(100))) };
  assertEquals(await shown("", use, answering), cut);
});

Deno.test("truncate() shows the whole result to inner hooks, and the shortened one to outer hooks", async () => {
  const lengths: Record<string, number> = {};
  const measure = (name: string): Middleware => ({
    name,
    async tool(_, next) {
      const result: ToolResult = await next();
      lengths[name] = textOf(result).length;
      return result;
    },
  });
  await shown("x".repeat(100), measure("before"), truncate({ limit: 50, head: 2, tail: 2 }), measure("after"));
  assertEquals(lengths, { after: 100, before: 34 });
});

Deno.test("truncate() throws for lengths that do not fit", () => {
  for (const options of [{ limit: 10, head: 6, tail: 5 }, { head: -1 }, { tail: 1.5 }, { limit: NaN }, { limit: -1 }]) {
    assertThrows(() => truncate(options), RangeError, "Cannot create truncate()");
  }
});
