import { assertEquals, assertRejects } from "@std/assert";
import { agent, memory, type Middleware, type Session, tool, type ToolExecutionContext } from "@jizai/jizai";
import { retry } from "@jizai/jizai/middleware/retry";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable, FinalError } from "@jizai/jizai/session/durable";
import * as z from "zod";
import { formatFor } from "../../src/core/session_format.ts";
import { recordingStore, storeWith } from "../support/recording_store.ts";
import { saving } from "../support/saving.ts";
import { lines } from "../support/transcript_lines.ts";

type Execute = (ctx: ToolExecutionContext) => unknown;

/** Creates an agent whose model calls the tool "order" once. */
function ordering(execute: Execute, { use = [], idempotent = false, isCalled = false }: {
  use?: readonly Middleware[];
  idempotent?: boolean;
  /** Whether the model has made the call, in another process. */
  isCalled?: boolean;
} = {}) {
  const order = tool({
    name: "order",
    description: "Orders",
    input: z.object({}),
    idempotent,
    execute: (_, ctx) => execute(ctx),
  });
  const model = isCalled ? scripted("Done.") : scripted({ calls: [["order", {}]] }, "Done.");
  return agent({ model, tools: [order], use });
}

/** Returns the lines of a transcript from the calls on. */
const results = (messages: Parameters<typeof lines>[0]) => lines(messages).slice(1);

/** Charges and mails, each in a step. `done` receives the effects and their keys, without the run. */
const chargeAndMail = (done: string[]): Execute => async ({ step }) => {
  const effect = (name: string) => ({ key }: { key: string }) => {
    done.push(`${name} ${key.split(":").slice(1).join(":")}`);
    return { [name]: done.length };
  };
  const charged = await step("charge", effect("charge"));
  const mailed = await step("mail", effect("mail"));
  return { ...charged, ...mailed };
};

/** Continues a session as another process. */
async function continueRun(session: Session, execute: Execute, options?: Parameters<typeof ordering>[1]) {
  const { store } = await storeWith(session);
  const made = ordering(execute, { ...options, isCalled: true });
  return await made.resume({ session: "s", store, answers: [], lost: () => true }).result;
}

Deno.test("a step runs once wherever the process dies between its saves, and the result is the same", async () => {
  for (const idempotent of [false, true]) {
    const { store, saved } = recordingStore();
    const done: string[] = [];
    const whole = await ordering(chargeAndMail(done), { idempotent }).run({ prompt: "Go", session: "s", store }).result;
    assertEquals(results(whole.messages), ["call order", 'ok {"charge":1,"mail":2}', "assistant Done."]);
    const outcomes: unknown[] = [];
    for (const session of saved.filter(({ run }) => run?.position.at === "tools")) {
      const steps = session.run?.position.at === "tools" ? session.run.position.calls[0]?.steps : undefined;
      const again = done.slice(0, steps?.flat().length ?? 0); // the process dies right after the save
      const { messages, status } = await continueRun(session, chargeAndMail(again), { idempotent });
      outcomes.push([steps?.flat().map(({ name }) => name), status, again, results(messages)[1]]);
    }
    const effects = ["charge 1:0:charge", "mail 1:0:mail"];
    const same = (steps: unknown) => [steps, "done", effects, 'ok {"charge":1,"mail":2}'];
    const interrupted = "aborted Interrupted: it is not known whether it was done.";
    assertEquals(outcomes, [
      idempotent ? same(undefined) : [undefined, "done", [], interrupted],
      ...(idempotent ? [] : [same([])]),
      same(["charge"]),
      same(["charge", "mail"]),
    ]);
  }
});

Deno.test("a step in progress when the process dies runs again, with the same key", async () => {
  const { store, saved } = recordingStore();
  const keys: string[] = [];
  const never = Promise.withResolvers<never>();
  const running = Promise.withResolvers<void>();
  const run = ordering(({ step }) =>
    step("charge", ({ key }) => {
      keys.push(key);
      running.resolve();
      return never.promise;
    })
  ).run({ prompt: "Go", session: "s", store, limits: { grace: 0 } });
  await running.promise;
  const [left] = saved.slice(-1);
  const { messages } = await continueRun(left!, ({ step }) =>
    step("charge", ({ key }) => {
      keys.push(key);
      return "charged";
    }));
  assertEquals([keys.length, new Set(keys).size, results(messages)[1]], [2, 1, "ok charged"]);
  run.stop();
  await run.result;
});

Deno.test("steps that run in parallel are each stored with their own values", async () => {
  const { store, saved } = recordingStore();
  const names = ["a", "b", "c"];
  const gates = names.map(() => Promise.withResolvers<void>());
  const execute = (done: string[]): Execute => async ({ step }) => {
    const values = names.map((name, index) =>
      step(name, async () => {
        done.push(name);
        gates[index - 1]?.resolve();
        if (index < 2) await gates[index]?.promise; // each one ends after the next has begun
        return name.toUpperCase();
      })
    );
    return (await Promise.all(values)).join("");
  };
  const whole = await ordering(execute([])).run({ prompt: "Go", session: "s", store }).result;
  assertEquals(results(whole.messages)[1], "ok ABC");
  const stepsOf = ({ run }: Session) => run?.position.at === "tools" ? run.position.calls[0]?.steps : undefined;
  for (const session of saved.filter((session) => stepsOf(session) !== undefined)) {
    const stored = stepsOf(session)?.flat().map(({ name }) => name) ?? [];
    const again: string[] = [];
    const { messages } = await continueRun(session, execute(again));
    assertEquals([...stored, ...again].sort(), names);
    assertEquals(results(messages)[1], "ok ABC");
  }
});

Deno.test("a step keeps its value over a pause of its tool and over a retry", async () => {
  const done: string[] = [];
  const store = memory();
  const asking = ordering(async ({ step, run }) => {
    await step("reserve", () => void done.push("reserve"));
    if (run.answers.length === 0) throw run.pause("Really?");
    return await step("ship", () => done.push("ship"));
  });
  const paused = await asking.run({ prompt: "Go", session: "s", store }).result;
  const { messages } = await asking.resume({ session: "s", store, answers: [{ type: "reply", text: "Yes" }] })
    .result;
  assertEquals([paused.status, done, results(messages)[1]], ["paused", ["reserve", "ship"], "ok 2"]);

  const tried: string[] = [];
  const retried = ordering(async ({ step }) => {
    const id = await step("create", () => tried.push("create"));
    if (tried.push("send") < 4) throw new Error("Not yet");
    return `created ${id}`;
  }, { use: [retry({ attempts: 3, delay: 1 })], idempotent: true });
  const { messages: after } = await retried.run({ prompt: "Go", onError: () => {} }).result;
  assertEquals([tried, results(after)[1]], [["create", "send", "send", "send"], "ok created 1"]);
});

Deno.test("retry() executes a tool again that has begun a step, and none that fails before its first one", async () => {
  for (const isBefore of [false, true]) {
    const tried: string[] = [];
    const retried = ordering(async ({ step }) => {
      tried.push("attempt");
      if (isBefore) throw new Error("No stock");
      await step("charge", () => void tried.push("charge"));
      return await step("ship", () => {
        if (tried.push("ship") < 4) throw new Error("Not yet");
        return "shipped";
      });
    }, { use: [retry({ attempts: 3, delay: 1 })] });
    const { messages } = await retried.run({ prompt: "Go", onError: () => {} }).result;
    assertEquals(
      [tried, results(messages)[1]],
      isBefore
        ? [["attempt"], "error order failed."]
        : [["attempt", "charge", "ship", "attempt", "ship"], "ok shipped"],
    );
  }
});

Deno.test("a step of an attempt that ran out of time is awaited by the next attempt, which does not run it again", async () => {
  const began: string[] = [];
  const slow = Promise.withResolvers<string>();
  const made = ordering(async ({ step }) => {
    if (began.push("attempt") === 3) slow.resolve("charged");
    return await step("charge", () => {
      began.push("charge");
      return slow.promise;
    });
  }, {
    use: [{
      name: "twice",
      async execute(_, next) {
        const first = new AbortController();
        const cut = next({ signal: first.signal }).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve));
        first.abort();
        await cut;
        return await next();
      },
    }],
  });
  const { messages } = await made.run({ prompt: "Go", limits: { grace: 1 } }).result;
  assertEquals([began, results(messages)[1]], [["attempt", "charge", "attempt"], "ok charged"]);
});

/** Runs a tool that returns the message of the error of `execute`. */
async function refusalOf(execute: Execute): Promise<string> {
  let message = "none";
  const made = ordering(async (ctx) => {
    const thrown = await assertRejects(() => Promise.resolve(execute(ctx)), Error);
    message = thrown.message;
  });
  await made.run({ prompt: "Go", onError: () => {} }).result;
  return message;
}

Deno.test("a step refuses a name that is taken, and a value that JSON would change", async () => {
  class Money {
    constructor(readonly euros: number) {}
  }
  const taken: Execute = async ({ step }) => [await step("a", () => 1), await step("a", () => 2)];
  const expected = 'the call has a step of this name; expected another one, such as "a-2"';
  assertEquals(await refusalOf(taken), `Cannot run step "a" of order: ${expected}`);
  assertEquals(
    await refusalOf(({ step }) => step("", () => 1)),
    'Cannot run step "" of order: expected a name and a function',
  );

  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const values: readonly (readonly [unknown, string])[] = [
    [new Date(0), "a value of type Date"],
    [[new Map()], "a value of type Map"],
    [{ price: new Money(5) }, "a value of type Money"],
    [Number.NaN, "the number NaN"],
    [[undefined], "undefined in a list"],
    [() => 1, "a function"],
  ];
  for (const [value, found] of values) {
    const message = await refusalOf(({ step }) => step("a", () => value));
    assertEquals(
      message,
      `Cannot store the value of step "a": it has ${found}, which JSON does not keep; expected plain values`,
    );
  }
  assertEquals(
    [await refusalOf(({ step }) => step("a", () => 1n)), await refusalOf(({ step }) => step("a", () => circular))],
    [
      'Cannot store the value of step "a": it has a BigInt',
      'Cannot store the value of step "a": it contains itself, or is nested deeper than 100 levels',
    ],
  );
});

Deno.test("a step that has thrown may be tried again under its name, and its tool may go on without it", async () => {
  let tries = 0;
  const made = ordering(async ({ step }) => {
    for (;;) {
      try {
        return await step("flaky", () => {
          if (++tries < 3) throw new Error("Not yet");
          return { tries, at: undefined };
        });
      } catch {
        continue;
      }
    }
  });
  const { messages } = await made.run("Go").result;
  assertEquals(results(messages)[1], 'ok {"tries":3}');
});

Deno.test("no step begins once its run is stopped, and none of a tool whose call has ended", async () => {
  const done: string[] = [];
  const errors: unknown[] = [];
  let late: ToolExecutionContext["step"] | undefined;
  const run = ordering(async ({ step }) => {
    late = step;
    await step("a", () => done.push("a"));
    run.stop();
    await step("b", () => done.push("b"));
  }).run({ prompt: "Go", onError: () => {} });
  assertEquals([(await run.result).status, done], ["aborted", ["a"]]);
  await assertRejects(() => late!("c", () => done.push("c")), DOMException);

  const gate = Promise.withResolvers<void>();
  const forgetful = ordering(({ step }) => {
    void step("a", () => gate.promise);
    void Promise.resolve().then(() => late = step);
    return "ok";
  });
  const { messages } = await forgetful.run({ prompt: "Go", onError: (error) => void errors.push(error) }).result;
  await assertRejects(() => late!("d", () => done.push("d")), TypeError, "the call has ended");
  gate.resolve();
  await new Promise((resolve) => setTimeout(resolve));
  const reported = errors.map((error) => error instanceof Error && error.message.split(":")[0]);
  assertEquals([results(messages)[1], done], ["ok ok", ["a"]]);
  assertEquals(reported, ['Cannot run step "d" of order', 'Cannot run step "a" of order']);
});

Deno.test("a step whose value the store refuses ends the run, and no later step begins", async () => {
  const done: string[] = [];
  const store = memory();
  const failing = durable(saving(store, async (session, save) => {
    const { position } = session.run ?? {};
    const steps = position?.at === "tools" ? position.calls[0]?.steps?.flat() : undefined;
    if (steps && steps.length > 0) throw new FinalError("The disk is full");
    return await save();
  }));
  const made = ordering(chargeAndMail(done));
  const { status } = await made.run({ prompt: "Go", session: "s", store: failing, onError: () => {} }).result;
  assertEquals([status, done], ["failed", ["charge 1:0:charge"]]);
});

Deno.test("many steps are stored in groups, so that a save does not repeat the values before", async () => {
  const written: number[] = [];
  const kept = memory();
  const { store, saved } = recordingStore();
  const journal = {
    ...store.journal,
    append: (...[key, append]: Parameters<typeof kept.journal.append>) => {
      if (append.change) written.push(JSON.stringify(append.change).length);
      return store.journal.append(key, append);
    },
  };
  const rows = Array.from({ length: 60 }, (_, index) => `row-${index}`);
  const importing: Execute = async ({ step }) => {
    for (const row of rows) await step(row, () => `${row} `.repeat(12));
    return "ok";
  };
  await ordering(importing).run({ prompt: "Go", session: "s", store: { ...store, journal } }).result;
  assertEquals(written.filter((characters) => characters > 4_000), []);
  const last = saved.findLast(({ run }) => run?.position.at === "tools");
  const position = last?.run?.position;
  assertEquals(position?.at === "tools" && position.calls[0]?.steps?.flat().length, 60);
});

Deno.test("a session with steps is in a format that earlier versions leave alone", async () => {
  const { store, saved } = recordingStore();
  await ordering(chargeAndMail([])).run({ prompt: "Go", session: "s", store }).result;
  const formats = saved.map(({ run }) => formatFor(run));
  assertEquals(formats, [2, 1, 1, 3, 3, 3, 1, 1]);
});
