/**
 * Starts the page. The bundle of this module is the script of the page.
 *
 * @module
 */
import { render } from "hono/jsx/dom";
import type { PageData } from "../page_data.ts";
import { App } from "./parts/app.tsx";
import { openConversation } from "./state/conversation.ts";

const root = document.getElementById("root");
if (root) {
  const data: PageData = JSON.parse(root.dataset.page ?? "");
  render(<App conversation={openConversation(location.pathname.replace(/\/$/, ""))} data={data} />, root);
}
