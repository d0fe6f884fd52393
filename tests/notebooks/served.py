"""What stands for a notebook's program: JupyterHub's log-in of single-user servers, and a page that tells who came in.

Runs by the hub's Python, with a notebook's environment: `python served.py ADDRESS`.
"""

import json
import os
import sys
from urllib.parse import urlsplit

from jupyterhub.services.auth import HubOAuthCallbackHandler, HubOAuthenticated
from tornado.ioloop import IOLoop
from tornado.web import Application, RequestHandler, authenticated


class Page(HubOAuthenticated, RequestHandler):
    """The person, once they are logged in."""

    @authenticated
    def get(self) -> None:
        """Says who came, and whose notebook it is."""
        user = self.get_current_user()
        self.set_header("Content-Type", "application/json")
        self.write(json.dumps({"came": user["name"], "owner": os.environ["JUPYTERHUB_USER"]}))


class Status(RequestHandler):
    """What the hub asks to see whether it answers."""

    def get(self) -> None:
        """Nothing but a version, as Jupyter's servers say it."""
        self.set_header("X-JupyterHub-Version", "5")
        self.write("{}")


USER = "/user/[^/]+/"
app = Application(
    [(USER + "oauth_callback", HubOAuthCallbackHandler), (USER + "api/?", Status), (USER + ".*", Page)],
    cookie_secret=os.urandom(32),
)
app.listen(urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"]).port, address=sys.argv[1])
IOLoop.current().start()
