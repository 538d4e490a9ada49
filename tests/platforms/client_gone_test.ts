import type { Event } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import { type App, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { eventually } from "./eventually.ts";
import { folder } from "./folder.ts";
import { sendAndReset } from "./resetting.ts";
import { bundled, type Served, served } from "./workerd.ts";

const script = await bundled("tests/platforms/leaving_worker.ts");

/** Serves the apps of the Worker. */
async function workers(): Promise<Served> {
  const disk = await folder();
  const worker = await served(script, { className: "Room" }, disk.path);
  return {
    ...worker,
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await disk[Symbol.asyncDispose]();
    },
  };
}

/** Returns one app of the Worker. */
function appOf({ request }: Served, name: string): App {
  return { request: (path, init) => request(`/${name}${path}`, init) };
}

/** Begins a run, and leaves as soon as its client has received `text`. Returns its ids. */
async function leave(app: App, prompt = "count", text = '"text":"3 "', body: object = {}) {
  const pieces = piecesOf(await post(app, "/runs", { prompt, ...body }));
  const received = await pieces.until(text);
  await pieces.cancel();
  const [, run = "", session = ""] = received.match(/"run":"([^"]+)","session":"([^"]+)"/) ?? [];
  return { run, session };
}

/** Returns the body of a message to a chat. */
function chatBody(id: string, text: string): object {
  return { id, messages: [{ id: "m1", role: "user", parts: [{ type: "text", text }] }] };
}

/** Returns the last event of a response. */
async function lastOf(response: Response | Promise<Response>): Promise<Event | undefined> {
  return framesOf((await (await response).text()).replaceAll(":\n\n", "")).at(-1);
}

/** Returns an event that ends a run in one line. */
function endLine(event: Event | undefined): string {
  const reason = event && "reason" in event ? event.reason : "";
  return `${event?.type} ${reason}`.trim();
}

/** Returns the status of a response without a body. */
async function sent(response: Promise<Response>): Promise<number> {
  assertEquals(await (await response).text(), "");
  return (await response).status;
}

/** Waits until the platform has ended every run whose model waits. */
async function untilCut({ request }: Served): Promise<void> {
  let before: unknown;
  await eventually(async () => {
    const waits = await (await request("/waits")).json();
    if (waits === before) return true;
    before = waits;
    return undefined;
  });
}

/** Waits until no run has a session. Reading a session continues nothing. */
async function untilFree(app: App, session: string): Promise<void> {
  await eventually(async () => {
    const { run } = await (await app.request(`/sessions/${session}`)).json();
    return run ? undefined : true;
  });
}

/** Prompts until the session is free. Returns the statuses of the refusals without repetitions, and the last event. */
async function promptUntilFree(app: App, session: string): Promise<readonly unknown[]> {
  const refusals = new Set<number>();
  const last = await eventually(async () => {
    const response = await post(app, "/runs", { prompt: "Hi", session });
    if (response.status === 200) return endLine(await lastOf(response));
    refusals.add((await refusalOf(response))[0]);
    return undefined;
  });
  return [...refusals, last];
}

const notesOf = async ({ request }: Served): Promise<readonly string[]> => await (await request("/notes")).json();

const apps = ["stop", "stop-stored", "object"];
for (const name of apps) {
  Deno.test(`in workerd, ${name}: a run whose client leaves is cleaned up and saved, and its session is free`, async () => {
    await using worker = await workers();
    const app = appOf(worker, name);
    const { session } = await leave(app);
    await untilFree(app, session);
    assertEquals(await notesOf(worker), [1, 2, 3].map((step) => `cleaned up client-gone ${step}`));
    assertEquals(await promptUntilFree(app, session), ["run.finished"]);
  });

  Deno.test(`in workerd, ${name}: a tool that ignores that its client has left does not keep the session`, async () => {
    await using worker = await workers();
    const app = appOf(worker, name);
    const { session } = await leave(app, "work", "approval.decided");
    await untilFree(app, session);
    assertEquals(await promptUntilFree(app, session), ["run.finished"]);
  });
}

Deno.test("in workerd, a run that is drained ends after its turn, without its client", async () => {
  await using worker = await workers();
  const app = appOf(worker, "drain-stored");
  const { session } = await leave(app, "work", "approval.decided");
  await untilFree(app, session);
  const { messages } = await (await app.request(`/sessions/${session}`)).json();
  assertEquals(messages.at(-1).results[0].parts, [{ type: "text", text: "Worked." }]);
});

Deno.test("in workerd, a detached run that another request stops ends, and so it does if that client leaves at once", async () => {
  await using worker = await workers();
  const app = appOf(worker, "detach-stored");
  for (const leaves of [false, true]) {
    const { run, session } = await leave(app, "work", "approval.decided");
    const stopped = post(app, `/runs/${run}/stop`);
    if (leaves) await (await stopped).body?.cancel();
    else assertEquals((await stopped).status, 204);
    await untilFree(app, session);
    assertEquals(endLine(await lastOf(app.request(`/runs/${run}`))), "run.aborted stop");
  }
});

Deno.test("in workerd, a run receives a message and a request to finish from other requests", async () => {
  await using worker = await workers();
  const app = appOf(worker, "detach-stored");
  const { run } = await leave(app, "work", "approval.decided");
  assertEquals(await sent(post(app, `/runs/${run}/messages`, { text: "count" })), 202);
  const pieces = piecesOf(await app.request(`/runs/${run}`));
  await pieces.until('"text":"3 "');
  assertEquals((await post(app, `/runs/${run}/finish`)).status, 204);
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  assertEquals((await pieces.rest()).includes("run.aborted"), true);
});

const cutApps = ["cut", "cut-stored", "cut-detached", "cut-detached-stored"];
for (const name of cutApps) {
  Deno.test(`in workerd, ${name}: a run that the platform ended keeps its session for no longer than a lease`, async () => {
    await using worker = await workers();
    const app = appOf(worker, name);
    for (const [prompt, text] of [["count", '"text":"3 "'], ["work", "approval.decided"]]) {
      const { session } = await leave(app, prompt, text);
      assertEquals(await promptUntilFree(app, session), [409, "run.finished"]);
    }
  });

  Deno.test(`in workerd, ${name}: a stop ends a run that the platform ended`, async () => {
    await using worker = await workers();
    const app = appOf(worker, name);
    const { run, session } = await leave(app);
    assertEquals((await post(app, `/runs/${run}/stop?session=${session}`)).status, 204);
    await untilFree(app, session);
    assertEquals(await promptUntilFree(app, session), ["run.finished"]);
  });

  Deno.test(`in workerd, ${name}: a message over a wire waits for the end of a run that the platform ended`, async () => {
    await using worker = await workers();
    const app = appOf(worker, name);
    const { session } = await leave(app);
    const responses = await Promise.all([0, 1].map(() => post(app, "/chat", chatBody(session, "Hi"))));
    assertEquals(responses.map(({ status }) => status), [200, 200]);
    for (const response of responses) assertEquals((await response.text()).includes('"finishReason":"stop"'), true);
  });
}

Deno.test("in workerd, a client follows the rest of a run that the platform ended, and receives its end", async () => {
  await using worker = await workers();
  for (
    const [name, end] of [["cut-detached", "run.aborted lost"], ["cut-detached-stored", "run.finished"]] as const
  ) {
    const app = appOf(worker, name);
    const { run } = await leave(app, "wait", "model.started");
    assertEquals(endLine(await lastOf(app.request(`/runs/${run}`))), end, name);
  }
});

Deno.test("in workerd, a message to a run that the platform ended is refused or kept, and never lost", async () => {
  await using worker = await workers();
  for (const name of cutApps) {
    const app = appOf(worker, name);
    const { run, session } = await leave(app, "wait", "model.started");
    await untilCut(worker);
    assertEquals(await sent(post(app, `/runs/${run}/messages`, { text: "More" })), 202, name);
    await lastOf(app.request(`/runs/${run}`));
    const { messages } = await (await app.request(`/sessions/${session}`)).json();
    const prompts = messages.filter(({ role }: { role: string }) => role === "user");
    assertEquals(prompts.length, 2, name);
    assertEquals((await refusalOf(post(app, `/runs/${run}/messages`, { text: "More" })))[0], 404, name);
    assertEquals((await refusalOf(post(app, `/runs/${run}/finish`)))[0], 404, name);
  }
});

Deno.test("in workerd, a run whose model is silent for several leases lives", async () => {
  await using worker = await workers();
  for (const name of ["stop", "stop-stored", "detach-stored"]) {
    const app = appOf(worker, name);
    const pieces = piecesOf(await post(app, "/runs", { prompt: "wait" }));
    const [, session] = (await pieces.until("model.started")).match(/"session":"([^"]+)"/) ?? [];
    const rest = pieces.rest();
    assertEquals(await promptUntilFree(app, session ?? ""), [409, "run.finished"], name);
    assertEquals((await rest).includes("run.finished"), true, name);
  }
});

for (const name of [...apps, ...cutApps]) {
  Deno.test(`in workerd, ${name}: useChat's Stop and then a message are answered`, async () => {
    await using worker = await workers();
    const permissions = ["--allow-net=127.0.0.1", "--allow-sys=hostname", "--allow-read=."];
    const args = [
      "run",
      "--quiet",
      "--no-prompt",
      ...permissions,
      "tests/platforms/stopping_chat.ts",
      worker.url + name,
    ];
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
    const [out = "", err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    const [, answer] = out.match(/assistant (Answered \d)/) ?? [];
    assertEquals([JSON.parse(out), err], [["ready", "undefined", [
      "user count",
      "assistant 1 2 3",
      "user Hi",
      `assistant ${answer}.`,
    ]], ""]);
  });
}

for (const name of apps) {
  Deno.test(`in workerd, ${name}: a run stops whose client resets the connection before its JSON`, async () => {
    await using worker = await workers();
    const url = new URL(`${name}/v1/chat/completions`, worker.url);
    const reset = await sendAndReset(url, { model: "any", messages: [{ role: "user", content: "count" }] });
    await eventually(async () => await (await worker.request("/waits")).json() > 3 || undefined);
    reset();
    const notes: string[] = [];
    await eventually(async () => notes.push(...await notesOf(worker)) === 3 || undefined);
    assertEquals(notes, [1, 2, 3].map((step) => `cleaned up client-gone ${step}`));
  });
}

for (const name of apps) {
  Deno.test(`in workerd, ${name}: a client that leaves before its response leaves no run`, async () => {
    await using worker = await workers();
    const app = appOf(worker, name);
    for (const delay of [0, 20, 40, 60, 80, 100, 150, 200, 250]) { // the store answers after 40 milliseconds
      const id = `after-${delay}`;
      const reset = await sendAndReset(new URL(`${name}/chat`, worker.url), chatBody(id, "count"));
      await new Promise((resolve) => setTimeout(resolve, delay));
      reset();
      await untilFree(app, id);
      const response = await post(app, "/chat", chatBody(id, "Hi"));
      assertEquals((await response.text()).includes('"finishReason":"stop"'), true, id);
    }
  });
}

Deno.test("in workerd, a run in the background continues after its response", async () => {
  await using worker = await workers();
  const app = appOf(worker, "stop-stored");
  const accepted = await post(app, "/runs", { prompt: "wait" }, { prefer: "respond-async" });
  const { run } = await accepted.json();
  assertEquals(endLine(await lastOf(app.request(`/runs/${run}`))), "run.finished");
});

Deno.test("in workerd, recover() continues a run that the platform ended, and reports its end once", async () => {
  await using worker = await workers();
  const app = appOf(worker, "cut-detached-stored");
  const { session } = await leave(app, "wait", "model.started");
  await untilCut(worker);
  await eventually(async () => {
    assertEquals((await post(app, "/recover")).status, 204);
    const { run } = await (await app.request(`/sessions/${session}`)).json();
    return run ? undefined : true;
  });
  assertEquals(await post(app, "/recover").then(({ status }) => status), 204);
  assertEquals((await notesOf(worker)).filter((note) => note.startsWith("run.")), ["run.finished"]);
});

for (const name of cutApps) {
  Deno.test(`in workerd, ${name}: a repeated request is answered after the platform has ended the first one`, async () => {
    await using worker = await workers();
    const app = appOf(worker, name);
    const headers = { "idempotency-key": "k1" };
    const pieces = piecesOf(await post(app, "/runs", { prompt: "wait" }, headers));
    await pieces.until("model.started");
    await pieces.cancel();
    await untilCut(worker);
    const end = await eventually(async () => {
      const response = await post(app, "/runs", { prompt: "wait" }, headers);
      if (response.status === 200) return (await lastOf(response))?.type;
      assertEquals((await refusalOf(response))[0], 409);
      return undefined;
    });
    assertEquals(end, name.endsWith("-stored") ? "run.finished" : "run.aborted");
  });
}
