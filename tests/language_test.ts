import { assertEquals } from "@std/assert";
import { places, read, type Source } from "./support/source.ts";

const own = "tests/language_test.ts";
const sources = (await read("mod.ts", "src", "middleware", "examples", "tests")).filter(({ path }) => path !== own);

/** Names that were replaced by standard terms. */
const retired = [
  "Asker",
  "Blueprint",
  "Desk",
  "Hearing",
  "Keeping",
  "arrive",
  "blame",
  "capsule",
  "capsules",
  "giveUp",
  "improvised",
  "insisting",
  "speaking",
  "wayOf",
];

/** A docblock: its place, and its first sentence. */
interface Docblock {
  readonly place: string;
  readonly sentence: string;
}

function docblocks({ path, text }: Source): Docblock[] {
  return Array.from(text.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\//g), ({ index, 1: comment = "" }) => {
    const plain = comment.replace(/^[ \t]*\* ?/gm, "").trim();
    const [sentence = ""] = plain.split(/(?<=[.!?])\s|\n\n|\n- /);
    return { place: `${path}:${text.slice(0, index).split("\n").length}`, sentence };
  });
}

/** Returns the places of docblocks that begin with a question word, or have a long first sentence. */
function unclear(source: Source): string[] {
  return docblocks(source).flatMap(({ place, sentence }) => {
    if (/^(What|Whoever|Who)\b/.test(sentence)) return [`${place} begins with a question word: ${sentence}`];
    const words = sentence.split(/\s+/).length;
    return words > 30 ? [`${place} has a first sentence of ${words} words`] : [];
  });
}

Deno.test("the language check finds unclear docblocks", () => {
  const long = Array.from({ length: 31 }, () => "word").join(" ");
  const check = (text: string) => unclear({ path: "a.ts", text });
  assertEquals(check("/** What it does. */"), ["a.ts:1 begins with a question word: What it does."]);
  assertEquals(check("\n/**\n * Whoever asks.\n */"), ["a.ts:2 begins with a question word: Whoever asks."]);
  assertEquals(check(`/** ${long}. */`), ["a.ts:1 has a first sentence of 31 words"]);
  assertEquals(check(`/** Whether it is short. ${long}. */`), []);
});

Deno.test("docblocks begin with a noun or a verb, in a first sentence of at most 30 words", () => {
  assertEquals(sources.flatMap(unclear), []);
});

Deno.test("no retired name is left", () => {
  const names = `Identifier[name=/^(${retired.join("|")})$/], MemberExpression[property.name="asTool"]`;
  const pattern = { selector: names, text: new RegExp(`\\b(${retired.join("|")})\\b|\\.asTool\\b`) };
  const sample = { path: "a.ts", text: "const giveUp = child.asTool();" };
  assertEquals(places(sample, pattern).length, 2);
  assertEquals(sources.flatMap((source) => places(source, pattern)), []);
  const files = sources.map(({ path }) => path);
  assertEquals(files.filter((path) => retired.some((name) => path.endsWith(`/${name.toLowerCase()}.ts`))), []);
});

Deno.test("tests are named by behaviour, not by number", () => {
  const numbered = ({ path, text }: Source) =>
    Array.from(text.matchAll(/Deno\.test\(\s*(["'`])(.*)\1/g), ([, , name]) => `${path}: ${name}`)
      .filter((name) => /\b(trap|row) \d+/.test(name));
  assertEquals(numbered({ path: "a.ts", text: `Deno.test("trap ${1}", () => {});` }), ["a.ts: trap 1"]);
  assertEquals(sources.flatMap(numbered), []);
});
