/**
 * Guards decide about the input that runs: after the tool's schema, which may trim, convert, complete, rename or drop what the model wrote.
 */
import { agent, allow, deny, memory, type Middleware, tool } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { human } from "@jizai/jizai/middleware/human";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { terminal } from "@jizai/jizai/middleware/terminal";
import { yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import * as z from "zod";

/** Schemas, each with an input that becomes `{ path: "secret" }`. */
const schemas = {
  trims: [z.object({ path: z.string().trim() }), { path: " secret\n" }],
  lowers: [z.object({ path: z.string().toLowerCase() }), { path: "Secret" }],
  coerces: [z.object({ path: z.coerce.string() }), { path: ["secret"] }],
  completes: [z.object({ path: z.string().default("secret") }), {}],
  drops: [z.object({ path: z.string() }), { path: "secret", more: "open" }],
  renames: [
    z.preprocess((given) => ({ path: Object(given).file ?? Object(given).path }), z.object({ path: z.string() })),
    { file: "secret" },
  ],
  transforms: [z.object({ path: z.string().transform((path) => path.replaceAll("*", "")) }), { path: "sec*ret" }],
  waits: [z.object({ path: z.string().refine(async () => await true).trim() }), { path: "secret " }],
} as const;

function isSecret(input: unknown): boolean {
  return JSON.stringify(input) === '{"path":"secret"}';
}

/** Guards that deny `{ path: "secret" }` and nothing else. */
const guards: Readonly<Record<string, () => Middleware>> = {
  "a guard that reads ctx.input": () => ({
    name: "guard",
    approval: async (ctx, next) => isSecret(ctx.input) ? deny("It is secret.") : await next(),
  }),
  "permissions()": () => permissions({ deny: [{ tool: "*", when: isSecret }] }),
  "human()": () => human(({ input }) => !isSecret(input)),
  "terminal()": () => human(terminal((text) => Promise.resolve(/\{\s*"path": "secret"\s*\}/.test(text) ? "n" : "y"))),
  "PreToolUse of claude_hooks()": () =>
    claude_hooks({ PreToolUse: [{ hooks: [({ tool_input }) => isSecret(tool_input) ? { decision: "block" } : {}] }] }),
  "PermissionRequest of claude_hooks()": () =>
    claude_hooks({
      PermissionRequest: [{
        hooks: [({ tool_input }) => ({
          hookSpecificOutput: {
            hookEventName: "PermissionRequest",
            decision: { behavior: isSecret(tool_input) ? "deny" : "allow" },
          },
        })],
      }],
    }),
  "canUseTool of claude_hooks()": () =>
    claude_hooks({}, {
      canUseTool: (_, input) => Promise.resolve({ behavior: isSecret(input) ? "deny" : "allow", message: "No." }),
    }),
  "copilot_hooks()": () =>
    copilot_hooks({ onPreToolUse: ({ toolArgs }) => ({ permissionDecision: isSecret(toolArgs) ? "deny" : "allow" }) }),
  "copilot_hooks() without groups": () =>
    copilot_hooks(
      { onPreToolUse: ({ toolArgs }) => ({ permissionDecision: isSecret(toolArgs) ? "deny" : "allow" }) },
      { groups: false },
    ),
  "before_tool of rpc_hooks()": () => rpc({ before_tool: "deny_tool" }),
  "approve_tool of rpc_hooks()": () => rpc({ approve_tool: "deny" }),
  "yoi_hooks()": () =>
    yoi_hooks({ pre_tool_call: ({ call }) => isSecret(call.input) ? { Abort: "It is secret." } : "Continue" }),
};

function rpc(methods: { readonly [method: string]: string }): Middleware {
  const answer = (method: string) => (params: unknown) => {
    const isDenied = isSecret(Object(params).arguments);
    return method === "approve_tool" ? { approved: !isDenied } : { action: isDenied ? "deny_tool" : "continue" };
  };
  const hook = Object.fromEntries(Object.keys(methods).map((method) => [method, answer(method)]));
  return rpc_hooks({ builtins: { a: { enabled: true } } }, { builtins: { a: () => hook } });
}

for (const [guard, create] of Object.entries(guards)) {
  Deno.test(`${guard} decides about the input that runs`, async () => {
    for (const [name, [input, given]] of Object.entries(schemas)) {
      const ran: unknown[] = [];
      const read = tool({
        name: "read",
        description: "",
        input: input as z.ZodType,
        ask: true,
        execute: (input) => void ran.push(input),
      });
      const calls = [["read", given], ["read", { path: "open" }]] as const;
      const assistant = agent({ model: scripted({ calls }, "Done."), tools: [read], use: [create()] });
      const options = { session: "s", store: memory() };
      let result = await assistant.run({ ...options, prompt: "Go", onError: () => {} }).result;
      while (result.status === "paused") { // a hook that only denies leaves the question of the tool
        const answers = result.questions.map(({ callId }) => ({ type: "approve", callId }) as const);
        result = await assistant.resume({ ...options, answers }).result;
      }
      assertEquals(ran, guard === "yoi_hooks()" ? [] : [{ path: "open" }], name); // Abort ends the run
    }
  });
}

Deno.test("a question shows the input that runs, and the person's word counts for it", async () => {
  for (const [name, [input, given]] of Object.entries(schemas)) {
    const ran: unknown[] = [];
    const read = tool({
      name: "read",
      description: "",
      input: input as z.ZodType,
      execute: (input) => void ran.push(input),
    });
    const use = [permissions({ ask: [{ tool: "read", when: isSecret }] })];
    const assistant = agent({ model: scripted({ calls: [["read", given]] }, "Done."), tools: [read], use });
    const options = { session: "s", store: memory() };
    const { questions } = await assistant.run({ ...options, prompt: "Go" }).result;
    assertEquals([questions.map(({ input }) => input), ran], [[{ path: "secret" }], []], name);
    const [{ callId } = {}] = questions;
    await assistant.resume({ ...options, answers: [{ type: "approve", callId }] }).result;
    assertEquals(ran, [{ path: "secret" }], name);
  }
});

Deno.test("a guard that allows the input as it is, before or after the schema, changes nothing", async () => {
  const ran: unknown[] = [];
  const add = tool({
    name: "add",
    description: "",
    input: z.object({ n: z.string().transform(Number) }),
    execute: (input) => void ran.push(input),
  });
  const verdicts: readonly Middleware["approval"][] = [
    (ctx) => Promise.resolve(allow({ input: ctx.input })),
    (ctx) => Promise.resolve(allow({ input: ctx.unparsed })),
    () => Promise.resolve(allow({ input: { n: "1" } })),
  ];
  for (const approval of verdicts) {
    const guard = { name: "guard", ...(approval && { approval }) };
    await agent({ model: scripted({ calls: [["add", { n: "1" }]] }, "Done."), tools: [add], use: [guard] }).run("Go")
      .result;
  }
  assertEquals(ran, [{ n: 1 }, { n: 1 }, { n: 1 }]);
});

Deno.test("a hook that changes an input is asked about it once, although the schema completes the input", async () => {
  const input = z.object({ command: z.string(), seconds: z.number().default(5) });
  const changed = (given: unknown) => ({ ...Object(given), command: `safe ${Object(given).command}` });
  const systems: Readonly<Record<string, (ask: (given: unknown) => unknown) => Middleware>> = {
    claude: (ask) =>
      claude_hooks({
        PreToolUse: [{
          hooks: [({ tool_input }) => ({
            hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput: ask(tool_input) as never },
          })],
        }],
      }),
    copilot: (ask) => copilot_hooks({ onPreToolUse: ({ toolArgs }) => ({ modifiedArgs: ask(toolArgs) as never }) }),
    ungrouped: (ask) =>
      copilot_hooks({ onPreToolUse: ({ toolArgs }) => ({ modifiedArgs: ask(toolArgs) as never }) }, { groups: false }),
    yoi: (ask) =>
      yoi_hooks({
        pre_tool_call: (draft) => {
          draft.call = { ...draft.call, input: ask(draft.call.input) };
          return "Continue";
        },
      }),
  };
  for (const [name, create] of Object.entries(systems)) {
    const ran: unknown[] = [];
    const seen: unknown[] = [];
    const run = tool({ name: "run", description: "", input, execute: (input) => void ran.push(input) });
    const use = [create((given) => (seen.push(given), changed(given)))];
    const model = scripted({ calls: [["run", { command: "ls" }]] }, "Done.");
    await agent({ model, tools: [run], use }).run("Go").result;
    assertEquals(ran, [{ command: "safe ls", seconds: 5 }], name);
    const isUngrouped = name === "ungrouped"; // it is asked before the schema is known, and again about what runs
    const again = { command: "safe ls", seconds: 5 };
    assertEquals(seen, isUngrouped ? [{ command: "ls" }, again] : [{ command: "ls", seconds: 5 }], name);
  }
});

Deno.test("each copilot_hooks() decides about the input that another one leaves, also without groups", async () => {
  for (const groups of [true, false]) {
    const ran: unknown[] = [];
    const run = tool({
      name: "run",
      description: "",
      input: z.object({ n: z.coerce.number() }),
      execute: (input) => void ran.push(input),
    });
    const denies = copilot_hooks(
      { onPreToolUse: ({ toolArgs }) => Object(toolArgs).n === 2 ? { permissionDecision: "deny" } : {} },
      { groups },
    );
    const changes = copilot_hooks({
      onPreToolUse: ({ toolArgs }) => Object(toolArgs).n === 1 ? { modifiedArgs: { n: "2" } } : {},
    }, { groups });
    for (const use of [[denies, changes], [changes, denies]]) {
      await agent({ model: scripted({ calls: [["run", { n: "1" }]] }, "Done."), tools: [run], use }).run("Go").result;
    }
    assertEquals(ran, [], `groups: ${groups}`);
  }
});
