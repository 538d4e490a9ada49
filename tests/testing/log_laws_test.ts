import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { logLaws, type Make } from "@jizai/jizai/testing";
import { advanceUntilSettled } from "../support/fake_time.ts";

/** Creates `memoryLog()` with some methods replaced. */
function but(change: (log: Log) => Partial<Log>): Make<Log> {
  return (options) => {
    const log = memoryLog(options);
    return { ...log, ...change(log) };
  };
}

const cases: readonly (readonly [name: string, make: Make<Log>, broken: readonly string[]])[] = [
  [
    "accepts every addition",
    but(({ append, read }) => ({
      append: async (run, addition) =>
        await append(run, { ...addition, after: (await read(run, 0))?.last ?? addition.after }),
    })),
    ["accepts only the next events", "accepts a run whose first events were deleted"],
  ],
  [
    "accepts only a run from its first event",
    but(({ append, read }) => ({
      append: async (run, addition) => addition.after > 0 && !await read(run, 0) ? false : await append(run, addition),
    })),
    [
      "accepts a run whose first events were deleted",
      "follows a run whose first events were deleted",
      "deletes what has expired",
    ],
  ],
  [
    "ignores an end without lines",
    but(({ append }) => ({
      append: (run, addition) => addition.lines.length > 0 ? append(run, addition) : Promise.resolve(true),
    })),
    [
      "accepts an addition without lines at the beginning and the end of a run",
      "follows a run from a given event to its end",
      "follows a long run",
      "follows a resumed run",
      "yields every event once, also to a slow reader",
    ],
  ],
  [
    "cuts long lines",
    but(({ append }) => ({
      append: (run, { lines, ...rest }) => append(run, { ...rest, lines: lines.map((line) => line.slice(0, 65_536)) }),
    })),
    [
      "accepts one of several concurrent writers",
      "returns long events page by page",
      "follows a long run",
    ],
  ],
  ["does not delete", but(() => ({ delete: () => Promise.resolve() })), [
    "returns nothing after a delete",
    "ends when the run is deleted",
  ]],
  ["never expires", () => memoryLog(), ["deletes what has expired"]],
  [
    "yields only the present events",
    but(({ read }) => ({
      async *tail(run, after) {
        const page = await read(run, after);
        if (page) yield page;
      },
    })),
    [
      "follows a run from a given event to its end",
      "follows a run whose first events were deleted",
      "yields every event once, also to a slow reader",
      "stops when the signal aborts",
    ],
  ],
  ["yields all events to every follower", but(({ tail }) => ({ tail: (run, _, signal) => tail(run, 0, signal) })), [
    "follows a run from a given event to its end",
    "ends at once if the run has ended",
    "follows a resumed run",
    "stops when the signal aborts",
  ]],
  [
    "drops events of a large page",
    but(({ tail }) => ({
      async *tail(run, after, signal) {
        for await (const page of tail(run, after, signal)) yield { ...page, lines: page.lines.slice(-3) };
      },
    })),
    [
      "follows a long run",
      "yields every event once, also to a slow reader",
    ],
  ],
  [
    "ignores the signal",
    but(({ tail }) => ({ tail: (run, after) => tail(run, after, new AbortController().signal) })),
    [
      "stops when the signal aborts",
    ],
  ],
  [
    "does not remove its listener",
    but(({ tail }) => ({
      tail(run, after, signal) {
        signal.addEventListener("abort", () => {});
        return tail(run, after, signal);
      },
    })),
    ["removes its listeners from the signal"],
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
