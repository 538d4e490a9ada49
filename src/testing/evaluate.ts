/**
 * Evaluations: scores of an agent's answers to a list of cases.
 *
 * @module
 */
import type { Agent } from "../core/agent.ts";
import type { RunResult } from "../core/points.ts";
import type { Event } from "../protocol/event.ts";

/** One case: a prompt for an agent. */
export interface EvaluationCase {
  /** The name, for the table. */
  readonly name: string;
  /** The agent. Agents may differ between cases. */
  readonly agent: Pick<Agent<unknown, unknown>, "run">;
  /** The prompt. */
  readonly prompt: string;
  /** The vars of the run. Default: none. */
  readonly vars?: unknown;
  /** The expected answer, for scorers that compare with it. */
  readonly expected?: unknown;
}

/** The outcome of a case, which a scorer rates. */
export interface EvaluatedRun {
  /** The case. */
  readonly case: EvaluationCase;
  /** The result of the run. */
  readonly result: RunResult<unknown>;
  /** The events of the run. */
  readonly events: readonly Event[];
}

/** Rates a run. */
export interface Scorer {
  /** The name, for the table. */
  readonly name: string;
  /** Returns a number from 0 to 1, or whether the run is right. If it throws, the score is 0. */
  readonly score: (run: EvaluatedRun) => number | boolean | Promise<number | boolean>;
}

/** The scores of a case. */
export interface CaseScores {
  /** The name of the case. */
  readonly name: string;
  /** The status of the run. */
  readonly status: string;
  /** The scores, by the name of the scorer. */
  readonly scores: Readonly<Record<string, number>>;
  /** The errors of scorers, by their name. */
  readonly errors: Readonly<Record<string, unknown>>;
}

/** The scores of all cases. */
export interface Evaluation {
  /** The scores of each case, in the given order. */
  readonly cases: readonly CaseScores[];
  /** The mean of each scorer, by its name. */
  readonly means: Readonly<Record<string, number>>;
  /** The scores as text, such as for `console.log()`. */
  readonly table: string;
}

/** Options of `evaluate()`. */
export interface EvaluateOptions {
  /** The number of cases that run at the same time. Default: 4. */
  readonly parallel?: number;
}

/**
 * Runs cases and rates their runs. It needs no service: with recorded models, no network. Throws a `RangeError` for a score that is not from 0 to 1.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { evaluate, scripted } from "@jizai/jizai/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const assistant = agent({ model: scripted("4", "5") });
 * const { table } = await evaluate(
 *   [{ name: "sum", agent: assistant, prompt: "2 + 2", expected: "4" }, { name: "product", agent: assistant, prompt: "2 * 3", expected: "6" }],
 *   [{ name: "exact", score: ({ case: { expected }, result }) => result.text === expected }],
 *   { parallel: 1 },
 * );
 * assertEquals(table, "case     status  exact\nsum      done     1.00\nproduct  done     0.00\nmean              0.50");
 * ```
 */
export async function evaluate(
  cases: readonly EvaluationCase[],
  scorers: readonly Scorer[],
  { parallel = 4 }: EvaluateOptions = {},
): Promise<Evaluation> {
  if (!(parallel >= 1)) throw new RangeError(`Cannot evaluate: expected at least 1 parallel case, got ${parallel}`);
  const rows: CaseScores[] = [];
  const left = cases.entries();
  async function work(): Promise<void> {
    for (const [index, one] of left) rows[index] = await scoresOf(one, scorers); // the workers share the iterator
  }
  await Promise.all(Array.from({ length: Math.min(parallel, cases.length) }, work));
  const means = Object.fromEntries(scorers.map(({ name }) => {
    return [name, rows.reduce((sum, { scores }) => sum + (scores[name] ?? 0), 0) / Math.max(1, rows.length)];
  }));
  return { cases: rows, means, table: tableOf(rows, scorers.map(({ name }) => name), means) };
}

async function scoresOf(one: EvaluationCase, scorers: readonly Scorer[]): Promise<CaseScores> {
  const run = one.agent.run({ prompt: one.prompt, vars: one.vars });
  const events = await Array.fromAsync(run.events);
  const result = await run.result;
  const scores: Record<string, number> = {};
  const errors: Record<string, unknown> = {};
  for (const { name, score } of scorers) {
    let scoreValue: number | boolean = 0;
    try {
      scoreValue = await score({ case: one, result, events });
    } catch (error) {
      errors[name] = error;
    }
    scores[name] = checked(name, Number(scoreValue));
  }
  return { name: one.name, status: result.status, scores, errors };
}

/** Throws a `RangeError` for a score that no scorer may give. */
function checked(scorer: string, score: number): number {
  if (score >= 0 && score <= 1) return score;
  throw new RangeError(`Cannot use the score ${score} of "${scorer}": expected a number from 0 to 1`);
}

function tableOf(
  rows: readonly CaseScores[],
  scorers: readonly string[],
  means: Readonly<Record<string, number>>,
): string {
  const digits = (score: number | undefined) => (score ?? 0).toFixed(2);
  const lines = [
    ["case", "status", ...scorers],
    ...rows.map(({ name, status, scores, errors }) => [
      name,
      status,
      ...scorers.map((scorer) => scorer in errors ? "error" : digits(scores[scorer])),
    ]),
    ["mean", "", ...scorers.map((scorer) => digits(means[scorer]))],
  ];
  const widths = [...lines[0] ?? []].map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) =>
    line.map((cell, column) => column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))
      .join("  ").trimEnd()
  ).join("\n");
}
