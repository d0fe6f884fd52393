"""A step with a cache is shown as one step, whatever nodes Argo made for it."""

from trainyard.pipelines.runs.memoization import unwrap


def node(key: str, kind: str, **more) -> dict:
    return {"id": key, "name": f"run.{key}", "displayName": key, "type": kind, "phase": "Succeeded", **more}


def test_a_box_becomes_the_retry_in_it() -> None:
    nodes = {
        "root": node("root", "DAG", name="run", children=["write"]),
        "write": node("write", "DAG", boundaryID="root", memoizationStatus={"hit": False}, templateName="write-cached"),
        "a": node("a", "Retry", name="run.write.run", displayName="run", boundaryID="write", children=["b"]),
        "b": node("b", "Pod", name="run.write.run(0)", displayName="run(0)", boundaryID="write", children=["read"]),
        "read": node("read", "DAG", boundaryID="root", memoizationStatus={"hit": True}),
        "group": node("group", "DAG", boundaryID="root"),
    }
    found = unwrap(nodes)
    assert sorted(found) == ["a", "b", "group", "read", "root"]
    assert found["root"]["children"] == ["a"]
    assert (found["a"]["name"], found["a"]["displayName"], found["a"]["boundaryID"]) == ("run.write", "write", "root")
    assert (found["b"]["name"], found["b"]["displayName"]) == ("run.write(0)", "write(0)")
    assert found["read"]["type"] == "Retry" and found["group"] == nodes["group"]
    assert nodes["root"]["children"] == ["write"]  # what was given stays as it was
