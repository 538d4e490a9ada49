import { agent, type Middleware } from "@jizai/jizai";
import type { Files } from "@jizai/jizai/middleware/workspace";
import { instructions, type InstructionsOptions } from "@jizai/jizai/middleware/instructions";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { memoryFiles, workspace } from "@jizai/jizai/middleware/workspace";
import { collect, outline, scripted, type ScriptedStep, testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { lines } from "../support/transcript_lines.ts";

/** Runs an agent with these instructions. Returns the texts that its model received, and the events. */
async function reported(
  use: readonly Middleware[],
  { steps = [], own = "" }: { readonly steps?: readonly ScriptedStep[]; readonly own?: string } = {},
) {
  const errors: string[] = [];
  const model = scripted(...steps, "Done.");
  const onError = (error: unknown) => {
    const { message, cause } = error as Error; // nothing else is reported here
    errors.push(cause instanceof Error ? `${message}: ${cause.message}` : message);
  };
  const { events, result } = await collect(agent({ model, instructions: own, use }).run({ prompt: "Go", onError }));
  return {
    instructions: model.requests.map((request) => request.instructions),
    loaded: events.filter(({ type }) => type === "instructions.loaded"),
    lines: lines(result.messages),
    events,
    errors,
  };
}

/** Steps of one call of `change_directory` each. */
function going(...paths: readonly string[]): readonly ScriptedStep[] {
  return paths.map((path) => ({ calls: [["change_directory", { path }]] }));
}

/** A server with these answers. Returns the requests. */
function served(answer: (path: string, origin: string) => Response | Promise<Response>) {
  const asked: string[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { pathname, origin, search } = new URL(request.url);
    asked.push(pathname + search);
    return answer(pathname, origin);
  });
  const origin = `http://127.0.0.1:${server.addr.port}`;
  return { asked, origin, [Symbol.asyncDispose]: () => server.shutdown() };
}

function from(urls: readonly string[], options: InstructionsOptions = {}): readonly Middleware[] {
  return [instructions(memoryFiles(), { urls, insecure: true, ...options })];
}

Deno.test("instructions() obeys the laws of middleware", async () => {
  const files = memoryFiles({ "AGENTS.md": "Be brief.", "src/AGENTS.md": "Be bold." });
  await testMiddleware(() => instructions(files), {
    use: [workspace(() => memoryFiles({ "src/a": "" }))],
    calls: [["change_directory", { path: "src" }]],
  });
});

Deno.test("instructions() adds the files of the root to the agent's instructions, in order, and emits instructions.loaded", async () => {
  const files = memoryFiles({ "AGENTS.md": "Be brief.\n", "docs/STYLE.md": "\ufeffBe bold.", "empty.md": " \n" });
  const use = [instructions(files, { files: ["docs/STYLE.md", "none.md", "empty.md", "docs", "AGENTS.md"] })];
  const { instructions: given, loaded, events, errors } = await reported(use, { own: "You help." });
  assertEquals(given, [
    "You help.\n\nInstructions from docs/STYLE.md:\n\nBe bold.\n\nInstructions from AGENTS.md:\n\nBe brief.",
  ]);
  assertEquals(loaded, [
    { type: "instructions.loaded", path: "docs/STYLE.md", reason: "session" },
    { type: "instructions.loaded", path: "AGENTS.md", reason: "session" },
  ]);
  assertEquals(outline(events).slice(0, 5), [
    "run.started",
    "session.opened new",
    "instructions.loaded docs/STYLE.md session",
    "instructions.loaded AGENTS.md session",
    "prompt.accepted Go",
  ]);
  assertEquals(errors, []);
});

Deno.test("instructions() emits nothing if there is no file", async () => {
  const { instructions: given, loaded, errors } = await reported([instructions(memoryFiles())], { own: "You help." });
  assertEquals([given, loaded, errors], [["You help."], [], []]);
});

Deno.test("instructions() loads the files again when the session is opened again", async () => {
  const files = memoryFiles({ "AGENTS.md": "One." });
  const model = scripted("Done.", "Done.");
  const assistant = agent({ model, use: [instructions(files)] });
  await assistant.run({ prompt: "Go", session: "s" }).result;
  await files.write("AGENTS.md", new TextEncoder().encode("Two."), (await files.read("AGENTS.md"))?.version);
  await assistant.run({ prompt: "Go", session: "s" }).result;
  assertEquals(model.requests.map(({ instructions }) => instructions), [
    "Instructions from AGENTS.md:\n\nOne.",
    "Instructions from AGENTS.md:\n\nTwo.",
  ]);
});

Deno.test("instructions() loads the files of an entered folder and its parents, once", async () => {
  const files = memoryFiles({
    "AGENTS.md": "top",
    "a/AGENTS.md": "in a",
    "a/b/c/AGENTS.md": "in c",
    "a/b/x": "",
    "d/x": "",
  });
  const steps = going("a/b/c", "..", "../..", "a", "../d", "none");
  const { lines, loaded, errors } = await reported([workspace(files), instructions(files)], { steps });
  assertEquals(lines, [
    "user Go",
    "call change_directory",
    "ok The current folder is a/b/c.",
    "context Instructions from a/AGENTS.md:\n\nin aInstructions from a/b/c/AGENTS.md:\n\nin c",
    "call change_directory",
    "ok The current folder is a/b.",
    "call change_directory",
    "ok The current folder is the root.",
    "call change_directory",
    "ok The current folder is a.",
    "call change_directory",
    "ok The current folder is d.",
    "call change_directory",
    'error Cannot change to "d/none": there is no such folder.',
    "assistant Done.",
  ]);
  assertEquals(loaded, [
    { type: "instructions.loaded", path: "AGENTS.md", reason: "session" },
    { type: "instructions.loaded", path: "a/AGENTS.md", reason: "directory", turn: 1, call: "call_1" },
    { type: "instructions.loaded", path: "a/b/c/AGENTS.md", reason: "directory", turn: 1, call: "call_1" },
  ]);
  assertEquals(errors.length, 1);
});

Deno.test("instructions() works on either side of workspace()", async () => {
  const files = memoryFiles({ "a/AGENTS.md": "in a" });
  const orders = [[workspace(files), instructions(files)], [instructions(files), workspace(files)]];
  for (const use of orders) {
    const { lines } = await reported(use, { steps: going("a") });
    assertEquals(lines[3], "context Instructions from a/AGENTS.md:\n\nin a");
  }
});

Deno.test("instructions() loads nothing if change_directory is denied", async () => {
  const files = memoryFiles({ "a/AGENTS.md": "in a" });
  const guard = permissions({ deny: ["change_directory"], otherwise: "allow" });
  const { lines, loaded } = await reported([guard, instructions(files), workspace(files)], { steps: going("a") });
  assertEquals([lines[2]?.startsWith("denied"), lines.length, loaded], [true, 4, []]);
});

Deno.test("instructions() leaves out a file that is too large, binary or unreadable, and reports it", async () => {
  const memory = memoryFiles({ "long.md": "ä".repeat(51), "fits.md": "ä".repeat(50), "broken.md": "x" });
  await memory.write("bytes.md", Uint8Array.of(0xff), undefined);
  const files: Files = {
    ...memory,
    read: (path) => path === "broken.md" ? Promise.reject(new Error("no disk")) : memory.read(path),
  };
  const use = [instructions(files, { files: ["long.md", "broken.md", "bytes.md", "fits.md"], maxBytes: 100 })];
  const { loaded, errors } = await reported(use);
  assertEquals(loaded, [{ type: "instructions.loaded", path: "fits.md", reason: "session" }]);
  assertEquals(errors.map((error) => error.slice(0, 80)).toSorted(), [
    "Cannot load instructions from broken.md: no disk",
    "Cannot load instructions from bytes.md: The encoded data is not valid",
    "Cannot load instructions from long.md: Cannot read long.md: it has more than 100",
  ]);
});

Deno.test("instructions() fetches its URLs, and emits them without secrets", async () => {
  await using server = served((path) => new Response(`At ${path}.`));
  const { instructions: given, loaded } = await reported(
    from([`${server.origin}/a.md?key=hunter2#top`, `${server.origin}/b.md`]),
  );
  assertEquals(given, [
    `Instructions from ${server.origin}/a.md:\n\nAt /a.md.\n\nInstructions from ${server.origin}/b.md:\n\nAt /b.md.`,
  ]);
  assertEquals(
    loaded,
    ["a.md", "b.md"].map((name) => (
      { type: "instructions.loaded", path: `${server.origin}/${name}`, reason: "session" }
    )),
  );
  assertEquals(server.asked.toSorted(), ["/a.md?key=hunter2", "/b.md"]);
});

Deno.test("instructions() follows a redirect only to a URL in `urls`", async () => {
  const redirects: Record<string, string> = {
    "/a": "/b",
    "/out": "/secret",
    "/far": "http://localhost:1/b",
    "/odd": "file:///etc/passwd",
    "/loop": "/loop",
  };
  await using server = served((path, origin) => {
    const to = redirects[path];
    return to
      ? new Response("", { status: 302, headers: { location: to } })
      : new Response(`At ${path} of ${origin.slice(0, 4)}.`);
  });
  const at = (path: string) => `${server.origin}${path}`;
  const { instructions: given, errors } = await reported(from(["/a", "/b", "/out", "/far", "/odd", "/loop"].map(at)));
  assertEquals(given, [
    `Instructions from ${at("/a")}:\n\nAt /b of http.\n\nInstructions from ${at("/b")}:\n\nAt /b of http.`,
  ]);
  const cannot = (path: string, why: string) =>
    `Cannot load instructions from ${at(path)}: Cannot fetch ${at(path)}: ${why}`;
  assertEquals(errors.toSorted(), [
    cannot("/far", "it redirects to http://localhost:1/b, which is not in `urls`"),
    cannot("/loop", "it redirects more than 5 times"),
    cannot("/odd", "it redirects to file:///etc/passwd, which is not in `urls`"),
    cannot("/out", `it redirects to ${at("/secret")}, which is not in \`urls\``),
  ]);
  assertEquals(server.asked.includes("/secret"), false);
});

Deno.test("instructions() leaves out a URL that fails or is too large, and stops reading", async () => {
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  const endless = () =>
    new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(10_000)), cancel: () => leave() });
  await using server = served((path) => {
    if (path === "/404") return new Response("none", { status: 404 });
    if (path === "/304") return new Response(null, { status: 304 });
    return new Response(path === "/bytes" ? Uint8Array.of(0xff) : endless());
  });
  const urls = ["/404", "/304", "/bytes", "/endless"].map((path) => server.origin + path);
  const { loaded, errors } = await reported(from(urls, { maxBytes: 50_000 }));
  await left;
  assertEquals(loaded, []);
  assertEquals(errors.map((error) => error.replaceAll(server.origin, "")).toSorted(), [
    "Cannot load instructions from /304: Cannot fetch /304: its status is 304",
    "Cannot load instructions from /404: Cannot fetch /404: its status is 404",
    "Cannot load instructions from /bytes: The encoded data is not valid",
    "Cannot load instructions from /endless: Cannot fetch /endless: it has more than 50000 bytes",
  ]);
});

Deno.test("instructions() stops waiting for a URL after `time`", async () => {
  using time = new FakeTime();
  using _ = hanging();
  const { loaded, errors } = await advanceUntilSettled(time, reported(from(["http://127.0.0.1/a"], { time: 1_000 })));
  assertEquals([loaded, errors], [[], ["Cannot load instructions from http://127.0.0.1/a: Not done after 1000 ms"]]);
});

Deno.test("instructions() accepts a `time` longer than a timer can run", async () => {
  await using server = served(async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return new Response("Be brief.");
  });
  const path = `${server.origin}/a`;
  const { loaded, errors } = await reported(from([path], { time: Infinity }));
  assertEquals([loaded, errors], [[{ type: "instructions.loaded", path, reason: "session" }], []]);
});

Deno.test("instructions() stops fetching when the run is stopped", async () => {
  using hung = hanging();
  const handle = agent({ model: scripted("Done."), use: from(["http://127.0.0.1/a"]) }).run("Go");
  await hung.asked;
  handle.stop();
  assertEquals((await handle.result).status, "aborted");
});

/** Has `fetch` wait until it is stopped, until this is disposed of; `asked` settles with the first request. */
function hanging() {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const fetching = stub(globalThis, "fetch", (_, { signal } = {}) => {
    resolve();
    return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  });
  return { asked, [Symbol.dispose]: () => fetching.restore() };
}

Deno.test("instructions() throws for an invalid URL, and for http without `insecure`", () => {
  const make = (url: string, insecure = false) => () => instructions(memoryFiles(), { urls: [url], insecure });
  assertThrows(make("AGENTS.md"), TypeError, "Cannot load instructions from AGENTS.md: it is not a URL");
  assertThrows(
    make("http://example.com/a"),
    TypeError,
    "Cannot load instructions from http://example.com/a: its protocol is http:; expected https:",
  );
  assertThrows(
    make("file:///etc/passwd", true),
    TypeError,
    "Cannot load instructions from file:///etc/passwd: its protocol is file:; expected https:",
  );
  assertThrows(make("data:text/plain,hi", true), TypeError, "expected https:");
  make("https://example.com/a")();
});

Deno.test("instructions() throws for an invalid size or time", () => {
  for (const none of [0, -1, NaN]) {
    const make = (options: InstructionsOptions) => () => instructions(memoryFiles(), options);
    assertThrows(
      make({ maxBytes: none }),
      RangeError,
      `Cannot create instructions(): \`maxBytes\` is ${none}; expected 1 or more`,
    );
    assertThrows(
      make({ time: none }),
      RangeError,
      `Cannot create instructions(): \`time\` is ${none}; expected a positive number`,
    );
  }
});
