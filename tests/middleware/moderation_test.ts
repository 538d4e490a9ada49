import { agent, type AnswerPart, type ContentPart, type MediaPart, serve, user } from "@jizai/jizai";
import {
  type Moderation,
  moderation,
  type ModerationOptions,
  type Moderator,
  openaiModerator,
} from "@jizai/jizai/middleware/moderation";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { reaching } from "../support/chat.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { eventsOfRun } from "../support/run_events.ts";
import OpenAI from "npm:openai@7.57.0";

/** A request that the endpoint received. */
interface Received {
  readonly model: string;
  readonly input: readonly {
    readonly type: string;
    readonly text?: string;
    readonly image_url?: { readonly url: string };
  }[];
}

/** Serves OpenAI's moderation endpoint: a text with "fool" is harassment. */
function endpoint(respond?: () => Response) {
  const received: Received[] = [];
  const answer = (body: Received): Response => {
    received.push(body);
    const flagged = body.input.some(({ text = "" }) => text.includes("fool"));
    return respond?.() ?? Response.json({
      id: "modr-1",
      model: body.model,
      results: [{
        flagged,
        categories: { harassment: flagged, violence: false },
        category_scores: { harassment: flagged ? 0.9 : 0.01, violence: 0.3 },
      }],
    });
  };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const isValid = new URL(request.url).pathname === "/v1/moderations" &&
      request.headers.get("authorization") === "Bearer sk-test";
    return isValid ? answer(await request.json()) : new Response(null, { status: 404 });
  });
  const baseURL = `http://127.0.0.1:${server.addr.port}/v1`;
  return { received, baseURL, [Symbol.asyncDispose]: () => server.shutdown() };
}

async function moderated(
  options: Partial<ModerationOptions>,
  answers: readonly ScriptedAnswer[],
  prompt: readonly ContentPart[] = [{ type: "text", text: "Hi" }],
  respond?: () => Response,
) {
  await using server = endpoint(respond);
  const flagged: [Moderation, string][] = [];
  const errors: string[] = [];
  const moderator = openaiModerator({ apiKey: "sk-test", baseURL: server.baseURL });
  const guard = moderation({ moderator, onFlagged: (...call) => void flagged.push(call), ...options });
  const { status, reason, text } = await agent({ model: scripted(...answers), use: [guard] }).run({
    messages: [{ role: "user", parts: prompt }],
    onError: (error) => void errors.push(String(error)),
  }).result;
  return { ended: [status, reason, text], flagged, errors, received: server.received };
}

const harassment: Moderation = { flagged: true, categories: ["harassment"] };

Deno.test("moderation() obeys the laws of middleware", async () => {
  const moderator = { moderate: () => Promise.resolve({ flagged: false, categories: [] }) };
  await testMiddleware(() => moderation({ moderator, window: 4 }));
});

Deno.test("moderation() passes messages and answers that are not flagged", async () => {
  const { ended, received, flagged } = await moderated({ window: 4 }, ["Good day"]);
  assertEquals(ended, ["done", undefined, "Good day"]);
  assertEquals(received.map(({ model, input }) => [model, input]), [
    ["omni-moderation-latest", [{ type: "text", text: "Hi" }]],
    ["omni-moderation-latest", [{ type: "text", text: "Good day" }]],
  ]);
  assertEquals(flagged, []);
});

Deno.test("moderation() refuses a flagged message", async () => {
  const { ended, flagged } = await moderated({ reason: "No." }, [], [{ type: "text", text: "You fool" }]);
  assertEquals([ended, flagged], [["cancelled", "No.", ""], [[harassment, "input"]]]);
});

Deno.test("moderation() cuts a flagged answer, also if the flagged text crosses windows", async () => {
  const { ended, flagged } = await moderated({ window: 8, replacement: "[-]" }, [{ text: ["Well, fo", "ol. More"] }]);
  assertEquals([ended, flagged[0]], [["done", undefined, "Well, fo[-]"], [harassment, "output"]]);
});

Deno.test("moderation() checks images, and refuses media that the endpoint cannot check", async () => {
  const image = { type: "media", mediaType: "image/png", data: "AAAA" } as const;
  const { ended, received } = await moderated({}, ["Nice"], [image]);
  assertEquals(ended[0], "done");
  assertEquals(received[0]?.input, [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }]);
  const sound = await moderated({}, ["Nice"], [{ type: "media", mediaType: "audio/wav", data: "AAAA" }]);
  assertEquals([sound.ended[0], sound.errors], ["cancelled", [
    "TypeError: Cannot moderate audio/wav: expected text or an image",
  ]]);
});

Deno.test("moderation() checks the images of an answer, and cuts media that the endpoint cannot check", async () => {
  const image = { type: "media", mediaType: "image/png", url: "https://a.example/fool.png" } as const;
  const sound = { type: "media", mediaType: "audio/wav", data: "AAAA" } as const;
  const flagged = { flagged: true, categories: ["violence"] };
  const answered = async (part: MediaPart, options: Partial<ModerationOptions> = {}) => {
    const endpoint = openaiModerator({ apiKey: "sk-test", fetch: () => Response.json({ results: [] }) });
    const moderator: Moderator = {
      moderate: async (parts, options) => {
        const [checked] = parts;
        if (checked?.type === "media" && checked.url?.includes("fool")) return flagged;
        return checked?.type === "text" ? { flagged: false, categories: [] } : await endpoint.moderate(parts, options);
      },
    };
    const reads = [[{ type: "text", text: "See. " }, { type: "part", part }, {
      type: "finish",
      reason: "stop",
    }]] as const;
    const found: [Moderation, string][] = [];
    const onFlagged = (...call: [Moderation, string]) => void found.push(call);
    const run = agent({ model: scripted({ reads }), use: [moderation({ moderator, onFlagged, ...options })] }).run(
      "Hi",
    );
    const added = (await eventsOfRun(run)).filter(({ type }) => type === "part.added");
    return { text: (await run.result).text, added: added.length, found };
  };
  assertEquals(await answered(image), {
    text: "See. [This text was removed.]",
    added: 0,
    found: [[flagged, "output"]],
  });
  assertEquals(await answered(sound), { text: "See. ", added: 0, found: [] });
  assertEquals(await answered(image, { media: false }), { text: "See. ", added: 1, found: [] });
  assertEquals(await answered(image, { output: false }), { text: "See. ", added: 1, found: [] });
});

Deno.test("moderation() fails closed: a service that fails refuses messages and cuts answers", async () => {
  const failures = [
    () => new Response("down", { status: 503 }),
    () => Response.json({ results: [] }),
    () => Response.json({ error: {} }),
    () => new Response("<html>"),
  ];
  for (const failure of failures) {
    const asked = await moderated({}, [], undefined, failure);
    assertEquals([asked.ended[0], asked.errors.length], ["cancelled", 1]);
    const answered = await moderated({ input: false }, ["Good day"], undefined, failure);
    assertEquals([answered.ended, answered.errors.length], [["done", undefined, ""], 1]);
  }
});

Deno.test("moderation() refuses a message, and cuts an answer, if the service takes longer than its timeout", async () => {
  using time = new FakeTime();
  let aborted = 0;
  const moderator: Moderator = {
    moderate(parts, { signal }) {
      if (!JSON.stringify(parts).includes("slow")) return Promise.resolve({ flagged: false, categories: [] });
      signal.addEventListener("abort", () => aborted++, { once: true });
      return new Promise<never>(() => {}); // a service that never answers
    },
  };
  const errors: string[] = [];
  const onError = (error: unknown) => void errors.push(String(error));
  const moderating = agent({ model: scripted("slow"), use: [moderation({ moderator, timeout: 500 })] });
  const asked = await advanceUntilSettled(time, moderating.run({ prompt: "slow", onError }).result);
  const answered = await advanceUntilSettled(time, moderating.run({ prompt: "Hi", onError }).result);
  assertEquals([asked.status, answered.status, answered.text, aborted], ["cancelled", "done", "", 2]);
  assertEquals(errors, [
    "Error: Cannot check a message: it took longer than 500 ms",
    "Error: Cannot check a text: it took longer than 500 ms",
  ]);
});

Deno.test("moderation() checks only input or only output on request", async () => {
  assertEquals((await moderated({ input: false }, ["Hello"])).received.length, 1);
  assertEquals((await moderated({ output: false }, ["You fool"])).ended, ["done", undefined, "You fool"]);
});

Deno.test("openaiModerator() decides by thresholds, and by the endpoint for other categories", async () => {
  await using server = endpoint();
  const flags = async (thresholds: Record<string, number>, text: string) => {
    const moderator = openaiModerator({ apiKey: "sk-test", baseURL: server.baseURL, thresholds });
    return await moderator.moderate([{ type: "text", text }], { signal: AbortSignal.timeout(5_000) });
  };
  assertEquals(await flags({ violence: 0.2 }, "Hi"), { flagged: true, categories: ["violence"] });
  assertEquals(await flags({ harassment: 0.95 }, "fool"), { flagged: false, categories: [] });
  assertEquals(await flags({ violence: 0.9 }, "fool"), harassment);
});

Deno.test("openaiModerator() leaves a category without a score, and content without a category, to the endpoint", async () => {
  const moderated = async (result: object) => {
    const fetch = () => Response.json({ results: [result] });
    const moderator = openaiModerator({ apiKey: "sk-test", thresholds: { violence: 0.9 }, fetch });
    return await moderator.moderate([{ type: "text", text: "Hi" }], { signal: AbortSignal.timeout(5_000) });
  };
  const violence = { flagged: true, categories: { violence: true } };
  assertEquals(await moderated(violence), { flagged: true, categories: ["violence"] });
  assertEquals(await moderated({ ...violence, category_scores: { hate: 0.1 } }), {
    flagged: true,
    categories: ["violence"],
  });
  assertEquals(await moderated({ ...violence, category_scores: { violence: 0.8 } }), {
    flagged: false,
    categories: [],
  });
  assertEquals(await moderated({ flagged: true, categories: {} }), { flagged: true, categories: [] });
});

Deno.test("openaiModerator() sends what OpenAI's own client sends", async () => {
  await using server = endpoint();
  const input = [{ type: "text" as const, text: "Hi" }];
  await new OpenAI({ apiKey: "sk-test", baseURL: server.baseURL }).moderations.create({
    model: "omni-moderation-latest",
    input,
  });
  await openaiModerator({ apiKey: "sk-test", baseURL: server.baseURL }).moderate(input, {
    signal: new AbortController().signal,
  });
  assertEquals(server.received[0], server.received[1]);
  const wrongKey = openaiModerator({ apiKey: "sk-wrong", baseURL: server.baseURL });
  const error = await assertRejects(
    () => wrongKey.moderate(input, { signal: new AbortController().signal }),
    Error,
    "Cannot moderate",
  );
  assertEquals(error.message.includes("sk-wrong"), false);
});

Deno.test("moderation() checks what a served client sends and receives", async () => {
  await using server = endpoint();
  const moderator = openaiModerator({ apiKey: "sk-test", baseURL: server.baseURL });
  const app = serve(agent({ model: scripted("You fool"), use: [moderation({ moderator })] }));
  const response = await reaching(app)("http://localhost/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Hi" }),
  });
  const text = await response.text();
  assertEquals([text.includes("fool"), text.includes("[This text was removed.]")], [false, true]);
});

Deno.test("moderation() cuts the flagged answer of a subagent, which is checked once", async () => {
  const checked: string[] = [];
  const guard = moderation({
    replacement: "[-]",
    moderator: {
      moderate(parts) {
        const text = JSON.stringify(parts);
        checked.push(text);
        return Promise.resolve({ flagged: text.includes("fool"), categories: [] });
      },
    },
  });
  for (const own of [[], [guard]]) { // a subagent that has the same middleware does not inherit it again
    checked.length = 0;
    const child = agent({ name: "child", model: scripted("You fool."), use: own });
    const model = scripted({ calls: [["child", { prompt: "Go on" }]] }, "Done.");
    const run = agent({ model, tools: [asTool(child)], use: [guard] }).run("Hi");
    const events: string[] = [];
    for await (const event of run.events) events.push(JSON.stringify(event));
    const { messages } = await run.result;
    assertEquals([...events, JSON.stringify(messages)].filter((text) => text.includes("fool")), []);
    assertEquals(JSON.stringify(messages).split('"[-]"').length, 2);
    assertEquals(checked, ["Hi", "You fool.", "Done."].map((text) => JSON.stringify([{ type: "text", text }])));
  }
});

Deno.test("moderation() checks every part of a history that a client sends", async () => {
  const moderator = {
    moderate: (parts: readonly ContentPart[]) =>
      Promise.resolve({ flagged: JSON.stringify(parts).includes("fool"), categories: [] }),
  };
  const at = { callId: "s1", name: "web_search" } as const;
  const parts: readonly AnswerPart[] = [
    { type: "provider_call", ...at, input: { query: "fool" } },
    { type: "provider_call", ...at, input: {}, meta: { item: { action: "fool" } } },
    { type: "provider_result", ...at, status: "ok", output: ["fool"] },
    { type: "reasoning", text: "fool" },
    { type: "refusal", text: "fool" },
    { type: "call", id: "c1", name: "look", input: { at: "fool" } },
    { type: "text", text: "fine" },
  ];
  const statuses = await Promise.all(parts.map(async (part) => {
    const messages = [user("Hi"), { role: "assistant", parts: [part] } as const, user("Go on")];
    const use = [moderation({ moderator })];
    return (await agent({ model: scripted("Yes."), use }).run({ messages }).result).status;
  }));
  assertEquals(statuses, [...Array(6).fill("cancelled"), "done"]);
  const named = agent({ model: scripted(), use: [moderation({ moderator })] }).run({ messages: [user("Hi", "fool")] });
  assertEquals((await named.result).status, "cancelled");
});
