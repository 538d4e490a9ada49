/**
 * Headless Chromium, driven by playwright-core. Debian has it: `apt-get install chromium-headless-shell`.
 *
 * @module
 */

/** A page, until it is disposed of: as much of playwright's as is used. */
export interface Page extends AsyncDisposable {
  /** The errors of the page, and the messages of its console. */
  readonly troubles: readonly string[];
  goto(url: string): Promise<unknown>;
  reload(): Promise<unknown>;
  locator(selector: string): Locator;
  getByRole(role: string, options?: { readonly name: string; readonly exact?: boolean }): Locator;
  getByLabel(text: string): Locator;
  readonly keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> };
  setViewportSize(size: { readonly width: number; readonly height: number }): Promise<void>;
  emulateMedia(media: { readonly colorScheme: "light" | "dark" }): Promise<void>;
  /** Evaluates a script, as text. */
  evaluate(script: string): Promise<unknown>;
  context(): { setOffline(offline: boolean): Promise<void> };
}

/** Elements of a page. */
export interface Locator {
  click(): Promise<void>;
  fill(text: string): Promise<void>;
  check(): Promise<void>;
  count(): Promise<number>;
  waitFor(): Promise<void>;
  textContent(): Promise<string | null>;
  inputValue(): Promise<string>;
  allTextContents(): Promise<string[]>;
}

// not seen by whoever gathers imports: what only these tests need is nowhere else downloaded
const driver = "npm:playwright-core@1.65.1";

/** Where the browser is: `CHROMIUM` says so, if it is elsewhere than where Debian has it. */
const executablePath = Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium-headless-shell";

/** Milliseconds that each thing may take, however busy the machine is. */
const timeout = 60_000;

/** Tests that need the browser are left out where there is none. One that is driven holds on to more than they can see. */
export const inBrowser = {
  ignore: !await Deno.stat(executablePath).then(({ isFile }) => isFile, () => false),
  sanitizeOps: false,
  sanitizeResources: false,
};

/** A page at a server of its own, until both are disposed of. */
export interface Visit extends AsyncDisposable {
  readonly page: Page;
}

/** Serves an app on this machine, and opens a page at a path of it. */
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

/** Says something where a page asks for a message. */
export async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.keyboard.press("Enter");
}

/** Opens a page of its own. */
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
