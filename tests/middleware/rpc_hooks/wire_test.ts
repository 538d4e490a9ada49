import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { rpc_hooks } from "@jizai/jizai/middleware/rpc_hooks";
import { linesOf, linesWire } from "../../../middleware/foreign_hooks/picoclaw/rpc_hooks/lines.ts";
import { batch, call, gauge, runBatch, settled, three } from "../../support/batch.ts";
import { answering, type Program, programs, type ReceivedMessage, type Send, warnings } from "../../support/rpc.ts";

const intercept = ["before_tool"];

/** Creates the middleware with one program. */
function using(program: Program, { intercept: stages = intercept, observe = [] as string[], defaults = {} } = {}) {
  const { stdio, ran } = programs({ p: program });
  const processes = { p: { enabled: true, command: ["p"], intercept: stages, observe } };
  return Object.assign(rpc_hooks({ defaults, processes }, { stdio }), { ran });
}

const never = new AbortController().signal;

Deno.test("PicoClaw: answers may arrive in any order", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const answers = new TransformStream<Uint8Array, Uint8Array>();
  const wire = linesWire({ readable: answers.readable, writable });
  const asked = [1, 2, 3].map((id) => wire.ask({ jsonrpc: "2.0", id, method: "hook.before_tool", params: {} }, never));
  const lines = linesOf(readable.values());
  for (let line = 0; line < 3; line++) await lines.next();
  const writer = answers.writable.getWriter();
  const encoder = new TextEncoder();
  for (const id of [3, 1, 2]) await writer.write(encoder.encode(`${JSON.stringify({ id, result: `answer ${id}` })}\n`));
  assertEquals(await Promise.all(asked), [1, 2, 3].map((id) => ({ id, result: `answer ${id}` })));
  await Promise.all([wire[Symbol.asyncDispose](), lines.return(undefined)]);
});

Deno.test("PicoClaw: late answers and lines that are not answers are dropped", async () => {
  const noise = [
    "garbage",
    "{",
    "[]",
    "null",
    '"x"',
    "7",
    '{"id":"2","result":{}}',
    '{"id":0,"result":{}}',
    '{"method":"x"}',
    "",
  ];
  const kept: { readonly id: number; readonly send: Send }[] = [];
  await using hooks = using(async ({ id, method, params }, send) => {
    if (id === undefined) return;
    if (method === "hook.before_tool" && params.arguments.city === "a") return void kept.push({ id, send });
    for (const line of noise) await send(line);
    for (const late of kept) await late.send({ id: late.id, result: { action: "deny_tool", reason: "late" } });
    await send({ id: 999, result: { action: "deny_tool", reason: "unasked" } });
    await send({ id, result: { action: "continue" } });
    await send({ id, result: { action: "deny_tool", reason: "twice" } });
  }, { defaults: { interceptor_timeout_ms: 20 } });
  const { lines, events } = await runBatch(three, { use: [hooks] });
  assertEquals(lines, ["call weather weather weather", "ok sun in a", "ok sun in b", "ok sun in c", "assistant Done."]);
  assertEquals(warnings(events), ['The hook "p" took too long at before_tool and is skipped.']);
});

Deno.test("PicoClaw: a line of more than 1 MiB is dropped, and the next one is read", async () => {
  const large = (size: number) => ({ action: "deny_tool", reason: "x".repeat(size) });
  await using hooks = using(async ({ id, params }, send) => {
    if (id === undefined) return;
    const { city } = params.arguments ?? {};
    if (city === "a") await send({ id, result: large(1_048_576) });
    else await send({ id, result: city === "b" ? large(1_048_000) : {} });
  }, { defaults: { interceptor_timeout_ms: 1_000 } });
  const { lines } = await runBatch(three, { use: [hooks] });
  assertEquals(lines.map((line) => line.slice(0, 40)), [
    "call weather weather weather",
    "ok sun in a",
    "denied Tool execution denied by hook: xx",
    "ok sun in c",
    "assistant Done.",
  ]);
});

Deno.test("linesOf() splits lines at any chunk boundary", async () => {
  const bytes = new TextEncoder().encode("eins\nzwei ü\r\n\n🦐\nlast");
  for (let size = 1; size <= bytes.length; size++) {
    const chunks = Array.from(
      { length: Math.ceil(bytes.length / size) },
      (_, index) => bytes.slice(index * size, (index + 1) * size),
    );
    assertEquals(await Array.fromAsync(linesOf(ReadableStream.from(chunks).values())), [
      "eins",
      "zwei ü\r",
      "",
      "🦐",
      "last",
    ]);
  }
  const long = ReadableStream.from(
    ["ab", "cde\nfgh\n", "ijkl", "m\nn\n"].map((text) => new TextEncoder().encode(text)),
  );
  assertEquals(await Array.fromAsync(linesOf(long.values(), 4)), ["fgh", "n"]);
});

Deno.test("PicoClaw: after a crash interceptors stay open and approvers stay closed", async () => {
  const started: string[] = [];
  await using hooks = using(({ id, method }, send, exit) => {
    started.push(method);
    if (method !== "hook.hello") return exit();
    return send({ id: id ?? 0, result: {} });
  }, { intercept: ["before_tool", "approve_tool"] });
  const calls = batch([call("a"), call("b")], { use: [hooks] });
  const { lines, events } = await calls.run().outcome;
  const denied = 'denied Tool execution denied by approval hook: tool approval hook "p" failed';
  assertEquals(lines, ["call weather weather", denied, denied, "assistant Done."]);
  assertEquals(warnings(events), [
    'The hook "p" failed at before_tool and is skipped.',
    'The hook "p" failed at approve_tool and denies the call.',
    'The hook "p" failed at before_tool and is skipped.',
    'The hook "p" failed at approve_tool and denies the call.',
  ]);
  assertEquals([started, hooks.ran], [["hook.hello", "hook.before_tool"], ["start p", "end p"]]);
});

Deno.test("PicoClaw: an error answer is a failure, and only onError receives its message", async () => {
  await using hooks = using(({ id = 0, method }, send) =>
    send(method === "hook.hello" ? { id, result: {} } : { id, error: { code: -32601, message: "no /secret" } })
  );
  const { lines, events, errors } = await runBatch([call("a")], { use: [hooks] });
  assertEquals([lines[1], errors.map(String)], ["ok sun in a", ["Error: no /secret", "Error: no /secret"]]);
  assertEquals(warnings(events), [
    'The hook "p" failed at before_tool and is skipped.',
    'The hook "p" failed at after_tool and is skipped.',
  ]);
});

Deno.test("PicoClaw: an error may be a text, an object or anything else", async () => {
  for (const [error, why] of [['"no /secret"', "no /secret"], ["{}", "no reason"], ["7", "no reason"]]) {
    await using hooks = using(({ id, method }, send) =>
      send(method === "hook.hello" ? { id: id ?? 0, result: {} } : `{"id":${id},"error":${error}}`)
    );
    const { lines, errors } = await runBatch([call("a")], { use: [hooks] });
    assertEquals([lines[1], errors.map(String)], ["ok sun in a", [`Error: ${why}`, `Error: ${why}`]]);
  }
});

Deno.test("PicoClaw: an empty result means continue", async () => {
  for (
    const answer of [
      '{"id":ID}',
      '{"id":ID,"result":null}',
      '{"id":ID,"result":{}}',
      '{"id":ID,"result":{},"error":null}',
    ]
  ) {
    await using hooks = using(({ id }, send) => send(answer.replace("ID", String(id))));
    const { lines, events } = await runBatch([call("a")], { use: [hooks] });
    assertEquals([lines[1], warnings(events)], ["ok sun in a", []]);
  }
});

Deno.test("PicoClaw: an answer may have a string id, be in a batch, or repeat its request", async () => {
  const deny = '"result":{"action":"deny_tool","reason":"No."}';
  for (
    const answer of [
      `{"id":"ID",${deny}}`,
      `[{"method":"log"},{"id":ID,${deny}}]`,
      `{"id":ID,"method":"hook.before_tool","params":{},${deny}}`,
      `{"id":ID,"method":"hook.ask","params":{}}\n{"id":ID,${deny}}`,
    ]
  ) {
    await using hooks = using(async ({ id, method }, send) => {
      if (method === "hook.hello") return await send({ id: id ?? 0, result: {} });
      for (const line of answer.replaceAll("ID", String(id)).split("\n")) await send(line);
    });
    const { lines, events } = await runBatch([call("a")], { use: [hooks] });
    assertEquals([lines[1], warnings(events)], ["denied Tool execution denied by hook: No.", []]);
  }
});

Deno.test("PicoClaw: a program that echoes its input cannot be started", async () => {
  using time = new FakeTime();
  const running = batch([call("a")], { use: [using((message, send) => send(message))] }).run();
  await time.tickAsync(30_000);
  await time.tickAsync(0);
  assertEquals((await running.outcome).result.status, "failed");
});

Deno.test("PicoClaw: output before the end of a process is read, even if another process keeps it open", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const answers = new TransformStream<Uint8Array, Uint8Array>();
  const end = Promise.withResolvers<void>();
  using time = new FakeTime();
  const wire = linesWire({ readable: answers.readable, writable, ended: end.promise });
  const asked = [1, 2].map((id) => wire.ask({ jsonrpc: "2.0", id, method: "hook.before_tool", params: {} }, never));
  const lines = linesOf(readable.values());
  for (let line = 0; line < 2; line++) await lines.next();
  end.resolve();
  await time.tickAsync(0);
  await answers.writable.getWriter().write(new TextEncoder().encode('{"id":1,"result":"last"}\n'));
  assertEquals(await asked[0], { id: 1, result: "last" });
  const failed = assertRejects(async () => await asked[1], Error, "Cannot ask the hook: its process has ended");
  await time.tickAsync(200);
  await failed;
  await assertRejects(() => wire.notify({ jsonrpc: "2.0", method: "hook.event", params: {} }, never), Error, "ended");
  await Promise.all([wire[Symbol.asyncDispose](), lines.return(undefined)]);
});

Deno.test("PicoClaw: messages that wait too long for a process are never sent", async () => {
  const reported = new TransformStream<Uint8Array, Uint8Array>();
  const wire = linesWire({
    readable: new TransformStream<Uint8Array, Uint8Array>().readable,
    writable: reported.writable,
  });
  const late = new AbortController();
  const notify = (id: number) => wire.notify({ jsonrpc: "2.0", id, method: "hook.event", params: {} }, late.signal);
  const first = notify(1);
  const others = Promise.allSettled([2, 3, 4].map(notify));
  late.abort(new Error("late"));
  assertEquals((await others).map(({ status }) => status), ["rejected", "rejected", "rejected"]);
  const lines = linesOf(reported.readable.values());
  const read = [JSON.parse((await lines.next()).value ?? "").id];
  await first;
  const last = wire.notify({ jsonrpc: "2.0", id: 5, method: "hook.event", params: {} }, never);
  read.push(JSON.parse((await lines.next()).value ?? "").id);
  await last;
  assertEquals(read, [1, 5]);
  await Promise.all([lines.return(undefined), wire[Symbol.asyncDispose]()]);
});

Deno.test("PicoClaw: runs at the same time ask at the same time", async () => {
  const asking = gauge();
  const open = Promise.withResolvers<void>();
  let asked = 0;
  await using hooks = using(({ id, method }, send) => {
    if (method === "hook.hello") return send({ id: id ?? 0, result: {} });
    void asking.during(() => open.promise).then(() => send({ id: id ?? 0, result: {} }));
    if (++asked === 3) open.resolve();
    return undefined;
  });
  const all = await Promise.all(["a", "b", "c"].map((id) => runBatch([call(id)], { use: [hooks] })));
  assertEquals([all.map(({ lines }) => lines[1]), asking.peak], [["ok sun in a", "ok sun in b", "ok sun in c"], 3]);
});

/** Creates the middleware with one hook behind a URL, and the log of its requests. */
function posting(
  respond: (message: ReceivedMessage, request: Request) => Response | Promise<Response>,
  { intercept: stages = intercept, defaults = {} } = {},
) {
  const posted: string[] = [];
  const processes = {
    p: {
      enabled: true,
      transport: "http" as const,
      url: "https://hooks.example/gate",
      headers: { authorization: "Bearer key" },
      intercept: stages,
      observe: ["turn_end"],
    },
  };
  const hooks = rpc_hooks({ defaults, processes }, {
    async fetch(url, init) {
      const request = new Request(url, init);
      const { method, url: to, headers } = request;
      const message: ReceivedMessage = await request.json();
      posted.push([method, to, headers.get("authorization"), headers.get("content-type"), message.method].join(" "));
      return await respond(message, request);
    },
  });
  return { hooks, posted };
}

const answer = ({ id }: ReceivedMessage, result: unknown = {}) => Response.json({ jsonrpc: "2.0", id, result });

Deno.test("PicoClaw: a hook behind a URL receives every message as a POST request", async () => {
  const { hooks, posted } = posting((message) =>
    answer(message, message.method === "hook.before_tool" ? { action: "deny_tool", reason: "not here" } : {})
  );
  const { lines } = await runBatch([call("a")], { use: [hooks] });
  await settled();
  assertEquals(lines[1], "denied Tool execution denied by hook: not here");
  assertEquals(
    posted,
    ["hook.hello", "hook.before_tool", "hook.event"].map((method) =>
      `POST https://hooks.example/gate Bearer key application/json ${method}`
    ),
  );
});

Deno.test("PicoClaw: a hook behind a URL that fails is skipped, and denies as an approver", async () => {
  const large = new Response("x".repeat(1_048_577));
  const bad: readonly ((message: ReceivedMessage) => Response)[] = [
    () => new Response("down", { status: 500 }),
    () => new Response("<html>"),
    () => new Response(null, { status: 204 }),
    () => large.clone(),
    (message) => answer({ ...message, id: 999 }, { approved: true }),
    () => Response.json([{ id: 2, result: { approved: true } }]),
    () => {
      throw new TypeError("unreachable");
    },
  ];
  for (const respond of bad) {
    const hello = (message: ReceivedMessage) => message.method === "hook.hello" ? answer(message) : respond(message);
    const open = await runBatch([call("a")], { use: [posting(hello).hooks] });
    assertEquals(open.lines[1], "ok sun in a");
    const closed = await runBatch([call("a")], { use: [posting(hello, { intercept: ["approve_tool"] }).hooks] });
    assertEquals(closed.lines[1], 'denied Tool execution denied by approval hook: tool approval hook "p" failed');
  }
});

Deno.test("PicoClaw: a late request to a URL is aborted", async () => {
  const aborted: string[] = [];
  const observed = Promise.withResolvers<void>();
  const { hooks } = posting(({ method, ...message }, { signal }) => {
    if (method === "hook.hello") return answer({ ...message, method });
    return new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        aborted.push(method);
        reject(signal.reason);
        if (method === "hook.event") observed.resolve();
      })
    );
  }, { defaults: { interceptor_timeout_ms: 20, observer_timeout_ms: 20 } });
  const { lines, events } = await runBatch([call("a")], { use: [hooks] });
  assertEquals([lines[1], aborted], ["ok sun in a", ["hook.before_tool", "hook.after_tool"]]);
  assertEquals(warnings(events), [
    'The hook "p" took too long at before_tool and is skipped.',
    'The hook "p" took too long at after_tool and is skipped.',
  ]);
  await observed.promise;
});

Deno.test("PicoClaw: a process that ends with its input is stopped cleanly", async () => {
  const hooks = using(answering({}));
  await runBatch([call("a")], { use: [hooks] });
  await hooks[Symbol.asyncDispose]();
  await hooks[Symbol.asyncDispose]();
  await settled();
  const { lines } = await runBatch([call("a")], { use: [hooks] });
  assertEquals([hooks.ran, lines[1]], [["start p", "end p"], "ok sun in a"]);
});
