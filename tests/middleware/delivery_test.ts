import { assertEquals, assertThrows } from "@std/assert";
import { agent, failed, type Middleware, text, tool, ToolError, type ToolResult } from "@jizai/jizai";
import { type Delivery, delivery } from "@jizai/jizai/middleware/delivery";
import { scripted } from "@jizai/jizai/model/scripted";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";

const image = { type: "media", mediaType: "image/png", data: "iVBORw0KGgo=" } as const;

/** Runs a tool that returns `result`. Returns the deliveries. */
async function made(result: ToolResult, deliver: () => void | Promise<void> = () => {}) {
  const draw = tool({ name: "draw", description: "Draws", input: z.object({}), execute: () => result });
  const delivered: Delivery[] = [];
  const errors: unknown[] = [];
  const assistant = agent({
    model: scripted({ calls: [["draw", {}]] }, "So be it."),
    tools: [draw],
    use: [delivery((what) => {
      delivered.push(what);
      return deliver();
    })],
  });
  const { status, messages } = await assistant.run({ prompt: "Draw", onError: (error) => errors.push(error) }).result;
  return { status, transcript: lines(messages).slice(2), delivered, errors };
}

Deno.test("delivery() delivers a handled result, and the model is not asked again", async () => {
  const artifacts = [{ uri: "s3://charts/1", name: "Chart" }];
  const { status, transcript, delivered } = await made({ ...text([image]), artifacts, handled: true });
  assertEquals([status, transcript], ["done", ["ok"]]);
  assertEquals(delivered, [{ callId: "call_1", tool: "draw", parts: [image], artifacts }]);
});

Deno.test("delivery() ignores results that are not handled or failed", async () => {
  for (const result of [text("Drawn"), { ...failed("No ink"), handled: true }]) {
    const { transcript, delivered } = await made(result);
    assertEquals([transcript.at(-1), delivered], ["assistant So be it.", []]);
  }
});

Deno.test("delivery() delivers a result once if a hook outside pauses the run afterwards", async () => {
  const result = { ...text([image]), handled: true };
  const draw = tool({ name: "draw", description: "Draws", input: z.object({}), execute: () => result });
  const delivered: string[] = [];
  const review: Middleware = {
    name: "review",
    async tool(ctx, next) {
      const result = await next();
      if (ctx.resumed) return result;
      throw ctx.run.pause("Is it good?");
    },
  };
  const assistant = agent({
    model: scripted({ calls: [["draw", {}], ["draw", {}]] }),
    tools: [draw],
    use: [review, delivery(({ callId }) => void delivered.push(callId))],
  });
  const { session } = await assistant.run("Draw").result;
  const { status, messages } = await assistant.resume({ session, answers: [] }).result;
  assertEquals([status, ...lines(messages).slice(2)], ["done", "ok", "ok"]);
  assertEquals(delivered, ["call_1", "call_2"]);
});

Deno.test("two deliveries of one agent have two names, and each delivers the result", async () => {
  const result = { ...text([image]), handled: true };
  const draw = tool({ name: "draw", description: "Draws", input: z.object({}), execute: () => result });
  const made: string[] = [];
  const to = (name: string) => delivery(() => void made.push(name), { name });
  const start = (...use: readonly Middleware[]) =>
    agent({ model: scripted({ calls: [["draw", {}]] }), tools: [draw], use }).run("Draw");
  await start(to("mail"), to("chat")).result;
  assertEquals(made, ["chat", "mail"]);
  assertThrows(
    () => start(to("mail"), to("mail")),
    TypeError,
    'Cannot use "mail" with two middleware named "mail": expected one, give one another name',
  );
});

Deno.test("a failed delivery is an error result, with the message of a ToolError", async () => {
  const secret = new Error("smtp://user:password@mail");
  const thrown = () => {
    throw secret;
  };
  const internal = await made({ ...text([image]), handled: true }, thrown);
  assertEquals(internal.transcript, ["error The result of draw could not be delivered.", "assistant So be it."]);
  assertEquals(internal.errors, [secret]);
  const reported = await made(
    { ...text([image]), handled: true },
    () => Promise.reject(new ToolError("The box is full")),
  );
  assertEquals(reported.transcript[0], "error The result of draw could not be delivered: The box is full");
});
