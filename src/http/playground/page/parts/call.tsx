/**
 * A call in the transcript.
 *
 * @module
 */
import type { Entry } from "../state/view.ts";

const maxArguments = 160;

/** A call: one line with its arguments and its status, which opens to its whole input and result. */
export function CallCard({ entry: { name, input = "", text, status = "", verdict } }: { readonly entry: Entry }) {
  const words = verdict === undefined || verdict.startsWith(status) ? verdict ?? status : `${status} · ${verdict}`;
  return (
    <details class="call">
      <summary>
        <span class="tool">{name}</span>
        <span class="arguments">{argumentsOf(input)}</span>
        <span class={`status ${kindOf(status)}`}>{words}</span>
      </summary>
      <div class="label">Input</div>
      <pre class="input" tabindex={0}>{input}</pre>
      <div class="label" hidden={text === ""}>Result</div>
      <pre class="result" tabindex={0} hidden={text === ""}>{text}</pre>
    </details>
  );
}

/** Returns the arguments in one line, such as `city: "Rome", days: 3`. */
function argumentsOf(input: string): string {
  const line = input.replace(/\s+/g, " ");
  try {
    const value: unknown = JSON.parse(input);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return shortened(line);
    return shortened(Object.entries(value).map(([key, each]) => `${key}: ${JSON.stringify(each)}`).join(", "));
  } catch (error) {
    if (error instanceof SyntaxError) return shortened(line);
    throw error;
  }
}

function shortened(line: string): string {
  return line.length > maxArguments ? `${line.slice(0, maxArguments)}…` : line;
}

function kindOf(status: string): string {
  if (status === "ok") return "ok";
  if (status === "error" || status === "timeout" || status === "denied") return "bad";
  return status === "asks you" ? "asks" : "";
}
