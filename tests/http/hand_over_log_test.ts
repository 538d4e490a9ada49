/**
 * A shutdown while the log fails.
 *
 * @module
 */
import { agent, type Model, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { processOf, shared } from "../support/process.ts";
import { eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";
import { storedRun } from "../support/stored_run.ts";

Deno.test("a shutdown waits no longer than grace and a second for a log that fails, and another process continues the run", async () => {
  using time = new FakeTime();
  const among = shared();
  const more = Promise.withResolvers<void>();
  const model: Model = {
    id: "slow",
    async *stream(_request, { signal }) {
      yield [{ type: "text", text: "Half" }];
      await more.promise;
      yield [{ type: "text", text: " and" }];
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  };
  let down = false;
  const append: typeof among.log.append = (...given) =>
    down ? Promise.reject(new Error("The log is down")) : among.log.append(...given);
  const shutdown = new AbortController();
  const options = { signal: shutdown.signal, grace: 3_000, onError() {} };
  const one = processOf({ ...among, log: { ...among.log, append } }, agent({ model }), options);
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Go" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("Half")));
  down = true;
  shutdown.abort();
  await advance(time, 2_000);
  more.resolve();
  const before = Date.now();
  await advanceUntilSettled(time, one.app.settled());
  assertEquals(Date.now() - before <= 2_500, true);
  assertEquals(storedRun(await among.store.load(session)), { id: run, status: "running" });
  const two = processOf(among, agent({ model: scripted("Whole.") }));
  const { runs, over } = await two.app.recover();
  assertEquals(runs, [run]);
  await advanceUntilSettled(time, over);
  assertEquals((await among.store.load(session))?.last?.event.type, "run.finished");
  await pieces.rest();
});

Deno.test("a call whose result could not be logged before a shutdown has in the session the result that clients read in the log", async () => {
  using time = new FakeTime();
  const among = shared();
  const result = Promise.withResolvers<string>();
  let down = false;
  const append: typeof among.log.append = (...given) =>
    down ? Promise.reject(new Error("The log is down")) : among.log.append(...given);
  const pay = tool({ name: "pay", description: "", input: z.object({}), execute: () => result.promise });
  const paying = () => agent({ model: scripted({ calls: [["pay", {}]] }, "Done."), tools: [pay] });
  const shutdown = new AbortController();
  const options = { signal: shutdown.signal, grace: 3_000, onError() {} };
  const one = processOf({ ...among, log: { ...among.log, append } }, paying(), options);
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Go" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("tool.started")));
  down = true;
  shutdown.abort();
  await advance(time, 500);
  result.resolve("Paid");
  await advanceUntilSettled(time, one.app.settled());
  down = false;
  const two = processOf(among, agent({ model: scripted("Whole."), tools: [pay] }));
  const { runs, over } = await two.app.recover();
  assertEquals(runs, [run]);
  await advanceUntilSettled(time, over);
  const events = await eventsOf(two.app.request(`/runs/${run}`, { headers: { "last-event-id": "0" } }));
  const stored = await among.store.load(session);
  assertEquals(
    events.flatMap((event) => event.type === "tool.finished" ? [event.result] : []),
    stored?.messages.flatMap((message) => message.role === "tool" ? message.results : []),
  );
  assertEquals([stored?.last?.event.type, events.at(-1)?.type], ["run.finished", "run.finished"]);
  await pieces.rest();
});
