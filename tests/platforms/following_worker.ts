/**
 * A Worker whose requests follow a run in D1, and append to it as another process would. The database is a Durable Object, which can keep a read waiting.
 *
 * @module
 */
import { type D1, type D1Statement, d1Store, migrate } from "@jizai/jizai/session/d1";
import { Hono } from "hono";
import type { Append, Journal } from "../../src/core/journal.ts";
import { type Followers, followers } from "../../src/session/followers.ts";

type Values = readonly unknown[];
type Row = Readonly<Record<string, unknown>>;

/** The part of the storage of a Durable Object that is used. */
interface Storage {
  readonly sql: { exec(sql: string, ...values: Values): Iterable<Row> };
  transactionSync<T>(work: () => T): T;
}

/** The part of the binding that is used. */
interface Databases {
  getByName(name: string): { fetch(url: string, init: { method: string; body: string }): Promise<Response> };
}

/** A statement as the database receives it. */
class Bound implements D1Statement {
  constructor(readonly sql: string, readonly values: Values = []) {}
  bind(...values: unknown[]): D1Statement {
    return new Bound(this.sql, values);
  }
}

/** Executes batches of statements. */
export class Database {
  readonly #storage: Storage;
  #reads = 0;
  #held = 0;
  /** The milliseconds for which the next read waits. */
  #hold = 0;

  constructor(ctx: { readonly storage: Storage }) {
    this.#storage = ctx.storage;
  }

  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/state") return Response.json({ reads: this.#reads, held: this.#held });
    if (pathname === "/hold") {
      this.#hold = Number(await request.text());
      return new Response();
    }
    const statements: Statements = await request.json();
    if (statements[0]?.[0].startsWith("SELECT")) {
      this.#reads++;
      const [hold] = [this.#hold, this.#hold = 0];
      if (hold === 0) return Response.json(this.#execute(statements));
      this.#held++;
      const results = this.#execute(statements); // it is answered with an old state
      await new Promise((resolve) => setTimeout(resolve, hold));
      return Response.json(results);
    }
    return Response.json(this.#execute(statements));
  }

  #execute(statements: Statements): Row[][] {
    const { sql } = this.#storage;
    return this.#storage.transactionSync(() => statements.map(([text, values]) => [...sql.exec(text, ...values)]));
  }
}

type Statements = readonly (readonly [string, Values])[];

let here: { readonly runs: Followers; readonly other: Journal } | undefined;

/** Returns the followers of this process and the journal of another process, which all requests share. */
async function processesOf(databases: Databases): Promise<NonNullable<typeof here>> {
  if (here) return here;
  const database: D1 = {
    prepare: (sql) => new Bound(sql),
    async batch(statements) {
      const body = JSON.stringify(statements.map((each) => each instanceof Bound ? [each.sql, each.values] : []));
      const response = await databases.getByName("all").fetch("http://database/", { method: "POST", body });
      const results: unknown[][] = await response.json();
      return results.map((rows) => ({ results: rows }));
    },
  };
  await migrate(database);
  return here ??= { runs: followers(d1Store(database).journal), other: d1Store(database).journal };
}

const app = new Hono<{ Bindings: { readonly DATABASE: Databases } }>()
  .post("/append", async (c) => {
    const { other } = await processesOf(c.env.DATABASE);
    const append: Append = await c.req.json();
    return c.json(await other.append("j", append));
  })
  .get("/follow", async (c) => {
    const { runs } = await processesOf(c.env.DATABASE);
    const leaving = new AbortController();
    const after = Number(c.req.query("after"));
    const pages = runs.tail({ key: "j", run: 1 }, after, leaving.signal)[Symbol.asyncIterator]();
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(encoder.encode("\n")); // so that the client has a response
        for (let next = await pages.next(); !next.done; next = await pages.next()) {
          const { first, lines } = next.value;
          for (const [index, line] of lines.entries()) controller.enqueue(encoder.encode(`${first + index} ${line}\n`));
        }
        controller.close();
      },
      cancel: () => leaving.abort(),
    });
    return new Response(body);
  })
  .post("/hold", async (c) => {
    const body = await c.req.text();
    return await c.env.DATABASE.getByName("all").fetch("http://database/hold", { method: "POST", body });
  })
  .get(
    "/state",
    (c) => c.env.DATABASE.getByName("all").fetch("http://database/state", { method: "POST", body: "" }),
  );

export default app;
