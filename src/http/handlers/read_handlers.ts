/**
 * Operations that read: the events of a run, a session, and the static JSON of wires.
 *
 * @module
 */
import { latestRunOf } from "../../session/record/run_state.ts";
import type { OperationOf } from "../parse/operation.ts";
import { notFound } from "../respond/error_response.ts";
import { respondFromRecord } from "../respond/respond.ts";
import type { RequestScope } from "../server.ts";

/** Responds with the events of a run that the client has not received. */
export async function handleFollow(
  scope: RequestScope,
  { run, after, format }: OperationOf<"follow">,
): Promise<Response> {
  return await respondFromRecord(scope, { run, after }, format);
}

/** Responds with the events of the latest run of a session. A client that reconnects may have missed the end of the run. */
export async function handleFollowSession(
  scope: RequestScope,
  { session, format }: OperationOf<"followSession">,
): Promise<Response> {
  const { c, server, client } = scope;
  const run = latestRunOf(await server.runs.head(session, client));
  if (!server.runs.records || run === undefined) return c.body(null, 204);
  return await respondFromRecord(scope, { run, session, after: 0 }, format);
}

/** Responds with a session. */
export async function handleShow(
  { c, server, client }: RequestScope,
  { session: id, body, page }: OperationOf<"show">,
): Promise<Response> {
  if (page) {
    const session = await server.runs.head(id, client);
    const history = session && await server.runs.history(id, client, page);
    if (!history) throw notFound(`show session "${id}"`);
    const { messages, before } = history;
    return c.json({ ...body({ ...session, messages }), ...(before !== undefined && { before }) });
  }
  const session = await server.runs.load(id, client);
  if (!session) throw notFound(`show session "${id}"`);
  return c.json(body(session));
}

/** Responds with static JSON. */
export function handleJson({ c }: RequestScope, { body }: OperationOf<"json">): Response {
  return c.json(body);
}
