import { fold, noRun } from "@jizai/jizai/client";
import { assertEquals } from "@std/assert";
import { eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";
import { folder } from "./folder.ts";
import { cut, linesOf, rest } from "./received_events.ts";
import { type Program, started } from "./program.ts";
import { begun, prompt, resumedEvents, unlimited } from "./shop.ts";

/** Serves the shop in a process of its own. `pace` is the duration of a step in milliseconds. */
function shop(path: string, pace: number): Promise<Program> {
  return started("start:kv", { KV_PATH: `${path}/kv`, PACE: String(pace) });
}

Deno.test("on Deno, a paused run continues in another process after the first was killed", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, 0);
  const asked = await cut(killed, "Count the kettles and order 3 lanterns", `"type":"run.paused"`);
  await using program = await shop(disk.path, 0);
  const { session } = first("run.started", asked);
  const answers = [{ callId: "call_2", type: "approve" }];
  const answered = await eventsOf(post(program, `/sessions/${session}/answers`, { answers }));
  assertEquals(linesOf([...asked, ...answered]), [
    "run.started",
    "session.opened new",
    "prompt.accepted Count the kettles and order 3 lanterns",
    "turn.started 1",
    "model.started rule-based",
    'call.delta call_1 {"item":"kettles"}',
    "call.ready count call_1",
    'call.delta call_2 {"item":"lanterns","amount":3}',
    "call.ready order call_2",
    "model.finished calls",
    "tool.started count call_1",
    "approval.decided call_1 allow policy",
    "tool.started order call_2",
    "approval.asked call_2 Run order?",
    'tool.progress call_1 {"shelf":1}',
    'tool.progress call_1 {"shelf":2}',
    'tool.progress call_1 {"shelf":3}',
    "tool.finished call_1 ok There are 7 kettles.",
    "session.closed",
    "run.paused Run order?",
    // killed, and started again
    "run.started resumed",
    "session.opened resume",
    "turn.started 1",
    "tool.started order call_2",
    "approval.decided call_2 allow person",
    "tool.finished call_2 ok Ordered 3 lanterns for guest.",
    "turn.finished 1",
    "turn.started 2",
    "model.started rule-based",
    "text.delta There are 7 kettles. Ordered 3 lanterns for guest.",
    "model.finished stop",
    "turn.finished 2",
    "session.closed",
    "run.finished done There are 7 kettles. Ordered 3 lanterns for guest.",
  ]);
});

Deno.test("on Deno, of two calls that were killed, the idempotent one runs again with its key, and the other is answered", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, unlimited);
  const received = await cut(killed, prompt, `"type":"tool.progress","turn":1,"call":"call_2"`);
  const ran = [await killed.line("runs "), await killed.line("runs ")];
  const { run } = first("run.started", received);
  assertEquals(ran, [`runs count call_1 ${run}:1:0`, `runs deliver call_2 ${run}:1:1`]);
  await using program = await shop(disk.path, 0);
  assertEquals(linesOf([...received, ...await rest(program, received)]), [...begun, ...resumedEvents]);
  assertEquals(await program.line("runs "), ran[0]);
});

Deno.test("on Deno, a client receives the whole answer although the server is killed during it", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, 200);
  const received = await cut(killed, "Hello", `"text":" kettles"`);
  await using program = await shop(disk.path, 0);
  const events = [...received, ...await rest(program, received)];
  const { text } = first("run.finished", events);
  const half = received.flatMap((event) => event.type === "text.delta" ? [event.text] : []).join("");
  assertEquals(linesOf(events), [
    "run.started",
    "session.opened new",
    "prompt.accepted Hello",
    "turn.started 1",
    "model.started rule-based",
    `text.delta ${half}`,
    // killed, and started again
    "run.started resumed",
    "session.opened resume",
    "turn.started 1",
    "model.started rule-based",
    `text.delta ${text}`,
    "model.finished stop",
    "turn.finished 1",
    "session.closed",
    `run.finished done ${text}`,
  ]);
  const { messages } = events.map(({ id, ...event }) => ({ id, event })).reduce(fold, noRun);
  assertEquals(messages.at(-1)?.parts, [{ type: "text", id: 0, text }]);
});

Deno.test("on Deno, a server that receives SIGTERM hands its runs over: the client receives the rest from the next one", async () => {
  await using disk = await folder();
  await using program = await shop(disk.path, unlimited);
  const pieces = piecesOf(await post(program, "/runs", { prompt: "Count the kettles" }));
  const text = await pieces.until(`"type":"tool.progress"`);
  const code = program.end();
  const received = framesOf(text + await pieces.rest());
  assertEquals(await code, 0);
  await using next = await shop(disk.path, 0);
  assertEquals(linesOf([...received, ...await rest(next, received)]), [
    "run.started",
    "session.opened new",
    "prompt.accepted Count the kettles",
    "turn.started 1",
    "model.started rule-based",
    'call.delta call_1 {"item":"kettles"}',
    "call.ready count call_1",
    "model.finished calls",
    "tool.started count call_1",
    "approval.decided call_1 allow policy",
    'tool.progress call_1 {"shelf":1}',
    // SIGTERM, and started again
    "run.started resumed",
    "session.opened resume",
    "turn.started 1",
    "tool.started count call_1",
    'tool.progress call_1 {"shelf":1}',
    'tool.progress call_1 {"shelf":2}',
    'tool.progress call_1 {"shelf":3}',
    "tool.finished call_1 ok There are 7 kettles.",
    "turn.finished 1",
    "turn.started 2",
    "model.started rule-based",
    "text.delta There are 7 kettles.",
    "model.finished stop",
    "turn.finished 2",
    "session.closed",
    "run.finished done There are 7 kettles.",
  ]);
});
