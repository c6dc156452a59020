"""Where the public traces lie."""

from tests.evaluators.conftest import suites as suites
