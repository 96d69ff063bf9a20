"""`make pictures`: makes the store, serves it, and looks at it with Chromium."""

from __future__ import annotations

import base64
import sys

import click
from playwright.sync_api import Browser, Page, sync_playwright

from tools.pictures.manifest import FOLDER, MANIFEST, describe
from tools.pictures.scenes import SCENES, Scene, served_store
from tools.servers.find import chromium

_WIDTH, _HEIGHT = 1_100, 720
_QUALITY = 80


@click.command()
def main() -> None:
    """Make the pictures of docs/console anew, and the list of what is on them."""
    program = chromium()
    if program is None:
        raise click.ClickException("This needs Chromium. On Debian: apt-get install chromium-headless-shell")
    with served_store() as (port, tokens), sync_playwright() as playwright:
        MANIFEST.write_text(describe(port, tokens), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for scene in SCENES:
            file = FOLDER / f"{scene.name}.webp"
            file.write_bytes(_look(browser, f"http://127.0.0.1:{port}", scene, tokens[scene.role]))
            click.echo(f"{file.name}: {file.stat().st_size / 1_000:.0f} kB", file=sys.stderr)
        browser.close()


def _look(browser: Browser, base: str, scene: Scene, token: str) -> bytes:
    context = browser.new_context(viewport={"width": _WIDTH, "height": _HEIGHT}, reduced_motion="reduce")
    context.add_cookies([{"name": "petstore-session", "value": token, "url": base}])
    page = context.new_page()
    page.goto(f"{base}/console/{scene.address}".rstrip("/"), wait_until="networkidle")
    picture = _picture(page)
    context.close()
    return picture


def _picture(page: Page) -> bytes:
    """WebP, a third of a PNG's size."""
    session = page.context.new_cdp_session(page)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": _QUALITY})
    return base64.b64decode(taken["data"])


if __name__ == "__main__":
    main(prog_name="make pictures")
