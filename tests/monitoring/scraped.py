"""Series as kubelets give them, of three pods of one job, for a real Prometheus to take."""

import http.server
import time

GIB = 1 << 30
SCRAPE_S, LONG_S = 1, 24
CORES = {"ddp-master-0": 0.5, "ddp-worker-0": 2.0, "ddp-worker-1": 3.0}


class Kubelet(http.server.BaseHTTPRequestHandler):
    """Series of three pods, of which each uses its cores evenly; the last one is throttled and was killed once."""

    begun = 0.0

    def do_GET(self) -> None:
        now = time.time()
        lines = []
        for pod, cores in CORES.items():
            of = f'namespace="vision",pod="{pod}",container="pytorch"'
            place = f'namespace="vision",pod="{pod}"'
            late = pod.endswith("-1")
            lines += [
                f'container_cpu_usage_seconds_total{{{of},id="/a"}} {cores * (now - self.begun)}',
                f'container_memory_working_set_bytes{{{of},id="/a"}} {cores * GIB}',
                f"container_cpu_cfs_periods_total{{{of}}} {(now - self.begun) * 10}",
                f"container_cpu_cfs_throttled_periods_total{{{of}}} {(now - self.begun) * 4 * late}",
                f'kube_pod_container_resource_requests{{{of},resource="cpu",unit="core",node="n"}} 4',
                f'kube_pod_container_resource_requests{{{of},resource="nvidia_com_gpu",unit="integer",node="n"}} 2',
                f'kube_pod_container_resource_limits{{{of},resource="memory",unit="byte",node="n"}} {8 * GIB}',
                f"kube_pod_start_time{{{place}}} {self.begun}",
                f'kube_pod_status_phase{{{place},phase="Running"}} 1',
                f'kube_pod_status_phase{{{place},phase="Failed"}} 0',
                f'trainyard_pod_job{{{place},team="vision",queue="q",job="ddp",kind="PyTorchJob",person="ada"}} 1',
            ]
            for gpu in (0, 1):
                lines += [
                    f'DCGM_FI_DEV_GPU_UTIL{{{of},gpu="{gpu}"}} {80 * gpu}',
                    f'DCGM_FI_DEV_FB_USED{{{of},gpu="{gpu}"}} {1024 * (1 + gpu)}',
                    f'DCGM_FI_DEV_FB_FREE{{{of},gpu="{gpu}"}} {1024 * (3 - gpu)}',
                ]
        killed = 'namespace="vision",pod="ddp-worker-1",container="pytorch",reason="OOMKilled"'
        lines.append(f"kube_pod_container_status_last_terminated_reason{{{killed}}} 1")
        # Of the same name, in another team.
        lines.append('container_memory_working_set_bytes{namespace="speech",pod="ddp-worker-1",container="x"} 1')
        body = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
