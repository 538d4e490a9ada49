import { agent } from "@jizai/jizai";
import { human } from "@jizai/jizai/middleware/human";
import { terminal } from "@jizai/jizai/middleware/terminal";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { remove } from "../support/asking.ts";
import { lines } from "../support/told.ts";

/** What the terminal shows, and what becomes of the call, where `typed` is typed. */
async function answered(typed: string | null, path = "a") {
  const shown: unknown[] = [];
  using _ = stub(globalThis, "prompt", (text) => {
    shown.push(text);
    return typed;
  });
  const assistant = agent({
    model: scripted({ calls: [["remove", { path }]] }, "Done."),
    tools: [remove],
    use: [human(terminal())],
  });
  const { messages } = await assistant.run("Go").result;
  return { shown, result: lines(messages)[2] };
}

Deno.test("terminal() shows the question, the tool and its input", async () => {
  const { shown } = await answered("y");
  assertEquals(shown, ['Run remove?\nremove {\n  "path": "a"\n}\n[y/N, or why not]']);
});

Deno.test("terminal() allows on a yes and on nothing else", async () => {
  for (const yes of ["y", "Y", "yes", " YES "]) assertEquals((await answered(yes)).result, "ok Removed a.");
  for (const no of ["", "n", "No", "  ", null]) assertEquals((await answered(no)).result, "denied A person said no.");
});

Deno.test("terminal() tells the model what else was typed, as the reason", async () => {
  assertEquals((await answered("yes, but not now")).result, "denied yes, but not now");
});

Deno.test("terminal() spells out what would move the cursor, hide or reverse what is asked", async () => {
  const { shown } = await answered("y", "a\u001b[2K\u009b\u202e\nb");
  assertEquals(shown, [
    'Run remove?\nremove {\n  "path": "a\\u001b[2K\\u{9b}\\u{202e}\\nb"\n}\n[y/N, or why not]',
  ]);
  using _ = stub(globalThis, "prompt", (text) => text ?? null);
  const question = "Sure?\n\u001b[8m";
  assertEquals(terminal()({ questions: [question] }), {
    allow: false,
    reason: "Sure?\\u{a}\\u{1b}[8m\n[y/N, or why not]",
  });
});
