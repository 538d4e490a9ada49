/**
 * Prints the rows of the table of hooks, which says what those of other systems become here, and the traps of hook systems: each with the tests that are named
 * after it, `row 7, respond: ...` and `trap 7: ...`, or with the reason why nobody falls into it here. Fails where one has neither, and where a test fails.
 *
 * @module
 */

const listed = [...numbered("row", 20), ...numbered("trap", 64)];

/** What of a trap cannot happen here, and why not. */
const impossible: Readonly<Record<string, string>> = {
  "trap 46": "that there is no channel to deliver media through: the events of a run are one",
};

/** A test that is named after a row or a trap. */
interface Tested {
  readonly of: string;
  readonly name: string;
  readonly passes: boolean;
}

const runs = [await ran("unit"), await ran("platforms")];
const all = runs.flatMap(({ tests }) => tests);
const isFine = listed.map((each) => shown(each, all.filter(({ of }) => of === each)));
if (!isFine.every(Boolean) || !runs.every(({ success }) => success)) Deno.exit(1);

function numbered(what: string, length: number): readonly string[] {
  return Array.from({ length }, (_, index) => `${what} ${index + 1}`);
}

/** Those of a task's tests that are named after rows and traps. */
async function ran(task: "unit" | "platforms"): Promise<{ tests: readonly Tested[]; success: boolean }> {
  const args = ["task", "--quiet", task, "--filter", "/^(row|trap) \\d+[:,]/", "--reporter", "tap"];
  const { success, stdout } = await new Deno.Command(Deno.execPath(), { args, stderr: "inherit" }).output();
  const lines = new TextDecoder().decode(stdout).matchAll(/^(not )?ok \d+ - ((?:row|trap) \d+)[:,] (.*?)( # SKIP)?$/gm);
  const tests = Array.from(lines, ([, not, of = "", name = "", skipped]) => {
    return { of, name: name.replaceAll("\\#", "#"), passes: !not && !skipped };
  });
  return { tests, success };
}

/** Prints a row or a trap. Whether it is as it should be. */
function shown(each: string, tests: readonly Tested[]): boolean {
  const reason = impossible[each];
  const lines = [
    ...tests.map(({ name, passes }) => `${passes ? "pass" : "FAIL"}        ${name}`),
    ...(reason === undefined ? [] : [`impossible  ${reason}`]),
  ];
  if (lines.length === 0) lines.push("MISSING     neither a test nor a reason");
  for (const [index, line] of lines.entries()) console.log(`${(index > 0 ? "" : each).padEnd(7)}  ${line}`);
  return (tests.length > 0 || reason !== undefined) && tests.every(({ passes }) => passes);
}
