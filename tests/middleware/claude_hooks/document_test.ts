// deno-lint-ignore-file require-await -- the hooks stand here as they stand there
/**
 * The hooks in the documentation of the Qoder Agent SDK, unchanged; external services are replaced by fakes.
 */
import { agent, user } from "@jizai/jizai";
import { claude_hooks, type HookCallback } from "@jizai/jizai/middleware/claude_hooks";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { command, ran, shell } from "../../support/hooked.ts";
import { lines } from "../../support/transcript_lines.ts";

const securityHook: HookCallback = async (input) => {
  if (input.hook_event_name !== "PreToolUse") return {};

  if (input.tool_name === "Bash") {
    const cmd = String((input.tool_input as { command?: unknown })?.command ?? "");
    if (cmd.includes("rm -rf")) {
      return {
        hookSpecificOutput: {
          hookEventName: "PreToolUse",
          permissionDecision: "deny",
          permissionDecisionReason: "Destructive delete operations are not allowed",
        },
      };
    }
  }

  return {};
};

const secretRedactHook: HookCallback = async (input) => {
  if (input.hook_event_name !== "PostToolUse") return {};

  const content = typeof input.tool_response === "string" ? input.tool_response : JSON.stringify(input.tool_response);

  const redacted = content
    .replace(/(?:LTAI|AKID)[A-Za-z0-9]{16,}/g, "<REDACTED_AK>")
    .replace(/Bearer\s+[A-Za-z0-9\-._~+/]+=*/g, "Bearer <REDACTED>");

  if (redacted === content) return {};

  return {
    hookSpecificOutput: {
      hookEventName: "PostToolUse",
      updatedToolOutput: redacted,
    },
  };
};

const bashSummarizeHook: HookCallback = async (input) => {
  if (input.hook_event_name !== "PostToolUse") return {};
  if (input.tool_name !== "Bash") return {};

  const content = String(input.tool_response ?? "");
  const THRESHOLD = 50 * 1024;
  if (content.length <= THRESHOLD) return {};

  const head = content.slice(0, 8 * 1024);
  const tail = content.slice(-4 * 1024);
  const omitted = content.length - head.length - tail.length;
  return {
    hookSpecificOutput: {
      hookEventName: "PostToolUse",
      updatedToolOutput: `${head}\n\n[... OMITTED ${omitted} chars ...]\n\n${tail}`,
    },
  };
};

const autoApproveRead: HookCallback = async (input) => {
  if (input.hook_event_name !== "PermissionRequest") return {};

  if (input.tool_name === "Read") {
    return {
      hookSpecificOutput: {
        hookEventName: "PermissionRequest",
        decision: { behavior: "allow" },
      },
    };
  }
  return {};
};

Deno.test("Qoder: the documented security hook denies destructive commands only", async () => {
  const calls = [command("a", "rm -rf /"), command("b", "ls"), command("c", "rm -rf /", "Other")];
  const tools = [shell(), shell({ name: "Other" })];
  const { lines } = await ran({ PreToolUse: [{ matcher: "Bash", hooks: [securityHook] }] }, { calls, tools });
  assertEquals(lines.slice(1, -1), [
    "denied Destructive delete operations are not allowed",
    "ok ran ls",
    "ok ran rm -rf /",
  ]);
});

for (const dialect of ["qoder", "qodercli", "claude"] as const) {
  Deno.test(`${dialect}: the documented masking hook masks results for the model`, async () => {
    const outputs = [
      "key LTAI1234567890abcdefgh",
      { token: "Bearer abc.def==", list: ["AKID0123456789abcdefXYZ"] },
      "nothing",
    ];
    const tools = [shell({ execute: (index) => outputs[Number(index)] })];
    const calls = ["0", "1", "2"].map((index) => command(index));
    const { lines } = await ran({ PostToolUse: [{ hooks: [secretRedactHook] }] }, { calls, tools, dialect });
    assertEquals(lines.slice(1, -1), [
      "ok key <REDACTED_AK>",
      'ok {"token":"Bearer <REDACTED>","list":["<REDACTED_AK>"]}',
      "ok nothing",
    ]);
  });
}

Deno.test("Qoder: the documented trimming hook keeps the head and the tail of a long output", async () => {
  const long = `${"a".repeat(8 * 1024)}${"b".repeat(50 * 1024)}${"c".repeat(4 * 1024)}`;
  const tools = [shell({ execute: (text) => text === "long" ? long : "short" })];
  const calls = [command("a", "long"), command("b", "short")];
  const { lines } = await ran({ PostToolUse: [{ hooks: [bashSummarizeHook] }] }, { calls, tools });
  const trimmed = `${"a".repeat(8 * 1024)}\n\n[... OMITTED ${50 * 1024} chars ...]\n\n${"c".repeat(4 * 1024)}`;
  assertEquals(lines.slice(1, -1), [`ok ${trimmed}`, "ok short"]);
});

Deno.test("Qoder: the documented Stop hook keeps the agent going until the task is complete", async () => {
  let left = 2;
  const isTaskComplete = () => left-- === 0;
  const keepGoingHook: HookCallback = async (input) => {
    if (input.hook_event_name !== "Stop") return {};

    if (!isTaskComplete()) {
      return {
        decision: "block",
        reason: "Please continue completing the remaining tasks",
      };
    }
    return {};
  };
  const model = scripted("One.", "Two.", "Three.");
  const { messages } = await agent({ model, use: [claude_hooks({ Stop: [{ hooks: [keepGoingHook] }] })] }).run("Hi")
    .result;
  const please = "stop Please continue completing the remaining tasks";
  assertEquals(lines(messages), ["user Hi", "assistant One.", please, "assistant Two.", please, "assistant Three."]);
  assertEquals(model.requests.at(-1)?.messages[0], user("Hi"));
});

Deno.test("Qoder: the documented PermissionRequest hook allows reading, and leaves other calls to a person", async () => {
  const tools = [shell({ name: "Read", ask: true }), shell({ ask: true })];
  const calls = [command("a", "a.txt", "Read"), command("b")];
  const { result } = await ran({ PermissionRequest: [{ hooks: [autoApproveRead] }] }, { calls, tools });
  assertEquals([result.status, result.questions.map(({ callId }) => callId)], ["paused", ["b"]]);
});

Deno.test("Qoder: the documented audit hook records every call and denies requests to other domains", async () => {
  const written: string[] = [];
  const auditLog = { write: (line: string) => written.push(line) };
  const securityHook: HookCallback = async (input, toolUseID) => {
    if (input.hook_event_name === "PreToolUse") {
      auditLog.write(
        JSON.stringify({
          event: "tool_call",
          tool: input.tool_name,
          input: input.tool_input,
          id: toolUseID,
        }) + "\n",
      );

      if (input.tool_name === "Bash") {
        const cmd = String((input.tool_input as { command?: unknown })?.command ?? "");
        if (/curl\s+https?:\/\/(?!localhost)/.test(cmd)) {
          return {
            hookSpecificOutput: {
              hookEventName: "PreToolUse",
              permissionDecision: "deny",
              permissionDecisionReason: "HTTP requests to external domains are not allowed",
            },
          };
        }
      }
    }

    return {};
  };
  const calls = [command("a", "curl https://example.com"), command("b", "curl http://localhost/")];
  const { lines } = await ran({ PreToolUse: [{ hooks: [securityHook] }] }, { calls });
  assertEquals(lines.slice(1, -1), [
    "denied HTTP requests to external domains are not allowed",
    "ok ran curl http://localhost/",
  ]);
  assertEquals(
    written.map((line) => JSON.parse(line)),
    calls.map(({ id, name, input }) => ({
      event: "tool_call",
      tool: name,
      input,
      id,
    })),
  );
});

Deno.test("Qoder: the documented matchers select one tool, several tools and all tools", async () => {
  const log: string[] = [];
  const hook = (name: string): HookCallback => async (input) => {
    if (input.hook_event_name === "PreToolUse") log.push(`${name} ${input.tool_name}`);
    return {};
  };
  const names = ["Bash", "FileRead", "Write", "Edit", "Search"];
  await ran({
    PreToolUse: [
      { matcher: "Bash", hooks: [hook("bash")] },
      { matcher: "File.*|Write|Edit", hooks: [hook("file")] },
      { hooks: [hook("all")] },
    ],
  }, { calls: names.map((name) => command(name, name, name)), tools: names.map((name) => shell({ name })) });
  assertEquals(log, [
    "bash Bash",
    "all Bash",
    "file FileRead",
    "all FileRead",
    "file Write",
    "all Write",
    "file Edit",
    "all Edit",
    "all Search",
  ]);
});
