/**
 * How whoever implements a port is held to its laws.
 *
 * @module
 */
import { cancellationOf, withGracePeriod } from "../core/abandon.ts";
import { canonicalJson } from "../core/canonical.ts";

/** Tells what is not as it is expected to be, by its JSON. */
export type Expect = (what: string, seen: unknown, expected: unknown) => void;

/** The laws of a port, by what they say of whoever keeps them. Each is tried on a new one; `signal` aborts when that takes too long. */
export type Laws<P> = Readonly<Record<string, (port: P, expect: Expect, signal: AbortSignal) => Promise<void>>>;

/** How an adapter is held to the laws of its port. */
export interface LawOptions {
  /** Has time pass for the adapter, in milliseconds. Without it, no expiry is tried. */
  readonly pass?: (ms: number) => void | Promise<void>;
  /** How long one law may take, in milliseconds. Default: 10,000. */
  readonly time?: number;
}

/** Makes what is tried: a new one that is empty. */
export type Make<P> = (options: {
  /** Milliseconds after its last change that it forgets something. */
  readonly expireIn?: number;
}) => P | Promise<P>;

/** Milliseconds after which what is tried forgets: less than what a law may take, as that time may be the one that passes. */
export const expireIn = 1_000;

/** The laws of what forgets after `expireIn`, for whom `pass` has time pass. */
export type Expiring<P> = (pass: NonNullable<LawOptions["pass"]>) => Laws<P>;

/** Tries every law; those of what forgets too, where time can be had pass. Throws an `Error` with a paragraph for each that is broken. */
export async function hold<P>(
  make: Make<P>,
  laws: Laws<P>,
  expiring: Expiring<P>,
  { pass, time }: LawOptions,
): Promise<void> {
  const told = [
    ...await broken(laws, () => make({}), time),
    ...pass ? await broken(expiring(pass), () => make({ expireIn }), time) : [],
  ];
  if (told.length > 0) throw new Error(told.join("\n"));
}

/** Tries every law, and gives a paragraph for each that is broken. */
export async function broken<P>(laws: Laws<P>, make: () => P | Promise<P>, time = 10_000): Promise<readonly string[]> {
  const told: string[] = [];
  for (const [law, tried] of Object.entries(laws)) {
    const seen = await troubles(async (expect, signal) => await tried(await make(), expect, signal), time);
    if (seen.length > 0) told.push([`It breaks the law that it ${law}:`, ...seen].join("\n- "));
  }
  return told;
}

/** What went wrong while `work` was done. */
async function troubles(
  work: (expect: Expect, signal: AbortSignal) => Promise<void>,
  time: number,
): Promise<readonly string[]> {
  const told = new Set<string>();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), time);
  const expect: Expect = (what, seen, expected) => {
    if (canonicalJson(seen) !== canonicalJson(expected)) {
      told.add(`${what}: ${brief(seen)} instead of ${brief(expected)}`);
    }
  };
  try {
    await withGracePeriod(work(expect, late.signal), cancellationOf(late.signal), 100, () => {});
  } catch (error) {
    if (!late.signal.aborted) told.add(`it threw ${error}`);
  } finally {
    clearTimeout(timer);
  }
  if (late.signal.aborted) told.add(`it was not done after ${time} ms`);
  return [...told];
}

/** A value in a few words. */
function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 160)}… of ${text.length} characters` : text;
}
