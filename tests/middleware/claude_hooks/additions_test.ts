import { agent, compacted, memory, type Middleware, ModelError, serve, user } from "@jizai/jizai";
import {
  claude_hooks,
  type ClaudeHooksOptions,
  type HookConfig,
  type HookEvent,
  type HookInput,
} from "@jizai/jizai/middleware/claude_hooks";
import { collect, scripted } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { compacting } from "../../support/compacting.ts";
import { command, ownFields, shell, warnings } from "../../support/hooked.ts";
import { eventsOf, first, post } from "../../support/requests.ts";

const claude: ClaudeHooksOptions = { dialect: "claude" };

/** Hooks that record the fields `pick` selects of each input of these events, and answer with `output`. */
function recording(names: readonly HookEvent[], pick: (input: HookInput) => unknown, output: object = {}) {
  const seen: unknown[] = [];
  const hook = (input: HookInput) => {
    seen.push(pick(input));
    return output;
  };
  const config = Object.fromEntries(names.map((name) => [name, [{ hooks: [hook] }]])) as HookConfig;
  return { seen, config };
}

function field(name: string) {
  return (input: HookInput) => (input as unknown as Record<string, unknown>)[name];
}

Deno.test("Claude: StopFailure has a kind for each failure of a model, of its provider and of the account", async () => {
  const failures: readonly (readonly [ConstructorParameters<typeof ModelError>, string])[] = [
    [["Cannot ask m: 529 Overloaded", { status: 529 }], "overloaded"],
    [["Cannot ask m: 503", { status: 503 }], "overloaded"],
    [["Cannot ask m: overloaded_error", { code: "overloaded" }], "overloaded"],
    [["Cannot ask m: 500", { status: 500 }], "server_error"],
    [["Cannot ask m: 404 model: m", { status: 404 }], "model_not_found"],
    [["Cannot ask m: 400", { status: 400 }], "invalid_request"],
    [["Cannot ask m: 429", { status: 429 }], "rate_limit"],
    [["Cannot ask m: 429 You exceeded your quota", { status: 429, code: "unavailable" }], "billing_error"],
    [["Cannot ask m: 400 Your credit balance is too low", { status: 400 }], "billing_error"],
    [["Cannot ask m: 402", { status: 402 }], "billing_error"],
    [["Cannot ask m: 401", { status: 401 }], "authentication_failed"],
    [
      ["Cannot ask m: 403 OAuth authentication is currently not allowed for this organization.", { status: 403 }],
      "oauth_org_not_allowed",
    ],
    [["Cannot ask m: 403 Your account is on hold.", { status: 403 }], "account_on_hold"],
    [["Could not load credentials from any providers"], "cloud_credential_error"],
    [["The security token included in the request is expired", { status: 403 }], "cloud_credential_error"],
    [["offline"], "unknown"],
  ];
  for (const [[message, options], kind] of failures) {
    const error = new ModelError(message, options);
    const { seen, config } = recording(["StopFailure"], field("error"));
    const only = { StopFailure: [{ ...config.StopFailure?.[0]!, matcher: kind }] };
    await agent({ model: scripted({ error }), use: [claude_hooks(only, claude)] }).run("Hi").result;
    assertEquals(seen, [kind], message);
  }
});

Deno.test("Claude: an answer that ends at the limit of its length fires StopFailure in place of Stop", async () => {
  const ran = async (finish: "length" | "stop", options: ClaudeHooksOptions) => {
    const { seen, config } = recording(["Stop", "StopFailure"], (input) => [
      input.hook_event_name,
      input.hook_event_name === "StopFailure" && input.error,
    ]);
    await agent({ model: scripted({ text: "Hal", finish }), use: [claude_hooks(config, options)] }).run("Hi").result;
    return seen;
  };
  assertEquals(await ran("length", claude), [["StopFailure", "max_output_tokens"]]);
  assertEquals(await ran("stop", claude), [["Stop", false]]);
  assertEquals(await ran("length", {}), [["Stop", false]]);
});

Deno.test("Claude: inputs have the effort of the last request, once the model was asked", async () => {
  const ran = async (effort: "none" | "minimal" | "xhigh" | undefined, options = claude) => {
    const { seen, config } = recording(["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"], field("effort"));
    const set: Middleware = {
      name: "effort",
      model: (ctx, next) => next(effort ? { request: { options: { ...ctx.request.options, effort } } } : {}),
    };
    const model = scripted({ calls: [command("a", "ls")] }, "Done.");
    await agent({ model, tools: [shell()], use: [set, claude_hooks(config, options)] }).run("Hi").result;
    return seen;
  };
  const level = (level: string) => [undefined, { level }, { level }, { level }];
  assertEquals(await ran("xhigh"), level("xhigh"));
  assertEquals(await ran("minimal"), level("low"));
  const none = [undefined, undefined, undefined, undefined];
  assertEquals([await ran("none"), await ran(undefined), await ran("xhigh", {})], [none, none, none]);
});

Deno.test("Claude: sessionTitle is in later inputs, and clients receive it", async () => {
  const specific = (hookEventName: HookEvent, sessionTitle: string) => ({
    hookSpecificOutput: { hookEventName, sessionTitle },
  });
  const seen: unknown[] = [];
  const config: HookConfig = {
    SessionStart: [{
      hooks: [(input) => {
        seen.push(input.session_title);
        return input.source === "startup" ? specific("SessionStart", "auth") : {};
      }],
    }],
    UserPromptSubmit: [{
      hooks: [(input) => {
        seen.push(input.session_title);
        return input.prompt === "Rename" ? specific("UserPromptSubmit", "login") : {};
      }],
    }],
  };
  const assistant = agent({ model: scripted("One.", "Two.", "Three."), use: [claude_hooks(config, claude)] });
  const titles: unknown[] = [];
  for (const prompt of ["Hi", "Rename", "Bye"]) {
    const { events } = await collect(assistant.run({ session: "s", prompt }));
    titles.push(
      ...events.flatMap((event) => event.type === "data" && event.name === "session_title" ? [event.data] : []),
    );
  }
  assertEquals(seen, [undefined, "auth", "auth", "auth", "login", "login"]);
  assertEquals(titles, ["auth", "login"]);
});

Deno.test("Claude: SessionStart says what resuming costs, and that a session is a fork or was cleared", async () => {
  using time = new FakeTime();
  const { seen, config } = recording(["SessionStart"], ownFields);
  const store = memory();
  const step = { text: "Hello!", usage: { input: 100, output: 20 } };
  const model = scripted(step, step, step, step);
  const app = serve(agent({ model, use: [claude_hooks(config, claude)] }), { store });
  const run = (session?: string) => eventsOf(post(app, "/runs", { session, prompt: "Hi" }));
  const { session } = first("run.started", await run());
  time.tick(90_000);
  await run(session);
  time.tick(301_000);
  await store.fork(session, "b");
  await run("b");
  await store.fork(session, "c", { at: 0 });
  await run("c");
  const name = { hook_event_name: "SessionStart" };
  const cost = { context_tokens: 120, estimated_cache_write_usd: 0 };
  assertEquals(seen, [
    { ...name, source: "startup" },
    { ...name, source: "resume", seconds_since_last_response: 90, prompt_cache_likely_expired: false, ...cost },
    { ...name, source: "fork", seconds_since_last_response: 301, prompt_cache_likely_expired: true, ...cost },
    { ...name, source: "clear" },
  ]);
});

Deno.test("Claude: a compaction since the last response has likely expired the cache", async () => {
  const { seen, config } = recording(["SessionStart"], field("prompt_cache_likely_expired"));
  const summarizes: Middleware = {
    name: "summarizes",
    compact: ({ transcript }) => Promise.resolve(compacted([user("In short.", "summary"), ...transcript.slice(-1)])),
  };
  const use = [claude_hooks(config, claude), summarizes];
  const app = serve(compacting({ model: scripted("One.", "Two."), use }));
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  await eventsOf(post(app, `/sessions/${session}/compact`, {}));
  await eventsOf(post(app, "/runs", { session, prompt: "Again" }));
  assertEquals(seen.at(-1), true);
});

Deno.test("Claude: UserPromptSubmit says who wrote a prompt, and UserPromptExpansion that it is one of an MCP server", async () => {
  const submitted = recording(["UserPromptSubmit"], field("source"));
  const assistant = agent({ model: scripted("One.", "Two."), use: [claude_hooks(submitted.config, claude)] });
  await assistant.run("Hi").result;
  await assistant.run({ messages: [user("The build is done.", "monitor")] }).result;
  assertEquals(submitted.seen, ["sdk", "system"]);

  const expanded = recording(
    ["UserPromptExpansion"],
    (input) =>
      input.hook_event_name === "UserPromptExpansion" &&
      [input.expansion_type, input.command_name, input.command_args, input.command_source],
  );
  const other = agent({ model: scripted("One.", "Two."), use: [claude_hooks(expanded.config, claude)] });
  await other.run("/mcp__github__list_prs open").result;
  await other.run("/review 12").result;
  assertEquals(expanded.seen, [
    ["mcp_prompt", "mcp__github__list_prs", "open", "mcp"],
    ["slash_command", "review", "12", undefined],
  ]);
});

Deno.test("Claude: a warning says that PreSkillShellCommand does not occur", async () => {
  const use = [claude_hooks({ PreSkillShellCommand: [{ hooks: [() => ({})] }] }, claude)];
  const { events } = await collect(agent({ model: scripted("Hello!"), use }).run("Hi"));
  assertEquals(warnings(events), ["Hooks of PreSkillShellCommand never run: the event does not occur here."]);
});
