/**
 * The texts of all systems for the person and for the model, compared.
 */
import { ModelError } from "@jizai/jizai";
import { claude_hooks } from "@jizai/jizai/middleware/claude_hooks";
import { copilot_hooks } from "@jizai/jizai/middleware/copilot_hooks";
import type { ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { call } from "../../support/batch.ts";
import { hooks, notices, returning, returningOutput } from "../../support/hooked.ts";
import { builtins } from "../../support/rpc.ts";
import { ended, under } from "../../support/systems.ts";

const one = [{ calls: [call("a")] }, "Done."] as const;
const busy: ScriptedAnswer = { error: new ModelError("busy", { recoverable: true }) };

Deno.test("Table: texts for the person are notices and never reach the model", async () => {
  const systems = {
    "claude systemMessage": claude_hooks({ PostToolUse: hooks(returning({ systemMessage: "Psst." })) }),
    "claude stopReason": claude_hooks({ PostToolUse: hooks(returning({ continue: false, stopReason: "Psst." })) }),
    copilot: copilot_hooks({ onErrorOccurred: () => ({ errorHandling: "retry", userNotification: "Psst." }) }),
    rpc: builtins({
      a: { before_tool: () => ({ action: "respond", result: { for_llm: "sun", for_user: "Psst." } }) },
    }),
  };
  const outcome = await under(systems, async (hooks) => {
    const { events, requests, lines } = await ended(hooks, [{ calls: [call("a")] }, busy, "Done."]);
    return [notices(events), JSON.stringify([requests, lines]).includes("Psst.")];
  });
  const reported = [["Psst."], false];
  assertEquals(outcome, {
    "claude systemMessage": reported,
    "claude stopReason": reported,
    copilot: reported,
    rpc: reported,
  });
});

Deno.test("Table: context for the model never reaches the person", async () => {
  const systems = {
    "claude additionalContext": claude_hooks({ PostToolUse: hooks(returningOutput({ additionalContext: "Mind." })) }),
    "claude reason": claude_hooks({ PreToolUse: hooks(returning({ decision: "block", reason: "Mind." })) }),
    copilot: copilot_hooks({ onPostToolUse: () => ({ additionalContext: "Mind." }) }),
    rpc: builtins({
      a: {
        before_llm: ({ messages, ...rest }) => {
          const request = { ...rest, messages: [...messages, { role: "user", content: "Mind." }] };
          return { action: "modify", request };
        },
      },
    }),
  };
  const outcome = await under(systems, async (hooks) => {
    const { requests, events } = await ended(hooks, one);
    return [requests.at(-1)?.slice(2), notices(events)];
  });
  assertEquals(outcome, {
    "claude additionalContext": [["ok sun in a", "context Mind."], []],
    "claude reason": [["denied Mind."], []],
    copilot: [["ok sun in a", "context Mind."], []],
    rpc: [["ok sun in a", "user Mind."], []],
  });
});

Deno.test("Table: suppressOutput hides a result from the person, or from the conversation for Copilot", async () => {
  const hiding = {
    claude: claude_hooks({ PostToolUse: hooks(returning({ suppressOutput: true })) }),
    copilot: copilot_hooks({ onPostToolUse: () => ({ suppressOutput: true }) }),
    rpc: builtins({
      a: {
        before_tool: () => ({ action: "respond", result: { for_llm: "sun in a", for_user: "Sun!", silent: true } }),
      },
    }),
  };
  const outcome = await under(hiding, async (hooks) => {
    const { events, lines } = await ended(hooks, one);
    const shown = events.flatMap((event) => event.type === "tool.finished" ? event.result.parts : []);
    return [lines[2], shown, notices(events)];
  });
  const withheld = "The output was withheld by a hook.";
  assertEquals(outcome, {
    claude: ["ok sun in a", [], []],
    copilot: [`ok ${withheld}`, [{ type: "text", text: withheld }], []],
    rpc: ["ok sun in a", [], []],
  });
});
