/**
 * A Worker with a Durable Object that tests its own storage with the laws of stores and logs.
 *
 * @module
 */
import { user } from "@jizai/jizai";
import { durableObjectKeyValue, durableObjectStore, type ObjectStorage } from "@jizai/jizai/session/durable_object";
import { journalLaws, keyValueLaws } from "@jizai/jizai/testing";
import { begun } from "../support/begun_journal.ts";
import { earlierSqlite, earlierTables } from "../support/earlier_stores.ts";
import { dying, moveLaws } from "../support/move_laws.ts";

interface Context {
  readonly storage: ObjectStorage & { deleteAll(): Promise<void> };
}

interface Env {
  readonly KEEPER: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
}

/** Operations of an object of that class, by path. */
const tasks: Readonly<Record<string, (ctx: Context) => Promise<unknown>>> = {
  "/journal_laws": ({ storage }) =>
    journalLaws(async (options) => {
      await storage.deleteAll();
      return [1, 2].map(() => durableObjectStore(storage, options).journal);
    }, { pass, time }),

  "/move_laws": ({ storage }) =>
    moveLaws(async () => {
      await storage.deleteAll();
      const { sql } = storage;
      for (const table of earlierTables(false)) sql.exec(table);
      return {
        earlier: earlierSqlite((query, ...values) => Promise.resolve([...sql.exec(query, ...values)]), false),
        open(requests) {
          let spend = dying();
          const exec: ObjectStorage["sql"]["exec"] = (query, ...values) => {
            spend();
            return sql.exec(query, ...values);
          };
          const store = durableObjectStore({ sql: { exec }, transactionSync: (work) => storage.transactionSync(work) });
          spend = dying(requests); // it has created the tables
          return store;
        },
      };
    }),

  "/key_value_laws": ({ storage }) =>
    keyValueLaws(async () => {
      await storage.deleteAll();
      return durableObjectKeyValue(storage);
    }, { pass, time }),

  "/write": async ({ storage }) => [
    await durableObjectStore(storage).save({ id: "s", version: 0, messages: [user("自在鉤")] }),
    await durableObjectStore(storage).journal.append("r", begun("r")),
  ],

  "/read": async ({ storage }) => [
    await durableObjectStore(storage).load("s"),
    await durableObjectStore(storage).journal.read("r", 1, 0),
  ],
};

/** Milliseconds that a law may take on a busy machine. */
const time = 60_000;

/** Advances the clock, which otherwise stands still from then on. */
function pass(ms: number): void {
  const now = Date.now() + ms;
  Date.now = () => now;
}

/** The class of the objects. */
export class Keeper {
  readonly #ctx: Context;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Does a task, and answers with its outcome. */
  async fetch(request: Request): Promise<Response> {
    pass(0);
    try {
      return Response.json(await tasks[new URL(request.url).pathname]?.(this.#ctx) ?? null);
    } catch (error) {
      return new Response(error instanceof Error ? error.message : String(error), { status: 500 });
    }
  }
}

export default {
  fetch: (request: Request, { KEEPER }: Env): Promise<Response> => KEEPER.getByName("keeper").fetch(request),
};
