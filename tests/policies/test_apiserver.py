"""The API server of these tests is a real one: its own admission, rights and quotas answer."""

from trainyard_dev.apiserver import ApiServer, Identity

MEMBER = Identity("ada", ("vision-members",))


def test_rights_are_asked(server: ApiServer) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "speech"}, "spec": {}}
    answer = server.create(pod, identity=MEMBER, dry_run=True)
    assert answer.status == 403
    assert 'User "ada" cannot create resource "pods"' in answer.message


def test_kubectl_acts_for_others(server: ApiServer) -> None:
    asked = server.kubectl(["auth", "can-i", "create", "pods", "-n", "vision"], as_user="ada", check=False)
    assert asked.stdout.strip() == "no"
    groups = MEMBER.groups
    asked = server.kubectl(["auth", "can-i", "create", "pods", "-n", "vision"], as_user="ada", as_groups=groups)
    assert asked.stdout.strip() == "yes"


def test_pod_security_is_asked(server: ApiServer) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "vision"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i"}], "hostNetwork": True}
    assert 'violates PodSecurity "restricted:v1.34"' in server.create(pod, identity=MEMBER, dry_run=True).message


def test_quotas_count(server: ApiServer) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "x", "namespace": "vision"}}
    claim["spec"] = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "99Ti"}}}
    answer = server.create(claim, dry_run=True)
    assert answer.status == 403
    assert "maximum storage usage per PersistentVolumeClaim is 100Gi" in answer.message
