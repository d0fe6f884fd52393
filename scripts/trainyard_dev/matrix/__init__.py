"""Which versions of Kubernetes the tests ran on, when support of what we pin ends, and the page that says both."""
