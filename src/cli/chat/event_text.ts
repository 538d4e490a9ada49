/**
 * The text of an event on the screen.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { textOf as textOfMessage } from "../../protocol/message.ts";
import { visible } from "../terminal/terminal.ts";

/** Returns the text to write for an event. */
export function textOf(event: Event): string {
  switch (event.type) {
    case "text.delta":
      return visible(event.text);
    case "call.ready":
      return callText(event.call);
    case "provider_tool.started":
      return callText(event.content);
    case "provider_tool.finished":
      return event.content.status === "ok" ? "" : `[${visible(event.content.name)}: ${event.content.status}]\n`;
    case "tool.finished":
      return event.result.status === "ok" ? "" : `[${visible(event.result.name)}: ${event.result.status}]\n`;
    case "steering.injected":
      return event.messages.map((message) => `\n[the agent reads: ${visible(textOfMessage(message))}]\n`).join("");
    case "run.finished":
      return endText(event);
    case "run.failed":
      return `\n[failed: ${visible(event.message)} (${visible(event.error)})]\n`;
    case "run.aborted":
      return `\n[stopped: ${visible(event.reason)}]\n`;
    default:
      return "";
  }
}

/** Returns the text for the end of a run: nothing for an answer that is complete. */
function endText({ status, reason, finish = "stop" }: Extract<Event, { type: "run.finished" }>): string {
  if (status !== "done") return `\n[${status}${reason ? `: ${visible(reason)}` : ""}]\n`;
  return finish === "stop" || finish === "calls" ? "\n" : `\n[the answer ended: ${finish}]\n`;
}

function callText({ name, input }: { readonly name: string; readonly input: unknown }): string {
  return `\n[${visible(name)} ${visible(JSON.stringify(input) ?? "")}]\n`;
}
