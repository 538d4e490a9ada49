/**
 * Attacks the framework with seeded random input, and prints the number of attempts of each attack.
 *
 * `deno task attack` takes 30 seconds. `--seconds 3600` runs longer, `--seed 7` starts with another seed, and names after that select attacks:
 * `deno task attack --seconds 60 guards tokens`. Exits with 1 if an attack succeeds, and prints the seed that repeats it.
 *
 * @module
 */
import { seeded } from "../support/seeded.ts";
import { approvals } from "./approvals.ts";
import { type Attack, runAttack } from "./attack.ts";
import { callbacks } from "./callbacks.ts";
import { consent } from "./consent.ts";
import { cuts } from "./cuts.ts";
import { denials } from "./denials.ts";
import { dialectsAttack, mcpForms } from "./dialects.ts";
import { files } from "./files.ts";
import { guards } from "./guards.ts";
import { judges } from "./judges.ts";
import { links } from "./links.ts";
import { load } from "./load.ts";
import { outside } from "./outside.ts";
import { owners } from "./owners.ts";
import { refusals } from "./refusals.ts";
import { requests } from "./requests.ts";
import { rules } from "./rules.ts";
import { rows } from "./rows.ts";
import { secrets } from "./secrets.ts";
import { tokens } from "./tokens.ts";
import { toolNames } from "./tool_names.ts";
import { values } from "./values.ts";

const all: readonly Attack[] = [
  guards,
  judges,
  consent,
  approvals,
  rules,
  denials,
  requests,
  refusals,
  rows,
  tokens,
  links,
  secrets,
  owners,
  outside,
  load,
  files,
  toolNames,
  callbacks,
  values,
  dialectsAttack,
  mcpForms,
  cuts,
];

/** Parses the command line. */
function parse(args: readonly string[]): { seconds: number; seed: number; names: readonly string[] } {
  const options = { seconds: 30, seed: 1 };
  const names: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const name = args[at]?.replace(/^--/, "") ?? "";
    if (name !== "seconds" && name !== "seed") {
      names.push(name);
      continue;
    }
    const value = Number(args[++at]);
    if (!(value >= 0)) throw new RangeError(`Cannot attack: --${name} is ${args[at]}; expected a number of 0 or more`);
    options[name] = value;
  }
  return { ...options, names };
}

const { seconds, seed, names } = parse(Deno.args);
const unknown = names.filter((name) => !all.some((attack) => attack.name === name));
if (unknown.length > 0) {
  throw new TypeError(
    `Cannot attack ${unknown.join(", ")}: expected some of ${all.map(({ name }) => name).join(", ")}`,
  );
}
const chosen = all.filter(({ name }) => names.length === 0 || names.includes(name));
const uncaught: unknown[] = [];
globalThis.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  uncaught.push(event.reason);
});

const print = console.error;
console.error = () => {}; // runs without `onError` print their errors, which attacks cause on purpose

for (const attack of chosen) {
  try {
    const count = await runAttack(attack, seed, seconds * 1_000 / chosen.length, seeded);
    await new Promise((resolve) => setTimeout(resolve, 0)); // unhandled rejections are reported in a task of their own
    if (uncaught.length > 0) {
      throw new Error("A promise was rejected and nothing handled it", { cause: uncaught.pop() });
    }
    console.log(`${attack.name.padEnd(12)} ${String(count).padStart(8)} attempts, none succeeded`);
  } catch (error) {
    print(error);
    Deno.exitCode = 1;
  }
}
Deno.exit(); // runs that an attack has left behind may have timers
