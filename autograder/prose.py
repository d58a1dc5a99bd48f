"""What people wrote, as HTML that does nothing: Markdown, code and printed text, escaped, cut to size."""

from __future__ import annotations

import html
import re
from keyword import iskeyword

import mistune

MOST = 20_000
"""Characters of one piece of writing that a page shows."""
LINK = re.compile(r"(https?://|mailto:)\S", re.IGNORECASE)
LOWEST_HEADING = 6
# A full lexer takes seconds for some short texts that are made to hurt; this takes one step after the other.
WORDS = re.compile(
    r"""
    (?P<remark> \# [^\n]* )
    | (?P<string> [bfru]{0,2} (?:
        (?P<quote> \"{3} | '{3} ) (?: \\. | (?!(?P=quote)). )* (?: (?P=quote) | \Z )
        | " (?: \\. | [^"\\\n] )* "?
        | ' (?: \\. | [^'\\\n] )* '?
    ))
    | (?P<number> \b \d [\w.]* )
    | (?P<word> \b \w+ )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def cut(text: str, most: int = MOST) -> str:
    """`text`, or its first `most` characters and a word on how many more there were."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n... cut here; {len(text) - most} more characters"


def markdown(text: str, below: int = 2) -> str:
    """Markdown as HTML. Raw HTML is shown as text, pictures as their description, links only where they lead
    to the web or a mailbox; headings come `below` levels lower, to fit into a page.
    """
    source = cut(text)
    render = mistune.create_markdown(renderer=_Inert(below), plugins=["table", "strikethrough"])
    try:
        return str(render(source))
    except Exception:  # nesting without end, say: then it is shown as it was typed
        return printed(source)


def code(text: str) -> str:
    """Python as HTML, its kinds of words told apart by classes."""
    source = cut(text)
    parts, end = [], 0
    for found in WORDS.finditer(source):
        kind = found.lastgroup
        parts.append(html.escape(source[end : found.start()]))
        end = found.end()
        shown = html.escape(found.group())
        if kind == "word":
            kind = "keyword" if iskeyword(found.group()) else ""
        parts.append(f'<span class="{kind}">{shown}</span>' if kind else shown)
    parts.append(html.escape(source[end:]))
    return f'<pre class="code"><code>{"".join(parts)}</code></pre>'


def printed(text: str) -> str:
    """Text as it was printed."""
    return f"<pre>{html.escape(cut(text))}</pre>"


class _Inert(mistune.HTMLRenderer):
    def __init__(self, below: int) -> None:
        super().__init__(escape=True)
        self._below = below

    def link(self, text: str, url: str, title: str | None = None) -> str:
        if not LINK.match(url):
            return text
        return f'<a href="{html.escape(url)}" rel="noopener noreferrer">{text}</a>'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # Fetching a picture would tell its server who reads the page, and when.
        return f"[picture: {text}]" if text else "[picture]"

    def heading(self, text: str, level: int, **attrs: object) -> str:
        tag = f"h{min(level + self._below, LOWEST_HEADING)}"
        return f"<{tag}>{text}</{tag}>\n"

    def block_code(self, code: str, info: str | None = None) -> str:
        return f"<pre><code>{html.escape(code)}</code></pre>\n"
