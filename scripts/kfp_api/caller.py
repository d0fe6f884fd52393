"""Who asks: a client of the API server with the caller's own token, and the teams in which the caller may look."""

from __future__ import annotations

import copy
import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kfp_api import ids
from kfp_api.errors import Code, RefusalError, invalid
from trainyard.kube import Kube, KubeError

KEPT_S = 30.0  # how long a caller's teams are remembered, in memory alone, by the digest of the token
MOST = 4096  # callers that are remembered


class Cluster:
    """The API server, without anybody's rights. One pool of connections serves all callers.

    Args:
        configuration: of the Kubernetes client, with the address and authority of the API server alone.
        teams: the names of all teams, asked for at each use.
    """

    def __init__(self, configuration: Any, teams: Any) -> None:
        self._base, self.teams = Kube(configuration), teams
        self._known: dict[tuple[str, str], tuple[float, Any]] = {}
        self._lock = threading.Lock()
        self.workers = ThreadPoolExecutor(8, thread_name_prefix="kube")

    def caller(self, token: str) -> Caller:
        """The client of one request. Raises RefusalError for what can't be a token."""
        if not token or len(token) > 16384 or not token.isascii() or not token.isprintable() or " " in token:
            raise RefusalError(Code.UNAUTHENTICATED, "no token: send it as `Authorization: Bearer TOKEN`")
        return Caller(self, token)

    def kube(self, token: str, team: str) -> Kube:
        """A client with this token in that namespace."""
        made, configuration = copy.copy(self._base), copy.copy(self._base.configuration)
        configuration.api_key, configuration.api_key_prefix = {"authorization": token}, {"authorization": "Bearer"}
        made.configuration, made.namespace = configuration, team
        return made

    def remembered(self, token: str, what: str, find: Any) -> Any:
        """What is known of a token, from the last half minute or from `find`."""
        key = what, hashlib.sha256(token.encode()).hexdigest()
        with self._lock:
            at, found = self._known.get(key, (0.0, None))
        if time.monotonic() - at < KEPT_S and at:
            return found
        found = find()
        with self._lock:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = time.monotonic(), found
        return found


class Caller:
    """The caller of one request."""

    def __init__(self, cluster: Cluster, token: str) -> None:
        self._cluster, self._token = cluster, token

    def kube(self, team: str) -> Kube:
        """A client with the caller's token in that namespace."""
        return self._cluster.kube(self._token, team)

    def each(self, function: Any, items: Any) -> list[Any]:
        """`function` of all items, several at once, in their order."""
        return list(self._cluster.workers.map(function, items))

    def of_all(self, function: Any, items: Any) -> list[Any]:
        """The lists that `function` gives for all items, as one."""
        return [one for found in self.each(function, items) for one in found]

    def user(self) -> str:
        """The caller's name. Raises KubeError: the cluster does not know the token, or it is expired."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = self.kube("").create(review)
        return str(answer["status"]["userInfo"].get("username", ""))

    def known(self) -> None:
        """Raises KubeError: the cluster does not know the token, or it is expired."""
        try:
            self._cluster.remembered(self._token, "user", self.user)
        except KubeError as error:
            if error.status != 403:  # it is known, but may not ask
                raise

    def teams(self) -> list[str]:
        """Namespaces in which the caller may list runs. Raises KubeError as `user` does."""

        def may(team: str) -> bool:
            wanted = {"namespace": team, "verb": "list", "group": "argoproj.io", "resource": "workflows"}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                      "spec": {"resourceAttributes": wanted}}  # fmt: skip
            return bool(self.kube("").create(review)["status"].get("allowed"))

        def find() -> list[str]:
            self.user()
            names = sorted(self._cluster.teams())
            return [name for name, found in zip(names, self.each(may, names), strict=True) if found]

        return list(self._cluster.remembered(self._token, "teams", find))

    def chosen(self, namespace: str) -> list[str]:
        """The namespaces of a list: the one that is named, else all of the caller's."""
        return [ids.team(namespace)] if namespace else self.teams()

    def home(self, namespace: str) -> str:
        """The namespace of a new object: the one that is named, else the caller's only one. Raises RefusalError."""
        if namespace:
            return ids.team(namespace)
        found = self.teams()
        if len(found) != 1:
            which = f"you belong to {', '.join(found)}" if found else "you belong to no team"
            raise invalid(f"no namespace: {which}; pass namespace=TEAM, or call client.set_user_namespace(TEAM)")
        return found[0]
