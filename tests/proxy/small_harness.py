"""An agent program as others write them: a loop of its own, one tool, the standard library."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

TOOL = {
    "type": "function",
    "function": {
        "name": "bash", "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}  # fmt: skip


def ask(messages):
    body = json.dumps({"model": "any", "messages": messages, "tools": [TOOL]}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer nothing"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]


def main():
    instruction = Path(os.environ["ENVSYNTH_TASK_FILE"]).read_text("utf-8")
    messages = [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": "An example."}, {"role": "assistant", "content": "Made up by the harness."},
        {"role": "user", "content": instruction},
    ]  # fmt: skip
    while True:
        try:
            said = ask(messages)
        except urllib.error.HTTPError as error:
            print("the endpoint says", error.code, error.read().decode())
            sys.exit(3)
        messages.append(said)
        if not said.get("tool_calls"):
            return
        for call in said["tool_calls"]:
            command = json.loads(call["function"]["arguments"])["command"]
            ran = subprocess.run(["sh", "-c", command], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            output = ran.stdout.decode("utf-8", "replace") + f"exit code {ran.returncode}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


if __name__ == "__main__":
    main()
