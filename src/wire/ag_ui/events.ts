/**
 * Events of a run and its subagents as AG-UI events.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { type CallResult, noUsage, textOf, type Usage, usageSince } from "../../protocol/message.ts";
import type { Call, ContentPart, OutputChange, OutputPath } from "../../protocol/part.ts";
import type { Question } from "../../protocol/question.ts";
import type { RunInput } from "./request.ts";
import { isForClient } from "../client_tool.ts";
import { refusalOf } from "../failed_response.ts";
import { frameOf } from "../frames.ts";
import { type EventEncoder, type EventOf, type Pause, questionId, tableEncoder } from "../wire.ts";

// The messages of a run as an AG-UI client holds them, so that a snapshot can replace them.

/** A message of an agent, as far as the client has received it. */
interface AgentMessage {
  readonly id: string;
  readonly role: "assistant" | "reasoning";
  readonly subagentRunId?: string;
  content?: string;
  toolCalls?: object[];
}

/** Any message of the client. */
interface ClientMessage {
  readonly id: string;
  readonly role: string;
}

/** The client's messages. */
interface History {
  /** The messages of this run. */
  readonly messages: ClientMessage[];
  /** Encodes all messages, which replaces those that the client holds. */
  snapshot(): string;
  /** Whether the client ran the call itself and sent its result. */
  hasResult(toolCallId: string): boolean;
}

/** Creates the history of a run that begins with `sent`, the messages of the request. */
function historyOf(sent: readonly { readonly [key: string]: unknown }[]): History {
  const messages: ClientMessage[] = [];
  return {
    messages,
    snapshot: () => frameOf({ type: "MESSAGES_SNAPSHOT", messages: [...sent, ...messages] }),
    hasResult: (call) => sent.some(({ toolCallId }) => toolCallId === call),
  };
}

// The structured output as AG-UI state: JSON Patch operations on its member `output`.

/** Encodes the changes of the structured output as JSON Patch operations. */
interface OutputState {
  /** Adds changes. Encodes the operations to send; nothing if there are none. */
  add(changes: readonly OutputChange[]): string;
  /** Encodes the operation for the text that is held back; nothing if there is none. */
  flush(): string;
  /** Encodes the removal of the member, because the model begins again; nothing if there is none. */
  discard(): string;
}

/**
 * Creates the state of one agent, whose events `frame` encodes. JSON Patch cannot append to a string, so a growing string is sent again each time it has grown by an eighth, and once it is
 * complete: the number of bytes stays linear in its length.
 */
function outputState(frame: (type: string, fields: object) => string): OutputState {
  let path = "";
  let text = "";
  let sent = "";
  let hasOutput = false;

  function flush(): object[] {
    if (text === sent) return [];
    sent = text;
    return [{ op: "replace", path, value: text }];
  }

  function operations(change: OutputChange): object[] {
    const pointer = pointerOf(change.path);
    const before = pointer === path && "text" in change ? [] : flush();
    if (pointer !== path || "value" in change) text = sent = ""; // a growing string begins as an empty one
    path = pointer;
    hasOutput = true;
    if ("value" in change) return [...before, { op: "add", path, value: change.value }];
    text += change.text;
    return text.length - sent.length > sent.length / 8 ? [...before, ...flush()] : before;
  }

  function encode(delta: readonly object[]): string {
    return delta.length > 0 ? frame("STATE_DELTA", { delta }) : "";
  }

  function discard(): string {
    if (!hasOutput) return "";
    path = text = sent = "";
    hasOutput = false;
    return encode([{ op: "remove", path: pointerOf([]) }]);
  }

  return { discard, add: (changes) => encode(changes.flatMap(operations)), flush: () => encode(flush()) };
}

function pointerOf(path: OutputPath): string {
  return ["output", ...path].map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

// The messages of one agent as AG-UI events: text, reasoning, and the calls in a message.

/** The kind of a text that is streamed, as it begins the names of its events. */
type TextKind = "TEXT" | "REASONING";

/** Fields of every event of a subagent; empty for the agent itself. */
interface SubagentTag {
  readonly subagentRunId?: string;
}

/** Encodes the messages of one agent. */
interface MessageEncoder {
  /** Encodes an event of this agent. */
  frame(type: string, fields: object): string;
  /** Begins the message of a turn. */
  start(id: string): void;
  /** Adds a further message of the turn, such as a result. */
  add(message: ClientMessage): void;
  /** Encodes a piece of text. */
  delta(kind: TextKind, text: string): string;
  /** Replaces the text of the current message. If there is none, encodes one with the text; nothing for an empty text. */
  replaceText(text: string): string;
  /** Encodes a piece of the input of a call, which starts with the first one. */
  callDelta(toolCallId: string, name: string, delta: string): string;
  /** Encodes a complete call. */
  endCall(toolCallId: string, call: Call): string;
  /** Ends the text and the calls that are open. */
  close(): string;
  /** Removes the messages of the turn from the client. */
  discard(): string;
}

/** Creates the encoder of one agent; `tag` names the subagent. */
function messageEncoder(history: History, tag: SubagentTag): MessageEncoder {
  let id = "";
  let message: AgentMessage | undefined;
  let thought: AgentMessage | undefined;
  /** The messages of the turn that the client has. */
  let ofTurn: ClientMessage[] = [];
  /** The kind of the text that is open, its frame up to the delta, and the frames that end it. */
  let openKind: TextKind | undefined;
  let beforeDelta = "";
  let closing = "";
  const openCalls = new Set<string>();

  function frame(type: string, fields: object): string {
    return frameOf({ type, ...fields, ...tag });
  }

  function add<M extends ClientMessage>(added: M): M {
    history.messages.push(added);
    ofTurn.push(added);
    return added;
  }

  /** The current message, which the client gets once it has content. */
  function current(): AgentMessage {
    return message ??= add<AgentMessage>({ id, role: "assistant", ...tag });
  }

  /** The reasoning of the turn, which is a message of its own. */
  function currentThought(): AgentMessage {
    return thought ??= add<AgentMessage>({ id: `${id}.thought`, role: "reasoning", ...tag });
  }

  function start(next: string): void {
    id = next;
    message = thought = undefined;
    ofTurn = [];
  }

  /** Clients keep their reasoning if a snapshot has none: so the reasoning of the turn stays, without its text, for the next attempt. */
  function discard(): string {
    const closed = close();
    if (ofTurn.length === 0) return closed;
    const kept = thought;
    if (kept) kept.content = "";
    const { messages } = history;
    messages.splice(0, Infinity, ...messages.filter((each) => each === kept || !ofTurn.includes(each)));
    message = undefined;
    ofTurn = kept ? [kept] : [];
    return closed + history.snapshot();
  }

  function delta(kind: TextKind, text: string): string {
    const opening = openKind === kind ? "" : closeText() + openText(kind);
    const message = kind === "TEXT" ? current() : currentThought();
    message.content = (message.content ?? "") + text;
    return `${opening}${beforeDelta}${JSON.stringify(text)}}\n\n`;
  }

  function openText(kind: TextKind): string {
    const isText = kind === "TEXT";
    const at = { messageId: (isText ? current() : currentThought()).id };
    const outer = (type: string) => isText ? "" : frame(`REASONING_${type}`, at);
    openKind = kind;
    beforeDelta = frameOf({ type: `${kind}_MESSAGE_CONTENT`, ...at, ...tag, delta: "" }).slice(0, -'""}\n\n'.length);
    closing = frame(`${kind}_MESSAGE_END`, at) + outer("END");
    return outer("START") + frame(`${kind}_MESSAGE_START`, { ...at, role: isText ? "assistant" : "reasoning" });
  }

  function closeText(): string {
    const closed = closing;
    openKind = undefined;
    closing = "";
    return closed;
  }

  function close(): string {
    return closeText() + [...openCalls].map(closeCall).join("");
  }

  function callDelta(toolCallId: string, toolCallName: string, delta: string): string {
    let opening = "";
    if (!openCalls.has(toolCallId)) {
      openCalls.add(toolCallId);
      current();
      opening = closeText() + frame("TOOL_CALL_START", { toolCallId, toolCallName, parentMessageId: id });
    }
    return opening + frame("TOOL_CALL_ARGS", { toolCallId, delta });
  }

  function closeCall(toolCallId: string): string {
    openCalls.delete(toolCallId);
    return frame("TOOL_CALL_END", { toolCallId });
  }

  return {
    frame,
    start,
    add,
    delta,
    callDelta,
    close,
    replaceText(text) {
      const closed = close();
      if (!message) return closed + (text === "" ? "" : delta("TEXT", text) + closeText());
      message.content = text;
      return closed + history.snapshot();
    },
    endCall(toolCallId, { name, input }) {
      const json = JSON.stringify(input) ?? "{}";
      const whole = openCalls.has(toolCallId) ? "" : callDelta(toolCallId, name, json);
      (current().toolCalls ??= []).push({ id: toolCallId, type: "function", function: { name, arguments: json } });
      return whole + closeCall(toolCallId);
    },
    discard,
  };
}

// Events of an agent and its subagents as AG-UI events.

/** Encodes the events of one agent. */
interface AgentEncoder {
  /** Encodes an event. */
  encode(event: Event): string;
  /** Encodes an AG-UI event of this agent. */
  frame(type: string, fields: object): string;
  /** Encodes a complete text message; nothing for an empty text. */
  wholeText(id: string, text: string): string;
  /** Ends the subagents, the messages and the step that are open. */
  close(): string;
}

/**
 * Creates the encoder of one agent; `runId` returns the id of its run. `prefix` is the path of the subagent calls that contain its calls, such as `call_1/`,
 * and `tag` names the subagent.
 */
function agentEncoder(
  runId: () => string,
  history: History,
  prefix = "",
  tag: SubagentTag = {},
): AgentEncoder {
  const messages = messageEncoder(history, tag);
  const { frame } = messages;
  const output = outputState(frame);
  let turn: number | undefined;
  /** Whether the client has custom events of the turn. */
  let hasCustom = false;
  const subagents = new Map<string, AgentEncoder>();
  let stepName: string | undefined;

  function finished(call: string, status: CallResult["status"], content: unknown): string {
    const toolCallId = prefix + call;
    if (history.hasResult(toolCallId)) return "";
    const messageId = `${runId()}.${call}`;
    const result = { role: "tool", toolCallId, content };
    messages.add({ id: messageId, ...result, ...tag });
    return frame("TOOL_CALL_RESULT", { messageId, ...result, metadata: status === "ok" ? undefined : { status } });
  }

  /** Ends a subagent that is done, paused or failed. */
  function finishSubagent(call: string, status: string): string {
    const subagent = subagents.get(call);
    if (!subagent) return "";
    subagents.delete(call);
    const type = { done: "success", paused: "suspended" }[status];
    return subagent.close() +
      (type
        ? subagent.frame("SUBAGENT_FINISHED", { outcome: { type } })
        : subagent.frame("SUBAGENT_ERROR", { message: status }));
  }

  function close(): string {
    const finished = [...subagents.keys()].map((call) => finishSubagent(call, "stopped"));
    const closed = finished.join("") + messages.close() +
      (stepName === undefined ? "" : frame("STEP_FINISHED", { stepName }));
    stepName = undefined;
    return closed;
  }

  const custom = (name: string, value: unknown) => frame("CUSTOM", { name, value });

  function beginTurn(next: number): string {
    const discarded = next === turn ? discard() : ""; // asked again, because the process that asked it first died
    turn = next;
    hasCustom = false;
    messages.start(`${runId()}.${turn}`);
    return discarded;
  }

  /** Removes what the client has of the turn, which begins again. */
  function discard(): string {
    const removed = messages.discard() + output.discard();
    const isTold = hasCustom;
    hasCustom = false;
    return removed + (isTold ? custom("discarded", { messageId: `${runId()}.${turn}` }) : "");
  }

  function addPart({ content: { type, ...value } }: EventOf<"part.added">): string {
    hasCustom = true;
    return messages.close() + custom(type, value);
  }

  const encoder = tableEncoder({
    "text.delta": ({ text }) => messages.delta("TEXT", text),
    "reasoning.delta": ({ text }) => messages.delta("REASONING", text),

    "turn.started"({ turn }) {
      stepName = `turn ${turn}`;
      return frame("STEP_STARTED", { stepName });
    },
    "model.started": ({ turn }) => beginTurn(turn),
    "model.reset": discard,
    "model.finished": ({ text }) =>
      output.flush() + (text === undefined ? messages.close() : messages.replaceText(text)),
    "part.added": addPart,
    "provider_tool.started": ({ content: { callId: id, name, input } }) =>
      messages.close() + messages.endCall(prefix + id, { id, name, input }),
    "provider_tool.finished": ({ content: { callId, status, output } }) =>
      messages.close() + finished(callId, status, JSON.stringify(output)),
    "output.delta": ({ changes }) => output.add(changes),
    "turn.finished": close,

    "call.delta": ({ call, name, text }) => messages.callDelta(prefix + call, name, text),
    "call.ready": ({ call }) => messages.endCall(prefix + call.id, call),
    "tool.progress": ({ type, call, data }) => custom(type, { toolCallId: prefix + call, data }),
    "tool.finished": ({ call, result }) => finished(call, result.status, contentOf(result)),

    "notice": ({ type, text }) => custom(type, text),
    "data": ({ name, data }) => name === "state" ? frame("STATE_SNAPSHOT", { snapshot: data }) : custom(name, data),

    "subagent.started"({ call, agent: name, run: subagentRunId }) {
      const parentToolCallId = prefix + call;
      const subagent = agentEncoder(() => subagentRunId, history, `${parentToolCallId}/`, { subagentRunId });
      subagents.set(call, subagent);
      const parentSubagentRunId = tag.subagentRunId;
      return subagent.frame("SUBAGENT_STARTED", { name, parentToolCallId, parentSubagentRunId });
    },
    "subagent.event": ({ call, event }) => subagents.get(call)?.encode(event) ?? "",
    "subagent.finished": ({ call, status }) => finishSubagent(call, status),
  });
  function wholeText(id: string, text: string): string {
    messages.start(id);
    return messages.replaceText(text);
  }

  return { encode: (event) => encoder(event, 0), frame, wholeText, close };
}

/** Returns the content of a result: text, unless it contains a file. */
function contentOf({ parts }: CallResult): unknown {
  return parts.every(({ type }) => type === "text") ? textOf({ parts }) : parts.map(contentPart);
}

function contentPart(part: ContentPart): object {
  if (part.type === "text") return part;
  const { mediaType: mimeType, data, url } = part;
  const type = /^(image|audio|video)/.exec(mimeType)?.[0] ?? "document";
  return { type, source: { type: data === undefined ? "url" : "data", value: data ?? url ?? "", mimeType } };
}

// The events of a whole run, which wrap those of its agent.

/** Creates the encoder of the response to a request. */
export function runEncoder({ threadId, runId, messages: sent }: RunInput): EventEncoder {
  const history = historyOf(sent);
  let run = "";
  let before = noUsage;
  const agent = agentEncoder(() => run, history);

  /** Encodes the event that ends the response. Its usage is that of this response, because each response is a run of its own in AG-UI. */
  function end(usage: Usage, fields: object): string {
    const { input, output, ...since } = usageSince(usage, before);
    const countOf = (key: keyof typeof since) => usage[key] === undefined ? undefined : since[key];
    const details = {
      cachedInputTokens: countOf("cached"),
      cacheWriteInputTokens: countOf("cacheWrite"),
      reasoningTokens: countOf("reasoning"),
    };
    return frameOf({ ...fields, usage: [{ inputTokens: input, outputTokens: output, ...details }] });
  }

  function finished(usage: Usage, outcome: object, more: object = {}): string {
    return end(usage, { type: "RUN_FINISHED", threadId, runId, outcome, ...more });
  }

  function failed(usage: Usage, error: object): string {
    return end(usage, { type: "RUN_ERROR", ...error });
  }

  /** Encodes the resume token as a field of the newest message, because clients send their messages back unchanged. */
  function tokenFrame(encryptedValue: string | undefined): string {
    if (encryptedValue === undefined) return "";
    const entityId = [...sent, ...history.messages].at(-1)?.id;
    return frameOf({ type: "REASONING_ENCRYPTED_VALUE", subtype: "message", entityId, encryptedValue });
  }

  return tableEncoder({
    "run.started"(event) {
      if (run !== "") return "";
      ({ run, usage: before = noUsage } = event);
      return frameOf({ type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" });
    },
    "run.paused"({ questions, usage, resumeToken }, id) {
      const interrupts = questions.filter((question) => !isForClient(question))
        .map((question) => interruptOf(question, { run, pausedAt: id }));
      const outcome = interrupts.length > 0
        ? { type: "interrupt", interrupts }
        : { type: "success", pendingToolCallIds: questions.map(({ callId }) => callId) };
      return agent.close() + tokenFrame(resumeToken) + finished(usage, outcome);
    },
    "run.finished"(event) {
      const { status, text, reason, finish, output, usage } = event;
      const closed = agent.close();
      const message = refusalOf(event);
      if (message !== undefined) return closed + failed(usage, { message, code: status });
      const rest = history.messages.every(({ role }) => role === "reasoning")
        ? agent.wholeText(`${runId}.final`, text)
        : "";
      const result = { result: output ?? text, metadata: { status, reason, finish } };
      return closed + rest + finished(usage, { type: "success" }, result);
    },
    "run.aborted": ({ usage }) => agent.close() + finished(usage, { type: "cancelled" }),
    "run.failed": ({ message, code, error: id, retryAfter, usage }) =>
      agent.close() + failed(usage, { message, code, metadata: { id, retryAfter } }),
  }, agent.encode);
}

/** Encodes a question as an interrupt. */
function interruptOf({ callId, tool, questions, schema, ...more }: Question, pause: Pause): object {
  return {
    id: questionId(callId, pause),
    reason: tool === undefined ? "input_required" : "tool_call",
    message: questions.join("\n"),
    toolCallId: tool && callId,
    responseSchema: schema,
    metadata: { tool, ...more },
  };
}
