/**
 * Writes screenshots of the playground to `dist/screenshots`, on a desktop and on a phone, in light and in dark.
 *
 * ```sh
 * deno task screenshots
 * deno task screenshots trace failure # only these scenes
 * ```
 *
 * @module
 */
import { agent, type Middleware, serve, text, textOf, tool } from "@jizai/jizai";
import { logger } from "@jizai/jizai/middleware/logger";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { redact } from "@jizai/jizai/middleware/redact";
import { retry } from "@jizai/jizai/middleware/retry";
import { ModelError } from "@jizai/jizai";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { playground } from "@jizai/jizai/playground";
import { trace } from "@jizai/jizai/trace";
import * as z from "zod";
import { assistant } from "../../examples/assistant/assistant.ts";
import { embedded } from "../../examples/assistant/model.ts";
import { prompts, switches } from "../../examples/assistant/tour.ts";
import { type Page, send, visit } from "./chromium.ts";

const folder = "dist/screenshots";
const sizes = [{ width: 1280, height: 800 }, { width: 390, height: 800 }];

const answer = `# Two days in Rome

It will be **sunny on Saturday** and cooler on Sunday, so go outside first:

1. Saturday: the *Forum* and the Palatine, before ten o'clock
2. Sunday: the Capitoline Museums, which open at \`09:30\`

| Day      | Weather | High  |
| -------- | ------- | ----- |
| Saturday | sunny   | 24 °C |
| Sunday   | cloudy  | 19 °C |

\`\`\`ts
const trip = await book({ city: "Rome", nights: 2 });
\`\`\`

> The museums are free on the first Sunday of a month.

See [the opening hours](https://www.museicapitolini.org/) for details. ![A map](https://example.com/map.png)`;

const ask: ScriptedStep = {
  text: "I found a room near the Forum. Shall I book it?",
  calls: [["book", { city: "Rome", hotel: "Hotel Foro", nights: 2, email: "ada@example.com" }]],
  usage: { input: 1_812, output: 74, cached: 1_204 },
};
const look: ScriptedStep = {
  reasoning: "I need the weather of both days before I plan anything.",
  text: "Let me look at the weather first.",
  calls: [["weather", { city: "Rome", day: "Saturday" }], ["weather", { city: "Rome", day: "Sunday" }], [
    "delete_trip",
    {
      id: 7,
    },
  ]],
  usage: { input: 1_204, output: 61 },
};
const tell: ScriptedStep = { text: answer.split(/(?<= )/), usage: { input: 2_110, output: 312, cached: 1_812 } };

/** Turns temperatures into Fahrenheit, and adds the country to the input. */
const fahrenheit: Middleware = {
  name: "fahrenheit",
  async tool(ctx, next) {
    if (ctx.name !== "weather") return await next();
    const result = await next({ input: { ...ctx.input as object, country: "Italy" } });
    return { ...result, ...text(textOf(result).replace("24 °C", "75 °F").replace("19 °C", "66 °F")) };
  },
};

/** Returns an app whose model follows the steps. */
function app(steps: readonly ScriptedStep[], use: readonly Middleware[] = []) {
  const weather = tool({
    name: "weather",
    description: "Forecasts the weather of a city",
    input: z.object({ city: z.string(), day: z.string() }),
    execute: async ({ day }) => {
      await new Promise((resolve) => setTimeout(resolve, day === "Sunday" ? 140 : 90));
      return day === "Sunday" ? "Cloudy, 19 °C" : "Sunny, 24 °C";
    },
  });
  const book = tool({
    name: "book",
    description: "Books a hotel room",
    input: z.object({ city: z.string(), hotel: z.string(), nights: z.number(), email: z.string() }),
    execute: ({ hotel, nights }) => `Booked ${nights} nights at ${hotel}.`,
  });
  const deleteTrip = tool({
    name: "delete_trip",
    description: "Deletes a trip",
    input: z.object({ id: z.number() }),
    execute: ({ id }) => `Deleted trip ${id}.`,
  });
  const assistant = agent({
    name: "Travel planner",
    model: Object.assign(scripted(...steps), { id: "claude-sonnet" }),
    tools: [weather, book, deleteTrip],
    use: [
      logger(() => {}),
      retry({ attempts: 2, delay: 1 }),
      redact(),
      ...use,
      permissions({
        ask: [{ tool: "book", why: "Booking costs money. Book this room?" }],
        allow: ["weather", "book"],
        otherwise: "deny",
      }),
    ],
    trace,
  });
  const page = playground({
    prompts: ["Plan a weekend in Rome", "What is the weather in Oslo on Friday?", "Which trips have I booked?"],
    prices: { "claude-sonnet": { input: 3, output: 15, cached: 0.3 } },
  });
  return serve(assistant, { page, onClientGone: "detach", onError: () => {} });
}

/** Returns the app of the tour. */
function tour() {
  return serve(assistant(embedded({ pause: 1 }), { trace, pace: 60 }), {
    page: playground({ prompts, switches }),
    vars: (c) => ({ off: c.req.header("x-off")?.split(",") ?? [] }),
    onClientGone: "detach",
    onError: () => {},
  });
}

/** Returns the scene of a proposed prompt, in the conversation or in the trace. */
function proposed(text: string, state: string, view: "conversation" | "trace" = "conversation"): Scene {
  return {
    app: tour,
    async play(page) {
      await send(page, text);
      await until(page, state);
      if (view === "trace") await openTrace(page);
    },
  };
}

/** Returns a step that fails as a provider does that has no capacity. */
function fail(): ScriptedStep {
  return { error: new ModelError("The provider is overloaded", { code: "overloaded" }) };
}

async function until(page: Page, state: string): Promise<void> {
  await page.locator(`#state:text-is("${state}")`).waitFor();
}

const booking: readonly ScriptedStep[] = [
  look,
  ask,
  { text: "Booked. Have a good time!", usage: { input: 2_320, output: 12, cached: 2_110 } },
];

/** Sends a prompt whose call a person approves. */
async function approveBooking(page: Page): Promise<void> {
  await send(page, "Plan a weekend in Rome, and book a room");
  await until(page, "paused");
  await page.getByRole("button", { name: "Approve" }).click();
  await until(page, "done");
}

/** Opens the trace where the page shows one panel at a time. */
async function openTrace(page: Page): Promise<void> {
  const tab = page.getByRole("button", { name: "Trace", exact: true });
  if ((await page.locator("nav").boundingBox()) !== null) await tab.click();
}

/** A scene: it opens an app, that of the tour or one that follows steps, and brings it to the state of the image. */
interface Scene {
  readonly steps?: readonly ScriptedStep[];
  readonly app?: () => ReturnType<typeof app> | ReturnType<typeof tour>;
  play(page: Page): Promise<void>;
}

/** The scenes, by name. */
const scenes: Readonly<Record<string, Scene>> = {
  tour: { app: tour, play: async () => {} },
  parallel: proposed("How many lanterns, kettles, hooks and bowls do you have?", "done", "trace"),
  refund: proposed("Refund order 1042", "paused"),
  refund_trace: proposed("Refund order 1042", "paused", "trace"),
  masked: proposed("Which card paid order 1042?", "done"),
  denied: proposed("Delete the customer Ada", "done"),
  retried: proposed("What does a parcel to Oslo cost?", "done", "trace"),
  budget: proposed("Compare the price of every item with every other", "limit"),
  subagent: proposed("Find a gift for someone who loves tea", "done", "trace"),
  request: {
    app: tour,
    async play(page) {
      await send(page, "Which card paid order 1042?");
      await until(page, "done");
      await openTrace(page);
      await page.locator("#onion button.name:has-text('model embedded') >> nth=-1").click();
    },
  },
  hook: {
    app: () => app([look, tell], [fahrenheit]),
    async play(page) {
      await send(page, "Plan a weekend in Rome");
      await until(page, "done");
      await openTrace(page);
      await page.getByLabel("Hide hooks that passed").check();
      await page.locator("#onion button.name:has-text('fahrenheit at tool') >> nth=0").click();
    },
  },
  bench: {
    app: tour,
    async play(page) {
      await page.locator("#empty .tools button:has-text('payment')").click();
      await page.getByLabel("Input").fill('{ "order": "1042" }');
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await page.locator("#bench .result:has-text('Ada paid')").waitFor();
    },
  },
  bench_asks: {
    app: tour,
    async play(page) {
      await page.locator("#empty .tools button:has-text('refund')").click();
      await page.getByLabel("Input").fill('{ "order": "1042", "amount": 80 }');
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await page.getByRole("button", { name: "Approve" }).waitFor();
    },
  },
  compared: {
    app: tour,
    async play(page) {
      await send(page, "Delete the customer Ada");
      await until(page, "done");
      await page.locator(".tour summary").click();
      await page.getByLabel("permissions").click();
      await openTrace(page);
      await page.getByRole("button", { name: "Run again and compare" }).click();
      await page.locator("#comparison td:has-text('Deleted Ada and all orders.') >> nth=0").waitFor();
    },
  },
  guides: proposed("How do I ask a person before a tool runs?", "done"),
  empty: { steps: [], play: async () => {} },
  answer: {
    steps: [look, tell],
    async play(page) {
      await send(page, "Plan a weekend in Rome");
      await until(page, "done");
    },
  },
  approval: {
    steps: [look, ask],
    async play(page) {
      await send(page, "Plan a weekend in Rome, and book a room");
      await until(page, "paused");
    },
  },
  failure: {
    steps: [tell, fail(), fail()],
    async play(page) {
      await send(page, "Plan a weekend in Rome");
      await until(page, "done");
      await send(page, "And one in Oslo");
      await until(page, "failed");
    },
  },
  trace: {
    steps: booking,
    async play(page) {
      await approveBooking(page);
      await send(page, "Thanks");
      await until(page, "failed");
      await openTrace(page);
      await page.locator("#runs button >> nth=0").click();
    },
  },
  resumed: {
    steps: booking,
    async play(page) {
      await approveBooking(page);
      await openTrace(page);
      await page.getByLabel("Hide hooks that passed").check();
      await page.evaluate(`document.querySelector("#onion").scrollTop = 1e6`);
    },
  },
};

await Deno.mkdir(folder, { recursive: true });
for (const [name, { steps = [], play, ...scene }] of Object.entries(scenes)) {
  if (Deno.args.length > 0 && !Deno.args.includes(name)) continue;
  for (const size of sizes) {
    await using open = await visit(scene.app?.() ?? app(steps));
    await open.page.setViewportSize(size);
    await play(open.page);
    for (const colorScheme of ["light", "dark"] as const) {
      await open.page.emulateMedia({ colorScheme });
      const path = `${folder}/${name}_${size.width}_${colorScheme}.png`;
      await open.page.screenshot({ path });
      console.log(path);
    }
    if (open.page.troubles.length > 0) console.log(open.page.troubles);
  }
}
