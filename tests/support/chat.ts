/**
 * A chat of the AI SDK: the logic of `useChat` without a page.
 *
 * @module
 */
import type { ServeOptions } from "@jizai/jizai";
import { newestMessageOnly } from "@jizai/jizai/client";
import { AbstractChat, type ChatInit, type ChatState, DefaultChatTransport, type UIMessage } from "npm:ai@7.0.173";
import type { App } from "./requests.ts";
import { lines } from "./transcript_lines.ts";

/** A chat with a served app, which sends its newest message only. The server decides the types of its parts. */
export class Chat extends AbstractChat<UIMessage> {
  constructor(app: App, init: ChatInit<UIMessage> = {}) {
    const state: ChatState<UIMessage> = {
      status: "ready",
      error: undefined,
      messages: init.messages ?? [],
      pushMessage(message) {
        state.messages = [...state.messages, structuredClone(message)];
      },
      popMessage() {
        state.messages = state.messages.slice(0, -1);
      },
      replaceMessage(index, message) {
        state.messages = state.messages.with(index, structuredClone(message));
      },
      snapshot: (value) => structuredClone(value),
    };
    const sending = { api: "/chat", fetch: reaching(app), prepareSendMessagesRequest: newestMessageOnly };
    super({ id: "chat", transport: new DefaultChatTransport(sending), ...init, state });
  }

  /** The parts of the last message, each in one line: type, state and content. */
  get reported(): string[] {
    return (this.lastMessage?.parts ?? []).map((part) => {
      const { type, state, text, data, input, output, errorText } = part as Readonly<Record<string, unknown>>;
      const values = [text, data, input, output, errorText].filter((value) => value !== undefined);
      return [type, state, ...values.map((value) => typeof value === "string" ? value : JSON.stringify(value))]
        .filter((word) => word !== undefined).join(" ");
    });
  }

  /** Resolves when the chat waits for nothing. */
  async settled(): Promise<void> {
    while (this.status !== "ready" && this.status !== "error") await new Promise((resolve) => setTimeout(resolve));
  }
}

/** A `fetch` that calls an app directly. Aborting the request cancels the response. */
export function reaching(app: App): typeof fetch {
  return async (input, init) => {
    const { body, status, headers } = await app.request(String(input), init);
    const signal = init?.signal;
    return new Response(signal ? body?.pipeThrough(new TransformStream(), { signal }) : body, { status, headers });
  };
}

/** Returns the chunks of a response. */
export async function chunksOf(response: Response | Promise<Response>): Promise<Record<string, unknown>[]> {
  const frames = (await (await response).text()).split("\n\n").slice(0, -1);
  if (frames.at(-1) !== "data: [DONE]") throw new Error(`Cannot read chunks: the last frame is ${frames.at(-1)}`);
  return frames.slice(0, -1).map((frame) => JSON.parse(frame.replace(/^data: /, "")));
}

/** Returns the text of each message of a chat, after its role. */
export function texts({ messages }: Pick<Chat, "messages">): readonly string[] {
  return messages.map(({ role, parts }) =>
    `${role} ${parts.flatMap((part) => part.type === "text" ? [part.text] : []).join("")}`
  );
}

/** Returns the stored messages of the chat, each in one line. */
export async function stored(app: App): Promise<readonly string[]> {
  const { messages } = await (await app.request("/sessions/chat")).json();
  return lines(messages);
}

/** The options of a server without a log, and of one with a log, whose runs continue when their clients leave. */
export const logOptions: readonly (readonly [name: string, options: ServeOptions])[] = [
  ["without a log", {}],
  ["with a log", { onClientGone: "detach" }],
];
