/**
 * The request path: every route, native or of a wire, runs through the same five steps. See README.md in this folder.
 *
 * @module
 */
import type { Context } from "hono";
import { handleFinish, handleMessage, handleStop, handleStopSession } from "./handlers/control_handlers.ts";
import { handleFollow, handleFollowSession, handleJson, handleShow } from "./handlers/read_handlers.ts";
import { handleAnswers, handleChat, handleCompaction, handlePrompt } from "./handlers/run_handlers.ts";
import { type Client, identify } from "./identify.ts";
import type { Operation, OperationOf } from "./parse/operation.ts";
import { ownedKey } from "../session/owned_store.ts";
import { expectId, type Route } from "./parse/route.ts";
import { errorResponse, shuttingDown } from "./respond/error_response.ts";
import type { RequestScope, Server } from "./server.ts";

/** Returns the handler of a route: parse, identify, admit, launch, respond. */
export function requestPath({ parse, errorBody }: Route, server: Server): (c: Context) => Promise<Response> {
  const { options } = server;
  return async (c) => {
    try {
      let operation: Operation | undefined;
      let failure: unknown;
      try {
        operation = await parse(c);
      } catch (error) {
        failure = error; // thrown below: a client that is not identified learns nothing else
      }
      const client = await identify(c, options);
      if (options.signal?.aborted) throw shuttingDown();
      if (!operation) throw failure;
      expectIds(operation, client);
      return await handle({ c, server, client }, operation);
    } catch (error) {
      return errorResponse(error, c, options.onError, errorBody);
    }
  };
}

/** Throws a `ShapeError` if the operation names a session or a run that cannot exist. */
function expectIds(operation: Operation, { owner }: Client): void {
  const { session, run } = { session: undefined, run: undefined, ...operation };
  for (const id of [session, run]) if (id !== undefined) expectId("id", id, ownedKey(owner, id));
}

/** Admits an operation of one type, launches its run if it has one, and responds. */
type Handler<T extends Operation> = (scope: RequestScope, operation: T) => Response | Promise<Response>;

const handlers: { readonly [T in Operation["type"]]: Handler<OperationOf<T>> } = {
  prompt: handlePrompt,
  answers: handleAnswers,
  chat: handleChat,
  compact: handleCompaction,
  follow: handleFollow,
  followSession: handleFollowSession,
  show: handleShow,
  json: handleJson,
  message: handleMessage,
  finish: handleFinish,
  stop: handleStop,
  stopSession: handleStopSession,
};

function handle(scope: RequestScope, operation: Operation): Response | Promise<Response> {
  const handler = handlers[operation.type] as Handler<Operation>; // it takes the operations of its type
  return handler(scope, operation);
}
