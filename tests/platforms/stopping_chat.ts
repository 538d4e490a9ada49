/**
 * A chat of the AI SDK that stops an answer and sends a message at once. Its argument is the address of an app. Prints what it shows then as JSON.
 *
 * @module
 */
import { DefaultChatTransport } from "npm:ai@7.0.173";
import { Chat, texts } from "../support/chat.ts";

const [app] = Deno.args;
const chat = new Chat({ request: fetch }, { transport: new DefaultChatTransport({ api: `${app}/chat` }) });
const counted = chat.sendMessage({ text: "count" });
while (
  chat.status !== "error" &&
  !chat.lastMessage?.parts.some((part) => part.type === "text" && part.text.startsWith("1 2 3 "))
) {
  await new Promise((resolve) => setTimeout(resolve));
}
await chat.stop();
await counted;
await chat.sendMessage({ text: "Hi" });
console.log(JSON.stringify([chat.status, String(chat.error), texts(chat).map((text) => text.replace(/ 3 .*/, " 3"))]));
