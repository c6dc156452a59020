"""What the OpenAPI document says is what the API does: examples fit, and schemathesis finds no difference.

Schemathesis makes requests that fit the document and requests that do not, the same ones in every run, and
checks status, media type, headers, schema, authentication, and that nothing but a 2xx follows from the first
kind and nothing but a refusal from the second.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator

from service.approval.failures import WINDOW_SECONDS
from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from tests.approval.live import LiveApi, live_api
from tests.conftest import ValkeyServer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.specs.openapi.checks import positive_data_acceptance

MEANT_OTHERWISE = {
    "PUT /api/v1/models/{model}/tiers/{tier}/approval": "an override needs a reason",
    "POST /api/v1/adjudication/labels": "a label cannot have been given in the future",
    "POST /api/v1/models/{model}/shadow-jobs": "a manifest must be one, and brings its plan",
    "POST /gates/kayenta/canary/{config}": "the threshold to pass is above the marginal one",
    "POST /gates/kayenta/standalone_canary_analysis/{config}": "as above",
    "POST /gates/kayenta/judge": "both scopes have the same steps",
}
"""Where what fits the schema may be refused all the same, since no schema can say so."""
EXAMPLES = 4
"""Of each kind for each operation."""


@pytest.fixture(scope="module")
def guarded_api(tmp_path_factory: pytest.TempPathFactory, valkey_server: ValkeyServer) -> Iterator[LiveApi]:
    """Reads need a token as well, so that a missing one is seen."""
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('spec') / 'tiergate.db'}")
    captures = open_captures(valkey_server.url, timeout=2)
    try:
        with live_api(database, captures, loopback_reads=False) as running:
            running.accept("w8a8")
            yield running
    finally:
        captures.close()
        database.close()


def document(api: LiveApi) -> dict[str, Any]:
    known: dict[str, Any] = api.client().get("/openapi.json").json()
    return known


def media(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    holders = [*operation["responses"].values(), operation.get("requestBody", {})]
    contents = [holder.get("content", {}) for holder in holders]
    return (each for content in contents for kind, each in content.items() if "json" in kind)


def test_every_body_and_answer_has_an_example_that_fits_its_schema(guarded_api: LiveApi) -> None:
    spec = document(guarded_api)
    checked = 0
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            for each in media(operation):
                if not each.get("schema"):
                    continue
                assert "example" in each, f"{method} {path}"
                schema = {**each["schema"], "components": spec["components"]}
                wrong = [error.message for error in Draft202012Validator(schema).iter_errors(each["example"])]
                assert wrong == [], f"{method} {path}"
                checked += 1
    assert checked > 100


def test_every_write_takes_a_key_and_no_read_does(guarded_api: LiveApi) -> None:
    for path, methods in document(guarded_api)["paths"].items():
        for method, operation in methods.items():
            names = {parameter["name"] for parameter in operation.get("parameters", ())}
            writes = method != "get" and path.startswith("/api/")
            assert ("Idempotency-Key" in names) == writes, f"{method} {path}"


def test_schemathesis_finds_no_difference_between_document_and_api(guarded_api: LiveApi) -> None:
    spec = schemathesis.openapi.from_dict(document(guarded_api))
    spec.config.update(base_url=guarded_api.url)
    spec.config.generation.with_security_parameters = False  # every request shows the token below
    headers = {"Authorization": f"Bearer {guarded_api.secrets['admin']}"}
    operations = [found.ok() for found in spec.get_all_operations()]
    assert len(operations) > 25
    assert set(MEANT_OTHERWISE) <= {operation.label for operation in operations}
    differences = []
    for operation in operations:
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

            @hypothesis.settings(
                max_examples=EXAMPLES,
                derandomize=True,
                database=None,
                deadline=None,
                suppress_health_check=list(hypothesis.HealthCheck),
                phases=[hypothesis.Phase.generate],
            )
            @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: schemathesis.Case) -> None:
                accepted = [positive_data_acceptance] if case.operation.label in MEANT_OTHERWISE else []
                guarded_api.clock.at += WINDOW_SECONDS  # schemathesis shows many wrong tokens
                case.call_and_validate(headers=headers, excluded_checks=accepted)

            try:
                ask()
            except Unsatisfiable:
                # Any text may stand in a path, so that with nothing else nothing can be wrong.
                asked = {parameter["in"] for parameter in operation.definition.raw.get("parameters", ())}
                assert asked <= {"path"}, operation.label
                assert "requestBody" not in operation.definition.raw, operation.label
            except (Exception, BaseExceptionGroup) as error:
                differences.append(f"{operation.label} {mode}: {type(error).__name__} {error}")
    assert not differences, "\n\n".join(differences)
