/**
 * The part of Google's client that tests use. Its own declarations, of 900 KB, would slow down every type check.
 *
 * @module
 */

/** A part of an answer. */
export interface Part {
  readonly text?: string;
  readonly thought?: boolean;
  readonly functionCall?: { readonly name?: string; readonly args?: Readonly<Record<string, unknown>> };
  readonly codeExecutionResult?: { readonly output?: string };
}

/** One of the answers of a response. */
export interface Candidate {
  readonly content?: { readonly parts?: readonly Part[] };
  readonly finishReason?: string;
  readonly groundingMetadata?: { readonly webSearchQueries?: readonly string[]; readonly groundingChunks?: unknown };
  readonly urlContextMetadata?: { readonly urlMetadata?: unknown };
}

/** A chunk of a streamed response. */
export interface Chunk {
  readonly candidates?: readonly Candidate[];
  readonly promptFeedback?: { readonly blockReason?: string };
}

/** The client. */
export class GoogleGenAI {
  constructor(options: { readonly apiKey: string; readonly httpOptions: { readonly baseUrl: string } });
  readonly models: {
    generateContentStream(
      request: { readonly model: string; readonly contents: string },
    ): Promise<AsyncIterable<Chunk>>;
  };
}
