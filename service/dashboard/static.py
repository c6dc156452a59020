"""Styles and scripts, read once; an address changes with what lies behind it, so browsers may keep them.

While one API process after another is replaced, a page of the one asks the other for its files: under an
address of another version nothing is kept, or a browser would have the wrong file for a year.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from service.charts import STYLE

MEDIA = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FOLDER = Path(__file__).parent / "assets"
ASSETS = {
    **{path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in MEDIA},
    "charts.css": STYLE.encode(),
}
"""By name."""
KEPT = "public, max-age=31536000, immutable"
_TAGS = {name: sha256(body).hexdigest()[:16] for name, body in ASSETS.items()}


def asset_url(name: str) -> str:
    """Where a page finds it; KeyError for a name that is not there."""
    return f"/assets/{name}?v={_TAGS[name]}"


def asset_routes() -> Sequence[BaseRoute]:
    """One for each."""
    return [_route(name) for name in ASSETS]


def _route(name: str) -> Route:
    async def asset(request: Request) -> Response:
        own = request.query_params.get("v") == _TAGS[name]
        headers = {"Cache-Control": KEPT if own else "no-store", "ETag": f'"{_TAGS[name]}"'}
        return Response(ASSETS[name], media_type=MEDIA[Path(name).suffix], headers=headers)

    return Route(f"/assets/{name}", asset, methods=["GET"])
