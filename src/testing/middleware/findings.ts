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
  valid: "leaves the transcript valid",
  clean: "leaves no listener and no timer behind",
  stops: "stops when its signal aborts",
  apart: "keeps one run apart from another",
} as const;

/** Reports a broken law: what was observed, and at which point if that is known. */
export type Report = (law: keyof typeof laws, what: string, point?: Point) => void;

/** The broken laws of all scenarios. */
export interface Findings {
  /** Returns the function that reports a broken law of one scenario. */
  in(scenario: string): Report;
  /** Returns a paragraph for each broken law, with each observation once; empty if no law was broken. */
  report(name: string): string;
}

/** Creates an empty list of findings. */
export function findings(): Findings {
  const found: { readonly law: string; readonly what: string; readonly scenario: string }[] = [];

  function linesOf(law: string): readonly string[] {
    const seen = new Map<string, string[]>();
    for (const { what, scenario } of found.filter((finding) => finding.law === law)) {
      seen.set(what, [...seen.get(what) ?? [], scenario]);
    }
    return [...seen].map(([what, [first, ...more]]) =>
      `- ${what} (${first}${more.length > 0 ? `, and ${more.length} more` : ""})`
    );
  }

  return {
    in: (scenario) => (law, what, point) =>
      void found.push({ law, what: point ? `at ${point}, ${what}` : what, scenario }),
    report: (name) =>
      Object.entries(laws).flatMap(([law, title]) => {
        const lines = linesOf(law);
        return lines.length > 0 ? [`"${name}" breaks the law that a middleware ${title}:`, ...lines] : [];
      }).join("\n"),
  };
}
