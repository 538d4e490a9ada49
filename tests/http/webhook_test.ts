import { agent, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { webhook } from "@jizai/jizai/webhook";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { drop } from "../support/asking.ts";
import { advance } from "../support/fake_time.ts";
import { eventsOf, first, post } from "../support/requests.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

Deno.test("webhook() sends the end of a run, signed as Standard Webhooks describes it, and again until it is accepted", async () => {
  using time = new FakeTime(Date.UTC(2030, 0));
  const requests: { readonly url: string; readonly headers: Headers; readonly body: string }[] = [];
  const statuses = [500, 302, 204];
  const errors: unknown[] = [];
  const onEnd = webhook({
    url: "https://example.com/runs",
    secret,
    fetch(url, { headers, body, redirect }) {
      requests.push({ url, headers: new Headers(headers), body: String(body) });
      assertEquals(redirect, "error");
      return new Response(null, { status: statuses[requests.length - 1] ?? 500 });
    },
  });
  const app = serve(agent({ model: scripted("Done.") }), { onEnd, onError: (error) => errors.push(String(error)) });
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  for (const [index, ms] of [1_000, 5_000, 25_000].entries()) {
    // signatures are made outside of the faked time
    for (let turns = 0; requests.length === index && turns < 10_000; turns++) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    await advance(time, ms);
  }
  assertEquals(requests.map(({ url, headers }) => [url, headers.get("webhook-id")]), [
    ["https://example.com/runs", `${run}:end`],
    ["https://example.com/runs", `${run}:end`],
    ["https://example.com/runs", `${run}:end`],
  ]);
  for (const { headers, body } of requests) {
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    const signed = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
    assertEquals(headers.get("webhook-signature"), `v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
    const usage = { input: 1, output: 1 };
    assertEquals(JSON.parse(body), {
      type: "run.finished",
      timestamp: JSON.parse(body).timestamp,
      data: { run, session, event: { type: "run.finished", status: "done", text: "Done.", finish: "stop", usage } },
    });
  }
  assertEquals(
    errors,
    [500, 302].map((status) => `Error: Cannot report the end of run "${run}": the webhook answered ${status}`),
  );
});

Deno.test("webhook() sends a pause without its resume token", async () => {
  const sent = Promise.withResolvers<string>();
  const onEnd = webhook({
    url: "https://example.com/runs",
    secret,
    fetch(_, { body }) {
      sent.resolve(String(body));
      return new Response(null, { status: 204 });
    },
  });
  const tokens = resumeTokens({ keys: [{ id: "k1", secret: "a secret of at least thirty-two bytes" }] });
  const made = agent({ model: scripted({ calls: [["drop", { table: "a" }]] }), tools: [drop] });
  const app = serve(made, { resumeTokens: tokens, onEnd });
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  const { id: _, resumeToken, ...paused } = first("run.paused", events);
  assertEquals([typeof resumeToken, JSON.parse(await sent.promise).data.event], ["string", paused]);
  await app.settled();
});

Deno.test("webhook() rejects secrets, addresses and timeouts that it cannot use", () => {
  const url = "https://example.com";
  for (const wrong of ["", "secret", "whsec_", "whsec_AAAA", "whsec_AAAAA", "whsec_!"]) {
    assertThrows(() => webhook({ url, secret: wrong }), TypeError, "Cannot sign webhooks: the secret is invalid");
  }
  for (const wrong of ["", "example.com", "file:///etc/passwd"]) {
    assertThrows(() => webhook({ url: wrong, secret }), TypeError, "expected an http or https URL");
  }
  for (const timeout of [0, -1, NaN, 2 ** 31, Infinity]) {
    assertThrows(() => webhook({ url, secret, timeout }), RangeError, `\`timeout\` is ${timeout}; expected`);
  }
});
