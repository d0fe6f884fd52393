"""The account of the service behind kfp.Client on real stores: it reads what runs stored, and nothing else."""

import json
from datetime import timedelta
from typing import Any

import pytest
from acts import Act, all_refused, fetch, listing, put, remove
from cluster import KEY, FakeApi
from minio import Minio
from minio.error import S3Error

from servers import Server
from trainyard_agent.store import accounts, buckets, s3_users

RUN, MODEL, KEEP = "vision/pipelines/mnist-1/train/model/data", "vision/models/mnist/1/model.pt", timedelta(days=7)
pytestmark = pytest.mark.parametrize("server", ["minio", "gateway"], indirect=True)
REFUSED: dict[str, Act] = {
    "read a registered model": fetch("runs", MODEL),
    "read a data set": fetch("datasets", "vision/own"),
    "list the names of all teams": listing("runs", ""),
    "list all that a team has": listing("runs", "vision/", recursive=True),
    "list a data set": listing("datasets", "vision/pipelines/"),
    "list all versions": listing("runs", "", include_version=True),
    "change what a run stored": put("runs", RUN),
    "add to what a run stored": put("runs", "vision/pipelines/mnist-1/more"),
    "delete what a run stored": remove("runs", RUN),
    "make a bucket": lambda client: client.make_bucket("mine"),
}


@pytest.fixture
def service(contract: Any, clock: Any, environment: Any, server: Server, api: FakeApi, monkeypatch: Any) -> Minio:
    """The account's client; a run and a model of a team lie there."""
    contract["kfpApi"] = {"url": ""}
    for name, value in (("ENDPOINT", server.root.endpoint), ("ACCESS_KEY", KEY[0]), ("SECRET_KEY", KEY[1])):
        monkeypatch.setenv(f"KFP_{name}", value)
    buckets.ensure(contract, clock)
    s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]
    for bucket, key in (("runs", RUN), ("runs", MODEL), ("datasets", "vision/own")):
        put(bucket, key)(server.admin)
    return server.client(*KEY)


def test_it_reads_what_runs_stored_and_nothing_else_while_the_option_is_on(
    service: Minio, contract: Any, api: FakeApi, subtests: pytest.Subtests
) -> None:
    assert fetch("runs", RUN)(service) == b"x"
    assert listing("runs", "vision/pipelines/mnist-1/", recursive=True)(service) == [RUN]
    all_refused(REFUSED, service, subtests)
    del contract["kfpApi"]
    s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]
    assert "trainyard-kfp" not in accounts.open_store(contract).held()
    with pytest.raises(S3Error, match="InvalidAccessKeyId"):
        fetch("runs", RUN)(service)


def test_an_external_store_is_told_what_to_permit(contract: Any, api: FakeApi) -> None:
    contract["storage"]["s3"] |= {"mode": "external", "users": "manual"}
    contract["kfpApi"] = {"url": ""}
    s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]
    published = json.loads(api.applied[0]["data"]["trainyard-kfp.json"])
    assert [action for one in published["Statement"] for action in one["Action"]] == [
        "s3:GetBucketLocation", "s3:ListBucket", "s3:GetObject",
    ]  # fmt: skip
