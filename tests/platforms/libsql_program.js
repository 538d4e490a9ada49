// Tests the adapters for libSQL against the laws, with the real clients on files of a folder: `@libsql/client`, and the driver `libsql` in place of `node:sqlite`.
import { createClient } from "npm:@libsql/client@0.18.0";
import Database from "npm:libsql@0.5.29";
import { libsqlKeyValue, libsqlLog, libsqlStore, migrate } from "@jizai/jizai/session/libsql";
import * as sqlite from "@jizai/jizai/session/sqlite";
import { keyValueLaws, logLaws, storeLaws } from "@jizai/jizai/testing";

const [folder] = Deno.args;
const time = 60_000;
let files = 0;

/** Stops the clock, and advances it. */
function pass(ms) {
  const now = Date.now() + ms;
  Date.now = () => now;
}

/** Opens a new file with the client. */
async function client() {
  const opened = createClient({ url: `file:${folder}/client_${++files}.db` });
  await migrate(opened);
  return opened;
}

/** Opens a new file with the driver. */
function driver() {
  const opened = new Database(`${folder}/driver_${++files}.db`, { timeout: 5_000 });
  sqlite.migrate(opened);
  return opened;
}

pass(0);
await storeLaws(async (options) => libsqlStore(await client(), options), { pass, time });
await logLaws(async (options) => libsqlLog(await client(), { ...options, pollEvery: 20 }), { pass, time });
await keyValueLaws(async () => libsqlKeyValue(await client()), { pass, time });
await storeLaws((options) => sqlite.sqliteStore(driver(), options), { pass, time });
await logLaws((options) => sqlite.sqliteLog(driver(), { ...options, pollEvery: 20 }), { pass, time });
await keyValueLaws(() => sqlite.sqliteKeyValue(driver()), { pass, time });
console.log("ok");
Deno.exit();
