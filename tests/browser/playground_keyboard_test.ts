import { tool } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { inBrowser, type Page, send, shows } from "./chromium.ts";
import { open, until } from "./playground_scene.ts";

const wait = tool({
  name: "wait",
  description: "Waits until the run is stopped",
  input: z.object({}),
  execute: (_input, { signal }) =>
    new Promise<string>((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
});

/** Returns the name of the focused element. */
function focused(page: Page): Promise<unknown> {
  return page.evaluate(`document.activeElement.id || document.activeElement.textContent`);
}

Deno.test("playground: Escape stops the run, Shift and Enter add a line", inBrowser, async () => {
  await using talk = await open({ steps: [{ calls: [["wait", {}]] }], tools: [wait] });
  const { page } = talk;
  await page.locator("#words:focus").waitFor(); // the page focuses the field once it is drawn
  await page.keyboard.type("one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two");
  await page.keyboard.press("Enter");
  await page.locator("#onion .span.call").waitFor();
  await shows(() => page.locator(".from-you .text").textContent(), "one\ntwo");
  await page.keyboard.press("Escape");
  await until(page, "aborted");
  await shows(() => focused(page), "words");
});

Deno.test(
  "playground: Tab leads through the approval before the text field, and Escape leads back",
  inBrowser,
  async () => {
    await using talk = await open({ steps: [{ calls: [["order", { what: "tea" }]] }, "Done."] });
    const { page } = talk;
    await send(page, "Tea");
    await until(page, "paused");
    await shows(() => focused(page), "words");
    const order: unknown[] = [];
    for (let tabs = 0; tabs < 4; tabs++) {
      await page.keyboard.press("Shift+Tab");
      order.push(
        await page.evaluate(
          `(({ type, textContent }) => type === "checkbox" ? type : textContent)(document.activeElement)`,
        ),
      );
    }
    assertEquals(order, ["checkbox", "Answer instead", "Deny", "Approve"]);
    await page.keyboard.press("Escape");
    await shows(() => focused(page), "words");
    for (let tabs = 0; tabs < 4; tabs++) await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await until(page, "done");
  },
);

Deno.test("playground: invalid JSON in the approval is reported, and its field is focused", inBrowser, async () => {
  await using talk = await open({ steps: [{ calls: [["order", { what: "tea" }]] }, "Done."] });
  const { page } = talk;
  await send(page, "Tea");
  await page.getByLabel("Input of order").fill("{ no JSON");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator(`#problem:has-text("The input is not JSON")`).waitFor();
  await shows(() => page.evaluate(`document.activeElement.value`), "{ no JSON");
  await shows(() => page.locator("#state").textContent(), "paused");
});

Deno.test("playground: a screen reader finds roles, names and live regions", inBrowser, async () => {
  await using talk = await open({ steps: [{ calls: [["order", { what: "tea" }]] }, "Done."] });
  const { page } = talk;
  await send(page, "Tea");
  await until(page, "paused");
  const roles = [
    ["log", "Transcript"],
    ["list", "Trace"],
    ["list", "Runs of this session"],
    ["list", "Legend"],
    ["main", "Conversation"],
    ["complementary", "Trace"],
    ["form", "Approve order?"],
    ["textbox", "Message"],
    ["textbox", "Input of order"],
    ["checkbox", "Do not ask about order again"],
    ["button", "New conversation"],
  ] as const;
  const counts = roles.map(([role, name]) => page.getByRole(role, { name, exact: true }).count());
  await shows(() => Promise.all(counts), roles.map(() => 1));
  await shows(() => page.locator("#state").getAttribute("role"), "status");
  await shows(() => page.locator("#asked").getAttribute("aria-live"), "assertive");
  await shows(() => page.locator("#log").getAttribute("aria-busy"), "false");
  const unnamed = `[...document.querySelectorAll("button, textarea, input")].filter((each) =>
    !each.textContent.trim() && !each.labels?.length).length`;
  await shows(() => page.evaluate(unnamed), 0);
  const ids = `(() => { const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
    return ids.length - new Set(ids).size; })()`;
  await shows(() => page.evaluate(ids), 0);
});
