import { assertEquals } from "@std/assert";
import { folder } from "../platforms/folder.ts";
import { started } from "../platforms/program.ts";
import { type App, eventsOf, piecesOf, post } from "../support/requests.ts";
import { miniflare } from "./miniflare.ts";
import { isRestateMissing, restateServer } from "./restate_server.ts";

/** Milliseconds of a step in a process that is killed in the middle of it. */
const unlimited = "600000";

/** Waits until a run has ended, without a request that continues it. Throws after a minute. */
async function untilEnded({ request }: App, session: string): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const { run } = await (await request(`/sessions/${session}`)).json(); // reading a session continues nothing
    if (!run) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("Cannot see the end of the run: a minute has passed");
}

/** Waits until a run that was continued once has ended. */
async function assertContinued(app: App, { run, session }: { readonly run: string; readonly session: string }) {
  await untilEnded(app, session);
  const events = await eventsOf(app.request(`/runs/${run}`));
  const begun = events.flatMap((event) => event.type === "run.started" ? [event.resumed] : []);
  assertEquals([begun, events.at(-1)?.type], [[false, true], "run.finished"]);
  assertEquals(events.flatMap((event) => event.type === "run.finished" ? [event.text] : []), ["There are 7 kettles."]);
}

/** Begins a run in the background. Returns its ids. */
async function begin(app: App) {
  const accepted = await post(app, "/runs", { prompt: "Count the kettles" }, { prefer: "respond-async" });
  assertEquals(accepted.status, 202);
  return await accepted.json();
}

for (
  const [waker, options] of [
    ["queue", { queueProducers: { WAKERS: "wakers" }, queueConsumers: { wakers: { maxBatchTimeout: 0.1 } } }],
    ["workflow", { workflows: { WAKERS: { name: "wakers", className: "Waker" } } }],
  ] as const
) {
  Deno.test(`in miniflare, a Cloudflare ${waker} continues a run that ended with its request`, async () => {
    await using disk = await folder();
    const bindings = { PACE: "300", LEASE: "1000" };
    await using worker = await miniflare(`tests/servers/${waker}_worker.ts`, disk.path, { ...options, bindings });
    await assertContinued(worker, await begin(worker));
  });
}

Deno.test("in miniflare, a cron trigger begins one run for its time, and another one continues a run that ended with its request", async () => {
  await using disk = await folder();
  const options = { unsafeTriggerHandlers: true, bindings: { PACE: "300", LEASE: "1000" } };
  await using worker = await miniflare("tests/servers/cron_worker.ts", disk.path, options);
  async function trigger(cron: string, time: string): Promise<void> {
    const query = new URLSearchParams({ cron, time: String(Date.parse(time)) });
    const response = await worker.request(`/cdn-cgi/local/scheduled?${query}`);
    assertEquals([response.status, await response.text()], [200, "ok"]);
  }
  const daily = ["0 7 * * *", "2026-11-27T07:00Z"] as const;
  const ids = await begin(worker);
  await Promise.all([trigger(...daily), trigger(...daily)]);
  await trigger(...daily);
  const sessions: string[] = await (await worker.request("/listed")).json();
  const loaded = await Promise.all(sessions.map(async (id) => {
    const { messages } = await (await worker.request(`/sessions/${id}`, { headers: { "x-user": "shop" } })).json();
    return messages.at(-1).parts;
  }));
  assertEquals(loaded, [[{ type: "text", text: "There are 7 kettles." }]]);
  await trigger("* * * * *", "2026-11-27T07:01Z"); // the lease has ended meanwhile
  await assertContinued(worker, ids);
});

const noRestate = await isRestateMissing();

Deno.test({
  name: `a Restate service continues a run whose process was killed${
    noRestate ? " (left out: @restatedev/restate-server of npm does not run here)" : ""
  }`,
  ignore: noRestate,
  async fn() {
    await using disk = await folder();
    await using restate = await restateServer();
    const env = { SHOP_FILE: `${disk.path}/shop.db`, RESTATE_INGRESS: restate.ingress, LEASE: "1000" };
    await using killed = await started("start:restate", { ...env, PACE: unlimited });
    await restate.register(`${killed.url}/restate`);
    const ids = await begin(killed);
    const pieces = piecesOf(await killed.request(`/runs/${ids.run}`));
    await pieces.until("turn.started");
    await pieces.cancel();
    await killed.kill();
    await using next = await started("start:restate", { ...env, PORT: new URL(killed.url).port });
    await assertContinued(next, ids);
  },
});
