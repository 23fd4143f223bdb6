"""The reference's pages of classes and functions, written as HTML directly.

There are thousands of them, all of one form. Sphinx took most of the time of a build for them: it makes a tree of each
page, and renders the theme's templates each time. Here Sphinx renders one empty page with the theme, and the page of an
object is that page with its text put in. Sphinx's search index and inventory learn of these pages as of any other.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils import new_document
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound
from sphinx.domains.python import ObjectEntry

from . import reference
from .reference import Member, Page

FOLDER = "reference"
_EMPTY = f"{FOLDER}/flambeau.an-empty-page"
_TITLE, _BODY, _ANCHOR, _PARENT = "an-empty-title", "<!-- an empty body -->", "an-empty-anchor", "an-empty-parent"
_TAG = re.compile(r"<[^>]*>")
_LONG = 88
"""A signature of more characters has a line for each parameter."""


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    pages: list[Page] = []
    app.connect("builder-inited", lambda app: pages.extend(reference.write(Path(app.srcdir) / FOLDER)))
    app.connect("env-updated", lambda app, env: register(app, pages))
    app.connect("html-collect-pages", lambda app: write(app, pages))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def register(app: Any, pages: list[Page]) -> None:
    """Tell Sphinx of the objects, before it resolves references to them."""
    objects = app.env.domains["py"].data["objects"]
    for page in pages:
        for each in page.members:
            objects[each.name] = ObjectEntry(f"{FOLDER}/{page.name}", each.name, each.kind, False)


def write(app: Any, pages: list[Page]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Let Sphinx render the empty page, then write the others from it and add them to the search index."""
    place = f'<ul><li><a class="reference internal" href="#{_ANCHOR}"></a></li></ul>'
    toc = f'<ul><li><a href="#">{_TITLE}</a>{place}</li></ul>'
    parents = [{"title": "API reference", "link": "index.html"}, {"title": _PARENT, "link": f"{_PARENT}.html"}]
    yield _EMPTY, {"title": _TITLE, "body": _BODY, "toc": toc, "parents": parents}, "page.html"
    file = Path(app.outdir) / f"{_EMPTY}.html"
    empty = file.read_text(encoding="utf-8")
    file.unlink()
    entry = re.search(rf'<li class="[^"]*"><a class="[^"]*" href="#{_ANCHOR}"></a></li>', empty)
    assert entry is not None, "the theme's list of headings has another form than before"
    indexer = app.builder.indexer
    for page in pages:
        body = _body(page)
        filled = {
            _EMPTY: f"{FOLDER}/{page.name}",
            _TITLE: page.title,
            _PARENT: page.parent,
            entry[0]: "".join(_heading(entry[0], each) for each in page.members),
            _BODY: body,
        }
        text = empty
        for old, new in filled.items():
            text = text.replace(old, new)
        (Path(app.outdir) / FOLDER / f"{page.name}.html").write_text(text, encoding="utf-8")
        indexer.feed(f"{FOLDER}/{page.name}", f"{FOLDER}/{page.name}.md", page.title, _words(page, body))
    kept = {f"{FOLDER}/{page.name}" for page in pages}
    forget = indexer.prune  # which would forget all pages that Sphinx has not read
    indexer.prune = lambda names: forget([*names, *kept])


def _heading(empty: str, member: Member) -> str:
    """An entry of the list of a page's headings."""
    own = member.name.rpartition(".")[2] + ("" if member.kind == "class" else "()")
    return empty.replace(_ANCHOR, member.name).replace("></a>", f"><code>{own}</code></a>")


def _words(page: Page, body: str) -> nodes.document:
    """The page as the search index reads it."""
    document = new_document(page.name)
    section = nodes.section(ids=[page.members[0].name])
    section += nodes.title("", page.title)
    section += nodes.paragraph("", html.unescape(_TAG.sub(" ", body)))
    document += section
    return document


def _body(page: Page) -> str:
    first, *methods = page.members
    anchor = html.escape(first.name)
    lines = [f'<section id="{anchor}-page">', f"<h1>{html.escape(page.title)}</h1>"]
    lines += [
        f'<p><a class="reference internal" href="{page.parent}.html">{page.parent}</a> {page.source}</p>',
        _description(first),
    ]
    if methods:
        lines += ['<section id="methods">', '<h2>Methods<a class="headerlink" href="#methods">#</a></h2>']
        lines += [*map(_description, methods), "</section>"]
    return "\n".join([*lines, "</section>"])


def _description(member: Member) -> str:
    prefix, _, own = member.name.rpartition(".")
    word = '<em class="property">class </em>' if member.kind == "class" else ""
    return (
        f'<dl class="py {member.kind}"><dt class="sig sig-object py" id="{member.name}">{word}'
        f'<span class="sig-prename descclassname">{prefix}.</span><span class="sig-name descname">{own}</span>'
        f"{_signature(member.signature.removesuffix(' -> None') if member.kind == 'class' else member.signature)}"
        f'<a class="headerlink" href="#{member.name}" title="Link to this definition">#</a></dt>'
        f"<dd>{_markdown(member.text)}</dd></dl>"
    )


def _signature(text: str) -> str:
    parameters, result = _parts(text)
    shown = [f'<em class="sig-param">{_parameter(each)}</em>' for each in parameters]
    if len(text) > _LONG:
        inner = "<dl>" + "".join(f"<dd>{each},</dd>" for each in shown) + "</dl>"
    else:
        inner = ", ".join(shown)
    arrow = '<span class="sig-return"><span class="sig-return-icon">&#x2192;</span> '
    returned = f'{arrow}<span class="sig-return-typehint">{_type(result)}</span></span>' if result else ""
    return f'<span class="sig-paren">(</span>{inner}<span class="sig-paren">)</span> {returned}'


def _parts(text: str) -> tuple[list[str], str]:
    """The parameters of a signature and the type of its result, as they are written."""
    depth, start, quote = 0, 1, ""
    parameters: list[str] = []
    for place, letter in enumerate(text):
        if quote or letter == '"':
            quote = ("" if letter == '"' else quote) if quote else letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        if not quote and ((letter == "," and depth == 1) or (letter == ")" and depth == 0)):
            parameters.append(text[start:place].strip())
            start = place + 1
            if depth == 0:
                break
    return [each for each in parameters if each], text[start:].strip().removeprefix("->").strip()


def _parameter(text: str) -> str:
    found = re.fullmatch(r"(\*{0,2}\w+)(?:: (.*?))?(?:( ?= ?)(.*))?", text, re.DOTALL)
    if found is None:
        return html.escape(text, quote=False)
    name, annotation, equals, default = found.groups()
    shown = f'<span class="n">{name}</span>'
    shown += f'<span class="p">:</span> <span class="n">{_type(annotation)}</span>' if annotation else ""
    return shown + (
        f'<span class="o">{equals}</span><span class="default_value">{html.escape(default)}</span>' if equals else ""
    )


def _type(text: str) -> str:
    link = r'<a class="reference internal" href="flambeau.Tensor-class.html">Tensor</a>'
    return re.sub(r"(?<![\w.])Tensor\b", link, html.escape(text, quote=False))


@cache
def _code(text: str, language: str, _: str = "") -> str:
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    return f'<div class="highlight-{language or "text"} notranslate">{highlight(text, lexer, _FORMATTER)}</div>'


_FORMATTER = HtmlFormatter()
_READER = MarkdownIt("commonmark").enable("table")
_READER.add_render_rule(
    "fence", lambda self, tokens, index, options, env: _code(tokens[index].content, tokens[index].info.strip())
)


@cache
def _markdown(text: str) -> str:
    rendered: str = _READER.render(text)
    return rendered.replace("<ul>", '<ul class="simple">').replace(
        "<code>", '<code class="docutils literal notranslate">'
    )
