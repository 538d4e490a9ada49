/**
 * The laws of key-value databases.
 *
 * @module
 */
import type { KeyValue } from "../../protocol/key_value.ts";
import { checkLaws, expireIn, type ExpiryLaws, type LawOptions, type Laws, type Make, oddText } from "./laws.ts";

/**
 * Tests a key-value database against the laws of the port. `make` creates a new, empty database for each law. Throws an `Error` that names each broken law, and
 * how it is broken. A database
 *
 * - returns the texts that were set, up to 500,000 characters;
 * - adds to counters atomically;
 * - forgets a key when it expires or is deleted, and no other key.
 *
 * ```ts
 * import { memoryKeyValue } from "@jizai/jizai/session/key_value";
 * import { keyValueLaws } from "@jizai/jizai/testing";
 * import { assertRejects } from "@std/assert";
 *
 * await keyValueLaws(() => memoryKeyValue());
 *
 * const forgetful = () => ({ ...memoryKeyValue(), get: () => Promise.resolve(undefined) });
 * await assertRejects(() => keyValueLaws(forgetful), Error, "returns the texts that were set");
 * ```
 */
export async function keyValueLaws(
  make: () => KeyValue | Promise<KeyValue>,
  options: LawOptions = {},
): Promise<void> {
  const each: Make<KeyValue> = () => make();
  await checkLaws(each, laws, expiryLaws, options);
}

const texts: readonly string[] = ["", "a", oddText, `"1"`, "1.5", "007", "null", "ж漢😀 ".repeat(100_000)];

const laws: Laws<KeyValue> = {
  async "returns the texts that were set"(values, expect) {
    expect("get() of a key that was never set", await values.get("none"), undefined);
    for (const [index, text] of texts.entries()) {
      await values.set(`k${index}`, text);
      await values.set("same", text);
      expect(`get() of text number ${index}`, await values.get(`k${index}`), text);
      expect(`get() after it was replaced by text number ${index}`, await values.get("same"), text);
    }
    expect("get() of the first key", await values.get("k0"), "");
  },

  async "accepts every character in a key"(values, expect) {
    const keys = [
      "a",
      "A",
      "a/b",
      "a:b",
      " ",
      "*",
      "%",
      "a'b",
      `"`,
      "\\",
      "\\u0000",
      "\0",
      "漢😀",
      "__proto__",
      "k".repeat(500),
    ];
    for (const key of keys) await values.set(key, `of ${key}`);
    for (const key of keys) expect(`get(${JSON.stringify(key)})`, await values.get(key), `of ${key}`);
  },

  async "adds to counters"(values, expect) {
    expect("increment() of a new key", await values.increment("n"), 1);
    expect("increment() by 5", await values.increment("n", { by: 5 }), 6);
    expect("increment() by -8", await values.increment("n", { by: -8 }), -2);
    expect("get()", await values.get("n"), "-2");
    expect("increment() of another key", await values.increment("m", { by: 2 ** 40 }), 2 ** 40);
    await values.set("n", "40");
    expect("increment() of a text with digits", await values.increment("n", { by: 2 }), 42);
    await values.set("n", "a text");
    const failed = await values.increment("n").then(() => "it resolved", (error) => error instanceof TypeError);
    expect("whether increment() of a text rejects with a TypeError", failed, true);
    expect("get() after that", await values.get("n"), "a text");
  },

  async "adds atomically"(values, expect) {
    const sums = await Promise.all(Array.from({ length: 20 }, () => values.increment("n")));
    expect("the sums", sums.toSorted((a, b) => a - b), Array.from({ length: 20 }, (_, index) => index + 1));
  },

  async "forgets what is deleted"(values, expect) {
    await values.set("gone", "x".repeat(200_000));
    await values.increment("n", { by: 7 });
    await values.set("stays", "here");
    for (const key of ["gone", "n", "none"]) await values.delete(key);
    expect("get()", [await values.get("gone"), await values.get("n"), await values.get("stays")], [
      undefined,
      undefined,
      "here",
    ]);
    expect("increment() after that", await values.increment("n"), 1);
  },
};

const expiryLaws: ExpiryLaws<KeyValue> = (pass) => ({
  async "forgets what has expired"(values, expect) {
    const long = "x".repeat(200_000);
    await values.set("long", long, { expireIn });
    await values.set("renewed", "1", { expireIn });
    await values.set("kept", "1", { expireIn });
    await values.set("kept", "2");
    await values.increment("n", { by: 3, expireIn });
    await pass(expireIn / 2);
    await values.set("renewed", "2", { expireIn });
    expect("increment() before it expires", await values.increment("n", { expireIn: 10 * expireIn }), 4);
    expect("get() before it expires", await values.get("long"), long);
    await pass(expireIn / 2 + 50);
    expect("get() of the expired text", await values.get("long"), undefined);
    expect("get() of the expired counter", await values.get("n"), undefined);
    expect("get() of the text that was set again", await values.get("renewed"), "2");
    expect("get() of the text that was set without an expiry", await values.get("kept"), "2");
    expect("increment() of the expired counter", await values.increment("n"), 1);
    await pass(expireIn);
    expect("get() of the new counter", await values.get("n"), "1");
  },
});
