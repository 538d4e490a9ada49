/**
 * A Postgres server for tests, from the programs that `apt-get install postgresql` installs.
 *
 * @module
 */

/** Finds the programs, creates a cluster on a free port of this machine, and deletes it when the standard input ends. Root cannot run the server. */
const script = `
  bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1 || command -v initdb)")
  [ -x "$bin/initdb" ] || { echo missing; exit; }
  data=$(mktemp -d)
  as=""
  if [ "$(id -u)" = 0 ]; then chown postgres "$data"; as="runuser -u postgres --"; fi
  cd "$data"
  $as "$bin/initdb" -D "$data/db" -U postgres -A trust -E UTF8 --locale=C.UTF-8 -N >/dev/null || exit 1
  for port in $(shuf -i 20000-40000 -n 5); do
    if $as "$bin/pg_ctl" -D "$data/db" -w -l "$data/log" \\
      -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$data -c fsync=off" start >/dev/null
    then echo "$port"; break; fi
  done
  cat >/dev/null
  $as "$bin/pg_ctl" -D "$data/db" -m immediate stop >/dev/null
  rm -rf "$data"
`;

/** A running server. It ends when it is disposed of. */
export interface PostgresServer extends AsyncDisposable {
  /** The address for a driver. */
  readonly url: string;
}

/** Starts a server. Returns undefined where Postgres is not installed. */
export async function postgresServer(): Promise<PostgresServer | undefined> {
  const process = new Deno.Command("sh", { args: ["-c", script], stdin: "piped", stdout: "piped" }).spawn();
  const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await output.read();
  const port = value.trim();
  async function stop() {
    await process.stdin.close();
    await output.cancel();
    await process.status;
  }
  if (/^\d+$/.test(port)) return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, [Symbol.asyncDispose]: stop };
  await stop();
  if (port !== "missing") throw new Error(`Cannot start Postgres: its script printed "${port}"; expected a port`);
  return undefined;
}
