import { agent } from "@jizai/jizai";
import { human } from "@jizai/jizai/middleware/human";
import { terminal } from "@jizai/jizai/middleware/terminal";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { remove } from "../support/asking.ts";
import { lines } from "../support/transcript_lines.ts";

/** Returns what the terminal shows, and the result of the call after `typed`. */
async function answered(typed: string | undefined, path = "a") {
  const shown: unknown[] = [];
  const askLine = (text: string) => {
    shown.push(text);
    return Promise.resolve(typed);
  };
  const assistant = agent({
    model: scripted({ calls: [["remove", { path }]] }, "Done."),
    tools: [remove],
    use: [human(terminal(askLine))],
  });
  const { messages } = await assistant.run("Go").result;
  return { shown, result: lines(messages)[2] };
}

Deno.test("terminal() shows the question, the tool and its input", async () => {
  const { shown } = await answered("y");
  assertEquals(shown, ['Run remove?\nremove {\n  "path": "a"\n}\n[y/N, or a reason] ']);
});

Deno.test("terminal() allows on a yes and on nothing else", async () => {
  for (const yes of ["y", "Y", "yes", " YES "]) assertEquals((await answered(yes)).result, "ok Removed a.");
  for (const no of ["", "n", "No", "  ", undefined]) {
    assertEquals((await answered(no)).result, "denied A person said no.");
  }
});

Deno.test("terminal() uses other input as the reason for the model", async () => {
  assertEquals((await answered("yes, but not now")).result, "denied yes, but not now");
});

Deno.test("terminal() escapes control characters in the question", async () => {
  const { shown } = await answered("y", "a\u001b[2K\u009b\u202e\nb");
  assertEquals(shown, [
    'Run remove?\nremove {\n  "path": "a\\u001b[2K\\u{9b}\\u{202e}\\nb"\n}\n[y/N, or a reason] ',
  ]);
  const question = "Sure?\n\u001b[8m";
  const echo = terminal((text) => Promise.resolve(text));
  const signal = new AbortController().signal;
  assertEquals(await echo({ questions: [question] }, { signal }), {
    allow: false,
    reason: "Sure?\\u{a}\\u{1b}[8m\n[y/N, or a reason]",
  });
});

Deno.test("terminal() denies a call without a terminal", async () => {
  const signal = new AbortController().signal;
  assertEquals(await terminal()({ questions: ["Sure?"] }, { signal }), { allow: false });
});

Deno.test("terminal() stops asking when the run is stopped", async () => {
  const asked = Promise.withResolvers<void>();
  const askLine = (_: string, { signal }: { readonly signal: AbortSignal }) => {
    asked.resolve();
    return new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const model = scripted({ calls: [["remove", { path: "a" }]] });
  const run = agent({ model, tools: [remove], use: [human(terminal(askLine))] }).run("Go");
  await asked.promise;
  run.stop();
  assertEquals((await run.result).status, "aborted");
});
