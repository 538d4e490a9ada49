/**
 * `jizai schema DATABASE`: the tables of sessions, logs and texts by key, as SQL.
 *
 * @module
 */
import { schema as d1 } from "../session/batch_sql/store.ts";
import { schema as postgres } from "../session/postgres/sql.ts";
import { schema as sqlite } from "../session/sqlite.ts";

const schemas: ReadonlyMap<string, string> = new Map([
  ["d1", d1],
  ["libsql", d1],
  ["postgres", postgres],
  ["sqlite", sqlite],
]);

/** Returns the schema for a database, as SQL that changes nothing where it exists. Throws a `TypeError` for an unknown database. */
export function schemaOf(database: string): string {
  const found = schemas.get(database);
  if (found !== undefined) return found;
  throw new TypeError(`Cannot print the schema of "${database}": expected one of ${[...schemas.keys()].join(", ")}`);
}
