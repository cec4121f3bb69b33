"""What MkDocs calls while it builds the site: documents from all over the repository in, a checked site out.

MkDocs is asked for nothing but `docs/`, a theme and a navigation. The rest is here, in five steps: add the pages that
lie elsewhere, point their links at pages, lay lists out as Python-Markdown reads them, show state diagrams as tables,
and read the finished HTML once more.
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from built_site import problems
from list_layout import relaid
from markdown_text import slug
from repository_pages import SOURCE, Site, tracked_files
from state_tables import with_tables

ROOT = Path(__file__).resolve().parents[2]
_sites: dict[str, Site] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the anchors that GitHub gives them: links are written for both."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = lambda heading, separator: slug(heading)
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add README and its neighbours, and what pages link to besides."""
    try:
        site = _sites[config.docs_dir] = Site(ROOT, tracked_files(ROOT))
    except FileNotFoundError as error:
        raise PluginError(str(error)) from error
    for document, page in site.page_of.items():
        if files.get_file_from_path(page):
            continue
        if document in site.made:
            files.append(File.generated(config, page, content=site.made[document]))
        else:
            files.append(File.generated(config, page, abs_src_path=str(ROOT / document)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    site = _sites[config.docs_dir]
    document = site.document_of[page.file.src_uri]
    if page.file.src_uri.startswith(SOURCE):
        page.meta["search"] = {"exclude": True}
    return relaid(with_tables(site.with_links(document, markdown)))


def on_post_build(*, config: MkDocsConfig) -> None:
    found = list(problems(Path(config.site_dir)))
    if found:
        raise PluginError("the built site is not whole:\n  " + "\n  ".join(found))
