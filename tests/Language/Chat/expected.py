#!/usr/bin/env python3
"""Writes expected.json: what Jinja itself makes of the templates in this folder and of the pieces below, the way chat templates are rendered.

Needs Python's jinja2. Run it after a change of a template; the test compares our renderer with what it wrote.
"""

import json
import pathlib

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

FOLDER = pathlib.Path(__file__).parent

CHATS = {
    "one": [("user", "Hi there!")],
    "turns": [("user", "  What is 2+2?\n"), ("assistant", " Four. "), ("user", "And \"3+3\"?")],
    "system": [("system", "Be brief."), ("user", "Größe?"), ("assistant", "<think>\nhm\n</think>\n\nSize."), ("user", "😊 ok")],
}
MESSAGES = {name: [{"role": role, "content": content} for role, content in turns] for name, turns in CHATS.items()}
MESSAGES["calls"] = [
    {"role": "system", "content": "Use tools."},
    {"role": "user", "content": "Weather in Paris?"},
    {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Paris", "days": 2, "f": 1.5, "x": None, "y": True}}}]},
    {"role": "tool", "content": "{\"t\": 21}"},
    {"role": "user", "content": "Thanks"},
]
MESSAGES["parts"] = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " what is it? "}]}]
TOOLS = [
    {"name": "weather", "description": "tells THE weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}}}},
    {"name": "clock", "description": "the äh & <so>", "parameters": {"type": "object", "properties": {}}},
]

# Templates of a line: constructs one by one.
PIECES = [
    "a\n{% if true %}\n  b\n{% endif %}\nc\n",
    "  {% if true %}x{% endif %}  \n  {%- if true -%}  y  {%- endif +%}\n z",
    "{# note #}\nq {#- note -#} r\n  {# indented #}\ns",
    "{% raw %}{{ not }} {% that %}{% endraw %}!",
    "{% for i in range(5) if i % 2 == 0 %}{{ loop.index }}:{{ i }}{% if not loop.last %},{% endif %}{% else %}none{% endfor %}",
    "{% for k, v in {'a': 1, 'b': [2, 3.0]}.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for x in [1,2,3,4] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}",
    "{% set ns = namespace(a=1) %}{% for i in [1,2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}",
    "{% set t %}  hi {{ 1 + 1 }}{% endset %}[{{ t }}]{% set u | upper %}abc{% endset %}{{ u }}",
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 1.0 }} {{ 1e20 }} {{ 0.1 + 0.2 }} {{ 3 * 'ab' if false else 'ab' * 3 }}",
    "{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'héllo'[1:3] }}{{ 'abcdef'[::-1] }}{{ [1,2,3][1:] }}{{ [1,2,3][:-1] }}{{ (1,2)[0] }}{{ 'abc'[5:] }}",
    "{{ none }} {{ true }} {{ [none, 'a\\'b', \"c\", 1.5, (1,), {'k': 'v'}] }} {{ undefined_thing }}|",
    "{{ {'a': [1, 2, {'b': none}], 'é': \"q\\\"\\n<&>'\"} | tojson }} {{ [1, {'a': []}] | tojson(indent=2) }} {{ {} | tojson(indent=2) }}",
    "{{ ' a b '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xxa'.lstrip('x') }}|{{ 'a\\n'.rstrip() }}|{{ 'a,b,,c'.split(',') }}|{{ ' a  b '.split() }}|{{ 'a-b-c'.split('-', 1) }}|{{ 'a-b-c'.rsplit('-', 1) }}",
    "{{ 'hello world'.title() }} {{ 'hELLO'.capitalize() }} {{ 'a'.upper() }} {{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'abc'.find('c') }} {{ 'abc'.find('z') }} {{ 'aba'.count('a') }} {{ ','.join(['a','b']) }}",
    "{{ 'abc'.startswith('ab') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('x') }} {{ 'a\\nb\\n'.splitlines() }} {{ '12'.isdigit() }} {{ 'prefixed'.removeprefix('pre') }}",
    "{{ [3,1,2] | sort }} {{ [3,1,2] | sort(reverse=true) | first }} {{ ['b','A','c'] | sort | join(' ') }} {{ [1,1,2] | unique | list }} {{ [1,2,3] | sum }} {{ [1,2,3] | max }} {{ [1,5,3] | last }} {{ 'abc' | reverse }} {{ [1,2] | reverse | list }}",
    "{{ {'b': 1, 'a': 2} | dictsort }} {{ {'b': 1}.keys() | list }} {{ {'b': 1}.values() | list }} {{ {'b': 1}.get('c', 'no') }} {{ {'b': 1}.get('c') }} {{ {'b': 1} | items | list }} {{ 'b' in {'b': 1} }} {{ 'c' not in 'abc' }}",
    "{{ [1,2,3,4] | select('odd') | list }} {{ [0,1,''] | select | list }} {{ [1,2,3] | reject('equalto', 2) | list }} {{ [{'a': 1}, {'a': 2}] | selectattr('a', 'equalto', 2) | list }} {{ [{'a': 1}, {}] | rejectattr('a', 'defined') | list }} {{ ['a', 'b'] | map('upper') | join }} {{ [{'n': {'m': 1}}] | map(attribute='n') | list }}",
    "{{ x is defined }} {{ x is not defined }} {{ none is none }} {{ 1 is number }} {{ 'a' is string }} {{ [] is iterable }} {{ {} is mapping }} {{ [] is sequence }} {{ true is boolean }} {{ 1 is integer }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 2 is in [1,2] }} {{ false is false }} {{ 1 is eq 1 }}",
    "{{ x | default('d') }} {{ '' | default('d', true) }} {{ '' | default('d') }}| {{ 'abc' | length }} {{ [1,2] | count }} {{ '3' | int + 1 }} {{ 'z' | int(7) }} {{ 3.9 | int }} {{ '1.5' | float }} {{ -3 | abs }} {{ 2.567 | round(2) }} {{ 5 | string + 'x' }}",
    "{{ 'a\\nb\\n\\nc' | indent(2) }}|{{ 'a\\nb' | indent(2, true) }}|{{ '<&>' | escape }}|{{ '  x ' | trim }}|{{ 'xyx' | trim('x') }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, b=3) }} {{ m(b=4, a=5) }}{% macro w() %}[{{ caller() }}]{% endmacro %}{% call w() %}in{% endcall %}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ not 1 == 2 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ 1 and 0 or 'z' }} {{ 'yes' if 0 }}| {{ 1 if 0 else 2 if 0 else 3 }} {{ -2 ** 2 }} {{ 1 ~ 2 ~ 'c' }} {{ [1] + [2] }} {{ (1, 2) + (3,) }}",
    "{% set a, b = 1, 'x' %}{{ a }}{{ b }}{% set c = [1, 2,] %}{{ c }}{% for x, y in [(1, 2), (3, 4)] %}{{ x * y }} {% endfor %}{{ 'con' 'cat' }}",
    "{% for i in [1,2,3] %}{{ loop.cycle('a', 'b') }}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}",
    "{% if messages[0].content is string and messages[-1]['role'] == 'user' %}{{ messages | length }}{{ messages[0].missing }}{% endif %}",
    "{% generation %}g{% endgeneration %}{{ dict(a=1)['a'] }}{{ range(3) | list }}{{ range(5, 1, -2) | list }}",
    "{{ '\\u00e9\\x41\\t' ~ \"\\\\\" }} {{ 'a' if messages else 'b' }} {{ messages | tojson | length }}",
    "{% set l = [1] %}{{ l + [2] }}{{ [[1, 2], [3]] | map('length') | list }}{{ ['b', 'a'] | min }}{{ 'ab' | list }}{{ {'a': 1, 'b': 2} | list }}",
    "{{ strftime_now('%Y-%m-%d') }}",
    # Failures.
    "x\n{{ raise_exception('no ' ~ 'way') }}",
    "{{ nothing.member }}",
    "{{ 'a' + 1 }}",
    "{{ 1 // 0 }}",
    "{% if %}",
    "{{ 'a' | no_such_filter }}",
    "{{ 'a'.no_such_method() }}",
    "{% for x in 5 %}{% endfor %}",
    "{% if true %}",
    "{{ (1 }}",
    "{% unknown %}",
    "{{ 'open }}",
]


def environment():
    def raise_exception(message):
        raise TemplateError(message)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
    env.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: __import__("datetime").datetime.fromtimestamp(NOW).strftime(form)
    return env


from jinja2.ext import Extension  # noqa: E402


class Generation(Extension):
    """The block that marks what the model said; its text is what is inside."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


NOW = 1700000000


def case(name, source, chat, prompt, variables):
    try:
        text = environment().from_string(source).render(
            messages=MESSAGES[chat], add_generation_prompt=prompt, bos_token="<s>", eos_token="</s>", **variables)
        return {"template": name, "chat": chat, "prompt": prompt, "variables": variables, "text": text}
    except Exception:
        return {"template": name, "chat": chat, "prompt": prompt, "variables": variables, "text": None}


def main():
    cases = []
    for path in sorted(FOLDER.glob("*.jinja")):
        for chat in MESSAGES:
            for prompt in (True, False):
                variables = [{}, {"tools": TOOLS}] if "tool" in path.read_text() else [{}]
                if "enable_thinking" in path.read_text():
                    variables.append({"enable_thinking": False})
                for v in variables:
                    cases.append(case(path.name, path.read_text(), chat, prompt, v))
    for piece in PIECES:
        cases.append(case(piece, piece, "turns", True, {}))
    out = {"now": NOW, "messages": MESSAGES, "cases": cases}
    (FOLDER / "expected.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
