/**
 * A Prometheus server for tests, from the program that `apt-get install prometheus` installs.
 *
 * @module
 */
import { folder } from "../platforms/folder.ts";
import { killing } from "../platforms/killing.ts";

/** A running server. It ends when it is disposed of. */
export interface PrometheusServer extends AsyncDisposable {
  /** Returns the values of a query, each with its labels. Throws if the query is not valid. */
  query(expression: string): Promise<readonly Value[]>;
  /** Returns the value of a query that has one, or else undefined. */
  value(expression: string): Promise<number | undefined>;
  /** Returns the names of all metrics. */
  names(): Promise<readonly string[]>;
}

/** A value of a query. */
export interface Value {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The answer of the API. */
interface Answer<T> {
  readonly status: "success" | "error";
  readonly error?: string;
  readonly data: T;
}

/** Starts a server that scrapes five times a second. `targets` is its configuration of what it scrapes. */
export async function prometheusServer(targets: object): Promise<PrometheusServer> {
  const disk = await folder();
  const port = freePort();
  const job = { job_name: "jizai", scrape_interval: "200ms", scrape_timeout: "200ms", ...targets };
  await Deno.writeTextFile(`${disk.path}/prometheus.yml`, JSON.stringify({ scrape_configs: [job] }));
  const args = [
    `--config.file=${disk.path}/prometheus.yml`,
    `--storage.tsdb.path=${disk.path}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--log.level=error",
  ];
  const process = new Deno.Command("prometheus", { args, stdout: "null", stderr: "inherit" }).spawn();
  const kill = killing(process);
  const url = `http://127.0.0.1:${port}`;

  async function ask<T>(path: string): Promise<T> {
    const answer: Answer<T> = await (await fetch(url + path)).json();
    if (answer.status === "error") throw new Error(`Cannot query Prometheus: ${answer.error}`);
    return answer.data;
  }

  async function query(expression: string): Promise<readonly Value[]> {
    const { result } = await ask<{ result: readonly { metric: Value["labels"]; value: readonly [number, string] }[] }>(
      `/api/v1/query?query=${encodeURIComponent(expression)}`,
    );
    return result.map(({ metric: labels, value: [, value] }) => ({ labels, value: Number(value) }));
  }

  await untilReady(url);
  return {
    query,
    value: async (expression) => (await query(expression))[0]?.value,
    names: () => ask("/api/v1/label/__name__/values"),
    async [Symbol.asyncDispose]() {
      await kill();
      await disk[Symbol.asyncDispose]();
    },
  };
}

/** Waits for at most ten seconds until the server answers. */
async function untilReady(url: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const response = await fetch(`${url}/-/ready`).catch(() => undefined); // it does not listen yet
    await response?.body?.cancel();
    if (response?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("Cannot start Prometheus: it has not become ready within ten seconds");
}

/** Returns a port that is free now. */
function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr; // it is one of TCP
  listener.close();
  return port;
}

/** Whether Prometheus is missing on this machine. */
export async function isPrometheusMissing(): Promise<boolean> {
  const args = ["-c", "command -v prometheus"];
  const { success } = await new Deno.Command("sh", { args, stdout: "null", stderr: "null" }).output();
  return !success;
}
