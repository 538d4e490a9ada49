/**
 * The response to a request for a background run: 202 with the address of the run.
 *
 * @module
 */
import type { Context } from "hono";
import { nativeFormat, type ResponseFormat } from "./response_format.ts";

/** True if the client of a native route does not wait for the run: `Prefer: respond-async` of RFC 7240. */
export function prefersAsync(c: Context, format: ResponseFormat): boolean {
  const preferences = (c.req.header("prefer") ?? "").split(/[,;]/);
  return format === nativeFormat &&
    preferences.some((preference) => preference.trim().toLowerCase() === "respond-async");
}

/** Responds with the address of a run, where its events are, or without a log with that of its session. */
export function accepted(
  c: Context,
  { run, session = "" }: { readonly run: string; readonly session?: string },
  hasLog: boolean,
): Response {
  const { pathname } = new URL(c.req.url); // encoded, unlike `c.req.path`
  const base = pathname.replace(/\/(runs|sessions\/[^/]+\/[^/]+)$/, "");
  return c.json({ run, session }, 202, {
    "location": `${base}/${hasLog ? `runs/${run}` : `sessions/${encodeURIComponent(session)}`}`,
    "preference-applied": "respond-async",
  });
}
