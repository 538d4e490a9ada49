import { denied, deny, type Middleware } from "@jizai/jizai";
import { exportedHooks, exportMod } from "@jizai/jizai/middleware/mods/exported";
import { audit } from "@jizai/jizai/middleware/audit";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { assertEquals, assertThrows } from "@std/assert";
import { shell } from "../../support/hooked.ts";
import { type Loose, ran } from "../../support/modded.ts";

/** Evaluates the source of a module with the names that its imports have. */
function evaluated(source: string, names: Readonly<Record<string, unknown>>): Loose {
  const body = source.replace(/^import .*$/gm, "").replace("export function register", "return function register");
  return { register: new Function(...Object.keys(names), body)(...Object.values(names)) };
}

Deno.test("an exported middleware spells out its events, and decides as it does here", async () => {
  const source = exportMod({
    middleware: permissions({ deny: ["Bash"] }),
    imports: `import { permissions } from "@jizai/jizai/middleware/permissions";`,
    expression: `permissions({ deny: ["Bash"] })`,
  });
  assertEquals(source.match(/on\("[\w.]+", \(\$, e, next\)/g), ['on("tool.check", ($, e, next)']);
  const module = () => evaluated(source, { exportedHooks, permissions });
  const { lines } = await ran([{ name: "exported", module, tier: "prepend" }]);
  assertEquals(lines[1]?.startsWith("denied"), true);
  const allowed = await ran([{ name: "exported", module }], {
    tools: [shell({ name: "Other" })],
    calls: [{ id: "a", name: "Other", input: { command: "x" } }],
  });
  assertEquals(allowed.lines[1], "ok ran x");
});

/** Runs a middleware as a mod. */
async function ranExported(middleware: Middleware) {
  const source = exportMod({ middleware, imports: "", expression: "middleware" });
  return await ran([{ name: "exported", module: () => evaluated(source, { exportedHooks, middleware }) }]);
}

Deno.test("hooks at tool, input, prompt and session run as those of a mod", async () => {
  const log: string[] = [];
  const { lines, result } = await ranExported({
    name: "all",
    async session(ctx, next) {
      log.push("session");
      const result = await next({ context: [...ctx.context, "From session."] });
      log.push(`ended ${result.status}`);
      return result;
    },
    async tool(ctx, next) {
      const result = await next({ input: { command: "pwd" } });
      log.push(`${ctx.name} ${result.status}`);
      return { ...result, context: ["Noted."] };
    },
    input: (ctx, next) => next({ messages: ctx.messages, context: ["From input."] }),
    prompt: (ctx, next) => next({ prompt: { ...ctx.prompt, parts: [{ type: "text", text: "Rewritten" }] } }),
  });
  assertEquals(log, ["session", "Bash ok", "ended done"]);
  const texts = result.messages.slice(0, 3).map((message: Loose) => message.parts[0].text);
  assertEquals(texts, ["# context 1\nFrom session.", "Rewritten", "From input."]);
  assertEquals(lines.slice(-3), ["ok ran pwd", "context Noted.", "assistant Done."]);
});

Deno.test("a guard that fails refuses in the exported module", async () => {
  const failing: Middleware = { name: "guard", approval: () => Promise.reject(new Error("broken")) };
  assertEquals((await ranExported(failing)).lines[1], "denied A guard failed.");
  const throwing: Middleware = {
    name: "guard",
    approval: (_ctx, next) => next(),
    tool: () => Promise.reject(new Error("broken")),
  };
  assertEquals((await ranExported(throwing)).lines[1], "denied A guard failed.");
  const denying: Middleware = {
    name: "guard",
    tool: () => Promise.resolve(denied("No.")),
    approval: () => Promise.resolve(deny("Never.")),
  };
  assertEquals((await ranExported(denying)).lines[1], "denied No.");
  const ending: Middleware = {
    name: "guard",
    tool(ctx) {
      throw ctx.run.end("Enough");
    },
  };
  assertEquals((await ranExported(ending)).lines[1], "denied Enough");
});

Deno.test("points that a mod does not have are refused with the reason", () => {
  const refused = (middleware: Middleware) => () => exportMod({ middleware, imports: "", expression: "" });
  assertThrows(
    refused({ name: "a", turn: (_ctx, next) => next() }),
    TypeError,
    'Cannot export "a": it has a hook at turn',
  );
  assertThrows(refused({ name: "a", execute: (_ctx, next) => next() }), TypeError, "at execute");
  assertThrows(refused({ name: "a" }), TypeError, "expected a hook");
  assertThrows(refused({ name: "a", tools: [shell()] }), TypeError, "it has tools");
});

Deno.test("audit() is exported without its hook at abort", async () => {
  const records: string[] = [];
  const middleware = audit((line) => void records.push(JSON.parse(line).type));
  assertThrows(() => exportMod({ middleware, imports: "", expression: "" }), TypeError, "leave it out with `leaveOut`");
  const source = exportMod({ middleware, imports: "", expression: "middleware", leaveOut: ["abort"] });
  await ran([{ name: "exported", module: () => evaluated(source, { exportedHooks, middleware }) }]);
  assertEquals(records, ["prompt", "call", "run"]);
});
