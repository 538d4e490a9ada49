/** A served agent whose provider searches the web. */
import { agent, serve } from "@jizai/jizai";
import { providerTool } from "@jizai/jizai/provider_tools";
import { options } from "../assistant.ts";

export default serve(agent({ ...options, tools: [...options.tools, providerTool({ type: "web_search" })] }));
