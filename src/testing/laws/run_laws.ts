/**
 * Runs the laws of a port against an adapter.
 *
 * @module
 */
import { cancellationOf, withGracePeriod } from "../../core/lib/cancellation.ts";
import { canonicalJson } from "../../core/lib/json.ts";

/** Reports a value whose JSON differs from the expected one. */
export type Expect = (subject: string, seen: unknown, expected: unknown) => void;

/** Tries one law on a new adapter. `signal` aborts when it takes too long. `instances` are all instances on the adapter's database, of which it is the first. */
type Law<P> = (port: P, expect: Expect, signal: AbortSignal, instances: readonly P[]) => Promise<void>;

/** The laws of a port, by name. */
export type Laws<P> = Readonly<Record<string, Law<P>>>;

/** Options of `storeLaws()`, `logLaws()` and `fileLaws()`. */
export interface LawOptions {
  /** Lets time pass for the adapter, in milliseconds. Without it, expiry is not tested. */
  readonly pass?: (ms: number) => void | Promise<void>;
  /** Milliseconds that one law may take. Default: 10,000. */
  readonly time?: number;
}

/** Creates a new, empty adapter, or several instances of it on one empty database, as processes that share the database have them. */
export type Make<P> = (options: {
  /** Milliseconds after its last change that an entry is deleted; for the session of an active run, after the end of its lease. */
  readonly expireIn?: number;
}) => P | readonly P[] | Promise<P | readonly P[]>;

/** The expiry of adapters under test: shorter than a law may take, because `pass` may advance the clock of the laws too. */
export const expireIn = 1_000;

/** Returns the laws of an adapter with an expiry of `expireIn`. */
export type ExpiryLaws<P> = (pass: NonNullable<LawOptions["pass"]>) => Laws<P>;

/** Tries every law, and those of expiry if `pass` is given. Throws an `Error` with a paragraph for each broken law. */
export async function checkLaws<P>(
  make: Make<P>,
  laws: Laws<P>,
  expiryLaws: ExpiryLaws<P>,
  { pass, time }: LawOptions,
): Promise<void> {
  const paragraphs = [
    ...await brokenLaws(laws, () => make({}), time),
    ...pass ? await brokenLaws(expiryLaws(pass), () => make({ expireIn }), time) : [],
  ];
  if (paragraphs.length > 0) throw new Error(paragraphs.join("\n"));
}

/** Tries every law, and returns a paragraph for each broken one. */
export async function brokenLaws<P>(
  laws: Laws<P>,
  make: () => P | readonly P[] | Promise<P | readonly P[]>,
  time = 10_000,
): Promise<readonly string[]> {
  const paragraphs: string[] = [];
  for (const [law, tried] of Object.entries(laws)) {
    const seen = await problemsOf(async (expect, signal) => {
      const made: P | readonly P[] = await make();
      const instances = isList(made) ? made : [made];
      await tried(instances[0] as P, expect, signal, instances); // there is at least one
    }, time);
    if (seen.length > 0) paragraphs.push([`It breaks the law that it ${law}:`, ...seen].join("\n- "));
  }
  return paragraphs;
}

export function isList<P>(made: P | readonly P[]): made is readonly P[] {
  return Array.isArray(made);
}

/** Runs the work of a law, and returns the problems. */
async function problemsOf(
  work: (expect: Expect, signal: AbortSignal) => Promise<void>,
  time: number,
): Promise<readonly string[]> {
  const problems = new Set<string>();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), time);
  const expect: Expect = (subject, seen, expected) => {
    if (canonicalJson(seen) !== canonicalJson(expected)) {
      problems.add(`${subject}: ${shortened(seen)} instead of ${shortened(expected)}`);
    }
  };
  try {
    await withGracePeriod(work(expect, late.signal), cancellationOf(late.signal), 100, () => {});
  } catch (error) {
    if (!late.signal.aborted) problems.add(`it threw ${error}`);
  } finally {
    clearTimeout(timer);
  }
  if (late.signal.aborted) problems.add(`it was not done after ${time} ms`);
  return [...problems];
}

/** Shortens the JSON of a value. */
function shortened(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 160)}… of ${text.length} characters` : text;
}
