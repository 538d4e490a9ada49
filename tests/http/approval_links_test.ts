import { agent, type AnyTool, ask, deny, memory, type Middleware, serve, type Store, textOf, tool } from "@jizai/jizai";
import { approvalLinks } from "@jizai/jizai/approval_links";
import { askDuring } from "@jizai/jizai/kit";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { asTool } from "@jizai/jizai/subagents";
import { webhook } from "@jizai/jizai/webhook";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { Hono } from "hono";
import * as z from "zod";
import { blueOrRed } from "../support/asking.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { decide, keys, linked, linksOf, linksWith, open, press } from "../support/linked.ts";
import { shared } from "../support/process.ts";
import { eventsOf, first, post, refusalOf } from "../support/requests.ts";

/** A tool that asks, and logs the tables that it drops. */
function dropping(did: string[]): AnyTool {
  return tool({
    name: "drop",
    description: "Drops a table",
    input: z.object({ table: z.string() }),
    ask: true,
    execute: ({ table }) => {
      did.push(table);
      return `Dropped ${table}`;
    },
  });
}

/** A tool that asks, and waits. */
function slowly(wait: () => Promise<void>): AnyTool {
  return tool({ name: "slow", description: "Waits", input: z.object({}), ask: true, execute: () => wait() });
}

/** A middleware that gives the first call another table each time that it is checked. */
function firstWith(table: () => string): Middleware {
  return {
    name: "changing",
    tool: (ctx, next) => ctx.call.id === "call_1" ? next({ input: { table: table() } }) : next(),
  };
}

/** An agent that drops tables, all in one batch. */
function dropper(did: string[], tables: readonly string[] = ["a"], use: readonly Middleware[] = []) {
  const calls = tables.map((table) => ["drop", { table }] as const);
  return agent({ name: "admin", model: scripted({ calls }, "Done."), tools: [dropping(did)], use });
}

/** Returns the status of the run that has a session, or undefined if there is none. */
async function statusOf({ served }: ReturnType<typeof linked>, session: string): Promise<string | undefined> {
  return (await (await served.request(`/sessions/${session}`)).json()).run?.status;
}

const closed = [409, "This question is closed"] as const;

Deno.test("approvalLinks() shows a question, and its button approves it", async () => {
  const did: string[] = [];
  const links = linksWith({ now: () => Date.UTC(2030, 0, 1, 12) });
  const { app, served, start } = linked(dropper(did), {}, links);
  const { questions: [question] } = await start();
  const { approve, expires } = linksOf(question);
  assertEquals(expires, Date.UTC(2030, 0, 2, 12));
  const [status, heading, html] = await open(app, approve);
  assertEquals([status, heading, did], [200, "Approve this call?", []]);
  for (
    const text of [
      "Run drop?",
      "<code>drop</code>",
      "admin",
      "&quot;table&quot;: &quot;a&quot;",
      "2030-01-02 12:00 UTC",
    ]
  ) {
    assertStringIncludes(html, text);
  }
  assertEquals(await decide(app, approve), [200, "Approved"]);
  await served.settled();
  assertEquals(did, ["a"]);
});

Deno.test("approvalLinks() denies a call, with the reason that the person wrote", async () => {
  const did: string[] = [];
  const results: string[] = [];
  const watching: Middleware = {
    name: "watching",
    async tool(_, next) {
      const result = await next();
      results.push(textOf(result));
      return result;
    },
  };
  const { app, served, start } = linked(dropper(did, ["a", "b"], [watching]));
  const { questions: [a, b] } = await start();
  assertStringIncludes((await open(app, linksOf(a).deny))[2], '<textarea name="reason"');
  assertEquals(await decide(app, linksOf(a).deny, { reason: " Ask Ada <first>. " }), [200, "Denied"]);
  assertEquals(await decide(app, linksOf(b).deny, { reason: " " }), [200, "Denied"]);
  await served.settled();
  assertEquals([did, results], [[], ["A person said no: Ask Ada <first>.", "A person said no."]]);
});

Deno.test("approvalLinks() decides nothing by GET or HEAD, which scanners and previews send", async () => {
  const did: string[] = [];
  const all = linked(dropper(did));
  const { app, served, start } = all;
  const { session, questions: [question] } = await start();
  const { approve, deny } = linksOf(question);
  for (const method of ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "GET"]) {
    await open(app, approve, method);
    await open(app, deny, method);
  }
  await served.settled();
  assertEquals([did, await statusOf(all, session)], [[], "paused"]);
  assertEquals(await decide(app, approve), [200, "Approved"]);
});

Deno.test("the pages of approvalLinks() load nothing, cannot be framed, and are not cached, indexed or named", async () => {
  const { app, start } = linked(dropper([]));
  const { questions: [question] } = await start();
  const response = await app.request(new URL(linksOf(question).approve).pathname);
  const { headers } = response;
  const html = await response.text();
  const nonce = /<style nonce="([^"]+)">/.exec(html)?.[1];
  assertEquals(
    [
      "content-type",
      "cache-control",
      "referrer-policy",
      "x-content-type-options",
      "x-frame-options",
      "content-security-policy",
    ]
      .map((name) => headers.get(name)),
    [
      "text/html; charset=UTF-8",
      "no-store",
      "no-referrer",
      "nosniff",
      "DENY",
      `default-src 'none'; style-src 'nonce-${nonce}'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    ],
  );
  assertStringIncludes(headers.get("x-robots-tag") ?? "", "noindex");
  assertEquals([html.includes("<script"), html.includes('content="width=device-width, initial-scale=1"')], [
    false,
    true,
  ]);
  assertStringIncludes(html, "color-scheme: light dark");
  assertEquals(/<title>(.*)<\/title>/.exec(html)?.[1], "Approve a call"); // a preview shows it
});

Deno.test("the page of approvalLinks() escapes what the model wrote, and shows what would be hidden", async () => {
  const table = `</pre><script>alert("1")</script>&amp;\u202Eevil\u0007`;
  const asking: Middleware = { name: "asking", approval: () => Promise.resolve(ask(`Drop <b>"it"</b>\u2028?`)) };
  const { app, start } = linked(dropper([], [table], [asking]));
  const { questions: [question] } = await start();
  const [, , html] = await open(app, linksOf(question).approve);
  assertStringIncludes(
    html,
    "&lt;/pre&gt;&lt;script&gt;alert(\\&quot;1\\&quot;)&lt;/script&gt;&amp;amp;\\u{202e}evil\\u0007",
  );
  assertStringIncludes(html, "Drop &lt;b&gt;&quot;it&quot;&lt;/b&gt;");
  assertEquals([html.includes("<script"), html.includes("<b>"), html.includes("\u202E")], [false, false, false]);
});

Deno.test("the page of approvalLinks() shows the input as redact() masks it", async () => {
  const { app, start } = linked(dropper([], ["hunter2"], [redact({ secrets: ["hunter2"] })]));
  const { questions: [question] } = await start();
  const [, , html] = await open(app, linksOf(question).approve);
  assertEquals([html.includes("hunter2"), html.includes("[redacted]")], [false, true]);
});

Deno.test("the page of approvalLinks() shows the input as a hook changed it for the clients", async () => {
  const masking: Middleware = {
    name: "masking",
    async session(_, next) {
      const result = await next();
      return { ...result, questions: JSON.parse(JSON.stringify(result.questions).replaceAll("secret", "***")) };
    },
  };
  const did: string[] = [];
  const { app, served, start } = linked(dropper(did, ["secret", "b"], [masking]));
  const { session, questions: [a, b] } = await start();
  assertStringIncludes(await (await served.request(`/sessions/${session}`)).text(), "secret");
  for (const link of [linksOf(b).approve, linksOf(a).approve]) {
    const [status, , html] = await open(app, link);
    assertEquals([status, html.includes("secret")], [200, false]);
    assertEquals(await decide(app, link), [200, "Approved"]);
    await served.settled();
  }
  assertEquals(did, ["b", "secret"]);
});

Deno.test("a link of approvalLinks() counts once, and closes the other link of its question", async () => {
  const did: string[] = [];
  const { app, served, start } = linked(dropper(did));
  const { questions: [question] } = await start();
  const { approve, deny } = linksOf(question);
  assertEquals(await decide(app, approve), [200, "Approved"]);
  await served.settled();
  for (const link of [approve, deny]) {
    assertEquals(await decide(app, link), closed);
    const [status, heading, html] = await open(app, link);
    assertEquals([[status, heading], html.includes("drop")], [closed, false]);
  }
  assertEquals(did, ["a"]);
});

Deno.test("of an approval and a denial at once, exactly one counts, also in two processes", async () => {
  for (let times = 0; times < 8; times++) {
    const did: string[] = [];
    const among = shared();
    const one = linked(dropper(did), among);
    const two = times % 2 ? linked(dropper(did), among) : one;
    const { questions: [question] } = await one.start();
    const { approve, deny } = linksOf(question);
    const order = times % 4 < 2 ? [approve, deny] : [deny, approve];
    const [first, second] = await Promise.all(order.map((link, index) => decide(index ? two.app : one.app, link)));
    await Promise.all([one.served.settled(), two.served.settled()]);
    const counted = [first, second].filter((page) => page?.[0] === 200);
    assertEquals(counted.length, 1, JSON.stringify([first, second]));
    assertEquals([first, second].find((page) => page?.[0] !== 200), closed);
    assertEquals(did, counted[0]?.[1] === "Approved" ? ["a"] : []);
  }
});

Deno.test("each link of a pause answers its own call, and stays valid while the run works on the others", async () => {
  const did: string[] = [];
  const all = linked(dropper(did, ["a", "b", "c"]));
  const { app, served, reports, start } = all;
  const { session, questions: [a, b, c] } = await start();
  assertEquals(await decide(app, linksOf(b).approve), [200, "Approved"]);
  await served.settled();
  assertEquals([did, await statusOf(all, session)], [["b"], "paused"]);
  assertEquals(reports.map((questions) => questions.map(({ callId }) => callId)), [
    ["call_1", "call_2", "call_3"],
    ["call_1", "call_3"],
  ]);
  assertEquals(await decide(app, linksOf(b).approve), closed);
  assertStringIncludes((await open(app, linksOf(a).approve))[2], "&quot;a&quot;");
  assertEquals(await decide(app, linksOf(a).deny), [200, "Denied"]);
  assertEquals(await decide(app, linksOf(a).approve), closed);
  await served.settled();
  assertStringIncludes((await press(app, linksOf(reports[1]?.[1]).approve))[2], "The run continues.");
  await served.settled();
  assertEquals(await decide(app, linksOf(c).approve), closed);
  assertEquals([did, await statusOf(all, session)], [["b", "c"], undefined]);
});

Deno.test("links that are pressed at the same time all count, each for its call", async () => {
  const did: string[] = [];
  const { app, served, start } = linked(dropper(did, ["a", "b", "c", "d"]));
  const { questions } = await start();
  const pages = await Promise.all(questions.map((question, index) => {
    return decide(app, index === 2 ? linksOf(question).deny : linksOf(question).approve);
  }));
  await served.settled();
  assertEquals(pages, [[200, "Approved"], [200, "Approved"], [200, "Denied"], [200, "Approved"]]);
  assertEquals(did.toSorted(), ["a", "b", "d"]);
});

Deno.test("a page that is opened while the run works on another answer shows its question", async () => {
  const began = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const slow = slowly(async () => {
    began.resolve();
    await done.promise;
  });
  const did: string[] = [];
  const calls = [["slow", {}], ["drop", { table: "a" }]] as const;
  const { app, served, start } = linked(agent({ model: scripted({ calls }, "Done."), tools: [slow, dropping(did)] }));
  const { questions: [first, second] } = await start();
  assertEquals(await decide(app, linksOf(first).approve), [200, "Approved"]);
  await began.promise;
  assertEquals(await decide(app, linksOf(first).approve), closed);
  assertEquals((await open(app, linksOf(second).approve)).slice(0, 2), [200, "Approve this call?"]);
  const answered = decide(app, linksOf(second).approve);
  done.resolve();
  assertEquals(await answered, [200, "Approved"]);
  await served.settled();
  assertEquals(did, ["a"]);
});

Deno.test("a link waits ten seconds for the answer to another question, and decides nothing then", async () => {
  using time = new FakeTime();
  const slow = slowly(() => new Promise((resolve) => setTimeout(resolve, 60_000)));
  const did: string[] = [];
  const calls = [["slow", {}], ["drop", { table: "a" }]] as const;
  const { app, served, start } = linked(agent({ model: scripted({ calls }, "Done."), tools: [slow, dropping(did)] }));
  const { questions: [first, second] } = await start();
  assertEquals(await decide(app, linksOf(first).approve), [200, "Approved"]);
  const response = app.request(new URL(linksOf(second).approve).pathname, { method: "POST" });
  await advanceUntilSettled(time, Promise.resolve(response));
  const { status, headers, body } = await response;
  assertEquals([status, headers.get("retry-after"), did], [503, "60", []]);
  assertStringIncludes(await new Response(body).text(), "The run is working");
  await advanceUntilSettled(time, served.settled());
  assertEquals(await decide(app, linksOf(second).approve), [200, "Approved"]);
  await served.settled();
  assertEquals(did, ["a"]);
});

Deno.test("a link continues the run whose process died while it worked on the answer to another question", async () => {
  const began = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const slow = slowly(() => {
    began.resolve();
    return end.promise;
  });
  const did: string[] = [];
  const among = shared();
  const calls = [["slow", {}], ["drop", { table: "a" }]] as const;
  const waiting = () => agent({ model: scripted({ calls }, "Done."), tools: [slow, dropping(did)] });
  const dead = linked(waiting(), { ...among, onError() {} });
  const { questions: [first, second] } = await dead.start();
  assertEquals(await decide(dead.app, linksOf(first).approve), [200, "Approved"]);
  await began.promise;
  const { app, served } = linked(agent({ model: scripted("Done."), tools: [slow, dropping(did)] }), {
    ...among,
    singleProcess: true,
  });
  assertEquals(await decide(app, linksOf(second).approve), [200, "Approved"]);
  await served.settled();
  assertEquals(did, ["a"]);
  end.resolve();
  await dead.served.settled();
});

Deno.test("links work in another process, after a restart, and when a key was replaced", async () => {
  const did: string[] = [];
  const among = shared();
  const owner = () => "ada";
  const { start } = linked(dropper(did), { ...among, owner });
  const { questions: [question] } = await start();
  const renewed = linksWith({ keys: [{ id: "k2", secret: "another secret of thirty-two bytes!" }, ...keys] });
  const later = linked(dropper(did), { ...among, owner }, renewed);
  assertEquals(await decide(later.app, linksOf(question).approve), [200, "Approved"]);
  await later.served.settled();
  assertEquals(did, ["a"]);
  const gone = linked(
    dropper(did),
    among,
    linksWith({ keys: [{ id: "k2", secret: "another secret of thirty-two bytes!" }] }),
  );
  assertEquals(await decide(gone.app, linksOf(question).approve), [400, "This link is not valid"]);
});

Deno.test("a link that has expired, was changed, or is of another server decides nothing and shows nothing", async () => {
  const did: string[] = [];
  let now = Date.UTC(2030, 0);
  const links = linksWith({ expiresIn: 60_000, now: () => now });
  const all = linked(dropper(did), {}, links);
  const { app, start } = all;
  const { session, questions: [question] } = await start();
  const { approve } = linksOf(question);
  const token = approve.split("/").at(-1) ?? "";
  const foreign = linked(
    dropper(did),
    {},
    linksWith({ keys: [{ id: "k1", secret: "another secret of thirty-two bytes!" }] }),
  );
  const { questions: [other] } = await foreign.start();
  const changed = [
    approve.slice(0, -1),
    `${approve}A`,
    approve.replace("k1.", "k2."),
    approve.slice(0, 60) + (approve[60] === "A" ? "B" : "A") + approve.slice(61),
    linksOf(other).approve,
    `https://example.com/approvals/${btoa("{}")}`,
    `https://example.com/approvals/${token.split(".")[1]}`,
  ];
  for (const link of changed) {
    assertEquals((await open(app, link)).slice(0, 2), [400, "This link is not valid"]);
    assertEquals(await decide(app, link), [400, "This link is not valid"]);
  }
  now += 60_000;
  for (const page of [await open(app, approve), await press(app, approve)]) {
    assertEquals([page[0], page[1], page[2].includes("drop")], [410, "This link has expired", false]);
  }
  assertEquals([did, await statusOf(all, session)], [[], "paused"]);
});

Deno.test("a link does not show the session, its owner or the run, which can be keys to it", async () => {
  const { start } = linked(dropper([]), { owner: () => "ada@example.com" });
  const { session, run, questions: [question] } = await start();
  const { approve } = linksOf(question);
  const [, content = ""] = approve.split("/").at(-1)?.split(".") ?? [];
  const readable = approve + atob(content.replaceAll("-", "+").replaceAll("_", "/"));
  for (const secret of [session, run, "ada@example.com", "call_1"]) assertEquals(readable.includes(secret), false);
});

Deno.test("a link for a run that went on, ended, or was deleted is closed", async () => {
  const ends: readonly ((all: ReturnType<typeof linked>, session: string, run: string) => unknown)[] = [
    ({ app }, session) => eventsOf(post(app, "/runs", { prompt: "Never mind", session })),
    ({ app }, session) =>
      eventsOf(post(app, `/sessions/${session}/answers`, { answers: [{ callId: "call_1", type: "deny" }] })),
    ({ app }, session, run) => post(app, `/runs/${run}/stop?session=${session}`),
    ({ app }, session) => app.request(`/sessions/${session}`, { method: "DELETE" }),
  ];
  for (const end of ends) {
    const did: string[] = [];
    const all = linked(
      agent({ model: scripted({ calls: [["drop", { table: "a" }]] }, "Done.", "Done."), tools: [dropping(did)] }),
    );
    const { session, run, questions: [question] } = await all.start();
    await end(all, session, run);
    await all.served.settled();
    assertEquals(await decide(all.app, linksOf(question).approve), closed);
    assertEquals(did, []);
  }
});

Deno.test("a link for a session that was deleted and created again is closed, although its run has the same id", async () => {
  const did: string[] = [];
  const among = shared();
  const session = () => "room";
  const issued = Date.now() - 10_000;
  const before = await linked(dropper(did), { ...among, session }, linksWith({ now: () => issued })).start();
  const { app, start } = linked(dropper(did), { ...among, session });
  await app.request("/sessions/room", { method: "DELETE" });
  const after = await start();
  assertEquals([before.run, before.questions[0]?.callId], [after.run, after.questions[0]?.callId]);
  assertEquals(await decide(app, linksOf(before.questions[0]).approve), closed);
  assertEquals(await decide(app, linksOf(after.questions[0]).deny), [200, "Denied"]);
  assertEquals(did, []);
});

Deno.test("a link for a run that was rolled back is closed, although the next run asks about a call with the same id", async () => {
  const did: string[] = [];
  const among = shared();
  const before = linked(dropper(did), among);
  const { session, run, questions: [old] } = await before.start();
  await post(before.app, `/runs/${run}/stop?session=${session}&rollback`);
  await before.served.settled();
  const { app, served, reports } = linked(dropper(did), among);
  await eventsOf(post(app, "/runs", { prompt: "Go", session }));
  await served.settled();
  assertEquals([old?.callId, reports[0]?.[0]?.callId], ["call_1", "call_1"]);
  assertEquals(await decide(app, linksOf(old).approve), closed);
  assertEquals(did, []);
});

Deno.test("a link approves no other form of its call that is asked about between its check and its answer", async () => {
  const did: string[] = [];
  let table = "a";
  const { journal } = memory();
  let between: (() => Promise<unknown>) | undefined;
  const store: Store = durable({
    ...journal,
    async read(...place) {
      const page = await journal.read(...place);
      const [act, rest] = [between, undefined];
      between = rest;
      await act?.();
      return page;
    },
  });
  const { app, served, start } = linked(dropper(did, ["x", "y"], [firstWith(() => table)]), { store });
  const { questions: [a, other] } = await start();
  between = async () => {
    table = "b";
    assertEquals(await decide(app, linksOf(other).deny), [200, "Denied"]);
    await served.settled();
  };
  assertEquals(await decide(app, linksOf(a).approve), [409, "This question has changed"]);
  assertEquals([between, did], [undefined, []]);
});

Deno.test("a link cannot approve what a guard denies, and approves only the input that was shown", async () => {
  const did: string[] = [];
  let verdict: "ask" | "deny" = "ask";
  const guard: Middleware = {
    name: "guard",
    approval: async (_, next) => verdict === "deny" ? deny("Not now.") : await next(),
  };
  const { app, served, start } = linked(dropper(did, ["a"], [guard]));
  const { questions: [question] } = await start();
  verdict = "deny";
  assertEquals(await decide(app, linksOf(question).approve), [200, "Approved"]);
  await served.settled();
  assertEquals(did, []);
});

Deno.test("a link for a question that is asked again in another form decides nothing", async () => {
  const did: string[] = [];
  let table = "a";
  const { app, served, reports, start } = linked(dropper(did, ["x", "y"], [firstWith(() => table)]));
  const { questions: [a, other] } = await start();
  table = "b";
  assertEquals(await decide(app, linksOf(other).approve), [200, "Approved"]);
  await served.settled();
  const [status, heading, html] = await open(app, linksOf(a).approve);
  assertEquals([status, heading, html.includes("&quot;b&quot;")], [409, "This question has changed", false]);
  assertEquals(await decide(app, linksOf(a).approve), [409, "This question has changed"]);
  assertEquals(did, ["y"]);
  assertEquals(await decide(app, linksOf(reports.at(-1)?.[0]).approve), [200, "Approved"]);
  await served.settled();
  assertEquals(did, ["y", "b"]);
});

Deno.test("links answer the questions of subagents, also one after another", async () => {
  const did: string[] = [];
  const helper = dropper(did, ["a", "b"]);
  const parent = agent({
    name: "boss",
    model: scripted({ calls: [["admin", { prompt: "Clean" }]] }, "Done."),
    tools: [asTool(helper)],
  });
  const { app, served, start } = linked(parent);
  const { questions: [a, b] } = await start();
  assertStringIncludes((await open(app, linksOf(a).approve))[2], "boss → admin");
  assertEquals(await Promise.all([a, b].map((each) => decide(app, linksOf(each).approve))), [[200, "Approved"], [
    200,
    "Approved",
  ]]);
  await served.settled();
  assertEquals(did.toSorted(), ["a", "b"]);
  for (const each of [a, b]) assertEquals(await decide(app, linksOf(each).approve), closed);
});

Deno.test("a question that a click cannot answer has no links", async () => {
  const input = z.object({});
  const asking = (name: string, schema?: object): AnyTool =>
    tool({
      name,
      description: "Asks",
      input,
      execute: (_, ctx) => {
        throw askDuring(ctx, [{ name: "form", question: "Which?", ...(schema && { schema: { ...schema } }) }]);
      },
    });
  const choosing: Middleware = {
    name: "choosing",
    async approval(ctx, next) {
      if (ctx.name === "chosen") return ask("Which?", { suggestions: [{ type: "reply", text: "blue" }] });
      return ctx.name === "schema" ? ask("Which?", { schema: { type: "string" } }) : await next();
    },
  };
  const plain = (name: string) => tool({ name, description: "Asks", input, execute: () => "ok" });
  const tools = [
    asking("form", { type: "object", properties: { nights: { type: "integer" } } }),
    asking("number", { type: "number" }),
    asking("confirm", { type: "object" }),
    asking("bare"),
    plain("chosen"),
    plain("schema"),
  ];
  const calls = tools.map(({ name }) => [name, {}] as const);
  const { start } = linked(agent({ model: scripted({ calls }), tools, use: [choosing] }));
  const { questions } = await start();
  assertEquals(questions.map(({ links }) => links !== undefined), [false, false, true, true, false, false]);
  const { start: startRun } = linked(agent({ model: scripted("Done."), use: [blueOrRed("prompt")] }));
  assertEquals((await startRun()).questions.map(({ questions, links }) => [questions, links]), [[
    ["Blue or red?"],
    undefined,
  ]]);
});

Deno.test("webhook() adds the links to the questions of a pause, and nothing to other ends", async () => {
  const bodies: {
    readonly data: { readonly event: { readonly questions?: readonly { readonly links?: object }[] } };
  }[] = [];
  const onEnd = webhook({
    url: "https://example.com/runs",
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    links: linksWith(),
    fetch(_, { body }) {
      bodies.push(JSON.parse(String(body)));
      return new Response(null, { status: 204 });
    },
  });
  const app = serve(dropper([]), { onEnd });
  const events = await eventsOf(post(app, "/runs", { prompt: "Go" }));
  const { session } = first("run.started", events);
  await app.settled();
  await eventsOf(post(app, `/sessions/${session}/answers`, { answers: [{ callId: "call_1", type: "deny" }] }));
  await app.settled();
  const links = bodies.map(({ data }) => data.event.questions?.map((question) => Object.keys(question.links ?? {})));
  assertEquals(links, [[["approve", "deny", "expires"]], undefined]);
});

Deno.test("links reach the owner of the session, with the vars of recoveryVars", async () => {
  const seen: unknown[] = [];
  const did: string[] = [];
  const watching: Middleware = {
    name: "watching",
    session(ctx, next) {
      seen.push(ctx.vars);
      return next();
    },
  };
  const links = linksWith();
  const questions: Parameters<typeof linksOf>[0][] = [];
  const served = serve(dropper(did, ["a"], [watching]), {
    owner: (c) => c.req.header("x-user"),
    vars: () => ({ from: "request" }),
    recoveryVars: ({ owner }) => ({ from: "link", owner }),
    onEnd: async (end) => void questions.push(...await links.questions(end)),
  });
  const app = new Hono().route("/approvals", links.pages(served)).route("/", served);
  await eventsOf(post(app, "/runs", { prompt: "Go" }, { "x-user": "ada" }));
  await served.settled();
  assertEquals(await decide(app, linksOf(questions[0]).approve), [200, "Approved"]);
  await served.settled();
  assertEquals([did, seen], [["a"], [{ from: "request" }, { from: "link", owner: "ada" }]]);
  assertEquals((await refusalOf(post(app, "/runs", { prompt: "Go" })))[0], 403);
});

Deno.test("links of a server that shuts down or fails decide nothing, and stay valid", async () => {
  const did: string[] = [];
  const among = shared();
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const { app, served, start } = linked(dropper(did), { ...among, onError });
  const { questions: [question] } = await start();
  const { approve } = linksOf(question);
  const shutDown = linked(dropper(did), { ...among, onError, signal: AbortSignal.abort() });
  const broken = linked(
    dropper(did),
    { ...among, onError, vars: () => ({}), recoveryVars: () => Promise.reject(new Error("secret")) } as object,
  );
  const refused = [await press(shutDown.app, approve), await press(broken.app, approve)];
  assertEquals(refused.map(([status, heading, html]) => [status, heading, html.includes("secret")]), [
    [503, "Something went wrong", false],
    [500, "Something went wrong", false],
  ]);
  assertEquals(errors.map(String), ["Error: secret"]);
  assertEquals((await press(app, approve, { reason: "x".repeat(20_000) }))[0], 413);
  assertEquals(await decide(app, approve), [200, "Approved"]);
  await served.settled();
  assertEquals(did, ["a"]);
});

Deno.test("approvalLinks() rejects options with which it cannot work", () => {
  for (const url of ["", "example.com", "file:///a", "https://example.com/?a=1", "https://example.com/#a"]) {
    assertThrows(() => approvalLinks({ url, keys }), TypeError, `\`url\` is "${url}"; expected an http or https URL`);
  }
  for (const expiresIn of [0, -1, NaN, Infinity]) {
    assertThrows(
      () => linksWith({ expiresIn }),
      RangeError,
      `\`expiresIn\` is ${expiresIn}; expected a positive number`,
    );
  }
  assertThrows(() => linksWith({ keys: [] }), RangeError, "expected at least one key");
  assertThrows(
    () => linksWith({ keys: [{ id: "k1", secret: "short" }] }),
    RangeError,
    "expected at least 32 bytes, got 5",
  );
  const tokens = serve(dropper([]), { resumeTokens: resumeTokens({ keys }), store: memory() });
  assertThrows(() => linksWith().pages(tokens), TypeError, "expected no `resumeTokens`");
  const withVars = serve(dropper([]), { vars: () => ({}) });
  assertThrows(() => linksWith().pages(withVars), TypeError, "expected the option recoveryVars");
  assert(linksWith({ url: "https://example.com/approvals/" }));
});
