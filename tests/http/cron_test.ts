import { assertEquals, assertThrows } from "@std/assert";
import { cronTimes } from "../../src/http/cron.ts";
import { type Chance, seeded, seeds, withSeed } from "../support/seeded.ts";

const minute = 60_000;

/** Returns the first times of an expression after a date. */
function timesAfter(cron: string, date: string, count: number): string[] {
  const times = cronTimes("Cannot schedule", cron);
  const found: string[] = [];
  for (let ms = Date.parse(date); found.length < count;) {
    ms = times.next(ms);
    found.push(new Date(ms).toISOString().slice(0, 16));
  }
  return found;
}

for (
  const [cron, ...expected] of [
    ["* * * * *", "2026-11-27T06:59", "2026-11-27T07:00"],
    ["*/20 7 * * *", "2026-11-27T07:00", "2026-11-27T07:20", "2026-11-27T07:40", "2026-11-28T07:00"],
    ["0 7 * * MON-FRI", "2026-11-27T07:00", "2026-11-30T07:00"],
    [" 30  7  *  *  sun,WED ", "2026-11-29T07:30", "2026-12-02T07:30"],
    ["0 0 1 JAN,7 *", "2027-01-01T00:00", "2027-07-01T00:00"],
    ["0 0 29 2 *", "2028-02-29T00:00", "2032-02-29T00:00"],
    ["5,1-3,10-20/5 0 31 * *", "2026-12-31T00:01", "2026-12-31T00:02", "2026-12-31T00:03", "2026-12-31T00:05"],
    ["0 0-23/12 30 4 *", "2027-04-30T00:00", "2027-04-30T12:00"],
  ] as const
) {
  Deno.test(`cron: the times of "${cron}"`, () => {
    assertEquals(timesAfter(cron, "2026-11-27T06:58:00.001Z", expected.length), [...expected]);
  });
}

Deno.test("cron: a leap day is found after a century without one", () => {
  assertEquals(timesAfter("0 0 29 2 *", "2096-03-01T00:00Z", 1), ["2104-02-29T00:00"]);
});

/** Returns an expression, and whether a time is one of its times. */
function randomExpression({ below, one }: Chance) {
  const values = (least: number, most: number): [string, (value: number) => boolean] => {
    const from = least + below(most - least + 1);
    const to = from + below(most - from + 1);
    const step = 1 + below(most - least);
    return one<[string, (value: number) => boolean]>([
      ["*", () => true],
      [`${from}`, (value) => value === from],
      [`${from}-${to}`, (value) => value >= from && value <= to],
      [`${from}-${to}/${step}`, (value) => value >= from && value <= to && (value - from) % step === 0],
      [`*/${step}`, (value) => (value - least) % step === 0],
      [`${from},${to}`, (value) => value === from || value === to],
    ]);
  };
  const [minutes, isMinute] = values(0, 59);
  const [hours, isHour] = values(0, 23);
  const [days, isDay] = one([["*", () => true] as const, values(1, 28)]);
  const [months, isMonth] = values(1, 12);
  const isTime = (ms: number) => {
    const date = new Date(ms);
    return isMinute(date.getUTCMinutes()) && isHour(date.getUTCHours()) && isDay(date.getUTCDate()) &&
      isMonth(date.getUTCMonth() + 1);
  };
  return { cron: [minutes, hours, days, months, "*"].join(" "), isTime };
}

Deno.test("cron: no time is left out or added, and last() and next() agree, in random expressions", async () => {
  for (const seed of seeds(10)) {
    await withSeed(seed, () => {
      const chance = seeded(seed);
      const { cron, isTime } = randomExpression(chance);
      const { last, next } = cronTimes("Cannot schedule", cron);
      const from = (29_000_000 + chance.below(2_000_000)) * minute;
      const found = next(from);
      let expected = from + minute;
      while (expected < found && !isTime(expected)) expected += minute;
      assertEquals([cron, found, isTime(found)], [cron, expected, true]);
      assertEquals([last(found), last(found + 1), next(found - 1)], [found, found, found]);
      assertEquals(next(last(found - 1)), found);
      return Promise.resolve();
    });
  }
});

Deno.test("cron: Deno.cron accepts random expressions that are accepted here", async () => {
  for (const seed of seeds(200)) {
    const closing = new AbortController();
    const { cron } = randomExpression(seeded(seed));
    const registered = Deno.cron(`seed ${seed}`, cron, { signal: closing.signal }, () => {});
    closing.abort();
    await registered;
  }
});

const forms = 'expected minute, hour, day, month and day of the week, such as "0 7 * * MON-FRI"';
const weekdays =
  "expected *, or values and ranges of SUN to SAT (platforms number the days differently), with steps up to 6";

for (
  const [cron, reason] of [
    ["", forms],
    ["0 7 * *", forms],
    ["0 0 7 * * *", forms],
    ["@daily", forms],
    ["60 7 * * *", 'its minute is "60"; expected *, or values and ranges of 0 to 59, with steps up to 59'],
    ["0 24 * * *", 'its hour is "24"; expected *, or values and ranges of 0 to 23, with steps up to 23'],
    ["0 7 0 * *", 'its day of the month is "0"; expected *, or values and ranges of 1 to 31, with steps up to 30'],
    ["0 7 L * *", 'its day of the month is "L"; expected *, or values and ranges of 1 to 31, with steps up to 30'],
    ["0 7 * 13 *", 'its month is "13"; expected *, or values and ranges of 1 to 12, with steps up to 11'],
    ["0 7 * * 1", `its day of the week is "1"; ${weekdays}`],
    ["0 7 * * 1-5", `its day of the week is "1-5"; ${weekdays}`],
    ["0 7 * * FRI-MON", `its day of the week is "FRI-MON"; ${weekdays}`],
    ["30-10 7 * * *", 'its minute is "30-10"; expected *, or values and ranges of 0 to 59, with steps up to 59'],
    ["*/0 7 * * *", 'its minute is "*/0"; expected *, or values and ranges of 0 to 59, with steps up to 59'],
    ["*/60 7 * * *", 'its minute is "*/60"; expected *, or values and ranges of 0 to 59, with steps up to 59'],
    [
      "0 7 */31 * *",
      'its day of the month is "*/31"; expected *, or values and ranges of 1 to 31, with steps up to 30',
    ],
    ["5/10 7 * * *", 'its minute is "5/10"; expected *, or values and ranges of 0 to 59, with steps up to 59'],
    ["1, 7 * * *", 'its minute is "1,"; expected *, or values and ranges of 0 to 59, with steps up to 59'],
    ["-1 7 * * *", 'its minute is "-1"; expected *, or values and ranges of 0 to 59, with steps up to 59'],
    ["1.5 7 * * *", 'its minute is "1.5"; expected *, or values and ranges of 0 to 59, with steps up to 59'],
    [
      "0 7 1 * MON",
      "expected * as the day of the month or of the week: platforms combine the two in different ways",
    ],
    ["0 7 31 2,4 *", "expected days that exist"],
  ] as const
) {
  Deno.test(`cron: "${cron}" is refused`, () => {
    const message = `Cannot schedule: \`cron\` is "${cron}"; ${reason}`;
    assertThrows(() => cronTimes("Cannot schedule", cron), TypeError, message);
  });
}
