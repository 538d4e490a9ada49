import { assertEquals } from "@std/assert";
import { type Message, messagesOf } from "./support/messages.ts";
import { isNamed, type Pattern, places, read, type Source } from "./support/source.ts";

const sources = await read("mod.ts", "src", "middleware", "examples", "tests");

/** Names that were replaced by standard terms. */
const retired = (
  "Asker Blueprint Came Desk Hearing Keeping PersonSays Trouble UnheardEvent arrive befalls blame cable came cameOf " +
  "capsule capsules deaf forEver giveUp goOn goneOnWith hear heard heedless improvised insisting keeps lasting " +
  "meanwhile mend mended mends mortal overhear overheard said saidIn saw say saysOf sole speaking told toldOf unheard " +
  "untold wayOf"
).split(" ");

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

const questionWord = /^(What(ever)?|Who(ever)?|Where|How|Why|Which)\b/;
/** Subjects that name no thing, such as a pronoun for every person. */
const vague = /\b((no|some|any|every)body|whom?ever)\b|(?:\/\/|\*|\.) What(?:ever)\b/gi;

/** Returns the places of docblocks that begin with a question word, or have a long first sentence. */
function unclear(source: Source): string[] {
  return docblocks(source).flatMap(({ place, sentence }) => {
    if (questionWord.test(sentence)) return [`${place} begins with a question word: ${sentence}`];
    const words = sentence.split(/\s+/).length;
    return words > 30 ? [`${place} has a first sentence of ${words} words`] : [];
  });
}

/** Writes a docblock. The samples are assembled, so that a search for such docblocks does not find this file. */
function docblock(text: string): string {
  return ["/", "** ", text, " *", "/"].join("");
}

Deno.test("the language check finds unclear docblocks", () => {
  const long = Array.from({ length: 31 }, () => "word").join(" ");
  const check = (text: string) => unclear({ path: "a.ts", text });
  for (const word of ["What", ["Who", "ever"].join(""), "How", "Why", "Which"]) {
    const sentence = `${word} it does.`;
    assertEquals(check(docblock(sentence)), [`a.ts:1 begins with a question word: ${sentence}`]);
    assertEquals(check(`\n${docblock(`\n * ${sentence}\n`)}`), [`a.ts:2 begins with a question word: ${sentence}`]);
  }
  assertEquals(check(docblock(`${long}.`)), ["a.ts:1 has a first sentence of 31 words"]);
  assertEquals(check(docblock(`Whether it is short. ${long}.`)), []);
});

Deno.test("docblocks begin with a noun or a verb, in a first sentence of at most 30 words", () => {
  assertEquals(sources.flatMap(unclear), []);
});

Deno.test("comments, names and texts have a subject: a hook, a client, a person", () => {
  const found = ({ path, text }: Source) =>
    Array.from(
      text.matchAll(vague),
      ({ 0: word, index }) => `${path}:${text.slice(0, index).split("\n").length} ${word}`,
    );
  const [first, second] = [["What", "ever"].join(""), ["no", "body"].join("")];
  assertEquals(found({ path: "a.ts", text: `// ${first} it is\n// for ${second}\n` }), [
    `a.ts:1 // ${first}`,
    `a.ts:2 ${second}`,
  ]);
  assertEquals(sources.flatMap(found), []);
});

Deno.test("no retired name is left", () => {
  const patterns: readonly Pattern[] = [
    {
      nodes: { Identifier: ({ name }) => retired.includes(name) },
      text: new RegExp(`\\b(${retired.join("|")})\\b`),
    },
    { nodes: { MemberExpression: ({ property }) => isNamed(property, /^asTool$/) }, text: /\.asTool\b/ },
  ];
  const found = (source: Source) => patterns.flatMap((pattern) => places(source, pattern));
  const sample = { path: "a.ts", text: "const giveUp = child.asTool();" };
  assertEquals(found(sample).length, 2);
  for (const name of retired) assertEquals(found({ path: "a.ts", text: `const ${name} = 1;` }).length, 1);
  assertEquals(sources.flatMap(found), []);
  const files = sources.map(({ path }) => path);
  assertEquals(files.filter((path) => retired.some((name) => path.endsWith(`/${name.toLowerCase()}.ts`))), []);
});

/** Names of values that do not say which object they are. */
const vagueValues = /^(begin|begun|early|given|held|most|own|stays|taken)$/;

/** Returns true for the name of a property, which may be that of stored or foreign JSON. */
function isPropertyName(node: Deno.lint.Identifier): boolean {
  const { parent } = node;
  if (parent.type === "MemberExpression") return parent.property === node && !parent.computed;
  const isKey = parent.type === "Property" || parent.type === "TSPropertySignature";
  return isKey && parent.key === node;
}

Deno.test("values and functions of the library are named after their object", () => {
  const pattern: Pattern = {
    nodes: { Identifier: (node) => isNamed(node, vagueValues) && !isPropertyName(node) },
    text: /\b(begin|begun|early|given|held|most|own|stays|taken)\b/,
  };
  const count = (text: string) => places({ path: "a.ts", text }, pattern).length;
  assertEquals(["const own = 1;", "function f(given: string) {}", "class A { begin() {} }"].map(count), [1, 1, 1]);
  assertEquals(["a.own;", "const a = { own: 1 };", "interface A { most: number }"].map(count), [0, 0, 0]);
  // journals are being written, and become one port with stores and logs
  const library = sources.filter(({ path }) =>
    /^(src|middleware|examples)\//.test(path) && !/\bjournal|_journal/.test(path)
  );
  const message =
    `Expected the noun of the object, such as previousRun, maxBytes or leaseUntil, in place of ${vagueValues}`;
  assertEquals(library.flatMap((source) => places(source, pattern)), [], message);
});

Deno.test("the names of the library are nouns and verbs, not question words", () => {
  const pattern: Pattern = {
    nodes: { Identifier: (node) => isNamed(node, /^(what|whose|things?)$/) },
    text: /\b(what|whose|things?)\b/,
  };
  assertEquals(places({ path: "a.ts", text: ["const what", "1;"].join(" = ") }, pattern).length, 1);
  const library = sources.filter(({ path }) => /^(src|middleware|examples)\//.test(path));
  assertEquals(library.flatMap((source) => places(source, pattern)), []);
});

Deno.test("tests are named by behaviour, not by number", () => {
  const numbered = ({ path, text }: Source) =>
    Array.from(text.matchAll(/Deno\.test\(\s*(["'`])(.*)\1/g), ([, , name]) => `${path}: ${name}`)
      .filter((name) => /\b(trap|row) \d+/.test(name));
  assertEquals(numbered({ path: "a.ts", text: ["Deno", `test("trap ${1}", () => {});`].join(".") }), ["a.ts: trap 1"]);
  assertEquals(sources.flatMap(numbered), []);
});

/** A failed operation with its reason, or a text that a caller completes: after "Cannot X: ", or before its cause. */
function isClear({ kind, text, caused }: Message): boolean {
  if (kind.endsWith("()")) return /^[A-Z{].*[.?}]$/s.test(text) || /: [^.]+$/.test(text);
  if (!kind.endsWith("Error")) return true;
  return /^(Cannot [^:]+|\{\}): .|^Cannot call next\(\) /.test(text) || /^[a-z{]/.test(text) ||
    caused && /^Cannot /.test(text);
}

Deno.test("errors say which operation failed, and why; answers are sentences", () => {
  const clear = (text: string, kind = "TypeError") => isClear({ place: "a.ts:1", kind, code: "", text, caused: false });
  assertEquals([clear("Cannot run: expected a prompt"), clear("its `command` is empty")], [true, true]);
  assertEquals([clear("Bad input"), clear("Cannot run"), clear("not now", "denied()")], [false, false, false]);
  const library = sources.filter(({ path }) => /^(src|middleware)\/(?!testing\/)/.test(path));
  assertEquals(library.flatMap(messagesOf).filter((message) => !isClear(message)), []);
});
