import { agent, type AnyTool, memory, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { tokenCap } from "../support/token_cap.ts";

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen." });
const send = tool({ name: "send", description: "Sends", input: z.object({}), ask: true, execute: () => "Sent." });

/** Returns an agent whose requests use two tokens each. Its cap is one line of `use`. */
function capped(tools: readonly AnyTool[], ...calls: readonly string[]) {
  const model = scripted(...calls.map((name) => ({ calls: [[name, {}]] }) as const), "Done.");
  return {
    model,
    assistant: agent({
      model,
      tools,
      use: [
        tokenCap(4),
      ],
    }),
  };
}

Deno.test("a feature in one file and one line ends a run after its tokens are used", async () => {
  const { model, assistant } = capped([look], "look", "look");
  const { status, reason, usage } = await assistant.run("Hi").result;
  assertEquals([status, reason, usage, model.requests.length], [
    "limit",
    "4 tokens are used",
    { input: 2, output: 2 },
    2,
  ]);
});

Deno.test("a run below the cap finishes", async () => {
  const { text, status } = await capped([look], "look").assistant.run("Hi").result;
  assertEquals([text, status], ["Done.", "done"]);
});

Deno.test("the cap counts the tokens from before a pause", async () => {
  const { model, assistant } = capped([look, send], "look", "send");
  const store = memory();
  const paused = await assistant.run({ session: "s", prompt: "Hi", store }).result;
  assertEquals(paused.status, "paused");
  const answers = [{ callId: "call_2", type: "approve" }] as const;
  const { reason } = await assistant.resume({ session: "s", store, answers }).result;
  assertEquals([reason, model.requests.length], ["4 tokens are used", 2]);
  assertEquals((await store.load("s"))?.messages.at(-1)?.role, "tool");
});
