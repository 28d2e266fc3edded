"""Chat templates in the manner of real models, each with a plain implementation to compare with.

A plain implementation writes a chat as (text, trained) pieces: the assistant's own words with the end of the
turn are trained, nothing else. It knows nothing of Jinja, renderings or spans.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

TODAY = datetime(2026, 2, 3, tzinfo=UTC)
Turn = dict[str, Any]
Piece = tuple[str, bool]
Plain = Callable[[list[Turn], list[Any]], list[Piece]]


def _calls(turn: Turn) -> list[dict[str, Any]]:
    return [call["function"] for call in turn.get("tool_calls", [])]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def chatml(turns: list[Turn], tools: list[Any]) -> list[Piece]:
    assert not tools
    pieces = []
    for turn in turns:
        pieces += [
            (f"<|im_start|>{turn['role']}\n", False),
            (f"{turn['content']}<|im_end|>\n", turn["role"] == "assistant"),
        ]
    return pieces


# Llama 3: tools and the date in the system turn, content trimmed, calls as JSON, results from "ipython"
LLAMA = (
    "{{- bos_token }}{%- if strftime_now is defined %}{%- set today = strftime_now('%d %b %Y') %}"
    "{%- else %}{%- set today = '26 Jul 2024' %}{%- endif %}"
    "{%- if messages[0].role == 'system' %}{%- set system = messages[0].content | trim %}"
    "{%- set messages = messages[1:] %}{%- else %}{%- set system = '' %}{%- endif %}"
    "{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: ' + today + '\\n\\n' }}"
    "{%- if tools is not none %}{%- for tool in tools %}"
    "{{- tool | tojson + '\\n\\n' }}{%- endfor %}{%- endif %}"
    "{{- system + '<|eot_id|>' }}"
    "{%- for m in messages %}"
    "{%- if 'tool_calls' in m %}{%- if m.tool_calls | length != 1 %}"
    "{{- raise_exception('This model only supports single tool-calls at once!') }}{%- endif %}"
    "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
    '{{- \'{"name": "\' + m.tool_calls[0].function.name + \'", "parameters": \' }}'
    "{{- m.tool_calls[0].function.arguments | tojson + '}' + '<|eot_id|>' }}"
    "{%- elif m.role == 'tool' %}"
    "{{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' + m.content + '<|eot_id|>' }}"
    "{%- else %}"
    "{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}"
    "{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"
)


def llama(turns: list[Turn], tools: list[Any]) -> list[Piece]:
    system, rest = ("", turns) if turns[0]["role"] != "system" else (turns[0]["content"].strip(), turns[1:])
    listed = "".join(f"{_json(tool)}\n\n" for tool in tools)
    head = f"Today Date: {TODAY:%d %b %Y}\n\n{listed}{system}<|eot_id|>"
    pieces = [("<s><|start_header_id|>system<|end_header_id|>\n\n" + head, False)]
    for turn in rest:
        role = {"tool": "ipython"}.get(turn["role"], turn["role"])
        said = turn["content"] if role == "ipython" else turn["content"].strip()
        for call in _calls(turn):
            said = f'{{"name": "{call["name"]}", "parameters": {_json(call["arguments"])}}}'
        pieces += [
            (f"<|start_header_id|>{role}<|end_header_id|>\n\n", False),
            (f"{said}<|eot_id|>", role == "assistant"),
        ]
    return pieces


# Mistral: no header before the assistant, strict turns, ids of nine characters, tools at the last question
MISTRAL = (
    "{{- bos_token }}{%- set users = messages | selectattr('role', 'equalto', 'user') | list %}"
    "{%- set ns = namespace(count=0) %}{%- for m in messages if m.role == 'user' or (m.role == 'assistant'"
    " and m.tool_calls is not defined) %}{%- if (m.role == 'user') != (ns.count % 2 == 0) %}"
    "{{- raise_exception('After the optional system message, roles must alternate') }}{%- endif %}"
    "{%- set ns.count = ns.count + 1 %}{%- endfor %}"
    "{%- for m in messages %}{%- if m.role == 'user' %}"
    "{%- if tools is not none and m == users[-1] %}"
    "{{- '[AVAILABLE_TOOLS] ' + tools | tojson + '[/AVAILABLE_TOOLS]' }}{%- endif %}"
    "{{- '[INST] ' + m.content + '[/INST]' }}"
    "{%- elif m.tool_calls is defined %}{{- '[TOOL_CALLS] [' }}{%- for call in m.tool_calls %}"
    "{%- if call.id | length != 9 %}{{- raise_exception('Tool call IDs should have length 9!') }}{%- endif %}"
    "{{- call.function | tojson }}{{- ', ' if not loop.last else ']' + eos_token }}{%- endfor %}"
    "{%- elif m.role == 'tool' %}{{- '[TOOL_RESULTS] ' + m.content + '[/TOOL_RESULTS]' }}"
    "{%- else %}{{- ' ' + m.content | trim + eos_token }}{%- endif %}{%- endfor %}"
)


def mistral(turns: list[Turn], tools: list[Any]) -> list[Piece]:
    question = max(index for index, turn in enumerate(turns) if turn["role"] == "user")
    pieces = [("<s>", False)]
    for index, turn in enumerate(turns):
        if turn["role"] == "user":
            shown = (
                f"[AVAILABLE_TOOLS] {_json(tools)}[/AVAILABLE_TOOLS]" if tools and index == question else ""
            )
            pieces.append((f"{shown}[INST] {turn['content']}[/INST]", False))
        elif turn["role"] == "tool":
            pieces.append((f"[TOOL_RESULTS] {turn['content']}[/TOOL_RESULTS]", False))
        elif _calls(turn):
            pieces.append((f"[TOOL_CALLS] [{', '.join(map(_json, _calls(turn)))}]</s>", True))
        else:
            pieces.append((f" {turn['content'].strip()}</s>", True))
    return pieces


# Gemma: no system turn, the assistant is "model", content trimmed
GEMMA = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}{% if m.role == 'assistant' %}{% set role = 'model' %}"
    "{% else %}{% set role = m.role %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\\n' + m.content | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)


def gemma(turns: list[Turn], tools: list[Any]) -> list[Piece]:
    assert not tools
    pieces = [("<s>", False)]
    for turn in turns:
        role = {"assistant": "model"}.get(turn["role"], turn["role"])
        pieces += [
            (f"<start_of_turn>{role}\n", False),
            (f"{turn['content'].strip()}<end_of_turn>\n", role == "model"),
        ]
    return pieces


# Qwen 3: reasoning after the last question alone, calls in tags, results of tools joined in a user turn
QWEN = (
    "{%- if tools %}{{- '<|im_start|>system\\n# Tools\\n' }}{%- for tool in tools %}"
    "{{- '\\n' }}{{- tool | tojson }}{%- endfor %}{{- '<|im_end|>\\n' }}{%- endif %}"
    "{%- set ns = namespace(last=0) %}"
    "{%- for m in messages %}"
    "{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}"
    "{%- for m in messages %}"
    "{%- if m.role == 'tool' %}"
    "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}"
    "{{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}"
    "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}"
    "{%- elif m.role != 'assistant' %}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{%- else %}{{- '<|im_start|>assistant\\n' }}"
    "{%- set reasoning = m.reasoning_content if m.reasoning_content is string else '' %}"
    "{%- if loop.index0 > ns.last and (loop.last or reasoning) %}"
    "{{- '<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + m.content.lstrip('\\n') }}"
    "{%- else %}{{- m.content }}{%- endif %}"
    "{%- if m.tool_calls %}{%- for call in m.tool_calls %}"
    "{%- if (loop.first and m.content) or not loop.first %}{{- '\\n' }}{%- endif %}"
    '{{- \'<tool_call>\\n{"name": "\' + call.function.name + \'", "arguments": \' }}'
    "{{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}{%- endfor %}{%- endif %}"
    "{{- '<|im_end|>\\n' }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


def qwen(turns: list[Turn], tools: list[Any]) -> list[Piece]:
    listed = "".join(f"\n{_json(tool)}" for tool in tools)
    pieces = [(f"<|im_start|>system\n# Tools\n{listed}<|im_end|>\n", False)] if tools else []
    question = max((index for index, turn in enumerate(turns) if turn["role"] == "user"), default=0)
    for index, turn in enumerate(turns):
        if turn["role"] == "tool":
            opens = index == 0 or turns[index - 1]["role"] != "tool"
            closes = index + 1 == len(turns) or turns[index + 1]["role"] != "tool"
            text = f"\n<tool_response>\n{turn['content']}\n</tool_response>"
            head, tail = "<|im_start|>user" * opens, "<|im_end|>\n" * closes
            pieces.append((head + text + tail, False))
            continue
        said, reasoning = turn["content"] or "", turn.get("reasoning_content", "")
        called = [_called(call["name"], _json(call["arguments"])) for call in _calls(turn)]
        if turn["role"] == "assistant" and index > question and (index + 1 == len(turns) or reasoning):
            thought = "<think>\n" + reasoning.strip("\n") + "\n</think>\n\n"
            said = said.lstrip("\n")
        else:
            thought = ""
        reported = thought + "\n".join([*([said] if turn["content"] or not called else []), *called])
        pieces += [
            (f"<|im_start|>{turn['role']}\n", False),
            (f"{reported}<|im_end|>\n", turn["role"] == "assistant"),
        ]
    return pieces


def _called(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


# DeepSeek R1: the prompt goes on into the reasoning, which the template keeps in no turn
DEEPSEEK = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'system' %}{{ m.content }}{% endif %}"
    "{% if m.role == 'user' %}{{ '<|User|>' + m.content }}{% endif %}"
    "{% if m.role == 'assistant' %}{{ '<|Assistant|>' }}"
    "{{ m.content.split('</think>')[-1] + eos_token }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|Assistant|><think>\\n' }}{% endif %}"
)


def deepseek(turns: list[Turn], tools: list[Any]) -> list[Piece]:
    assert not tools
    pieces = [("<s>", False)]
    for index, turn in enumerate(turns):
        said, thoughts, answer = turn["content"], *turn["content"].rpartition("</think>")[::2]
        if turn["role"] == "assistant" and thoughts and index + 1 == len(turns):  # what the model shall say
            said = said.lstrip().removeprefix("<think>").lstrip("\n")
            pieces += [("<|Assistant|><think>\n", False), (f"{said}</s>", True)]
        elif turn["role"] == "assistant":
            pieces += [("<|Assistant|>", False), (f"{answer}</s>", True)]
        else:
            pieces.append(({"user": "<|User|>"}.get(turn["role"], "") + turn["content"], False))
    return pieces


# Marked by its author, who does not train the line's end, with the last turn written differently
MARKED = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{{ '\\n' if not loop.last else '' }}"
    "{% else %}{{ m.content + '<|im_end|>\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def marked(turns: list[Turn], tools: list[Any]) -> list[Piece]:
    assert not tools
    pieces = []
    for index, turn in enumerate(turns):
        own = turn["role"] == "assistant"
        pieces += [(f"<|im_start|>{turn['role']}\n", False), (f"{turn['content']}<|im_end|>", own)]
        pieces.append(("\n" * (not own or index + 1 < len(turns)), False))
    return pieces


# name -> template, plain implementation, what it can show besides users and assistants
TEMPLATES: dict[str, tuple[str, Plain, frozenset[str]]] = {
    "chatml": (CHATML, chatml, frozenset({"system"})),
    "llama": (LLAMA, llama, frozenset({"system", "tools"})),
    "mistral": (MISTRAL, mistral, frozenset({"tools", "parallel"})),
    "gemma": (GEMMA, gemma, frozenset()),
    "qwen": (QWEN, qwen, frozenset({"system", "tools", "reasoning", "parallel"})),
    "deepseek": (DEEPSEEK, deepseek, frozenset({"system"})),
    "marked": (MARKED, marked, frozenset({"system"})),
}
