"""Reading one configuration: file, then environment, then values; or every problem at once."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from service.settings.build import build
from service.settings.complaints import complaints
from service.settings.document import Document, Unreadable, read_document
from service.settings.evaluating import OURS, Installed, installed, known
from service.settings.problems import Findings, Problem, SettingsError
from service.settings.shape import TiergateShape
from service.settings.values import Settings

DEFAULT_NAME = "tiergate.yaml"
LONGEST = 2 * 2**20
"""Bytes of a file; a thousand models have a quarter of that."""


def load(
    path: Path | None, environ: Mapping[str, str], *, make_key: bool = True, judges: bool = True
) -> Settings:
    """Read the file (else TIERGATE_CONFIG, else ./tiergate.yaml); raises `SettingsError` with every problem.

    Makes the capture key of an embedded installation when it is not there yet, unless `make_key` is false;
    changes nothing else. Loads the evaluators of other packages, unless `judges` is false, as in a proxy:
    their code has no business beside clients' requests.
    """
    chosen = path or Path(environ.get("TIERGATE_CONFIG") or DEFAULT_NAME)
    chosen = chosen.expanduser().absolute()
    document = read(chosen)
    problems = list(document.problems)
    settings: Settings | None = None
    names = known()
    judging = installed() if judges else Installed(evaluators=OURS)
    problems += [Problem(message=message) for message in judging.problems]
    try:
        shape = TiergateShape.model_validate(document.content, context={"known": names})
    except ValidationError as error:
        problems += complaints(error, document)
    else:
        findings = Findings()
        settings = build(
            shape,
            path=chosen,
            environ=environ,
            findings=findings,
            known=names,
            judging=judging.evaluators,
            make_key=make_key,
        )
        problems += [document.problem(place, message) for place, message in findings.entries]
    if problems or settings is None:
        raise SettingsError(chosen, problems)
    return settings


def read(path: Path) -> Document:
    """The plain values of a file; raises `SettingsError` for one that cannot be read or is no YAML."""
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
        if len(content) > LONGEST:
            message = f"this is longer than {LONGEST // 2**20} MiB, and no configuration"
            raise SettingsError(path, [Problem(message=message)])
        text = content.decode("utf-8")
    except FileNotFoundError:
        named = path.name if path.parent == Path.cwd() else str(path)
        message = f"there is no such file; `tiergate init {shlex.quote(named)}` writes one to start from"
        raise SettingsError(path, [Problem(message=message)]) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        message = "this is not UTF-8 text: save it as UTF-8, without another encoding"
        raise SettingsError(path, [Problem(line=line, message=message)]) from None
    except OSError as error:
        raise SettingsError(path, [Problem(message=f"cannot be read: {error.strerror}")]) from None
    try:
        return read_document(text)
    except Unreadable as error:
        raise SettingsError(path, [error.problem]) from None
