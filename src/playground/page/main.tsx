/**
 * Starts the page. The bundle of this module is the script of the page.
 *
 * @module
 */
import { render } from "hono/jsx/dom";
import { App } from "./app.tsx";
import { openConversation } from "./conversation.ts";
import type { PageData } from "../page_data.ts";

const root = document.getElementById("root");
if (root) {
  const data: PageData = JSON.parse(root.dataset.page ?? "");
  render(<App conversation={openConversation(location.pathname.replace(/\/$/, ""))} data={data} />, root);
}
