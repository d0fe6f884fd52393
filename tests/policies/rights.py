"""What an account may do, as the API server's authorizer answers."""

from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.client import Identity


def may(server: ApiServer, who: Identity, verb: str, resource: str, namespace: str = "", name: str = "") -> bool:
    """What `kubectl auth can-i` asks. `resource` is plural[.group], with /subresource after the plural."""
    plural, _, group = resource.partition(".")
    if "/" in group:
        group, _, sub = group.partition("/")
    else:
        plural, _, sub = plural.partition("/")
    groups = [*who.groups, "system:authenticated"]
    if who.user.startswith("system:serviceaccount:"):
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{who.user.split(':')[2]}"]
    asked = {"verb": verb, "group": group, "version": "*", "resource": plural, "subresource": sub}
    asked |= {"namespace": namespace, "name": name}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer = server.create(review | {"spec": {"user": who.user, "groups": groups, "resourceAttributes": asked}})
    assert answer.ok, answer.message
    return bool(answer.body["status"]["allowed"])
