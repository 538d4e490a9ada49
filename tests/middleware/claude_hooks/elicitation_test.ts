import { agent, type Event, memory, type Middleware, type PersonAnswer } from "@jizai/jizai";
import { claude_hooks, type HookConfig } from "@jizai/jizai/middleware/claude_hooks";
import { hookServers } from "@jizai/jizai/kit";
import { mcp } from "@jizai/jizai/middleware/mcp";
import { scripted } from "@jizai/jizai/model/scripted";
import { inputRequired } from "@modelcontextprotocol/server";
import { assertEquals } from "@std/assert";
import { served } from "../../support/mcp_server.ts";

type Fields = Readonly<Record<string, unknown>>;

const requestedSchema = {
  type: "object" as const,
  properties: { nights: { type: "integer" as const }, name: { type: "string" as const } },
  required: ["nights"],
};
const form = inputRequired.elicit({ mode: "form", message: "How many nights?", requestedSchema });
const page = inputRequired.elicitUrl({ message: "Pay", url: "https://pay.example/1" });

/** The outcome of a run whose server asks once. */
interface Asked {
  /** The answers that the server received. */
  readonly received: Fields | undefined;
  /** The inputs of the hooks: their own fields. */
  readonly inputs: readonly Fields[];
  readonly events: readonly Event[];
  /** The number of questions to a person. */
  readonly questions: number;
  readonly errors: readonly string[];
}

/** Returns a hook that records its input, and answers. */
function recording(inputs: Fields[], event: string, output: unknown) {
  return (input: Fields) => {
    const common = /^(session_id|transcript_path|cwd|prompt_id|model|permission_mode|effort)$/;
    inputs.push(Object.fromEntries(Object.entries(input).filter(([name]) => !common.test(name))));
    if (output instanceof Error) throw output;
    const isPlain = output === undefined || Object.hasOwn(Object(output), "decision");
    return isPlain ? output : { hookSpecificOutput: { hookEventName: event, ...Object(output) } };
  };
}

/** Runs a call of a server that asks, with hooks that answer so. `person` answers what is left. */
async function asked(
  hooks: { readonly [event in "Elicitation" | "ElicitationResult"]?: readonly unknown[] },
  { person, requests = { stay: form }, matcher = "hotel", onFailure = "continue" }: {
    readonly person?: PersonAnswer;
    readonly requests?: Record<string, typeof form>;
    readonly matcher?: string;
    readonly onFailure?: "continue" | "block";
  } = {},
): Promise<Asked> {
  let received: Fields | undefined;
  await using server = served((server) => {
    server.registerTool("book", { description: "Books" }, ({ mcpReq: { inputResponses } }) => {
      if (!inputResponses) return inputRequired({ inputRequests: requests });
      received = inputResponses;
      return { content: [{ type: "text", text: "Booked." }] };
    });
  });
  const inputs: Fields[] = [];
  const errors: string[] = [];
  const config = Object.fromEntries(
    Object.entries(hooks).map(([event, outputs]) => [
      event,
      [{ matcher, onFailure, hooks: outputs.map((output) => recording(inputs, event, output)) }],
    ]),
  ) as HookConfig;
  const store = memory();
  const assistant = () =>
    agent({
      model: scripted({ calls: [["mcp__hotel__book", {}]] }, "Done."),
      use: [claude_hooks(config, { dialect: "claude" }), mcp({ servers: { hotel: { url: server.url } } })],
    });
  const onError = (error: unknown) => errors.push(String(error));
  const run = assistant().run({ prompt: "Book", session: "s1", store, onError });
  const events = await Array.fromAsync(run.events);
  const { questions } = await run.result;
  if (person && questions.length > 0) {
    const answers = questions.map(({ callId }) => ({ ...person, callId }));
    const resumed = agent({
      model: scripted("Done."),
      use: [claude_hooks(config, { dialect: "claude" }), mcp({ servers: { hotel: { url: server.url } } })],
    }).resume({ session: "s1", store, answers, onError });
    events.push(...await Array.fromAsync(resumed.events));
  }
  return { received, inputs, events, questions: questions.length, errors };
}

const accept = { action: "accept", content: { nights: 2 } } as const;

Deno.test("a hook of Elicitation answers a form in place of a person", async () => {
  const { received, inputs, questions } = await asked({ Elicitation: [accept] });
  assertEquals([received, questions], [{ stay: accept }, 0]);
  assertEquals(inputs, [{
    hook_event_name: "Elicitation",
    mcp_server_name: "hotel",
    message: "How many nights?",
    mode: "form",
    requested_schema: requestedSchema,
  }]);
});

Deno.test("a hook of Elicitation answers for a page in place of a person", async () => {
  const { received, inputs } = await asked({ Elicitation: [{ action: "accept" }] }, {
    requests: { pay: page as never },
  });
  assertEquals(received, { pay: { action: "accept" } });
  assertEquals(inputs.map(({ mode, url }) => [mode, url]), [["url", "https://pay.example/1"]]);
});

Deno.test("of several hooks of Elicitation, a refusal counts", async () => {
  const rows: readonly (readonly [unknown[], Fields])[] = [
    [[accept, { action: "decline" }, { action: "cancel" }], { action: "decline" }],
    [[{ action: "cancel", content: { nights: 1 } }, accept], { action: "cancel" }],
    [[accept, { decision: "block", reason: "No." }], { action: "decline" }],
    [[accept, { action: "accept", content: { nights: 3 } }, undefined], { action: "accept", content: { nights: 3 } }],
  ];
  for (const [outputs, answer] of rows) {
    assertEquals((await asked({ Elicitation: outputs })).received, { stay: answer });
  }
});

Deno.test("a person is asked where no hook of Elicitation answers, or the server has another name", async () => {
  const answers = [[undefined], [{}], [new Error("down")]];
  for (const outputs of answers) {
    const { received, questions } = await asked({ Elicitation: outputs });
    assertEquals([received, questions], [undefined, 1]);
  }
  assertEquals((await asked({ Elicitation: [accept] }, { matcher: "other" })).questions, 1);
});

Deno.test("a hook of Elicitation that fails and blocks declines", async () => {
  const { received } = await asked({ Elicitation: [new Error("down")] }, { onFailure: "block" });
  assertEquals(received, { stay: { action: "decline" } });
});

Deno.test("an answer of Elicitation that does not fit its form is reported, and a person is asked", async () => {
  for (const content of [{ nights: "two" }, {}, undefined]) {
    const { received, questions, errors } = await asked({ Elicitation: [{ action: "accept", content }] });
    assertEquals([received, questions, errors], [undefined, 1, [
      'Error: Cannot use the answer of a hook to MCP server "hotel": it does not fit the form',
    ]]);
  }
});

Deno.test("a hook may answer one of several questions, and a person the others", async () => {
  const { received, questions } = await asked({
    Elicitation: [undefined],
    ElicitationResult: [undefined],
  }, { requests: { stay: form, name: form }, person: { callId: "", type: "approve", input: { nights: 4 } } });
  const answer = { action: "accept", content: { nights: 4 } };
  assertEquals([received, questions], [{ stay: answer, name: answer }, 2]);
});

const person: PersonAnswer = { callId: "", type: "approve", input: { nights: 1, name: "Ada" } };

Deno.test("a hook of ElicitationResult observes the answer of a person", async () => {
  const { received, inputs } = await asked({ ElicitationResult: [undefined] }, { person });
  const given = { action: "accept", content: { nights: 1, name: "Ada" } };
  assertEquals(received, { stay: given });
  assertEquals(inputs, [{ hook_event_name: "ElicitationResult", mcp_server_name: "hotel", mode: "form", ...given }]);
});

Deno.test("a hook of ElicitationResult changes or refuses the answer of a person", async () => {
  const rows: readonly (readonly [unknown, PersonAnswer, Fields])[] = [
    [{ action: "decline" }, person, { action: "decline" }],
    [{ action: "decline", content: {} }, person, { action: "decline" }],
    [{ decision: "block" }, person, { action: "decline" }],
    [{ content: { nights: 9 } }, person, { action: "accept", content: { nights: 9 } }],
    [{ action: "accept", content: { nights: 9 } }, { callId: "", type: "deny" }, {
      action: "accept",
      content: { nights: 9 },
    }],
    [{ action: "cancel" }, { callId: "", type: "deny" }, { action: "cancel" }],
    [{ action: "accept" }, person, { action: "accept", content: { nights: 1, name: "Ada" } }],
    [{ action: "accept", content: { nights: "all" } }, person, { action: "decline" }],
    [{ action: "accept" }, { callId: "", type: "deny" }, { action: "decline" }],
  ];
  for (const [output, answer, expected] of rows) {
    const { received } = await asked({ ElicitationResult: [output] }, { person: answer });
    assertEquals([output, received], [output, { stay: expected }]);
  }
});

Deno.test("a hook of ElicitationResult is not asked about the answer of a hook, nor Elicitation about that of a person", async () => {
  const byHook = await asked({ Elicitation: [accept], ElicitationResult: [{ action: "decline" }] });
  assertEquals([byHook.received, byHook.inputs.length], [{ stay: accept }, 1]);
  const byPerson = await asked({ Elicitation: [undefined], ElicitationResult: [undefined] }, { person });
  assertEquals(byPerson.inputs.map(({ hook_event_name }) => hook_event_name), ["Elicitation", "ElicitationResult"]);
});

Deno.test("Claude: systemMessage and continue of Elicitation are discarded", async () => {
  const { events, received } = await asked({
    Elicitation: [{ ...accept }, { decision: undefined, systemMessage: "Shown?", continue: false }],
  });
  assertEquals(received, { stay: accept });
  assertEquals(events.filter(({ type }) => type === "notice"), []);
});

Deno.test("hookServers() lets any middleware answer, in order, and declines if one throws", async () => {
  for (const [first, sent] of [[undefined, accept], [new Error("down"), { action: "decline" }]] as const) {
    let received: Fields | undefined;
    await using server = served((server) => {
      server.registerTool("book", { description: "Books" }, ({ mcpReq: { inputResponses } }) => {
        received = inputResponses;
        return inputResponses
          ? { content: [{ type: "text", text: "Booked." }] }
          : inputRequired({ inputRequests: { stay: form } });
      });
    });
    const answering = (answer: typeof accept | Error | undefined): Middleware => ({
      session(ctx, next) {
        const asked = () => answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
        hookServers(ctx, { asked });
        return next();
      },
    });
    const { status } = await agent({
      model: scripted({ calls: [["mcp__hotel__book", {}]] }, "Done."),
      use: [answering(first), answering(accept), mcp({ servers: { hotel: { url: server.url } } })],
    }).run({ prompt: "Book", onError: () => {} }).result;
    assertEquals([received, status], [{ stay: sent }, "done"]);
  }
});
