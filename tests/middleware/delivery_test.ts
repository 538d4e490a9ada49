import { assertEquals } from "@std/assert";
import { agent, failed, text, tool, ToolError, type ToolResult } from "@jizai/jizai";
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
