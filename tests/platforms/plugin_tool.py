"""The plugin of PicoClaw's protocol document, its two functions as they stand there, and a loop that asks them."""

import json
import sys


def handle_before_llm(params: dict) -> dict:
    tools = params.get("tools", [])

    # Add plugin tool definition
    tools.append({
        "type": "function",
        "function": {
            "name": "my_plugin_tool",
            "description": "Plugin provided tool",
            "parameters": {
                "type": "object",
                "properties": {
                    "input": {"type": "string", "description": "Input content"}
                },
                "required": ["input"]
            }
        }
    })

    return {
        "action": "modify",
        "request": {
            "model": params["model"],
            "messages": params["messages"],
            "tools": tools,
            "options": params.get("options", {})
        }
    }


def handle_before_tool(params: dict) -> dict:
    tool = params.get("tool", "")

    if tool == "my_plugin_tool":
        # Implement tool logic here
        args = params.get("arguments", {})
        input_text = args.get("input", "")

        # Return result directly, no need to register in ToolRegistry
        return {
            "action": "respond",
            "result": {
                "for_llm": f"Plugin tool executed successfully, input: {input_text}",
                "silent": False,
                "is_error": False
            }
        }

    return {"action": "continue"}


def handle(method: str, params: dict) -> dict:
    if method == "hook.hello":
        return {"ok": True, "name": "plugin-tool"}
    if method == "hook.before_llm":
        return handle_before_llm(params)
    if method == "hook.before_tool":
        return handle_before_tool(params)
    return {"action": "continue"}


for line in sys.stdin:
    message = json.loads(line)
    if message.get("id"):
        result = handle(message["method"], message["params"])
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
