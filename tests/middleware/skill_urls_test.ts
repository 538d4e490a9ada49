import { agent, type Middleware, refused } from "@jizai/jizai";
import { skills, type SkillsOptions, type SkillUrl } from "@jizai/jizai/middleware/skills";
import { scripted } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { archive } from "../support/skill_archives.ts";
import { load, read, skilled, skillText } from "../support/skilled.ts";

const indexPath = "/.well-known/agent-skills/index.json";
const schema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

/** The content at a path: a body, JSON, or a response. */
type Content = string | Uint8Array<ArrayBuffer> | object | (() => Response | Promise<Response>);

/** A server with this content. Returns its origin, and the paths that were requested. */
function served(contents: Readonly<Record<string, Content>>) {
  const asked: string[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url);
    asked.push(pathname);
    const content = contents[pathname];
    if (content === undefined) return new Response("none", { status: 404 });
    if (typeof content === "function") return content();
    if (typeof content === "string" || content instanceof Uint8Array) return new Response(content);
    return Response.json(content);
  });
  const origin = `http://127.0.0.1:${server.addr.port}`;
  return { asked, origin, [Symbol.asyncDispose]: () => server.shutdown() };
}

function at(url: string, options: SkillsOptions & Partial<SkillUrl> = {}): readonly Middleware[] {
  const { origins, trusted, ...rest } = options;
  return [
    skills([{ url, ...(origins && { origins }), ...(trusted !== undefined && { trusted }) }], {
      insecure: true,
      ...rest,
    }),
  ];
}

/** Returns an index with these skills, each of which has the digest of its content unless it states another one. */
async function indexOf(
  entries: readonly { readonly content?: string | Uint8Array<ArrayBuffer>; readonly [name: string]: unknown }[],
) {
  const all = entries.map(async ({ content, ...entry }) => ({
    type: "skill-md",
    description: `Does ${entry.name}.`,
    url: `/${entry.name}.md`,
    ...(content !== undefined && { digest: await digest(content) }),
    ...entry,
  }));
  return { $schema: schema, skills: await Promise.all(all) };
}

async function digest(content: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return `sha256:${new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex()}`;
}

Deno.test("skills() offers the skills of a site's index, and fetches one when the model loads it", async () => {
  const [a, b] = [skillText("a", "A."), skillText("b", "B.")];
  const index = await indexOf([{ name: "a", content: a }, { name: "b" }]);
  await using site = served({ [indexPath]: index, "/a.md": a, "/b.md": b });
  const { offered, results, errors } = await skilled(at(site.origin), [load("b"), load("a")]);
  assertEquals(offered, ["- a: Does a.", "- b: Does b."]);
  assertEquals(results, ["ok B.", "ok A."]);
  assertEquals([site.asked[0], site.asked.slice(1).toSorted(), errors], [indexPath, ["/a.md", "/b.md"], []]);
});

Deno.test("skills() reads archives as tar and zip write them, once for each run", async () => {
  for (const name of ["gnu", "pax", "zip"] as const) {
    const content = archive(name);
    const index = await indexOf([{ name: "report", type: "archive", url: "/download", content }]);
    await using site = served({ [indexPath]: index, "/download": content });
    const long = `references/${"n".repeat(120)}.md`;
    const { results, errors } = await skilled(at(site.origin), [load("report")]);
    assertEquals(results, [
      `ok See references/form.md.\n\nThe skill has the files references/form.md, ${long}, scripts/run.sh. Read them with read_skill_file.`,
    ], name);
    const calls = [read("report", "references/form.md"), read("report", long), read("report", "../x")];
    const model = scripted({ calls: calls.slice(0, 1) }, { calls: calls.slice(1) }, "Done.");
    const { messages } = await agent({ model, use: at(`${site.origin}${indexPath}`) }).run({
      prompt: "Go",
      onError: () => {},
    }).result;
    const texts = messages.flatMap((message) => message.role === "tool" ? message.results : []);
    assertEquals(texts.map(({ status }) => status), ["ok", "ok", "error"]);
    assertEquals(JSON.stringify(texts).includes("Long name."), true);
    assertEquals([site.asked.filter((path) => path === "/download").length, errors], [2, []]);
  }
});

Deno.test("skills() reads a SKILL.md or an archive at a URL of its own, and keeps it for a while", async () => {
  using time = new FakeTime();
  await using site = served({ "/skills/a/SKILL.md": skillText("a", "A."), "/report.zip": archive("zip") });
  const use = [
    skills([{ url: `${site.origin}/skills/a/SKILL.md?key=1` }, { url: `${site.origin}/report.zip` }], {
      insecure: true,
      keep: 1_000,
    }),
  ];
  const { offered, results } = await skilled(use, [load("a")]);
  assertEquals([offered, results], [["- a: Does a.", "- report: Writes a report."], ["ok A."]]);
  await skilled(use);
  assertEquals(site.asked.toSorted(), ["/report.zip", "/skills/a/SKILL.md"]);
  time.tick(1_000);
  await skilled(use);
  assertEquals(site.asked.length, 4);
});

Deno.test("skills() uses no content that has another digest than its index states", async () => {
  const index = await indexOf([{ name: "a", content: "Another text." }]);
  await using site = served({ [indexPath]: index, "/a.md": skillText("a") });
  const { offered, results, errors } = await skilled(at(site.origin), [load("a")]);
  assertEquals([offered, results], [["- a: Does a."], ['error Cannot load skill "a": its source failed.']]);
  const expected = await digest("Another text.");
  assertEquals(errors, [
    `Cannot load skill "a": its source failed.: Cannot use ${site.origin}/a.md: its digest is ${await digest(
      skillText("a"),
    )}; expected ${expected}`,
  ]);
});

Deno.test("skills() leaves out the entries of an index that it cannot use, and keeps the others", async () => {
  const index = await indexOf([
    { name: "Bad Name" },
    { name: "a", description: "" },
    { name: "b", type: "package" },
    { name: "c", digest: "md5:1" },
    { name: "d", url: undefined },
    { name: "e" },
  ]);
  await using site = served({ [indexPath]: { ...index, skills: [...index.skills, null] } });
  const { offered, errors } = await skilled(at(site.origin));
  assertEquals(offered, ["- e: Does e."]);
  assertEquals(errors.map((error) => error.replace(`Cannot offer a skill of ${site.origin}${indexPath}: `, "")), [
    'its `name` is "Bad Name"; expected lower-case letters, digits and single hyphens between them, at most 64 characters',
    "its `description` is empty; expected a text",
    'the `type` of "b" is "package"; expected "skill-md" or "archive"',
    'the `digest` of "c" is none; expected sha256: and 64 hexadecimal digits',
    "its `url` is missing; expected a text",
    "an entry is no object",
  ]);
});

Deno.test("skills() reports an index that it cannot read, and the run continues", async () => {
  const indexes: readonly (readonly [Content, string])[] = [
    [{ skills: [] }, `its \`$schema\` is missing; expected "${schema}"`],
    [{ $schema: `${schema}2`, skills: [] }, `its \`$schema\` is "${schema}2"; expected "${schema}"`],
    [{ $schema: schema, skills: {} }, "its `skills` is no list"],
    ["[1", "Expected ',' or ']' after array element in JSON at position 2 (line 1 column 3)"],
    [() => new Response(null, { status: 500 }), "Cannot fetch URL: its status is 500"],
    ["a".repeat(1_001), "Cannot fetch URL: it has more than 1000 bytes"],
  ];
  for (const [index, fault] of indexes) {
    await using site = served({ [indexPath]: index });
    const { offered, tools, errors, status } = await skilled(at(site.origin, { maxBytes: 1_000 }));
    assertEquals([offered, tools, status], [[], [], "done"]);
    const place = `${site.origin}${indexPath}`;
    assertEquals(errors.map((error) => error.replaceAll(place, "URL")), [`Cannot offer a skill of URL: ${fault}`]);
  }
});

Deno.test("skills() refuses skills and redirects of origins that are not named", async () => {
  const text = skillText("a", "A.");
  await using other = served({ "/a.md": text });
  const away = () => new Response(null, { status: 302, headers: { location: `${other.origin}/a.md` } });
  const index = await indexOf([{ name: "a", url: `${other.origin}/a.md` }, { name: "b", url: "/b.md" }]);
  await using site = served({ [indexPath]: index, "/b.md": away });
  const calls = [load("a"), load("b")];
  const { results, errors } = await skilled(at(site.origin), calls);
  assertEquals(results, [
    'error Cannot load skill "a": its source failed.',
    'error Cannot load skill "b": its source failed.',
  ]);
  assertEquals(errors.map((error) => error.endsWith("whose origin is not in `origins`")), [true, true]);
  assertEquals(other.asked, []);
  assertEquals((await skilled(at(site.origin, { origins: [other.origin] }), calls)).results, ["ok A.", "ok A."]);
});

Deno.test("skills() refuses an archive with a link, a path that leaves the skill, too many bytes, or another form", async () => {
  const archives: readonly (readonly [Uint8Array<ArrayBuffer>, string])[] = [
    [archive("link"), 'it contains "evil", which is no file'],
    [archive("zipLink"), 'it contains "evil", which is no file'],
    [archive("upward"), 'it contains the path "../SKILL.md", which is none within the skill'],
    [await bomb(), "it contains more than `maxBytes`, or more than 2000 files"],
    [archive("zip").subarray(0, 400), "its zip file is damaged"],
    [new TextEncoder().encode("PK is no zip"), "it is neither a .tar.gz nor a .zip file"],
  ];
  for (const [content, fault] of archives) {
    await using site = served({ "/skill": content });
    const { offered, errors } = await skilled(at(`${site.origin}/skill`, { maxBytes: 100_000 }));
    assertEquals(offered, []);
    assertEquals(errors, [`Cannot offer a skill of ${site.origin}/skill: ${fault}`]);
  }
});

/** Returns a small archive that has ten million bytes when it is decompressed. */
async function bomb(): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([new Uint8Array(10_000_000)]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

Deno.test("skills() stops waiting for a URL after `time`", async () => {
  const { promise: never, resolve } = Promise.withResolvers<Response>();
  await using site = served({ [indexPath]: () => never });
  const { errors, status } = await skilled(at(site.origin, { time: 10 }));
  resolve(new Response("late"));
  assertEquals([errors.length, status], [1, "done"]);
});

Deno.test("skills() passes the texts of a URL through `input` unless it is trusted", async () => {
  const input: Middleware["input"] = (ctx, next) =>
    ctx.source === "skill" ? Promise.resolve(refused("No skills.")) : next();
  await using site = served({ "/SKILL.md": skillText("a") });
  for (const trusted of [undefined, false, true]) {
    const use = [{ name: "guard", input }, ...at(`${site.origin}/SKILL.md`, trusted === undefined ? {} : { trusted })];
    assertEquals((await skilled(use)).offered, trusted ? ["- a: Does a."] : []);
  }
});
