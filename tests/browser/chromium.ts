/**
 * Headless Chromium, driven by playwright-core. Debian has it: `apt-get install chromium-headless-shell`.
 *
 * @module
 */
import { assertEquals } from "@std/assert";

/** A page of the browser, closed when it is disposed of: the part of playwright's API that the tests use. */
export interface Page extends AsyncDisposable {
  /** The errors of the page, and its console messages. */
  readonly troubles: readonly string[];
  goto(url: string): Promise<unknown>;
  reload(): Promise<unknown>;
  locator(selector: string): Locator;
  getByRole(role: string, options?: { readonly name: string; readonly exact?: boolean }): Locator;
  getByLabel(text: string): Locator;
  readonly keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> };
  setViewportSize(size: { readonly width: number; readonly height: number }): Promise<void>;
  emulateMedia(media: { readonly colorScheme: "light" | "dark" }): Promise<void>;
  /** Evaluates a script. */
  evaluate(script: string): Promise<unknown>;
  context(): { setOffline(offline: boolean): Promise<void> };
  /** Answers the requests to addresses that match a pattern. */
  route(pattern: string, answer: (route: Route) => Promise<void>): Promise<void>;
  /** Writes an image of the viewport. */
  screenshot(options: { readonly path: string }): Promise<unknown>;
}

/** A request that was intercepted. */
export interface Route {
  fulfill(response: { readonly contentType: string; readonly body: string }): Promise<void>;
}

/** A rectangle, in pixels. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Finds elements of the page. */
export interface Locator {
  click(): Promise<void>;
  fill(text: string): Promise<void>;
  selectOption(value: string): Promise<unknown>;
  check(): Promise<void>;
  count(): Promise<number>;
  waitFor(): Promise<void>;
  textContent(): Promise<string | null>;
  inputValue(): Promise<string>;
  allTextContents(): Promise<string[]>;
  getAttribute(name: string): Promise<string | null>;
  /** The place on the page, or null if the element is not visible. */
  boundingBox(): Promise<Box | null>;
}

// A variable hides the import from Deno, which would otherwise download it for all tests.
const driver = "npm:playwright-core@1.65.1";

/** The path of the browser: `CHROMIUM`, or Debian's. */
const executablePath = Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium-headless-shell";

/** Milliseconds that a step may take on a busy machine. */
const timeout = 60_000;

/** Options that skip a test if the browser is not installed. The driver keeps resources open, so the sanitizers are off. */
export const inBrowser = {
  ignore: !await Deno.stat(executablePath).then(({ isFile }) => isFile, () => false),
  sanitizeOps: false,
  sanitizeResources: false,
};

/** A page and the server of its app. Both are closed when it is disposed of. */
export interface Visit extends AsyncDisposable {
  readonly page: Page;
}

/** Serves an app on this machine, and opens a page at a path. */
export async function visit(
  { fetch }: { readonly fetch: (request: Request) => Response | Promise<Response> },
  path = "/",
): Promise<Visit> {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, fetch);
  const page = await opened();
  await page.goto(`http://127.0.0.1:${server.addr.port}${path}`);
  return {
    page,
    async [Symbol.asyncDispose]() {
      await page[Symbol.asyncDispose]();
      await server.shutdown();
    },
  };
}

/** Types a message into the page, and sends it. */
export async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.keyboard.press("Enter");
}

/** Expects the page to show a value: it draws after its state has changed, so what is read is compared again for up to ten seconds. */
export async function shows(read: () => Promise<unknown>, expected: unknown): Promise<void> {
  for (let attempt = 0;; attempt++) {
    try {
      return assertEquals(await read(), expected);
    } catch (error) {
      if (attempt === 200) throw error;
      await new Promise((next) => setTimeout(next, 50));
    }
  }
}

/** Opens a new page. */
async function opened(): Promise<Page> {
  const { chromium } = await import(driver);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], timeout });
  const page = await browser.newPage();
  page.setDefaultTimeout(timeout);
  const troubles: string[] = [];
  page.on("console", (message: { text(): string }) => troubles.push(message.text()));
  page.on("pageerror", (error: unknown) => troubles.push(String(error)));
  return Object.assign(page, { troubles, [Symbol.asyncDispose]: () => browser.close() });
}
