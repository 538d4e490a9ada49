import { agent } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { Hono } from "hono";
import { drop } from "../support/asking.ts";
import { linked, linksOf } from "../support/linked.ts";
import { inBrowser, shows, visit } from "./chromium.ts";

Deno.test(
  "the page of an approval link fits a phone in both colour schemes, and its button decides",
  inBrowser,
  async () => {
    const table = "a_table_with_a_long_name_".repeat(10);
    const { app, served, start } = linked(
      agent({ model: scripted({ calls: [["drop", { table }]] }, "Done."), tools: [drop] }),
    );
    const { session, questions: [question] } = await start();
    const { pathname } = new URL(linksOf(question).deny);
    await using visited = await visit(new Hono().all("*", ({ req }) => app.request(req.path, req.raw)), pathname);
    const { page } = visited;
    await page.setViewportSize({ width: 390, height: 844 });
    const look = `JSON.stringify([
    document.documentElement.scrollWidth,
    getComputedStyle(document.documentElement).backgroundColor,
    getComputedStyle(document.querySelector("h1")).color,
    getComputedStyle(document.querySelector("button")).backgroundColor,
  ])`;
    for (const [colorScheme, text] of [["light", "rgb(0, 0, 0)"], ["dark", "rgb(255, 255, 255)"]] as const) {
      await page.emulateMedia({ colorScheme });
      const [width, , color, button] = JSON.parse(String(await page.evaluate(look)));
      assertEquals([width, color, button], [390, text, "rgb(163, 35, 31)"]);
    }
    await page.getByLabel("Reason").fill("Not this one");
    await page.getByRole("button", { name: "Deny" }).click();
    await shows(() => page.locator("h1").textContent(), "Denied");
    await served.settled();
    await page.reload(); // which sends the form again
    await shows(() => page.locator("h1").textContent(), "This question is closed");
    assertEquals(page.troubles.filter((text) => !text.includes("409")), []);
    const { messages } = await (await served.request(`/sessions/${session}`)).json();
    assertEquals(JSON.stringify(messages).includes("A person said no: Not this one"), true);
  },
);
