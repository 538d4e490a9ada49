/**
 * Requests to a run of another process whose first events the log has deleted: they name the session of the run.
 *
 * @module
 */
import { agent, serve, tool } from "@jizai/jizai";
import { client, noRun } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import type { Log } from "@jizai/jizai/session/log";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { processOf, shared } from "../support/process.ts";
import { eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { storedMail } from "../support/stored_run.ts";

/** Returns the log without the first `count` events of each run. */
function withoutFirst(count: number, log: Log): Log {
  return {
    ...log,
    async read(run, after) {
      const page = await log.read(run, after);
      if (!page) return undefined;
      const deleted = Math.max(count + 1 - page.first, 0);
      return { ...page, first: page.first + deleted, lines: page.lines.slice(deleted) };
    },
  };
}

/** A run whose tool waits, and another process, for which the log has deleted the first events of the run. */
async function elsewhere() {
  const among = shared();
  const gate = Promise.withResolvers<string>();
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => gate.promise });
  const model = scripted({ calls: [["work", {}]] }, "Done.");
  const made = agent({ model, tools: [work] });
  const here = processOf(among, made);
  const pieces = piecesOf(await post(here.app, "/runs", { prompt: "Go" }));
  const { run, session } = first("run.started", framesOf(await pieces.until(`"tool.started"`)));
  const { app } = processOf({ ...among, log: withoutFirst(2, among.log) }, made);
  return { among, app, run, session, pieces, gate };
}

/** Returns the refusal of a request to a run that cannot be reached. */
function unreachable(run: string) {
  const reason = "the events that name its session have been deleted; expected the session in ?session=";
  return [409, { code: "unreachable", message: `Cannot reach run "${run}" in another process: ${reason}` }] as const;
}

Deno.test("POST /runs/:id/stop stops a run in another process whose first events were deleted, if it names the session", async () => {
  using time = new FakeTime();
  const { among, app, run, session, pieces, gate } = await elsewhere();
  for (const query of ["", "?session=another"]) {
    assertEquals(await refusalOf(post(app, `/runs/${run}/stop${query}`)), unreachable(run));
  }
  const stopped = post(app, `/runs/${run}/stop?session=${session}`);
  assertEquals((await advanceUntilSettled(time, stopped)).status, 204);
  await advance(time, 30_000); // until the process of the run renews its lease
  gate.resolve("worked");
  await pieces.rest();
  const { last, run: current } = await among.store.load(session) ?? {};
  assertEquals([current, last?.event.type], [undefined, "run.aborted"]);
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204); // the log tells that the run has ended
});

Deno.test("POST /runs/:id/messages and finish reach a run in another process whose first events were deleted, if they name the session", async () => {
  const { among, app, run, session, pieces, gate } = await elsewhere();
  const text = { text: "Hurry" };
  assertEquals(await refusalOf(post(app, `/runs/${run}/messages`, text)), unreachable(run));
  assertEquals(await refusalOf(post(app, `/runs/${run}/finish`)), unreachable(run));
  assertEquals((await post(app, `/runs/${run}/messages?session=${session}`, text)).status, 202);
  assertEquals((await post(app, `/runs/${run}/finish?session=${session}`)).status, 204);
  assertEquals(storedMail(await among.store.load(session)), 2);
  gate.resolve("worked");
  await pieces.rest();
});

Deno.test("POST /runs/:id/stop stops a paused run whose first events were deleted, if it names the session", async () => {
  using time = new FakeTime();
  const among = shared();
  const asking = agent({ model: scripted({ calls: [["drop", { table: "a" }]] }), tools: [drop] });
  const { app } = processOf({ ...among, log: withoutFirst(2, among.log) }, asking);
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  assertEquals(await refusalOf(post(app, `/runs/${run}/stop`)), unreachable(run));
  assertEquals((await advanceUntilSettled(time, post(app, `/runs/${run}/stop?session=${session}`))).status, 204);
  await app.settled();
  assertEquals((await among.store.load(session))?.last?.event.type, "run.aborted");
});

Deno.test("POST /runs/:id/stop reaches a run that was resumed, although the log has deleted the events before", async () => {
  using time = new FakeTime();
  const among = shared();
  const gate = Promise.withResolvers<string>();
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => gate.promise });
  const model = scripted({ calls: [["drop", { table: "a" }]] }, { calls: [["work", {}]] });
  const made = agent({ model, tools: [drop, work] });
  const here = processOf(among, made);
  const asked = await eventsOf(post(here.app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", asked);
  const answers = [{ callId: first("run.paused", asked).questions[0]?.callId, type: "approve" }];
  const pieces = piecesOf(await post(here.app, `/sessions/${session}/answers`, { answers }));
  await pieces.until(`"name":"work"`);
  const { app } = processOf({ ...among, log: withoutFirst(2, among.log) }, made);
  assertEquals((await advanceUntilSettled(time, post(app, `/runs/${run}/stop`))).status, 204);
  await advance(time, 30_000);
  gate.resolve("worked");
  await pieces.rest();
  assertEquals((await among.store.load(session))?.last?.event.type, "run.aborted");
});

Deno.test("POST /runs/:id/stop answers 409 for a run in another process if sessions are not stored", async () => {
  const { log } = shared();
  const gate = Promise.withResolvers<string>();
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => gate.promise });
  const made = agent({ model: scripted({ calls: [["work", {}]] }, "Done."), tools: [work] });
  const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];
  const process = () => serve(made, { log, resumeTokens: resumeTokens({ keys }) });
  const pieces = piecesOf(await post(process(), "/runs", { prompt: "Go" }));
  const { run } = first("run.started", framesOf(await pieces.until(`"tool.started"`)));
  const app = process();
  const message = `Cannot reach run "${run}" in another process: sessions are not stored`;
  assertEquals(await refusalOf(post(app, `/runs/${run}/stop`)), [409, { code: "unreachable", message }]);
  gate.resolve("worked");
  await pieces.rest();
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
});

Deno.test("client() names the session of a run that it stops, so that one whose first events were deleted is reached", async () => {
  using time = new FakeTime();
  const { among, app, run, session, pieces, gate } = await elsewhere();
  await advanceUntilSettled(time, client("", { fetch: app.request }).follow({ ...noRun, run, session }).stop());
  await advance(time, 30_000); // until the process of the run renews its lease
  gate.resolve("worked");
  await pieces.rest();
  assertEquals((await among.store.load(session))?.last?.event.type, "run.aborted");
});

Deno.test("GET /runs/:id and POST /runs/:id/stop read each event at most once to find the session of a run", async () => {
  using time = new FakeTime();
  const { among, run, session, pieces, gate } = await elsewhere();
  const scans: number[] = [];
  const log = withoutFirst(2, among.log);
  const read: Log["read"] = (key, after) => {
    if (after === 0) scans.push(after);
    return log.read(key, after);
  };
  const { app } = processOf({ ...among, log: { ...log, read } }, agent({ model: scripted() }));
  const followed = await app.request(`/runs/${run}?after=2`);
  await advance(time, 3 * 30_000);
  assertEquals([followed.status, scans.length], [200, 1]);
  const stopped = post(app, `/runs/${run}/stop?session=${session}`);
  assertEquals([(await advanceUntilSettled(time, stopped)).status, scans.length], [204, 1]);
  await advance(time, 30_000); // until the process of the run renews its lease
  gate.resolve("worked");
  await pieces.rest();
  await followed.body?.cancel();
});
