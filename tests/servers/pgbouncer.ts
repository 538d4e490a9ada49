/**
 * pgbouncer for tests, from the program that `apt-get install pgbouncer` installs.
 *
 * @module
 */

/** Starts pgbouncer between a free port of this machine and the server on the port `$1`, with a connection for each transaction. Root cannot run it. */
const script = `
  command -v pgbouncer >/dev/null || { echo missing; exit; }
  data=$(mktemp -d)
  chmod 777 "$data"
  echo '"postgres" ""' >"$data/users"
  as=""
  if [ "$(id -u)" = 0 ]; then as="-u postgres"; fi
  for port in $(shuf -i 20000-40000 -n 5); do
    cat >"$data/pgbouncer.ini" <<END
[databases]
postgres = host=127.0.0.1 port=$1 dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = trust
auth_file = $data/users
pool_mode = transaction
default_pool_size = 3
ignore_startup_parameters = extra_float_digits
END
    pgbouncer $as "$data/pgbouncer.ini" >"$data/out" 2>&1 &
    pid=$!
    for _ in $(seq 200); do
      if grep -q "process up" "$data/out"; then echo "$port"; break 2; fi
      kill -0 $pid 2>/dev/null || break
      sleep 0.02
    done
  done
  cat >/dev/null
  kill -KILL $pid
  rm -rf "$data"
`;

/** A running pgbouncer. It ends when it is disposed of. */
export interface Pgbouncer extends AsyncDisposable {
  /** The address for a driver. */
  readonly url: string;
}

/** Starts pgbouncer in front of Postgres. Returns undefined where it is not installed. */
export async function pgbouncer(port: number): Promise<Pgbouncer | undefined> {
  const args = ["-c", script, "sh", `${port}`];
  const process = new Deno.Command("sh", { args, stdin: "piped", stdout: "piped" }).spawn();
  const output = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await output.read();
  async function stop() {
    await process.stdin.close();
    await output.cancel();
    await process.status;
  }
  const own = value.trim();
  if (/^\d+$/.test(own)) return { url: `postgres://postgres@127.0.0.1:${own}/postgres`, [Symbol.asyncDispose]: stop };
  await stop();
  if (own !== "missing") throw new Error(`Cannot start pgbouncer: its script printed "${own}"; expected a port`);
  return undefined;
}
