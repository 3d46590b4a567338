"""Finding the program in a reply."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine.extract import Rule, extract
from grading.engine.task import BlockPolicy

ADD = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(f"Sure:\n```python\n{ADD}```\nDone.", ADD, id="one block"),
        pytest.param(f"```Python title=x\r\n{ADD}```", ADD, id="label is a hint, CRLF"),
        pytest.param(f"\ufeff```{{.python .x}}\n{ADD}```", ADD, id="byte order mark, braces"),
        pytest.param(f"~~~py\n{ADD}~~~", ADD, id="tildes"),
        pytest.param(f"````\n{ADD}```\n`````", f"{ADD}```\n", id="shorter run does not close"),
        pytest.param(
            "1. x\n   ```\n   x = 1\n   if x:\n       y\n   ```",
            "x = 1\nif x:\n    y\n",
            id="indented fence",
        ),
        pytest.param("```\n    x = 1\n    y = 2\n```", "x = 1\ny = 2\n", id="indented body"),
        pytest.param("\t```\n\tx = 1\n\t```", "x = 1\n", id="tab fence"),
        pytest.param("```bash\nls\n```\n```text\nx\n```", "ls\n", id="nothing is Python: first"),
        pytest.param("```bash\nls\n```\n```\nx = 1\n```", "x = 1\n", id="unlabelled is Python"),
        pytest.param("```python\n\n```\n```python\nx = 1\n```", "x = 1\n", id="blank block"),
        pytest.param(f"```python\n{ADD}    retu(rn\nbye", ADD.rstrip("\n"), id="cut back"),
        pytest.param(f"```python\n{ADD}```x", ADD.rstrip("\n"), id="closer with text is none"),
        pytest.param("```python\nx = 1```", "x = 1", id="closer behind code"),
        pytest.param(f"{ADD}```\n", ADD, id="only a closer"),
        pytest.param("x = 1", "x = 1", id="no fence"),
        pytest.param("", "", id="empty"),
        pytest.param("a `x` b ```c``` d", "a `x` b ```c``` d", id="inline code only"),
    ],
)
def test_blocks(text: str, code: str) -> None:
    assert extract(text, ("add",)).code == code


def test_first_block_that_defines_a_called_name_wins() -> None:
    reply = f"```python\ndef worked_example(): ...\n```\n```js\n{ADD}```\n```python\nadd = 3\n```"
    found = extract(reply, ("add",))
    assert (found.code, found.rule, found.block, found.blocks) == (ADD, Rule.ENTRY_POINT, 1, 3)


@pytest.mark.parametrize(
    "definition",
    [
        "def add(): pass",
        "async def add(): pass",
        "class add: pass",
        "add = 1",
        "add: int = 1",
        "x, add = 1, 2",
        "from operator import add",
        "import numpy as add",
        "try:\n    import add\nexcept ImportError:\n    pass",
        "def add(a, b)\n    return (",
        "add = (",
    ],
)
def test_ways_to_define_a_name(definition: str) -> None:
    reply = f"```python\nprint(add(1, 2))\nadd == 1\n```\n```python\n{definition}\n```"
    assert extract(reply, ("add",)).block == 1


def test_a_name_inside_another_function_is_no_definition() -> None:
    reply = "```\ndef f():\n    def add(): pass\n```\n```\ndef add(): pass\n```"
    assert extract(reply, ("add",)).block == 1


def test_fence_deep_inside_a_docstring_does_not_close() -> None:
    code = 'def add(a, b):\n    """\n    ```\n    add(1, 2)\n    ```\n    """\n    return a + b\n'
    assert extract(f"```python\n{code}```", ("add",)).code == code
    assert extract(code, ("add",)).rule is Rule.WHOLE_TEXT
    assert extract("```\nx = 1\n   ```\nrest", ()).code == "x = 1\n"


def test_blocks_that_define_what_is_lacking_come_in_front() -> None:
    reply = (
        "```\nimport math\ndef half(x): return math.floor(x / TWO)\n```\n"
        "```\ndef unrelated(): pass\n```\n"
        "```\ndef add(a, b): return half(2 * (a + b))\n```\n"
        "```\nTWO = 2\n```"
    )
    code = extract(reply, ("add",)).code
    assert code.index("half(x)") < code.index("TWO = 2") < code.index("def add")
    assert "unrelated" not in code
    assert "TWO" not in extract(reply, ("add",), provided=["half"]).code


def test_policies_first_and_last_take_one_block_as_it_is() -> None:
    reply = "```\nA = 1\n```\n```\ndef add(): return A\n```\n```\nadd()\n```"
    assert extract(reply, ("add",), BlockPolicy.FIRST).code == "A = 1\n"
    assert extract(reply, ("add",), BlockPolicy.LAST).code == "add()\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(f"<think>def add(): 1</think>\n{ADD}", f"\n{ADD}", id="thought"),
        pytest.param(f"a </think> b </think>{ADD}", ADD, id="last closing tag counts"),
        pytest.param(f"<think>\n```\nx\n```\n</think>\n```\n{ADD}```", ADD, id="fence in it"),
        pytest.param(
            f"<think>\n```python\nx = (\n</think>\n```python\n{ADD}```",
            ADD,
            id="fence left open in it",
        ),
        pytest.param(f"```\n{ADD}# </think>\n```", f"{ADD}# </think>\n", id="in a fence: text"),
        pytest.param("x `</think>` y", "x `</think>` y", id="in inline code: text"),
        pytest.param("`` ` </think> `` y", "`` ` </think> `` y", id="in longer inline code"),
        pytest.param("x ` </think> y", " y", id="a lone backtick opens nothing"),
        pytest.param("so <think> is a tag", "so <think> is a tag", id="elsewhere: text"),
        pytest.param(
            f"<thinking>\n</thinking>\n{ADD}",
            f"<thinking>\n</thinking>\n{ADD}",
            id="other tags are text",
        ),
    ],
)
def test_thoughts(text: str, code: str) -> None:
    assert extract(text, ("add",)).code == code


@pytest.mark.parametrize("inside", ["", f"```\n{ADD}```", "x = 1"])
def test_a_thought_never_closed_leaves_the_empty_program(inside: str) -> None:
    found = extract(f" \n<think> {inside}", ("add",))
    assert (found.code, found.rule) == ("", Rule.UNCLOSED_THOUGHT)


@pytest.mark.parametrize("tail", ["<|im_end|>", " </s>\n", "<|eot_id|><|endoftext|> ", "<|EOT|>"])
def test_end_tokens_are_cut_at_the_end(tail: str) -> None:
    assert extract(f"x = 1{tail}").code == "x = 1"
    assert extract(f"```python\nx = 1{tail}").code == "x = 1"


def test_end_tokens_elsewhere_are_text() -> None:
    assert extract("x = '</s>' \n").code == "x = '</s>' \n"


@given(
    st.lists(
        st.sampled_from(
            ["```", "~~~~", "```python", "\n", "\n", "    ", "def f():", " return 1", "f = 1",
             "<think>", "</think>", "`", "</s>", "'''", "(", "\r", "\x00", "\ud83d", "\ufeff", "\f"]
        )
    ).map("".join)
    | st.text(st.characters(exclude_categories=[])),
    st.sampled_from(list(BlockPolicy)),
)  # fmt: skip
def test_never_raises(text: str, policy: BlockPolicy) -> None:
    found = extract(text, ("f",), policy)
    assert found.block is None or 0 <= found.block < found.blocks


@pytest.mark.parametrize(
    "hostile",
    [
        "(" * 100_000,
        "-" * 100_000 + "1",
        "a+" * 60_000 + "a",
        "not " * 50_000 + "a",
        "if a:\n" * 3_000,
        "".join(" " * i + "if a:\n" for i in range(150)),
        "f'" + "{" * 5_000,
        "lambda: " * 20_000 + "1",
        "a." * 60_000 + "a",
        "1" * 100_000,
    ],
    ids=lambda text: text[:8],
)
def test_source_that_breaks_parsers_is_only_text(hostile: str) -> None:
    assert extract(hostile, ("f",)).code == hostile
    assert extract(f"```python\nx = 1\n```\n```\n{hostile}\n```", ("f",)).code == "x = 1\n"


def test_time_grows_with_the_size_and_not_with_its_square() -> None:
    def seconds(blocks: int) -> float:
        links = (f"```\ndef g{i}():\n    return g{i + 1}()\n```\n" for i in range(blocks))
        text = "".join(links) + "`</think>` " * blocks + "</s>\n" * blocks
        start = time.process_time()
        extract(text, ("g0",))
        return time.process_time() - start

    assert seconds(16_000) < 16 * 4 * max(seconds(1_000), 0.01)
