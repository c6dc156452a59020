"""Where the API is, for the commands that ask it: as they are told, else as the configuration says.

Two keys of the file are read and no more: its secrets may be on another machine, its certificates expired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8081"
_OTHERWISE = "; correct that, or say where the API is with --url or TIERGATE_URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Of an API that `tiergate up` may have started here."""

    url: str
    token_file: Path
    """Where `up` leaves a token, whether there is one or not."""


def whereabouts(config: Path | None, url: str | None, environ: Mapping[str, str]) -> Whereabouts:
    """By `url`, else TIERGATE_API_LISTEN, else the file, else `DEFAULT_URL`.

    ValueError, with what to do, when the file is needed and says nothing that can be used.
    """
    file = (config or Path("tiergate.yaml")).expanduser()
    try:
        content = _content(file) if config is not None or file.exists() else {}
    except ValueError:
        if url is None:
            raise
        content = {}
    return Whereabouts(
        url=url or _api_url(file, content, environ), token_file=_state_dir(file, content, environ) / "token"
    )


def _api_url(file: Path, content: Mapping[str, object], environ: Mapping[str, str]) -> str:
    written = environ.get("TIERGATE_API_LISTEN") or _inner(content, "api").get("listen")
    if written is None:
        return DEFAULT_URL
    from service.settings import units  # pydantic comes with it

    try:
        listen = units.listen(written)
    except ValueError as error:
        raise ValueError(f"{file}: api.listen: {error}{_OTHERWISE}") from None
    if listen.port == 0:
        raise ValueError(
            f"{file}: api.listen leaves the port to the moment: say where the API is with --url or"
            " TIERGATE_URL, as `tiergate up` prints it"
        )
    return listen.url()


def _state_dir(file: Path, content: Mapping[str, object], environ: Mapping[str, str]) -> Path:
    if given := environ.get("TIERGATE_STATE_DIR"):
        return Path(given).expanduser()
    written = _inner(content, "store").get("state_dir")
    return file.parent / Path(written if isinstance(written, str) else ".tiergate").expanduser()


def _inner(content: Mapping[str, object], key: str) -> Mapping[str, object]:
    inner = content.get(key)
    return inner if isinstance(inner, dict) else {}


def _content(file: Path) -> Mapping[str, object]:
    from service.settings.document import Unreadable, read_document

    try:
        return read_document(file.read_text(encoding="utf-8")).content
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}{_OTHERWISE}") from None
    except (UnicodeDecodeError, Unreadable) as error:
        raise ValueError(f"{file}: {error}{_OTHERWISE}") from None
