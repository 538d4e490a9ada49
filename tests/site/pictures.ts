/**
 * Writes the pictures of the README: the page of the playground, which needs Chromium, and the stream of a run.
 *
 * ```sh
 * deno task pictures
 * ```
 *
 * @module
 */
import { agent, tool } from "@jizai/jizai";
import { collect, outline, scripted } from "@jizai/jizai/testing";
import * as z from "zod";
import { output } from "../package/pack.ts";

const folder = "examples/guides";

if (import.meta.main) {
  await Deno.writeTextFile(`${folder}/stream.svg`, await streamPicture());
  await output("deno", "task", "screenshots", "approval");
  await Deno.copyFile("dist/screenshots/approval_1280_light.png", `${folder}/page.png`);
  console.log(`${folder}/stream.svg\n${folder}/page.png`);
}

/** Returns a picture of the events of a run that asks a person: each line appears as the event would. */
export async function streamPicture(): Promise<string> {
  const lines = await eventsOfRun();
  const height = 20 * lines.length + 40;
  const rows = lines.map((line, index) => {
    const [type = "", ...rest] = line.split(" ");
    const at = `y="${40 + 20 * index}" style="animation-delay: ${(index * 0.25).toFixed(2)}s"`;
    return `  <text x="20" ${at}><tspan class="${classOf(type)}">${type}</tspan> ${escaped(rest.join(" "))}</text>`;
  });
  return `<!-- deno-fmt-ignore-file -->
<svg xmlns="http://www.w3.org/2000/svg" width="760" height="${height}" viewBox="0 0 760 ${height}">
  <style>
    text { font: 14px ui-monospace, Menlo, Consolas, monospace; fill: #c9d1d9; animation: show 0.1s both; }
    .call { fill: #79c0ff; } .person { fill: #ffa657; } .text { fill: #7ee787; } .other { fill: #8b949e; }
    @keyframes show { from { opacity: 0; } }
    @media (prefers-reduced-motion: reduce) { text { animation: none; } }
  </style>
  <rect width="760" height="${height}" rx="8" fill="#0d1117" />
${rows.join("\n")}
</svg>
`;
}

/** Runs an agent until it asks a person, approves, and returns a line for each event. */
async function eventsOfRun(): Promise<readonly string[]> {
  const weather = tool({
    name: "weather",
    description: "Current weather of a city",
    input: z.object({ city: z.string() }),
    execute: ({ city }) => `Sunny in ${city}.`,
  });
  const book = tool({
    name: "book",
    description: "Books a room",
    input: z.object({ city: z.string() }),
    ask: true,
    execute: ({ city }) => `Booked in ${city}.`,
  });
  const model = scripted(
    { calls: [["weather", { city: "Kyoto" }], ["weather", { city: "Oslo" }]] },
    { text: "Kyoto it is.", calls: [["book", { city: "Kyoto" }]] },
    { text: ["It is sunny, ", "and your room ", "is booked."] },
  );
  const assistant = agent({ model, tools: [weather, book] });
  const handle = assistant.run("A room where it is sunny, please");
  const asked = await collect(handle);
  const answers = asked.result.questions.map(({ callId }) => ({ callId, type: "approve" as const }));
  const answered = await collect(assistant.resume({ session: handle.session, answers }));
  const lines = [...outline(asked.events), ...outline(answered.events)];
  return lines.filter((line) => !/^(session|turn|model)\./.test(line)); // which say when a part begins and ends
}

function classOf(type: string): string {
  if (/^(run\.paused|approval\.asked)$/.test(type)) return "person";
  if (type.startsWith("text.")) return "text";
  return /^(tool|call|approval)\./.test(type) ? "call" : "other";
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
