"""Clean-up of a chat reply before code is looked for: thoughts, end tokens, line ends.

All steps are linear in the text and never raise.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict

from grading.engine import fences

THINK = "<think>"
END_OF_THINK = "</think>"
END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|end_of_turn|>",
    "<|EOT|>",
    "<|return|>",
    "<|eos|>",
    "<end_of_turn>",
    "<eos>",
    "<EOT>",
    "</s>",
    "<｜end▁of▁sentence｜>",
)

_RUN = re.compile("`++")


def normalise(text: str) -> str:
    """Without byte order mark, every line end a LF."""
    return text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def cut_end_tokens(text: str) -> str:
    """Without the chat end tokens at the very end; unchanged where there are none."""
    end, cut = _blanks_before(text, len(text)), len(text)
    while token := next((token for token in END_TOKENS if text.endswith(token, 0, end)), None):
        end = cut = _blanks_before(text, end - len(token))
    return text[:cut]


def _blanks_before(text: str, end: int) -> int:
    """Where the white space that ends at ``end`` begins."""
    while end and text[end - 1].isspace():
        end -= 1
    return end


def drop_thoughts(text: str) -> str | None:
    """What follows the last ``</think>``; None where a leading ``<think>`` is never closed.

    A ``</think>`` in a fenced block or in inline code is text. One more case: where a leading
    thought leaves a fence open, the ``</think>`` that starts a line ends it all the same.
    """
    thinks = text.lstrip().startswith(THINK)
    if END_OF_THINK in text:
        blocks = fences.blocks(text)
        end = _last_close(text, blocks)
        if end is None and thinks:
            end = text.rfind("\n" + END_OF_THINK)
            end = None if end < 0 or _in_closed_pair(end, blocks) else end + 1
        if end is not None:
            return text[end + len(END_OF_THINK) :]
    return None if thinks else text


def _in_closed_pair(position: int, blocks: list[fences.Block]) -> bool:
    """Inside a block that holds no further opener: a fence of its own, not a forgotten one."""
    block = blocks[bisect_right(blocks, position, key=lambda block: block.start) - 1]
    return block.closed and block.fence not in block.body


def _last_close(text: str, blocks: list[fences.Block]) -> int | None:
    starts = [block.start for block in blocks]
    position = text.rfind(END_OF_THINK)
    line_start, spans = len(text), _Spans("")
    while position >= 0:
        index = bisect_right(starts, position) - 1
        if index >= 0 and position < blocks[index].end:
            position = text.rfind(END_OF_THINK, 0, starts[index])
            continue
        if position < line_start:
            line_start = text.rfind("\n", 0, position) + 1
            end = text.find("\n", position)
            spans = _Spans(text[line_start : end if end >= 0 else len(text)])
        if not spans.holds(position - line_start):
            return position
        position = text.rfind(END_OF_THINK, 0, position)
    return None


class _Spans:
    """Inline code of one line: a run of backticks up to the next run of the same length."""

    def __init__(self, line: str) -> None:
        runs = [(match.start(), match.end()) for match in _RUN.finditer(line)]
        by_length: dict[int, list[int]] = defaultdict(list)
        for index, (start, end) in enumerate(runs):
            by_length[end - start].append(index)
        self.starts: list[int] = []
        self.ends: list[int] = []
        index = 0
        while index < len(runs):
            same = by_length[runs[index][1] - runs[index][0]]
            later = bisect_right(same, index)
            if later < len(same):
                self.starts.append(runs[index][0])
                index = same[later]
                self.ends.append(runs[index][1])
            index += 1

    def holds(self, position: int) -> bool:
        index = bisect_right(self.starts, position) - 1
        return index >= 0 and position < self.ends[index]
