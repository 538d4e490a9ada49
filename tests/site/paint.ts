/**
 * Measures the first paint of the site: how long a reader sees nothing, in headless Chromium, from a server of this machine, without a cache. Prints the median
 * of each page beside its budget, and exits with 1 if one takes far longer. Needs `dist/site`, which `deno task site` builds.
 *
 * ```sh
 * deno task paint
 * ```
 *
 * @module
 */
import { visit } from "../browser/chromium.ts";
import { site } from "./build.ts";

/** Milliseconds to the first paint: the budget, and the most that this command accepts. A busy machine takes several times as long. */
const budget = 300;
const most = 1_000;

/** The pages: the shortest way in, a guide with programs, two programs side by side, and a page with many tables. */
const paths = ["/", "/start", "/from/langchain", "/middleware/redact"];

/** The loads of each page. */
const loads = 7;

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript",
  css: "text/css",
  json: "application/json",
  svg: "image/svg+xml",
  png: "image/png",
  woff2: "font/woff2",
};

/** Returns a file of the site. A page has the address of its file, without `.html`. */
async function fetchFile({ url }: Request): Promise<Response> {
  const { pathname } = new URL(url);
  const file = pathname.endsWith("/")
    ? `${pathname}index.html`
    : /\.\w+$/.test(pathname)
    ? pathname
    : `${pathname}.html`;
  const body = await Deno.readFile(site + file).catch(() => undefined);
  const type = types[file.slice(file.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  return new Response(body ?? "", {
    status: body ? 200 : 404,
    headers: { "content-type": type, "cache-control": "no-store" },
  });
}

/** The script that resolves to the milliseconds from the start of a load to its first paint with content. */
const firstPaint = `new Promise((resolve) =>
  new PerformanceObserver((list) =>
    list.getEntriesByName("first-contentful-paint").forEach(({ startTime }) => resolve(startTime))
  ).observe({ type: "paint", buffered: true })
)`;

await Deno.stat(`${site}/index.html`).catch(() => {
  throw new Error(`Cannot measure the site: ${site} does not exist; run \`deno task site\` first`);
});
await using open = await visit({ fetch: fetchFile });
const { page } = open;
const { origin } = new URL(String(await page.evaluate("location.href")));
let slow = false;
for (const path of paths) {
  const times: number[] = [];
  for (let load = 0; load < loads; load++) {
    await page.goto(origin + path);
    times.push(Number(await page.evaluate(firstPaint)));
  }
  const median = times.sort((a, b) => a - b)[Math.floor(loads / 2)] ?? Infinity;
  slow ||= median > most;
  console.log(
    `${path.padEnd(20)} ${median.toFixed(0).padStart(5)} ms   budget ${budget} ms${median > budget ? ", missed" : ""}`,
  );
}
if (slow) {
  console.error(`A page takes longer than ${most} ms.`);
  Deno.exitCode = 1;
}
