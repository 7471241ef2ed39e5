from __future__ import annotations

import pytest

from tests.support.service_setup import Setup


@pytest.fixture
def setup():
    return Setup()
