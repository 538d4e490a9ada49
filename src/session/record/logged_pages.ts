/**
 * Reading records page by page.
 *
 * @module
 */
import type { Log, LogPage } from "../log.ts";

/** Yields the events after event `after` that are logged now, page by page; nothing if there is no such record. */
export async function* loggedPages(log: Log, key: string, after: number): AsyncGenerator<LogPage> {
  for (let at = after;;) {
    const page = await log.read(key, at);
    if (!page) return;
    yield page;
    const { first, lines, last } = page;
    at = first + lines.length - 1;
    if (lines.length === 0 || at >= last) return;
  }
}
