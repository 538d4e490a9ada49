/**
 * Promises that a tool or hook forgot to await are refused, and their rejections end neither the process nor the run: nothing else would await them.
 */
import { agent, allow, type Middleware, reply, state, text, tool, type ToolExecutionContext, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertMatch } from "@std/assert";
import * as z from "zod";
import { settled } from "../support/batch.ts";

/** A query that fails, in place of its result. */
function query(): never {
  return Promise.reject(new Error("No connection")) as never; // as code without types passes it on
}

/** Runs an agent with a tool and a hook. Returns the status of the run, and the errors that the operator received, once every rejection was noticed. */
async function ran(execute: (ctx: ToolExecutionContext) => unknown, hook: Middleware = {}) {
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: (_, ctx) => execute(ctx) });
  const errors: string[] = [];
  const { status } = await agent({
    model: scripted({ calls: [["look", {}]] }, "Done."),
    tools: [look],
    use: [{ name: "careless", ...hook }],
  }).run({ prompt: "Hi", onError: (error) => errors.push(String(error)) }).result;
  await settled();
  return { status, errors };
}

const kept = state<unknown>("kept", () => 0);

const byTools: Readonly<Record<string, (ctx: ToolExecutionContext) => unknown>> = {
  "two fields of a result": () => ({ user: query(), orders: [query()] }),
  "the text of a result": () => text(query()),
  "a part of a result": () => text([{ type: "text", text: query() }]),
  "the artifacts of a result": () => ({ ...text("Seen."), artifacts: [{ uri: query() }] }),
  "its progress": ({ progress }) => progress({ rows: query() }),
  "an event": ({ emit }) => emit({ type: "data", name: "rows", data: query() }),
  "a state": (ctx) => kept.set(ctx, { rows: query() }),
};

for (const [what, execute] of Object.entries(byTools)) {
  Deno.test(`a promise that rejects in ${what} is an error of the call only`, async () => {
    const { status, errors } = await ran(execute);
    assertEquals([status, errors.length], ["done", 1]);
    assertMatch(errors.join(), /^TypeError: Cannot .*(promise|neither text nor media)/);
  });
}

const byHooks: Readonly<Record<string, Middleware>> = {
  "the context of prompt": { prompt: (_, next) => next({ context: [query()] }) },
  "the whole context": { turn: (_, next) => next({ context: query() }) },
  "the settings": { session: (_, next) => next({ settings: { instructions: query() } }) },
  "a message": { input: (_, next) => next({ messages: [user(query())] }) },
  "a request": { model: (_, next) => next({ request: { options: { seed: query() } } }) },
  "a response": { model: () => Promise.resolve(reply(query())) },
  "the input of a call": { tool: (_, next) => next({ input: { id: query() } }) },
  "an edited input": { approval: () => Promise.resolve(allow({ input: { id: query() } })) },
  "the result of a call": { tool: async (_, next) => ({ ...await next(), parts: [{ type: "text", text: query() }] }) },
  "the reason of an end": {
    prompt(ctx) {
      throw ctx.run.end(query());
    },
  },
};

for (const [what, hook] of Object.entries(byHooks)) {
  Deno.test(`a promise that rejects in ${what} is reported, and the process goes on`, async () => {
    const { errors } = await ran(() => "Seen.", hook);
    assertEquals(errors.length, 1);
    assertMatch(errors.join(), /^TypeError: Cannot .*(promise|Promise)/);
  });
}
