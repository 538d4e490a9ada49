/**
 * The routes of wires. They ask for the same operations as the native routes.
 *
 * @module
 */
import { json } from "../../protocol/shape.ts";
import type { ParsedRequest, WireRoute } from "../../wire/wire.ts";
import type { ServerOptions } from "../server_options.ts";
import { wireFormat } from "../respond/response_format.ts";
import type { Operation } from "./operation.ts";
import { readJson } from "./read_body.ts";
import { addressedSession, type Route } from "./route.ts";

/** Returns a route of a wire as a route of the server. */
export function wireRoute({ method, path, parse, encodeError }: WireRoute, options: ServerOptions): Route {
  return {
    method,
    path,
    errorBody: encodeError,
    async parse(c) {
      const body = method === "POST" ? await readJson(c, json, options.maxBody) : undefined;
      const session = await addressedSession(c, options);
      return operationOf(parse({ params: c.req.param(), body, session }), session);
    },
  };
}

/** Returns the operation that a wire's request asks for. The session in the URL replaces the one that the client names. */
function operationOf(parsed: ParsedRequest, addressed: string | undefined): Operation {
  if (parsed.type === "json") return { type: "json", body: parsed.body };
  if (parsed.type === "chat") {
    const { mustExist = false, resumeToken, input, reply } = parsed;
    const create = !mustExist || addressed !== undefined;
    return {
      type: "chat",
      session: addressed ?? parsed.session,
      create,
      resumeToken,
      input,
      format: wireFormat(reply),
    };
  }
  const named = { session: addressed ?? parsed.session };
  if (parsed.type === "follow") return { type: "followSession", ...named, format: wireFormat(parsed.reply) };
  if (parsed.type === "session") return { type: "show", ...named, body: parsed.body };
  return { type: "stopSession", ...named };
}
