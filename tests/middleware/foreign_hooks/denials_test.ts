/**
 * A denial is a denial in the form of every hook system, at hooks that run before a call or a prompt.
 */
import { type Event, type Middleware } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import { yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
import { assert, assertEquals } from "@std/assert";
import { batch, call, drop, weather } from "../../support/batch.ts";
import { denials, harmless, randomDenial, reason } from "../../support/denials.ts";
import { hooks } from "../../support/hooked.ts";
import { builtins } from "../../support/rpc.ts";
import { seeded, seeds } from "../../support/seeded.ts";

/** Middleware whose hooks before a call return an answer, by hook. */
const beforeCall: Readonly<Record<string, (answer: unknown) => Middleware>> = {
  "Qoder PreToolUse": (answer) => claude_hooks({ PreToolUse: hooks(() => answer as object) }),
  "qodercli PreToolUse": (answer) =>
    claude_hooks({ PreToolUse: hooks(() => answer as object) }, { dialect: "qodercli" }),
  "Claude PreToolUse": (answer) => claude_hooks({ PreToolUse: hooks(() => answer as object) }, { dialect: "claude" }),
  "Copilot onPreToolUse": (answer) => copilot_hooks({ onPreToolUse: () => answer as object }),
  "Copilot onPreToolUse without groups": (answer) =>
    copilot_hooks({ onPreToolUse: () => answer as object }, { groups: false }),
  "PicoClaw before_tool": (answer) => builtins({ a: { before_tool: () => answer } }),
  "yoi pre_tool_call": (answer) => yoi_hooks({ pre_tool_call: () => answer as "Continue" }),
};

/** The same, for hooks that answer in place of a person. */
const inPlaceOfAPerson: typeof beforeCall = {
  "Qoder PermissionRequest": (answer) => claude_hooks({ PermissionRequest: hooks(() => answer as object) }),
  "Claude PermissionRequest": (answer) =>
    claude_hooks({ PermissionRequest: hooks(() => answer as object) }, { dialect: "claude" }),
  canUseTool: (answer) => claude_hooks({}, { canUseTool: () => Promise.resolve(answer as null) }),
  "PicoClaw approve_tool": (answer) => {
    const approves = { approve_tool: () => ({ approved: true }) };
    const denies = {
      approve_tool: () => typeof answer === "object" && !Array.isArray(answer) ? { approved: true, ...answer } : answer,
    };
    return builtins({ a: approves, b: denies });
  },
};

/** The same, for hooks before a prompt. */
const beforePrompt: typeof beforeCall = {
  "Qoder UserPromptSubmit": (answer) => claude_hooks({ UserPromptSubmit: hooks(() => answer as object) }),
  "Claude UserPromptSubmit": (answer) =>
    claude_hooks({ UserPromptSubmit: hooks(() => answer as object) }, { dialect: "claude" }),
  "Copilot onUserPromptSubmitted": (answer) => copilot_hooks({ onUserPromptSubmitted: () => answer as object }),
  "Copilot onUserPromptTransformed": (answer) => copilot_hooks({ onUserPromptTransformed: () => answer as object }),
  "yoi on_prompt_submit": (answer) => yoi_hooks({ on_prompt_submit: () => answer as "Continue" }),
};

/** Runs a call under hooks, of a tool that asks if `asks` is true. */
async function outcome(middleware: Middleware, asks = false) {
  const log: string[] = [];
  const tools = [asks ? drop(log) : weather(({ city }) => (log.push(city), `sun in ${city}`))];
  const name = asks ? "drop" : "weather";
  const { result, lines, events } = await batch([call("a", { name })], { tools, use: [middleware] }).run().outcome;
  return { ran: log.length > 0, status: result.status, line: lines[1], events, prompted: lines.length > 0 };
}

function warned(events: readonly Event[]): boolean {
  return events.some(({ type }) => type === "warning");
}

for (const [hook, create] of Object.entries(beforeCall)) {
  Deno.test(`${hook}: a denial in any form denies the call, with its reason`, async () => {
    for (const answer of denials) {
      const { ran, line = "", events } = await outcome(create(answer));
      const given = JSON.stringify(answer);
      assertEquals(ran, false, `${given} lets the call run`);
      const known =
        /"Abort"|"Skip"|"continue":false|"(?:abort_turn|deny_tool)"|^\{"decision":"(?:block|deny)"|^\{"permissionDecision":"deny"/;
      assert(known.test(given) || warned(events), `${given} is not reported`);
      if (!line.startsWith("denied")) continue;
      assertEquals(line.includes(reason), given.includes(reason), `${given} is denied as ${line}`);
    }
  });
}

for (const [hook, create] of Object.entries(inPlaceOfAPerson)) {
  Deno.test(`${hook}: a denial in any form denies the call that a person would be asked about`, async () => {
    for (const answer of denials) {
      const { ran, status, line = "" } = await outcome(create(answer), true);
      assertEquals([ran, status, line.split(" ")[0]], [false, "done", "denied"], JSON.stringify(answer));
    }
  });
}

for (const [hook, create] of Object.entries(beforePrompt)) {
  Deno.test(`${hook}: a denial in any form refuses the prompt`, async () => {
    for (const answer of denials) {
      const { status, prompted } = await outcome(create(answer));
      assertEquals([status, prompted], ["cancelled", false], JSON.stringify(answer));
    }
  });
}

Deno.test("foreign hooks: an answer that denies nothing lets the call and the prompt through", async () => {
  for (const [hook, create] of Object.entries({ ...beforeCall, ...beforePrompt })) {
    for (const answer of harmless) {
      assertEquals((await outcome(create(answer))).ran, true, `${hook}: ${JSON.stringify(answer)}`);
    }
  }
  for (const answer of harmless) {
    for (const [hook, create] of Object.entries(inPlaceOfAPerson)) {
      if (hook.startsWith("PicoClaw")) continue; // an approver that does not approve denies
      assertEquals((await outcome(create(answer), true)).status, "paused", `${hook}: ${JSON.stringify(answer)}`);
    }
  }
});

Deno.test("foreign hooks: a question in an unknown form is asked, or denies where a hook cannot ask", async () => {
  for (
    const answer of [
      { permission_decision: "ask" },
      { decision: { action: "ask" } },
      { result: { behavior: "ask" } },
      "Pause",
    ]
  ) {
    for (const [hook, create] of Object.entries(beforeCall)) {
      const { ran, status } = await outcome(create(answer));
      const isAsked = /Tool/.test(hook) || answer === "Pause" && hook.startsWith("yoi");
      assertEquals([ran, status], [false, isAsked ? "paused" : "done"], `${hook}: ${JSON.stringify(answer)}`);
    }
  }
});

Deno.test("foreign hooks: after a call and before a stop, members keep the meaning that they have in their system", async () => {
  const block = { decision: "block", reason: "More." } as const;
  for (
    const answer of [{ permissionDecision: "deny" }, { approved: false }, { result: { decision: "block" } }, {
      action: "deny_tool",
    }]
  ) {
    const config = {
      PostToolUse: hooks(() => answer as object),
      Stop: hooks(() => answer as object),
      SessionStart: hooks(() => answer as object),
    };
    const { ran, status, line, events } = await outcome(claude_hooks(config));
    assertEquals([ran, status, line, warned(events)], [true, "done", "ok sun in a", true], JSON.stringify(answer));
  }
  const once = (stop: string) => ({ [stop]: ({ stopHookActive = false }) => stopHookActive ? {} : block });
  const copilot = copilot_hooks(once("onAgentStop"));
  const claude = claude_hooks({
    Stop: hooks((input) => "stop_hook_active" in input && input.stop_hook_active ? {} : block),
  });
  for (const middleware of [copilot, claude]) {
    const { status, line } = await outcome(middleware);
    assertEquals([status, line], ["failed", "ok sun in a"]); // it goes on, and the script has no second answer
  }
});

for (const seed of seeds(3)) {
  Deno.test(`foreign hooks: a denial that is hidden in a random answer counts (seed ${seed})`, async () => {
    const chance = seeded(seed);
    for (let count = 0; count < 40; count++) {
      const answer = randomDenial(chance);
      const [hook, create] = chance.one(Object.entries(beforeCall) as [[string, (answer: unknown) => Middleware]]);
      assertEquals((await outcome(create(answer))).ran, false, `${hook}: ${JSON.stringify(answer)} lets the call run`);
      const [prompt, refuse] = chance.one(Object.entries(beforePrompt) as [[string, (answer: unknown) => Middleware]]);
      assertEquals(
        (await outcome(refuse(answer))).status,
        "cancelled",
        `${prompt}: ${JSON.stringify(answer)} lets the prompt through`,
      );
    }
  });
}
