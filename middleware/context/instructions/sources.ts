/**
 * Loads instructions from files and from URLs.
 *
 * @module
 */
import type { Scope } from "../../../mod.ts";
import { anySignal, type Files, startTimer } from "../../../src/core/kit.ts";
import { shown, textAt } from "./address.ts";

/** A file or a URL with instructions. */
export interface Source {
  /** Path or URL in events. */
  readonly path: string;
  /** Returns the text, or undefined if there is no such file. */
  readonly load: (ctx: Scope) => Promise<string | undefined>;
}

/** Loaded instructions. */
export interface Loaded {
  readonly path: string;
  readonly text: string;
}

/** The bounds of a fetch. */
export interface UrlBounds {
  /** URLs to which it may be redirected. */
  readonly allowed: ReadonlySet<string>;
  /** Largest response in bytes. */
  readonly maxBytes: number;
  /** Time in milliseconds. */
  readonly time: number;
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Returns the source of a file of at most `maxBytes` bytes. */
export function fileSource(path: string, files: Files, maxBytes: number): Source {
  return {
    path,
    async load() {
      const stat = await files.stat(path);
      if (stat?.type !== "file") return undefined;
      if (stat.size > maxBytes) throw new RangeError(`Cannot read ${path}: it has more than ${maxBytes} bytes`);
      const file = await files.read(path);
      return file && decoder.decode(file.bytes);
    },
  };
}

/** Returns the source of a URL. */
export function urlSource(url: string, { allowed, maxBytes, time }: UrlBounds): Source {
  return {
    path: shown(url),
    async load({ signal }) {
      const late = new AbortController();
      const timer = startTimer(() => late.abort(new DOMException(`Not done after ${time} ms`, "TimeoutError")), time);
      try {
        return await textAt(url, { allowed, maxBytes, signal: anySignal([signal, late.signal]) });
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** Loads the sources that exist. A failure is reported, and its source left out. */
export async function loadAll(sources: readonly Source[], ctx: Scope): Promise<readonly Loaded[]> {
  const loaded = await Promise.all(sources.map(async ({ path, load }): Promise<Loaded[]> => {
    try {
      const text = (await load(ctx))?.trim();
      return text ? [{ path, text }] : [];
    } catch (cause) {
      ctx.signal.throwIfAborted();
      ctx.run.report(new Error(`Cannot load instructions from ${path}`, { cause }));
      return [];
    }
  }));
  return loaded.flat();
}
