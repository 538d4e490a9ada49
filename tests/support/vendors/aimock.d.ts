/**
 * The part of the mock server aimock that tests use. Its own declarations would slow down every type check.
 *
 * @module
 */

/** The requests that a response answers. */
export interface Match {
  readonly userMessage: string;
  readonly hasToolResult?: boolean;
}

/** A response, or a failure. */
export interface MockResponse {
  readonly content?: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: string }[];
  readonly usage?: Readonly<Record<string, number>>;
  readonly error?: { readonly message: string; readonly type?: string; readonly code?: string };
  readonly status?: number;
  readonly retryAfter?: number;
}

/** The server. */
export class LLMock {
  constructor(options: { readonly port: number; readonly chunkSize: number });
  on(match: Match, response: MockResponse, options?: { readonly truncateAfterChunks: number }): unknown;
  start(): Promise<string>;
  stop(): Promise<void>;
  reset(): unknown;
}
