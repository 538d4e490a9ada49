/**
 * The request path: every route, native or of a wire, runs through the same five steps. See README.md in this folder.
 *
 * @module
 */
import type { Context } from "hono";
import { handleFinish, handleMessage, handleStop, handleStopSession } from "./handlers/control_handlers.ts";
import { handleFollow, handleFollowSession, handleJson, handleShow } from "./handlers/read_handlers.ts";
import { handleAnswers, handleChat, handleCompaction, handlePrompt } from "./handlers/run_handlers.ts";
import { identify } from "./identify.ts";
import type { Operation } from "./parse/operation.ts";
import type { Route } from "./parse/route.ts";
import { errorResponse, shuttingDown } from "./respond/error_response.ts";
import type { RequestScope, Server } from "./server.ts";
import { promiseTry } from "../stream/promise_try.ts";

/** Returns the handler of a route: parse, identify, admit, launch, respond. */
export function requestPath({ parse, errorBody }: Route, server: Server): (c: Context) => Promise<Response> {
  const { options } = server;
  return async (c) => {
    try {
      const operation = promiseTry(() => parse(c));
      await operation.catch(() => {}); // thrown below: a client that is not identified learns nothing else
      const client = await identify(c, options);
      if (options.signal?.aborted) throw shuttingDown();
      return await handle({ c, server, client }, await operation);
    } catch (error) {
      return errorResponse(error, c, options.onError, errorBody);
    }
  };
}

/** Admits an operation, launches its run if it has one, and responds. */
function handle(scope: RequestScope, operation: Operation): Response | Promise<Response> {
  switch (operation.type) {
    case "prompt":
      return handlePrompt(scope, operation);
    case "answers":
      return handleAnswers(scope, operation);
    case "chat":
      return handleChat(scope, operation);
    case "compact":
      return handleCompaction(scope, operation);
    case "follow":
      return handleFollow(scope, operation);
    case "followSession":
      return handleFollowSession(scope, operation);
    case "show":
      return handleShow(scope, operation);
    case "json":
      return handleJson(scope, operation);
    case "message":
      return handleMessage(scope, operation);
    case "finish":
      return handleFinish(scope, operation);
    case "stop":
      return handleStop(scope, operation);
    case "stopSession":
      return handleStopSession(scope, operation);
  }
}
