/**
 * The laws of middleware, and the report of those that were broken.
 *
 * @module
 */
import type { Point } from "../../protocol/event.ts";

/** The laws, as reports name them. */
export const laws = {
  passes: "passes on the results and errors of the inner layers",
  unwinds: "passes on what ends or pauses a run",
  next: "calls next() as the point allows, and awaits it",
  readonly: "changes nothing that it was given",
  streams: "streams the text that it returns",
  valid: "leaves the transcript valid",
  clean: "leaves no listener and no timer behind",
  stops: "stops when its signal aborts",
  apart: "keeps one run apart from another",
} as const;

/** The fix for a broken law, as reports name it. */
const fixes: Readonly<Record<keyof typeof laws, string>> = {
  passes: "Return the result of next(), and rethrow what it throws, unless the hook answers itself.",
  unwinds: "Rethrow an error for which isInterrupt() is true.",
  next: "Await next(), and call it again only at model and execute, after it has settled.",
  readonly: "Pass a change to next(), or return a new object such as { ...result, parts }.",
  streams: "Change the deltas too: use rewrite() at model, or pass next({ emit }) a filter that changes text.delta.",
  valid: "Keep each call of the transcript together with its result.",
  clean: "Clear timers and remove listeners in a finally block.",
  stops: "Pass ctx.signal to what the hook waits for, and stop when it aborts.",
  apart: "Keep the data of a run in state(). If runs share data on purpose, such as a cache, pass { shares: true }. " +
    "If the results or events contain the time, give the middleware a fixed clock.",
};

/** The observations of a hook that reads vars which the test does not have. */
const missingVars =
  /(undefined|null).*(reading|properties|object|evaluating)|(reading|properties|object|evaluating).*(undefined|null)/;

/** Reports a broken law: what was observed, and at which point if that is known. */
export type Report = (law: keyof typeof laws, observation: string, point?: Point) => void;

/** The options that a report may advise. */
export interface Hints {
  /** True if the test has no vars. Default: false. */
  readonly vars?: boolean;
}

/** The broken laws of all scenarios. */
export interface Findings {
  /** Returns the function that reports a broken law of one scenario. */
  in(scenario: string): Report;
  /** Returns a paragraph for each broken law, with each observation once, and its fix; empty if no law was broken. */
  report(name: string, hints?: Hints): string;
}

/** Creates an empty list of findings. */
export function findings(): Findings {
  const found: { readonly law: string; readonly observation: string; readonly scenario: string }[] = [];

  function linesOf(law: string): readonly string[] {
    const seen = new Map<string, string[]>();
    for (const { observation, scenario } of found.filter((finding) => finding.law === law)) {
      seen.set(observation, [...seen.get(observation) ?? [], scenario]);
    }
    return [...seen].map(([observation, [first, ...more]]) =>
      `- ${observation} (${first}${more.length > 0 ? `, and ${more.length} more` : ""})`
    );
  }

  return {
    in: (scenario) => (law, observation, point) =>
      void found.push({ law, observation: point ? `at ${point}, ${observation}` : observation, scenario }),
    report: (name, hints = {}) =>
      Object.entries(laws).flatMap(([law, title]) => {
        const lines = linesOf(law);
        const isConsequence = law === "streams" && found.some((finding) => finding.law !== law); // the text differs because another law is broken
        if (lines.length === 0 || isConsequence) return [];
        const needsVars = hints.vars && lines.some((line) => missingVars.test(line));
        const fix = needsVars
          ? 'If the hook reads ctx.vars, pass them: { vars: { user: "ann" } }.'
          : fixes[law as keyof typeof laws]; // its own keys
        return [`"${name}" breaks the law that a middleware ${title}:`, ...lines, `  ${fix}`];
      }).join("\n"),
  };
}
