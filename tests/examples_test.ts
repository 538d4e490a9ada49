import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as auditedCommands from "../examples/hooks/audited_commands.ts";
import * as autoApproveRead from "../examples/hooks/auto_approve_read.ts";
import * as callCounter from "../examples/hooks/call_counter.ts";
import * as commandGuard from "../examples/hooks/command_guard.ts";
import * as emptyPrompt from "../examples/hooks/empty_prompt.ts";
import * as headAndTail from "../examples/hooks/head_and_tail.ts";
import * as jsonValidator from "../examples/hooks/json_validator.ts";
import * as keepGoing from "../examples/hooks/keep_going.ts";
import * as resultPrefix from "../examples/hooks/result_prefix.ts";
import * as secretMasking from "../examples/hooks/secret_masking.ts";
import * as timestamp from "../examples/hooks/timestamp.ts";
import * as toolBlocker from "../examples/hooks/tool_blocker.ts";
import { list } from "./support/source.ts";

/** The examples of hooks: what each of them shows, and what it prints. */
const hooks: Readonly<Record<string, Example>> = {
  "audited_commands.ts": {
    shows: "the record says what was denied",
    run: auditedCommands.run,
    prints: [
      "prompt: Deploy",
      'bash {"command":"curl http://localhost:8000/health"}: allow, ok',
      'bash {"command":"curl https://example.com/install.sh"}: deny, denied',
      "run: done",
    ],
  },
  "auto_approve_read.ts": {
    shows: "nobody is asked about reading, and writing waits for a person",
    run: autoApproveRead.run,
    prints: ["Run write?", "Copied."],
  },
  "call_counter.ts": {
    shows: "two runs at once count their own calls",
    run: callCounter.run,
    prints: ["Calls: 1", "Calls: 2"],
  },
  "command_guard.ts": {
    shows: "a dangerous command is denied, the other runs",
    run: commandGuard.run,
    prints: ["Ran ls", "Destructive delete operations are not allowed."],
  },
  "empty_prompt.ts": {
    shows: "an empty prompt is cancelled",
    run: emptyPrompt.run,
    prints: ["cancelled: The prompt is empty.", "done: Hello!"],
  },
  "head_and_tail.ts": {
    shows: "long output is shortened where it is a command's",
    run: headAndTail.run,
    prints: ["first (8186) [... OMITTED 47723 chars ...] (4091) last", "first (60000) last"],
  },
  "json_validator.ts": {
    shows: "what is no JSON goes back to the model",
    run: jsonValidator.run,
    prints: ["Where to?", "{ city: Kyoto }", "Invalid JSON. Please fix and try again.", '{ "city": "Kyoto" }'],
  },
  "keep_going.ts": {
    shows: "the agent goes on until every task is done",
    run: keepGoing.run,
    prints: [
      "Write it and test it",
      "Left: 1",
      "I am done.",
      "Please continue with the remaining tasks: test it.",
      "Left: 0",
      "Now I am done.",
    ],
  },
  "result_prefix.ts": {
    shows: "results are marked, failures are not",
    run: resultPrefix.run,
    prints: ["[OK] 2", "There is no division by 0."],
  },
  "secret_masking.ts": {
    shows: "no secret reaches the model or the person",
    run: secretMasking.run,
    prints: [
      "key: [redacted]\nauthorization: [redacted]\nregion: tokyo",
      "The key is [redacted].",
    ],
  },
  "timestamp.ts": {
    shows: "each turn knows the time, and not that of the turn before",
    run: timestamp.run,
    prints: [
      "Take a rest [2026-01-02T03:04:05.000Z]",
      "Take a rest (call) (result) [2026-01-02T03:04:05.000Z]",
    ],
  },
  "tool_blocker.ts": {
    shows: "a blocked tool does not run, the other does",
    run: toolBlocker.run,
    prints: ["ok: Read a.txt.", "denied: The tool delete_file is blocked."],
  },
};

interface Example {
  readonly shows: string;
  readonly run: () => Promise<readonly string[]>;
  readonly prints: readonly string[];
}

for (const [file, { shows, run, prints }] of Object.entries(hooks)) {
  Deno.test(`examples/hooks/${file}: ${shows}`, async () => {
    using _ = new FakeTime("2026-01-02T03:04:05Z");
    assertEquals(await run(), prints);
  });
}

Deno.test("every example of a hook is executed", async () => {
  assertEquals(await list("examples/hooks"), Object.keys(hooks));
});
