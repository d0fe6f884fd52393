"""The versions of Kubernetes that the tests ran on, the end of support of what we pin, and the page of both."""
