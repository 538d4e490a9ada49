import { agent, denied, type Middleware, only, type RunResult, type Session, tool, when } from "@jizai/jizai";
import { explain } from "@jizai/jizai/explain";
import { scripted } from "@jizai/jizai/model/scripted";
import { assert, assertEquals } from "@std/assert";
import * as z from "zod";
import { at, batch, call, watch } from "../support/batch.ts";
import { heldUntilSaved, recordingStore, storeWith } from "../support/recording_store.ts";
import { lines } from "../support/transcript_lines.ts";

const input = z.object({ city: z.string() });

/** Tools that log their work: `plain` says nothing about groups, `read` is read-only, `write` runs alone, `edit` for a city with a capital. */
function tools(log: string[]) {
  const make = (name: string, options: Partial<Parameters<typeof tool<typeof input, string>>[0]> = {}) =>
    tool({
      name,
      description: "Works",
      input,
      async execute({ city }) {
        log.push(`start ${city}`);
        await Promise.resolve();
        log.push(`end ${city}`);
        return `${name} ${city}`;
      },
      ...options,
    });
  return [
    make("plain"),
    make("read", { readOnly: true }),
    make("write", { parallel: false }),
    make("edit", { parallel: ({ city }) => city === city.toLowerCase() }),
    make("ask", { parallel: false, ask: true }),
  ];
}

/** Requests groups as adapters do: calls overlap only if their tool says that they may. */
const careful: Middleware = { name: "careful", groups: ({ parallel }) => parallel ? "parallel" : "alone" };

/** Runs calls, given as `id tool`, and returns the log of their hooks and their work. */
async function logOf(calls: readonly string[], use: readonly Middleware[] = []): Promise<string> {
  const log: string[] = [];
  const { outcome } = batch(callsOf(calls), { tools: tools(log), use: [...use, watched(log)] }).run();
  assertEquals((await outcome).result.status, "done");
  return log.join(", ");
}

function callsOf(calls: readonly string[]) {
  return calls.map((each) => {
    const [id = "", name = ""] = each.split(" ");
    return call(id, { name });
  });
}

/** Logs when a call comes in and goes out. */
function watched(log: string[]): Middleware {
  return {
    name: "watched",
    async tool({ call }, next) {
      log.push(`in ${call.id}`);
      const result = await next();
      log.push(`out ${call.id}`);
      return result;
    },
  };
}

const alone = (id: string) => `in ${id}, start ${id}, end ${id}, out ${id}`;
const together = (a: string, b: string) =>
  `in ${a}, in ${b}, start ${a}, start ${b}, end ${a}, end ${b}, out ${a}, out ${b}`;

Deno.test("calls overlap, whether they are read-only or not, unless their tool has parallel: false", async () => {
  assertEquals(await logOf(["a plain", "b read"]), together("a", "b"));
  assertEquals(await logOf(["a write", "b write"]), [alone("a"), alone("b")].join(", "));
  assertEquals(
    await logOf(["a plain", "b read", "c write", "d plain", "e plain"]),
    [together("a", "b"), alone("c"), together("d", "e")].join(", "),
  );
});

Deno.test("a predicate decides by the parsed input whether a call runs alone", async () => {
  assertEquals(await logOf(["a edit", "b edit"]), together("a", "b"));
  assertEquals(await logOf(["A edit", "b edit"]), [alone("A"), alone("b")].join(", "));
});

Deno.test("a middleware requests groups, which read-only calls and calls with parallel: true share", async () => {
  assertEquals(await logOf(["a plain", "b plain"], [careful]), [alone("a"), alone("b")].join(", "));
  assertEquals(await logOf(["a read", "b edit"], [careful]), together("a", "b"));
  assertEquals(
    await logOf(["a read", "b plain", "c read", "d read"], [careful]),
    [alone("a"), alone("b"), together("c", "d")].join(", "),
  );
});

Deno.test("if middleware disagree about a call, it runs alone", async () => {
  const loose: Middleware = { name: "loose", groups: () => "parallel" };
  const separate = [alone("a"), alone("b")].join(", ");
  assertEquals(await logOf(["a plain", "b plain"], [loose]), together("a", "b"));
  assertEquals(await logOf(["a plain", "b plain"], [loose, careful]), separate);
  assertEquals(await logOf(["a plain", "b plain"], [careful, loose]), separate);
  assertEquals(await logOf(["a write", "b plain"], [loose]), separate);
});

Deno.test("only() and when() limit the groups that a middleware requests", async () => {
  assertEquals(await logOf(["a plain", "b plain"], [only("read", careful)]), together("a", "b"));
  assertEquals(await logOf(["a plain", "b plain"], [only("plain", careful)]), [alone("a"), alone("b")].join(", "));
  assertEquals(await logOf(["a plain", "b plain"], [when(() => false, careful)]), together("a", "b"));
});

Deno.test("a call runs alone if a function about groups throws, and the operator gets the error", async () => {
  const log: string[] = [];
  const broken: Middleware = {
    name: "broken",
    groups() {
      throw new Error("Broken");
    },
  };
  const use = [broken, watched(log)];
  const { errors } = await batch(callsOf(["a plain", "b plain"]), { tools: tools(log), use }).run().outcome;
  assertEquals(log.join(", "), [alone("a"), alone("b")].join(", "));
  assertEquals(errors.map(String), ["Error: Broken", "Error: Broken"]);
});

Deno.test("groups keep one batch id, the indices of the response, and one message of results", async () => {
  const { outcome } = batch(callsOf(["a write", "b plain", "c write"]), { tools: tools([]) }).run();
  const { events, result, lines } = await outcome;
  const started = events.flatMap((event) => event.type === "tool.started" ? [[event.batch, event.index]] : []);
  assertEquals(started, [0, 1, 2].map((index) => [`${result.run}:1`, index]));
  assertEquals(lines, ["call write plain write", "ok write a", "ok plain b", "ok write c", "assistant Done."]);
});

const names = ["a", "b", "c"];

for (const [index, name] of names.entries()) {
  const before = names.slice(0, index);
  const after = names.slice(index + 1);
  const writes = () => callsOf(names.map((id) => `${id} write`));

  Deno.test(`a call in group ${index + 1} that waits for a person pauses the run before the later groups`, async () => {
    const log: string[] = [];
    const calls = callsOf(names.map((id) => `${id} ${id === name ? "ask" : "write"}`));
    const { run, resume } = batch(calls, { tools: tools(log), use: [watch(log)] });
    const first = (await run().outcome).result;
    assertEquals(first.status, "paused");
    const done = (id: string) => [`in ${id}`, `start ${id}`, `end ${id}`, `out ${id} ok`, `finally ${id}`];
    assertEquals(log.splice(0), [...before.flatMap(done), `in ${name}`, `finally ${name}`]);
    const answers = [{ callId: name, type: "approve" }] as const;
    const { result, lines } = await resume(first.session, answers).outcome;
    assertEquals(result.status, "done");
    assertEquals(log, [`in ${name} again`, ...done(name).slice(1), ...after.flatMap(done)]);
    assertEquals(lines.slice(1, 4), names.map((id) => `ok ${id === name ? "ask" : "write"} ${id}`));
  });

  Deno.test(`a hook that pauses the run in group ${index + 1} leaves finished groups finished`, async () => {
    const log: string[] = [];
    const pausing = at(name, {
      tool(ctx, next) {
        if (!ctx.resumed) throw ctx.run.pause("May it continue?");
        return next();
      },
    });
    const { run, resume } = batch(writes(), { tools: tools(log), use: [pausing] });
    const { result: paused } = await run().outcome;
    assertEquals([paused.status, paused.questions.length], ["paused", 1]);
    assertEquals(log, before.flatMap((id) => [`start ${id}`, `end ${id}`]));
    const { result, lines } = await resume(paused.session, [{ type: "reply", text: "Yes" }]).outcome;
    assertEquals(result.status, "done");
    assertEquals(log, names.flatMap((id) => [`start ${id}`, `end ${id}`]));
    assertEquals(lines.slice(1, 4), names.map((id) => `ok write ${id}`));
  });

  Deno.test(`an end after group ${index + 1} answers the calls of later groups as not run`, async () => {
    const log: string[] = [];
    const ending = at(name, {
      async tool(ctx, next) {
        const result = await next();
        ctx.run.end("enough");
        return result;
      },
    });
    const { events, lines } = await batch(writes(), { tools: tools(log), use: [ending] }).run().outcome;
    assertEquals(log, [...before, name].flatMap((id) => [`start ${id}`, `end ${id}`]));
    assertEquals(lines, [
      "call write write write",
      ...[...before, name].map((id) => `ok write ${id}`),
      ...after.map(() => "aborted Not run: enough."),
    ]);
    const finished = events.flatMap((event) => event.type === "tool.finished" ? [event.call] : []);
    assertEquals(finished, names);
  });

  Deno.test(`a hook that fails in group ${index + 1} ends the run before the later groups`, async () => {
    const log: string[] = [];
    const failing = at(name, { tool: () => Promise.reject(new Error("Broken")) });
    const { result, lines } = await batch(writes(), { tools: tools(log), use: [failing] }).run().outcome;
    assertEquals(result.status, "failed");
    assertEquals(log, before.flatMap((id) => [`start ${id}`, `end ${id}`]));
    assertEquals(lines.slice(1), [
      ...before.map((id) => `ok write ${id}`),
      "error Withheld: a hook failed.",
      ...after.map(() => "aborted Not run: a hook failed."),
    ]);
  });

  Deno.test(`a stop in group ${index + 1} begins no later group`, async () => {
    const log: string[] = [];
    const stopping = at(name, {
      execute: (_, next) => {
        begun.stop("user");
        return next();
      },
    });
    const begun = batch(writes(), { tools: tools(log), use: [stopping] }).run();
    const { result, lines } = await begun.outcome;
    assertEquals(result.status, "aborted");
    assertEquals(log, before.flatMap((id) => [`start ${id}`, `end ${id}`]));
    assertEquals(lines.slice(1), [
      ...before.map((id) => `ok write ${id}`),
      "aborted Stopped before it was done.",
      ...after.map(() => "aborted Not run: the run was stopped."),
    ]);
  });

  Deno.test(`a stop right after group ${index + 1} begins no later group`, async () => {
    const log: string[] = [];
    const stopping = at(name, {
      async tool(_, next) {
        const result = await next();
        begun.stop("user");
        return result;
      },
    });
    const begun = batch(writes(), { tools: tools(log), use: [stopping] }).run();
    const { result, lines } = await begun.outcome;
    assertEquals([result.status, lines.length], ["aborted", 4]);
    assertEquals(log, [...before, name].flatMap((id) => [`start ${id}`, `end ${id}`]));
  });

  Deno.test(`a limit of ${index + 1} calls skips the calls of later groups`, async () => {
    const log: string[] = [];
    const { lines } = await batch(writes(), { tools: tools(log), limits: { calls: index + 1 } }).run().outcome;
    assertEquals(log, [...before, name].flatMap((id) => [`start ${id}`, `end ${id}`]));
    assertEquals(
      lines.slice(1, 4),
      [
        ...[...before, name].map((id) => `ok write ${id}`),
        ...after.map(() => `skipped Not run: this run may make ${index + 1} calls.`),
      ],
    );
  });
}

Deno.test("a deny in one group does not affect the others", async () => {
  const deny = at("b", { tool: () => Promise.resolve(denied("No.")) });
  const { lines } = await batch(callsOf(["a write", "b write", "c write"]), { tools: tools([]), use: [deny] }).run()
    .outcome;
  assertEquals(lines.slice(1, 4), ["ok write a", "denied No.", "ok write c"]);
});

/** A run of three writes, alone in their groups, from its beginning or from a saved session. */
async function live(kept?: Session): Promise<{ result: RunResult; log: string[]; saved: readonly Session[] }> {
  const log: string[] = [];
  const { store, saved } = await (kept ? storeWith(kept) : recordingStore());
  const first = saved.length;
  const hasCalls = kept?.run?.position.at === "tools" || kept?.messages.some(({ role }) => role === "assistant");
  const model = scripted(...(hasCalls ? [] : [{ calls: callsOf(["a plain", "b plain", "c plain"]) }]), "Done.");
  const assistant = agent({ model, tools: tools(log), use: [careful, watched(log), heldUntilSaved(saved)] });
  const options = { session: "s", store, lost: () => true };
  const { result } = kept ? assistant.resume({ ...options, answers: [] }) : assistant.run({ ...options, prompt: "Go" });
  return { result: await result, log, saved: saved.slice(first) };
}

Deno.test("a run whose process dies at any save repeats no finished group", async () => {
  const whole = await live();
  const records = whole.saved.flatMap(({ run }) =>
    run?.position.at === "tools" ? [run.position.calls.map(({ state }) => state).join(" ")] : []
  );
  assertEquals(records, [
    "running pending pending",
    "ran pending pending",
    "done pending pending",
    "done running pending",
    "done ran pending",
    "done done pending",
    "done done running",
    "done done ran",
  ]);
  for (const death of whole.saved.filter(({ run }) => run)) {
    const { result, log } = await live(death);
    const calls = death.run?.position.at === "tools" ? death.run.position.calls : [];
    const states = new Map<string, string>(calls.map(({ call, state }) => [call.id, state]));
    const isOver = death.messages.some(({ role }) => role === "tool");
    const expected = names.flatMap((id) => {
      const state = isOver ? "done" : states.get(id) ?? "pending";
      if (state === "done") return [];
      return state === "pending" ? [`in ${id}`, `start ${id}`, `end ${id}`, `out ${id}`] : [`in ${id}`, `out ${id}`];
    });
    assertEquals(log, expected);
    const interrupted = names.filter((id) => states.get(id) === "running");
    const reported = names.map((id) =>
      interrupted.includes(id) ? "aborted Interrupted: it is not known whether it was done." : `ok plain ${id}`
    );
    assertEquals(lines(result.messages).slice(2, 5), reported);
    assert(result.status === "done");
  }
});

Deno.test("explain() says which middleware request groups and which tools run alone", () => {
  const make = (...use: Middleware[]) =>
    explain(agent({ model: scripted(), tools: tools([]), use })).split("\n").slice(-2);
  const named = "tools     plain, read (read-only), write (alone), edit (parallel by input), ask (alone)";
  assertEquals(make(), ["groups    not requested", named]);
  assertEquals(make(careful, { groups: () => "parallel" }), ["groups    requested by careful, use[1]", named]);
});
