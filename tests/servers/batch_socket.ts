/**
 * Batches of statements over one TCP connection: each batch is a line of JSON, and so is its reply. A request for each batch takes several times as long.
 *
 * @module
 */

/** Statements with their values. */
export type Statements = readonly (readonly [sql: string, ...values: unknown[]])[];

/** The rows of each statement. */
export type Rows = readonly (readonly unknown[])[];

/** Executes the statements of a batch. */
export type Batch = (statements: Statements) => Promise<Rows>;

/** A reply: the rows, or the reason of a failure. */
type Reply = { readonly rows: Rows } | { readonly error: string };

/** A connection. */
export interface Socket {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}

/** Executes the batches of a program, until it closes the connection. */
export async function answerBatches({ readable, writable }: Socket, execute: Batch): Promise<void> {
  const writer = writable.getWriter();
  for await (const line of linesOf(readable)) {
    const reply: Reply = await execute(JSON.parse(line)).then((rows) => ({ rows }), (error) => ({ error: `${error}` }));
    await writer.write(lineOf(reply));
  }
}

/** Returns a function that lets the program at the other end execute a batch, one at a time. */
export function batchesOver({ readable, writable }: Socket): Batch {
  const writer = writable.getWriter();
  const lines = linesOf(readable);
  return async (statements) => {
    await writer.write(lineOf(statements));
    const { value: line } = await lines.next();
    if (line === undefined) throw new Error("Cannot execute a batch: the connection was closed");
    const reply: Reply = JSON.parse(line);
    if ("error" in reply) throw new Error(reply.error);
    return reply.rows;
  };
}

function lineOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value)}\n`);
}

async function* linesOf(chunks: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
