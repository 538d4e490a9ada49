import { assertEquals } from "@std/assert";
import { eventsOf, piecesOf, post } from "../support/requests.ts";
import { eventually } from "./eventually.ts";
import { folder } from "./folder.ts";
import { bundled, served } from "./workerd.ts";

const script = await bundled("tests/platforms/alarm_worker.ts");

Deno.test("in workerd, the alarm of a killed Durable Object continues its run, without a request for it", async () => {
  await using disk = await folder();
  const begun = await (async () => {
    await using worker = await served(script, { className: "Sleeper" }, disk.path);
    const response = await post(worker, "/runs", { prompt: "Hi" }, { prefer: "respond-async" });
    const alarm: number | null = await (await worker.request("/alarm")).json();
    assertEquals([response.status, typeof alarm], [202, "number"]);
    const { run, session } = await response.json();
    const followed = piecesOf(await worker.request(`/runs/${run}`));
    await followed.until("model.started"); // it is logged before a client reads it
    await followed.cancel();
    return { run, session };
  })();
  await using worker = await served(script, { className: "Sleeper", settings: { ANSWER: "Awake." } }, disk.path);
  const { messages } = await eventually(async () => {
    const session = await (await worker.request(`/sessions/${begun.session}`)).json(); // reading a session continues nothing
    return session.run ? undefined : session;
  });
  assertEquals(messages.at(-1).parts, [{ type: "text", text: "Awake." }]);
  const events = await eventsOf(worker.request(`/runs/${begun.run}`));
  const outline = events.map((event) => event.type === "run.started" ? `${event.type} ${event.resumed}` : event.type);
  assertEquals(outline, [
    "run.started false",
    "session.opened",
    "prompt.accepted",
    "turn.started",
    "model.started",
    "run.started true",
    "session.opened",
    "turn.started",
    "model.started",
    "text.delta",
    "model.finished",
    "turn.finished",
    "session.closed",
    "run.finished",
  ]);
  const alarm: number = await (await worker.request("/alarm")).json(); // for the sweep of its events, a day later
  assertEquals(alarm > Date.now() + 86_000_000, true);
});
