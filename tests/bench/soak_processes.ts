/**
 * Kills or shuts down 300 real processes per database while they execute runs that only `recover()` continues, and prints figures. Exits with 1 if a run
 * breaks an invariant, or continues too late. `deno task soak:processes postgres 40 7` ends 40 processes, as seed 7 chooses.
 *
 * @module
 */
import type { Addresses } from "../../examples/fleet/database.ts";
import { folder } from "../platforms/folder.ts";
import { postgresServer } from "../servers/postgres_server.ts";
import { redisServer } from "../servers/redis_server.ts";
import { tooLong } from "../support/faults/process_delays.ts";
import { soakProcesses } from "../support/faults/process_soak.ts";

/** A database for processes. It ends when it is disposed of. */
interface Place extends AsyncDisposable {
  readonly addresses: Addresses;
}

const places: Readonly<Record<string, () => Promise<Place | undefined>>> = {
  async sqlite() {
    const disk = await folder();
    return { addresses: { FLEET_FILE: `${disk.path}/soak.db` }, [Symbol.asyncDispose]: disk[Symbol.asyncDispose] };
  },
  async postgres() {
    const server = await postgresServer();
    return server && { addresses: { DATABASE_URL: server.url }, [Symbol.asyncDispose]: server[Symbol.asyncDispose] };
  },
  async redis() {
    const server = await redisServer();
    const url = `redis://127.0.0.1:${server?.port}`;
    return server && { addresses: { REDIS_URL: url }, [Symbol.asyncDispose]: server[Symbol.asyncDispose] };
  },
};

const [only, count = "300", seed = "1"] = Deno.args;
for (const [name, open] of Object.entries(places)) {
  if (only !== undefined && only !== name) continue;
  await using place = await open();
  await using disk = await folder();
  if (!place) {
    console.log(`Left out: the server of ${name} is not installed`);
    continue;
  }
  const started = performance.now();
  const { addresses } = place;
  const options = { seed: Number(seed), count: Number(count), addresses, ledger: `${disk.path}/ledger` };
  try {
    const figures = await soakProcesses(options);
    const texts = Object.entries(figures).map(([what, figure]) => `${what} ${figure}`);
    const seconds = ((performance.now() - started) / 1_000).toFixed();
    console.log([`${count} processes with ${name} in ${seconds} s`, ...texts].join(", "));
    const late = tooLong(figures);
    if (late.length > 0) throw new Error(late.join("; "));
  } catch (error) {
    console.error(`${name} fails with seed ${seed}:`, error);
    Deno.exitCode = 1;
  }
}
Deno.exit(); // closes the connections of the drivers
