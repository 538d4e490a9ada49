/**
 * The laws of middleware, and the report about those that were broken.
 *
 * @module
 */
import type { Point } from "../protocol/event.ts";

/** Every law, as a report tells it. */
export const laws = {
  passes: "lets what lies beneath come through",
  unwinds: "lets what ends or pauses a run come through",
  next: "calls next() as the point allows, and awaits it",
  readonly: "changes nothing that it was given",
  valid: "leaves the transcript valid",
  clean: "leaves no listener and no timer behind",
  stops: "stops when it is told to",
  apart: "keeps one run apart from another",
} as const;

/** Tells what was seen of a broken law, and at which point where that is known. */
export type Tell = (law: keyof typeof laws, what: string, point?: Point) => void;

/** What was found in all scenarios. */
export interface Findings {
  /** Whoever is told of what is found in one scenario. */
  in(scenario: string): Tell;
  /** A paragraph for each broken law; what was seen in several scenarios is said once. Empty where none was broken. */
  report(name: string): string;
}

/** Begins with nothing found. */
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
