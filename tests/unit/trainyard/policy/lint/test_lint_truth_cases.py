"""Single errors in otherwise clean files: lint's finding, and its line."""

import json

import pytest
from lint_cases import one, site
from lint_texts import MAIN, REPLICAS, STEP, VCJOB, WORKFLOW, resource

from trainyard.pipelines.lint.files import check_text

# What is wrong, the text, old, new, code, what the line of the finding holds, what the finding says.
CASES = [
    ("the manifest's queue", resource(VCJOB), "queue: vision", "queue: default", "p05", "queue: default", "default"),
    (
        "a kind that the account may not create",
        resource("apiVersion: v1\nkind: Secret\nmetadata: {name: digits}\n"),
        "digits",
        "digits",
        "TY110",
        "kind: Secret",
        "steps of pipelines may not create a Secret (secrets)",
    ),
    ("a step that applies", resource(VCJOB, "apply"), "apply", "apply", "TY216", "action: apply", "may not apply"),
    (
        "the pod of a resource template",
        resource(VCJOB),
        "    annotations: {scheduling.volcano.sh/queue-name: vision}\n",
        "    annotations: {}\n",
        "p03",
        "annotations",
        "names no queue",
    ),
    ("a template of the kind http", WORKFLOW, MAIN, "      http: {url: https://a.org}\n", "TY216", "http:", "not run"),
    ("a plugin's template", WORKFLOW, MAIN, "      plugin: {hello: {}}\n", "TY216", "plugin:", "of the kind plugin"),
    ("a template of elsewhere", WORKFLOW, MAIN, "      steps: [[{name: a, templateRef: {name: lib, template: t}}]]\n",
     "TY217", "templateRef", "WorkflowTemplate lib"),
    ("a template of the whole cluster", WORKFLOW, MAIN,
     "      steps: [[{name: a, templateRef: {name: lib, template: t, clusterScope: true}}]]\n", "TY216", "templateRef",
     "ClusterWorkflowTemplate"),
    ("an artifact of git", WORKFLOW, "    - name: main\n",
     "    - name: main\n      inputs: {artifacts: [{name: code, path: /c, git: {repo: 'https://github.com/a/b'}}]}\n",
     "TY303", "git:", "github.com"),
    ("an artifact in a bucket that is not there", WORKFLOW, "    - name: main\n",
     "    - name: main\n      outputs: {artifacts: [{name: out, path: /c, s3: {bucket: mine, key: a}}]}\n", "TY504",
     "bucket: mine", "unknown bucket mine"),
    ("a field that is misspelt", WORKFLOW, MAIN, "      dag: {tasks: [{name: a, template: main, withParm: '[1]'}]}\n",
     "TY105", "withParm", "unknown field withParm"),
    ("packages of Debian", WORKFLOW, STEP, "[sh, -c, apt-get -y install x]", "TY302", "apt-get", "packages"),
    *(
        (f"packages: {command}", WORKFLOW, STEP, command, "TY302", command, "packages")
        for command in (
            "[sh, -c, apk add git]",
            "[sh, -c, apt-get -o Retries=3 install x]",
            "[sh, -c, pip3.11 -q install x]",
            "[python3, -m, pip, install, x]",
            "[uv, add, x]",
            """[python3, -c, 'import os; os.system("pip install x")']""",
            """[python3, -c, 'import os; a = "pip install x"; os.system(a)']""",
            """[python3, -c, 'run(["conda", "-y", "install", "x"])']""",
        )
    ),
    ("a clone", WORKFLOW, STEP, "[sh, -c, git clone x]", "TY303", "git clone", "downloads"),
    ("a download", WORKFLOW, STEP, "[sh, -c, 'curl -O https://example.org/x']", "TY303", "curl", "from example.org"),
    ("a cache of another name", WORKFLOW, "    - name: main\n",
     "    - name: main\n      memoize: {key: a, cache: {configMap: {name: mine}}}\n", "p21", "mine", "the cache mine"),
    (
        "a claim without class",
        WORKFLOW,
        "  entrypoint: main\n",
        "  entrypoint: main\n  volumeClaimTemplates:\n    - metadata: {name: v}\n"
        "      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
        "p24",
        "accessModes",
        "no storage class",
    ),
    ("two policies for one event", VCJOB, "  plugins:", "    - {event: PodEvicted, action: AbortJob}\n  plugins:",
     "TY109", "AbortJob", "two policies are for the event PodEvicted"),
    ("a policy for nothing", VCJOB, "event: PodEvicted, ", "", "TY109", "RestartJob", "neither event nor"),
    ("an init container of a plugin", VCJOB, "    svc: []", "    pytorch: [--wait-master-enabled=true]", "TY109",
     "pytorch:", "adds a container of busybox"),
    ("a plugin without its tasks", VCJOB, "    svc: []", "    mpi: [--master=launcher]", "TY109", "mpi:",
     "task launcher"),
    ("a task of which more must be there", VCJOB, REPLICAS, f"{REPLICAS}      minAvailable: 4\n",
     "TY109", "minAvailable: 4", "worker has 3 replicas"),
    ("a task that waits for another", VCJOB, REPLICAS, f"{REPLICAS}      dependsOn: {{name: [master]}}\n",
     "p22", "", "a gang starts as a whole"),
    ("a part of a gang, in Volcano's defaults", VCJOB, REPLICAS, f"{REPLICAS}      minAvailable: 1\n",
     "p22", "", "minAvailable is 2, the job has 4 replicas: part of them would start and wait"),
]  # fmt: skip


def test_python_that_speaks_of_an_installation_installs_nothing() -> None:
    code = "'''pip install x'''\n# pip install x\nhint = \"pip install x\"\nprint(\"pip install x\")"
    text = WORKFLOW.replace(STEP, json.dumps(["python3", "-c", code]))
    assert text != WORKFLOW and check_text(text, "file.yaml", site()) == []


@pytest.mark.parametrize(
    ("about", "text", "old", "new", "code", "line", "says"), CASES, ids=[case[0] for case in CASES]
)
def test_case(about: str, text: str, old: str, new: str, code: str, line: str, says: str) -> None:
    assert old in text
    text = text.replace(old, new, 1)
    found = check_text(text, "file.yaml", site())
    if code == "TY109" and "minAvailable" in new:
        found = [finding for finding in found if finding.code != "p22"]
    one(found, text, code, line)
    assert says in found[0].reason
