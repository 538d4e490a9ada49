/**
 * The databases that simulations can use: those of this process, and servers.
 *
 * @module
 */
import { postgresPlaces } from "./postgres_places.ts";
import { redisPlaces, upstashPlaces } from "./redis_places.ts";
import { d1Places, libsqlPlaces } from "./remote_sqlite_places.ts";
import { adapters, names, type Place } from "./storage.ts";

/** A database for simulations. It ends when it is disposed of. */
export interface Places extends AsyncDisposable {
  /** Opens the database. */
  open(): Place;
  /** Deletes everything in it. */
  empty(): Promise<void>;
}

const servers: Readonly<Record<string, () => Promise<Places | undefined>>> = {
  postgres: postgresPlaces,
  redis: redisPlaces,
  upstash: upstashPlaces,
  d1: d1Places,
  libsql: libsqlPlaces,
};

/** The names of all databases. */
export const placeNames: readonly string[] = [...names, ...Object.keys(servers)];

/** Starts a database. Returns undefined if its server is not installed. */
export async function placesOf(name: string): Promise<Places | undefined> {
  const serve = servers[name];
  if (serve) return await serve();
  const adapter = names.find((each) => each === name);
  if (!adapter) throw new TypeError(`Cannot soak "${name}": expected one of ${placeNames.join(", ")}`);
  const kv = await Deno.openKv(":memory:");
  return {
    open: () => adapters[adapter](kv),
    empty: () => Promise.resolve(), // each place is new
    [Symbol.asyncDispose]: () => Promise.resolve(kv.close()),
  };
}
