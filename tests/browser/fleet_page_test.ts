/**
 * The page of examples/fleet, in a browser.
 *
 * @module
 */
import { agent, serve } from "@jizai/jizai";
import { serverMetricList } from "@jizai/jizai/middleware/server_metrics";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { Hono } from "hono";
import { processMetrics, readMetrics } from "../../examples/fleet/metrics.ts";
import { eventsOf, post } from "../support/requests.ts";
import { inBrowser, shows, visit } from "./chromium.ts";

Deno.test({
  ...inBrowser,
  name: "the page of the fleet draws a card for each metric, keeps what a dead process has counted, and the focus",
  async fn() {
    const metrics = processMetrics();
    const usage = { input: 1_200, output: 300 };
    const app = serve(agent({ model: scripted({ text: "Hi", usage }, { text: "Hi", usage }) }), {
      observe: metrics.observe,
    });
    metrics.watch(app);
    for (const prompt of ["One", "Two"]) await eventsOf(post(app, "/runs", { prompt }));
    await app.settled();
    await using process = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async () => {
      return new Response(await metrics.text());
    });
    const page = await Deno.readTextFile("examples/fleet/page.html");
    let alive = true;
    let reads = 0;
    const targets = () => alive ? [{ name: "one", url: `http://127.0.0.1:${process.addr.port}` }] : [];
    const served = new Hono()
      .get("/", (c) => c.html(page))
      .get("/fleet", (c) => {
        reads++;
        return c.json([{ name: "one", alive, runs: alive ? ["run-1"] : [] }]);
      })
      .get("/fleet/metrics", async (c) => c.json(await readMetrics(targets())));
    await using visited = await visit(served);
    const { page: shown } = visited;
    await shows(() => shown.locator("#metrics .card").count(), serverMetricList.length);
    const textOf = (title: string) =>
      shown.evaluate(`[...document.querySelectorAll("#metrics .card")]
        .find((card) => card.querySelector("h3").textContent === "${title}").innerText.replace(/\\s+/g, " ")`);
    await shows(() => textOf("Started"), "Started 2 total prompt 2");
    await shows(() => textOf("Tokens"), "Tokens 3K total scripted input 2.4K scripted output 600");
    await shows(() => shown.locator("#processes").textContent(), "oneserves, 1 runKillrun-1");
    await shown.evaluate(`document.querySelector(".kill").focus()`);
    const before = reads;
    await shows(() => Promise.resolve(reads > before + 1), true); // it was drawn again
    assertEquals(await shown.evaluate("document.activeElement.textContent"), "Kill");
    alive = false;
    await shows(() => shown.locator("#processes").textContent(), "onedeadKill");
    await shows(() => textOf("Runs"), "Runs 0 now");
    await shows(() => textOf("Started"), "Started 2 total prompt 2");
    await shown.setViewportSize({ width: 390, height: 800 });
    assertEquals(await shown.evaluate("document.documentElement.scrollWidth"), 390);
    assertEquals(shown.troubles, []);
  },
});
