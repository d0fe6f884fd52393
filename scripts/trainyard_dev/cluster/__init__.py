"""A real Kubernetes cluster made by kind, from pulled images or from images built here."""
