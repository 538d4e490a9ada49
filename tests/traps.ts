/**
 * Prints the rules of the hook systems that Jizai implements, each with its tests and their outcome. Fails if a rule has no test, and if a test fails.
 *
 * @module
 */
import { foreignRules } from "./support/foreign_rules.ts";

/** A test that ran. */
interface Tested {
  readonly name: string;
  readonly passes: boolean;
}

const systems = "Claude|Qoder|qoder|qodercli|claude|Copilot|PicoClaw|yoi|Engine|Table";
const runs = [await ran("unit"), await ran("platforms")];
const all = runs.flatMap(({ tests }) => tests);
const outcomes = foreignRules.map(({ system, rule, tests }) => {
  const found = all.filter(({ name }) => tests.some((prefix) => name.startsWith(prefix)));
  const missing = tests.filter((prefix) => !all.some(({ name }) => name.startsWith(prefix)));
  console.log(`${system}: ${rule}`);
  for (const { name, passes } of found) console.log(`  ${passes ? "pass" : "FAIL"}  ${name}`);
  for (const prefix of missing) console.log(`  NONE  no test begins with "${prefix}"`);
  return missing.length === 0 && found.every(({ passes }) => passes);
});
if (!outcomes.every(Boolean) || !runs.every(({ success }) => success)) Deno.exit(1);

/** Runs the tests of a task that are named after a system. */
async function ran(task: "unit" | "platforms"): Promise<{ tests: readonly Tested[]; success: boolean }> {
  const filter = `/^(${systems})(, \\w+)?( commands)?: /`;
  const args = ["task", "--quiet", task, "--filter", filter, "--reporter", "tap"];
  const { success, stdout } = await new Deno.Command(Deno.execPath(), { args, stderr: "inherit" }).output();
  const lines = new TextDecoder().decode(stdout).matchAll(/^(not )?ok \d+ - (.*?)( # SKIP)?$/gm);
  const tests = Array.from(lines, ([, not, name = "", skipped]) => {
    return { name: name.replaceAll("\\#", "#"), passes: !not && !skipped };
  });
  return { tests, success };
}
