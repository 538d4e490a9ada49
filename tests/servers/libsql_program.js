// Tests the adapters for libSQL against the laws, with the real clients on files of a folder: `@libsql/client`, and the driver `libsql` in place of `node:sqlite`.
import { createClient } from "npm:@libsql/client@0.18.0";
import Database from "npm:libsql@0.5.29";

const [laws, folder] = Deno.args;
const { checkLaws } = await import(`file://${laws}`);
let files = 0;

await checkLaws(
  () => createClient({ url: `file:${folder}/client_${++files}.db` }),
  () => new Database(`${folder}/driver_${++files}.db`, { timeout: 5_000 }),
);
console.log("ok");
Deno.exit();
