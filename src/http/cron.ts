/**
 * Cron expressions: five fields in UTC, of which only those are accepted that mean the same to Deno, to Cloudflare and to Unix.
 *
 * @module
 */

/** The times of a cron expression, in milliseconds since 1970. */
export interface CronTimes {
  /** Returns the last time that is not after `ms`. */
  last(ms: number): number;
  /** Returns the first time after `ms`. */
  next(ms: number): number;
}

/** A field of an expression: its name for errors, its values, and the names of the values. */
interface Field {
  readonly label: string;
  readonly minimum: number;
  readonly maximum: number;
  readonly names?: readonly string[];
  /** Whether a value must be one of the names. */
  readonly named?: boolean;
}

const minuteField: Field = { label: "minute", minimum: 0, maximum: 59 };
const hourField: Field = { label: "hour", minimum: 0, maximum: 23 };
const dayField: Field = { label: "day of the month", minimum: 1, maximum: 31 };
const monthField: Field = {
  label: "month",
  minimum: 1,
  maximum: 12,
  names: ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
const weekdayField: Field = {
  label: "day of the week",
  minimum: 0,
  maximum: 6,
  names: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
  named: true, // 1 is Sunday to Deno and Cloudflare, and Monday to Unix
};

const minute = 60_000;
const day = 1_440 * minute;

/** The most days between two times: February 29 is left out in 2100. */
const longest = 8 * 366;

/**
 * Parses an expression: minute, hour, day of the month, month and day of the week. A field is a star, a value such as `5`, a range such as `1-5`, a star or a
 * range with a step such as `0-59/5`, or several of them with commas. Throws a `TypeError` that starts with `operation` if it has another form, a meaning that differs between platforms, or no time.
 */
export function cronTimes(operation: string, cron: string): CronTimes {
  const fail = (reason: string): never => {
    throw new TypeError(`${operation}: \`cron\` is "${cron}"; ${reason}`);
  };
  const texts = typeof cron === "string" ? cron.trim().split(/\s+/) : [];
  const [minutes, hours, days, months, weekdays] = texts;
  if (!minutes || !hours || !days || !months || !weekdays || texts.length > 5) {
    return fail('expected minute, hour, day, month and day of the week, such as "0 7 * * MON-FRI"');
  }
  if (days !== "*" && weekdays !== "*") {
    fail("expected * as the day of the month or of the week: platforms combine the two in different ways");
  }
  const valuesOf = (text: string, field: Field) => parseField(text, field) ?? fail(expectedFor(field, text));
  const inHour = valuesOf(minutes, minuteField);
  const minutesOfDay = valuesOf(hours, hourField).flatMap((hour) => inHour.map((value) => hour * 60 + value));
  const ofMonth = new Set(valuesOf(days, dayField));
  const ofYear = new Set(valuesOf(months, monthField));
  const ofWeek = new Set(valuesOf(weekdays, weekdayField));

  function isDay(index: number): boolean {
    const date = new Date(index * day);
    return ofMonth.has(date.getUTCDate()) && ofYear.has(date.getUTCMonth() + 1) && ofWeek.has(date.getUTCDay());
  }
  /** Returns the times of a day. */
  const timesOf = (index: number) => isDay(index) ? minutesOfDay.map((value) => index * day + value * minute) : [];

  /** Returns the first time that `fits`, of this day and those after it, or before it. */
  function find(ms: number, step: 1 | -1, fits: (times: readonly number[]) => number | undefined): number {
    const today = Math.floor(ms / day);
    for (let count = 0; count <= longest; count++) {
      const time = fits(timesOf(today + step * count));
      if (time !== undefined) return time;
    }
    return fail("expected days that exist");
  }
  const times: CronTimes = {
    last: (ms) => find(ms, -1, (times) => times.findLast((time) => time <= ms)),
    next: (ms) => find(ms, 1, (times) => times.find((time) => time > ms)),
  };
  times.next(0); // throws if there is none
  return times;
}

/** Returns the values of a field in their order; undefined for another form. */
function parseField(text: string, field: Field): number[] | undefined {
  const values = new Set<number>();
  for (const item of text.split(",")) {
    const [, all, from = "", to, by] = /^(?:(\*)|(\w+)(?:-(\w+))?)(?:\/(\d+))?$/.exec(item) ?? [];
    const first = all ? field.minimum : valueOf(from, field);
    const last = all ? field.maximum : valueOf(to ?? from, field);
    const step = Number(by ?? 1);
    const isStepped = by === undefined || ((all || to) && step >= 1 && step <= field.maximum - field.minimum);
    if (first === undefined || last === undefined || last < first || !isStepped) return undefined;
    for (let value = first; value <= last; value += step) values.add(value);
  }
  return [...values].sort((a, b) => a - b);
}

/** Returns a value of a field; undefined if it is none. */
function valueOf(text: string, { minimum, maximum, names = [], named }: Field): number | undefined {
  const index = names.indexOf(text.toUpperCase());
  if (index >= 0) return minimum + index;
  const value = named || !/^\d+$/.test(text) ? NaN : Number(text);
  return value >= minimum && value <= maximum ? value : undefined;
}

/** Returns the reason to refuse a field. */
function expectedFor({ label, minimum, maximum, names, named }: Field, text: string): string {
  const [first = minimum, last = maximum] = names ? [names[0], names.at(-1)] : [];
  const values = named ? `${first} to ${last} (platforms number the days differently)` : `${minimum} to ${maximum}`;
  return `its ${label} is "${text}"; expected *, or values and ranges of ${values}, with steps up to ${
    maximum - minimum
  }`;
}
