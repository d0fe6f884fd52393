"""A Volcano Job and a Workflow without findings, and the parts of them that cases replace."""

IMAGE = "site.invalid/trainyard/trainer-torch:0.4.0"
SECURITY = "{runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}"
CLOSED = "{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"
POD = f"""\
automountServiceAccountToken: false
          restartPolicy: Never
          securityContext: {SECURITY}
          containers:
            - {{name: main, image: {IMAGE}, command: [python3, train.py], securityContext: {CLOSED}}}
"""
VCJOB = f"""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: digits}}
spec:
  queue: vision
  ttlSecondsAfterFinished: 600
  policies:
    - {{event: PodEvicted, action: RestartJob}}
  plugins:
    svc: []
  tasks:
    - name: master
      replicas: 1
      template:
        spec:
          {POD}
    - name: worker
      replicas: 3
      template:
        spec:
          {POD}
"""
WORKFLOW = f"""\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{generateName: digits-}}
spec:
  entrypoint: main
  serviceAccountName: pipeline
  activeDeadlineSeconds: 86400
  ttlStrategy: {{secondsAfterCompletion: 3600}}
  podMetadata:
    annotations: {{scheduling.volcano.sh/queue-name: vision}}
  templates:
    - name: main
      container: {{image: {IMAGE}, command: [python3, step.py]}}
"""
MAIN = WORKFLOW[WORKFLOW.index("      container:") :]


REPLICAS = "      replicas: 3\n"
FIRST = "  entrypoint: main\n"
STEP = "[python3, step.py]"


def resource(manifest: str, action: str = "create") -> str:
    """The workflow with a resource template instead of its container."""
    inner = "".join(f"          {line}\n" for line in manifest.splitlines())
    return WORKFLOW.replace(MAIN, f"      resource:\n        action: {action}\n        manifest: |\n{inner}")
