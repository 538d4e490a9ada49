/**
 * The native routes.
 *
 * @module
 */
import type { Context } from "hono";
import { invalid, type Shape } from "../../protocol/shape.ts";
import type { Session } from "../../core/session.ts";
import type { HistoryOptions } from "../../core/store.ts";
import type { RunAddress } from "../../session/record/run_host.ts";
import { runView } from "../../session/record/run_state.ts";
import type { ServerOptions } from "../server_options.ts";
import { RequestError } from "../respond/error_response.ts";
import { nativeFormat as format } from "../respond/response_format.ts";
import { answersBody, compactBody, messageBody, runBody } from "./body.ts";
import type { Operation } from "./operation.ts";
import { readJson } from "./read_body.ts";
import { addressedSession, type Route } from "./route.ts";

/** The name of the id in a path. An app that mounts the server may have a parameter `id` of its own, which Hono would return in its place. */
const idName = "jizai_id";

/** Returns the native routes of a server. `serve()` documents them. */
export function nativeRoutes(options: ServerOptions): readonly Route[] {
  const body = <T>(c: Context, shape: Shape<T>) => readJson(c, shape, options.maxBody);

  async function prompt(c: Context): Promise<Operation> {
    const { session: named, ...input } = await body(c, runBody);
    const addressed = await addressedSession(c, options);
    if (addressed !== undefined && named !== undefined && named !== addressed) {
      throw new RequestError(404, "unknown", `Cannot run session "${named}": there is none`);
    }
    return {
      type: "prompt",
      input,
      session: addressed ?? named,
      create: addressed !== undefined,
      busy: options.busy ?? "refuse",
      format,
    };
  }

  return [
    { method: "POST", path: "/runs", parse: prompt },
    {
      method: "GET",
      path: `/runs/:${idName}`,
      parse: (c) => ({ type: "follow", run: idOf(c), after: positionOf(c), format }),
    },
    {
      method: "POST",
      path: `/runs/:${idName}/messages`,
      parse: async (c) => ({ type: "message", ...runIn(c), message: await body(c, messageBody) }),
    },
    { method: "POST", path: `/runs/:${idName}/finish`, parse: (c) => ({ type: "finish", ...runIn(c) }) },
    {
      method: "POST",
      path: `/runs/:${idName}/stop`,
      parse: (c) => ({ type: "stop", ...runIn(c), rollback: rollbackOf(c) }),
    },
    {
      method: "GET",
      path: `/sessions/:${idName}`,
      parse: (c) => ({ type: "show", session: idOf(c), body: viewOf, page: pageOf(c) }),
    },
    {
      method: "POST",
      path: `/sessions/:${idName}/answers`,
      parse: async (c) => ({ ...await body(c, answersBody), type: "answers", session: idOf(c), format }),
    },
    {
      method: "POST",
      path: `/sessions/:${idName}/compact`,
      async parse(c) {
        const { instructions = "" } = await body(c, compactBody);
        return { type: "compact", session: idOf(c), instructions, format };
      },
    },
  ];
}

/** Returns what a client may see of a session. */
function viewOf(session: Session): object {
  const run = runView(session);
  return { id: session.id, messages: session.messages, ...(run && { run }) };
}

/** Returns the id in the path. */
function idOf(c: Context): string {
  return c.req.param(idName) ?? "";
}

/** Returns the run in the path, and its session if `?session` names it. */
function runIn(c: Context): RunAddress {
  const session = c.req.query("session");
  return { run: idOf(c), ...(session !== undefined && { session }) };
}

/** Returns whether the transcript is to be restored: `?rollback`, or `?rollback=true`. */
function rollbackOf({ req }: Context): boolean {
  const text = req.query("rollback") ?? "false";
  if (text === "false") return false;
  if (text === "" || text === "true") return true;
  throw invalid("rollback", "true or false");
}

/** Returns the page of a session's history that is asked for: `?limit` and `?before`. */
function pageOf({ req }: Context): HistoryOptions | undefined {
  const [before, limit] = (["before", "limit"] as const).map((name) => {
    const text = req.query(name);
    if (text === undefined) return undefined;
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < 1 || number > (name === "limit" ? longestPage : Number.MAX_SAFE_INTEGER)) {
      throw invalid(name, name === "limit" ? `a whole number from 1 to ${longestPage}` : "the `before` of a page");
    }
    return number;
  });
  return before === undefined && limit === undefined ? undefined : { before, limit };
}

/** The most messages of a page. */
const longestPage = 1_000;

/** Returns the number of the last event that the client has received. */
function positionOf({ req }: Context): number {
  const header = req.header("last-event-id");
  const text = header ?? req.query("after") ?? "0";
  const after = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(after)) return after;
  throw invalid(header === undefined ? "after" : "last-event-id", "the number of an event");
}
