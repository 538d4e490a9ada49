/**
 * Calls of MCP clients (`tools/call`): the run that a call begins or continues, its progress, and its result.
 *
 * @module
 */
import { canonicalJson } from "../../core/lib/json.ts";
import { isPaused, questionsOf, type Session } from "../../core/session.ts";
import { type CallResult, user } from "../../protocol/message.ts";
import type { ContentPart } from "../../protocol/part.ts";
import { isId, isObject, type UnknownObject } from "../../protocol/shape.ts";
import { textFailure } from "../failed_response.ts";
import { frameOf } from "../frames.ts";
import { answersOf, type CalledTool, inputRequired, type PausedCall, pausedCallOf, unaskedText } from "./questions.ts";
import { type McpRequest, paramsError, resultMessage, type ServerInfo, wrongParams } from "./request.ts";
import { type ChatInput, type EventEncoder, type EventOf, type ParsedRequest, pauseId, tableEncoder } from "../wire.ts";

/** The tools of a server. */
export interface ServedTools {
  /** The name of the tool that is the agent itself. Default: the agent is not served. */
  readonly agent: string | undefined;
  /** True if the agent has a structured output, which its clients expect. */
  readonly hasOutput: boolean;
  /** The names of all tools. */
  readonly names: ReadonlySet<string>;
  readonly server: ServerInfo;
}

/** A call, its request, and the server. */
interface ServedCall {
  readonly request: McpRequest;
  readonly call: CalledTool;
  readonly served: ServedTools;
}

/** Parses a call: it begins a run, or continues the one that waits for the answers that it brings. */
export function parseCall(request: McpRequest, served: ServedTools, addressed: string | undefined): ParsedRequest {
  const { name, arguments: input = {}, requestState, inputResponses = {} } = request.params;
  if (typeof name !== "string" || !served.names.has(name)) {
    return wrongParams(request, `Unknown tool: ${JSON.stringify(name)}`);
  }
  if (!isObject(input)) return wrongParams(request, "Cannot call the tool: expected an object as its `arguments`");
  if (!isObject(inputResponses)) {
    return wrongParams(request, "Cannot call the tool: expected an object `inputResponses`");
  }
  const call = { name, input };
  const encoder = () => callEncoder({ request, call, served }, addressed !== undefined);
  const reply = { type: "stream", encoder } as const;
  if (requestState === undefined) {
    const chatInput = beginning(call, served);
    return typeof chatInput === "string" ? wrongParams(request, chatInput) : { type: "chat", ...chatInput, reply };
  }
  const paused = pausedCallOf(requestState, call);
  if (!paused) {
    return wrongParams(request, "Cannot continue the call: its `requestState` was changed, or belongs to another call");
  }
  const { session, pause, resumeToken } = paused;
  const isAnswer = Object.keys(inputResponses).some((name) => name.endsWith(`@${pause}`));
  if (!isAnswer) {
    return { type: "session", session, body: (stored) => askedAgain({ request, call, served }, paused, stored) };
  }
  return {
    type: "chat",
    session,
    mustExist: true,
    resumeToken,
    input: (pending) => ({ answers: pauseId(pending) === pause ? answersOf(inputResponses, pending) : [] }),
    reply,
  };
}

/** Returns the questions of a pause once more, for a client that has sent no answer. */
function askedAgain(
  { request, call, served }: ServedCall,
  { session, pause }: PausedCall,
  stored: Session,
): object {
  const { run } = stored;
  const place = { run: run?.id ?? "", pausedAt: run?.events ?? 0 };
  if (!isPaused(stored) || pauseId(place) !== pause) {
    return paramsError(request, "Cannot continue the call: its questions are no longer open");
  }
  const questions = questionsOf(stored);
  return resultMessage(request, inputRequired({ questions }, { session, pause: place, call }), served.server);
}

/** The parts of a call that do not depend on its response. */
type CallInput = Omit<ChatInput, "type" | "reply">;

/** Returns the input of a new run, or the reason why there is none. */
function beginning(call: CalledTool, { agent }: ServedTools): CallInput | string {
  const { name, input } = call;
  if (name !== agent) {
    const text = `Call ${name} ${canonicalJson(input)}`;
    return { input: () => ({ messages: [user(text)], call }) };
  }
  const { prompt, session } = input;
  if (typeof prompt !== "string") return `Cannot call ${name}: expected a text as its \`prompt\``;
  if (session !== undefined && (typeof session !== "string" || !isId(session))) {
    return `Cannot call ${name}: expected the id of a session as its \`session\``;
  }
  return { session, mustExist: session !== undefined, input: () => ({ messages: [user(prompt)] }) };
}

// The response: notifications of progress, and the result at the end of the run.

/** Creates the encoder of one response. `isAddressed`: the URL names the session, so that the client need not know it. */
function callEncoder({ request, call, served }: ServedCall, isAddressed: boolean): EventEncoder {
  const { progressToken } = request;
  const isAgent = call.name === served.agent;
  let place = { run: "", session: "" };
  let result: CallResult | undefined;
  /** The files and sources of the last answer. */
  let files: object[] = [];
  let progress = 0;

  /** Sends the progress, which must grow. */
  function notify(message: string, { progress: value, total }: UnknownObject = {}): string {
    if (progressToken === undefined) return "";
    progress = typeof value === "number" && value > progress ? value : Math.floor(progress) + 1;
    const params = { progressToken, progress, ...(typeof total === "number" && { total }), message };
    return frameOf({ jsonrpc: "2.0", method: "notifications/progress", params });
  }

  const send = (result: UnknownObject) => frameOf(resultMessage(request, result, served.server));
  const fail = (...texts: readonly string[]) =>
    send({ content: texts.filter((text) => text !== "").map((text) => ({ type: "text", text })), isError: true });

  /** Sends the end of a run. */
  function end(event: EventOf<"run.finished" | "run.failed" | "run.aborted">): string {
    const failed = textFailure(event);
    if (failed) {
      return event.type === "run.failed"
        ? fail(`${failed.message} Error id: ${event.error}`)
        : fail(event.text, failed.message);
    }
    if (result) return send(encodeResult(result));
    return event.type === "run.finished" ? finish(event) : "";
  }

  /** Sends the answer of the agent. */
  function finish({ text, output }: EventOf<"run.finished">): string {
    if (isAgent && served.hasOutput) {
      if (output === undefined) return fail(text);
      return send({ content: [{ type: "text", text: JSON.stringify(output) }, ...files], structuredContent: output });
    }
    const again = `To continue this conversation, call ${call.name} with the session "${place.session}".`;
    const note = { type: "text", text: again, annotations: { audience: ["assistant"] } };
    return send({ content: [{ type: "text", text }, ...files, ...isAgent && !isAddressed ? [note] : []] });
  }

  /** Drops the files of a response that another one follows. */
  function restart(): string {
    files = [];
    return "";
  }

  return tableEncoder({
    "run.started"({ run, session }) {
      place = { run, session };
      return "";
    },
    "model.started": restart,
    "model.reset": restart,
    "text.delta": ({ text }) => notify(text),
    "part.added"({ content }) {
      if (content.type === "media") files.push(contentOf(content, files.length));
      if (content.type === "source" && content.url !== undefined) {
        files.push(linkTo(content.url, content.title ?? content.url));
      }
      return "";
    },
    "tool.started": ({ name }) => isAgent ? notify(`Calling ${name}.`) : "",
    "tool.progress": ({ data }) =>
      isObject(data) ? notify(messageOf(data), data) : notify(messageOf({ message: data })),
    "tool.finished"({ result: finished }) {
      if (!isAgent) result = finished;
      return "";
    },
    "run.paused"(event, id) {
      const { session } = place;
      if (!request.canAsk) return fail(unaskedText(event, session));
      return send(inputRequired(event, { session, pause: { run: place.run, pausedAt: id }, call }));
    },
    "run.finished": end,
    "run.failed": end,
    "run.aborted": end,
  });
}

/** Returns the text of a notification of progress. */
function messageOf({ message, progress: _, total: __, ...rest }: UnknownObject): string {
  if (typeof message === "string") return message;
  const other = message ?? (Object.keys(rest).length > 0 ? rest : undefined);
  return other === undefined ? "" : JSON.stringify(other);
}

/** Returns the result of a call of a tool. */
function encodeResult({ status, parts, artifacts = [] }: CallResult): UnknownObject {
  const links = artifacts.map(({ uri, name = uri, mediaType }) => ({ ...linkTo(uri, name), mimeType: mediaType }));
  return { content: [...parts.map(contentOf), ...links], ...(status !== "ok" && { isError: true }) };
}

/** Returns a part as content of MCP. */
function contentOf(part: ContentPart, index: number): object {
  if (part.type === "text") return { type: "text", text: part.text };
  const { mediaType: mimeType, data, url = `file:///${index + 1}` } = part;
  if (data === undefined) return { ...linkTo(url, url), mimeType };
  const [kind] = mimeType.split("/");
  if (kind === "image" || kind === "audio") return { type: kind, data, mimeType };
  return { type: "resource", resource: { uri: url, mimeType, blob: data } };
}

function linkTo(uri: string, name: string): object {
  return { type: "resource_link", uri, name };
}
