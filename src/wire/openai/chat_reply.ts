/**
 * Runs as chat completions. A model that is asked again cannot take back in them what it has streamed: it begins a new paragraph.
 *
 * @module
 */
import type { Event, FinishReason } from "../../protocol/event.ts";
import type { Usage } from "../../protocol/message.ts";
import { isForClient } from "../client_tool.ts";
import { done, frameOf } from "../frames.ts";
import type { Whole } from "../wire.ts";
import { outerId } from "./call_id.ts";
import { errorOf, type Last } from "./ended.ts";

const finishes: { readonly [key in FinishReason]: string } = {
  stop: "stop",
  calls: "stop", // of the agent's own tools, after which it goes on
  length: "length",
  filter: "content_filter",
  other: "stop",
};

/** What every piece of a completion says. */
function headOf(run: string, model: string) {
  return { id: `chatcmpl-${run}`, created: Math.floor(Date.now() / 1_000), model };
}

/** What the end of a run adds to what was said, and why nothing comes after it. */
function endOf(last: Last, session: string, finish: FinishReason, said: boolean) {
  const questions = last.type === "run.paused" ? last.questions : [];
  const calls = questions.filter(isForClient).map(({ callId = "", tool: name, input }) => ({
    id: outerId({ session, call: callId }),
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  const asked = questions.filter((question) => !isForClient(question)).flatMap(({ questions }) => questions);
  const text = last.type === "run.finished" && !said ? last.text : asked.join("\n");
  const short = last.type === "run.finished" && last.status === "limit";
  return { text, calls, finish_reason: calls.length > 0 ? "tool_calls" : short ? "length" : finishes[finish] };
}

function usageOf({ input, output, cached = 0 }: Usage) {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

/** Begins a stream; gives the frames of each event. `usage` says whether it ends with what the run took. */
export function streamed(model: string, usage: boolean): (event: Event) => string {
  let session = "";
  let head: ReturnType<typeof headOf> | undefined;
  let before = "";
  let finish: FinishReason = "other";
  /** Whether anything was said; in this turn; and whether a paragraph ended with that. */
  let said = false;
  let saying = false;
  let broken = false;

  function chunk(delta: object, finish_reason: string | null = null): string {
    return frameOf({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
  }

  function say(text: string): string {
    if (text === "") return "";
    const more = broken ? `\n\n${text}` : text;
    [said, saying, broken] = [true, true, false];
    return `${before}${JSON.stringify(more)}},"finish_reason":null}]}\n\n`;
  }

  function breakOff(): string {
    saying = false;
    broken = said;
    return "";
  }

  return (event) => {
    switch (event.type) {
      case "text.delta":
        return say(event.text);
      case "reasoning.delta":
        return chunk({ reasoning_content: event.text });
      case "run.started":
        if (head) return "";
        session = event.session;
        head = headOf(event.run, model);
        before = frameOf({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: "" } }] })
          .slice(0, -'""}}]}\n\n'.length);
        return chunk({ role: "assistant", content: "" });
      case "model.started":
      case "model.reset":
        return breakOff();
      case "model.finished":
        finish = event.finish;
        return saying ? "" : say(event.text ?? "");
      case "run.paused":
      case "run.finished":
      case "run.failed":
      case "run.aborted": {
        const error = errorOf(event);
        if (error) return frameOf({ error }) + done;
        const { text, calls, finish_reason } = endOf(event, session, finish, said);
        breakOff();
        const tool_calls = calls.map((call, index) => ({ index, ...call }));
        const took = usage
          ? frameOf({ ...head, object: "chat.completion.chunk", choices: [], usage: usageOf(event.usage) })
          : "";
        return say(text) + (calls.length > 0 ? chunk({ tool_calls }) : "") + chunk({}, finish_reason) + took + done;
      }
      default:
        return "";
    }
  };
}

/** Begins a response that comes as a whole. */
export function completed(model: string): (event: Event) => Whole | undefined {
  let run = "";
  let session = "";
  let finish: FinishReason = "other";
  /** What was said and thought, by turn. */
  const turns = new Map<number, { texts: string[]; thoughts: string[] }>();

  function whole(last: Last): Whole {
    const error = errorOf(last);
    if (error) return { status: 500, body: { error } };
    const said = [...turns.values()].map(({ texts }) => texts.join("")).filter((text) => text !== "");
    const { text, calls, finish_reason } = endOf(last, session, finish, said.length > 0);
    const reasoning_content = [...turns.values()].flatMap(({ thoughts }) => thoughts).join("");
    const message = {
      role: "assistant",
      content: [...said, ...text === "" ? [] : [text]].join("\n\n") || null,
      ...(reasoning_content !== "" && { reasoning_content }),
      ...(calls.length > 0 && { tool_calls: calls }),
      refusal: null,
    };
    const choices = [{ index: 0, message, finish_reason, logprobs: null }];
    const body = { ...headOf(run, model), object: "chat.completion", choices, usage: usageOf(last.usage) };
    return { status: 200, body };
  }

  return (event) => {
    switch (event.type) {
      case "run.started":
        ({ run, session } = event);
        break;
      case "model.started":
      case "model.reset":
        turns.set(event.turn, { texts: [], thoughts: [] });
        break;
      case "text.delta":
        turns.get(event.turn)?.texts.push(event.text);
        break;
      case "reasoning.delta":
        turns.get(event.turn)?.thoughts.push(event.text);
        break;
      case "model.finished":
        finish = event.finish;
        if (event.text !== undefined) turns.get(event.turn)?.texts.splice(0, Infinity, event.text);
        break;
      case "run.paused":
      case "run.finished":
      case "run.failed":
      case "run.aborted":
        return whole(event);
    }
    return undefined;
  };
}
