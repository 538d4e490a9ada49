import { agent, type Message, type Scope, textOf, tool } from "@jizai/jizai";
import { inject } from "@jizai/jizai/middleware/inject";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Nothing." });

/** A model that makes a call, and then answers. */
const looking = () => scripted({ calls: [["look", {}]] }, "Done.");

const asked = ({ requests }: { readonly requests: readonly { readonly messages: readonly Message[] }[] }) =>
  requests.map(({ messages }) => lines(messages));

Deno.test("inject() adds context to each turn after the messages, and does not keep it", async () => {
  const model = looking();
  const assistant = agent({ model, tools: [look], use: [inject(({ index }) => `Turn ${index}.`)] });
  const { messages } = await assistant.run("Go").result;
  assertEquals(asked(model), [
    ["user Go", "turn Turn 1."],
    ["user Go", "call look", "ok Nothing.", "turn Turn 2."],
  ]);
  assertEquals(lines(messages), ["user Go", "call look", "ok Nothing.", "assistant Done."]);
});

Deno.test("several inject() add one message, the outermost first", async () => {
  const model = scripted("Done.");
  await agent({ model, use: [inject("One."), inject(async () => await Promise.resolve("Two."))] }).run("Go").result;
  const [request] = model.requests;
  assertEquals(request?.messages.map((message) => message.role === "user" && message.parts), [
    [{ type: "text", text: "Go" }],
    [{ type: "text", text: "One." }, { type: "text", text: "Two." }],
  ]);
});

Deno.test("inject() adds no message for an empty text", async () => {
  const model = looking();
  const use = [inject(""), inject(() => undefined), inject(({ index }) => index === 2 ? "At last." : "")];
  await agent({ model, tools: [look], use }).run("Go").result;
  assertEquals(asked(model), [["user Go"], ["user Go", "call look", "ok Nothing.", "turn At last."]]);
});

Deno.test("inject() passes the transcript and the vars", async () => {
  const model = scripted("Done.");
  const assistant = agent({
    model,
    use: [
      inject(({ vars }: Scope<{ user: string }>) => `I am ${vars.user}.`),
      inject(({ transcript }) =>
        `You said: ${transcript.map((message) => message.role === "user" && textOf(message))}`
      ),
    ],
  });
  await assistant.run({ prompt: "Hi", vars: { user: "Ada" } }).result;
  assertEquals(asked(model), [["user Hi", "turn I am Ada.You said: Hi"]]);
});

Deno.test("inject() adds nothing to a resumed turn", async () => {
  const turns: number[] = [];
  const model = looking();
  let pauses = 1;
  const assistant = agent({
    model,
    tools: [look],
    use: [
      inject(({ index }) => {
        turns.push(index);
        return `Turn ${index}.`;
      }),
      {
        name: "pausing",
        tool(ctx, next) {
          if (pauses-- > 0) throw ctx.run.pause("Wait.");
          return next();
        },
      },
    ],
  });
  const { session } = await assistant.run("Go").result;
  assertEquals((await assistant.resume({ session, answers: [] }).result).status, "done");
  assertEquals(turns, [1, 2]);
  assertEquals(asked(model), [
    ["user Go", "turn Turn 1."],
    ["user Go", "call look", "ok Nothing.", "turn Turn 2."],
  ]);
});

Deno.test("inject() fails the turn if its function throws", async () => {
  const model = scripted("Done.");
  const broken = new Error("no context");
  const assistant = agent({
    model,
    use: [inject(() => {
      throw broken;
    })],
  });
  const { status, error } = await assistant.run("Go").result;
  assertEquals([status, error, model.requests], ["failed", broken, []]);
});

Deno.test("inject() obeys the laws of middleware", async () => {
  await testMiddleware(() => inject("More."));
});
