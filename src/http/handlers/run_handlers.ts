/**
 * Operations that launch a run: a prompt, answers, a compaction, and a message of a wire's client.
 *
 * @module
 */
import type { Context } from "hono";
import { admitAnswers, admitChat, admitCompaction, admitPrompt, admitResume } from "../admit/admission.ts";
import type { RepeatableActions, RepeatableRequest } from "../admit/idempotency.ts";
import type { RunPosition } from "../../session/record/run_host.ts";
import { launch } from "../launch/launch.ts";
import type { AnswersOperation, ChatOperation, OperationOf, PromptOperation } from "../parse/operation.ts";
import { respondJoined } from "../respond/respond.ts";
import type { ResponseFormat } from "../respond/response_format.ts";
import type { RequestScope } from "../server.ts";

/** Begins a run: waits for the session as the `busy` option says, admits the prompt, and launches the run. */
export function handlePrompt(scope: RequestScope, operation: PromptOperation): Promise<Response> {
  const { c, server, client } = scope;
  const { input, session, busy, format } = operation;
  const own = { run: crypto.randomUUID(), session: session ?? crypto.randomUUID(), after: 0 };
  const request = { ...identityOf(c, [session, input]), position: own };
  return respondOnce(scope, request, format, (position = own) =>
    server.inTurn({
      position,
      client,
      busy,
      async launch(mode) {
        const admitted = await admitPrompt(scope, operation, position);
        return await launch(scope, { ...admitted, busy: mode }, format);
      },
    }));
}

/** Resumes a paused run with answers. With a log, a resume token is used once. */
export async function handleAnswers(scope: RequestScope, operation: AnswersOperation): Promise<Response> {
  const { answers, resumeToken, run: asking, at, format } = operation;
  const admitted = await admitAnswers(scope, operation);
  const { run, pausedAt, held, position } = admitted;
  const request = {
    ...identityOf(scope.c, [answers, resumeToken, asking, at]),
    ...(held && { key: `resumeToken:${run}:${pausedAt}` }),
    position,
  };
  return await respondOnce(scope, request, format, async (_, requestId) => {
    return await launch(scope, await admitResume(scope, operation, admitted, requestId), format);
  });
}

/** Compacts the transcript of a session, in a run that does nothing else. */
export function handleCompaction(scope: RequestScope, operation: OperationOf<"compact">): Promise<Response> {
  const { session, instructions, format } = operation;
  const own = { run: crypto.randomUUID(), session, after: 0 };
  const request = { ...identityOf(scope.c, [session, instructions]), position: own };
  return respondOnce(scope, request, format, async (position = own) => {
    return await launch(scope, await admitCompaction(scope, operation, position), format);
  });
}

/** Begins or resumes a run for a wire's client. */
export async function handleChat(scope: RequestScope, operation: ChatOperation): Promise<Response> {
  const admitted = await admitChat(scope, operation);
  return await (admitted.type === "prompt" ? handlePrompt(scope, admitted) : handleAnswers(scope, admitted));
}

/** Begins the run of a request, or joins the run that the same request has begun, and responds with its events. */
async function respondOnce(
  scope: RequestScope,
  request: RepeatableRequest,
  format: ResponseFormat,
  begin: RepeatableActions["begin"],
): Promise<Response> {
  const join = (position: RunPosition) => Promise.resolve({ respond: () => respondJoined(scope, position, format) });
  const { respond } = await scope.server.once(request, scope.client, { begin, join });
  return await respond();
}

/** Returns the content of a request, to compare it with others that have the same idempotency key. */
function identityOf({ req }: Context, body: readonly unknown[]) {
  return { header: req.header("idempotency-key"), content: [req.path, ...body] };
}
