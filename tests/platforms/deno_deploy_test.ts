import { fold, noRun } from "@jizai/jizai/client";
import { assertEquals } from "@std/assert";
import { eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";
import { folder } from "./folder.ts";
import { cut, rest, told } from "./heard.ts";
import { type Program, started } from "./program.ts";
import { begun, forEver, goneOnWith, prompt } from "./shop.ts";

/** The shop, in a process of its own. A step takes it `pace` milliseconds. */
function shop(path: string, pace: number): Promise<Program> {
  return started("start:kv", { KV_PATH: `${path}/kv`, PACE: String(pace) });
}

Deno.test("on Deno, a run that asked a person goes on in another process, after the first was killed", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, 0);
  const asked = await cut(killed, "Count the kettles and order 3 lanterns", `"type":"run.paused"`);
  await using program = await shop(disk.path, 0);
  const { session } = first("run.started", asked);
  const answers = [{ callId: "call_2", type: "approve" }];
  const answered = await eventsOf(post(program, `/sessions/${session}/answers`, { answers }));
  assertEquals(told([...asked, ...answered]), [
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

Deno.test("on Deno, of calls that a kill has cut one runs again with its key, and the other is answered", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, forEver);
  const heard = await cut(killed, prompt, `"type":"tool.progress","turn":1,"call":"call_2"`);
  const ran = [await killed.line("runs "), await killed.line("runs ")];
  const { run } = first("run.started", heard);
  assertEquals(ran, [`runs count call_1 ${run}:1:0`, `runs deliver call_2 ${run}:1:1`]);
  await using program = await shop(disk.path, 0);
  assertEquals(told([...heard, ...await rest(program, heard)]), [...begun, ...goneOnWith]);
  assertEquals(await program.line("runs "), ran[0]);
});

Deno.test("on Deno, a client hears all of an answer, though the server is killed while it speaks", async () => {
  await using disk = await folder();
  await using killed = await shop(disk.path, 200);
  const heard = await cut(killed, "Hello", `"text":" kettles"`);
  await using program = await shop(disk.path, 0);
  const events = [...heard, ...await rest(program, heard)];
  const { text } = first("run.finished", events);
  const half = heard.flatMap((event) => event.type === "text.delta" ? [event.text] : []).join("");
  assertEquals(told(events), [
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

Deno.test("on Deno, a server that is told to end stops its runs, and says so", async () => {
  await using disk = await folder();
  await using program = await shop(disk.path, forEver);
  const pieces = piecesOf(await post(program, "/runs", { prompt: "Count the kettles" }));
  const heard = await pieces.until(`"type":"tool.progress"`);
  const code = program.end();
  assertEquals(told(framesOf(heard + await pieces.rest())), [
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
    "tool.finished call_1 aborted Stopped before it was done.",
    "session.closed",
    "run.aborted shutdown",
  ]);
  assertEquals(await code, 0);
});
