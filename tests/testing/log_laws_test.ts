import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { logLaws, type Make } from "@jizai/jizai/testing";
import { advanceUntilSettled } from "../support/fake_time.ts";

/** Makes a log that is another than `memoryLog()` in some respect. */
function but(change: (log: Log) => Partial<Log>): Make<Log> {
  return (options) => {
    const log = memoryLog(options);
    return { ...log, ...change(log) };
  };
}

const cases: readonly (readonly [name: string, make: Make<Log>, broken: readonly string[]])[] = [
  [
    "takes anything",
    but(({ append, read }) => ({
      append: async (run, addition) =>
        await append(run, { ...addition, after: (await read(run, 0))?.last ?? addition.after }),
    })),
    ["takes what comes next, and nothing else", "begins in the middle where the beginning has been forgotten"],
  ],
  [
    "knows no beginning but the first",
    but(({ append, read }) => ({
      append: async (run, addition) => addition.after > 0 && !await read(run, 0) ? false : await append(run, addition),
    })),
    [
      "begins in the middle where the beginning has been forgotten",
      "shows what is left of a run whose beginning has been forgotten",
      "forgets what has expired",
    ],
  ],
  [
    "cannot be ended by itself",
    but(({ append }) => ({
      append: (run, addition) => addition.lines.length > 0 ? append(run, addition) : Promise.resolve(true),
    })),
    [
      "takes no lines, to begin a run or to end it",
      "lets a run be followed from any event on until it ends",
      "lets a long run be followed",
      "goes on with a run that is resumed",
      "shows every event once, to a slow reader too",
    ],
  ],
  [
    "cuts long lines",
    but(({ append }) => ({
      append: (run, { lines, ...rest }) => append(run, { ...rest, lines: lines.map((line) => line.slice(0, 65_536)) }),
    })),
    [
      "lets one of several writers win",
      "gives back what is long, page by page",
      "lets a long run be followed",
    ],
  ],
  ["does not delete", but(() => ({ delete: () => Promise.resolve() })), [
    "forgets what is deleted",
    "ends where a run is deleted",
  ]],
  ["never forgets", () => memoryLog(), ["forgets what has expired"]],
  [
    "shows only what is there",
    but(({ read }) => ({
      async *tail(run, after) {
        const page = await read(run, after);
        if (page) yield page;
      },
    })),
    [
      "lets a run be followed from any event on until it ends",
      "shows what is left of a run whose beginning has been forgotten",
      "shows every event once, to a slow reader too",
      "stops when it is told to",
    ],
  ],
  ["shows everything to everybody", but(({ tail }) => ({ tail: (run, _, signal) => tail(run, 0, signal) })), [
    "lets a run be followed from any event on until it ends",
    "ends where a run has ended",
    "goes on with a run that is resumed",
    "stops when it is told to",
  ]],
  [
    "drops what is too much at once",
    but(({ tail }) => ({
      async *tail(run, after, signal) {
        for await (const page of tail(run, after, signal)) yield { ...page, lines: page.lines.slice(-3) };
      },
    })),
    [
      "lets a long run be followed",
      "shows every event once, to a slow reader too",
    ],
  ],
  ["never lets go", but(({ tail }) => ({ tail: (run, after) => tail(run, after, new AbortController().signal) })), [
    "stops when it is told to",
  ]],
  [
    "listens for ever",
    but(({ tail }) => ({
      tail(run, after, signal) {
        signal.addEventListener("abort", () => {});
        return tail(run, after, signal);
      },
    })),
    ["leaves nobody listening to the signal"],
  ],
];

for (const [name, make, broken] of cases) {
  Deno.test(`logLaws() finds a log that ${name}`, async () => {
    using time = new FakeTime();
    const { message } = await assertRejects(
      () => advanceUntilSettled(time, logLaws(make, { pass: (ms) => time.tick(ms) })),
      Error,
    );
    assertEquals([...message.matchAll(/^It breaks the law that it (.*):$/gm)].map(([, law = ""]) => law), [...broken]);
  });
}
