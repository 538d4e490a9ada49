/**
 * Handlers in settings files: outputs of commands, `http`, `prompt`, `agent` and `mcp_tool`, and `CLAUDE_ENV_FILE`.
 */
import { agent, type ModelChange, type ModelContext, type ModelResponse, type Next } from "@jizai/jizai";
import {
  command_hooks,
  type CommandHooksOptions,
  type CommandSettings,
  type HandlerConfig,
} from "@jizai/jizai/middleware/command_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertThrows } from "@std/assert";
import { batch, type Outcome } from "../support/batch.ts";
import { command, notices, shell, warnings } from "../support/hooked.ts";
import { lines } from "../support/transcript_lines.ts";
import { folder } from "./folder.ts";

interface Options extends CommandHooksOptions {
  readonly calls?: Parameters<typeof batch>[0];
  readonly tools?: readonly ReturnType<typeof shell>[];
}

/** The outcome of one call of `Bash` with handlers of one event. */
async function ran(
  event: string,
  handlers: readonly (string | HandlerConfig)[],
  { calls = [command("a", "ls")], tools = [shell()], ...options }: Options = {},
): Promise<Outcome> {
  const hooks = handlers.map((each): HandlerConfig =>
    typeof each === "string" ? { type: "command", command: each } : each
  );
  const use = [command_hooks({ hooks: { [event]: [{ hooks }] } }, options)];
  return await batch(calls, { tools, use }).run().outcome;
}

const claude = { dialect: "claude" } as const;
const decides = (permissionDecision: string) =>
  JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision } });

Deno.test("Claude: standard output is JSON only if all of it is one object, except a deny", async () => {
  const outcome = async (output: string, event = "PreToolUse") => {
    const { lines, result, events } = await ran(event, [
      `printf '%s\\n' ${output.split("\n").map((line) => `'${line}'`).join(" ")}`,
    ], {
      ...claude,
      tools: [shell({ ask: true })],
    });
    return [event === "PreToolUse" ? lines[1] ?? result.status : lines[0], ...warnings(events)];
  };
  assertEquals(await outcome(decides("allow")), ["ok ran ls"]);
  assertEquals(await outcome(`ready\n${decides("allow")}`), ["paused"]);
  assertEquals(await outcome(`ready\n${decides("deny")}`), ["denied Blocked by a hook."]); // text loses an allow, not a deny
  assertEquals(await outcome("{oops}"), ["paused"]);
  assertEquals(await outcome("{oops}", "UserPromptSubmit"), ["prompt {oops}"]);
  assertEquals(await outcome(`On main\n{}`, "UserPromptSubmit"), ["prompt On main\n{}"]);
});

Deno.test("Claude: a command that fails allows nothing, and a deny counts with any exit code", async () => {
  const outcome = async (output: string, code: number) => {
    const { lines, result } = await ran("PreToolUse", [`echo '${output}'; exit ${code}`], {
      ...claude,
      tools: [shell({ ask: true })],
    });
    return lines[1] ?? result.status;
  };
  assertEquals(await outcome(decides("allow"), 1), "paused");
  assertEquals(await outcome(decides("deny"), 1), "denied Blocked by a hook.");
  assertEquals(await outcome(decides("allow"), 2), "denied Blocked by a hook.");
});

Deno.test("Claude: exit code 2 has no effect at PermissionRequest, PermissionDenied and Notification", async () => {
  const no = ["echo Because. >&2; exit 2"];
  const tools = [shell({ ask: true })];
  for (const event of ["PermissionRequest", "Notification", "PermissionDenied"]) {
    const { result, events } = await ran(event, no, { ...claude, tools });
    assertEquals([result.status, notices(events), warnings(events)], ["paused", [], []]);
  }
  assertEquals((await ran("UserPromptSubmit", no, claude)).result.reason, "Because.");
});

Deno.test("Claude: systemMessage of an asynchronous command goes to the model", async () => {
  const output = { systemMessage: "Tests fail." };
  const hook = { type: "command", command: `echo '${JSON.stringify(output)}'`, async: true } as const;
  const reported = async (dialect: "qoder" | "claude") => {
    const tools = [shell({ execute: () => new Promise((resolve) => setTimeout(() => resolve("ran"), 300)) })];
    const use = [command_hooks({ hooks: { PreToolUse: [{ hooks: [hook] }] } }, { dialect })];
    const handle = batch([command("a")], { tools, use });
    const { events } = await handle.run().outcome;
    return [notices(events), lines(handle.model.requests[1]?.messages ?? []).slice(3)];
  };
  assertEquals(await reported("claude"), [[], ["turn Tests fail."]]);
  assertEquals(await reported("qoder"), [["Tests fail."], []]);
});

Deno.test("Claude: if runs the hook for commands that cannot be evaluated without a shell, and for paths relative to the directory", async () => {
  const hook = { type: "command", command: "exit 2", if: "Bash(git *)" } as const;
  const commands = ["$CMD push", "x=$(cat cmd); $x", "`cat cmd`", 'echo "open', "echo 'git push'", "ls"];
  const calls = commands.map((text, index) => command(String(index), text));
  const { lines } = await ran("PreToolUse", [hook], { ...claude, calls });
  const denied = ["denied", "denied", "denied", "denied", "ok", "ok"];
  assertEquals(lines.slice(1, 7).map((line) => line.split(" ")[0]), denied);
});

Deno.test("Claude: CLAUDE_ENV_FILE sets variables for the later commands of the session", async () => {
  await using disk = await folder();
  const cwd = await Deno.realPath(disk.path);
  const settings = {
    hooks: {
      SessionStart: [{
        hooks: [{ type: "command", command: `echo 'export MOOD="very good" TWO=2' >> "$CLAUDE_ENV_FILE"` }],
      }],
      UserPromptSubmit: [{ hooks: [{ type: "command", command: 'echo "$MOOD $TWO ${CLAUDE_ENV_FILE:-none}"' }] }],
    },
  } as const;
  const use = [command_hooks(settings, { ...claude, cwd, temporary: cwd })];
  const assistant = agent({ model: scripted("One.", "Two."), use });
  const { messages } = await assistant.run({ prompt: "Hi", session: "s" }).result;
  assertEquals(lines(messages)[1], "prompt very good 2 none");
  assertEquals([...Deno.readDirSync(cwd)].map(({ name }) => name), []);
  const repeated = await assistant.run({ prompt: "Hi", session: "s" }).result;
  assertEquals(lines(repeated.messages).filter((line) => line === "prompt very good 2 none").length, 2);
});

/** A server that answers every request with `answer`, and records the requests. */
function server(answer: () => Response) {
  const requests: unknown[] = [];
  const listening = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    requests.push([request.method, request.headers.get("authorization"), await request.json()]);
    return answer();
  });
  const url = `http://127.0.0.1:${listening.addr.port}/hook`;
  return { requests, url, [Symbol.asyncDispose]: () => listening.shutdown() };
}

Deno.test("Claude: an http handler posts the input and reads the body like the output of a command", async () => {
  let answer = () => new Response(decides("deny"));
  await using home = server(() => answer());
  const headers = { authorization: "Bearer $TOKEN $SECRET" };
  const hook = { type: "http", url: home.url, headers, allowedEnvVars: ["TOKEN"] } as const;
  const options = { ...claude, env: { TOKEN: "t", SECRET: "s" }, http: { privateAddresses: true } };
  const { lines, result } = await ran("PreToolUse", [hook], options);
  assertEquals(lines[1], "denied Blocked by a hook.");
  assertEquals(home.requests, [["POST", "Bearer t", {
    session_id: result.session,
    transcript_path: "",
    cwd: Deno.cwd(),
    prompt_id: result.run,
    model: "scripted",
    permission_mode: "default",
    hook_event_name: "PreToolUse",
    tool_name: "Bash",
    tool_input: { command: "ls" },
    tool_use_id: "a",
  }]]);
  answer = () => new Response("Be kind.");
  assertEquals((await ran("UserPromptSubmit", [hook], options)).lines[0], "prompt Be kind.");
  for (const failure of [() => new Response("no", { status: 500 }), () => Response.redirect("http://127.0.0.1:9/")]) {
    answer = failure;
    const { lines, events } = await ran("PreToolUse", [hook], options);
    assertEquals([lines[1], warnings(events)], ["ok ran ls", ["A hook of PreToolUse failed."]]);
  }
});

Deno.test("Claude: an http handler posts only to addresses in the allow-list", async () => {
  await using home = server(() => new Response(decides("deny")));
  const hook = { type: "http", url: home.url } as const;
  const allow = [home.url.replace("/hook", "/*")];
  const { lines } = await ran("PreToolUse", [hook], { ...claude, http: { privateAddresses: true, allow } });
  assertEquals(lines[1], "denied Blocked by a hook.");
});

Deno.test("Claude: a prompt handler asks a model, and an agent handler an agent", async () => {
  const answers = ['```json\n{"ok": false, "reason": "Not today."}\n```', '{"ok": true}', "Perhaps."];
  const model = scripted(...answers);
  const prompt = { type: "prompt", prompt: "May it run? $ARGUMENTS" } as const;
  const outcome = async (hook: HandlerConfig, options: CommandHooksOptions) => {
    const { lines, events } = await ran("PreToolUse", [hook], { ...claude, ...options });
    return [lines[1], ...warnings(events)];
  };
  assertEquals(await outcome(prompt, { model }), ["denied Not today."]);
  assertEquals(await outcome(prompt, { model }), ["ok ran ls"]);
  assertEquals(await outcome(prompt, { model }), ["ok ran ls", "A hook of PreToolUse failed."]);
  const [asked = ""] = lines(model.requests[0]?.messages ?? []);
  assertEquals([asked.startsWith("user May it run? {"), asked.includes('"command":"ls"')], [true, true]);
  const decider = agent({
    model: scripted({ calls: [["Bash", { command: "git log" }]] }, answers[0] ?? ""),
    tools: [shell()],
  });
  assertEquals(await outcome({ type: "agent", prompt: "Check it." }, { agent: decider }), ["denied Not today."]);
});

Deno.test("Claude: an mcp_tool handler calls a tool of a server with fields of the input", async () => {
  const calls: unknown[] = [];
  const mcp = {
    guard: {
      callTool(call: { name: string; arguments: Record<string, unknown> }) {
        calls.push([call.name, call.arguments]);
        const isError = call.name === "broken";
        const text = call.name === "down" ? "offline" : decides("deny");
        return Promise.resolve({ content: [{ type: "text", text }], isError: isError || call.name === "down" });
      },
    },
  };
  const input = { line: "run ${tool_input.command}", all: ["${tool_input}"], n: 1 };
  const hook = (tool: string) => ({ type: "mcp_tool", server: "guard", tool, input }) as const;
  assertEquals((await ran("PreToolUse", [hook("check")], { ...claude, mcp })).lines[1], "denied Blocked by a hook.");
  assertEquals(calls, [["check", { line: "run ls", all: ['{"command":"ls"}'], n: 1 }]]);
  assertEquals((await ran("PreToolUse", [hook("broken")], { ...claude, mcp })).lines[1], "denied Blocked by a hook.");
  const { lines, events } = await ran("PreToolUse", [hook("down")], { ...claude, mcp });
  assertEquals([lines[1], warnings(events)], ["ok ran ls", ["A hook of PreToolUse failed."]]);
});

Deno.test("Claude: allowedHttpHookUrls of every file hold for all handlers, and a blocked one never runs", async () => {
  const posted: string[] = [];
  const http = {
    privateAddresses: true,
    fetch: (url: string) => {
      posted.push(url);
      return Response.json({});
    },
  };
  const settings = (urls: readonly string[], allowedHttpHookUrls?: readonly string[]): CommandSettings => ({
    hooks: { PreToolUse: [{ hooks: urls.map((url) => ({ type: "http", url })) }] },
    ...(allowedHttpHookUrls && { allowedHttpHookUrls }),
  });
  const of = async (files: readonly CommandSettings[]) => {
    const use = [command_hooks(files, { ...claude, http })];
    const { events } = await batch([command("a", "ls")], { tools: [shell()], use }).run().outcome;
    return [posted.splice(0), warnings(events)];
  };
  const [a, b] = ["http://a.localhost/x", "http://b.localhost/x"];
  const blocked = (url: string) =>
    `Hooks of PreToolUse with the address "${url}" never run: it is not in allowedHttpHookUrls. What they would block is not blocked.`;
  assertEquals(await of([settings([a, b])]), [[a, b], []]);
  assertEquals(await of([settings([a, b]), { allowedHttpHookUrls: ["http://a.*"] }]), [[a], [blocked(b)]]);
  assertEquals(await of([settings([a, b], ["http://a.*"]), { allowedHttpHookUrls: ["*//b.*"] }]), [[a, b], []]);
  assertEquals(await of([settings([a], [])]), [[], [blocked(a)]]);
  const guard: HandlerConfig = { type: "http", url: a, onFailure: "block" };
  const refused = () =>
    command_hooks({ hooks: { PreToolUse: [{ hooks: [guard] }] }, allowedHttpHookUrls: [] }, { ...claude, http });
  assertThrows(refused, TypeError, 'an address that is not in allowedHttpHookUrls, "http://a.localhost/x"');
});

Deno.test("Claude: httpHookAllowedEnvVars limits the variables of headers", async () => {
  const sent: (string | null)[] = [];
  const http = {
    privateAddresses: true,
    fetch: (_: string, { headers }: RequestInit) => {
      sent.push(new Headers(headers).get("authorization"));
      return Response.json({});
    },
  };
  const hook: HandlerConfig = {
    type: "http",
    url: "http://localhost/x",
    headers: { authorization: "$A $B" },
    allowedEnvVars: ["A", "B"],
  };
  const settings = { hooks: { PreToolUse: [{ hooks: [hook] }] } };
  for (const list of [undefined, ["A"], []]) {
    const files = [settings, ...list ? [{ httpHookAllowedEnvVars: list }] : []];
    const use = [command_hooks(files, { ...claude, http, env: { A: "1", B: "2" } })];
    await batch([command("a", "ls")], { tools: [shell()], use }).run().outcome;
  }
  assertEquals(sent, ["1 2", "1", ""]);
});

Deno.test("Claude: with allowManagedHooksOnly, only managed hooks run, and no other file switches them off", async () => {
  const denying = (reason: string): CommandSettings => ({
    hooks: { PreToolUse: [{ hooks: [{ type: "command", command: `echo ${reason} >&2; exit 2` }] }] },
  });
  const of = async (managed: CommandSettings, user: CommandSettings) => {
    const use = [command_hooks(user, { ...claude, managed })];
    return (await batch([command("a", "ls")], { tools: [shell()], use }).run().outcome).lines[1];
  };
  const only = { allowManagedHooksOnly: true };
  assertEquals(await of(denying("m"), denying("u")), "denied m\nu");
  assertEquals(await of({ ...denying("m"), ...only }, denying("u")), "denied m");
  assertEquals(await of(only, denying("u")), "ok ran ls");
  assertEquals(await of({}, { ...denying("u"), ...only }), "denied u"); // it is no managed file
  assertEquals(await of(denying("m"), { ...denying("u"), disableAllHooks: true }), "denied m");
  assertEquals(await of({ ...denying("m"), disableAllHooks: true }, denying("u")), "ok ran ls");
});

Deno.test("Claude: commands have the effort of the last request in CLAUDE_EFFORT", async () => {
  const high = {
    name: "high",
    model: (ctx: ModelContext, next: Next<ModelChange, ModelResponse>) =>
      next({ request: { options: { ...ctx.request.options, effort: "high" } } }),
  };
  const hook = `echo "{\\"systemMessage\\":\\"$CLAUDE_EFFORT\\"}"`;
  const settings: CommandSettings = { hooks: { PreToolUse: [{ hooks: [{ type: "command", command: hook }] }] } };
  const use = [high, command_hooks(settings, claude)];
  const { events } = await batch([command("a", "ls")], { tools: [shell()], use }).run().outcome;
  assertEquals(notices(events), ["high"]);
});
