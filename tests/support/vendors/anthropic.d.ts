/**
 * The part of Anthropic's client that tests use. Its own declarations, of 2.7 MB, would slow down every type check.
 *
 * @module
 */

/** A part of a message. */
export type Block =
  | { readonly type: "text"; readonly text: string }
  | {
    readonly type: "tool_use" | "server_tool_use";
    readonly id: string;
    readonly name: string;
    readonly input: unknown;
  }
  | { readonly type: "web_search_tool_result"; readonly tool_use_id: string; readonly content: unknown };

/** A response. */
export interface Message {
  readonly content: readonly Block[];
  readonly stop_reason: string | null;
}

/** A request. */
export interface MessageOptions {
  readonly model: string;
  readonly max_tokens: number;
  readonly messages: readonly { readonly role: "user"; readonly content: string }[];
}

/** The client. */
export default class Anthropic {
  constructor(options: { readonly apiKey: string; readonly baseURL: string; readonly maxRetries: number });
  readonly messages: { stream(options: MessageOptions): { finalMessage(): Promise<Message> } };
}
