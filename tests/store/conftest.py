"""A path for a store, and a database."""

from __future__ import annotations

import hashlib

import pytest

from tests.store.link import Link

pytest.register_assert_rewrite("tests.store.conformance")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture
def database(postgres, request):
    """The name of a database of this test."""
    name = "db" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]
    postgres.create(name)
    return name


@pytest.fixture
def url(postgres, database):
    return postgres.url(database)


@pytest.fixture
def link(postgres):
    line = Link(postgres.port)
    yield line
    line.close()
