/**
 * Prints the traps of hook systems, each with the tests that are named after it, `trap 7: ...`, or with the reason why nobody falls into it here.
 * Fails where a trap has neither, and where a test fails.
 *
 * @module
 */

const traps = Array.from({ length: 64 }, (_, index) => index + 1);

/** What of a trap cannot happen here, and why not. */
const impossible: Readonly<Record<number, string>> = {
  46: "that there is no channel to deliver media through: the events of a run are one",
};

/** A test that is named after a trap. */
interface Tested {
  readonly trap: number;
  readonly name: string;
  readonly passes: boolean;
}

const runs = [await ran("unit"), await ran("platforms")];
const all = runs.flatMap(({ tests }) => tests);
const isFine = traps.map((trap) => shown(trap, all.filter((test) => test.trap === trap)));
if (!isFine.every(Boolean) || !runs.every(({ success }) => success)) Deno.exit(1);

/** Those of a task's tests that are named after traps. */
async function ran(task: "unit" | "platforms"): Promise<{ tests: readonly Tested[]; success: boolean }> {
  const args = ["task", "--quiet", task, "--filter", "/^trap \\d+:/", "--reporter", "tap"];
  const { success, stdout } = await new Deno.Command(Deno.execPath(), { args, stderr: "inherit" }).output();
  const lines = new TextDecoder().decode(stdout).matchAll(/^(not )?ok \d+ - trap (\d+): (.*?)( # SKIP)?$/gm);
  const tests = Array.from(lines, ([, not, trap, name = "", skipped]) => {
    return { trap: Number(trap), name: name.replaceAll("\\#", "#"), passes: !not && !skipped };
  });
  return { tests, success };
}

/** Prints a trap. Whether nobody falls into it. */
function shown(trap: number, tests: readonly Tested[]): boolean {
  const reason = impossible[trap];
  const lines = [
    ...tests.map(({ name, passes }) => `${passes ? "pass" : "FAIL"}        ${name}`),
    ...(reason === undefined ? [] : [`impossible  ${reason}`]),
  ];
  if (lines.length === 0) lines.push("MISSING     neither a test nor a reason");
  for (const [index, line] of lines.entries()) console.log(`${(index > 0 ? "" : `${trap}`).padStart(2)}  ${line}`);
  return (tests.length > 0 || reason !== undefined) && tests.every(({ passes }) => passes);
}
