import { main } from "@jizai/jizai/cli";
import { assertEquals } from "@std/assert";

/** Runs a command without input, and returns its exit code and its output. */
async function ran(...args: readonly string[]): Promise<readonly [number, readonly string[]]> {
  let screen = "";
  const terminal = {
    write: (text: string) => void (screen += text),
    ask: () => Promise.resolve(undefined),
    onInterrupt() {},
    close() {},
  };
  return [await main(args, terminal), screen.trimEnd().split("\n")];
}

const file = "tests/cli/recording.json";

Deno.test("replay prints the events of a recording", async () => {
  assertEquals(await ran("replay", file), [0, [
    "first, 2026-01-02T03:04:05.000Z, run 11111111-1111-4111-8111-111111111111",
    "run.started",
    "session.opened new",
    "prompt.accepted Hi",
    "turn.started 1",
    "model.started scripted",
    "text.delta One.",
    "model.finished stop",
    "turn.finished 1",
    "session.closed",
    "run.finished done One.",
  ]]);
});

Deno.test("replay runs a recording again with the agent of its name, and prints the differences", async () => {
  const agents = "tests/cli/two_agents.ts";
  assertEquals(await ran("replay", file, "--agent", agents), [0, ["The run is the same as the recording: 10 events."]]);
  assertEquals(await ran("replay", file, "--agent", "tests/cli/loud_agent.ts"), [1, [
    "Cannot confirm the recording: the run differs",
    "text answer",
    "  - One.",
    "  + ONE.",
  ]]);
  assertEquals(await ran("replay", file, "--agent", "mod.ts"), [1, [
    'Cannot replay with "mod.ts": expected an exported agent with the name "first"',
  ]]);
});

Deno.test("replay rejects a file that is not a recording", async () => {
  assertEquals(await ran("replay", "tests/cli/two_agents.json"), [1, [
    "ENOENT: no such file or directory, open 'tests/cli/two_agents.json'",
  ]]);
  const [code] = await ran("replay", "deno.json");
  assertEquals(code, 1);
});
